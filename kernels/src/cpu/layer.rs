//! A linear layer with what follows it, on tiles or blocks of rows.

use std::ops::Range;

use fusion_cost_model::DType;
use pulp::Arch;

use super::element::Element;
use super::gemm::Grid;
use super::kernel::Located;
use super::panels::Panels;
use super::row_stage::RowStage;
use super::row_target::Target;
use super::strip::{Factors, Source, Strip};
use super::tail::{Block, Rows, Stretch, Tail};
use super::tensors::Tensors;

/// A linear layer and what follows it up to the next one.
#[derive(Debug, Clone)]
pub(crate) struct Layer<E = f32> {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) w: Located<E>,
    /// How the weights are packed.
    pub(crate) panels: Panels,
    /// Bytes of the rows of the input that stay in the second-level cache.
    pub(crate) block_bytes: usize,
    /// Pointwise ops, applied to each panel of the result while it is hot.
    pub(crate) tail: Tail<E>,
    /// What comes after the first op that needs whole rows, with that op.
    pub(crate) stages: Vec<RowStage<E>>,
    /// Where sums wait that the target cannot hold, for each thread; nothing for f32.
    pub(crate) sums: Vec<Sums>,
}

/// Where sums in f32 wait until they are rounded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums {
    /// Those of a tile, in rows of whole panels.
    pub(crate) tile: Located,
    /// Whole rows, for stages that need them.
    pub(crate) rows: Located,
}

impl Sums {
    fn locate(&mut self, tensors: &Tensors) {
        self.tile.locate(tensors);
        self.rows.locate(tensors);
    }
}

impl<E: Element> Layer<E> {
    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        self.w.locate(tensors);
        self.tail.locate(tensors);
        self.stages.iter_mut().for_each(|stage| stage.locate(tensors));
        self.sums.iter_mut().for_each(|sums| sums.locate(tensors));
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
    /// no other thread may write them or the operands, nor use the sums of `thread`.
    pub(crate) unsafe fn apply(
        &self,
        arch: Arch,
        thread: usize,
        source: *const E,
        target: *mut E,
        first_row: usize,
        rows: usize,
    ) {
        let grid = self.grid(rows, 1);
        let tiles = grid.tiles(0, 1);
        let whole_rows = first_row..first_row + rows;
        // SAFETY: the caller's guarantee; a tile is part of the rows.
        unsafe {
            if self.stages.is_empty() {
                tiles.for_each(|tile| self.tile(arch, thread, source, target, first_row, tile));
                return;
            }
            // Between the ops numbers stay f32: in the target where it has them, else in rows of sums.
            // There, stages may write over the first group of rows, since each group is read before.
            let (sums, room) = match E::as_f32(target) {
                Some(sums) => (sums, None),
                None => {
                    let sums = self.sums[thread].rows.at(0);
                    (sums, Some(sums))
                }
            };
            let target = Target { room, ..Target::plain(target) };
            tiles.for_each(|tile| self.tile(arch, thread, source, sums, first_row, tile));
            RowStage::apply_all(&self.stages, arch, sums.cast_const(), target, whole_rows, self.n);
        }
    }

    /// How a result of `rows` rows is cut into tiles that `threads` threads can share.
    pub(crate) fn grid(&self, rows: usize, threads: usize) -> Grid {
        Grid::new([rows, self.n], self.panels.cut.width, self.rows_in_cache(), threads)
    }

    /// Rows of the input that stay in the second-level cache, with their sums in a tile.
    fn rows_in_cache(&self) -> usize {
        let sums = if E::DTYPE == DType::F32 { 0 } else { self.panels.cut.width };
        self.block_bytes / (self.k * size_of::<E>() + sums * size_of::<f32>()).max(1)
    }

    /// Numbers of [`Sums`] that a thread needs for at most `rows` rows at a time: of a tile, and of
    /// whole rows.
    pub(crate) fn sums_numbers(&self, rows: usize) -> [usize; 2] {
        let tile_rows = Grid::most_rows(self.rows_in_cache()).min(rows);
        let whole_rows = if self.stages.is_empty() { 0 } else { rows };
        [tile_rows * self.panels.cut.width, whole_rows * self.n]
    }

    /// Computes a tile of the GEMM, and applies the tail to it while it is hot. The rows of the
    /// tile count from `first_row`, which is where `source` and `target` begin.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply`], for the rows and columns of the tile.
    pub(crate) unsafe fn tile<O: Element>(
        &self,
        arch: Arch,
        thread: usize,
        source: *const E,
        target: *mut O,
        first_row: usize,
        (rows, cols): (Range<usize>, Range<usize>),
    ) {
        let Self { k, n, w, ref tail, .. } = *self;
        let cut = self.panels.cut;
        let offset = rows.start * n + cols.start;
        let block = Block {
            data: target.wrapping_add(offset),
            stride: n,
            rows: rows.len(),
            first: Stretch { col: cols.start, element: first_row * n + offset, len: cols.len() },
            matrix_cols: n,
        };
        // Sums stay in the target where it has f32, as the micro-kernel for them leaves no padding.
        let in_target = O::as_f32(block.data).filter(|_| E::DTYPE == DType::F32);
        let (sums, stride) = match in_target {
            Some(sums) => (sums, n),
            None => (self.sums[thread].tile.at(0), cut.width),
        };
        let (place, panel_stride) = self.panels.place(cols.start);
        let strip = Strip {
            rows: rows.len(),
            k,
            cols: cols.len(),
            source: Source::rows(source.wrapping_add(rows.start * k), k),
            panel: w.at(place).cast_const(),
            panel_stride,
            target: sums,
            target_stride: stride,
            factors: Factors::one(),
            epilogue: tail.epilogue(cols.start),
            depth: cut.depth,
        };
        // SAFETY: the caller's guarantee; the columns of a tile are one panel of the weights, and a
        // tile of sums has rows of whole panels.
        unsafe {
            E::compute(strip, arch, cut);
            if in_target.is_some() {
                tail.apply_after_epilogue(arch, &block.at(sums));
            } else {
                tail.apply_into(arch, Rows { data: sums.cast_const(), stride }, &block);
            }
        }
    }
}
