//! What is to be compiled and launched for a problem.

use super::driver::LaunchShape;
use super::tensors::{TensorId, TensorTable};

/// The source of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Code {
    /// Its entry point, a name that says what it computes and how; the same name is the same text.
    pub(crate) entry: String,
    /// The text, which includes headers of `kernels/gpu/` by name.
    pub(crate) text: String,
}

/// A matrix that the TMA of sm_90a reads in boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TensorMap {
    /// The tensor.
    pub(crate) tensor: TensorId,
    /// Whether its numbers are bf16 and not f16.
    pub(crate) bf16: bool,
    /// Matrices one behind the other, at least 1.
    pub(crate) batches: u64,
    /// Rows of a matrix.
    pub(crate) rows: u64,
    /// Numbers in a row, which lie side by side; a multiple of 8.
    pub(crate) cols: u64,
    /// Rows of a box.
    pub(crate) box_rows: u32,
    /// Numbers in a row of a box: 64, so that a row is 128 bytes, which is how far the swizzle goes.
    pub(crate) box_cols: u32,
}

/// One 8-byte word of a kernel's parameters, or a tensor map's 128 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Argument {
    /// The address of a tensor.
    Tensor(TensorId),
    /// A number.
    Size(u64),
    /// A matrix for the TMA. Maps come before everything else, since they must lie
    /// at multiples of 64 bytes.
    Map(TensorMap),
}

/// A kernel with its launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelPlan {
    /// The source.
    pub(crate) code: Code,
    /// The launch. The grid of a cooperative one is an upper bound, which is lowered to what the
    /// device holds at a time.
    pub(crate) shape: LaunchShape,
    /// The fields of its parameter struct, in order.
    pub(crate) arguments: Vec<Argument>,
}

/// Both variants of a problem.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The tensors of both.
    pub(crate) table: TensorTable,
    /// In the order of [`InputSpec::of`](crate::InputSpec::of).
    pub(crate) inputs: Vec<TensorId>,
    /// What both variants write.
    pub(crate) output: TensorId,
    /// One kernel per op.
    pub(crate) unfused: Vec<KernelPlan>,
    /// One kernel for the chain.
    pub(crate) fused: KernelPlan,
}
