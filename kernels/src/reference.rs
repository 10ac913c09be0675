//! The reference: every op in f64, written for clarity, one output row at a time.
//!
//! It shares the formulas of the pointwise ops with the kernels (they are tested by hand-computed
//! values) and nothing else: no blocking, no vectorisation, no fused code.

use std::ops::{Add, Div, Mul, Neg, Sub};

use fusion_cost_model::kernel::Step;
use fusion_cost_model::kernel::{NORM_EPSILON, OperandKind, Value};
use fusion_cost_model::{Op, Pointwise, Problem};

use crate::inputs::{Inputs, attention_scale};
use crate::random;

/// An f64 that formulas can be evaluated on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Real(pub(crate) f64);

macro_rules! real_operators {
    ($($operator:ident, $method:ident);*) => {$(
        impl $operator for Real {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self(self.0.$method(other.0))
            }
        }
    )*};
}
real_operators!(Add, add; Sub, sub; Mul, mul; Div, div);

impl Add<f64> for Real {
    type Output = Self;
    fn add(self, constant: f64) -> Self {
        Self(self.0 + constant)
    }
}

impl Mul<f64> for Real {
    type Output = Self;
    fn mul(self, constant: f64) -> Self {
        Self(self.0 * constant)
    }
}

impl Neg for Real {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl Value for Real {
    fn clamp_min(self, limit: f64) -> Self {
        if self.0 < limit { Self(limit) } else { self }
    }
    fn clamp_max(self, limit: f64) -> Self {
        if self.0 > limit { Self(limit) } else { self }
    }
    fn exp(self) -> Self {
        Self(libm::exp(self.0))
    }
    fn tanh(self) -> Self {
        Self(libm::tanh(self.0))
    }
    fn erf(self) -> Self {
        Self(libm::erf(self.0))
    }
    fn recip(self) -> Self {
        Self(self.0.recip())
    }
    fn rsqrt(self) -> Self {
        Self(self.0.sqrt().recip())
    }
    fn zero_where_less(self, chance: Self, limit: f64) -> Self {
        if chance.0 < limit { Self(0.0) } else { self }
    }
}

/// Computes output rows of a problem in f64.
#[derive(Debug)]
pub struct Reference<'a> {
    problem: &'a Problem,
    steps: Vec<Step>,
    input: &'a [f32],
    /// The operands of each step.
    operands: Vec<Vec<&'a [f32]>>,
}

impl<'a> Reference<'a> {
    /// The reference of a problem on its inputs.
    #[must_use]
    pub fn new(problem: &'a Problem, inputs: &'a Inputs) -> Self {
        let steps: Vec<Step> = problem.steps().collect();
        let operands = (0..steps.len()).map(|index| inputs.operands_of(index).collect()).collect();
        Self { problem, steps, input: &inputs.tensors[0], operands }
    }

