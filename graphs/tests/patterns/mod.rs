//! What each group of nodes is recognised as, and why others are not.

mod attention;
mod axes;
mod dtypes;
mod nodes;

use model_graphs::{Assumption, Dims, Graph};
use nodes::{assert_found, assert_kernels, assert_opaque, found, kernels, nodes};

#[test]
fn linear_layers() {
    for lines in [
        &["MatMul(x, w) -> a", "Add(a, b) -> o"][..],
        &["MatMul(x, w) -> a", "Add(b, a) -> o"],
        &["Linear(x, t, b) -> o"],
        &["Transpose(t) -> tt", "MatMul(x, tt) -> a", "Add(a, b) -> o"],
        &["Gemm(m, w, b) -> o"],
        &["Gemm(m, t, b) -> o {\"transB\": 1}"],
    ] {
        assert_kernels(lines, &["linear_bias/f32/m128.k64.n32"]);
    }
    assert_kernels(&["Gemm(m, w) -> o"], &["linear/f32/m128.k64.n32"]);
    // Factors are multiplied into constants ahead of time.
    let factors = "{\"alpha\": 0.5, \"beta\": 2}";
    for (lines, count) in [
        (&[&format!("Gemm(m, w, b) -> o {factors}")[..]][..], None),
        (&["Gemm(m, w) -> e", &format!("Gemm(m, w, e) -> o {factors}")], Some(1)),
    ] {
        let found = found(&nodes(lines), "\"o\"");
        let free = found.assumptions().find(|(one, _)| *one == Assumption::FreeFactors);
        assert_eq!(free.map(|(_, count)| count), count, "{lines:?}");
    }
    assert_opaque("Gemm(m, m) -> o {\"transA\": 1}", "it transposes its first input");
    assert_opaque("MatMul(l, m) -> o", "its first input is constant");
    assert_opaque("MatMul(x, y2) -> o", "a batched GEMM");
}

#[test]
fn what_is_added_is_a_bias_or_a_tensor() {
    let linear = "MatMul(x, w) -> a";
    let second = "MatMul(y, w) -> r";
    assert_kernels(
        &[linear, second, "Add(a, r) -> o"],
        &["linear/f32/m128.k64.n32", "linear+add/f32/m128.k64.n32"],
    );
    assert_kernels(&["Add(x, y) -> a", "Relu(a) -> o"], &["add_relu/f32/m128.n64"]);
    assert_kernels(&["Add(x, x) -> o"], &["add/f32/m128.n64"]);
    assert_kernels(&[linear, "Add(a, a) -> o"], &["linear/f32/m128.k64.n32", "add/f32/m128.n32"]);
    assert_kernels(&["Mul(x, 2) -> a", "Div(a, 3) -> o"], &["scale+scale/f32/m128.n64"]);
    let found = found(&nodes(&["Mul(x, v) -> o"]), "\"o\"");
    assert_eq!(found.assumptions().collect::<Vec<_>>(), [(Assumption::BroadcastOperand, 1)]);
    assert_opaque("Add(x, 1) -> o", "it adds one number");
    assert_opaque("Div(x, y) -> o", "it divides by a tensor");
    assert_opaque("Div(1, x) -> o", "it divides a number by a tensor");
    assert_opaque("Sub(x, y) -> o", "no such op");
}

#[test]
fn convolutions() {
    let pads = "{\"pads\": [1, 1, 1, 1], \"strides\": [2, 2]}";
    let conv = &format!("Conv(i, f, g) -> a {pads}");
    assert_kernels(
        &[conv, "Relu(a) -> o"],
        &["conv2d+bias+relu/f32/n2.c8.h28.w28.k16.r3.s3.stride2.pad1"],
    );
    let conv = &format!("Conv(i, f) -> a {pads}");
    assert_kernels(
        &[
            conv,
            "Add(a, h) -> s",
            "HardSwish(s) -> n",
            "MaxPool(n) -> o {\"kernel_shape\": [2, 2]}",
        ],
        &["conv2d+bias+hardswish+max_pool/f32/n2.c8.h28.w28.k16.r3.s3.stride2.pad1.pstride1"],
    );
    assert_kernels(
        &[conv, "BatchNormalization(a, g, g, g, g) -> s", "Sigmoid(s) -> n", "Mul(s, n) -> o"],
        &["conv2d+batch_norm+silu/f32/n2.c8.h28.w28.k16.r3.s3.stride2.pad1"],
    );
    let same = "Conv(i, f) -> o {\"auto_pad\": \"SAME_UPPER\"}";
    assert_kernels(&[same], &["conv2d/f32/n2.c8.h28.w28.k16.r3.s3.pad1"]);
    for (attributes, reason) in [
        ("{\"strides\": [1, 2]}", "its strides [1, 2] differ by direction"),
        ("{\"pads\": [1, 0, 1, 0]}", "its paddings [1, 0, 1, 0] differ by direction"),
        ("{\"dilations\": [2, 2]}", "it is dilated"),
        ("{\"auto_pad\": \"SAME_UPPER\", \"strides\": [2, 2]}", "differ by direction"),
        ("{\"pads\": [3, 3, 3, 3]}", "pad3 must be smaller"),
        ("{\"pads\": [-1, 0, 0, 0]}", "those of no window"),
    ] {
        assert_opaque(&format!("Conv(i, f) -> o {attributes}"), reason);
    }
    let alone = "MaxPool(i) -> o {\"kernel_shape\": [2, 2]}";
    assert_kernels(&[alone], &["max_pool/f32/n2.c8.h28.w28.pstride1"]);
}

