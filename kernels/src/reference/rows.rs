//! Rows of the reference, and what rounding makes of them.
//!
//! With each number comes how far a right kernel in f32 is likely to be off there, by a running
//! error analysis to first order: every op passes on the errors of what it reads as its derivative
//! magnifies them, and adds its own. Errors are taken as independent of each other and of random
//! weights, so that those of a sum add up by their squares; these are standard deviations and no
//! bounds. Where a step is ill-conditioned for the row at hand (two numbers that are close to each
//! other are normalised, or a softmax decides between two large scores), they are large.

use fusion_cost_model::kernel::{NORM_EPSILON, RMS_EPSILON};

use super::product::{Arithmetic, Right};
use crate::inputs::{INPUT_RMS, SIGNED_RMS};

/// The largest relative error of rounding to f32.
const UNIT: f64 = f32::EPSILON as f64 / 2.0;

/// What one rounding takes from a number, of the largest error that it can have: it may lie anywhere
/// between two numbers of a format, and a number anywhere between two powers of two.
const OF_LARGEST: f64 = 0.25;

/// How many of its likely errors a right kernel may be off: five are rare among millions of numbers,
/// and kernels add up in orders that the analysis does not know.
pub(crate) const LIKELY_ERRORS: f64 = 8.0;

/// Some rows of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rows {
    pub(crate) cols: usize,
    /// The rows one after the other.
    pub(crate) values: Vec<f64>,
    /// The error of each number that is likely in a kernel.
    pub(crate) rounding: Vec<f64>,
}

impl Rows {
    /// Numbers of an input, which are exact.
    pub(super) fn exact(values: Vec<f64>, cols: usize) -> Self {
        Self { cols, rounding: vec![0.0; values.len()], values }
    }

    /// Each row with its rounding.
    pub(super) fn each(&self) -> impl Iterator<Item = (&[f64], &[f64])> {
        let cols = self.cols.max(1);
        self.values.chunks_exact(cols).zip(self.rounding.chunks_exact(cols))
    }

    /// Replaces each row and its rounding.
    pub(super) fn map(mut self, op: impl Fn(&mut [f64], &mut [f64])) -> Self {
        let cols = self.cols.max(1);
        let rows = self.values.chunks_exact_mut(cols).zip(self.rounding.chunks_exact_mut(cols));
        rows.for_each(|(values, rounding)| op(values, rounding));
        self
    }

    /// More rows after these.
    pub(super) fn append(&mut self, more: Self) {
        self.values.extend(more.values);
        self.rounding.extend(more.rounding);
    }

    /// Replaces some columns, from `first` on, by those of as many rows of another tensor.
    pub(super) fn put_columns(&mut self, first: usize, part: &Self) {
        let (cols, part_cols) = (self.cols.max(1), part.cols.max(1));
        for (all, part) in [(&mut self.values, &part.values), (&mut self.rounding, &part.rounding)]
        {
            for (row, part) in all.chunks_exact_mut(cols).zip(part.chunks_exact(part_cols)) {
                row[first..][..part_cols].copy_from_slice(part);
            }
        }
    }

    /// What is left of the numbers when a kernel writes them in a format with this unit roundoff.
    pub(super) fn written_with(mut self, unit_roundoff: f64) -> Self {
        for (value, error) in self.values.iter().zip(&mut self.rounding) {
            *error += OF_LARGEST * unit_roundoff * value.abs();
        }
        self
    }

    /// What is left of the numbers when a kernel rounds them to integers: it is off by a half at most.
    pub(super) fn written_as_integers(mut self) -> Self {
        self.rounding.iter_mut().for_each(|error| *error += 0.5 / LIKELY_ERRORS);
        self
    }

    /// Sums of products with a matrix of signed 8-bit numbers, times a scale.
    pub(super) fn of_signed(mut self, scale: f64) -> Self {
        self.values.iter_mut().for_each(|value| *value *= scale);
        self.rounding.iter_mut().for_each(|error| *error *= scale * SIGNED_RMS / INPUT_RMS);
        self
    }

