//! A linear layer with what follows it, on tiles or blocks of rows.

use std::ops::Range;

use pulp::Arch;

use super::gemm::Grid;
use super::kernel::Located;
use super::panels::Panels;
use super::row_ops::Target;
use super::row_stage::RowStage;
use super::strip::{Factors, Source, Strip};
use super::tail::{Block, Stretch, Tail};
use super::tensors::Tensors;

/// A linear layer and what follows it up to the next one.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) w: Located,
    /// How the weights are packed.
    pub(crate) panels: Panels,
    /// Bytes of the rows of the input that stay in the second-level cache.
    pub(crate) block_bytes: usize,
    /// Pointwise ops, applied to each panel of the result while it is hot.
    pub(crate) tail: Tail,
    /// What comes after the first op that needs whole rows, with that op.
    pub(crate) stages: Vec<RowStage>,
}

impl Layer {
    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        self.w.locate(tensors);
        self.tail.locate(tensors);
        self.stages.iter_mut().for_each(|stage| stage.locate(tensors));
    }

    /// # Safety
    ///
    /// As for [`Tail::fold`].
    pub(crate) unsafe fn fold(&self, arch: Arch) {
        // SAFETY: the caller's guarantee.
        unsafe {
            self.tail.fold(arch);
            self.stages.iter().for_each(|stage| stage.fold(arch));
        }
    }

    /// Takes rows through the layer, from `source` (rows `k` apart) to `target` (rows `n` apart).
    ///
    /// # Safety
    ///
    /// Both must be valid for the rows, which are rows `first_row` and on of the whole matrix;
    /// no other thread may write them or the operands.
    pub(crate) unsafe fn apply(
        &self,
        arch: Arch,
        source: *const f32,
        target: *mut f32,
        first_row: usize,
        rows: usize,
    ) {
        for tile in self.grid(rows, 1).tiles(0, 1) {
            // SAFETY: the caller's guarantee; the tile is part of the rows.
            unsafe { self.tile(arch, source, target, first_row, tile) };
        }
        let rows = first_row..first_row + rows;
        let in_place = Target::plain(target);
        // SAFETY: as above.
        unsafe { RowStage::apply_all(&self.stages, arch, target, in_place, rows, self.n) };
    }

    /// How a result of `rows` rows is cut into tiles that `threads` threads can share.
    pub(crate) fn grid(&self, rows: usize, threads: usize) -> Grid {
        let rows_in_cache = self.block_bytes / size_of::<f32>() / self.k.max(1);
        Grid::new([rows, self.n], self.panels.cut.width, rows_in_cache, threads)
    }

    /// Computes a tile of the GEMM, and applies the tail to it while it is hot. The rows of the
    /// tile count from `first_row`, which is where `source` and `target` begin.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply`], for the rows and columns of the tile.
    pub(crate) unsafe fn tile(
        &self,
        arch: Arch,
        source: *const f32,
        target: *mut f32,
        first_row: usize,
        (rows, cols): (Range<usize>, Range<usize>),
    ) {
        let Self { k, n, w, ref tail, .. } = *self;
        let offset = rows.start * n + cols.start;
        let block = Block {
            data: target.wrapping_add(offset),
            stride: n,
            rows: rows.len(),
            first: Stretch { col: cols.start, element: first_row * n + offset, len: cols.len() },
            matrix_cols: n,
        };
        let (place, panel_stride) = self.panels.place(cols.start);
        let strip = Strip {
            rows: rows.len(),
            k,
            cols: cols.len(),
            source: Source::rows(source.wrapping_add(rows.start * k), k),
            panel: w.at(place).cast_const(),
            panel_stride,
            target: block.data,
            target_stride: n,
            factors: Factors::one(),
            epilogue: tail.epilogue(cols.start),
            depth: self.panels.cut.depth,
        };
        // SAFETY: the caller's guarantee; the columns of a tile are one panel of the weights.
        unsafe {
            strip.compute(arch);
            tail.apply_after_epilogue(arch, &block);
        }
    }
}
