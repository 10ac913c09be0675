//! What is to be compiled and launched for a problem.

use super::launch::{LaunchShape, TensorMap};
use super::tensors::{TensorId, TensorTable};

/// The source of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Code {
    /// Its entry point, a name that says what it computes and how; the same name is the same text.
    pub(crate) entry: String,
    /// The text, which includes headers of `kernels/gpu/` by name.
    pub(crate) text: String,
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
    /// Bytes that the kernels of each variant keep for themselves.
    pub(crate) scratch_bytes: [u64; 2],
}
