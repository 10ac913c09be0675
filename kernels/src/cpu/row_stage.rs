//! What is done to each row by itself: the steps of a row-by-row chain between its linear layers.

use std::ops::Range;

use fusion_cost_model::DType;
use pulp::Arch;

use super::element::Element;
use super::kernel::Located;
use super::row_ops::RowOp;
use super::row_piece::Piece;
use super::row_sums::RowSums;
use super::row_target::Target;
use super::tail::Tail;
use super::tensors::Tensors;
use super::vendor;

/// What is done to each row by itself.
#[derive(Debug, Clone)]
pub(crate) enum RowStage<E = f32> {
    Tail(Tail<E>),
    RowOp(RowOp<E>),
}

impl<E: Element> RowStage<E> {
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
    /// where they are in the whole matrix. Between two stages they are f32, in the target's room, if it
    /// has any, which then holds a group.
    ///
    /// # Safety
    ///
    /// Source and target must be valid for the rows, the operands of the stages must cover them,
    /// and no other thread may write any of them. What holds for a [`Target`] must hold.
    pub(crate) unsafe fn apply_all<I: Element, O: Element>(
        stages: &[Self],
        arch: Arch,
        source: *const I,
        target: Target<O>,
        rows: Range<usize>,
        cols: usize,
    ) {
        let group = Self::group(cols);
        let operand = stages.first().and_then(Self::operand);
        // On a processor of AMD's that only takes longer (decision 0216); on others it was not measured.
        let fetches_target = vendor::is_intel() && Self::writes_first(stages, source, &target);
        let mut sums = RowSums::NONE;
        for start in rows.clone().step_by(group) {
            let count = group.min(rows.end - start);
            let offset = (start - rows.start) * cols;
            let target = Target {
                data: target.data.wrapping_add(offset),
                shares: target.shares.map(|one| one.wrapping_add(start - rows.start)),
                ..target
            };
            let source = source.wrapping_add(offset);
            let next = source.wrapping_add(group * cols).cast::<E>();
            let operand = operand.map(|one| one.at((start + group) * cols).cast_const());
            // Of rows that are not stored as tensors are, the next ones are in a cache anyway.
            let operand = operand.unwrap_or(source.cast());
            let waiting = target.waiting();
            let ahead = if fetches_target {
                // The rows at hand are there: to ask for them again costs nothing. The lines behind the
                // last ones may be those that another thread writes.
                let at_hand = waiting.cast_const().cast::<E>();
                let is_last = start + group >= rows.end;
                [at_hand, if is_last { at_hand } else { at_hand.wrapping_add(group * cols) }]
            } else {
                [next, operand]
            };
            let piece = Piece { arch, first_row: start, rows: count, cols, ahead };
            let between = Target { near: target.near, ..Target::plain(waiting) };
            let waiting = waiting.cast_const();
            // SAFETY: the caller's guarantee; after the first stage the rows are where it left them.
            unsafe {
                match stages {
                    [] => {}
                    [only] => only.apply(piece, source, target, &RowSums::NONE),
                    [first, others @ .., last] => {
                        sums.forget();
                        first.apply_before(&stages[1], piece, source, between, &mut sums);
                        for (stage, next) in others.iter().zip(&stages[2..]) {
                            stage.apply_before(next, piece, waiting, between, &mut sums);
                        }
                        last.apply(piece, waiting, target, &sums);
                    }
                }
            }
        }
    }

    /// Whether the first pass over rows writes them where nothing has read them, and leaves their sums
    /// for a norm. Then Intel's processors fetch the lines of the target ahead, and not those of the
    /// source: they fetch by themselves what is read in order, while stores wait for each line that is
    /// missing, and what else is asked for takes the place of those (decision 0214).
    fn writes_first<I: Element, O: Element>(
        stages: &[Self],
        source: *const I,
        target: &Target<O>,
    ) -> bool {
        let adds_up = matches!(stages, [Self::Tail(_), next, ..] if next.begins_with_sums());
        let is_apart = target.data.cast_const().cast::<I>() != source;
        // Lines are counted in numbers of the source.
        let as_stored = E::DTYPE == DType::F32 && O::DTYPE == DType::F32;
        adds_up && is_apart && as_stored && target.room.is_none()
    }

    /// Takes a few rows through this stage, given their sums where they are known. If the next stage is
    /// a norm, it leaves the sums of what it wrote.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_all`].
    unsafe fn apply_before<I: Element>(
        &self,
        next: &Self,
        piece: Piece<E>,
        source: *const I,
        target: Target,
        sums: &mut RowSums,
    ) {
        // SAFETY: the caller's guarantee.
        unsafe {
            if let (Self::Tail(tail), true) = (self, next.begins_with_sums())
                && sums.go_through(tail, piece, source, target.data)
            {
                return;
            }
            self.apply(piece, source, target, sums);
        }
        sums.forget();
    }

    /// Whether it needs the sums of rows before anything else.
    const fn begins_with_sums(&self) -> bool {
        matches!(self, Self::RowOp(RowOp::LayerNorm { .. } | RowOp::RmsNorm { .. }))
    }

    /// Takes a few rows through this stage, given their sums where they are known.
    ///
    /// # Safety
    ///
    /// As for [`Self::apply_all`].
    unsafe fn apply<I: Element, O: Element>(
        &self,
        piece: Piece<E>,
        source: *const I,
        target: Target<O>,
        sums: &RowSums,
    ) {
        let Piece { arch, rows, .. } = piece;
        // SAFETY: the caller's guarantee.
        unsafe {
            match self {
                Self::Tail(tail) => {
                    tail.apply(arch, source, target.data, piece.first(), rows, target.stream);
                }
                Self::RowOp(op) => op.apply(piece, source, target, sums),
            }
        }
    }

    /// A second tensor of the same shape that the stage reads, if there is one.
    fn operand(&self) -> Option<Located<E>> {
        match self {
            Self::Tail(tail) => tail.operand(),
            Self::RowOp(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Pointwise;
    use half::bf16;

    use super::*;
    use crate::cpu::tail::TailOp;

    fn chain<E: Element>(op: RowOp<E>) -> [RowStage<E>; 2] {
        let relu = TailOp::new(Pointwise::Relu, &[], None, 1);
        [RowStage::Tail(Tail { ops: vec![relu] }), RowStage::RowOp(op)]
    }

    #[test]
    fn a_target_is_fetched_where_rows_go_on_the_way_to_a_norm() {
        let (source, mut rows, mut room) = ([0.0_f32], [0.0_f32], [0.0_f32]);
        let source = source.as_ptr();
        let target = Target::plain(rows.as_mut_ptr());
        let norm = RowOp::<f32>::RmsNorm { weight: Located::NOWHERE };
        let stages = chain(norm.clone());
        assert!(RowStage::writes_first(&stages, source, &target));
        // In place, or in a room, there is nothing to wait for.
        assert!(!RowStage::writes_first(&stages, target.data.cast_const(), &target));
        let waits = Target { room: Some(room.as_mut_ptr()), ..target };
        assert!(!RowStage::writes_first(&stages, source, &waits));
        // A norm or a softmax that adds up by itself reads what it fetched.
        assert!(!RowStage::writes_first(&[RowStage::RowOp(norm)], source, &target));
        let softmax = chain::<f32>(RowOp::Softmax { mask: None });
        assert!(!RowStage::writes_first(&softmax, source, &target));
        let of_halves = chain::<bf16>(RowOp::RmsNorm { weight: Located::NOWHERE });
        assert!(!RowStage::writes_first(&of_halves, source, &target));
    }
}