#[test]
fn activations_of_one_node_and_of_several() {
    for (lines, op) in [
        (&["Relu(x) -> o"][..], "relu"),
        (&["nn.Hardswish(x) -> o"], "hardswish"),
        (&["Clip(x, 0, 6) -> o"], "relu6"),
        (&["Gelu(x) -> o {\"approximate\": \"tanh\"}"], "gelu_tanh"),
        (&["Sigmoid(x) -> a", "Mul(a, x) -> o"], "silu"),
        (&["Swish(x) -> o"], "silu"),
        (
            &[
                "Div(x, 1.41421356) -> a",
                "Erf(a) -> e",
                "Add(e, 1) -> s",
                "Mul(x, s) -> p",
                "Mul(p, 0.5) -> o",
            ],
            "gelu",
        ),
        (
            &[
                "Div(x, 1.41421356) -> a",
                "Erf(a) -> e",
                "Add(1, e) -> s",
                "Mul(0.5, x) -> p",
                "Mul(p, s) -> o",
            ],
            "gelu",
        ),
        (
            &[
                "Pow(x, 3) -> c3",
                "Mul(c3, 0.044715) -> d",
                "Add(x, d) -> e",
                "Mul(e, 0.79788456) -> f1",
                "Tanh(f1) -> t1",
                "Add(t1, 1) -> s",
                "Mul(x, 0.5) -> half",
                "Mul(half, s) -> o",
            ],
            "gelu_tanh",
        ),
        (
            &["Add(x, 3) -> a", "Clip(a, 0, 6) -> e", "Mul(x, e) -> p", "Div(p, 6) -> o"],
            "hardswish",
        ),
    ] {
        assert_kernels(lines, &[&format!("{op}/f32/m128.n64")]);
    }
    // With another factor than 1/2 it is not GELU.
    let lines = [
        "Div(x, 1.41421356) -> a",
        "Erf(a) -> e",
        "Add(e, 1) -> s",
        "Mul(x, s) -> p",
        "Mul(p, 0.25) -> o",
    ];
    assert!(kernels(&lines).iter().all(|kernel| !kernel.contains("gelu")));
    // What somebody else reads is not a part of one.
    let found =
        found(&nodes(&["Sigmoid(x) -> a", "Mul(a, x) -> o", "Relu(a) -> r"]), "\"o\", \"r\"");
    let ops = found.segments().iter().flat_map(|segment| segment.ops());
    assert!(ops.into_iter().all(|op| op.op().name() != "silu"));
    // A view of other dimensions makes a product of more elements than x has.
    assert_found(
        &["x f32 [64, 1]"],
        &[],
        &["Flatten(x) -> t {\"axis\": 0}", "Sigmoid(t) -> s", "Mul(x, s) -> o"],
        &["sigmoid/f32/m1.n64", "Mul: both of its inputs broadcast"],
    );
    assert_opaque("Mish(x) -> o", "no such op");
    assert_opaque("LeakyRelu(x) -> o {\"alpha\": 0.2}", "its slope is not 0.01");
    assert_opaque("HardSigmoid(x) -> o {\"alpha\": 0.3}", "its slope is neither 0.2 nor 1/6");
    assert_opaque("Clip(x, 1, 6) -> o", "its bounds are not");
}

