//! A problem reads and writes one dtype.

use super::nodes::assert_found;

const NO_OP: &str = ": the vocabulary has no such op";

/// `x` normed by its root mean square: read by `Pow` and `Div`, written by `Div`.
fn rms(x: &str, normal: &str) -> Vec<String> {
    vec![
        format!("Pow({x}, 2) -> s"),
        "ReduceMean(s) -> m1 {\"axes\": [1]}".to_owned(),
        "Add(m1, 0) -> e".to_owned(),
        "Sqrt(e) -> r".to_owned(),
        format!("Div({x}, r) -> {normal}"),
    ]
}

#[test]
fn casts_are_a_part_of_a_norm_that_writes_what_it_reads() {
    let wide = "Cast(x) -> f1 {\"to\": \"f32\"}".to_owned();
    let narrow = "Cast(n) -> n2 {\"to\": \"f16\"}".to_owned();
    let cast = format!("Cast{NO_OP}");
    let check = |dtype: &str, weight: &str, lines: &[String], expected: &[&str]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (x, w) = (format!("x {dtype} [8, 64]"), format!("w {weight} [64]"));
        assert_found(&[&x], &[&w], &lines, expected);
    };
    let weighted = |of: &str, to: &str| vec![format!("Mul({of}, w) -> {to}")];
    let lines = [vec![wide.clone()], rms("f1", "n"), vec![narrow.clone()], weighted("n2", "o")];
    check("f16", "f16", &lines.concat(), &["rms_norm/f16/m8.n64"]);
    // Its weight and result are in single precision: so is the norm, and the cast before it is none
    // of its nodes.
    let lines = [vec![wide.clone()], rms("f1", "n"), weighted("n", "o")];
    check("f16", "f32", &lines.concat(), &["rms_norm/f32/m8.n64", &cast]);
    let end = vec!["Cast(n2) -> o {\"to\": \"f16\"}".to_owned()];
    let lines = [vec![wide], rms("f1", "n"), weighted("n", "n2"), end];
    check("f16", "f32", &lines.concat(), &["rms_norm/f32/m8.n64", &cast, &cast]);
    // It reads single precision and writes half.
    let lines = [rms("x", "n"), vec![narrow], weighted("n2", "o")].concat();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let others = ["Pow", "ReduceMean"].map(|op| format!("{op}{NO_OP}"));
    assert_found(
        &["x f32 [8, 64]"],
        &["w f16 [64]"],
        &lines,
        &[
            "mul/f16/m8.n64",
            &others[0],
            &others[1],
            "Add: it adds one number to all elements",
            &format!("Sqrt{NO_OP}"),
            "Div: it divides by a tensor",
            &cast,
        ],
    );
}

#[test]
fn attention_in_single_precision_may_have_halves_around_it_only() {
    let lines = |wide: &str, narrow: &str| {
        [
            "MatMul(q, kt) -> s".to_owned(),
            format!("Cast(s) -> s2 {{\"to\": \"{wide}\"}}"),
            "Softmax(s2) -> p".to_owned(),
            format!("Cast(p) -> p2 {{\"to\": \"{narrow}\"}}"),
            "MatMul(p2, v) -> o".to_owned(),
        ]
    };
    let check = |dtype: &str, of_values: &str, lines: [String; 5], expected: &[&str]| {
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let [q, kt] = [("q", "[2, 4, 16, 8]"), ("kt", "[2, 4, 8, 24]")]
            .map(|(name, shape)| format!("{name} {dtype} {shape}"));
        let v = format!("v {of_values} [2, 4, 24, 8]");
        assert_found(&[&q, &kt, &v], &[], &lines, expected);
    };
    check("f16", "f16", lines("f32", "f16"), &["attention_head/f16/b2.h4.q16.kv24.d8"]);
    let batched = "MatMul: a batched GEMM: its second input is not one matrix";
    let cast = format!("Cast{NO_OP}");
    let apart = |dtype: &str, casts: usize| {
        let softmax = format!("softmax/{dtype}/m128.n24");
        let mut found = vec![softmax, batched.to_owned()];
        found.extend(vec![cast.clone(); casts]);
        found.push(batched.to_owned());
        found
    };
    for (dtype, of_values, lines, found) in [
        ("f32", "f32", lines("f16", "f32"), apart("f16", 2)),
        // The second cast is a view.
        ("f16", "f32", lines("f32", "f32"), apart("f32", 1)),
    ] {
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        check(dtype, of_values, lines, &found);
    }
}
