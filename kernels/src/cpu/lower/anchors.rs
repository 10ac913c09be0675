//! Convolutions, pools and attention.

use fusion_cost_model::kernel::Form;
use fusion_cost_model::{DType, Op, Pointwise};

use super::{Builder, Machine, packing};
use crate::cpu::attention::{AttentionKernel, Room, Scale, Scores, Shape as AttentionShape};
use crate::cpu::conv::{ConvKernel, PoolStage, Room as ConvRoom, Shape as ConvShape, Tiling};
use crate::cpu::element::Uniform;
use crate::cpu::kernel::{Kernel, Located};
use crate::cpu::max_pool::MaxPoolKernel;
use crate::cpu::tail::Tail;
use crate::inputs::attention_scale;

impl<E: Uniform> Builder<'_, E> {
    /// The kernel of one of these ops.
    pub(super) fn unfused_anchor(
        &mut self,
        index: usize,
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
        match self.steps[index].op {
            Op::Conv2d => {
                let tail = Tail::default();
                self.conv_kernel(index, input, output, tail, None)
            }
            Op::MaxPool => self.pool_kernel(index, input, output),
            _ => self.product_kernel(index, input, output),
        }
    }

    /// That of the whole chain.
    pub(super) fn fused_anchor(
        &mut self,
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
        match self.problem.chain().form() {
            Form::Conv | Form::ConvPool => self.conv_chain_kernel(input, output),
            Form::Attention | Form::MultiheadLinear => self.attention_kernel(input, output),
            _ => self.unfused_kernel(0, input, output),
        }
    }

    fn pool_kernel(
        &mut self,
        index: usize,
        input: Located<E>,
        output: Located<E>,
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
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
        let op = self.steps[index].op;
        let shape = AttentionShape::new(self.problem.sizes().attention()?, false);
        let scores = match op {
            Op::Qk => self.queries_and_keys(index, input)?,
            _ => Scores::Given(input),
        };
        let Machine { threads, block_bytes, .. } = self.machine;
        // What is not f32 waits as f32 in a panel of scores.
        let block = match E::DTYPE {
            DType::F32 => shape.block_for_threads(threads),
            _ => shape.block_in_cache(false, threads, block_bytes / 4),
        };
        Some(self.with_rooms(AttentionKernel {
            shape,
            block,
            scores,
            stages: Vec::new(),
            values: if op == Op::Pv { self.operand(index) } else { None },
            tail: Tail::default(),
            projection: None,
            output,
            cut: self.machine.cuts.f32,
            cut_of_stored: self.cut(),
            rooms: Vec::new(),
        }))
    }

    /// A convolution with everything after it.
    fn conv_chain_kernel(
        &mut self,
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
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
        input: Located<E>,
        output: Located<E>,
        tail: Tail<E>,
        pool: Option<PoolStage<E>>,
    ) -> Option<Box<dyn Kernel>> {
        let shape = ConvShape::from(self.problem.sizes().conv()?);
        let filter = self.operand(index)?;
        let Machine { threads, block_bytes, .. } = self.machine;
        let cut = self.cut().one_by_one();
        let panels = packing(self.problem, &self.steps[index], self.cut());
        let pool_sizes = pool.as_ref().map(|stage| &stage.sizes);
        let tiling = Tiling::new::<E>(&shape, pool_sizes, block_bytes / 2, threads);
        let [input_numbers, rest @ ..] =
            ConvKernel::<E>::room_numbers(&shape, pool.as_ref(), &tiling, cut.width);
        let inputs = self.scratch::<E, 1>([input_numbers]);
        let rest = self.scratch::<f32, 2>(rest);
        let rooms = inputs.into_iter().zip(rest);
        let rooms = rooms.map(|([input], [tile, sums])| ConvRoom { input, tile, sums }).collect();
        let scale = 1.0;
        Some(Box::new(ConvKernel {
            shape,
            input,
            filter,
            panels,
            cut,
            output,
            tail,
            pool,
            tiling,
            scale,
            rooms,
        }))
    }

    fn attention_kernel(
        &mut self,
        input: Located<E>,
        output: Located<E>,
    ) -> Option<Box<dyn Kernel>> {
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
        // Scores that are the result need room for no values beside them, and without stages none in a
        // cache: each block of queries reads all keys of its head once more.
        let block = match (pv, E::DTYPE) {
            (None, DType::F32) if stages.is_empty() => shape.block_for_threads(threads),
            (None, DType::F32) => shape.block_in_cache(false, threads, block_bytes / 2),
            _ => shape.block_in_cache(linear.is_some(), threads, block_bytes / 4),
        };
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
            cut: self.machine.cuts.f32,
            cut_of_stored: self.cut(),
            rooms: Vec::new(),
        };
        Some(self.with_rooms(kernel))
    }

    fn with_rooms(&mut self, kernel: AttentionKernel<E>) -> Box<dyn Kernel> {
        let stored = self.scratch::<E, 4>(kernel.stored_room_numbers());
        let in_f32 = self.scratch::<f32, 5>(kernel.room_numbers());
        let rooms = stored.into_iter().zip(in_f32).map(|(stored, in_f32)| {
            let [joined, packed_keys, packed_values, probabilities] = stored;
            let [panel, keys, queries, values, result] = in_f32;
            Room {
                joined,
                panel,
                keys,
                queries,
                values,
                result,
                packed_keys,
                packed_values,
                probabilities,
            }
        });
        Box::new(AttentionKernel { rooms: rooms.collect(), ..kernel })
    }

    fn queries_and_keys(&self, step: usize, queries: Located<E>) -> Option<Scores<E>> {
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
