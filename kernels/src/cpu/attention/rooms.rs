//! What the threads of an attention have room for, and what they keep there of a head.

use fusion_cost_model::DType;
use pulp::Arch;

use super::{AttentionKernel, Scores, Shape};
use crate::cpu::element::{Element, Uniform};
use crate::cpu::kernel::Located;
use crate::cpu::pairs;
use crate::cpu::panels::Panels;
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
    /// Widened values of as many heads. Keys that are widened pass through it before they are packed.
    pub(crate) values: Located,
    /// The result of a block of a head.
    pub(crate) result: Located,
    /// Where pairs are multiplied, the keys of as many heads and their values; and the probabilities of a
    /// block, where they are multiplied with values as these are stored.
    pub(crate) packed_keys: Located<E>,
    pub(crate) packed_values: Located<E>,
    pub(crate) probabilities: Located<E>,
}

/// Fewer queries are not worth packing keys or values for.
const FEW_QUERIES: usize = 8;

fn if_needed(is_needed: bool, numbers: usize) -> usize {
    if is_needed { numbers } else { 0 }
}

impl<E> Room<E> {
    pub(super) fn locate(&mut self, tensors: &Tensors) {
        let Self { panel, keys, queries, values, result, .. } = self;
        for part in [panel, keys, queries, values, result] {
            part.locate(tensors);
        }
        let Self { joined, packed_keys, packed_values, probabilities, .. } = self;
        for part in [joined, packed_keys, packed_values, probabilities] {
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

    /// Whether pairs of the numbers are multiplied as they are stored, in all products or in none.
    /// For few queries, packing would take longer than it saves; and no pair may reach over the end
    /// of a key.
    pub(super) fn multiplies_pairs(&self) -> bool {
        let Shape { queries, d, .. } = self.shape;
        let can_pack = queries >= FEW_QUERIES && d.is_multiple_of(pairs::TOGETHER);
        Self::WIDENS && self.cut_of_stored.together == pairs::TOGETHER && can_pack
    }

    /// Whether probabilities are multiplied with values as they are stored. For a few queries these are
    /// read where they lie: widened, those of a head would push its keys out of the cache.
    pub(super) fn reads_stored_values(&self) -> bool {
        Self::WIDENS && (self.multiplies_pairs() || self.shape.queries < FEW_QUERIES)
    }

    /// Heads whose keys and values are held at a time.
    fn held(&self) -> usize {
        let Shape { heads, sharing, .. } = self.shape;
        if self.projection.is_some() { heads / sharing } else { 1 }
    }

    /// Numbers of those parts of a [`Room`] that are stored as tensors are: of joined heads, keys, values
    /// and probabilities.
    pub(crate) fn stored_room_numbers(&self) -> [usize; 4] {
        let (pairs, has_values) = (self.multiplies_pairs(), self.values.is_some());
        let has_keys = matches!(self.scores, Scores::Gemm { .. });
        let is_rounded = has_keys || !self.stages.is_empty();
        [
            if_needed(self.projection.is_some(), self.block * self.shape.width),
            if_needed(pairs && has_keys, self.held() * self.packed_keys_numbers()),
            if_needed(pairs && has_values, self.held() * self.panels_of_values().numbers()),
            if_needed(
                self.reads_stored_values() && has_values && is_rounded,
                self.block * self.shape.keys,
            ),
        ]
    }

    /// Those of f32: the other parts.
    pub(crate) fn room_numbers(&self) -> [usize; 5] {
        let Shape { keys, d, .. } = self.shape;
        let has_keys = matches!(self.scores, Scores::Gemm { .. });
        let (widens, held) = (Self::WIDENS && !self.multiplies_pairs(), self.held());
        let has_packed_keys = self.packs_keys() && !self.multiplies_pairs();
        [
            if_needed(self.has_panel(), self.block * (keys + 1)),
            if_needed(has_packed_keys, held * self.keys_numbers()),
            if_needed(widens && has_keys, self.block * d),
            if_needed(widens && !self.reads_stored_values(), held * keys * d),
            if_needed(Self::WIDENS && self.values.is_some(), self.block * d),
        ]
    }

    /// Whether keys are packed: for few queries that would take longer than it saves.
    pub(super) fn packs_keys(&self) -> bool {
        matches!(self.scores, Scores::Gemm { .. }) && self.shape.queries >= FEW_QUERIES
    }

    /// Numbers that the keys of a head take in pairs.
    pub(super) fn packed_keys_numbers(&self) -> usize {
        transpose::numbers(self.cut_of_stored, [self.shape.keys, self.shape.d])
    }

    /// How the values of a head are packed in pairs.
    pub(super) fn panels_of_values(&self) -> Panels {
        let Shape { keys, d, .. } = self.shape;
        Panels { k: keys, n: d, run: keys, cut: self.cut_of_stored }
    }

    /// Numbers that the packed keys of a head take as f32.
    pub(super) fn keys_numbers(&self) -> usize {
        transpose::numbers(self.cut, [self.shape.keys, self.shape.d])
    }

    /// Packs the keys of a head, or of all heads of a batch where they are joined, unless that was the
    /// last that the thread has packed. So are values where pairs are multiplied; else those that are
    /// not f32 are widened.
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
        let widens_values = Self::WIDENS && !self.reads_stored_values();
        let is_needed = self.packs_keys() || self.multiplies_pairs() || widens_values;
        if !is_needed || prepared.replace(first) == Some(first) {
            return;
        }
        let room = self.rooms[thread];
        if self.multiplies_pairs() {
            for head in 0..count {
                // SAFETY: the caller's guarantee; there is room for as many heads.
                unsafe { self.pack_pairs(arch, room, first + head, head) };
            }
            return;
        }
        for head in 0..count {
            let source = (first + head) * keys * d;
            let widened = room.values.at(head * keys * d);
            // SAFETY: the caller's guarantee; there is room for as many heads.
            unsafe {
                if let Scores::Gemm { keys: located, .. } = self.scores {
                    let source = located.at(source);
                    let target = room.keys.at(head * self.keys_numbers());
                    let source = E::as_f32(source).unwrap_or_else(|| {
                        convert(arch, source, widened, keys * d);
                        widened
                    });
                    transpose::pack(arch, self.cut, source, [keys, d], target);
                }
                if let (Some(values), true) = (self.values, widens_values) {
                    convert(arch, values.at(source), widened, keys * d);
                }
            }
        }
    }

    /// Packs keys and values of a head in pairs.
    ///
    /// # Safety
    ///
    /// The room must belong to the calling thread, and have one for the head.
    unsafe fn pack_pairs(&self, arch: Arch, room: Room<E>, head: usize, held: usize) {
        let Shape { keys, d, .. } = self.shape;
        let first = head * keys * d;
        // SAFETY: the caller's guarantee. A pair is as long as a number of f32, which is only moved.
        unsafe {
            if let Scores::Gemm { keys: located, .. } = self.scores {
                let target = room.packed_keys.at(held * self.packed_keys_numbers());
                let sizes = [keys, d / pairs::TOGETHER];
                let source = located.at(first).cast_const().cast();
                transpose::pack(arch, self.cut_of_stored, source, sizes, target.cast());
            }
            if let Some(values) = self.values {
                let panels = self.panels_of_values();
                let target = room.packed_values.at(held * panels.numbers());
                pairs::pack(arch, &panels, values.at(first).cast_const().cast(), target.cast());
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
