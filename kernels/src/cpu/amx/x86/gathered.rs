//! Where the groups of a step lie: sixteen groups of each row, which a tile of the left side has.

use std::ops::Range;

use super::tiles::{Dot, GROUP_BYTES, ROW_BYTES, ROWS};
use crate::cpu::strip::{Source, Strip, divide};

/// Groups of a step.
pub(super) const GROUPS: usize = ROW_BYTES / GROUP_BYTES;

/// How the numbers of a row are cut into groups. None has numbers of two runs.
pub(super) struct Groups {
    /// Numbers of a run.
    run: usize,
    /// Groups of a run; the last one may lack numbers.
    of_run: usize,
    run_stride: usize,
    /// Groups of a row.
    pub(super) all: usize,
}

impl Groups {
    pub(super) fn new<E: Dot>(strip: &Strip<E>) -> Self {
        let run = strip.source.run.min(strip.k).max(1);
        let of_run = run.div_ceil(E::TOGETHER);
        Self { run, of_run, run_stride: strip.source.run_stride, all: strip.k / run * of_run }
    }

    /// Steps that all groups take.
    pub(super) fn steps(&self) -> usize {
        self.all.div_ceil(GROUPS)
    }

    /// The groups of a step.
    fn of_step(&self, step: usize) -> Range<usize> {
        step * GROUPS..((step + 1) * GROUPS).min(self.all)
    }

    /// At which number of a row a step begins whose numbers all lie side by side.
    pub(super) fn in_place<E: Dot>(&self, step: usize) -> Option<usize> {
        let (run, inside) = divide(step * GROUPS, self.of_run);
        let number = inside * E::TOGETHER;
        (number + GROUPS * E::TOGETHER <= self.run).then(|| run * self.run_stride + number)
    }

    /// Copies the numbers of a step of some rows, one row of a tile after the other, with zeros for those
    /// that are not there.
    ///
    /// # Safety
    ///
    /// The source must be valid for the rows, and `tile` for a whole tile.
    pub(super) unsafe fn gather<E: Dot>(
        &self,
        source: &Source<E>,
        rows: Range<usize>,
        step: usize,
        tile: *mut E,
    ) {
        let Self { run, of_run, run_stride, .. } = *self;
        // SAFETY: the caller's guarantee.
        unsafe { tile.cast::<u8>().write_bytes(0, ROWS * ROW_BYTES) };
        let groups = self.of_step(step);
        let mut group = groups.start;
        while group < groups.end {
            let (of, inside) = divide(group, of_run);
            let count = (of_run - inside).min(groups.end - group);
            let first = inside * E::TOGETHER;
            let numbers = (count * E::TOGETHER).min(run - first);
            for (place, row) in rows.clone().enumerate() {
                let from = source.row(row).wrapping_add(of * run_stride + first);
                let at = place * GROUPS + group - groups.start;
                // SAFETY: the caller's guarantee: these are numbers of the row, and of a row of the tile.
                unsafe { from.copy_to_nonoverlapping(tile.add(at * E::TOGETHER), numbers) };
            }
            group += count;
        }
    }
}
