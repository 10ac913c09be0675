//! Pointwise and row ops on a matrix.

use std::ops::Range;

use super::Builder;
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::TensorId;

impl Builder<'_> {
    /// Pointwise and row steps on a matrix, in one pass over its rows.
    pub(super) fn rows_kernel(
        &mut self,
        _steps: Range<usize>,
        _input: TensorId,
        _output: TensorId,
    ) -> Option<KernelPlan> {
        None
    }
}
