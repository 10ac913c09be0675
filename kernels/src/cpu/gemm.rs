//! GEMMs of the `gemm` crate, and how the results of GEMMs are cut among threads.

use std::ops::Range;

use gemm::Parallelism;

/// A matrix in memory: element (row, col) lies at `data + row * row_stride + col * col_stride`.
#[derive(Clone, Copy)]
pub(crate) struct View {
    pub(crate) data: *const f32,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl View {
    /// A row-major matrix whose rows are `stride` numbers apart.
    pub(crate) const fn rows(data: *const f32, stride: usize) -> Self {
        Self { data, row_stride: stride, col_stride: 1 }
    }
}

/// Sets up the `gemm` crate for this process.
///
/// It packs its left side only from 8 rows on by default; from 2 rows on it is twice as fast at
/// 32 x 4096 x 4096 (68 against 31 GFLOP/s on one AVX-512 thread) and no slower elsewhere.
pub(crate) fn configure() {
    gemm::set_lhs_packing_threshold_single_thread(2);
}

/// `target = scale * left * right` on the calling thread, with `left` `[m, k]`, `right` `[k, n]`
/// and the rows of `target` `stride` numbers apart.
///
/// # Safety
///
/// The matrices must lie in valid memory, and no other thread may access the target or write the
/// operands meanwhile.
pub(crate) unsafe fn gemm(
    [m, k, n]: [usize; 3],
    target: *mut f32,
    stride: usize,
    left: View,
    right: View,
    scale: f32,
) {
    // SAFETY: the caller guarantees the memory. Strides and sizes are those of tensors in memory,
    // which are smaller than isize::MAX bytes.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            target,
            1,
            stride.cast_signed(),
            false,
            left.data,
            left.col_stride.cast_signed(),
            left.row_stride.cast_signed(),
            right.data,
            right.col_stride.cast_signed(),
            right.row_stride.cast_signed(),
            0.0,
            scale,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// How an `m x n` result is cut into tiles of some rows of one panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    m: usize,
    n: usize,
    /// Blocks of rows; a tile is one block.
    blocks: usize,
    tile_cols: usize,
    /// Whether the threads share the rows, or else the panels.
    by_rows: bool,
}

impl Grid {
    /// Fewer rows than this are not worth reading all weights for.
    pub(crate) const MIN_ROWS: usize = 48;

    /// The most rows of a tile, if `rows_in_cache` rows stay in the cache.
    pub(crate) fn most_rows(rows_in_cache: usize) -> usize {
        rows_in_cache.max(Self::MIN_ROWS)
    }

    /// A grid with panels of `width` columns and at most `rows_in_cache` rows in a tile, which
    /// `threads` threads share.
    ///
    /// Each thread has rows of its own where there are more of them than columns, or too few panels.
    /// Otherwise each has panels of its own, so that none reads all weights.
    pub(crate) fn new(
        [m, n]: [usize; 2],
        width: usize,
        rows_in_cache: usize,
        threads: usize,
    ) -> Self {
        /// Fewer than this are not worth the micro-kernel.
        const FEW_ROWS: usize = 12;
        let by_rows = if n.div_ceil(width) < 2 * threads {
            m >= FEW_ROWS * threads
        } else {
            m >= Self::MIN_ROWS * threads && m >= n
        };
        let blocks = m.div_ceil(Self::most_rows(rows_in_cache));
        // A multiple of the threads where they share rows, so that the shares are equal.
        let blocks = if by_rows { blocks.next_multiple_of(threads) } else { blocks };
        Self { m, n, blocks, tile_cols: width, by_rows }
    }

    /// Rows and columns of the blocks of a thread: whole panels, of as many rows as a tile has.
    pub(crate) fn blocks(
        &self,
        thread: usize,
        threads: usize,
    ) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let Self { m, n, blocks, tile_cols, by_rows } = *self;
        let panels = n.div_ceil(tile_cols);
        let (of_thread, panels) = if by_rows {
            (share(blocks, thread, threads), 0..panels)
        } else {
            (0..blocks, share(panels, thread, threads))
        };
        let cols = panels.start * tile_cols..(panels.end * tile_cols).min(n);
        let of_thread = if cols.is_empty() { 0..0 } else { of_thread };
        of_thread.map(move |block| (share(m, block, blocks), cols.clone()))
    }
}

/// The share of `count` things that thread `index` of `threads` takes: contiguous, and as even
/// as can be.
pub(crate) fn share(count: usize, index: usize, threads: usize) -> Range<usize> {
    count * index / threads..count * (index + 1) / threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_blocks_cover_every_element_once(
            m in 1_usize..300,
            n in 1_usize..900,
            width in 1_usize..65,
            in_cache in 1_usize..200,
            threads in 1_usize..9,
        ) {
            let grid = Grid::new([m, n], width, in_cache, threads);
            let mut covered = vec![0_u8; m * n];
            for (rows, cols) in (0..threads).flat_map(|thread| grid.blocks(thread, threads)) {
                prop_assert!(!rows.is_empty() && !cols.is_empty());
                prop_assert!(cols.start.is_multiple_of(width));
                for row in rows {
                    for col in cols.clone() {
                        covered[row * n + col] += 1;
                    }
                }
            }
            prop_assert!(covered.iter().all(|&count| count == 1));
        }

        #[test]
        fn shares_cover_everything_once(count in 0_usize..100, threads in 1_usize..9) {
            let mut next = 0;
            for index in 0..threads {
                let share = share(count, index, threads);
                prop_assert_eq!(share.start, next);
                next = share.end;
            }
            prop_assert_eq!(next, count);
        }
    }

    #[test]
    fn threads_get_equal_work_at_common_sizes() {
        for (m, n) in [(512, 512), (1024, 1024), (128, 3072), (32, 4096), (4096, 64), (30, 64)] {
            let grid = Grid::new([m, n], 64, 500, 2);
            let work = |thread| {
                let blocks = grid.blocks(thread, 2);
                blocks.map(|(rows, cols)| rows.len() * cols.len()).sum::<usize>()
            };
            assert_eq!(work(0), work(1), "{m} x {n}");
        }
    }
}
