//! The canonical ops.

use std::fmt;

use super::pointwise::{Operand, OperandKind, Pointwise};

/// One operator of the canonical vocabulary.
///
/// Activations and images are matrices of `rows x cols` in row-major order, where a column is a
/// feature or a channel: images are NHWC, attention scores have one row per head and query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// `Y = X W` with X `[m, k]`, W `[k, n]`, Y `[m, n]`; no bias.
    Linear,
    /// Convolution of an NHWC image with filters `[r, s, c / groups, k]`; no bias.
    Conv2d,
    /// `S = Q K^T` per batch and head, with Q `[q, d]`, K `[kv, d]`, S `[q, kv]`. In a chain
    /// without a `scale` of its own, `1 / sqrt(d)` is part of the GEMM, also where it stands alone.
    Qk,
    /// `O = P V` per batch and head, with P `[q, kv]`, V `[kv, d]`; the heads of O lie side by
    /// side: `[q, h d]`.
    Pv,
    /// Maximum over windows of an NHWC image.
    MaxPool,
    /// `exp(x - max) / sum` over each row.
    Softmax,
    /// `(x - mean) / sqrt(variance + eps) * weight + shift` over each row.
    LayerNorm,
    /// `x / sqrt(mean(x^2) + eps) * weight` over each row.
    RmsNorm,
    /// An op that transforms every element by itself.
    Pointwise(Pointwise),
}

impl Op {
    /// The ops that are not pointwise.
    pub const STRUCTURED: [Self; 8] = [
        Self::Linear,
        Self::Conv2d,
        Self::Qk,
        Self::Pv,
        Self::MaxPool,
        Self::Softmax,
        Self::LayerNorm,
        Self::RmsNorm,
    ];

    /// Every op: the structured ones, then the pointwise table.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::STRUCTURED.into_iter().chain(Pointwise::ALL.iter().copied().map(Self::Pointwise))
    }

    /// A number of its own, never 0.
    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Linear => 1,
            Self::Conv2d => 2,
            Self::Qk => 3,
            Self::Pv => 4,
            Self::MaxPool => 5,
            Self::Softmax => 6,
            Self::LayerNorm => 7,
            Self::RmsNorm => 8,
            Self::Pointwise(op) => 9 + op as u8,
        }
    }

    /// The canonical name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Conv2d => "conv2d",
            Self::Qk => "qk",
            Self::Pv => "pv",
            Self::MaxPool => "max_pool",
            Self::Softmax => "softmax",
            Self::LayerNorm => "layer_norm",
            Self::RmsNorm => "rms_norm",
            Self::Pointwise(op) => op.name(),
        }
    }

    /// The tensors that the op reads in addition to its main input.
    #[must_use]
    pub const fn operands(self) -> &'static [Operand] {
        const fn matrix(name: &'static str) -> Operand {
            Operand { name, kind: OperandKind::Matrix }
        }
        const fn per_channel(name: &'static str) -> Operand {
            Operand { name, kind: OperandKind::PerChannel }
        }
        match self {
            Self::Linear => const { &[matrix("weight")] },
            Self::Conv2d => const { &[matrix("filter")] },
            Self::Qk => const { &[matrix("key")] },
            Self::Pv => const { &[matrix("value")] },
            Self::MaxPool | Self::Softmax => &[],
            Self::LayerNorm => const { &[per_channel("weight"), per_channel("shift")] },
            Self::RmsNorm => const { &[per_channel("weight")] },
            Self::Pointwise(op) => op.operands(),
        }
    }

    /// Whether the op transforms every element by itself.
    #[must_use]
    pub const fn is_pointwise(self) -> bool {
        matches!(self, Self::Pointwise(_))
    }

    /// Whether the op needs a whole row at once.
    #[must_use]
    pub const fn is_row(self) -> bool {
        matches!(self, Self::Softmax | Self::LayerNorm | Self::RmsNorm)
    }
}

impl From<Pointwise> for Op {
    fn from(op: Pointwise) -> Self {
        Self::Pointwise(op)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        for op in Op::all() {
            assert_eq!(op.name().parse::<Op>().unwrap(), op);
        }
    }

    #[test]
    fn a_name_of_two_ops_is_no_op() {
        let message = "Conv2d_BN".parse::<Op>().unwrap_err().to_string();
        assert!(message.contains("conv2d+batch_norm"), "{message}");
    }
}
