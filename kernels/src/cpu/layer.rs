//! A linear layer with what follows it, on tiles or blocks of rows.

use std::ops::Range;

use fusion_cost_model::DType;
use pulp::Arch;

use super::element::{Element, Left, Uniform};
use super::factors::Factors;
use super::gemm::{Grid, share};
use super::kernel::Located;
use super::panels::Panels;
use super::row_stage::RowStage;
use super::row_target::Target;
use super::strip::{Source, Strip};
use super::tail::{Block, Rows, Stretch, Tail};
use super::tensors::Tensors;

/// A linear layer and what follows it up to the next one.
#[derive(Debug, Clone)]
pub(crate) struct Layer<E: Left = f32> {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) w: Located<E::Weight>,
    /// How the weights are packed.
    pub(crate) panels: Panels,
    /// Bytes of the rows of the input that stay in the second-level cache.
    pub(crate) block_bytes: usize,
    /// Pointwise ops, applied to the result while it is hot.
    pub(crate) tail: Tail<E::Between>,
    /// What comes after the first op that needs whole rows, with that op.
    pub(crate) stages: Vec<RowStage<E::Between>>,
    /// Where sums wait that the target cannot hold, for each thread; nothing for f32.
    pub(crate) sums: Vec<Sums>,
    /// What all sums are multiplied with.
    pub(crate) scale: f32,
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

impl<E: Left> Layer<E> {
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

    /// Computes a block of the GEMM, and applies the tail to it while it is hot. The rows of the
    /// block count from `first_row`, which is where `source` and `target` begin; its columns are those of
    /// whole panels.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply`], for the rows and columns of the block.
    pub(crate) unsafe fn block<O: Element>(
        &self,
        arch: Arch,
        thread: usize,
        source: *const E,
        target: *mut O,
        first_row: usize,
        (rows, cols): (Range<usize>, Range<usize>),
    ) {
        let Self { k, n, ref tail, .. } = *self;
        let cut = self.panels.cut;
        let block = |rows: &Range<usize>, cols: Range<usize>| {
            let offset = rows.start * n + cols.start;
            Block {
                data: target.wrapping_add(offset),
                stride: n,
                rows: rows.len(),
                first: Stretch {
                    col: cols.start,
                    element: first_row * n + offset,
                    len: cols.len(),
                },
                matrix_cols: n,
            }
        };
        for (rows, cols) in self.parts(&rows, &cols) {
            for start in cols.clone().step_by(cut.width) {
                let tile = block(&rows, start..(start + cut.width).min(cols.end));
                // SAFETY: the caller's guarantee.
                unsafe { self.tile(arch, thread, source.wrapping_add(rows.start * k), &tile) };
            }
            let part = block(&rows, cols);
            if let Some(data) = O::as_f32(part.data) {
                // SAFETY: the caller's guarantee.
                unsafe { tail.apply_after_epilogue::<E>(arch, &part.at(data)) };
            }
        }
    }

    /// Rows and columns of a block that are multiplied before the ops after the epilogue are applied to
    /// them: all panels, of as many rows as half of the second-level cache holds beside the weights, or
    /// else a few panels of all rows.
    ///
    /// Ops go through long rows faster than through those of a panel: behind a GEMM of 4096 x 64 x 256, a
    /// GELU on each panel took 1.3 times as long as on whole rows. But the weights of all panels may
    /// push the first sums out of the cache: a bias, a GELU and a GEMM of 77 x 333 x 515 took 1.03 times
    /// as long with the GELU after all panels as after each four.
    fn parts(
        &self,
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        /// Panels that are multiplied together where the weights of all of them are too many.
        const FEW_PANELS: usize = 4;
        let width = self.panels.cut.width;
        // What is not f32 is rounded a panel at a time anyway.
        let goes_on = E::DTYPE == DType::F32 && self.tail.goes_on_after_epilogue::<E>();
        let numbers = if goes_on { self.block_bytes / size_of::<f32>() } else { usize::MAX };
        // A quarter of the cache, twice.
        let of_all_cols = (numbers.saturating_mul(2) / cols.len().max(1)).saturating_sub(self.k);
        let (most_rows, most_cols) = if of_all_cols >= Grid::MIN_ROWS {
            (of_all_cols, cols.len())
        } else {
            let panels = numbers / (rows.len().max(1) * width);
            (rows.len(), panels.clamp(1, FEW_PANELS) * width)
        };
        let (rows, cols) = (rows.clone(), cols.clone());
        let count = rows.len().div_ceil(most_rows.max(1));
        (0..count).flat_map(move |part| {
            let of_part = share(rows.len(), part, count);
            let of_part = rows.start + of_part.start..rows.start + of_part.end;
            let end = cols.end;
            let starts = cols.clone().step_by(most_cols.max(1));
            starts.map(move |col| (of_part.clone(), col..(col + most_cols).min(end)))
        })
    }

    /// Multiplies the rows of a tile, which begin at `source`, with its panel of the weights. Sums that
    /// the target cannot hold go through the tail.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply`], for the rows and columns of the tile.
    unsafe fn tile<O: Element>(
        &self,
        arch: Arch,
        thread: usize,
        source: *const E,
        tile: &Block<O>,
    ) {
        let Self { k, n, w, ref tail, .. } = *self;
        let (cut, Stretch { col, len, .. }) = (self.panels.cut, tile.first);
        let in_target = O::as_f32(tile.data);
        let (sums, stride) = match in_target {
            Some(sums) => (sums, n),
            None => (self.sums[thread].tile.at(0), cut.width),
        };
        let (place, panel_stride) = self.panels.place(col);
        let strip = Strip {
            rows: tile.rows,
            k,
            cols: len,
            source: Source::rows(source, k),
            panel: w.at(place).cast_const(),
            panel_stride,
            is_padded: true,
            target: sums,
            target_stride: stride,
            factors: Factors::all(&raw const self.scale),
            epilogue: tail.epilogue::<E>(col),
            depth: cut.depth,
        };
        // SAFETY: the caller's guarantee; a tile of sums has rows of whole panels.
        unsafe {
            E::compute(strip, arch, cut);
            if in_target.is_none() {
                tail.apply_into(arch, Rows { data: sums.cast_const(), stride }, tile);
            }
        }
    }
}

impl<E: Uniform> Layer<E> {
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
        let blocks = grid.blocks(0, 1);
        let whole_rows = first_row..first_row + rows;
        // SAFETY: the caller's guarantee; a block is part of the rows.
        unsafe {
            if self.stages.is_empty() {
                blocks.for_each(|block| self.block(arch, thread, source, target, first_row, block));
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
            blocks.for_each(|block| self.block(arch, thread, source, sums, first_row, block));
            RowStage::apply_all(&self.stages, arch, sums.cast_const(), target, whole_rows, self.n);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::conforms::{conforms, cpus};

    /// Blocks of more rows, and of more columns, than a second-level cache holds, and rests of both.
    #[test]
    fn ops_after_the_epilogue_reach_every_part_of_a_block() {
        for mut cpu in cpus() {
            for chain in ["linear_bias_gelu", "linear+add+bias", "linear+bias+gelu+softmax"] {
                for size in ["m5003.k3.n65", "m61.k3.n5007", "m200.k2.n1001"] {
                    conforms(&mut cpu, &format!("{chain}/f32/{size}"));
                }
            }
        }
    }
}