    /// The rows times a matrix of random numbers.
    pub(super) fn times(&self, arithmetic: Arithmetic, right: Right<'_>) -> Self {
        // Partial sums grow like the square root of their terms, and the errors of adding them up
        // likewise.
        let own = UNIT * (right.depth() as f64).sqrt();
        let error_of_row = |(values, rounding): (&[f64], &[f64])| {
            INPUT_RMS * (own * norm(values)).hypot(norm(rounding))
        };
        let repeated = |error| std::iter::repeat_n(error, right.cols());
        Self {
            cols: right.cols(),
            values: arithmetic.product(&self.values, right),
            rounding: self.each().map(error_of_row).flat_map(repeated).collect(),
        }
    }
}

fn square(values: &[f64]) -> f64 {
    values.iter().map(|x| x * x).sum()
}

fn norm(values: &[f64]) -> f64 {
    square(values).sqrt()
}

/// A pointwise formula of a number, and the error after it: as far as the formula moves when the
/// number is off by its error in either direction, and a few roundings.
pub(super) fn point(formula: impl Fn(f64) -> f64, value: &mut f64, error: &mut f64) {
    let x = *value;
    let y = formula(x);
    // Formulas cost more than all else here, and the numbers of inputs are exact.
    if *error > 0.0 {
        *error = (formula(x + *error) - y).abs().max((formula(x - *error) - y).abs());
    }
    *error += UNIT / 2.0 * (x.abs() + y.abs());
    *value = y;
}

pub(super) fn softmax(row: &mut [f64], rounding: &mut [f64]) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (value, error) in row.iter_mut().zip(rounding.iter_mut()) {
        let below = largest - *value;
        // The difference is rounded once, and once more when it becomes a power of two.
        *error += 2.0 * UNIT * below + UNIT;
        *value = libm::exp(-below);
    }
    let sum: f64 = row.iter().sum();
    let mut of_all = 0.0;
    for (value, error) in row.iter_mut().zip(rounding.iter()) {
        *value /= sum;
        of_all += *value * error;
    }
    let of_sum = UNIT * (row.len() as f64).sqrt();
    for (&value, error) in row.iter().zip(rounding) {
        // The derivative by its own score is p (1 - p), and by another one -p q.
        let of_others = (of_all - value * *error).max(0.0);
        let relative = (1.0 - value) * *error + of_others + of_sum;
        *error = (value * relative.exp_m1()).min(1.0);
    }
}

pub(super) fn layer_norm(row: &mut [f64], rounding: &mut [f64], weight: &[f32], shift: &[f32]) {
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let scale = 1.0 / (variance + NORM_EPSILON).sqrt();
    // The error of each number less the mean: its own, those of the others through the mean, and
    // that of the subtraction.
    let of_others = square(rounding);
    let typical = mean.hypot(variance.sqrt());
    for (value, error) in row.iter_mut().zip(rounding.iter_mut()) {
        let own = *error * (1.0 - 1.0 / count);
        let through_mean = (of_others - *error * *error).max(0.0).sqrt() / count;
        let subtracted = UNIT * (value.abs() + typical);
        *error = own.hypot(through_mean).hypot(subtracted);
        *value -= mean;
    }
    let of_scale = relative_error_of_scale(variance, NORM_EPSILON, rounding);
    let parameters = weight.iter().zip(shift);
    for ((value, error), (&weight, &shift)) in row.iter_mut().zip(rounding).zip(parameters) {
        let [weight, shift] = [weight, shift].map(f64::from);
        let scaled = *value * scale * weight;
        *error = scale * weight.abs() * (*error + value.abs() * of_scale);
        *error = error.min(largest_normalised(count, weight));
        *error += UNIT * (scaled.abs() + shift.abs());
        *value = scaled + shift;
    }
}

pub(super) fn rms_norm(row: &mut [f64], rounding: &mut [f64], weight: &[f32]) {
    let count = row.len() as f64;
    let mean_square = square(row) / count;
    let scale = 1.0 / (mean_square + RMS_EPSILON).sqrt();
    let of_scale = relative_error_of_scale(mean_square, RMS_EPSILON, rounding);
    for ((value, error), &weight) in row.iter_mut().zip(rounding).zip(weight) {
        let weight = f64::from(weight);
        let scaled = *value * scale * weight;
        *error = scale * weight.abs() * (*error + value.abs() * of_scale);
        *error = error.min(largest_normalised(count, weight)) + UNIT * scaled.abs();
        *value = scaled;
    }
}

