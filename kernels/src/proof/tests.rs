use super::*;

/// A problem with a reference of some rows, and its output.
struct Case {
    problem: Problem,
    inputs: Inputs,
    budget: u64,
    output: Vec<f32>,
}

impl Case {
    fn new(text: &str, budget: u64) -> Self {
        let problem: Problem = text.parse().unwrap();
        let inputs = Inputs::random(&problem, 3);
        let reference = Reference::new(&problem, &inputs);
        let all: Vec<usize> = (0..reference.rows()).collect();
        let output = reference.rows_at(&all).values.iter().map(|&y| y as f32).collect();
        Self { problem, inputs, budget, output }
    }

    fn expected(&self) -> Expected<'_> {
        Expected::compute(&self.problem, &self.inputs, self.budget)
    }
}

#[test]
fn the_rounded_reference_is_right_and_every_flaw_is_seen() {
    let case = Case::new("linear_bias_relu/f32/m7.k33.n5", u64::MAX);
    let (expected, output) = (case.expected(), &case.output);
    assert_eq!(expected.rows(), 7);
    assert!(expected.error(output) < 1e-7);
    assert_eq!(expected.errors([output, output]).between, 0.0);
    for (index, flaw) in [(0, f32::NAN), (34, f32::INFINITY), (17, output[17] + 1e-3)] {
        let mut wrong = output.clone();
        wrong[index] = flaw;
        assert!(expected.error(&wrong) > expected.tolerance(), "{index} {flaw}");
        assert!(expected.errors([output, &wrong]).between > expected.tolerance());
    }
    assert_eq!(expected.error(&output[1..]), f64::INFINITY);
}

#[test]
fn what_both_leave_unwritten_between_the_rows_of_the_reference_is_seen() {
    let case = Case::new("linear_bias/f32/m1000.k10.n10", 2_000);
    let expected = case.expected();
    let between = (1..999).find(|row| !expected.rows.contains(row)).unwrap();
    for flaw in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut wrong = case.output.clone();
        wrong[between * 10..][..10].fill(flaw);
        assert_eq!(expected.error(&wrong), f64::INFINITY, "{flaw}");
        assert_eq!(expected.errors([&wrong, &wrong]).each, [f64::INFINITY; 2], "{flaw}");
    }
}

/// What a kernel may do to rows that no reference was computed of, with the first of them and
/// the columns of the output.
type Flaw = fn(&mut [f32], usize, usize);

const FLAWS: [(&str, Flaw); 5] = [
    ("two rows are exchanged", |output, row, cols| {
        let (one, next) = output[row * cols..].split_at_mut(cols);
        one.swap_with_slice(&mut next[..cols]);
    }),
    ("a row repeats the one before it", |output, row, cols| {
        output.copy_within((row - 1) * cols..row * cols, row * cols);
    }),
    ("one thread's part is shifted by a row", |output, row, cols| {
        output[row * cols..].rotate_left(cols);
    }),
    ("one thread's part is shifted by a column", |output, row, cols| {
        output[row * cols..][..2 * cols].rotate_left(1);
    }),
    ("a row keeps zeros", |output, row, cols| output[row * cols..][..cols].fill(0.0)),
];

#[test]
fn flaws_that_both_variants_share_are_seen_in_rows_without_a_reference() {
    for text in [
        "linear_bias/f32/m999.k10.n10",
        "mlp/f32/m999.k9.n8.o7",
        "linear+bias+add+layer_norm/f32/m999.k9.n13",
        "linear+softmax/f32/m999.k9.n13",
        "add_layernorm/f32/m999.n33",
        "conv_bn_relu/f32/n5.c3.h14.w15.k7.r3.s3.pad1",
        "attention_head/f32/b2.h3.q150.kv20.d9",
        "linear_bias_gelu/bf16/m999.k10.n10",
    ] {
        let case = Case::new(text, 1);
        let (expected, output) = (case.expected(), &case.output);
        assert_eq!(expected.rows(), 8);
        let error = expected.error(output);
        assert!(error < expected.tolerance(), "{text}: {error:e}");
        let row = expected.total_rows() / 2;
        let computed = row - 1..=row + 1;
        assert!(!expected.rows.iter().any(|row| computed.contains(row)), "{text}");
        for (name, flaw) in FLAWS {
            let mut wrong = output.clone();
            flaw(&mut wrong, row, output.len() / expected.total_rows());
            let errors = expected.errors([&wrong, &wrong]);
            assert!(errors.each.iter().all(|it| *it > expected.tolerance()), "{text}: {name}");
        }
    }
}

