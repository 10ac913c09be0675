//! Linear layers with what follows them.

use std::ops::Range;

use fusion_cost_model::Op;

use super::Builder;
use super::phase::{self, Parameters, Phase};
use super::product::{Given, Operand, Product};
use crate::gpu::plan::KernelPlan;
use crate::gpu::tensors::{Role, TensorId};

impl Builder<'_> {
    /// Steps that begin with a linear one: one phase for each linear step with its pointwise tail,
    /// and one for the row steps after it.
    pub(super) fn linear_kernel(
        &mut self,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let mut parameters = Parameters::default();
        let mut phases = Vec::new();
        let (mut source, mut at) = (input, steps.start);
        while at < steps.end {
            let rest = self.steps[at + 1..steps.end].iter();
            let end = at + 1 + rest.take_while(|step| step.op != Op::Linear).count();
            let target =
                if end == steps.end { output } else { self.intermediate(at, Role::Scratch) };
            phases.extend(self.linear_phases(at..end, source, target, &mut parameters)?);
            (source, at) = (target, end);
        }
        Some(phase::kernel(phases, parameters, self.problem.dtype(), &mut self.table))
    }

    /// One linear step, with the pointwise and row steps after it.
    pub(super) fn linear_phases(
        &mut self,
        steps: Range<usize>,
        input: TensorId,
        output: TensorId,
        parameters: &mut Parameters,
    ) -> Option<Vec<Phase>> {
        let at = steps.start;
        let step = self.steps[at];
        let weight = *self.operands[at].first()?;
        let (m, k, n) = (step.input.rows, step.input.cols, step.output.cols);
        let tail = self.tail(at, steps.end);
        let rows_from = tail.end;
        let product = Product {
            name: format!("linear_{at}"),
            m,
            n,
            k,
            batches: [1, 1],
            a: Operand { tensor: input, stride: k, steps: [0, 0] },
            b: Operand { tensor: weight, stride: n, steps: [0, 0] },
            given: Given::Rows,
            scale: 1.0,
            tail,
            output,
        };
        let mut phases = vec![self.product_phase(&product, parameters)];
        if rows_from < steps.end {
            // The blocks of a product have parts of rows, so that what needs whole rows waits for
            // all of them.
            phases.push(self.rows_phase(
                "rows",
                rows_from..steps.end,
                output,
                output,
                super::phase::THREADS,
                parameters,
            ));
        }
        Some(phases)
    }
}
