//! What the threads of an attention have room for, and what they keep there of a head.

use fusion_cost_model::DType;
use pulp::Arch;

use super::{AttentionKernel, Scores, Shape};
use crate::cpu::element::{Element, Uniform};
use crate::cpu::kernel::Located;
use crate::cpu::tail::{Stretch, Tail};
use crate::cpu::tensors::Tensors;
use crate::cpu::transpose;

/// What a thread has room for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room<E> {
    /// A block of joined heads.
    pub(crate) joined: Located<E>,
    /// A panel of scores with a number for each row.
    pub(crate) panel: Located,
    /// The packed keys of a head, or of the heads of a batch where they are joined.
    pub(crate) keys: Located,
    /// Widened queries of a block.
    pub(crate) queries: Located,
    /// Widened values of as many heads. Keys pass through it before they are packed.
    pub(crate) values: Located,
    /// The result of a block of a head.
    pub(crate) result: Located,
}

impl<E> Room<E> {
    pub(super) fn locate(&mut self, tensors: &Tensors) {
        self.joined.locate(tensors);
        let Self { panel, keys, queries, values, result, .. } = self;
        for part in [panel, keys, queries, values, result] {
            part.locate(tensors);
        }
    }
}

/// Stores numbers in another way, unless they are stored in this one and are where they go.
///
/// # Safety
///
/// Both must be valid for as many numbers, and no other thread may write them meanwhile.
pub(super) unsafe fn convert<I: Element, O: Element>(
    arch: Arch,
    source: *const I,
    target: *mut O,
    numbers: usize,
) {
    if source.cast::<u8>() == target.cast_const().cast() {
        return;
    }
    let row = Stretch { col: 0, element: 0, len: numbers };
    // SAFETY: the caller's guarantee; there are no operands.
    unsafe { Tail::<f32>::default().apply(arch, source, target, row, 1, false) };
}

impl<E: Uniform> AttentionKernel<E> {
    /// Whether what is read has to be widened.
    pub(super) const WIDENS: bool = !matches!(E::DTYPE, DType::F32);

    /// Whether scores are kept in a room: not when they are the result as they are, nor when they are
    /// read from the input as they are. What is not f32 is.
    ///
    /// Scores that go through stages on their way to the result are kept there too: lines of the result
    /// that are in no cache are then fetched row by row, and not by the GEMM, which writes one line of
    /// each row at a time.
    pub(super) fn has_panel(&self) -> bool {
        let given = matches!(self.scores, Scores::Given(_));
        let is_passed_on = match (&self.values, given) {
            (Some(_), true) | (None, false) => !self.stages.is_empty(),
            (Some(_), false) => true,
            (None, true) => false,
        };
        Self::WIDENS || is_passed_on
    }

    /// Numbers of a block of joined heads.
    pub(crate) fn joined_numbers(&self) -> usize {
        if self.projection.is_some() { self.block * self.shape.width } else { 0 }
    }

    /// Numbers of f32 that a thread needs: the other parts of a [`Room`].
    pub(crate) fn room_numbers(&self) -> [usize; 5] {
        let Shape { heads, keys, d, sharing, .. } = self.shape;
        let has_keys = matches!(self.scores, Scores::Gemm { .. });
        let held = if self.projection.is_some() { heads / sharing } else { 1 };
        let if_needed = |is_needed: bool, numbers: usize| if is_needed { numbers } else { 0 };
        [
            if_needed(self.has_panel(), self.block * (keys + 1)),
            if_needed(self.packs_keys() || Self::WIDENS && has_keys, held * self.keys_numbers()),
            if_needed(Self::WIDENS && has_keys, self.block * d),
            if_needed(Self::WIDENS, held * keys * d),
            if_needed(Self::WIDENS && self.values.is_some(), self.block * d),
        ]
    }

    /// Whether keys are packed: for few queries that would take longer than it saves.
    pub(super) fn packs_keys(&self) -> bool {
        const FEW_QUERIES: usize = 8;
        matches!(self.scores, Scores::Gemm { .. }) && self.shape.queries >= FEW_QUERIES
    }

    /// Numbers that the keys of a head take, packed or not.
    pub(super) fn keys_numbers(&self) -> usize {
        transpose::numbers(self.cut, [self.shape.keys, self.shape.d])
    }

    /// Packs the keys of a head, or of all heads of a batch where they are joined, unless that was the
    /// last that the thread has packed. Widens keys that are not packed, and values, where they are not
    /// f32.
    ///
    /// # Safety
    ///
    /// The room of `thread` must belong to the calling thread.
    pub(super) unsafe fn prepare_head(
        &self,
        arch: Arch,
        thread: usize,
        above: usize,
        prepared: &mut Option<usize>,
    ) {
        let Shape { heads, keys, d, sharing, .. } = self.shape;
        let (first, count) = match self.projection {
            Some(_) => (above * (heads / sharing), heads / sharing),
            None => (above / sharing, 1),
        };
        let is_needed = self.packs_keys() || Self::WIDENS;
        if !is_needed || prepared.replace(first) == Some(first) {
            return;
        }
        let room = self.rooms[thread];
        for head in 0..count {
            let source = (first + head) * keys * d;
            let widened = room.values.at(head * keys * d);
            // SAFETY: the caller's guarantee; there is room for as many heads.
            unsafe {
                if let Scores::Gemm { keys: located, .. } = self.scores {
                    let source = located.at(source);
                    let target = room.keys.at(head * self.keys_numbers());
                    if self.packs_keys() {
                        let source = E::as_f32(source).unwrap_or_else(|| {
                            convert(arch, source, widened, keys * d);
                            widened
                        });
                        transpose::pack(arch, self.cut, source, [keys, d], target);
                    } else {
                        convert(arch, source, target, keys * d);
                    }
                }
                if let (Some(values), true) = (self.values, Self::WIDENS) {
                    convert(arch, values.at(source), widened, keys * d);
                }
            }
        }
    }

    /// The values of a head as f32: where they are, or where they have been widened.
    pub(super) fn values_of(
        &self,
        thread: usize,
        of_keys: usize,
        held: usize,
    ) -> Option<*const f32> {
        let Shape { keys, d, .. } = self.shape;
        let values = self.values?.at(of_keys * keys * d);
        let widened = self.rooms[thread].values.at(held * keys * d);
        Some(E::as_f32(values).unwrap_or(widened).cast_const())
    }
}
