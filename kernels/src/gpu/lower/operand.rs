//! Operands of GEMMs in memory, and how many of their numbers are accessed at once.

use fusion_cost_model::DType;

use crate::gpu::tensors::TensorId;

/// A matrix in memory, or one for each batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand {
    /// The tensor.
    pub(super) tensor: TensorId,
    /// Numbers between its rows.
    pub(super) stride: u64,
    /// Numbers between outer and inner batches.
    pub(super) steps: [u64; 2],
    /// Neighbouring batches that share a matrix, if they do: the steps are then from one matrix to the
    /// next and not from one batch to the next.
    pub(super) sharing: u64,
}

/// How B is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// `k` rows of `n` numbers, such as weights.
    Rows,
    /// `n` columns of `k` numbers, such as keys.
    Columns,
}

impl Given {
    /// Its name in C++.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Rows => "ROWS",
            Self::Columns => "COLUMNS",
        }
    }
}

/// How many numbers are accessed at once: as many as 16 bytes hold if everything is a multiple of
/// that, else half as many, and so on.
pub(super) fn vector_width(dtype: DType, multiples: &[u64]) -> u64 {
    let most = 16 / dtype.bytes();
    let fits = |width: &u64| multiples.iter().all(|value| value.is_multiple_of(*width));
    [most, most / 2, most / 4].into_iter().find(|width| *width > 1 && fits(width)).unwrap_or(1)
}