    /// Output rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.steps.last().map_or(0, |step| step.output.rows as usize)
    }

    /// One output row.
    #[must_use]
    pub fn row(&self, row: usize) -> Vec<f64> {
        self.row_after(self.steps.len(), row)
    }

    /// Row `row` of the tensor after the first `count` steps.
    fn row_after(&self, count: usize, row: usize) -> Vec<f64> {
        let Some(index) = count.checked_sub(1) else {
            let cols = self.steps[0].input.cols as usize;
            return self.input[row * cols..][..cols].iter().map(|&x| f64::from(x)).collect();
        };
        let step = &self.steps[index];
        let before = |row| self.row_after(index, row);
        match step.op {
            Op::Linear => product(&before(row), self.operands[index][0], step.output.cols as usize),
            Op::Conv2d => self.convolution(row),
            Op::MaxPool => self.max_pool(row, before),
            Op::Qk => self.scores(row, &before(row)),
            Op::Pv => self.attention_output(row, before),
            Op::Softmax => softmax(before(row)),
            Op::LayerNorm => {
                layer_norm(before(row), self.operands[index][0], self.operands[index][1])
            }
            Op::RmsNorm => rms_norm(before(row), self.operands[index][0]),
            Op::Pointwise(op) => self.pointwise(op, index, row, before(row)),
        }
    }

    fn pointwise(&self, op: Pointwise, step: usize, row: usize, values: Vec<f64>) -> Vec<f64> {
        let cols = values.len();
        let operand = |position: usize, element: usize, col: usize| {
            let tensor = self.operands[step].get(position).copied().unwrap_or_default();
            Real(f64::from(match op.operands()[position].kind {
                OperandKind::PerChannel => tensor[col],
                OperandKind::PerElement => tensor[element],
                OperandKind::Scalar => tensor[0],
                #[expect(clippy::cast_possible_truncation, reason = "the low bits, as documented")]
                OperandKind::Random => random::uniform(element as u32),
                OperandKind::Matrix => f32::NAN,
            }))
        };
        let transform = |(col, value)| {
            let element = row * cols + col;
            let given = |position: usize| operand(position, element, col);
            match op.fold(given) {
                Some(folded) => op.apply(Real(value), |position: usize| folded[position]).0,
                None => op.apply(Real(value), given).0,
            }
        };
        values.into_iter().enumerate().map(transform).collect()
    }

    fn convolution(&self, row: usize) -> Vec<f64> {
        let Some(conv) = self.problem.sizes().conv() else {
            return Vec::new();
        };
        let (height, width) = (conv.h as usize, conv.w as usize);
        let (channels, filters) = (conv.c as usize, conv.k as usize);
        let (out_h, out_w) = (conv.out_h() as usize, conv.out_w() as usize);
        let group_channels = channels / conv.groups as usize;
        let group_filters = filters / conv.groups as usize;
        let (image, y, x) = (row / (out_h * out_w), row / out_w % out_h, row % out_w);
        let weights = self.operands[0][0];
        let mut output = vec![0.0; filters];
        for r in 0..conv.r as usize {
            for s in 0..conv.s as usize {
                // Coordinates in the padded image; what lies in the padding is zero.
                let in_y = (y * conv.stride as usize + r).wrapping_sub(conv.pad as usize);
                let in_x = (x * conv.stride as usize + s).wrapping_sub(conv.pad as usize);
                if in_y >= height || in_x >= width {
                    continue;
                }
                let pixel = &self.input[((image * height + in_y) * width + in_x) * channels..];
                let taps = (r * conv.s as usize + s) * group_channels;
                for (group, sums) in output.chunks_exact_mut(group_filters).enumerate() {
                    for c in 0..group_channels {
                        let x = f64::from(pixel[group * group_channels + c]);
                        let weights = &weights[(taps + c) * filters + group * group_filters..];
                        for (sum, &weight) in sums.iter_mut().zip(weights) {
                            *sum += x * f64::from(weight);
                        }
                    }
                }
            }
        }
        output
    }

    fn max_pool(&self, row: usize, before: impl Fn(usize) -> Vec<f64>) -> Vec<f64> {
        let Some(pool) = self.problem.sizes().pool() else {
            return Vec::new();
        };
        let (height, width) = (pool.h as usize, pool.w as usize);
        let (out_h, out_w) = (pool.out_h() as usize, pool.out_w() as usize);
        let (image, y, x) = (row / (out_h * out_w), row / out_w % out_h, row % out_w);
        let mut output: Vec<f64> = Vec::new();
        for r in 0..pool.window as usize {
            for s in 0..pool.window as usize {
                let in_y = (y * pool.stride as usize + r).wrapping_sub(pool.pad as usize);
                let in_x = (x * pool.stride as usize + s).wrapping_sub(pool.pad as usize);
                if in_y >= height || in_x >= width {
                    continue;
                }
                let pixel = before((image * height + in_y) * width + in_x);
                if output.is_empty() {
                    output = pixel;
                } else {
                    for (best, value) in output.iter_mut().zip(pixel) {
                        if value > *best || value.is_nan() {
                            *best = value;
                        }
                    }
                }
            }
        }
        output
    }

    fn scores(&self, row: usize, query: &[f64]) -> Vec<f64> {
        let Some(sizes) = self.problem.sizes().attention() else {
            return Vec::new();
        };
        let (queries, keys, d) = (sizes.q as usize, sizes.kv as usize, sizes.d as usize);
        let key = &self.operands[0][0][row / queries * keys * d..][..keys * d];
        let scale = if self.problem.chain().contains(&Op::Pointwise(Pointwise::Scale)) {
            1.0
        } else {
            f64::from(attention_scale(sizes.d))
        };
        let dot = |key: &[f32]| {
            query.iter().zip(key).map(|(q, &k)| q * f64::from(k)).sum::<f64>() * scale
        };
        key.chunks_exact(d).map(dot).collect()
    }

    fn attention_output(&self, row: usize, before: impl Fn(usize) -> Vec<f64>) -> Vec<f64> {
        let Some(sizes) = self.problem.sizes().attention() else {
            return Vec::new();
        };
        let (heads, queries) = (sizes.h as usize, sizes.q as usize);
        let (keys, d) = (sizes.kv as usize, sizes.d as usize);
        let (batch, query) = (row / queries, row % queries);
        let step = self.steps.iter().position(|step| step.op == Op::Pv).unwrap_or(0);
        let values = self.operands[step][0];
        let mut output = Vec::with_capacity(heads * d);
        for head in batch * heads..(batch + 1) * heads {
            let probabilities = before(head * queries + query);
            output.extend(product(&probabilities, &values[head * keys * d..][..keys * d], d));
        }
        output
    }
}

