//! Ops that work on columns go on only with the columns that are there.

use fusion_cost_model::possible_kernels;

use super::nodes::{assert_found, assert_kernels, found_in};

const CONV: &str = "Conv(i, f) -> a";

/// An image of 8 channels, 8 by 8, and a filter of one pixel.
const IMAGE: [&str; 1] = ["i f32 [2, 8, 8, 8]"];
const CONSTANTS: [&str; 4] =
    ["f f32 [8, 8, 1, 1]", "e f32 [8]", "v f32 [1, 1, 1, 8]", "g f32 [8, 1, 1]"];

fn assert_image(lines: &[&str], expected: &[&str]) {
    assert_found(&IMAGE, &CONSTANTS, lines, expected);
}

/// The kernels of several ops that a partitioner may choose.
fn fused(lines: &[&str]) -> Vec<String> {
    let nodes = found_in(&IMAGE, &CONSTANTS, lines).graph_nodes().unwrap();
    let kernels = possible_kernels(&nodes).unwrap();
    let several = kernels.iter().filter(|kernel| !kernel.problem.chain().is_single());
    several.map(|kernel| kernel.problem.chain().name()).collect()
}

#[test]
fn what_ends_a_chain_is_in_no_kernel_with_it() {
    assert_eq!(fused(&[CONV, "Add(a, g) -> o"]), ["conv_bias"]);
    assert!(fused(&[CONV, "Add(a, e) -> o"]).is_empty());
    // A sum goes on with either side, where both have the same columns.
    let sides = [CONV, "Conv(i, f) -> b"];
    let sum = [&sides[..], &["Add(a, b) -> o"]].concat();
    assert_eq!(fused(&sum), ["conv2d+add"]);
    let other = [CONV, "BatchNormalization(i, e, e, e, e) -> n", "Add(n, e) -> b"];
    assert_eq!(fused(&[&other[..], &["Add(a, b) -> o"]].concat()), ["bias+add"]);
}

#[test]
fn a_bias_of_another_axis_than_the_channels_is_not_one_of_a_convolution() {
    let conv = "conv2d/f32/n2.c8.h8.w8.k8.r1.s1";
    let fused = ["conv_bias/f32/n2.c8.h8.w8.k8.r1.s1"];
    assert_image(&[CONV, "Add(a, g) -> o"], &fused);
    for bias in ["e", "v"] {
        let add = format!("Add(a, {bias}) -> o");
        assert_image(&[CONV, &add], &[conv, "bias/f32/m128.n8"]);
        // Nor where an op between them has no columns.
        let lines = [CONV, "Relu(a) -> r", &add.replace("(a", "(r")];
        assert_image(&lines, &["conv_relu/f32/n2.c8.h8.w8.k8.r1.s1", "bias/f32/m128.n8"]);
    }
}

#[test]
fn a_batch_norm_goes_on_with_channels_alone() {
    let norm = "BatchNormalization(a, e, e, e, e) -> o";
    assert_image(&[CONV, norm], &["conv_bn/f32/n2.c8.h8.w8.k8.r1.s1"]);
    let inputs = ["x f32 [2, 8, 16]"];
    let constants = ["w f32 [16, 8]", "e f32 [8]"];
    let linear = "MatMul(x, w) -> a";
    // Over its axis 1, whose size the columns have too.
    assert_found(
        &inputs,
        &constants,
        &[linear, norm],
        &["linear/f32/m16.k16.n8", "batch_norm/f32/m16.n8"],
    );
    assert_found(
        &inputs,
        &constants,
        &[linear, "Relu(a) -> r", &norm.replace("(a", "(r")],
        &["linear+relu/f32/m16.k16.n8", "batch_norm/f32/m16.n8"],
    );
    let matrix = ["x f32 [2, 16]"];
    let fused = ["linear+batch_norm/f32/m2.k16.n8"];
    assert_found(&matrix, &constants, &[linear, norm], &fused);
}

#[test]
fn rows_of_another_axis_end_a_chain_over_channels() {
    let norm = "BatchNormalization(i, e, e, e, e) -> a";
    for (line, alone) in [
        ("Softmax(a) -> o", "softmax"),
        ("LayerNormalization(a, e, e) -> o", "layer_norm"),
        ("Add(a, e) -> o", "bias"),
    ] {
        assert_image(&[norm, line], &["batch_norm/f32/m128.n8", &format!("{alone}/f32/m128.n8")]);
    }
    let lines = [norm, "Add(a, i) -> s", "LayerNormalization(s, e, e) -> o"];
    assert_image(&lines, &["batch_norm+add/f32/m128.n8", "layer_norm/f32/m128.n8"]);
}

/// A view may cut the same elements into other columns.
#[test]
fn a_view_with_other_columns_ends_a_chain() {
    // Of [4, 16, 4, 4] the last two dimensions, and not the second one.
    assert_found(
        &["i f32 [4, 16, 4, 4]"],
        &["f f32 [16, 16, 1, 1]", "e f32 [16]"],
        &[CONV, "Flatten(a) -> r {\"axis\": 2}", "Add(r, e) -> o"],
        &["conv2d/f32/n4.c16.h4.w4.k16.r1.s1", "bias/f32/m64.n16"],
    );
    // With one pixel the channels are the last dimension.
    assert_found(
        &["i f32 [8, 16, 4, 4]"],
        &["f f32 [16, 16, 4, 4]", "e f32 [16]"],
        &[CONV, "Flatten(a) -> r", "Add(r, e) -> o"],
        &["conv_bias/f32/n8.c16.h4.w4.k16.r4.s4"],
    );
    // Heads that are not joined are not the columns of the next matrix.
    let end = ["MatMul(q, kt) -> s", "Softmax(s) -> p", "MatMul(p, v) -> u"];
    let inputs = ["q f32 [2, 4, 16, 16]", "kt f32 [2, 4, 16, 20]", "v f32 [2, 4, 20, 16]"];
    let lines = [&end[..], &["Flatten(u) -> t {\"axis\": 2}", "MatMul(t, w) -> o"]].concat();
    let attention = "attention_head/f32/b2.h4.q16.kv20.d16";
    assert_found(&inputs, &["w f32 [256, 8]"], &lines, &[attention, "linear/f32/m8.k256.n8"]);
    assert_kernels(
        &["MatMul(x, w) -> a", "Flatten(a) -> r", "Relu(r) -> o"],
        &["linear+relu/f32/m128.k64.n32"],
    );
}
