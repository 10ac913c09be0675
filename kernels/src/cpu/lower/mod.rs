//! From a problem to its kernels: one per op, and one for the whole chain.
//!
//! `anchors` has convolutions, pools and attention; `integers` has what multiplies 8-bit integers.

mod anchors;
mod integers;
mod packing;

use std::marker::PhantomData;
use std::ops::Range;

use fusion_cost_model::kernel::{Form, MAX_FOLDED, OperandKind, Step};
use fusion_cost_model::{DType, Op, Pointwise, Problem, Rewrite};
use half::{bf16, f16};

use super::causal_mask::CausalMask;
use super::element::{Element, Stored, Uniform};
use super::elementwise::ElementwiseKernel;
use super::folded::Folded;
use super::kernel::{Kernel, Located};
use super::layer::{Layer, Sums};
use super::linear::LinearKernel;
use super::nontemporal::{self, Thresholds};
use super::panels::InputTensor;
use super::row_ops::RowOp;
use super::row_stage::RowStage;
use super::rows::RowsKernel;
use super::strip::Cut;
use super::tail::{Tail, TailOp};
use super::tensors::{TensorId, TensorTable};
use crate::inputs::InputSpec;

pub(crate) use self::packing::Cuts;
use self::packing::packing;

/// What the kernels may assume of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) threads: usize,
    /// Bytes of the first-level cache of a thread.
    pub(crate) first_level_bytes: usize,
    /// How much of its cache a thread may fill with intermediate results.
    pub(crate) block_bytes: usize,
    /// How panels of matrices are cut.
    pub(crate) cuts: Cuts,
    /// Beyond how many bytes results are written around the caches.
    pub(crate) stream: Thresholds,
}

/// Both variants of a problem, before there is memory for their tensors.
pub(crate) struct Plan {
    pub(crate) table: TensorTable,
    /// In the order of [`InputSpec::of`].
    pub(crate) inputs: Vec<InputTensor>,
    /// What is computed ahead of time for the fused variant.
    pub(crate) folded: Option<Folded>,
    pub(crate) output: TensorId,
    /// How the output is stored.
    pub(crate) stored: Stored,
    pub(crate) unfused: Vec<Box<dyn Kernel>>,
    pub(crate) fused: Box<dyn Kernel>,
    /// Of each variant.
    pub(crate) scratch_bytes: [u64; 2],
}

impl Plan {
    /// The kernels of a problem, the fused one after a rewrite; `None` when this backend has none for
    /// it.
    pub(crate) fn new(
        problem: &Problem,
        rewrite: Option<Rewrite>,
        machine: Machine,
    ) -> Option<Self> {
        match problem.dtype() {
            DType::F32 => Builder::<f32>::new(problem, machine).plan(rewrite),
            DType::Bf16 => Builder::<bf16>::new(problem, machine).plan(rewrite),
            DType::F16 => Builder::<f16>::new(problem, machine).plan(rewrite),
            DType::I8 => Builder::of_integers(problem, machine).plan_of_integers(rewrite),
            _ => None,
        }
    }
}

/// For tensors of `E`.
struct Builder<'p, E> {
    element: PhantomData<E>,
    problem: &'p Problem,
    machine: Machine,
    steps: Vec<Step>,
    table: TensorTable,
    inputs: Vec<InputTensor>,
    /// The operands of each step, without random ones.
    operands: Vec<Vec<TensorId>>,
    output: TensorId,
    /// Bytes of scratch so far.
    scratch_bytes: u64,
}

impl<'p, E: Uniform> Builder<'p, E> {
    fn plan(mut self, rewrite: Option<Rewrite>) -> Option<Plan> {
        let unfused = self.unfused()?;
        let of_unfused = self.scratch_bytes;
        let folded = match rewrite {
            None => None,
            Some(Rewrite::BnFolded) => Some(self.fold_batch_norm()?),
            Some(_) => return None,
        };
        let fused = self.fused()?;
        let Self { table, inputs, output, scratch_bytes, .. } = self;
        let scratch_bytes = [of_unfused, scratch_bytes - of_unfused];
        let stored = E::STORED;
        Some(Plan { table, inputs, folded, output, stored, unfused, fused, scratch_bytes })
    }

    fn new(problem: &'p Problem, machine: Machine) -> Self {
        let cut = machine.cuts.of::<E>();
        Self::with(problem, machine, cut, |_, _| E::STORED, E::STORED)
    }