/// `row W` with W `[row.len(), cols]`.
fn product(row: &[f64], weights: &[f32], cols: usize) -> Vec<f64> {
    let mut output = vec![0.0; cols];
    // Only so that the loop below is compiled for the vector unit at hand: the order of the
    // additions into each element is that of the text.
    pulp::Arch::new().dispatch(|| {
        for (x, weights) in row.iter().zip(weights.chunks_exact(cols)) {
            for (sum, &weight) in output.iter_mut().zip(weights) {
                *sum += x * f64::from(weight);
            }
        }
    });
    output
}

fn softmax(mut row: Vec<f64>) -> Vec<f64> {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for value in &mut row {
        *value = libm::exp(*value - largest);
    }
    let sum: f64 = row.iter().sum();
    for value in &mut row {
        *value /= sum;
    }
    row
}

fn layer_norm(mut row: Vec<f64>, weight: &[f32], shift: &[f32]) -> Vec<f64> {
    let count = row.len() as f64;
    let mean = row.iter().sum::<f64>() / count;
    let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let scale = 1.0 / (variance + NORM_EPSILON).sqrt();
    for ((value, &weight), &shift) in row.iter_mut().zip(weight).zip(shift) {
        *value = (*value - mean) * scale * f64::from(weight) + f64::from(shift);
    }
    row
}

