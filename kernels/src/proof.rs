//! The proof that a kernel computes what its chain says.

use fusion_cost_model::calibration::Verification;
use fusion_cost_model::kernel::Step;
use fusion_cost_model::{DType, Op, Pointwise, Problem};

use crate::inputs::{INPUT_RMS, Inputs, unit_roundoff};
use crate::parallel::{map_on_all_processors, on_all_processors};
use crate::reference::{LIKELY_ERRORS, Reference, Rows};

/// What a problem's output is, to hold outputs of kernels against: some rows in f64, and all rows by
/// a witness that computes in f32.
#[derive(Debug)]
pub struct Expected<'a> {
    reference: Reference<'a>,
    /// Which rows were computed in f64, ascending.
    rows: Vec<usize>,
    /// How many rows the output has.
    total_rows: usize,
    values: Rows,
    /// What an error is measured against where the expected value is small.
    scale: f64,
    tolerance: f64,
}

/// How far two outputs are off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutputErrors {
    /// The largest error of each; see [`Expected::error`].
    pub each: [f64; 2],
    /// The largest difference between them, on the same scale.
    pub between: f64,
}

/// A number that a right kernel may miss by more than this proves nothing: in the same measure, a wrong
/// kernel misses it by about one, and one that writes zeros by a half and more.
const VAGUE: f64 = 0.5;

/// The witness and a right kernel may be off in opposite directions, by as much each.
const OFF_FROM_WITNESS: f64 = 2.0;

/// Rows that the witness computes at a time, where they are short: packing its weights then takes a
/// tenth of the time.
const WITNESS_ROWS: usize = 256;

/// Numbers of a tensor that it keeps at a time, else.
const WITNESS_NUMBERS: usize = 1 << 21;

impl<'a> Expected<'a> {
    /// Computes the reference of a problem on its inputs.
    ///
    /// All rows where that takes at most `budget` multiply-adds, else as many as the budget
    /// allows, evenly spread with the first and the last among them; at least eight.
    #[must_use]
    pub fn compute(problem: &'a Problem, inputs: &'a Inputs, budget: u64) -> Self {
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
        let square = values.values.iter().map(|y| y * y).sum::<f64>();
        let mean_square = square / values.values.len().max(1) as f64;
        Self {
            reference,
            rows,
            total_rows,
            values,
            scale: mean_square.sqrt().max(typical_scale(problem)),
            tolerance: tolerance(problem),
        }
    }

    /// Whether a comparison with the reference proves something. It does not where rounding may change
    /// the numbers of a right kernel as much as a wrong kernel does: those that make up most of the
    /// result, in the mean square, since most probabilities of a softmax are zeros in any case.
    #[must_use]
    pub fn can_prove(&self) -> bool {
        let mut vague = 0.0;
        let mut all = 0.0;
        let numbers = self.values.values.iter().zip(&self.values.rounding);
        // What is no number must be none exactly, which proves enough.
        for (value, rounding) in numbers.filter(|(value, _)| value.is_finite()) {
            let square = value * value;
            all += square;
            if self.unit(*value, *rounding) * self.tolerance > VAGUE * (self.scale + value.abs()) {
                vague += square;
            }
        }
        2.0 * vague <= all
    }

    /// Rows that were computed in f64.
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

    /// The largest error of an output, in any row.
    ///
    /// That of an element is `|y - expected|` over the output's root mean square plus `|expected|`;
    /// or over more than that where a step is so ill-conditioned for the row that a right kernel can
    /// be off by more than the tolerance, so that the tolerance is one number for all elements. Rows
    /// that were not computed in f64 are held against the witness, and half of their distance
    /// counts.
    ///
    /// Infinite where the output has another size, and for an element of any row that is NaN or
    /// infinite and should not be.
    #[must_use]
    pub fn error(&self, output: &[f32]) -> f64 {
        self.largest([output]).each[0]
    }

    /// The largest errors of two outputs and their largest difference, in all rows.
    ///
    /// Two outputs that leave the same rows unwritten do not differ, but are infinitely wrong.
    #[must_use]
    pub fn errors(&self, outputs: [&[f32]; 2]) -> OutputErrors {
        let Largest { each, between } = self.largest(outputs);
        OutputErrors { each, between }
    }

    fn largest<const N: usize>(&self, outputs: [&[f32]; N]) -> Largest<N> {
        let cols = self.values.cols;
        if outputs.iter().any(|output| output.len() != self.total_rows * cols) {
            return Largest::INFINITE;
        }
        let mut largest = self.compare(&self.values, &self.rows, outputs, 1.0);
        // A scan that is cheap, so that nothing more is computed for memory that nobody wrote.
        if self.values.values.iter().all(|y| y.is_finite()) {
            for (error, output) in largest.each.iter_mut().zip(outputs) {
                if !output.iter().all(|y| y.is_finite()) {
                    *error = f64::INFINITY;
                }
            }
        }
        let is_wrong = largest.each.iter().any(|error| *error > self.tolerance);
        if self.rows.len() == self.total_rows || is_wrong {
            return largest;
        }
        let witness = self.reference.witness();
        let block = (WITNESS_NUMBERS / witness.widest().max(1)).clamp(1, WITNESS_ROWS);
        let of_blocks = map_on_all_processors(self.total_rows.div_ceil(block), |index| {
            let last = ((index + 1) * block).min(self.total_rows);
            let rows: Vec<usize> = (index * block..last).collect();
            self.compare(&witness.rows_at(&rows), &rows, outputs, OFF_FROM_WITNESS)
        });
        of_blocks.into_iter().fold(largest, Largest::max)
    }