    /// With weights that are cut so, inputs that are stored as `of_input` says of each by its step, or of
    /// what flows along by nothing, and an output that is stored so.
    fn with(
        problem: &'p Problem,
        machine: Machine,
        cut: Cut,
        of_input: impl Fn(&Step, bool) -> Stored,
        of_output: Stored,
    ) -> Self {
        let steps: Vec<Step> = problem.steps().collect();
        let mut table = TensorTable::default();
        let specs = InputSpec::of(problem);
        let mut inputs = Vec::new();
        let mut operands = vec![Vec::new(); steps.len()];
        for (index, spec) in specs.iter().enumerate() {
            let step = &steps[spec.step];
            let panels = if index == 0 { None } else { packing(problem, step, cut) };
            let numbers = panels.map_or(spec.shape.elements() as usize, |one| one.numbers());
            let stored = of_input(step, index == 0);
            let id = table.add_stored(stored, numbers);
            if index > 0 {
                operands[spec.step].push(id);
            }
            inputs.push(InputTensor { id, stored, panels });
        }
        let output = steps.last().map_or(0, |step| step.output.elements() as usize);
        let output = table.add_stored(of_output, output);
        let (element, scratch_bytes) = (PhantomData, 0);
        Self { element, problem, machine, steps, table, inputs, operands, output, scratch_bytes }
    }

    fn cut(&self) -> Cut {
        self.machine.cuts.of::<E>()
    }

    fn operand(&self, step: usize) -> Option<Located<E>> {
        self.operands[step].first().map(|&id| id.into())
    }

    /// Scratch of this many numbers for each thread.
    fn scratch<T: Element, const N: usize>(&mut self, numbers: [usize; N]) -> Vec<[Located<T>; N]> {
        (0..self.machine.threads)
            .map(|_| numbers.map(|count| self.add_scratch::<T>(count).into()))
            .collect()
    }

    fn add_scratch<T: Element>(&mut self, numbers: usize) -> TensorId {
        self.count_scratch::<T>(numbers);
        self.table.add_scratch::<T>(numbers)
    }

    fn count_scratch<T: Element>(&mut self, numbers: usize) {
        self.scratch_bytes += (numbers * size_of::<T>()) as u64;
    }

    // --- the unfused variant -------------------------------------------------------------

    /// One kernel per op. A pointwise or row op works in place on the result of the op before
    /// it, as any memory planner would have it; only an op that changes the shape gets a new
    /// intermediate tensor.
    fn unfused(&mut self) -> Option<Vec<Box<dyn Kernel>>> {
        let in_place = |op: Op| op.is_pointwise() || op.is_row();
        let mut source = self.inputs[0].id;
        let mut kernels = Vec::new();
        for index in 0..self.steps.len() {
            let rest_in_place = self.steps[index + 1..].iter().all(|step| in_place(step.op));
            let target = if index > 0 && in_place(self.steps[index].op) {
                source
            } else if rest_in_place {
                self.output
            } else {
                self.table.add::<E>(self.steps[index].output.elements() as usize)
            };
            kernels.push(self.unfused_kernel(index, source.into(), target.into())?);
            source = target;
        }
        Some(kernels)
    }

    fn unfused_kernel(
        &mut self,
        index: usize,
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
        match self.steps[index].op {
            Op::Linear => self.linear_kernel(index, index + 1, input, output),
            Op::Softmax | Op::LayerNorm | Op::RmsNorm | Op::Pointwise(_) => {
                self.rows_kernel(index..index + 1, input, output)
            }
            Op::Conv2d | Op::MaxPool | Op::Qk | Op::Pv => self.unfused_anchor(index, input, output),
        }
    }

    // --- rewrites ------------------------------------------------------------------------

    /// Lets all that is built from now on be a convolution with a bias, whose filter has the batch
    /// norm in it. `None` where there is no batch norm to fold.
    fn fold_batch_norm(&mut self) -> Option<Folded> {
        let folded = Rewrite::BnFolded.apply(self.problem)?;
        self.steps = folded.steps().collect();
        let specs = InputSpec::of(&folded);
        let mut add = |index: usize| {
            let of_step = |spec: &&InputSpec| spec.step == index && spec.name != "input";
            let elements = specs.iter().find(of_step)?.shape.elements() as usize;
            let panels = packing(self.problem, &self.steps[index], self.machine.cuts.of::<E>());
            let id = self.table.add::<E>(panels.map_or(elements, |one| one.numbers()));
            Some(InputTensor { id, stored: E::STORED, panels })
        };
        let (filter, bias) = (add(0)?, add(1)?);
        self.operands[0] = vec![filter.id];
        self.operands[1] = vec![bias.id];
        Some(Folded { filter, bias })
    }

