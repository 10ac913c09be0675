//! The proof that a kernel computes what its chain says.

use fusion_cost_model::kernel::Step;
use fusion_cost_model::{DType, Op, Pointwise, Problem};

use crate::inputs::Inputs;
use crate::parallel::on_all_processors;
use crate::reference::Reference;

/// Output rows of a problem in f64, to hold outputs of kernels against.
#[derive(Debug)]
pub struct Expected {
    /// Which rows, ascending.
    rows: Vec<usize>,
    /// How many rows the output has.
    total_rows: usize,
    cols: usize,
    values: Vec<f64>,
    /// What an error is measured against where the expected value is small.
    scale: f64,
    tolerance: f64,
}

/// The standard deviation of the inputs: uniform between -1 and 1.
const INPUT_RMS: f64 = 0.577;

impl Expected {
    /// Computes the reference of a problem on its inputs.
    ///
    /// All rows where that takes at most `budget` multiply-adds, else as many as the budget
    /// allows, evenly spread with the first and the last among them; at least eight.
    #[must_use]
    pub fn compute(problem: &Problem, inputs: &Inputs, budget: u64) -> Self {
        let reference = Reference::new(problem, inputs);
        let total_rows = reference.rows();
        let work: u64 = problem.steps().map(|step| step.flops() / 2).sum();
        let per_row = (work / total_rows.max(1) as u64).max(1);
        let count = ((budget / per_row) as usize).clamp(8, total_rows.max(8)).min(total_rows);
        let rows: Vec<usize> = (0..count)
            .map(|index| if count < 2 { 0 } else { index * (total_rows - 1) / (count - 1) })
            .collect();
        let cols = problem.steps().last().map_or(0, |step| step.output.cols as usize);
        let values = compute_rows(&reference, &rows, cols);
        let square = values.iter().map(|y| y * y).sum::<f64>() / values.len().max(1) as f64;
        Self {
            rows,
            total_rows,
            cols,
            values,
            scale: square.sqrt().max(typical_scale(problem)),
            tolerance: tolerance(problem),
        }
    }

    /// Rows that were computed.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Rows of the output.
    #[must_use]
    pub fn total_rows(&self) -> usize {
        self.total_rows
    }

    /// The error up to which a kernel counts as right.
    #[must_use]
    pub fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// The largest error of an output in the rows of the reference: `|y - expected|` over the
    /// output's root mean square plus `|expected|`. Infinite for an element that is NaN where
    /// none is expected, and for an output of another size.
    #[must_use]
    pub fn error(&self, output: &[f32]) -> f64 {
        if output.len() != self.total_rows * self.cols {
            return f64::INFINITY;
        }
        let outputs = self.rows.iter().flat_map(|&row| &output[row * self.cols..][..self.cols]);
        let pairs = outputs.zip(&self.values).map(|(&y, &expected)| (f64::from(y), expected));
        largest_error(pairs, self.scale)
    }

    /// The largest difference between two outputs, everywhere, on the same scale as
    /// [`Self::error`].
    ///
    /// Infinite as well where both are NaN or both are infinite and no row of the reference is: two
    /// kernels that leave the same rows unwritten agree in nothing.
    #[must_use]
    pub fn difference(&self, left: &[f32], right: &[f32]) -> f64 {
        let is_finite = self.values.iter().all(|y| y.is_finite());
        let odd = |output: &[f32]| is_finite && !output.iter().all(|y| y.is_finite());
        if left.len() != right.len() || odd(left) || odd(right) {
            return f64::INFINITY;
        }
        let pairs = left.iter().zip(right).map(|(&y, &other)| (f64::from(y), f64::from(other)));
        largest_error(pairs, self.scale)
    }
}

fn largest_error(pairs: impl Iterator<Item = (f64, f64)>, scale: f64) -> f64 {
    let mut largest = 0.0_f64;
    for (y, expected) in pairs {
        let same = y == expected || (y.is_nan() && expected.is_nan());
        let error = if same {
            0.0
        } else if y.is_nan() || expected.is_nan() || y.is_infinite() || expected.is_infinite() {
            f64::INFINITY
        } else {
            (y - expected).abs() / (scale + expected.abs())
        };
        largest = largest.max(error);
    }
    largest
}

/// The rows one after the other.
fn compute_rows(reference: &Reference<'_>, rows: &[usize], cols: usize) -> Vec<f64> {
    let mut values = vec![0.0; rows.len() * cols];
    on_all_processors(&mut values, cols, |first, values| {
        let rows = &rows[first / cols.max(1)..];
        for (&row, target) in rows.iter().zip(values.chunks_exact_mut(cols.max(1))) {
            target.copy_from_slice(&reference.row(row));
        }
    });
    values
}

/// The error up to which a kernel counts as right.
///
/// Kernels compute in f32, where rounding grows with the square root of the number of terms that
/// are summed. A kernel that forgets, repeats or reorders an op is wrong by thousands of times
/// more. To that comes the rounding of results to a shorter format.
fn tolerance(problem: &Problem) -> f64 {
    let terms: u64 = problem
        .steps()
        .map(|step| if step.op.is_row() { step.output.cols } else { step.depth })
        .sum();
    let single = f64::from(f32::EPSILON) * (16.0 + 4.0 * (terms as f64).sqrt());
    single + unit_roundoff(problem.dtype()) * roundings(problem)
}