fn rms_norm(mut row: Vec<f64>, weight: &[f32]) -> Vec<f64> {
    let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    let scale = 1.0 / (square + NORM_EPSILON).sqrt();
    for (value, &weight) in row.iter_mut().zip(weight) {
        *value *= scale * f64::from(weight);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(op: Pointwise, x: f64, operands: &[f64]) -> f64 {
        match op.fold(|index: usize| Real(operands[index])) {
            Some(folded) => op.apply(Real(x), |index: usize| folded[index]).0,
            None => op.apply(Real(x), |index: usize| Real(operands[index])).0,
        }
    }

    /// Values of PyTorch's definitions, computed by hand or with 12-digit tables.
    #[test]
    fn every_formula_by_hand() {
        let cases: &[(Pointwise, f64, &[f64], f64)] = &[
            (Pointwise::Bias, 1.5, &[0.25], 1.75),
            // (3 - 1) / sqrt(4 + 1e-5) * 0.5 + 0.1
            (Pointwise::BatchNorm, 3.0, &[1.0, 4.0, 0.5, 0.1], 0.599_999_375_001_17),
            (Pointwise::Relu, -2.0, &[], 0.0),
            (Pointwise::Relu, 2.0, &[], 2.0),
            (Pointwise::Relu6, 7.0, &[], 6.0),
            (Pointwise::Relu6, -7.0, &[], 0.0),
            (Pointwise::LeakyRelu, -2.0, &[], -0.02),
            (Pointwise::LeakyRelu, 3.0, &[], 3.0),
            (Pointwise::Gelu, 1.0, &[], 0.841_344_746_068_54),
            (Pointwise::Gelu, -1.0, &[], -0.158_655_253_931_46),
            (Pointwise::GeluTanh, 1.0, &[], 0.841_191_990_607_48),
            (Pointwise::Sigmoid, 1.0, &[], 0.731_058_578_630_00),
            (Pointwise::Silu, 1.0, &[], 0.731_058_578_630_00),
            (Pointwise::Silu, -2.0, &[], -0.238_405_844_044_24),
            (Pointwise::HardSigmoid, 1.5, &[], 0.75),
            (Pointwise::HardSigmoid, 4.0, &[], 1.0),
            (Pointwise::HardSwish, 1.0, &[], 2.0 / 3.0),
            (Pointwise::HardSwish, -4.0, &[], 0.0),
            (Pointwise::HardSwish, 5.0, &[], 5.0),
            (Pointwise::Tanh, 0.5, &[], 0.462_117_157_260_01),
            (Pointwise::Add, 1.0, &[2.5], 3.5),
            (Pointwise::Mul, 3.0, &[2.5], 7.5),
            (Pointwise::Scale, 3.0, &[0.125], 0.375),
            (Pointwise::Dropout, 0.9, &[0.5], 1.0),
            (Pointwise::Dropout, 0.9, &[0.05], 0.0),
        ];
        for &(op, x, operands, expected) in cases {
            let value = apply(op, x, operands);
            assert!((value - expected).abs() < 1e-12, "{}({x}) = {value}", op.name());
        }
        for &op in Pointwise::ALL {
            assert!(cases.iter().any(|(case, ..)| *case == op), "{} has no value", op.name());
        }
    }

    #[test]
    fn nan_goes_through_every_formula() {
        for &op in Pointwise::ALL {
            assert!(apply(op, f64::NAN, &[0.5, 0.5, 0.5, 0.5]).is_nan(), "{}", op.name());
        }
    }

    #[test]
    fn a_two_by_two_convolution_by_hand() {
        let problem: Problem = "conv_bias/f32/n1.c1.h3.w3.k1.r2.s2".parse().unwrap();
        let mut inputs = Inputs::random(&problem, 0);
        inputs.tensors =
            vec![(1..=9).map(|x| x as f32).collect(), vec![1.0, 10.0, 100.0, 1000.0], vec![0.5]];
        let reference = Reference::new(&problem, &inputs);
        let rows: Vec<f64> = (0..reference.rows()).flat_map(|row| reference.row(row)).collect();
        // 1 + 20 + 400 + 5000 + 0.5, and so on for the other three windows.
        assert_eq!(rows, [5421.5, 6532.5, 8754.5, 9865.5]);
    }

    #[test]
    fn attention_of_one_key_is_its_value() {
        let problem: Problem = "attention_head/f32/b1.h2.q1.kv1.d2".parse().unwrap();
        let mut inputs = Inputs::random(&problem, 0);
        inputs.tensors[2] = vec![1.0, 2.0, 3.0, 4.0];
        assert_eq!(Reference::new(&problem, &inputs).row(0), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn rows_of_softmax_and_norms_by_hand() {
        let row = softmax(vec![0.0, 3.0_f64.ln()]);
        assert!((row[0] - 0.25).abs() < 1e-15 && (row[1] - 0.75).abs() < 1e-15);
        let row = layer_norm(vec![1.0, 3.0], &[2.0, 2.0], &[0.5, 0.5]);
        // mean 2, variance 1: -2 / sqrt(1.00001) + 0.5
        assert!((row[0] + 1.499_990_000_075).abs() < 1e-11, "{row:?}");
        let row = rms_norm(vec![3.0, 4.0], &[1.0, 2.0]);
        assert!((row[1] - 8.0 / 12.500_01_f64.sqrt()).abs() < 1e-12, "{row:?}");
    }
}
