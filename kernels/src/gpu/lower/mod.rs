//! From a problem to its kernels: one per op, and one for the whole chain.
//!
//! A kernel is one phase or several (`phase`), and a phase does tiles, each by one block. The
//! unfused kernel of an op and the phase of a fused kernel are made by the same function, which
//! gets the ops that follow as a tail: nothing for the unfused one. A fused kernel has several
//! phases where an op needs what several blocks have computed; between them, all blocks wait for
//! each other.

mod attention;
mod attention_tiles;
mod conv;
mod expression;
mod gemm;
mod gemm_tiles;
mod hopper;
mod hopper_attention;
mod image;
mod linear;
mod max_pool;
mod operand;
mod phase;
mod pointwise;
pub(super) mod probes;
mod rows;
mod tail;

use std::ops::Range;

use fusion_cost_model::kernel::Form;
use fusion_cost_model::kernel::Step;
use fusion_cost_model::{DType, Op, Problem};

use super::driver::DeviceFacts;
use super::plan::{KernelPlan, Plan};
use super::tensors::{Role, TensorId, TensorTable};
use crate::inputs::InputSpec;

/// Makes both variants of a problem for a device; `None` when there are no kernels for it.
pub(crate) fn lower(problem: &Problem, device: &DeviceFacts) -> Option<Plan> {
    if !matches!(problem.dtype(), DType::F32 | DType::F16 | DType::Bf16) {
        return None;
    }
    let mut builder = Builder::new(problem, device);
    let unfused = builder.unfused()?;
    let of_unfused = builder.table.scratch_bytes();
    let fused = builder.fused()?;
    let Builder { table, inputs, output, .. } = builder;
    let scratch_bytes = [of_unfused, table.scratch_bytes() - of_unfused];
    Some(Plan { table, inputs, output, unfused, fused, scratch_bytes })
}

/// A problem on its way to kernels.
struct Builder<'p> {
    problem: &'p Problem,
    device: &'p DeviceFacts,
    steps: Vec<Step>,
    table: TensorTable,
    inputs: Vec<TensorId>,
    /// The operands of each step, without random ones.
    operands: Vec<Vec<TensorId>>,
    output: TensorId,
}

impl<'p> Builder<'p> {
    fn new(problem: &'p Problem, device: &'p DeviceFacts) -> Self {
        let steps: Vec<Step> = problem.steps().collect();
        let bytes = problem.dtype().bytes();
        let mut table = TensorTable::default();
        let specs = InputSpec::of(problem);
        let inputs: Vec<TensorId> = specs
            .iter()
            .map(|spec| table.add(spec.shape.elements() * bytes, Role::Input))
            .collect();
        let mut operands = vec![Vec::new(); steps.len()];
        for (spec, &id) in specs.iter().zip(&inputs).skip(1) {
            operands[spec.step].push(id);
        }
        let elements = steps.last().map_or(0, |step| step.output.elements());
        let output = table.add(elements * bytes, Role::Result);
        Self { problem, device, steps, table, inputs, operands, output }
    }

    /// A tensor for the result of a step.
    fn intermediate(&mut self, step: usize, role: Role) -> TensorId {
        let bytes = self.problem.dtype().bytes();
        self.table.add(self.steps[step].output.elements() * bytes, role)
    }

    /// One kernel per op. A pointwise or row op works in place on the result of the op before
    /// it, as any memory planner would have it; only an op that changes the shape gets a new
    /// intermediate tensor.
    fn unfused(&mut self) -> Option<Vec<KernelPlan>> {
        let in_place = |op: Op| op.is_pointwise() || op.is_row();
        let mut source = self.inputs[0];
        let mut kernels = Vec::new();
        for index in 0..self.steps.len() {
            let rest_in_place = self.steps[index + 1..].iter().all(|step| in_place(step.op));
            let target = if index > 0 && in_place(self.steps[index].op) {
                source
            } else if rest_in_place {
                self.output
            } else {
                self.intermediate(index, Role::Result)
            };
            kernels.push(self.unfused_kernel(index, source, target)?);
            source = target;
        }
        Some(kernels)
    }

    fn unfused_kernel(
        &mut self,
        index: usize,
        input: TensorId,
        output: TensorId,
    ) -> Option<KernelPlan> {
        let only = index..index + 1;
        match self.steps[index].op {
            Op::Linear => self.linear_kernel(only, input, output),
            Op::Conv2d => self.conv_kernel(only, input, output),
            Op::MaxPool => self.max_pool_kernel(index, input, output),
            Op::Qk => self.scores_kernel(index, input, output),
            Op::Pv => self.attention_output_kernel(index, input, output),
            Op::Softmax | Op::LayerNorm | Op::RmsNorm | Op::Pointwise(_) => {
                self.rows_kernel(only, input, output)
            }
        }
    }

    fn fused(&mut self) -> Option<KernelPlan> {
        let all = 0..self.steps.len();
        let (input, output) = (self.inputs[0], self.output);
        match self.problem.chain().form() {
            Form::Rows => self.rows_kernel(all, input, output),
            Form::Linear | Form::Mlp => self.linear_kernel(all, input, output),
            Form::Conv | Form::ConvPool => self.conv_kernel(all, input, output),
            Form::Pool => self.max_pool_kernel(0, input, output),
            Form::Attention | Form::MultiheadLinear => self.attention_kernel(input, output),
        }
    }

    /// The end of the pointwise steps that follow a step.
    fn end_of_tail(&self, step: usize, end: usize) -> usize {
        let tail = self.steps[step + 1..end].iter().take_while(|step| step.op.is_pointwise());
        step + 1 + tail.count()
    }

    /// The pointwise steps from `at` on that one phase may apply while it holds its result.
    fn tail(&self, step: usize, end: usize) -> Range<usize> {
        step + 1..self.end_of_tail(step, end)
    }
}
