//! How weights are packed, by their dtype and by what multiplies them.

use fusion_cost_model::kernel::Step;
use fusion_cost_model::{DType, Op, Problem};

use crate::cpu::conv::{Core, Shape as ConvShape};
use crate::cpu::element::Element;
use crate::cpu::fours;
use crate::cpu::panels::Panels;
use crate::cpu::strip::Cut;

/// How panels are cut for numbers of each kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cuts {
    pub(crate) f32: Cut,
    pub(crate) bf16: Cut,
    pub(crate) f16: Cut,
    /// For 8-bit integers.
    pub(crate) bytes: Cut,
}

impl Cuts {
    pub(super) fn of<E: Element>(&self) -> Cut {
        match E::DTYPE {
            DType::Bf16 => self.bf16,
            DType::F16 => self.f16,
            _ => self.f32,
        }
    }
}

/// How the weights of a step are packed, if they are.
pub(super) fn packing(problem: &Problem, step: &Step, cut: Cut) -> Option<Panels> {
    let n = step.output.cols as usize;
    match step.op {
        Op::Linear => {
            let k = step.input.cols as usize;
            let cut = if is_exact(step.dtype, k) { cut } else { cut.one_by_one() };
            Some(Panels { k, n, run: k, cut })
        }
        Op::Conv2d => {
            let shape = ConvShape::from(problem.sizes().conv()?);
            let k = shape.depth();
            let run = shape.run();
            // Pairs end with a run, fours do not.
            let fits = step.dtype != DType::I8 || run.is_multiple_of(cut.together);
            let cut = if fits && is_exact(step.dtype, k) { cut } else { cut.one_by_one() };
            (shape.core() == Core::Direct).then_some(Panels { k, n, run, cut })
        }
        _ => None,
    }
}

/// Whether sums of products of integers fit into 32 bits.
const fn is_exact(dtype: DType, terms: usize) -> bool {
    !matches!(dtype, DType::I8) || terms <= fours::MOST_TERMS
}
