//! Linear layers with what follows them.

use std::ops::Range;

use fusion_cost_model::Op;

use super::Builder;
use super::gemm::{Gemm, Left};
use super::hopper;
use super::operand::{Given, Operand};
use super::phase::{self, Parameters, Phase};
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
            let part = at..end;
            phases.extend(self.linear_phases(part, source, target, &mut parameters)?);
            (source, at) = (target, end);
        }
        Some(phase::kernel(phases, parameters, self.problem.dtype(), &mut self.table))
    }

    /// One linear step, with the pointwise and row steps after it; with
    /// [`Self::linear_threads`] threads.
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
        let gemm = Gemm {
            name: format!("linear_{at}"),
            m,
            n,
            k,
            batches: [1, 1],
            a: Left::Matrix(Operand { tensor: input, stride: k, steps: [0, 0], sharing: 1 }),
            b: Operand { tensor: weight, stride: n, steps: [0, 0], sharing: 1 },
            given: Given::Rows,
            wide: true,
            scale: 1.0,
            tail,
            pool: None,
            output,
        };
        let threads = self.linear_threads();
        let mut phases = vec![match threads {
            hopper::THREADS => self.hopper_gemm(&gemm, parameters)?,
            _ => self.gemm_phase(&gemm, parameters),
        }];
        if rows_from < steps.end {
            // The blocks of a GEMM have parts of rows, so that what needs whole rows waits for
            // all of them.
            let (name, rows) = (format!("rows_{at}"), rows_from..steps.end);
            phases.push(self.rows_phase(&name, rows, output, output, threads, parameters));
        }
        Some(phases)
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Problem;

    use crate::gpu::tests::emulation::check_all;

    /// Every core, and both warp widths with plain multiply-adds; each size and chain in another
    /// format on the next architecture.
    const ARCHITECTURES: [&str; 6] = ["sm_80", "gfx942", "gfx90a", "gfx1100", "gfx1201", "sm_75"];
    const DTYPES: [&str; 3] = ["f32", "f16", "bf16"];

    /// Linear layers for one of the architectures, in another dtype for the next one.
    fn problems(turn: usize) -> Vec<Problem> {
        let linear = [
            "m1.k1.n1",
            "m1.k7.n300",
            "m17.k31.n13",
            "m130.k65.n67",
            "m64.k64.n64",
            "m33.k129.n519",
            "m300.k5.n70",
            "m136.k104.n264",
        ];
        let linear =
            linear.iter().zip(["linear+bias+silu+mul", "linear+bias+dropout"].iter().cycle());
        let others = [
            ("linear+bias+add+layer_norm", "m17.k31.n13"),
            ("linear+softmax", "m70.k16.n72"),
            ("linear+bias+gelu+linear+bias+add+layer_norm", "m17.k13.n31.o11"),
            ("linear+rms_norm+silu+linear+dropout+softmax+relu", "m65.k32.n128.o16"),
        ];
        let all = linear.map(|(sizes, chain)| (*chain, *sizes)).chain(others);
        let problem = |(index, (chain, sizes)): (usize, (&str, &str))| {
            let dtype = DTYPES[(index + turn) % DTYPES.len()];
            format!("{chain}/{dtype}/{sizes}").parse().unwrap()
        };
        all.enumerate().map(problem).collect()
    }

    /// Every second pair of problems, which has both chains, of each architecture, and the others of the
    /// next one.
    #[test]
    fn linear_layers_of_any_size_with_what_follows() {
        for (turn, architecture) in ARCHITECTURES.into_iter().enumerate() {
            let problems = problems(turn);
            let dealt = problems.chunks(2).skip(turn % 2).step_by(2).flatten().copied();
            check_all(&dealt.collect::<Vec<_>>(), architecture);
        }
    }

    #[test]
    #[ignore = "takes minutes: ALL_ARCHITECTURES=1 .ci/run runs it, and so does the workflow"]
    fn linear_layers_of_every_size_on_every_architecture() {
        for (turn, architecture) in ARCHITECTURES.into_iter().enumerate() {
            check_all(&problems(turn), architecture);
        }
    }
}
