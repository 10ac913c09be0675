//! GEMMs by `wgmma` and TMA of sm_90a.

use fusion_cost_model::{DType, Op};

use super::Builder;
use super::gemm::{Gemm, Left, scale_text};
use super::operand::{Given, Operand};
use super::phase::{self, Parameters, Phase};
use crate::gpu::architecture::MatrixCore;
use crate::gpu::launch::TensorMap;

/// Threads of its blocks: a warpgroup that copies and two that multiply.
pub(super) const THREADS: u32 = 384;
/// Rows of a tile, 64 for each of the two.
const TILE_ROWS: u32 = 128;
/// How far a stage goes along k: as far as the swizzle, 128 bytes.
const STAGE_DEPTH: u32 = 64;
/// Blocks that share what they read of B.
const CLUSTER: u32 = 2;
/// Rows of tiles from which on one more, which a cluster would do for nothing, hardly counts.
const MANY_ROWS: u64 = 16;
/// Rows and columns of the boxes in which results are stored, and how many of them shared memory
/// holds: two for each of the warpgroups that multiply.
const STORED_BOX: u32 = 64;
const STORED_BOXES: u32 = 4;

/// A tile's columns with as many stages as shared memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    cols: u32,
    stages: u32,
    /// Its time, in hundredths of the time of the widest. Less than half as wide, it reads more
    /// shared memory and L2 for each GEMM.
    cost: u64,
}

const SHAPES: [Shape; 3] = [
    Shape { cols: 256, stages: 4, cost: 100 },
    Shape { cols: 128, stages: 6, cost: 60 },
    Shape { cols: 64, stages: 8, cost: 40 },
];
/// The narrowest is only for matrices that have no more columns.
const NARROWEST: u64 = 64;

impl Shape {
    /// 16-bit numbers of A and B, and two barriers of 8 bytes, for each stage. What is one matrix and
    /// not many is stored from there, too.
    const fn shared_bytes(self, batches: u64) -> u32 {
        let stored = if batches > 1 { 0 } else { STORED_BOXES * STORED_BOX * STORED_BOX * 2 };
        self.stages * ((TILE_ROWS + self.cols) * STAGE_DEPTH * 2 + 16) + stored
    }

    fn tiles(self, m: u64, n: u64, batches: u64) -> u64 {
        batches * m.div_ceil(TILE_ROWS.into()) * n.div_ceil(self.cols.into())
    }
}

