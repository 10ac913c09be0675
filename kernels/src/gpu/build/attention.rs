//! Attention and its parts.

use super::Builder;
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::TensorId;

impl Builder<'_> {
    /// `Q K^T` of every head alone.
    pub(super) fn scores_kernel(
        &mut self,
        _step: usize,
        _input: TensorId,
        _output: TensorId,
    ) -> Option<KernelPlan> {
        None
    }

    /// `P V` of every head alone.
    pub(super) fn attention_output_kernel(
        &mut self,
        _step: usize,
        _input: TensorId,
        _output: TensorId,
    ) -> Option<KernelPlan> {
        None
    }

    /// A whole chain of attention, and the projection after it as a second phase.
    pub(super) fn attention_kernel(
        &mut self,
        _input: TensorId,
        _output: TensorId,
    ) -> Option<KernelPlan> {
        None
    }
}
