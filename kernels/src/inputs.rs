//! The input tensors of a problem, filled with random numbers.

use fusion_cost_model::kernel::{Matrix, Operand, OperandKind, Step};
use fusion_cost_model::{DType, Op, Pointwise, Problem};
use half::{bf16, f16};
use thiserror::Error;

use crate::parallel::on_all_processors;
use crate::random;

/// The standard deviation of most inputs: uniform between -1 and 1.
pub(crate) const INPUT_RMS: f64 = 0.577;

/// The root mean square of unsigned 8-bit numbers that are all as likely.
const UNSIGNED_RMS: f64 = 147.4;
/// The same of signed ones from -127 to 127.
pub(crate) const SIGNED_RMS: f64 = 73.6;

/// One input tensor of a problem, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct InputSpec {
    /// `input` for the tensor that flows along the chain, else the operand's name.
    pub name: &'static str,
    /// The step of the chain that reads it.
    pub step: usize,
    /// Its shape.
    pub shape: Matrix,
    fill: Fill,
}

/// The distribution that an input is drawn from.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fill {
    /// Between -1 and 1: no denormals, no zeros, sums that neither explode nor vanish.
    Symmetric,
    /// Between 0.5 and 1.5, for variances and gains: a variance must be positive, and a gain of
    /// exactly 1 would hide a kernel that forgets it.
    AroundOne,
    /// The same number everywhere.
    Constant(f32),
    /// Integers from 0 to 255.
    Unsigned,
    /// Integers from -127 to 127, as quantised weights are, whose largest magnitude is that of both ends.
    Signed,
    /// Between 32 and 96, which bring numbers around one to 8 bits.
    ToUnsigned,
}

impl InputSpec {
    /// Every input of a problem: the first tensor, then the operands of each step in order.
    ///
    /// Random operands are computed by the kernels and are not inputs.
    #[must_use]
    pub fn of(problem: &Problem) -> Vec<Self> {
        let mut specs = Vec::new();
        for (index, step) in problem.steps().enumerate() {
            if index == 0 {
                let is_quantized = step.dtype == DType::I8 && is_product(step.op);
                let fill = if is_quantized { Fill::Unsigned } else { Fill::Symmetric };
                specs.push(Self { name: "input", step: 0, shape: step.input, fill });
            }
            for operand in step.op.operands() {
                if operand.kind != OperandKind::Random {
                    specs.push(Self {
                        name: operand.name,
                        step: index,
                        shape: step.operand_shape(operand),
                        fill: fill(problem, step.op, operand),
                    });
                }
            }
        }
        specs
    }

    /// The numbers of this input, the same for the same seed, as the dtype has them exactly.
    ///
    /// `stream` keeps the inputs of one problem apart.
    fn generate(&self, dtype: DType, seed: u64, stream: u64) -> Vec<f32> {
        let count = usize::try_from(self.shape.elements()).unwrap_or(usize::MAX);
        let (scale, offset) = match self.fill {
            Fill::Symmetric => (2.0, -1.0),
            Fill::AroundOne => (1.0, 0.5),
            Fill::Constant(value) => (0.0, value),
            Fill::Unsigned => (256.0, 0.0),
            Fill::Signed => (255.0, -127.0),
            Fill::ToUnsigned => (64.0, 32.0),
        };
        let is_whole = matches!(self.fill, Fill::Unsigned | Fill::Signed);
        let mut numbers = vec![0.0; count];
        on_all_processors(&mut numbers, random::BLOCK, |first, part| {
            random::fill(part, (seed, stream), first, (scale, offset));
            if is_whole {
                part.iter_mut().for_each(|x| *x = x.floor());
            }
            round_to(dtype, part);
        });
        numbers
    }
}

/// Whether an op multiplies its input with a matrix.
const fn is_product(op: Op) -> bool {
    matches!(op, Op::Linear | Op::Conv2d | Op::Qk | Op::Pv)
}

fn fill(problem: &Problem, op: Op, operand: &Operand) -> Fill {
    if problem.dtype() == DType::I8 && operand.kind == OperandKind::Matrix {
        return Fill::Signed;
    }
    match (op, operand.name) {
        (Op::Pointwise(Pointwise::Requantize), _) => Fill::ToUnsigned,
        (
            Op::LayerNorm | Op::RmsNorm | Op::Pointwise(Pointwise::BatchNorm),
            "weight" | "variance",
        ) => Fill::AroundOne,
        (Op::Pointwise(Pointwise::Scale), _) => match problem.sizes().attention() {
            Some(attention) => Fill::Constant(attention_scale(attention.d)),
            None => Fill::AroundOne,
        },
        _ => Fill::Symmetric,
    }
}

/// `1 / sqrt(d)`, the scale of attention scores.
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a scale")]
pub(crate) fn attention_scale(d: u64) -> f32 {
    (1.0 / (d as f64).sqrt()) as f32
}

