//! What is done to each row by itself: the steps of a row-by-row chain between its linear layers.

use std::ops::Range;

use pulp::Arch;

use super::kernel::Located;
use super::row_ops::{Ahead, RowOp, Target};
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

    /// Rows that go through the stages together: as many as stay in the first-level cache.
    pub(crate) fn group(cols: usize) -> usize {
        /// Numbers that go through the stages together, 8 KiB.
        const GROUP: usize = 2048;
        (GROUP / cols.max(1)).max(1)
    }

    /// Takes rows through stages: reads them from `source`, leaves them in the target, a
    /// [`Self::group`] at a time. The rows lie one after the other, `cols` numbers each; `rows` is
    /// where they are in the whole matrix. Between two stages they are in the target's room, if it has
    /// any, which then holds a group.
    ///
    /// # Safety
    ///
    /// Source and target must be valid for the rows, the operands of the stages must cover them,
    /// and no other thread may write any of them. What holds for a [`Target`] must hold.
    pub(crate) unsafe fn apply_all(
        stages: &[Self],
        arch: Arch,
        source: *const f32,
        target: Target,
        rows: Range<usize>,
        cols: usize,
    ) {
        let group = Self::group(cols);
        let operand = stages.first().and_then(Self::operand);
        for start in rows.clone().step_by(group) {
            let count = group.min(rows.end - start);
            let offset = (start - rows.start) * cols;
            let target = Target {
                data: target.data.wrapping_add(offset),
                shares: target.shares.map(|one| one.wrapping_add(start - rows.start)),
                ..target
            };
            let mut from = source.wrapping_add(offset);
            let source = from.wrapping_add(group * cols);
            let operand = operand.map(|one| one.at((start + group) * cols).cast_const());
            let ahead = Ahead { source, operand: operand.unwrap_or(from) };
            for (index, stage) in stages.iter().enumerate() {
                let last = index + 1 == stages.len();
                let between = target.room.filter(|_| !last);
                let to = match between {
                    Some(room) => Target::plain(room),
                    None if last => target,
                    None => Target::plain(target.data),
                };
                // SAFETY: the caller's guarantee; after the first stage the rows are where it left
                // them.
                unsafe {
                    match stage {
                        Self::Tail(tail) => {
                            let first = Stretch { col: 0, element: start * cols, len: cols };
                            tail.apply(arch, from, to.data, first, count, to.room.is_some());
                        }
                        Self::RowOp(op) => {
                            op.apply(arch, from, to, start..start + count, cols, ahead);
                        }
                    }
                }
                from = to.data.cast_const();
            }
        }
    }

    /// A second tensor of the same shape that the stage reads, if there is one.
    fn operand(&self) -> Option<Located> {
        match self {
            Self::Tail(tail) => tail.operand(),
            Self::RowOp(_) => None,
        }
    }
}
