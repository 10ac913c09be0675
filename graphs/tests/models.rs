//! Every convolution, linear layer and attention of real architectures is recognised.

use crate::checks;
use std::collections::BTreeMap;

use model_graphs::synthetic::{bert_base, llama_block, resnet50};
use model_graphs::{Assumption, Dims, Graph, Segments};

fn segments(model: Vec<u8>, dims: &Dims) -> Segments {
    let found = Graph::from_onnx(model).unwrap().segments(dims).unwrap();
    checks::whole(&found);
    found
}

fn batch() -> Dims {
    Dims::default().with("batch", 8)
}

/// How many ops of each kind there are.
fn ops(found: &Segments) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for op in found.segments().iter().flat_map(|segment| segment.ops()) {
        *counts.entry(op.op().name()).or_default() += 1;
    }
    counts
}

/// The largest kernels and how often each occurs.
fn kernels(found: &Segments) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for kernel in found.segments().iter().flat_map(|segment| segment.largest_kernels()) {
        *counts.entry(kernel.to_string()).or_default() += 1;
    }
    counts
}

fn opaque(found: &Segments) -> Vec<String> {
    found.opaque_counts().iter().map(ToString::to_string).collect()
}

fn assumed(found: &Segments) -> Vec<(Assumption, usize)> {
    found.assumptions().collect()
}

#[test]
fn resnet50_has_53_convolutions_and_a_linear_layer() {
    let found = segments(resnet50(), &batch());
    let expected = [
        ("add", 16),
        ("batch_norm", 53),
        ("bias", 1),
        ("conv2d", 53),
        ("linear", 1),
        ("max_pool", 1),
        ("relu", 49),
    ];
    assert_eq!(ops(&found), BTreeMap::from(expected));
    assert_eq!(opaque(&found), ["1 x GlobalAveragePool: the vocabulary has no such op"]);
    assert_eq!(assumed(&found), [(Assumption::PrepackedWeights, 54)]);
    let kernels = kernels(&found);
    for (kernel, count) in [
        ("conv_bn_relu_maxpool/f32/n8.c3.h224.w224.k64.r7.s7.stride2.pad3.pool3.pstride2.ppad1", 1),
        ("conv_bn_relu/f32/n8.c64.h56.w56.k64.r3.s3.pad1", 3),
        ("conv_bn_relu/f32/n8.c128.h56.w56.k128.r3.s3.stride2.pad1", 1),
        ("conv2d+batch_norm+add+relu/f32/n8.c512.h7.w7.k2048.r1.s1", 2),
        ("linear_bias/f32/m8.k2048.n1000", 1),
    ] {
        assert_eq!(kernels.get(kernel), Some(&count), "{kernel} of {kernels:#?}");
    }
    assert_eq!(kernels.values().sum::<usize>(), 54);
}

#[test]
fn bert_has_twelve_layers_of_attention_and_six_linear_layers() {
    let found = segments(bert_base(), &batch().with("sequence", 128));
    let ops = ops(&found);
    for (op, count) in [
        ("linear", 12 * 6 + 1),
        ("qk", 12),
        ("softmax", 12),
        ("pv", 12),
        ("layer_norm", 12 * 2 + 1),
        ("gelu", 12),
        ("tanh", 1),
        ("bias", 12 * 6 + 1),
    ] {
        assert_eq!(ops.get(op), Some(&count), "{op} of {ops:?}");
    }
    let kernels = kernels(&found);
    for (kernel, count) in [
        // Queries, keys and values.
        ("linear_bias/f32/m1024.k768.n768", 36),
        ("qk+add+softmax+pv+linear+bias+add/f32/b8.h12.q128.d64.n768", 12),
        ("linear+bias+gelu+linear+bias+add+layer_norm/f32/m1024.k768.n3072.o768", 12),
        ("linear+bias+tanh/f32/m8.k768.n768", 1),
    ] {
        assert_eq!(kernels.get(kernel), Some(&count), "{kernel} of {kernels:#?}");
    }
    assert_eq!(
        opaque(&found),
        ["3 x Gather: the vocabulary has no such op", "1 x Sub: the vocabulary has no such op",]
    );
    assert!(assumed(&found).contains(&(Assumption::HeadsInPlace, 12)));
}

