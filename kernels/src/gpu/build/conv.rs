//! Convolutions with what follows them.

use std::ops::Range;

use super::Builder;
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::TensorId;

impl Builder<'_> {
    /// Steps that begin with a convolution.
    pub(super) fn conv_kernel(
        &mut self,
        _steps: Range<usize>,
        _input: TensorId,
        _output: TensorId,
    ) -> Option<KernelPlan> {
        None
    }
}
