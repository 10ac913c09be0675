//! A batch norm folded into the filter of the convolution before it.

use fusion_cost_model::Pointwise;

use super::panels::InputTensor;
use crate::inputs::Inputs;
use crate::reference::Real;

/// Where the folded filter lies, and the bias that is left of the batch norm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folded {
    pub(crate) filter: InputTensor,
    pub(crate) bias: InputTensor,
}

impl Folded {
    /// The numbers of both, computed ahead of time as a compiler does: in f64, and rounded once.
    pub(crate) fn numbers(self, inputs: &Inputs) -> [(InputTensor, Vec<f32>); 2] {
        let filter = inputs.operands_of(0).next().unwrap_or_default();
        let operands: Vec<&[f32]> = inputs.operands_of(1).collect();
        let channels = operands.first().map_or(0, |one| one.len());
        let of_channel = |channel: usize| {
            let operand = |index: usize| Real(f64::from(operands[index][channel]));
            Pointwise::BatchNorm.fold(operand).map_or([1.0, 0.0], |folded| folded.map(|one| one.0))
        };
        let folded: Vec<[f64; 2]> = (0..channels).map(of_channel).collect();
        // The output channel is the last coordinate of a filter.
        let gains = folded.iter().map(|[gain, _]| gain).cycle();
        let filter = filter.iter().zip(gains).map(|(&w, gain)| (f64::from(w) * gain) as f32);
        let bias = folded.iter().map(|[_, offset]| *offset as f32);
        [(self.filter, filter.collect()), (self.bias, bias.collect())]
    }
}
