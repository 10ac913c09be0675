//! How much work an operator is, by its name and the sizes of its inputs.

use fusion_cost_model::DType;

use crate::classify::{Class, class_of_op};
use crate::dtypes;
use crate::shapes::{Input, Problem, Shape, base};

/// An amount of work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Amount {
    /// Operations, a multiply-add counted as two.
    pub(super) flops: f64,
    /// Each input and output once.
    pub(super) bytes: f64,
    /// Of the operands.
    pub(super) dtype: Option<DType>,
}

impl Amount {
    /// The work of an operator; none if it is not known.
    pub(super) fn of(op: &str, text: &str) -> Option<Self> {
        let amount = Self::by_sizes(op, text)?;
        // A file may say any sizes.
        (amount.flops.is_finite() && amount.bytes.is_finite()).then_some(amount)
    }

    fn by_sizes(op: &str, text: &str) -> Option<Self> {
        // Symbols may stand for anything.
        if text.is_empty() || text.contains('?') {
            return None;
        }
        let shape = Shape::of(text);
        let sizes: Vec<f64> = shape.inputs.iter().filter_map(bytes).collect();
        let (inputs, largest) =
            sizes.iter().fold((0.0, 0.0_f64), |(sum, most), size| (sum + size, most.max(*size)));
        if inputs == 0.0 {
            return None;
        }
        let first = shape.inputs.iter().find(|input| bytes(input).is_some())?;
        let dtype = dtype(first.kind);
        if let Some(problem) = Problem::of(op, text).filter(|problem| problem.flops() > 0.0) {
            #[expect(clippy::cast_precision_loss, reason = "a size of an element")]
            let element = dtypes::bytes(first.kind)? as f64;
            let output = outputs(&problem) * element;
            return Some(Self { flops: problem.flops(), bytes: inputs + output, dtype });
        }
        // What is written is not recorded: as large as the largest input, unless it is one.
        let moved = match class_of_op(op)?.main {
            Class::Copy | Class::Fill if base(op).ends_with('_') => inputs,
            Class::Copy => 2.0 * inputs,
            Class::Reduce => inputs,
            Class::Elementwise | Class::Act | Class::Norm | Class::Softmax => inputs + largest,
            _ => return None,
        };
        Some(Self { flops: 0.0, bytes: moved, dtype })
    }

    pub(super) fn part(self, share: f64) -> Self {
        Self { flops: self.flops * share, bytes: self.bytes * share, ..self }
    }
}

/// The size of a tensor in bytes.
#[expect(clippy::cast_precision_loss, reason = "an amount of work")]
fn bytes(input: &Input<'_>) -> Option<f64> {
    let element = dtypes::bytes(input.kind)? as f64;
    let known = !input.dims.is_empty();
    let elements: Option<f64> = input.dims.iter().map(|dim| dim.map(|dim| dim as f64)).product();
    elements.filter(|_| known).map(|elements| elements * element)
}

/// The elements that a problem writes.
#[expect(clippy::cast_precision_loss, reason = "an amount of work")]
fn outputs(problem: &Problem) -> f64 {
    let product = |sizes: &[u64]| sizes.iter().map(|size| *size as f64).product::<f64>();
    match problem {
        Problem::Gemm { batch, m, n, .. } => product(&[*batch, *m, *n]),
        Problem::Conv { batch, weights, points, times: 1, .. } => {
            product(&[*batch, *points]) * weights.first().map_or(0.0, |outputs| *outputs as f64)
        }
        // The gradients of the image and of the weights.
        Problem::Conv { batch, weights, image, channels, .. } => {
            product(image) * product(&[*batch, *channels]) + product(weights)
        }
        Problem::Attention { batch, queries, width, is_backward: false, .. } => {
            product(&[*batch, *queries, *width])
        }
        Problem::Attention { batch, queries, keys, width, .. } => {
            product(&[*batch, *width]) * (*queries as f64 + 2.0 * *keys as f64)
        }
        Problem::Embedding { .. } => 0.0,
    }
}

/// The type whose peak rate counts.
pub(super) fn dtype(kind: &str) -> Option<DType> {
    let name = kind.strip_prefix("c10::").unwrap_or(kind);
    Some(match name {
        "double" => DType::F64,
        "float" => DType::F32,
        "BFloat16" => DType::Bf16,
        "Half" => DType::F16,
        "signed char" | "unsigned char" => DType::I8,
        _ if name.starts_with("Float8_") => DType::F8,
        _ => return None,
    })
}
