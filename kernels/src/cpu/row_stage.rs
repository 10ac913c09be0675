//! What is done to each row by itself: the steps of a row-by-row chain between its linear layers.

use std::ops::Range;

use pulp::Arch;

use super::row_ops::RowOp;
use super::tail::{Stretch, Tail};
use super::tensors::Tensors;

/// What is done to each row by itself.
#[derive(Debug, Clone)]
pub(crate) enum RowStage {
    Tail(Tail),
    RowOp(RowOp),
}

impl RowStage {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Tail(tail) => tail.name(),
            Self::RowOp(op) => op.name().to_owned(),
        }
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        match self {
            Self::Tail(tail) => tail.locate(tensors),
            Self::RowOp(op) => op.locate(tensors),
        }
    }

    /// # Safety
    ///
    /// As for [`Tail::fold`].
    pub(crate) unsafe fn fold(&self, arch: Arch) {
        if let Self::Tail(tail) = self {
            // SAFETY: the caller's guarantee.
            unsafe { tail.fold(arch) };
        }
    }

    /// Takes rows through stages: reads them from `source`, leaves them in `target`. The rows lie
    /// one after the other, `cols` numbers each; `rows` is where they are in the whole matrix.
    ///
    /// A few rows at a time go through all stages, so that they stay in the first-level cache.
    ///
    /// # Safety
    ///
    /// Source and target must be valid for the rows, the operands of the stages must cover them,
    /// and no other thread may write any of them.
    pub(crate) unsafe fn apply_all(
        stages: &[Self],
        arch: Arch,
        source: *const f32,
        target: *mut f32,
        rows: Range<usize>,
        cols: usize,
    ) {
        /// Numbers that go through the stages together, 8 KiB.
        const GROUP: usize = 2048;
        let group = (GROUP / cols.max(1)).max(1);
        for start in rows.clone().step_by(group) {
            let count = group.min(rows.end - start);
            let offset = (start - rows.start) * cols;
            let target = target.wrapping_add(offset);
            let mut from = source.wrapping_add(offset);
            for stage in stages {
                // SAFETY: the caller's guarantee; after the first stage the rows are in the
                // target.
                unsafe {
                    match stage {
                        Self::Tail(tail) => {
                            let first = Stretch { col: 0, element: start * cols, len: cols };
                            tail.apply(arch, from, target, first, count);
                        }
                        Self::RowOp(op) => op.apply(arch, from, target, count, cols),
                    }
                }
                from = target.cast_const();
            }
        }
    }
}