/// The relative error of `1 / sqrt(mean_square + epsilon)`, from the errors of the numbers whose
/// mean square it is.
fn relative_error_of_scale(mean_square: f64, epsilon: f64, errors: &[f64]) -> f64 {
    let count = errors.len() as f64;
    let typical_error = (square(errors) / count).sqrt();
    let of_mean_square = mean_square.sqrt() * typical_error + typical_error * typical_error / 2.0;
    of_mean_square / (mean_square + epsilon) + UNIT * (2.0 + count.sqrt() / 2.0)
}

/// How far two normalised rows can be apart at most: a row whose mean square is 1 has no number
/// above the square root of its length.
fn largest_normalised(count: f64, weight: f64) -> f64 {
    2.0 * count.sqrt() * weight.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row op on a row with no error before it, and with one of `before` everywhere.
    fn applied(op: impl Fn(&mut [f64], &mut [f64]), row: &[f64], before: f64) -> Rows {
        let mut rows = Rows::exact(row.to_vec(), row.len());
        rows.rounding.fill(before);
        rows.map(op)
    }

    #[test]
    fn rows_of_softmax_and_norms_by_hand() {
        let row = applied(softmax, &[0.0, 3.0_f64.ln()], 0.0).values;
        assert!((row[0] - 0.25).abs() < 1e-15 && (row[1] - 0.75).abs() < 1e-15);
        let norm = |row: &mut [f64], rounding: &mut [f64]| {
            layer_norm(row, rounding, &[2.0, 2.0], &[0.5, 0.5]);
        };
        let row = applied(norm, &[1.0, 3.0], 0.0).values;
        // mean 2, variance 1: -2 / sqrt(1.00001) + 0.5
        assert!((row[0] + 1.499_990_000_075).abs() < 1e-11, "{row:?}");
        let norm = |row: &mut [f64], rounding: &mut [f64]| rms_norm(row, rounding, &[1.0, 2.0]);
        let row = applied(norm, &[3.0, 4.0], 0.0).values;
        assert!((row[1] - 8.0 / (12.5 + 2.0_f64.powi(-23)).sqrt()).abs() < 1e-12, "{row:?}");
    }

    #[test]
    fn a_softmax_is_sure_of_what_it_is_sure_of() {
        // Scores near 100 that are off by 1e-4, as after a deep GEMM.
        let decided = applied(softmax, &[100.0, 50.0, 10.0], 1e-4);
        assert!(decided.rounding.iter().all(|error| *error < 1e-6), "{decided:?}");
        let undecided = applied(softmax, &[100.0, 100.0, 10.0], 1e-4);
        // p q (e + e) with p = q = 1/2.
        assert!((undecided.rounding[0] / 5e-5 - 1.0).abs() < 0.1, "{undecided:?}");
        let lost = applied(softmax, &[100.0, 100.0], 1e4);
        assert_eq!(lost.rounding, [1.0, 1.0]);
    }

    #[test]
    fn a_norm_of_numbers_that_are_close_magnifies_their_errors() {
        let weights = [1.0; 3];
        let norm = |row: &mut [f64], rounding: &mut [f64]| {
            layer_norm(row, rounding, &weights, &weights);
        };
        let apart = applied(norm, &[1.0, 2.0, 3.0], 1e-6);
        assert!(apart.rounding.iter().all(|error| (5e-7..5e-6).contains(error)), "{apart:?}");
        let close = applied(norm, &[1.0, 1.01, 1.02], 1e-6);
        assert!(close.rounding.iter().all(|error| (5e-5..5e-4).contains(error)), "{close:?}");
        let lost = applied(norm, &[1.0, 1.0, 1.0], 1.0);
        assert!(lost.rounding.iter().all(|error| *error < 4.0), "{lost:?}");
    }

    #[test]
    fn the_error_of_a_formula_is_seen_on_both_sides_of_a_kink() {
        for x in [-1e-7, 1e-7] {
            let (mut value, mut error) = (x, 1e-3);
            point(|x| x.max(0.0), &mut value, &mut error);
            assert!((error / 1e-3 - 1.0).abs() < 0.01, "{x}: {error}");
        }
    }
}
