//! Attention.

use model_graphs::{Assumption, Dims, Graph};

use super::nodes::{assert_found, assert_kernels, assert_opaque, found, nodes};

#[test]
fn attention_of_one_node_and_of_several() {
    let key = "Transpose(k) -> kt {\"perm\": [0, 1, 3, 2]}";
    let scores = "MatMul(q, kt) -> s";
    let end = ["Softmax(e) -> r", "MatMul(r, pv) -> o"];
    let sizes = "f32/b8.h4.q16.kv20.d16";
    for (middle, expected) in [
        // 1 / sqrt(16) is a part of the GEMM.
        (&["Mul(s, 0.25) -> e"][..], "attention_head"),
        (&["Mul(s, 0.25) -> f1", "Add(f1, mask) -> e"], "qk+add+softmax+pv"),
        (&["Mul(s, 3) -> e"], "qk+scale+softmax+pv"),
        (&["Div(s, 3) -> f1", "Add(mask, f1) -> e"], "qk+scale+add+softmax+pv"),
    ] {
        let lines = [&[key, scores][..], middle, &end].concat();
        assert_kernels(&lines, &[&format!("{expected}/{sizes}")]);
    }
    assert_kernels(&["Attention(q, k, pv, mask) -> o"], &[&format!("qk+add+softmax+pv/{sizes}")]);
    // Heads that share keys and values, and a mask that is not a tensor.
    assert_kernels(
        &["Attention(gq, gk, gv) -> o {\"is_causal\": 1}"],
        &["attention_head/f32/b8.h4.q20.d16.kvh2.causal1"],
    );
    assert_kernels(
        &["Attention(q, gk, gv, mask) -> o"],
        &["qk+add+softmax+pv/f32/b8.h4.q16.kv20.d16.kvh2"],
    );
    // 1 / sqrt(16) is a part of the GEMM; a cap of 0 is none.
    for (attributes, expected) in [
        ("{\"scale\": 0.25}", "attention_head"),
        ("{\"scale\": 3}", "qk+scale+softmax+pv"),
        ("{\"softcap\": 0.0}", "attention_head"),
    ] {
        let line = format!("Attention(q, k, pv) -> o {attributes}");
        assert_kernels(&[&line], &[&format!("{expected}/{sizes}")]);
    }
    assert_opaque("Attention(q, k, pv) -> o {\"softcap\": 30}", "it caps its scores");
    // ONNX puts the first query at the first key; with as many keys that is the same.
    assert_opaque("Attention(q, k, pv) -> o {\"is_causal\": 1}", "first query at the first key");
    let one_head = [
        "Transpose(ok) -> kt {\"perm\": [0, 1, 3, 2]}",
        "MatMul(q, kt) -> s",
        "Mul(s, 0.25) -> e",
        "Softmax(e) -> r",
        "MatMul(r, ov) -> o",
    ];
    assert_kernels(&one_head, &["attention_head/f32/b8.h4.q16.kv20.d16.kvh1"]);
    let repeated = [
        "Unsqueeze(gk, two) -> k1",
        "Expand(k1, twice) -> k2",
        "Reshape(k2, heads) -> k3",
        "Transpose(k3) -> kt {\"perm\": [0, 1, 3, 2]}",
        "Unsqueeze(gv, two) -> v1",
        "Expand(v1, twice) -> v2",
        "Reshape(v2, heads) -> v3",
        "MatMul(q, kt) -> s",
        "Mul(s, 0.25) -> e",
        "Softmax(e) -> r",
        "MatMul(r, v3) -> o",
    ];
    assert_kernels(&repeated, &["attention_head/f32/b8.h4.q16.kv20.d16.kvh2"]);
    // Heads that are split and joined again, with linear layers around them.
    let lines = [
        "Linear(x, w1, v) -> l1",
        "Linear(x, w1, v) -> l2",
        "Linear(x, w1, v) -> l3",
        "Reshape(l1, split) -> r1",
        "Reshape(l2, split) -> r2",
        "Reshape(l3, split) -> r3",
        "Transpose(r1) -> q1 {\"perm\": [0, 2, 1, 3]}",
        "Transpose(r2) -> k1 {\"perm\": [0, 2, 3, 1]}",
        "Transpose(r3) -> v1 {\"perm\": [0, 2, 1, 3]}",
        "MatMul(q1, k1) -> s",
        "Mul(s, 0.25) -> e",
        "Softmax(e) -> r",
        "MatMul(r, v1) -> u",
        "Transpose(u) -> u2 {\"perm\": [0, 2, 1, 3]}",
        "Reshape(u2, join) -> u3",
        "Linear(u3, w1, v) -> l4",
        "Add(l4, x) -> a",
        "LayerNormalization(a, v, c) -> o",
    ];
    let lines = lines.map(|line| line.replace("w1", "square"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let square = "{\"op\": \"Concat\", \"inputs\": [\"t\", \"t\"], \"outputs\": [\"square\"]},";
    let found = found(&format!("{square}{}", nodes(&lines)), "\"o\"");
    let kernels: Vec<String> = found
        .segments()
        .iter()
        .flat_map(|segment| segment.largest_kernels())
        .map(|kernel| kernel.to_string())
        .collect();
    let linear = "linear_bias/f32/m128.k64.n64";
    let whole = "qk+softmax+pv+linear+bias+add/f32/b8.h4.q16.d16.n64";
    assert_eq!(kernels, [linear, linear, linear, whole, "layer_norm/f32/m128.n64"]);
    // The layer norm is in the segment too: a kernel from the linear layer on could hold it.
    let last = &found.segments()[3];
    assert_eq!(
        last.problem(3..7).unwrap().to_string(),
        "linear+bias+add+layer_norm/f32/m128.k64.n64"
    );
    assert_eq!(found.edges().len(), 3);
    assert!(found.opaque().is_empty());
    assert_eq!(found.computed_ahead(), 1);
    let heads = found.assumptions().find(|(one, _)| *one == Assumption::HeadsInPlace);
    assert_eq!(heads, Some((Assumption::HeadsInPlace, 1)));
    // The biases of the linear layers write queries, keys and values, and each is read by its op.
    let nodes = found.graph_nodes().unwrap();
    let read = |node: usize| (nodes[node].input, nodes[node].operands.clone());
    assert_eq!(nodes[8].problem.chain().to_string(), "pv");
    assert_eq!([6, 7, 8].map(read), [(Some(1), vec![3]), (Some(6), vec![]), (Some(7), vec![5])]);
}

/// Its softmax is no kernel without the GEMM before it, so both are one node for a partitioner.
#[test]
fn causal_attention_is_two_nodes() {
    let found = found(&nodes(&["Attention(gq, gk, gv) -> o {\"is_causal\": 1}"]), "\"o\"");
    let nodes = found.graph_nodes().unwrap();
    let problems: Vec<String> = nodes.iter().map(|node| node.problem.to_string()).collect();
    assert_eq!(
        problems,
        ["qk+softmax/f32/b8.h4.q20.d16.kvh2.causal1", "pv/f32/b8.h4.q20.d16.kvh2"],
    );
    assert_eq!(nodes[1].input, Some(0));
    let line = "Attention(gq, gk, gv, square) -> o {\"is_causal\": 1, \"scale\": 3}";
    assert_found(
        &[
            "gq f32 [8, 4, 20, 16]",
            "gk f32 [8, 2, 20, 16]",
            "gv f32 [8, 2, 20, 16]",
            "square f32 [20, 20]",
        ],
        &[],
        &[line],
        &["qk+scale+add+softmax+pv/f32/b8.h4.q20.d16.kvh2.causal1"],
    );
}

/// Before version 13 of the operators a softmax without an axis was over all dimensions but the
/// first. The files are written by the package `onnx`: both of `[2, 4, 16, 24]`, the second with the
/// last axis.
#[test]
fn a_softmax_of_old_operators_is_over_what_they_say() {
    let kernels = |model: &[u8]| {
        let found = Graph::from_onnx(model.to_vec()).unwrap().segments(&Dims::default()).unwrap();
        let kernels = found.segments().iter().flat_map(|segment| segment.largest_kernels());
        kernels.map(|kernel| kernel.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(kernels(include_bytes!("../data/old_softmax.onnx")), ["softmax/f32/m2.n1536"]);
    assert_eq!(
        kernels(include_bytes!("../data/old_softmax_axis3.onnx")),
        ["qk+softmax+pv+relu/f32/b2.h4.q16.kv24.d32"]
    );
}

/// Values of more batches or heads than the scores make more products than attention does.
#[test]
fn values_of_other_batches_than_the_scores_are_no_attention() {
    let lines = ["MatMul(q, kt) -> s", "Softmax(s) -> p", "MatMul(p, v) -> o"];
    let batched = "MatMul: a batched GEMM: its second input is not one matrix";
    for (q, kt, v) in [
        ("[1, 4, 16, 32]", "[1, 4, 32, 24]", "[8, 4, 24, 32]"),
        ("[2, 1, 16, 32]", "[2, 1, 32, 24]", "[2, 4, 24, 32]"),
        ("[2, 4, 16, 32]", "[2, 4, 32, 24]", "[5, 2, 4, 24, 32]"),
        ("[4, 16, 32]", "[4, 32, 24]", "[2, 4, 24, 32]"),
    ] {
        let [q, kt, v] =
            [("q", q), ("kt", kt), ("v", v)].map(|(name, shape)| format!("{name} f32 {shape}"));
        let rows = if q.contains("[2, 4") {
            128
        } else if q.contains("[2, 1") {
            32
        } else {
            64
        };
        let softmax = format!("softmax/f32/m{rows}.n24");
        assert_found(&[&q, &kt, &v], &[], &lines, &[&softmax, batched, batched]);
    }
}