/// One query in place of its neighbour sees a key more or less than it should.
#[test]
fn a_causal_mask_that_is_shifted_by_one_is_seen() {
    for text in [
        "attention_head/f32/b1.h1.q65.kv65.d16.causal1",
        "attention_head/f32/b1.h1.q3.kv2000.d16.causal1",
        "attention_head/f16/b1.h1.q64.kv200.d64.causal1",
        "attention_head/bf16/b1.h1.q64.kv200.d64.causal1",
        "attention_head/bf16/b1.h1.q70.kv70.d16.causal1",
        "attention_scores/f32/b1.h1.q9.kv20.d8.causal1",
        "attention_output/f32/b1.h1.q33.kv40.d5.causal1",
    ] {
        let case = Case::new(text, u64::MAX);
        let expected = case.expected();
        assert!(expected.error(&case.output) < expected.tolerance(), "{text}");
        let rows = expected.total_rows();
        let (of_query, cols) = (case.inputs.tensors[0].len() / rows, case.output.len() / rows);
        for sees_more in [true, false] {
            let mut inputs = case.inputs.clone();
            let kept = if sees_more {
                inputs.tensors[0].rotate_right(of_query);
                rows - 1
            } else {
                inputs.tensors[0].rotate_left(of_query);
                0
            };
            let all: Vec<usize> = (0..rows).collect();
            let neighbours = Reference::new(&case.problem, &inputs).rows_at(&all).values;
            let mut wrong: Vec<f32> = neighbours.iter().map(|&y| y as f32).collect();
            if sees_more {
                wrong.rotate_left(cols);
            } else {
                wrong.rotate_right(cols);
            }
            // It has no such neighbour.
            wrong[kept * cols..][..cols].copy_from_slice(&case.output[kept * cols..][..cols]);
            let error = expected.error(&wrong);
            assert!(error > expected.tolerance(), "{text}, more: {sees_more}: {error:e}");
        }
    }
}

#[test]
fn what_the_reference_has_may_be_in_outputs() {
    let mut case = Case::new("add_relu/f32/m3.n4", u64::MAX);
    case.output[5] = f32::NAN;
    let mut expected = case.expected();
    expected.values.values[5] = f64::NAN;
    assert!(expected.error(&case.output) < 1e-7);
    assert_eq!(expected.errors([&case.output, &case.output]).between, 0.0);
    // Nor is anything right where the error of a right kernel has no bound.
    let (mut wrong, written) = (case.output.clone(), case.output[6]);
    expected.values.rounding.fill(f64::INFINITY);
    for flaw in [f32::NAN, f32::INFINITY, written + 1.0] {
        wrong[6] = flaw;
        assert!(expected.error(&wrong) > expected.tolerance(), "{flaw}");
    }
}

/// Rounding to a short format takes much from the scores of a saturated softmax, and norms behind it
/// magnify that: zeros, and the result for other rows, are wrong all the same.
#[test]
fn nothing_passes_for_a_result_of_which_rounding_takes_much() {
    let deep = "linear+softmax+hardsigmoid+add+layer_norm+linear+rms_norm";
    for text in [
        "linear+softmax/f32/m4.k12288.n512",
        "linear+softmax/bf16/m4.k1024.n512",
        "linear+softmax/f16/m4.k12288.n512",
        "linear+softmax/bf16/m4.k12288.n512",
        "linear+softmax+linear/bf16/m4.k12288.n512.o7",
        "linear+softmax+layer_norm/bf16/m4.k12288.n64",
        "linear+gelu+linear+softmax+rms_norm/bf16/m4.k1024.n1024.o64",
        &format!("{deep}/f16/m3.k1031.n13.o7"),
        &format!("{deep}/bf16/m3.k1031.n13.o7"),
    ] {
        let case = Case::new(text, u64::MAX);
        let expected = case.expected();
        assert!(expected.tolerance() <= Verification::MOST_TOLERANCE, "{text}");
        assert!(expected.can_prove(), "{text}");
        let zeros = vec![0.0; case.output.len()];
        let mut of_other_rows = case.output.clone();
        of_other_rows.rotate_left(case.output.len() / expected.total_rows());
        for wrong in [zeros, of_other_rows] {
            let error = expected.error(&wrong);
            assert!(error > expected.tolerance(), "{text}: {error:e}");
        }
    }
}

/// Most of a result, and not most of its numbers: those of a softmax are zeros.
#[test]
fn where_rounding_may_take_most_of_a_result_nothing_is_proved() {
    let case = Case::new("add_relu/f32/m3.n4", u64::MAX);
    let mut expected = case.expected();
    assert!(expected.can_prove());
    let values = expected.values.values.clone();
    let largest = values.iter().copied().fold(0.0, f64::max);
    let as_large = |value: f64| if value == largest { value } else { 0.0 };
    expected.values.values = values.iter().copied().map(as_large).collect();
    expected.values.rounding = expected.values.values.iter().map(|value| value / 4.0).collect();
    assert!(!expected.can_prove());
    expected.values.rounding = expected.values.values.iter().map(|value| value / 80.0).collect();
    assert!(expected.can_prove());
    expected.values.values[1] = f64::NAN;
    expected.values.values[2] = f64::INFINITY;
    assert!(expected.can_prove());
    expected.values.values.fill(0.0);
    assert!(expected.can_prove(), "zeros are right where only zeros are expected");
}

#[test]
fn a_small_budget_takes_some_rows_with_the_first_and_the_last() {
    let case = Case::new("linear_bias/f32/m1000.k10.n10", 2_000);
    let expected = case.expected();
    assert_eq!(expected.rows(), 19); // 2,000 over 10 * 10 products and 5 halves of additions
    assert_eq!((expected.rows[0], expected.rows[18]), (0, 999));
    assert!(expected.error(&case.output) < 1e-7);
}