/// What sums of products of 8-bit numbers are multiplied with when they become f32: the scales of
/// both matrices, such that random sums are about as large as one; 1 for an op of another dtype.
///
/// `1 / (147.4 * 73.6 sqrt(depth))`, the root mean squares of both and of as many terms.
#[must_use]
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a scale")]
pub(crate) fn scale_of_sums(step: &Step) -> f32 {
    if step.dtype != DType::I8 || !is_product(step.op) {
        return 1.0;
    }
    (UNSIGNED_RMS * SIGNED_RMS * (step.depth as f64).sqrt()).recip() as f32
}

/// The inputs of a problem in the order of [`InputSpec::of`].
#[derive(Debug, Clone, PartialEq)]
pub struct Inputs {
    /// What each tensor is.
    pub specs: Vec<InputSpec>,
    /// Its numbers.
    pub tensors: Vec<Vec<f32>>,
}

impl Inputs {
    /// Random inputs, the same for the same seed: numbers that the problem's format has exactly,
    /// so that the reference computes on the very inputs of the kernels.
    #[must_use]
    pub fn random(problem: &Problem, seed: u64) -> Self {
        let specs = InputSpec::of(problem);
        let generate =
            |(spec, stream): (&InputSpec, u64)| spec.generate(problem.dtype(), seed, stream);
        let tensors = specs.iter().zip(0..).map(generate).collect();
        Self { specs, tensors }
    }

    /// Inputs of a layer that others feed: the operands of each step are drawn by a seed of their
    /// own, so that an op has the same numbers whatever else is in its kernel, and so is what the first
    /// step transforms.
    ///
    /// Weights are so small that results are about as large as what they are made of: through fifty
    /// layers, numbers between -1 and 1 would end in infinities.
    ///
    /// `seed` gives the seed of a step by its index.
    #[must_use]
    pub fn of_layer(problem: &Problem, seed: impl Fn(usize) -> u64) -> Self {
        let specs = InputSpec::of(problem);
        let steps: Vec<Step> = problem.steps().collect();
        let generate = |(index, spec): (usize, &InputSpec)| {
            let before = specs[..index].iter().filter(|other| other.step == spec.step);
            // What flows along is the first input of the first step, and of no other one.
            let stream = before.count() + usize::from(spec.step > 0);
            let mut numbers = spec.generate(problem.dtype(), seed(spec.step), stream as u64);
            let Step { op, depth, dtype, .. } = steps[spec.step];
            if stream > 0 && matches!(op, Op::Linear | Op::Conv2d) && dtype != DType::I8 {
                let scale = (INPUT_RMS * (depth as f64).sqrt()).recip() as f32;
                numbers.iter_mut().for_each(|number| *number *= scale);
                round_to(problem.dtype(), &mut numbers);
            }
            numbers
        };
        let tensors = specs.iter().enumerate().map(generate).collect();
        Self { specs, tensors }
    }

    /// Whether they are as many tensors as a problem takes, each with as many numbers.
    ///
    /// # Errors
    ///
    /// [`WrongInputs`] says which tensor is not.
    pub fn check(&self, problem: &Problem) -> Result<(), WrongInputs> {
        let specs = InputSpec::of(problem);
        if specs.len() != self.tensors.len() {
            return Err(WrongInputs::Tensors { taken: specs.len(), given: self.tensors.len() });
        }
        for (index, (spec, tensor)) in specs.iter().zip(&self.tensors).enumerate() {
            let (taken, given) = (spec.shape.elements(), tensor.len() as u64);
            if taken != given {
                return Err(WrongInputs::Numbers { index, name: spec.name, taken, given });
            }
        }
        if specs != self.specs {
            return Err(WrongInputs::Specs);
        }
        Ok(())
    }

    /// The tensors that a step reads in addition to the flowing one, in the order of its operands.
    pub(crate) fn operands_of(&self, step: usize) -> impl Iterator<Item = &[f32]> {
        let skip_first = usize::from(step == 0);
        self.specs
            .iter()
            .zip(&self.tensors)
            .filter(move |(spec, _)| spec.step == step)
            .skip(skip_first)
            .map(|(_, tensor)| tensor.as_slice())
    }
}

/// Why inputs are not those of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WrongInputs {
    /// There are more or fewer tensors.
    #[error("it takes {taken} tensors, and {given} are given")]
    Tensors {
        /// Those of the problem.
        taken: usize,
        /// Those of the inputs.
        given: usize,
    },
    /// A tensor has more or fewer numbers.
    #[error("tensor {index} ({name}) has {taken} numbers, and {given} are given")]
    Numbers {
        /// Which tensor.
        index: usize,
        /// Its name.
        name: &'static str,
        /// The numbers that it has in the problem.
        taken: u64,
        /// Those of the inputs.
        given: u64,
    },
    /// What they say of the tensors is said of those of another problem.
    #[error("the specs are those of another problem")]
    Specs,
}

/// Rounds numbers to the nearest ones that a format has.
fn round_to(dtype: DType, numbers: &mut [f32]) {
    match dtype {
        DType::F16 => numbers.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32()),
        DType::Bf16 => numbers.iter_mut().for_each(|x| *x = bf16::from_f32(*x).to_f32()),
        _ => {}
    }
}

