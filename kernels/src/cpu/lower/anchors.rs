//! Convolutions, pools and attention: anchors whose kernels read and write f32 only.

use fusion_cost_model::kernel::Form;
use fusion_cost_model::{Op, Pointwise, Problem};
use half::bf16;

use super::{Builder, Machine, packing};
use crate::cpu::attention::{AttentionKernel, Scale, Scores, Shape as AttentionShape};
use crate::cpu::conv::{ConvKernel, PoolStage, Shape as ConvShape, Tiling};
use crate::cpu::element::Element;
use crate::cpu::kernel::{Kernel, Located};
use crate::cpu::max_pool::MaxPoolKernel;
use crate::cpu::tail::Tail;
use crate::inputs::attention_scale;

/// What a problem computes that there are kernels for in f32 only, if it does.
pub(crate) fn only_in_f32(problem: &Problem) -> Option<&'static str> {
    match problem.chain().form() {
        Form::Rows | Form::Linear | Form::Mlp => None,
        Form::Conv | Form::ConvPool => Some("convolutions"),
        Form::Pool => Some("max pools"),
        Form::Attention | Form::MultiheadLinear => Some("attention"),
    }
}

/// The kernels of those anchors, for tensors that have some.
pub(super) trait Anchors: Element {
    /// That of one op.
    fn unfused(
        builder: &mut Builder<'_, Self>,
        index: usize,
        input: Located<Self>,
        output: Located<Self>,
    ) -> Option<Box<dyn Kernel>>;

    /// That of the whole chain.
    fn fused(
        builder: &mut Builder<'_, Self>,
        input: Located<Self>,
        output: Located<Self>,
    ) -> Option<Box<dyn Kernel>>;
}

impl Anchors for bf16 {
    fn unfused(
        _: &mut Builder<'_, Self>,
        _: usize,
        _: Located<Self>,
        _: Located<Self>,
    ) -> Option<Box<dyn Kernel>> {
        None
    }

    fn fused(
        _: &mut Builder<'_, Self>,
        _: Located<Self>,
        _: Located<Self>,
    ) -> Option<Box<dyn Kernel>> {
        None
    }
}

impl Anchors for f32 {
    fn unfused(
        builder: &mut Builder<'_, Self>,
        index: usize,
        input: Located,
        output: Located,
    ) -> Option<Box<dyn Kernel>> {
        match builder.steps[index].op {
            Op::Conv2d => builder.conv_kernel(index, input, output, Tail::default(), None),
            Op::MaxPool => builder.pool_kernel(index, input, output),
            _ => builder.product_kernel(index, input, output),
        }
    }

    fn fused(
        builder: &mut Builder<'_, Self>,
        input: Located,
        output: Located,
    ) -> Option<Box<dyn Kernel>> {
        match builder.problem.chain().form() {
            Form::Conv | Form::ConvPool => builder.conv_chain_kernel(input, output),
            Form::Attention | Form::MultiheadLinear => builder.attention_kernel(input, output),
            _ => builder.unfused_kernel(0, input, output),
        }
    }
}

impl Builder<'_, f32> {
    fn pool_kernel(
        &mut self,
        index: usize,
        input: Located,
        output: Located,
    ) -> Option<Box<dyn Kernel>> {
        let step = self.steps[index];
        let sizes = self.problem.sizes().pool()?;
        let images = (step.input.rows / (sizes.h * sizes.w)) as usize;
        let channels = step.input.cols as usize;
        Some(Box::new(MaxPoolKernel { sizes, images, channels, input, output }))
    }

    /// Scores, or probabilities times values.
    fn product_kernel(
        &mut self,
        index: usize,
        input: Located,
        output: Located,
    ) -> Option<Box<dyn Kernel>> {
        let op = self.steps[index].op;
        let shape = AttentionShape::new(self.problem.sizes().attention()?, false);
        let scores = match op {
            Op::Qk => self.queries_and_keys(index, input)?,
            _ => Scores::Given(input),
        };
        Some(self.with_scratch(AttentionKernel {
            shape,
            block: shape.block_for_threads(self.machine.threads),
            scores,
            stages: Vec::new(),
            values: if op == Op::Pv { self.operand(index) } else { None },
            tail: Tail::default(),
            projection: None,
            output,
            cut: self.cut(),
            scratch: Vec::new(),
        }))
    }

    /// A convolution with everything after it.
    fn conv_chain_kernel(&mut self, input: Located, output: Located) -> Option<Box<dyn Kernel>> {
        let count = self.steps.len();
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
        let Machine { threads, block_bytes, .. } = self.machine;
        let panels = packing(self.problem, &self.steps[index], self.cut());
        let pool_sizes = pool.as_ref().map(|stage| &stage.sizes);
        let tiling = Tiling::new(&shape, pool_sizes, block_bytes / 2, threads);
        let numbers = ConvKernel::scratch_numbers(&shape, pool_sizes, &tiling);
        let scratch = self.scratch(numbers);
        let kernel =
            ConvKernel { shape, input, filter, panels, output, tail, pool, tiling, scratch };
        Some(Box::new(kernel))
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
        let Machine { threads, block_bytes, .. } = self.machine;
        let block = shape.block_in_cache(linear.is_some(), threads, block_bytes / 4);
        let projection = match linear {
            Some(at) => Some(self.layer(at, count, block)?),
            None => None,
        };
        let kernel = AttentionKernel {
            shape,
            block,
            scores,
            stages,
            values: pv.and_then(|at| self.operand(at)),
            tail,
            projection,
            output,
            cut: self.cut(),
            scratch: Vec::new(),
        };
        Some(self.with_scratch(kernel))
    }

    fn with_scratch(&mut self, kernel: AttentionKernel) -> Box<dyn Kernel> {
        let scratch = self.scratch(kernel.scratch_numbers());
        Box::new(AttentionKernel { scratch, ..kernel })
    }

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
}