impl Builder<'_> {
    /// Whether the problem's linear layers and attention are computed by `wgmma`: all of them or
    /// none, and in both variants, so that these differ by fusion and not by instructions. A fused
    /// kernel could not have both, since all its phases have the same threads.
    pub(super) fn on_hopper(&self) -> bool {
        let mut linear = self.steps.iter().filter(|step| step.op == Op::Linear);
        let suits = linear.all(|step| {
            let (m, k, n) = (step.input.rows, step.input.cols, step.output.cols);
            self.hopper_shape(m, n, k, 1).is_some()
        });
        suits && self.attention_suits_hopper()
    }

    /// Threads of kernels with linear layers, as many in every phase.
    pub(super) fn linear_threads(&self) -> u32 {
        if self.on_hopper() { THREADS } else { phase::THREADS }
    }

    /// The phase that computes a GEMM; `None` where the device has no `wgmma`, the operands do
    /// not suit TMA, or there are too few tiles for its processors. All phases of its
    /// kernel must run with [`THREADS`] threads.
    pub(super) fn hopper_gemm(&self, gemm: &Gemm, parameters: &mut Parameters) -> Option<Phase> {
        let Gemm { ref name, m, n, k, batches: [outer, inner], b, given, .. } = *gemm;
        let batches = outer * inner;
        let shape = self.hopper_shape(m, n, k, batches)?;
        let Left::Matrix(a) = gemm.a else { return None };
        let (b_rows, b_cols, b_box_rows, n_major) = match given {
            Given::Rows => (k, n, STAGE_DEPTH, 1),
            Given::Columns => (n, k, shape.cols, 0),
        };
        // One map goes over all batches, one behind the other.
        let dense = |operand: &Operand, rows: u64, cols: u64| {
            operand.stride == cols
                && (inner == 1 || operand.steps[1] == rows * cols)
                && (outer == 1 || operand.steps[0] == inner * rows * cols)
        };
        if !dense(&a, m, k) || !dense(&b, b_rows, b_cols) || gemm.pool.is_some() {
            return None;
        }
        // Each block does its share of the tiles in one call.
        let cluster = if batches == 1 { self.cluster(shape, m) } else { 1 };
        let clusters = m.div_ceil(u64::from(TILE_ROWS * cluster)) * n.div_ceil(shape.cols.into());
        let blocks = (batches * clusters).min(u64::from(self.device.processors / cluster).max(1))
            * u64::from(cluster);
        let map = |operand: &Operand, rows, cols, box_rows| TensorMap {
            tensor: operand.tensor,
            bf16: self.problem.dtype() == DType::Bf16,
            batches: batches / operand.sharing,
            rows,
            cols,
            box_rows,
            box_cols: STAGE_DEPTH,
        };
        let sharing = parameters.factor(b.sharing);
        let a = parameters.map(map(&a, m, k, TILE_ROWS));
        let b = parameters.map(map(&b, b_rows, b_cols, b_box_rows));
        let [rows, cols, depth, count] = [m, n, k, blocks].map(|size| parameters.size(size));
        let scale = scale_text(gemm.scale, parameters);
        let (class, output) = if batches > 1 {
            let c = parameters.write(gemm.output);
            let [all, inner] = [batches, inner].map(|count| parameters.size(count));
            ("BatchedOutput", format!("{c}, {rows}, {cols}, {all}, {inner}"))
        } else {
            let dense = Operand { tensor: gemm.output, stride: n, steps: [0, 0], sharing: 1 };
            let c = parameters.map(map(&dense, m, n, STORED_BOX));
            ("BoxOutput", format!("{c}, {rows}, {cols}"))
        };
        let tail = self.tail_text(&format!("{name}_tail"), gemm.tail.clone(), parameters);
        Some(Phase {
            name: format!(
                "{name}_wgmma_{TILE_ROWS}x{}x{STAGE_DEPTH}{}",
                shape.cols,
                if cluster > 1 { "_pairs" } else { "" }
            ),
            headers: vec!["hopper/gemm.h"],
            definitions: tail.definition,
            tile: format!(
                "{{ const {name}_tail tail = {construct}; \
                 const port::hopper::{class}<T, {name}_tail> output = {{{output}, {scale}, tail}}; \
                 port::hopper::gemm<T, {tile_cols}, {stages}, {n_major}, {cluster}>({a}, {b}, output, {depth}, \
                 {sharing}, tile, {count}); }}",
                construct = tail.construct,
                tile_cols = shape.cols,
                stages = shape.stages,
            ),
            tiles: blocks,
            threads: THREADS,
            shared_bytes: shape.shared_bytes(batches),
            cluster,
        })
    }

    /// Blocks of a cluster for a GEMM of one matrix. Kernels of several phases have none, whose blocks
    /// wait for each other in other ways, and so has no kernel of a problem with such a one.
    fn cluster(&self, shape: Shape, m: u64) -> u32 {
        let mut others = self.steps.iter().skip(1);
        let one_phase = self.steps.first().is_some_and(|step| step.op == Op::Linear)
            && others.all(|step| step.op.is_pointwise());
        let rows = m.div_ceil(TILE_ROWS.into());
        let fits = rows.is_multiple_of(CLUSTER.into()) || rows >= MANY_ROWS;
        let has_boxes = u64::from(shape.cols) > NARROWEST && self.device.processors >= CLUSTER;
        if one_phase && fits && has_boxes { CLUSTER } else { 1 }
    }

    /// The shape of tiles whose rounds on all processors take least time; `None` where the device
    /// has no `wgmma`, rows are not multiples of 16 bytes, or most processors would have no tile.
    pub(super) fn hopper_shape(&self, m: u64, n: u64, k: u64, batches: u64) -> Option<Shape> {
        let numbers = matches!(self.problem.dtype(), DType::F16 | DType::Bf16);
        if self.device.architecture.matrix_core != MatrixCore::Wgmma || !numbers {
            return None;
        }
        // Coordinates are i32, and a last tile goes beyond the end.
        let within = |size: u64| size < 1 << 30;
        let suits = |cols: u64| cols.is_multiple_of(8) && within(cols);
        if !suits(n) || !suits(k) || !within(m) || !within(batches) {
            return None;
        }
        let processors = u64::from(self.device.processors.max(1));
        let fits = |shape: &Shape| {
            shape.shared_bytes(batches) <= self.device.shared_bytes_per_block
                && (n <= NARROWEST || u64::from(shape.cols) > NARROWEST)
        };
        let time = |shape: &Shape| shape.tiles(m, n, batches).div_ceil(processors) * shape.cost;
        let shape = SHAPES.into_iter().filter(fits).min_by_key(time)?;
        // With half of the processors it is still quicker than `mma` on all of them.
        (2 * shape.tiles(m, n, batches) >= processors).then_some(shape)
    }
}

#[cfg(test)]
mod tests;