/// The largest relative error of rounding to a format that is shorter than f32; 0 for f32.
pub(crate) fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        // 11 and 8 significant bits.
        DType::F16 => 1.0 / 2048.0,
        DType::Bf16 => 1.0 / 256.0,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_formats_get_numbers_that_they_have() {
        for (dtype, bits) in [("f16", 11), ("bf16", 8)] {
            let problem: Problem = format!("add_layernorm/{dtype}/m5.n33").parse().unwrap();
            let inputs = Inputs::random(&problem, 7);
            for x in inputs.tensors.iter().flatten() {
                // This many significant bits: the lower ones of the f32 are zero.
                assert_eq!(x.to_bits() << (32 - (24 - bits)), 0, "{dtype}: {x}");
            }
        }
    }

    #[test]
    fn layers_get_weights_that_the_format_has() {
        let problem: Problem = "linear_bias/bf16/m3.k31.n17".parse().unwrap();
        let inputs = Inputs::of_layer(&problem, |step| step as u64);
        for x in inputs.tensors.iter().flatten() {
            assert_eq!(x.to_bits() << 16, 0, "{x}");
        }
    }

    #[test]
    fn inputs_are_reproducible_and_not_trivial() {
        let problem: Problem = "conv_bn_relu/f32/n1.c3.h8.w8.k4.r3.s3".parse().unwrap();
        let inputs = Inputs::random(&problem, 7);
        assert_eq!(inputs, Inputs::random(&problem, 7));
        assert_ne!(inputs, Inputs::random(&problem, 8));
        let names: Vec<&str> = inputs.specs.iter().map(|spec| spec.name).collect();
        assert_eq!(names, ["input", "filter", "mean", "variance", "weight", "shift"]);
        for (spec, tensor) in inputs.specs.iter().zip(&inputs.tensors) {
            assert_eq!(tensor.len() as u64, spec.shape.elements(), "{}", spec.name);
            assert!(tensor.iter().all(|x| *x != 0.0 && *x != 1.0 && x.is_finite()));
        }
        let variance = &inputs.tensors[3];
        assert!(variance.iter().all(|x| *x >= 0.5));
    }

    #[test]
    fn inputs_of_another_problem_are_named() {
        let problem: Problem = "linear_bias/f32/m3.k5.n7".parse().unwrap();
        let whole = Inputs::random(&problem, 1);
        assert_eq!(whole.check(&problem), Ok(()));
        let said = |change: &dyn Fn(&mut Inputs)| {
            let mut inputs = whole.clone();
            change(&mut inputs);
            inputs.check(&problem).unwrap_err().to_string()
        };
        let short = said(&|inputs| inputs.tensors[1].truncate(10));
        assert_eq!(short, "tensor 1 (weight) has 35 numbers, and 10 are given");
        let long = said(&|inputs| inputs.tensors[2].push(0.0));
        assert_eq!(long, "tensor 2 (bias) has 7 numbers, and 8 are given");
        let without = said(&|inputs| drop(inputs.tensors.pop()));
        assert_eq!(without, "it takes 3 tensors, and 2 are given");
        // As many numbers in other shapes.
        let other: Problem = "linear_bias/f32/m5.k3.n7".parse().unwrap();
        let of_other = said(&|inputs| inputs.specs = InputSpec::of(&other));
        assert_eq!(of_other, "the specs are those of another problem");
    }

    #[test]
    fn integers_are_those_of_eight_bits_and_their_sums_about_one() {
        let problem: Problem = "linear+bias+requantize/i8/m61.k300.n67".parse().unwrap();
        let inputs = Inputs::random(&problem, 3);
        let [x, w, bias, scale] = &inputs.tensors[..] else { panic!("four") };
        assert!(x.iter().all(|x| (0.0..=255.0).contains(x) && x.fract() == 0.0));
        assert!(w.iter().all(|w| (-127.0..=127.0).contains(w) && w.fract() == 0.0));
        for whole in [0.0, 255.0] {
            assert!(x.contains(&whole), "{whole}");
        }
        assert!(w.contains(&-127.0) && w.contains(&127.0));
        assert!(bias.iter().all(|x| x.abs() <= 1.0));
        assert!(scale.iter().all(|x| (32.0..=96.0).contains(x)));
        let step = problem.steps().next().unwrap();
        let sums = (0..61).flat_map(|row| (0..67).map(move |col| (row, col))).map(|(row, col)| {
            let terms = (0..300).map(|k| x[row * 300 + k] * w[k * 67 + col]);
            terms.sum::<f32>() * scale_of_sums(&step)
        });
        let mean_square = sums.map(|sum| f64::from(sum).powi(2)).sum::<f64>() / (61.0 * 67.0);
        assert!((0.8..1.25).contains(&mean_square), "{mean_square}");
    }

    #[test]
    fn attention_is_scaled_by_its_head_size() {
        let problem: Problem = "attention_scores/f32/b1.h2.q3.d16".parse().unwrap();
        let inputs = Inputs::random(&problem, 1);
        let factor = inputs.operands_of(1).next().unwrap();
        assert_eq!(factor, [0.25]);
    }
}