#[test]
fn norms_of_one_node_and_of_several() {
    let layer_norm = ["layer_norm/f32/m128.n64"];
    assert_kernels(&["LayerNormalization(x, v, c) -> o {\"axis\": -1}"], &layer_norm);
    let axes = "{\"axes\": [2]}";
    let mean = &format!("ReduceMean(x) -> m1 {axes}");
    let variance = &format!("ReduceMean(s) -> m2 {axes}");
    assert_kernels(
        &[
            mean,
            "Sub(x, m1) -> d",
            "Mul(d, d) -> s",
            variance,
            "Add(m2, 0) -> e",
            "Sqrt(e) -> r",
            "Div(d, r) -> n",
            "Mul(v, n) -> p",
            "Add(p, c) -> o",
        ],
        &layer_norm,
    );
    assert_kernels(
        &[
            mean,
            "Sub(x, m1) -> d",
            "Sub(x, m1) -> d2",
            "Pow(d2, 2) -> s",
            variance,
            "Add(m2, 0) -> e",
            "Sqrt(e) -> r",
            "Div(d, r) -> n",
            "Mul(n, v) -> p",
            "Add(p, c) -> o",
        ],
        &layer_norm,
    );
    let rms = ["rms_norm/f32/m128.n64"];
    assert_kernels(&["RMSNormalization(x, v) -> o"], &rms);
    assert_kernels(
        &[
            "Pow(x, 2) -> s",
            variance,
            "Add(m2, 0) -> e",
            "Sqrt(e) -> r",
            "Reciprocal(r) -> i1",
            "Mul(x, i1) -> n",
            "Mul(v, n) -> o",
        ],
        &rms,
    );
    assert_kernels(
        &["com.microsoft.SkipLayerNormalization(x, y, v, c) -> o"],
        &["add_layernorm/f32/m128.n64"],
    );
    assert_kernels(
        &["Add(x, y) -> a", "LayerNormalization(a, v, c) -> o"],
        &["add_layernorm/f32/m128.n64"],
    );
    assert_kernels(&["Softmax(x) -> o"], &["softmax/f32/m128.n64"]);
    assert_opaque("Softmax(x) -> o {\"axis\": 1}", "not over the last axis");
}

#[test]
fn an_operand_is_read_by_the_op_that_needs_it() {
    for (lines, node, expected) in [
        // A tensor is added to itself.
        (&["Relu(x) -> r", "Add(r, r) -> o"][..], 1, (Some(0), vec![0])),
        // The third input of the node is what is added.
        (&["Gemm(m, w) -> e", "Gemm(m, w, e) -> o"], 2, (Some(1), vec![0])),
        (
            &["Relu(x) -> r", "com.microsoft.SkipLayerNormalization(y, r, v, c, c) -> o"],
            2,
            (Some(1), vec![0]),
        ),
        (
            &[
                "Transpose(k) -> kt {\"perm\": [0, 1, 3, 2]}",
                "MatMul(q, kt) -> s",
                "Mul(s, 0.25) -> f1",
                "Relu(mask) -> positive",
                "Add(f1, positive) -> e",
                "Softmax(e) -> r",
                "MatMul(r, pv) -> o",
            ],
            2,
            (Some(1), vec![0]),
        ),
    ] {
        let nodes = found(&nodes(lines), "\"o\"").graph_nodes().unwrap();
        assert_eq!((nodes[node].input, nodes[node].operands.clone()), expected, "{nodes:#?}");
    }
}

#[test]
fn segments_end_where_no_kernel_reaches_on() {
    // Two linear layers can be one kernel, a third one cannot join both.
    let linear = "Concat(t, t) -> sq";
    let found = found(
        &nodes(&[
            linear,
            "MatMul(x, sq) -> a",
            "Relu(a) -> r",
            "MatMul(r, sq) -> a2",
            "MatMul(a2, sq) -> o",
        ]),
        "\"o\"",
    );
    assert_eq!(found.segments().len(), 1);
    let segment = &found.segments()[0];
    let text = |ops| segment.problem(ops).map(|problem| problem.to_string());
    assert_eq!(text(0..3).as_deref(), Some("linear+relu+linear/f32/m128.k64.n64.o64"));
    assert_eq!(text(2..4).as_deref(), Some("linear+linear/f32/m128.k64.n64.o64"));
    assert_eq!((text(0..4), text(1..3), text(2..9)), (None, None, None));
    // What comes before a GEMM is not fused into it.
    let found = self::found(&nodes(&["Relu(x) -> r", "MatMul(r, w) -> o"]), "\"o\"");
    assert_eq!(found.segments().len(), 2);
    assert_eq!(found.edges().len(), 1);
    // A result that is an output, or has two readers.
    let lines = nodes(&["MatMul(x, w) -> a", "Relu(a) -> o"]);
    assert_eq!(self::found(&lines, "\"o\"").segments().len(), 1);
    assert_eq!(self::found(&lines, "\"a\", \"o\"").segments().len(), 2);
    let lines = nodes(&["MatMul(x, w) -> a", "Relu(a) -> r", "Tanh(a) -> s", "Add(r, s) -> o"]);
    assert_eq!(self::found(&lines, "\"o\"").segments().len(), 3);
}