    // --- the fused variant ---------------------------------------------------------------

    fn fused(&mut self) -> Option<Box<dyn Kernel>> {
        let count = self.steps.len();
        let (input, output) = (self.inputs[0].id.into(), self.output.into());
        match self.problem.chain().form() {
            Form::Rows => self.rows_kernel(0..count, input, output),
            Form::Linear if self.steps[1..].iter().all(|step| step.op.is_pointwise()) => {
                self.linear_kernel(0, count, input, output)
            }
            Form::Linear | Form::Mlp => self.layers_kernel(input, output),
            Form::Conv | Form::ConvPool | Form::Pool | Form::Attention | Form::MultiheadLinear => {
                self.fused_anchor(input, output)
            }
        }
    }

    /// Linear layers with everything between and after them.
    fn layers_kernel(&mut self, input: Located<E>, output: Located<E>) -> Option<Box<dyn Kernel>> {
        let count = self.steps.len();
        let linears: Vec<usize> =
            (0..count).filter(|&index| self.steps[index].op == Op::Linear).collect();
        let rows = self.steps[0].input.rows as usize;
        let block_rows = RowsKernel::<E>::block_rows(rows, self.machine.threads);
        let mut layers = Vec::new();
        for (position, &at) in linears.iter().enumerate() {
            let end = linears.get(position + 1).copied().unwrap_or(count);
            layers.push(self.layer(at, end, block_rows)?);
        }
        let between = if layers.len() > 1 { block_rows * layers[0].n } else { 0 };
        Some(Box::new(RowsKernel {
            rows,
            cols: self.steps[0].input.cols as usize,
            block_rows,
            input,
            output,
            stages: Vec::new(),
            layers,
            stream: false,
            near: true,
            between: self.scratch([between]).into_iter().flatten().collect(),
            room: Vec::new(),
        }))
    }

    // --- parts of both -------------------------------------------------------------------

    /// The linear step `at` with the pointwise steps after it before `end`.
    fn linear_kernel(
        &mut self,
        at: usize,
        end: usize,
        x: Located<E>,
        y: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
        let rows = self.steps[at].input.rows as usize;
        let layer = self.layer(at, end, rows)?;
        let grid = layer.grid(rows, self.machine.threads);
        Some(Box::new(LinearKernel { layer, x, y, grid }))
    }

    /// Pointwise and row ops on a matrix.
    fn rows_kernel(
        &mut self,
        range: Range<usize>,
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
        let stream = self.streams(range.clone(), input, output);
        let near = self.fetches_near(range.clone());
        let steps = &self.steps[range.clone()];
        let ignores_shape =
            |step: &Step| matches!(step.op, Op::Pointwise(op) if !op.is_per_channel());
        if steps.iter().all(ignores_shape) {
            let elements = steps[0].input.elements() as usize;
            let tail = self.tail(range);
            return Some(Box::new(ElementwiseKernel { elements, input, output, tail, stream }));
        }
        let (rows, cols) = (steps[0].input.rows as usize, steps[0].input.cols as usize);
        // Streams write whole vectors, which only rows of whole lines consist of.
        let stream = stream && cols.is_multiple_of(E::LINE);
        let needs_room = stream || E::DTYPE != DType::F32;
        let room = if needs_room {
            self.scratch([RowStage::<E>::group(cols) * cols]).into_iter().flatten().collect()
        } else {
            Vec::new()
        };
        Some(Box::new(RowsKernel {
            rows,
            cols,
            // The stages go through them a few at a time by themselves.
            block_rows: rows.max(1),
            input,
            output,
            stages: self.row_stages(range)?,
            layers: Vec::new(),
            stream,
            near,
            between: Vec::new(),
            room,
        }))
    }

    /// Whether a pass over memory writes its output around the caches.
    fn streams(&self, range: Range<usize>, input: Located<E>, output: Located<E>) -> bool {
        // What a cache holds of an intermediate result should wait there for the next kernel.
        let intermediate = range.end < self.steps.len();
        let tensors = if intermediate { 1 } else { self.tensors_of_pass(range.clone()) };
        let Thresholds { result, intermediate: held } = self.machine.stream;
        let large = tensors * self.tensor_bytes(&range) > if intermediate { held } else { result };
        nontemporal::SUPPORTED && large && !input.is(output)
    }