    /// Compares some rows of outputs with what is expected there. Distances count as a part of
    /// what they are where the expected values may be off themselves.
    fn compare<const N: usize>(
        &self,
        expected: &Rows,
        rows: &[usize],
        outputs: [&[f32]; N],
        parts: f64,
    ) -> Largest<N> {
        let mut largest = Largest::NONE;
        let cols = expected.cols;
        let elements = rows.iter().flat_map(|row| row * cols..(row + 1) * cols);
        let numbers = expected.values.iter().zip(&expected.rounding);
        for (element, (&value, &rounding)) in elements.zip(numbers) {
            let ys = outputs.map(|output| f64::from(output[element]));
            let unit = self.unit(value, rounding);
            for (error, y) in largest.each.iter_mut().zip(ys) {
                *error = error.max(distance(y, value) / (unit * parts));
            }
            if let [first, .., last] = ys[..] {
                largest.between = largest.between.max(distance(first, last) / unit);
            }
        }
        largest
    }

    /// What a distance from an expected value is measured by.
    fn unit(&self, expected: f64, rounding: f64) -> f64 {
        let usual = self.scale + expected.abs();
        let ill_conditioned = LIKELY_ERRORS * rounding / self.tolerance;
        // The distance from a NaN or an infinity must stay one.
        if usual.is_finite() && ill_conditioned.is_finite() {
            usual.max(ill_conditioned)
        } else {
            1.0
        }
    }
}

/// The largest errors so far of some outputs.
#[derive(Debug, Clone, Copy)]
struct Largest<const N: usize> {
    each: [f64; N],
    /// Between the first and the last.
    between: f64,
}

impl<const N: usize> Largest<N> {
    const NONE: Self = Self { each: [0.0; N], between: 0.0 };
    const INFINITE: Self = Self { each: [f64::INFINITY; N], between: f64::INFINITY };

    fn max(mut self, other: Self) -> Self {
        for (error, other) in self.each.iter_mut().zip(other.each) {
            *error = error.max(other);
        }
        self.between = self.between.max(other.between);
        self
    }
}

fn distance(y: f64, expected: f64) -> f64 {
    if y == expected || (y.is_nan() && expected.is_nan()) {
        0.0
    } else if y.is_finite() && expected.is_finite() {
        (y - expected).abs()
    } else {
        f64::INFINITY
    }
}

/// The rows one after the other.
fn compute_rows(reference: &Reference<'_>, rows: &[usize], cols: usize) -> Rows {
    // Each number with its rounding, since both are computed at once.
    let mut numbers = vec![(0.0, 0.0); rows.len() * cols];
    on_all_processors(&mut numbers, cols, |first, numbers| {
        let rows = &rows[first / cols.max(1)..];
        for (&row, target) in rows.iter().zip(numbers.chunks_exact_mut(cols.max(1))) {
            let computed = reference.rows_at(&[row]);
            let pairs = computed.values.into_iter().zip(computed.rounding);
            target.iter_mut().zip(pairs).for_each(|(number, pair)| *number = pair);
        }
    });
    let (values, rounding) = numbers.into_iter().unzip();
    Rows { cols, values, rounding }
}

/// The error up to which a kernel counts as right.
///
/// Kernels compute in f32. To its rounding comes that of results to a shorter format. Where that could be
/// more than an eighth, each number has the bound of its own error, as in ill-conditioned rows.
fn tolerance(problem: &Problem) -> f64 {
    let all = Verification::single_precision(problem)
        + unit_roundoff(problem.dtype()) * roundings(problem);
    all.min(Verification::MOST_TOLERANCE)
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
        // The scale of the sums sees to that.
        Op::Linear | Op::Conv2d if step.dtype == DType::I8 => 1.0,
        Op::Linear | Op::Conv2d => scale * INPUT_RMS * (step.depth as f64).sqrt(),
        Op::Qk => INPUT_RMS * INPUT_RMS,
        Op::Softmax => 1.0 / step.output.cols as f64,
        Op::Pv => INPUT_RMS / (step.depth as f64).sqrt(),
        Op::LayerNorm | Op::RmsNorm => 1.0,
        Op::Pointwise(Pointwise::Mul) => scale * INPUT_RMS,
        Op::Pointwise(Pointwise::Add | Pointwise::Bias) => scale.hypot(INPUT_RMS),
        Op::Pointwise(
            Pointwise::Sigmoid
            | Pointwise::Tanh
            | Pointwise::HardSigmoid
            | Pointwise::OnnxHardSigmoid,
        ) => scale.min(1.0),
        Op::Pointwise(Pointwise::Requantize) => 64.0 * scale,
        Op::MaxPool | Op::Pointwise(_) => scale,
    }
}

#[cfg(test)]
mod tests;
