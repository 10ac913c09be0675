//! GEMMs: the one core behind linear layers, convolutions and attention, in both
//! variants.

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

    /// The same memory seen as the transposed matrix.
    pub(crate) const fn transposed(self) -> Self {
        Self { row_stride: self.col_stride, col_stride: self.row_stride, ..self }
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

/// Columns of a panel: wide enough for the micro-kernel, narrow enough that a panel of the result
/// is still in the second-level cache when the tail is applied.
const PANEL_COLS: usize = 256;
/// Numbers in a tile of the result, 1 MiB: half of the second-level cache of current servers.
const TILE_NUMBERS: usize = 1 << 18;
/// Tiles are not split below this many rows or columns for the sake of more threads.
const MIN_SPLIT: usize = 64;

/// How an `m x n` result is cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    m: usize,
    n: usize,
    tile_rows: usize,
    tile_cols: usize,
}

impl Grid {
    /// A grid with tiles that stay in cache and can be shared among `threads`.
    ///
    /// Each thread has rows of its own where there are enough: threads that write neighbouring
    /// columns of the same rows would prefetch each other's lines. Within a thread the tiles are
    /// panels of columns, because a panel of rows would pack the whole right side again.
    pub(crate) fn new(m: usize, n: usize, threads: usize) -> Self {
        let panels = n.div_ceil(PANEL_COLS).max(1);
        let (blocks, panels) = if m / threads >= MIN_SPLIT {
            (threads, panels)
        } else if n / panels.next_multiple_of(threads) >= MIN_SPLIT {
            (1, panels.next_multiple_of(threads))
        } else {
            (1, panels)
        };
        let tile_cols = n.div_ceil(panels).next_multiple_of(16).min(n.max(1));
        let rows_in_cache = (TILE_NUMBERS / tile_cols).max(1);
        // A multiple of the threads where it is one already, so that the shares stay equal.
        let blocks = m.div_ceil(rows_in_cache).next_multiple_of(blocks).max(1);
        Self { m, n, tile_rows: m.div_ceil(blocks).max(1), tile_cols }
    }

    /// All rows of panels of columns.
    pub(crate) fn of_panels(m: usize, n: usize, width: usize) -> Self {
        Self { m, n, tile_rows: m.max(1), tile_cols: width }
    }

    /// How many tiles there are.
    pub(crate) fn len(&self) -> usize {
        self.m.div_ceil(self.tile_rows) * self.n.div_ceil(self.tile_cols)
    }

    /// Rows and columns of a tile; the panels of one block of rows are neighbours.
    pub(crate) fn tile(&self, index: usize) -> (Range<usize>, Range<usize>) {
        let panels = self.n.div_ceil(self.tile_cols);
        let row = index / panels * self.tile_rows;
        let col = index % panels * self.tile_cols;
        (row..(row + self.tile_rows).min(self.m), col..(col + self.tile_cols).min(self.n))
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
        fn the_tiles_cover_every_element_once(m in 1_usize..300, n in 1_usize..900, threads in 1_usize..9) {
            let grid = Grid::new(m, n, threads);
            let mut covered = vec![0_u8; m * n];
            for index in 0..grid.len() {
                let (rows, cols) = grid.tile(index);
                prop_assert!(!rows.is_empty() && !cols.is_empty());
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
        for (m, n) in [(512, 512), (1024, 1024), (128, 3072), (32, 4096), (4096, 64)] {
            assert_eq!(Grid::new(m, n, 2).len() % 2, 0, "{m} x {n}");
        }
    }
}