#[test]
fn a_llama_block_has_seven_linear_layers_and_an_attention() {
    let found = segments(llama_block(), &batch().with("sequence", 128));
    let ops = ops(&found);
    for (op, count) in
        [("linear", 7), ("qk", 1), ("softmax", 1), ("pv", 1), ("rms_norm", 2), ("silu", 1)]
    {
        assert_eq!(ops.get(op), Some(&count), "{op} of {ops:?}");
    }
    let kernels = kernels(&found);
    for (kernel, count) in [
        ("linear/f16/m1024.k4096.n4096", 1),
        ("linear/f16/m1024.k4096.n1024", 2),
        ("qk+add+softmax+pv+linear+add/f16/b8.h32.q128.d128.kvh8.n4096", 1),
        ("linear+silu+mul+linear+add/f16/m1024.k4096.n14336.o4096", 1),
        ("rms_norm/f16/m1024.n4096", 2),
    ] {
        assert_eq!(kernels.get(kernel), Some(&count), "{kernel} of {kernels:#?}");
    }
}

/// Each op is a node that reads the one before it; a residual sum has both of its branches.
#[test]
fn ops_are_nodes_for_a_partitioner() {
    let found = segments(resnet50(), &batch());
    let nodes = found.graph_nodes().unwrap();
    let sums = nodes.iter().filter(|node| node.problem.chain().to_string() == "add");
    let branches: Vec<(Option<usize>, usize)> =
        sums.map(|node| (node.input, node.operands.len())).collect();
    assert_eq!(branches.len(), 16);
    assert!(branches.iter().all(|(input, operands)| input.is_some() && *operands == 1));
    // The pool over whole images is opaque, so what it reads stays in memory, as the result does.
    let outputs: Vec<String> =
        nodes.iter().filter(|node| node.is_output).map(|node| node.problem.to_string()).collect();
    assert_eq!(outputs, ["relu/f32/m392.n2048", "bias/f32/m8.n1000"]);
    // The only op that reads nothing of others is the stem's convolution, and the last linear op,
    // behind the opaque node.
    let first: Vec<usize> = (0..nodes.len()).filter(|&node| nodes[node].input.is_none()).collect();
    assert_eq!(first, [0, nodes.len() - 2]);
}

/// `small.onnx` is written by the package `onnx`: numbers in every field that they may have, a
/// declared shape for every tensor, and constants as nodes.
#[test]
fn a_file_of_another_writer_is_read() {
    let found = segments(include_bytes!("data/small.onnx").to_vec(), &batch());
    let expected = [
        ("conv2d+bias+gelu/f32/n8.c2.h4.w4.k4.r3.s3.pad1".to_owned(), 1),
        ("linear/f16/m8.k64.n10".to_owned(), 1),
    ];
    assert_eq!(kernels(&found), BTreeMap::from(expected));
    assert_eq!(opaque(&found), ["1 x Cast: the vocabulary has no such op"]);
}

/// A softmax of more rows than a problem has is an error, and not one kernel with what comes before.
#[test]
fn an_op_of_too_many_rows_is_an_error() {
    let dims = Dims::default().with("batch", 40_000_000).with("sequence", 128);
    let found = Graph::from_onnx(bert_base()).unwrap().segments(&dims).unwrap();
    assert!(found.graph_nodes().unwrap_err().is_invalid_sizes());
}

/// What a user must say, and what happens when it is not said.
#[test]
fn open_dimensions_are_asked_for_all_at_once() {
    let graph = Graph::from_onnx(bert_base()).unwrap();
    let error = graph.segments(&Dims::default()).unwrap_err();
    assert!(error.is_open_dims());
    assert_eq!(error.open_dims().collect::<Vec<_>>(), ["batch", "sequence"]);
    assert_eq!(
        error.to_string(),
        "the graph leaves dimensions open: `batch` (of `input_ids`, `token_type_ids`, \
         `attention_mask`), `sequence` (of `input_ids`, `token_type_ids`, `attention_mask`); give \
         each a number, such as --dim batch=8"
    );
    let error = graph.segments(&batch().with("sequnce", 128)).unwrap_err();
    assert!(error.is_invalid_dim());
    assert_eq!(error.to_string(), "unknown dimension `sequnce`; did you mean `sequence`?");
    let error = graph.segments(&batch().with("sequence", 1024)).unwrap_err();
    assert!(error.is_invalid_graph());
    let message = error.to_string();
    assert!(message.contains("[8, 1024, 768] and [512, 768] do not broadcast"), "{message}");
}
