//! Linear layers with what follows them.

use std::ops::Range;

use super::Builder;
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::TensorId;

impl Builder<'_> {
    /// Steps that begin with a linear one: one phase for each linear step with its pointwise tail,
    /// and one for the row steps after it.
    pub(super) fn linear_kernel(
        &mut self,
        _steps: Range<usize>,
        _input: TensorId,
        _output: TensorId,
    ) -> Option<KernelPlan> {
        None
    }
}
