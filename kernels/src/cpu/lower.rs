//! From a problem to its kernels: one per op, and one for the whole chain.

use fusion_cost_model::kernel::Step;
use fusion_cost_model::kernel::{Form, MAX_FOLDED, OperandKind};
use fusion_cost_model::{Op, Pointwise, Problem, Rewrite};

use super::attention::{AttentionKernel, Scale, Scores, Shape as AttentionShape};
use super::causal_mask::CausalMask;
use super::conv::{ConvKernel, Core, PoolStage, Shape as ConvShape, Tiling};
use super::elementwise::ElementwiseKernel;
use super::folded::Folded;
use super::kernel::{Kernel, Located};
use super::layer::Layer;
use super::linear::LinearKernel;
use super::max_pool::MaxPoolKernel;
use super::nontemporal::{self, LINE, Thresholds};
use super::panels::{InputTensor, Panels};
use super::row_ops::RowOp;
use super::row_stage::RowStage;
use super::rows::RowsKernel;
use super::strip::Cut;
use super::tail::{Tail, TailOp};
use super::tensors::{TensorId, TensorTable};
use crate::inputs::{InputSpec, attention_scale};

/// What the kernels may assume of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) threads: usize,
    /// How much of its cache a thread may fill with intermediate results.
    pub(crate) block_bytes: usize,
    /// How panels of matrices are cut.
    pub(crate) cut: Cut,
    /// Beyond how many bytes results are written around the caches.
    pub(crate) stream: Thresholds,
}

/// How the weights of a step are packed, if they are.
fn packing(problem: &Problem, step: &Step, cut: Cut) -> Option<Panels> {
    let n = step.output.cols as usize;
    match step.op {
        Op::Linear => Some(Panels { k: step.input.cols as usize, n, cut }),
        Op::Conv2d => {
            let shape = ConvShape::from(problem.sizes().conv()?);
            (shape.core() == Core::Direct).then(|| Panels { k: shape.depth(), n, cut })
        }
        _ => None,
    }
}

/// Both variants of a problem, before there is memory for their tensors.
pub(crate) struct Plan {
    pub(crate) table: TensorTable,
    /// In the order of [`InputSpec::of`].
    pub(crate) inputs: Vec<InputTensor>,
    /// What is computed ahead of time for the fused variant.
    pub(crate) folded: Option<Folded>,
    pub(crate) output: TensorId,
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
        let mut builder = Builder::new(problem, machine);
        let unfused = builder.unfused()?;
        let of_unfused = builder.scratch_numbers;
        let folded = match rewrite {
            None => None,
            Some(Rewrite::BnFolded) => Some(builder.fold_batch_norm()?),
            Some(_) => return None,
        };
        let fused = builder.fused()?;
        let Builder { table, inputs, output, scratch_numbers, .. } = builder;
        let bytes = |numbers: usize| (numbers * size_of::<f32>()) as u64;
        let scratch_bytes = [bytes(of_unfused), bytes(scratch_numbers - of_unfused)];
        Some(Self { table, inputs, folded, output, unfused, fused, scratch_bytes })
    }
}

struct Builder<'p> {
    problem: &'p Problem,
    machine: Machine,
    steps: Vec<Step>,
    table: TensorTable,
    inputs: Vec<InputTensor>,
    /// The operands of each step, without random ones.
    operands: Vec<Vec<TensorId>>,
    output: TensorId,
    /// Numbers of scratch so far.
    scratch_numbers: usize,
}

impl<'p> Builder<'p> {
    fn new(problem: &'p Problem, machine: Machine) -> Self {
        let steps: Vec<Step> = problem.steps().collect();
        let mut table = TensorTable::default();
        let specs = InputSpec::of(problem);
        let mut inputs = Vec::new();
        let mut operands = vec![Vec::new(); steps.len()];
        for (index, spec) in specs.iter().enumerate() {
            let step = &steps[spec.step];
            let panels = if index == 0 { None } else { packing(problem, step, machine.cut) };
            let numbers = panels.map_or(spec.shape.elements() as usize, |one| one.numbers());
            let id = table.add(numbers);
            if index > 0 {
                operands[spec.step].push(id);
            }
            inputs.push(InputTensor { id, panels });
        }
        let output = table.add(steps.last().map_or(0, |step| step.output.elements() as usize));
        let scratch_numbers = 0;
        Self { problem, machine, steps, table, inputs, operands, output, scratch_numbers }
    }

