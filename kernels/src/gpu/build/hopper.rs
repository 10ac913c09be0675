//! Matrix products by `wgmma` and bulk copies of sm_90a.

use std::ops::Range;

use fusion_cost_model::DType;

use super::Builder;
use super::phase::{Parameters, Phase};
use crate::gpu::architecture::MatrixCore;
use crate::gpu::plan::TensorMap;
use crate::gpu::tensors::TensorId;

/// `C = tail(A B)` with A `[m, k]`, B `[k, n]` and C `[m, n]`, all of them row-major.
#[derive(Debug, Clone)]
pub(super) struct Product {
    pub(super) a: TensorId,
    pub(super) b: TensorId,
    pub(super) c: TensorId,
    pub(super) m: u64,
    pub(super) n: u64,
    pub(super) k: u64,
    /// The pointwise steps that follow, as in [`Builder::tail`].
    pub(super) tail: Range<usize>,
}

/// Threads of its blocks: a warpgroup that copies and two that multiply.
const THREADS: u32 = 384;
/// Rows of a tile, 64 for each of the two.
const TILE_ROWS: u32 = 128;
/// How far a stage goes along k: as far as the swizzle, 128 bytes.
const STAGE_DEPTH: u32 = 64;

/// A tile's columns with as many stages as shared memory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    cols: u32,
    stages: u32,
    /// Its time, in hundredths of the time of the widest. Less than half as wide, it reads more
    /// shared memory and L2 for each product.
    cost: u64,
}

const SHAPES: [Shape; 2] =
    [Shape { cols: 256, stages: 4, cost: 100 }, Shape { cols: 128, stages: 6, cost: 60 }];

impl Shape {
    /// 16-bit numbers of A and B, and two barriers of 8 bytes, for each stage.
    const fn shared_bytes(self) -> u32 {
        self.stages * ((TILE_ROWS + self.cols) * STAGE_DEPTH * 2 + 16)
    }

    fn tiles(self, m: u64, n: u64) -> u64 {
        m.div_ceil(TILE_ROWS.into()) * n.div_ceil(self.cols.into())
    }
}

impl Builder<'_> {
    /// The phase that computes a product; `None` where the device has no `wgmma`, the sizes do not
    /// suit bulk copies, or there are too few tiles for its processors. All phases of its kernel
    /// must run with as many threads as it has.
    pub(super) fn hopper_product(
        &self,
        product: &Product,
        parameters: &mut Parameters,
    ) -> Option<Phase> {
        let shape = self.hopper_shape(product)?;
        let Product { m, n, k, .. } = *product;
        let processors = u64::from(self.device.processors.max(1));
        // Each block does its share of the tiles in one call.
        let blocks = shape.tiles(m, n).min(processors);
        let map = |tensor, rows, cols, box_rows| TensorMap {
            tensor,
            bf16: self.problem.dtype() == DType::Bf16,
            batches: 1,
            rows,
            cols,
            box_rows,
            box_cols: STAGE_DEPTH,
        };
        let a = parameters.map(map(product.a, m, k, TILE_ROWS));
        let b = parameters.map(map(product.b, k, n, STAGE_DEPTH));
        let c = parameters.write(product.c);
        let [rows, cols, depth, count] = [m, n, k, blocks].map(|size| parameters.size(size));
        let struct_name = format!("Tail{}", product.tail.start);
        let tail = self.tail_text(&struct_name, product.tail.clone(), parameters);
        Some(Phase {
            name: format!("wgmma_128x{}", shape.cols),
            headers: vec!["hopper/product.h"],
            definitions: tail.definition,
            tile: format!(
                "port::hopper::product<T, {}, {}>({a}, {b}, {c}, {rows}, {cols}, {depth}, tile, \
                 {count}, {});",
                shape.cols, shape.stages, tail.construct
            ),
            tiles: blocks,
            threads: THREADS,
            shared_bytes: shape.shared_bytes(),
        })
    }

    /// The shape of tiles whose rounds on all processors take least time.
    fn hopper_shape(&self, product: &Product) -> Option<Shape> {
        let Product { m, n, k, .. } = *product;
        let numbers = matches!(self.problem.dtype(), DType::F16 | DType::Bf16);
        if self.device.architecture.matrix_core != MatrixCore::Wgmma || !numbers {
            return None;
        }
        // Rows of multiples of 16 bytes; coordinates are i32, and a last tile goes beyond the end.
        let suits = |cols: u64| cols.is_multiple_of(8) && cols < 1 << 30;
        if !suits(n) || !suits(k) || m >= 1 << 30 {
            return None;
        }
        let processors = u64::from(self.device.processors.max(1));
        let fits = |shape: &Shape| shape.shared_bytes() <= self.device.shared_bytes_per_block;
        let time = |shape: &Shape| shape.tiles(m, n).div_ceil(processors) * shape.cost;
        let shape = SHAPES.into_iter().filter(fits).min_by_key(time)?;
        // With half of the processors it is still quicker than `mma` on all of them.
        (2 * shape.tiles(m, n) >= processors).then_some(shape)
    }
}
