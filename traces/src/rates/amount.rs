//! How much work an operator is, by its name and the sizes of its inputs.

use fusion_cost_model::DType;

use super::moved;
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
        let inputs: f64 = shape.inputs.iter().filter_map(bytes).sum();
        if inputs == 0.0 {
            return None;
        }
        let first = shape.inputs.iter().find(|input| bytes(input).is_some())?;
        let dtype = dtype(first.kind);
        if let Some(problem) = Problem::of(op, text).filter(|problem| problem.flops() > 0.0) {
            let read = inputs - moved::unread(&problem, &shape);
            let written = moved::results(op, &problem, &shape)?;
            let bytes = read + written;
            return Some(Self { flops: problem.flops(), bytes, dtype });
        }
        let moved = match class_of_op(op)?.main {
            Class::Copy | Class::Fill if base(op).ends_with('_') => inputs,
            Class::Copy => 2.0 * inputs,
            Class::Reduce => inputs,
            Class::Elementwise if moved::only_writes(op) => inputs,
            Class::Elementwise => inputs + moved::elements_written(op, &shape)?,
            // What is written is not recorded: it is as large as the largest input.
            Class::Act | Class::Norm | Class::Softmax => {
                inputs + shape.inputs.iter().filter_map(bytes).fold(0.0, f64::max)
            }
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
pub(super) fn bytes(input: &Input<'_>) -> Option<f64> {
    Some(elements(input)? * dtypes::bytes(input.kind)? as f64)
}

/// How many elements a tensor has.
#[expect(clippy::cast_precision_loss, reason = "an amount of work")]
pub(super) fn elements(input: &Input<'_>) -> Option<f64> {
    let dims = input.dims.iter().map(|dim| dim.map(|dim| dim as f64));
    let elements: Option<f64> = dims.product();
    elements.filter(|_| !input.dims.is_empty())
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