    fn operand(&self, step: usize) -> Option<Located> {
        self.operands[step].first().map(|&id| id.into())
    }

    /// Scratch of this many numbers for each thread.
    fn scratch<const N: usize>(&mut self, numbers: [usize; N]) -> Vec<[Located; N]> {
        (0..self.machine.threads)
            .map(|_| numbers.map(|count| self.add_scratch(count).into()))
            .collect()
    }

    fn add_scratch(&mut self, numbers: usize) -> TensorId {
        self.scratch_numbers += numbers;
        self.table.add_scratch(numbers)
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
                self.table.add(self.steps[index].output.elements() as usize)
            };
            kernels.push(self.unfused_kernel(index, source.into(), target.into())?);
            source = target;
        }
        Some(kernels)
    }

    fn unfused_kernel(
        &mut self,
        index: usize,
        input: Located,
        output: Located,
    ) -> Option<Box<dyn Kernel>> {
        let step = self.steps[index];
        let Machine { threads, .. } = self.machine;
        let sizes = self.problem.sizes();
        Some(match step.op {
            Op::Linear => self.linear_kernel(index, index + 1, input, output)?,
            Op::Conv2d => self.conv_kernel(index, input, output, Tail::default(), None)?,
            Op::MaxPool => {
                let sizes = sizes.pool()?;
                let images = (step.input.rows / (sizes.h * sizes.w)) as usize;
                let channels = step.input.cols as usize;
                Box::new(MaxPoolKernel { sizes, images, channels, input, output })
            }
            Op::Qk | Op::Pv => {
                let shape = AttentionShape::new(sizes.attention()?, false);
                let scores = match step.op {
                    Op::Qk => self.queries_and_keys(index, input)?,
                    _ => Scores::Given(input),
                };
                self.with_scratch(AttentionKernel {
                    shape,
                    block: shape.block_for_threads(threads),
                    scores,
                    stages: Vec::new(),
                    values: if step.op == Op::Pv { self.operand(index) } else { None },
                    tail: Tail::default(),
                    projection: None,
                    output,
                    cut: self.machine.cut,
                    scratch: Vec::new(),
                })
            }
            Op::Softmax | Op::LayerNorm | Op::RmsNorm | Op::Pointwise(_) => {
                self.rows_kernel(index..index + 1, input, output)?
            }
        })
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
            let panels = packing(self.problem, &self.steps[index], self.machine.cut);
            let id = self.table.add(panels.map_or(elements, |one| one.numbers()));
            Some(InputTensor { id, panels })
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
            Form::Conv | Form::ConvPool => {
                let pool = self.steps.iter().position(|step| step.op == Op::MaxPool);
                let tail = self.tail(1..pool.unwrap_or(count));
                let stage = match pool {
                    None => None,
                    Some(at) => Some(PoolStage {
                        sizes: self.problem.sizes().pool()?,
                        tail: self.tail(at + 1..count),
                    }),
                };
                self.conv_kernel(0, input, output, tail, stage)
            }
            Form::Pool => self.unfused_kernel(0, input, output),
            Form::Attention | Form::MultiheadLinear => self.attention_kernel(input, output),
        }
    }

    fn attention_kernel(&mut self, input: Located, output: Located) -> Option<Box<dyn Kernel>> {
        let count = self.steps.len();
        let position = |op| self.steps.iter().position(|step| step.op == op);
        let (pv, linear) = (position(Op::Pv), position(Op::Linear));
        let shape = AttentionShape::new(self.problem.sizes().attention()?, linear.is_some());
        let starts_with_qk = self.steps[0].op == Op::Qk;
        let mut scores =
            if starts_with_qk { self.queries_and_keys(0, input)? } else { Scores::Given(input) };
        let mut first_stage = usize::from(starts_with_qk);
        if let Scores::Gemm { scale, .. } = &mut scores
            && self.steps.get(1).is_some_and(|step| step.op == Op::Pointwise(Pointwise::Scale))
        {
            *scale = Scale::Operand(self.operand(1)?);
            first_stage = 2;
        }
        let stages = self.row_stages(first_stage..pv.unwrap_or(count))?;
        let tail = match pv {
            Some(at) => self.tail(at + 1..linear.unwrap_or(count)),
            None => Tail::default(),
        };
        let projection = match linear {
            Some(at) => Some(self.layer(at, count)?),
            None => None,
        };
        let Machine { threads, block_bytes, cut, .. } = self.machine;
        let kernel = AttentionKernel {
            shape,
            block: shape.block_in_cache(projection.is_some(), threads, block_bytes / 4),
            scores,
            stages,
            values: pv.and_then(|at| self.operand(at)),
            tail,
            projection,
            output,
            cut,
            scratch: Vec::new(),
        };
        Some(self.with_scratch(kernel))
    }

    fn with_scratch(&mut self, kernel: AttentionKernel) -> Box<dyn Kernel> {
        let scratch = self.scratch(kernel.scratch_numbers());
        Box::new(AttentionKernel { scratch, ..kernel })
    }

    /// Linear layers with everything between and after them.
    fn layers_kernel(&mut self, input: Located, output: Located) -> Option<Box<dyn Kernel>> {
        let count = self.steps.len();
        let linears: Vec<usize> =
            (0..count).filter(|&index| self.steps[index].op == Op::Linear).collect();
        let mut layers = Vec::new();
        for (position, &at) in linears.iter().enumerate() {
            let end = linears.get(position + 1).copied().unwrap_or(count);
            layers.push(self.layer(at, end)?);
        }
        let Machine { threads, .. } = self.machine;
        let rows = self.steps[0].input.rows as usize;
        let block_rows = RowsKernel::block_rows(rows, threads);
        let scratch = if layers.len() > 1 { block_rows * layers[0].n } else { 0 };
        Some(Box::new(RowsKernel {
            rows,
            cols: self.steps[0].input.cols as usize,
            block_rows,
            input,
            output,
            stages: Vec::new(),
            layers,
            stream: false,
            scratch: (0..threads).map(|_| self.add_scratch(scratch).into()).collect(),
        }))
    }

    // --- parts of both -------------------------------------------------------------------

    fn queries_and_keys(&self, step: usize, queries: Located) -> Option<Scores> {
        let keys = self.operand(step)?;
        // A chain with a scale of its own applies it there (see `Op::Qk`).
        let scale = if self.problem.chain().contains(&Op::Pointwise(Pointwise::Scale)) {
            Scale::Number(1.0)
        } else {
            Scale::Number(attention_scale(self.problem.sizes().attention()?.d))
        };
        Some(Scores::Gemm { queries, keys, scale })
    }

    /// The linear step `at` with the pointwise steps after it before `end`.
    fn linear_kernel(
        &mut self,
        at: usize,
        end: usize,
        x: Located,
        y: Located,
    ) -> Option<Box<dyn Kernel>> {
        let layer = self.layer(at, end)?;
        let grid = layer.grid(self.steps[at].input.rows as usize, self.machine.threads);
        Some(Box::new(LinearKernel { layer, x, y, grid }))
    }

    fn conv_kernel(
        &mut self,
        index: usize,
        input: Located,
        output: Located,
        tail: Tail,
        pool: Option<PoolStage>,
    ) -> Option<Box<dyn Kernel>> {
        let shape = ConvShape::from(self.problem.sizes().conv()?);
        let filter = self.operand(index)?;
        let Machine { threads, block_bytes, cut, .. } = self.machine;
        let panels = packing(self.problem, &self.steps[index], cut);
        let pool_sizes = pool.as_ref().map(|stage| &stage.sizes);
        let tiling = Tiling::new(&shape, pool_sizes, block_bytes / 2, threads);
        let numbers = ConvKernel::scratch_numbers(&shape, pool_sizes, &tiling);
        let scratch = self.scratch(numbers);
        let kernel =
            ConvKernel { shape, input, filter, panels, output, tail, pool, tiling, scratch };
        Some(Box::new(kernel))
    }

    /// Pointwise and row ops on a matrix.
    fn rows_kernel(
        &mut self,
        range: std::ops::Range<usize>,
        input: Located,
        output: Located,
    ) -> Option<Box<dyn Kernel>> {
        let stream = self.streams(range.clone(), input, output);
        let steps = &self.steps[range.clone()];
        let ignores_shape =
            |step: &Step| matches!(step.op, Op::Pointwise(op) if !op.is_per_channel());
        if steps.iter().all(ignores_shape) {
            let elements = steps[0].input.elements() as usize;
            let tail = self.tail(range);
            return Some(Box::new(ElementwiseKernel { elements, input, output, tail, stream }));
        }
        let (rows, cols) = (steps[0].input.rows as usize, steps[0].input.cols as usize);
        // Enough blocks to share evenly, and few enough that sharing costs nothing.
        let threads = self.machine.threads;
        let block_rows = (rows / (8 * threads)).clamp(1, 16);
        // Streams write whole vectors, which only rows of whole lines consist of.
        let stream = stream && cols.is_multiple_of(LINE);
        let room = RowStage::group(cols) * cols;
        let room_threads = if stream { threads } else { 0 };
        Some(Box::new(RowsKernel {
            rows,
            cols,
            block_rows,
            input,
            output,
            stages: self.row_stages(range)?,
            layers: Vec::new(),
            stream,
            scratch: (0..room_threads).map(|_| self.add_scratch(room).into()).collect(),
        }))
    }

    /// Whether a pass over memory writes its output around the caches.
    fn streams(&self, range: std::ops::Range<usize>, input: Located, output: Located) -> bool {
        let of_elements = |step: &Step| {
            let operands = step.op.operands().iter();
            operands.filter(|operand| operand.kind == OperandKind::PerElement).count() as u64
        };
        let steps = &self.steps[range.clone()];
        let tensor_bytes = steps[0].output.elements() * size_of::<f32>() as u64;
        // What a cache holds of an intermediate result should wait there for the next kernel.
        let intermediate = range.end < self.steps.len();
        let others = if intermediate { 0 } else { 1 + steps.iter().map(of_elements).sum::<u64>() };
        let Thresholds { result, intermediate: held } = self.machine.stream;
        let large = (1 + others) * tensor_bytes > if intermediate { held } else { result };
        nontemporal::SUPPORTED && large && !input.is(output)
    }

    /// The linear step `at` and what follows it before `end`.
    fn layer(&mut self, at: usize, end: usize) -> Option<Layer> {
        let Step { input, output, .. } = self.steps[at];
        let pointwise =
            self.steps[at + 1..end].iter().take_while(|step| step.op.is_pointwise()).count();
        let tail_end = at + 1 + pointwise;
        Some(Layer {
            k: input.cols as usize,
            n: output.cols as usize,
            w: self.operand(at)?,
            panels: packing(self.problem, &self.steps[at], self.machine.cut)?,
            block_bytes: self.machine.block_bytes / 2,
            tail: self.tail(at + 1..tail_end),
            stages: self.row_stages(tail_end..end)?,
        })
    }

    /// Pointwise and row ops, neighbouring pointwise ones as one tail.
    fn row_stages(&mut self, range: std::ops::Range<usize>) -> Option<Vec<RowStage>> {
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
    fn tail(&mut self, range: std::ops::Range<usize>) -> Tail {
        let ops = range.filter_map(|index| match self.steps[index].op {
            Op::Pointwise(op) => Some(self.tail_op(index, op)),
            _ => None,
        });
        Tail { ops: ops.collect() }
    }

    fn tail_op(&mut self, index: usize, op: Pointwise) -> TailOp {
        debug_assert!(op.operands().iter().all(|operand| operand.kind != OperandKind::Matrix));
        let cols = self.steps[index].output.cols as usize;
        if op.has_folded() {
            self.scratch_numbers += MAX_FOLDED * cols;
        }
        TailOp {
            op,
            operands: self.operands[index].iter().map(|&id| id.into()).collect(),
            folded: op.has_folded().then(|| self.table.add(MAX_FOLDED * cols).into()),
            cols,
        }
    }
}