    /// Whether a pass over rows fetches the next ones into the first-level cache: where a row, its
    /// operand and its result leave room there, and where the last-level caches hold what the pass
    /// moves, and as much again. Lines that come from memory come too late for the first level, and take
    /// the place of the row that is read once more.
    fn fetches_near(&self, range: Range<usize>) -> bool {
        let row_bytes = 3 * self.steps[range.start].input.cols * size_of::<f32>() as u64;
        let moved = self.tensors_of_pass(range.clone()) * self.tensor_bytes(&range);
        row_bytes <= self.machine.first_level_bytes as u64
            && moved <= self.machine.stream.intermediate
    }

    /// Whole tensors that a pass over some steps reads and writes.
    fn tensors_of_pass(&self, range: Range<usize>) -> u64 {
        let of_elements = |step: &Step| {
            let operands = step.op.operands().iter();
            operands.filter(|operand| operand.kind == OperandKind::PerElement).count() as u64
        };
        2 + self.steps[range].iter().map(of_elements).sum::<u64>()
    }

    fn tensor_bytes(&self, range: &Range<usize>) -> u64 {
        self.steps[range.start].output.elements() * size_of::<E>() as u64
    }

    /// The linear step `at` and what follows it before `end`, for at most `rows` rows at a time.
    fn layer(&mut self, at: usize, end: usize, rows: usize) -> Option<Layer<E>> {
        let Step { input, output, .. } = self.steps[at];
        let pointwise =
            self.steps[at + 1..end].iter().take_while(|step| step.op.is_pointwise()).count();
        let tail_end = at + 1 + pointwise;
        let mut layer = Layer {
            k: input.cols as usize,
            n: output.cols as usize,
            w: self.operand(at)?,
            panels: packing(self.problem, &self.steps[at], self.cut())?,
            block_bytes: self.machine.block_bytes / 2,
            tail: self.tail(at + 1..tail_end),
            stages: self.row_stages(tail_end..end)?,
            sums: Vec::new(),
            scale: 1.0,
        };
        if E::DTYPE != DType::F32 {
            let sums = self.scratch(layer.sums_numbers(rows));
            layer.sums = sums.into_iter().map(|[tile, rows]| Sums { tile, rows }).collect();
        }
        Some(layer)
    }

    /// Pointwise and row ops, neighbouring pointwise ones as one tail.
    fn row_stages(&mut self, range: Range<usize>) -> Option<Vec<RowStage<E>>> {
        let mut stages = Vec::new();
        for index in range {
            let operand = |position: usize| Located::from(self.operands[index][position]);
            stages.push(RowStage::RowOp(match self.steps[index].op {
                Op::LayerNorm => RowOp::LayerNorm { weight: operand(0), shift: operand(1) },
                Op::RmsNorm => RowOp::RmsNorm { weight: operand(0) },
                Op::Pointwise(op) => {
                    let tail_op = self.tail_op(index, op);
                    if let Some(RowStage::Tail(tail)) = stages.last_mut() {
                        tail.ops.push(tail_op);
                    } else {
                        stages.push(RowStage::Tail(Tail { ops: vec![tail_op] }));
                    }
                    continue;
                }
                Op::Softmax => {
                    let sizes = self.problem.sizes().attention();
                    RowOp::Softmax { mask: sizes.and_then(CausalMask::of) }
                }
                _ => return None,
            }));
        }
        Some(stages)
    }

    /// The pointwise steps of a range.
    fn tail(&mut self, range: Range<usize>) -> Tail<E> {
        let ops = range.filter_map(|index| match self.steps[index].op {
            Op::Pointwise(op) => Some(self.tail_op(index, op)),
            _ => None,
        });
        Tail { ops: ops.collect() }
    }

    fn tail_op(&mut self, index: usize, op: Pointwise) -> TailOp<E> {
        let cols = self.steps[index].output.cols as usize;
        if op.has_folded() {
            self.count_scratch::<f32>(MAX_FOLDED * cols);
        }
        let folded = op.has_folded().then(|| self.table.add::<f32>(MAX_FOLDED * cols));
        TailOp::new(op, &self.operands[index], folded, cols)
    }
}