#[test]
fn views_and_what_is_known_ahead_cost_nothing() {
    // As exporters flatten: the dimensions are taken apart and put together again.
    let lines = [
        "MatMul(x, w) -> a",
        "Shape(a) -> dims",
        "Slice(dims, zero, two) -> outer",
        "Concat(outer, minus) -> wanted",
        "Reshape(a, wanted) -> r",
        "Dropout(r) -> d",
        "Relu(d) -> o",
    ];
    assert_kernels(&lines, &["linear+relu/f32/m128.k64.n32"]);
    let found = found(&nodes(&lines), "\"o\"");
    assert_eq!((found.views(), found.computed_ahead()), (2, 3));
}

#[test]
fn what_no_output_needs_is_left_out() {
    let lines = ["MatMul(x, w) -> a", "Relu(a) -> o", "Tanh(a) -> t1", "Flatten(t1) -> t2"];
    assert_kernels(&lines, &["linear+relu/f32/m128.k64.n32"]);
    let found = found(&nodes(&lines), "\"o\"");
    assert_eq!((found.unused(), found.views()), (2, 0));
    assert!(found.opaque().is_empty() && found.edges().is_empty());
}

#[test]
fn a_dropout_whose_mask_is_read_is_no_view() {
    let node = "{\"op\": \"Dropout\", \"inputs\": [\"x\"], \"outputs\": [\"o\", \"mask1\"]}";
    let found = self::found(node, "\"o\", \"mask1\"");
    assert_eq!(found.opaque()[0].reason, "its mask is read too");
    assert_eq!(self::found(node, "\"o\"").views(), 1);
}

/// The files are written by the package `onnx`, with version 6 of the operators: a bias per channel
/// of an image by its attribute `axis`, and a Dropout in training mode.
#[test]
fn what_old_operators_say_by_attributes_is_not_passed_over() {
    let segments =
        |model: &[u8]| Graph::from_onnx(model.to_vec()).unwrap().segments(&Dims::default());
    let error = segments(include_bytes!("../data/old_add.onnx")).unwrap_err();
    assert!(error.is_invalid_graph());
    let message = error.to_string();
    assert!(
        message.contains("axis 1 of opset 6 broadcasts [8] along other dimensions"),
        "{message}"
    );
    assert!(message.contains("convert the model with onnx.version_converter"), "{message}");
    let found = segments(include_bytes!("../data/old_dropout.onnx")).unwrap();
    let kernels = found.segments().iter().flat_map(|segment| segment.largest_kernels());
    assert!(kernels.into_iter().any(|kernel| kernel.to_string().contains("dropout")), "{found:?}");
}

#[test]
fn shapes_that_contradict_each_other_are_errors() {
    let error = |nodes: &str, tensors: &str| {
        let text = format!(
            "{{\"kind\": \"graph\", \"schema_version\": 1, \"inputs\": [{{\"name\": \"x\", \
             \"dtype\": \"f32\", \"shape\": [8, 64]}}], \"constants\": [{{\"name\": \"w\", \
             \"dtype\": \"f32\", \"shape\": [32, 64]}}], \"nodes\": [{nodes}], \"tensors\": \
             [{tensors}], \"outputs\": [\"y\"]}}"
        );
        let graph = Graph::from_json(text.as_bytes()).unwrap();
        let error = graph.segments(&Dims::default()).unwrap_err();
        assert!(error.is_invalid_graph());
        error.to_string()
    };
    let message = error(
        "{\"name\": \"fc\", \"op\": \"MatMul\", \"inputs\": [\"x\", \"w\"], \"outputs\": [\"y\"]}",
        "",
    );
    assert_eq!(
        message,
        "not a valid graph: `fc` (MatMul): the columns of [8, 64] are not the rows of [32, 64]"
    );
    let message = error(
        "{\"op\": \"Relu\", \"inputs\": [\"x\"], \"outputs\": [\"y\"]}",
        "{\"name\": \"y\", \"dtype\": \"f32\", \"shape\": [\"n\", 32]}",
    );
    assert_eq!(
        message,
        "not a valid graph: `y` is declared as [n, 32], but the Relu that writes `y` writes [8, \
         64]; infer the shapes of the model anew"
    );
}
