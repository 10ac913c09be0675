//! What multiplies 8-bit integers: a linear layer or a convolution, with pointwise ops on its sums.
//!
//! The sums are f32, so that the ops after a product are built as those of an f32 problem.

use std::ops::Range;

use fusion_cost_model::kernel::Step;
use fusion_cost_model::{Op, Pointwise, Problem, Rewrite};

use super::{Builder, Machine, Plan, packing};
use crate::cpu::conv::{ConvKernel, Room as ConvRoom, Shape as ConvShape, Tiling};
use crate::cpu::element::{Element, Stored};
use crate::cpu::kernel::{Kernel, Located};
use crate::cpu::layer::{Layer, Sums};
use crate::cpu::linear::LinearKernel;
use crate::cpu::requantize::RequantizeKernel;
use crate::cpu::tensors::TensorId;
use crate::inputs::scale_of_sums;

const REQUANTIZE: Op = Op::Pointwise(Pointwise::Requantize);

const fn is_product(op: Op) -> bool {
    matches!(op, Op::Linear | Op::Conv2d)
}

/// How the output of a problem is stored.
fn output_of(problem: &Problem) -> Stored {
    let requantizes = problem.chain().last() == Some(&REQUANTIZE);
    if requantizes { Stored::U8 } else { Stored::F32 }
}

impl<'p> Builder<'p, f32> {
    pub(super) fn of_integers(problem: &'p Problem, machine: Machine) -> Self {
        let of_input = |step: &Step, flows: bool| match (is_product(step.op), flows) {
            (true, true) => Stored::U8,
            (true, false) => Stored::I8,
            (false, _) => Stored::F32,
        };
        Self::with(problem, machine, machine.cuts.bytes, of_input, output_of(problem))
    }

    /// `None` after any rewrite, which would quantise weights anew. A problem of integers is a
    /// product, or none, with pointwise ops on its sums.
    pub(super) fn plan_of_integers(mut self, rewrite: Option<Rewrite>) -> Option<Plan> {
        if rewrite.is_some() {
            return None;
        }
        let unfused = self.unfused_of_integers()?;
        let of_unfused = self.scratch_bytes;
        let (input, output) = (self.inputs[0].id, self.output);
        let fused = self.kernel_of_integers(0..self.steps.len(), input, output)?;
        let Self { table, inputs, output, scratch_bytes, .. } = self;
        let scratch_bytes = [of_unfused, scratch_bytes - of_unfused];
        let stored = output_of(self.problem);
        Some(Plan { table, inputs, folded: None, output, stored, unfused, fused, scratch_bytes })
    }

    /// One kernel per op. Those between a product and what requantises its sums work in place.
    fn unfused_of_integers(&mut self) -> Option<Vec<Box<dyn Kernel>>> {
        let ends_in_f32 = output_of(self.problem) == Stored::F32;
        let mut source = self.inputs[0].id;
        let mut kernels = Vec::new();
        for index in 0..self.steps.len() {
            let Step { op, output, .. } = self.steps[index];
            let target = match (op, index) {
                (REQUANTIZE, _) => self.output,
                (_, 0) if ends_in_f32 => self.output,
                (_, 0) => self.table.add::<f32>(output.elements() as usize),
                _ => source,
            };
            kernels.push(self.kernel_of_integers(index..index + 1, source, target)?);
            source = target;
        }
        Some(kernels)
    }

    /// The kernel of some neighbouring steps.
    fn kernel_of_integers(
        &mut self,
        range: Range<usize>,
        input: TensorId,
        output: TensorId,
    ) -> Option<Box<dyn Kernel>> {
        let requantizes = self.steps[range.end - 1].op == REQUANTIZE;
        let (first, range_of_ops) = (self.steps[range.start].op, range.start + 1..range.end);
        match (first, requantizes) {
            (Op::Linear, true) => self.linear_of_integers::<u8>(range_of_ops, input, output),
            (Op::Linear, false) => self.linear_of_integers::<f32>(range_of_ops, input, output),
            (Op::Conv2d, true) => self.conv_of_integers::<u8>(range_of_ops, input, output),
            (Op::Conv2d, false) => self.conv_of_integers::<f32>(range_of_ops, input, output),
            (_, false) => self.rows_kernel(range, input.into(), output.into()),
            (_, true) => {
                let sums = self.steps[range.start].input;
                Some(Box::new(RequantizeKernel {
                    rows: sums.rows as usize,
                    cols: sums.cols as usize,
                    input: input.into(),
                    output: output.into(),
                    tail: self.tail(range),
                }))
            }
        }
    }

    /// The linear layer with some of the ops after it, whose results are `O`.
    fn linear_of_integers<O: Element>(
        &mut self,
        ops: Range<usize>,
        x: TensorId,
        y: TensorId,
    ) -> Option<Box<dyn Kernel>> {
        let step = self.steps[0];
        let rows = step.input.rows as usize;
        let mut layer = Layer::<u8> {
            k: step.input.cols as usize,
            n: step.output.cols as usize,
            w: self.operand(0)?.stored_as(),
            panels: packing(self.problem, &step, self.machine.cuts.bytes)?,
            block_bytes: self.machine.block_bytes / 2,
            tail: self.tail(ops),
            stages: Vec::new(),
            sums: Vec::new(),
            scale: scale_of_sums(&step),
        };
        if O::STORED != Stored::F32 {
            let sums = self.scratch(layer.sums_numbers(rows));
            layer.sums = sums.into_iter().map(|[tile, rows]| Sums { tile, rows }).collect();
        }
        let grid = layer.grid(rows, self.machine.threads);
        let (x, y): (Located<u8>, Located<O>) = (x.into(), y.into());
        Some(Box::new(LinearKernel { layer, x, y, grid }))
    }

    /// The same of the convolution.
    fn conv_of_integers<O: Element>(
        &mut self,
        ops: Range<usize>,
        input: TensorId,
        output: TensorId,
    ) -> Option<Box<dyn Kernel>> {
        let step = self.steps[0];
        let shape = ConvShape::from(self.problem.sizes().conv()?);
        let Machine { threads, block_bytes, cuts, .. } = self.machine;
        let tiling = Tiling::new::<u8>(&shape, None, block_bytes / 2, threads);
        let width = cuts.bytes.width;
        let [of_input, rest @ ..] = ConvKernel::<u8, O>::room_numbers(&shape, None, &tiling, width);
        let inputs = self.scratch::<u8, 1>([of_input]);
        let rest = self.scratch::<f32, 2>(rest);
        let rooms = inputs.into_iter().zip(rest);
        let rooms = rooms.map(|([input], [tile, sums])| ConvRoom { input, tile, sums }).collect();
        Some(Box::new(ConvKernel::<u8, O> {
            shape,
            input: input.into(),
            filter: self.operand(0)?.stored_as(),
            panels: packing(self.problem, &step, cuts.bytes),
            cut: cuts.bytes.one_by_one(),
            output: output.into(),
            tail: self.tail(ops),
            pool: None,
            tiling,
            scale: scale_of_sums(&step),
            rooms,
        }))
    }
}
