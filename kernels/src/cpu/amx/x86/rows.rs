//! Which rows of a strip are the rows of a tile.

use std::ops::Range;

use super::tiles::ROWS;
use crate::cpu::gemm::share;

/// The rows of one tile after the other: of one line each, and about as many in each tile of a line.
pub(super) struct RowsOfTiles {
    rows: usize,
    /// Rows in a line.
    line: usize,
    /// The rows of the line that is being cut.
    of_line: Range<usize>,
    tile: usize,
}

impl RowsOfTiles {
    /// Cuts these rows; the first one begins a line.
    pub(super) fn new(rows: usize, line: usize) -> Self {
        Self { rows, line, of_line: 0..rows.min(line), tile: 0 }
    }
}

impl Iterator for RowsOfTiles {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        if self.of_line.is_empty() {
            return None;
        }
        let tiles = self.of_line.len().div_ceil(ROWS);
        let rows = share(self.of_line.len(), self.tile, tiles);
        let first = self.of_line.start;
        self.tile += 1;
        if self.tile == tiles {
            let end = self.of_line.end;
            self.of_line = end..self.rows.min(end.saturating_add(self.line));
            self.tile = 0;
        }
        Some(first + rows.start..first + rows.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_is_in_one_tile_of_one_line(
            rows in 0_usize..300, line in prop_oneof![1_usize..70, Just(usize::MAX)],
        ) {
            let mut next = 0;
            for tile in RowsOfTiles::new(rows, line) {
                prop_assert_eq!(tile.start, next);
                prop_assert!((1..=ROWS).contains(&tile.len()));
                prop_assert_eq!(tile.start / line, (tile.end - 1) / line);
                next = tile.end;
            }
            prop_assert_eq!(next, rows);
        }
    }
}