/// The largest relative error of rounding to a format that is shorter than f32.
fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        // 11 and 8 significant bits.
        DType::F16 => 1.0 / 2048.0,
        DType::Bf16 => 1.0 / 256.0,
        _ => 0.0,
    }
}

/// How many times the unit roundoff the unfused variant may be off, which rounds the result of
/// every op: the roundings before an op as the op magnifies them, and its own.
fn roundings(problem: &Problem) -> f64 {
    let mut roundings = 0.0;
    let mut scale = INPUT_RMS;
    for step in problem.steps() {
        let magnified = match step.op {
            // The relative error of a probability is the absolute one of its score, and the
            // largest scores are about four times the typical one.
            Op::Softmax => 2.0 * (4.0 * scale).max(1.0),
            // A row of few numbers can be close to constant by chance, which makes its deviation
            // small against the numbers.
            Op::LayerNorm | Op::RmsNorm if step.output.cols < 16 => 8.0,
            Op::LayerNorm | Op::RmsNorm => 2.0,
            // The largest gain is 1.5 / sqrt(0.5).
            Op::Pointwise(Pointwise::BatchNorm) => 2.2,
            Op::Pointwise(Pointwise::HardSwish) => 1.5,
            _ => 1.0,
        };
        roundings = magnified * roundings + 1.0;
        scale = scale_after(&step, scale);
    }
    roundings + 1.0
}

/// The root mean square that the output has on random inputs, roughly. It stands in for the
/// measured one where the output is too small for that to mean anything: the one element of a
/// 1x1 output may be close to zero by chance, and its rounding error is not.
fn typical_scale(problem: &Problem) -> f64 {
    let mut scale = INPUT_RMS;
    for step in problem.steps() {
        scale = scale_after(&step, scale);
    }
    scale
}

/// The root mean square after a step on numbers with that of `scale`, roughly.
fn scale_after(step: &Step, scale: f64) -> f64 {
    match step.op {
        Op::Linear | Op::Conv2d => scale * INPUT_RMS * (step.depth as f64).sqrt(),
        Op::Qk => INPUT_RMS * INPUT_RMS,
        Op::Softmax => 1.0 / step.output.cols as f64,
        Op::Pv => INPUT_RMS / (step.depth as f64).sqrt(),
        Op::LayerNorm | Op::RmsNorm => 1.0,
        Op::Pointwise(Pointwise::Mul) => scale * INPUT_RMS,
        Op::Pointwise(Pointwise::Add | Pointwise::Bias) => scale.hypot(INPUT_RMS),
        Op::Pointwise(Pointwise::Sigmoid | Pointwise::Tanh | Pointwise::HardSigmoid) => {
            scale.min(1.0)
        }
        Op::MaxPool | Op::Pointwise(_) => scale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str, budget: u64) -> (Expected, Vec<f32>) {
        let problem: Problem = text.parse().unwrap();
        let inputs = Inputs::random(&problem, 3);
        let expected = Expected::compute(&problem, &inputs, budget);
        let reference = Reference::new(&problem, &inputs);
        let output = (0..reference.rows()).flat_map(|row| reference.row(row)).map(|y| y as f32);
        (expected, output.collect())
    }

    #[test]
    fn the_rounded_reference_is_right_and_every_flaw_is_seen() {
        let (expected, output) = expected("linear_bias_relu/f32/m7.k33.n5", u64::MAX);
        assert_eq!(expected.rows(), 7);
        assert!(expected.error(&output) < 1e-7);
        assert_eq!(expected.difference(&output, &output), 0.0);
        for (index, flaw) in [(0, f32::NAN), (34, f32::INFINITY), (17, output[17] + 1e-3)] {
            let mut wrong = output.clone();
            wrong[index] = flaw;
            assert!(expected.error(&wrong) > expected.tolerance(), "{index} {flaw}");
            assert!(expected.difference(&output, &wrong) > expected.tolerance());
        }
        assert_eq!(expected.error(&output[1..]), f64::INFINITY);
    }

    #[test]
    fn what_both_leave_unwritten_between_the_rows_of_the_reference_is_seen() {
        let (expected, output) = expected("linear_bias/f32/m1000.k10.n10", 2_000);
        let between = (1..999).find(|row| !expected.rows.contains(row)).unwrap();
        for flaw in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut wrong = output.clone();
            wrong[between * 10..][..10].fill(flaw);
            // The reference has no such row, and the two agree.
            assert!(expected.error(&wrong) < 1e-7);
            assert_eq!(expected.difference(&wrong, &wrong), f64::INFINITY, "{flaw}");
        }
        assert_eq!(expected.difference(&output, &output), 0.0);
    }

    #[test]
    fn what_the_reference_has_may_be_in_outputs() {
        let (mut expected, mut output) = expected("add_relu/f32/m3.n4", u64::MAX);
        expected.values[5] = f64::NAN;
        output[5] = f32::NAN;
        assert_eq!(expected.difference(&output, &output), 0.0);
        assert!(expected.error(&output) < 1e-7);
    }

    #[test]
    fn a_small_budget_takes_some_rows_with_the_first_and_the_last() {
        let (expected, output) = expected("linear_bias/f32/m1000.k10.n10", 2_000);
        assert_eq!(expected.rows(), 19); // 2,000 over 10 * 10 products and 5 halves of additions
        assert_eq!((expected.rows[0], expected.rows[18]), (0, 999));
        assert!(expected.error(&output) < 1e-7);
    }
}
