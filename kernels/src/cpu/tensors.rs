//! The tensors of a prepared problem, and where they lie in memory.

use super::arena::Arena;
use super::element::{Element, LINE_BYTES, Stored};
use super::pool::Pool;
use crate::placement::{Gaps, Item, Placement};

/// A tensor of a prepared problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TensorId(usize);

impl TensorId {
    /// Belongs to no table.
    pub(crate) const NONE: Self = Self(usize::MAX);
}

/// A number all of whose bytes are this one is NaN, in every format.
const NAN_BYTE: u8 = 0xFF;

/// A single set may be shifted by up to 64 KiB, so that its tensors meet at every distance modulo
/// the pages and the sets of the first two cache levels. Those of many sets are shifted by a page
/// of 4 KiB at least: what does not fill a cache level does not compete for its sets, and larger
/// gaps would be most of the memory.
const GAPS: Gaps = Gaps { most: 1024, least: 64 };

/// The lengths of tensors before there is memory for them. Every tensor starts at a cache line.
#[derive(Debug, Clone, Default)]
pub(crate) struct TensorTable {
    /// In bytes.
    lengths: Vec<usize>,
    /// Whether each tensor is the same in all sets.
    shared: Vec<bool>,
}

impl TensorTable {
    /// Adds a tensor of this many numbers.
    pub(crate) fn add<E: Element>(&mut self, numbers: usize) -> TensorId {
        self.add_stored(E::STORED, numbers)
    }

    /// The same of numbers that are stored in this way.
    pub(crate) fn add_stored(&mut self, stored: Stored, numbers: usize) -> TensorId {
        self.lengths.push(numbers * stored.bytes());
        self.shared.push(false);
        TensorId(self.lengths.len() - 1)
    }

    /// Adds scratch of this many numbers. All sets share it: a program uses the same scratch for
    /// whatever it runs, and finds it in the caches also where its tensors are not.
    pub(crate) fn add_scratch<E: Element>(&mut self, numbers: usize) -> TensorId {
        let id = self.add::<E>(numbers);
        self.shared[id.0] = true;
        id
    }

    /// Bytes of memory for `sets` sets of them, gaps included.
    pub(crate) fn bytes(&self, sets: usize) -> u64 {
        let lines = Placement::lines_for(&self.items(), sets, GAPS);
        Arena::bytes_for(lines.saturating_mul(LINE_BYTES as u64))
    }

    fn items(&self) -> Vec<Item> {
        let item = |(&length, &shared): (&usize, &bool)| Item {
            lines: length.div_ceil(LINE_BYTES),
            shared,
        };
        self.lengths.iter().zip(&self.shared).map(item).collect()
    }

    /// Allocates `sets` sets of the tensors, at least one, which the threads of the pool touch.
    ///
    /// # Errors
    ///
    /// The error of the system when it does not have that much memory.
    pub(crate) fn allocate(self, sets: usize, pool: &Pool) -> std::io::Result<TensorSets> {
        let sets = sets.max(1);
        let arena = Arena::new(self.bytes(sets), pool)?;
        let placement = Placement::new(self.items(), sets, GAPS);
        Ok(TensorSets { lengths: self.lengths, placement, arena })
    }
}

/// Sets of the same tensors: how long each tensor is, and where it lies now in each set.
///
/// What kind of numbers a tensor has, its users know: those that it was added for.
///
/// One block of memory holds them all. [`Self::shuffle`] draws a new placement, because the
/// placement alone can change the ratio of two kernels by a fifth.
#[derive(Debug)]
pub(crate) struct TensorSets {
    /// In bytes.
    lengths: Vec<usize>,
    placement: Placement,
    arena: Arena,
}

/// One set of tensors where it lies now.
#[derive(Debug)]
pub(crate) struct Tensors<'a> {
    base: *mut u8,
    /// Lines from there to each tensor.
    offsets: &'a [usize],
    /// Tensors that lie elsewhere, where another prepared problem writes them.
    elsewhere: &'a [(TensorId, *mut u8)],
}

impl<'a> Tensors<'a> {
    /// The same set, but for some tensors that lie elsewhere.
    pub(crate) fn with(self, elsewhere: &'a [(TensorId, *mut u8)]) -> Self {
        Self { elsewhere, ..self }
    }

    /// Where a tensor begins.
    pub(crate) fn pointer(&self, id: TensorId) -> *mut u8 {
        if let Some((_, address)) = self.elsewhere.iter().find(|(other, _)| *other == id) {
            return *address;
        }
        // Within the arena: the offsets were laid out for its size.
        self.base.wrapping_add(self.offsets[id.0] * LINE_BYTES)
    }
}

impl TensorSets {
    /// How many sets there are, at least one.
    pub(crate) fn len(&self) -> usize {
        self.placement.sets()
    }

    /// One of the sets.
    pub(crate) fn set(&self, set: usize) -> Tensors<'_> {
        Tensors { base: self.arena.base(), offsets: self.placement.of_set(set), elsewhere: &[] }
    }

    /// Draws a new placement. The contents of the tensors are lost.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        self.placement.shuffle(seed);
    }

    /// Fills all tensors, and the gaps between them, with NaN.
    pub(crate) fn poison(&mut self, pool: &Pool) {
        self.arena.fill(NAN_BYTE, pool);
    }

    /// How many bytes a tensor has.
    pub(crate) fn length(&self, id: TensorId) -> usize {
        self.lengths[id.0]
    }

    /// The bytes of a tensor of a set.
    pub(crate) fn bytes_of(&mut self, set: usize, id: TensorId) -> &mut [u8] {
        let length = self.lengths[id.0];
        // SAFETY: as in `get`.
        unsafe { std::slice::from_raw_parts_mut(self.set(set).pointer(id), length) }
    }

    /// The numbers of a tensor of a set.
    pub(crate) fn get<E: Element>(&mut self, set: usize, id: TensorId) -> &mut [E] {
        let numbers = self.lengths[id.0] / size_of::<E>();
        // SAFETY: the tensor lies within the arena, aligned to a line, and all bits are valid
        // numbers; `&mut self` makes the slice the only access.
        unsafe { std::slice::from_raw_parts_mut(self.set(set).pointer(id).cast(), numbers) }
    }

    /// The share of their memory that lies in huge pages; `None` where the system does not report
    /// it.
    pub(crate) fn huge_page_share(&self) -> Option<f64> {
        self.arena.huge_page_share()
    }

    /// Bytes of their memory.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.arena.bytes() as u64
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use pulp::Arch;

    use super::*;

    fn pool() -> Pool {
        Pool::new(1, Arch::new()).unwrap()
    }

    /// Placements that are looked at; Miri takes a second for each.
    const SEEDS: u64 = if cfg!(miri) { 3 } else { 50 };

    /// Numbers of the longest tensor.
    const LONGEST: usize = if cfg!(miri) { 1_000 } else { 100_000 };

    #[test]
    fn scratch_is_the_same_in_all_sets_and_apart_from_everything() {
        let mut table = TensorTable::default();
        let own = table.add::<f32>(100);
        let scratch = table.add_scratch::<f32>(1000);
        let also_own = table.add::<f32>(50);
        let mut tensors = table.clone().allocate(3, &pool()).unwrap();
        assert_eq!(tensors.bytes(), table.bytes(3));
        for seed in 0..SEEDS {
            tensors.shuffle(seed);
            let place = tensors.get::<f32>(0, scratch).as_ptr();
            tensors.get::<f32>(1, scratch).fill(7.0);
            for set in 0..3 {
                assert_eq!(tensors.get::<f32>(set, scratch).as_ptr(), place);
                tensors.get::<f32>(set, own).fill(1.0);
                tensors.get::<f32>(set, also_own).fill(2.0);
            }
            assert!(tensors.get::<f32>(2, scratch).iter().all(|&x| x == 7.0));
        }
    }

    #[test]
    fn tensors_are_aligned_and_apart_in_every_layout() {
        for sets in [1, 2, 7] {
            let mut table = TensorTable::default();
            let ids: Vec<TensorId> =
                [1, 16, 17, LONGEST, 0, 3].map(|numbers| table.add::<f32>(numbers)).into();
            let bytes = table.bytes(sets);
            let mut tensors = table.allocate(sets, &pool()).unwrap();
            assert_eq!(tensors.bytes(), bytes);
            assert_eq!(tensors.len(), sets);
            let all: Vec<(usize, TensorId)> =
                (0..sets).flat_map(|set| ids.iter().map(move |&id| (set, id))).collect();
            let end = tensors.arena.base() as usize + tensors.arena.bytes();
            let mut layouts = Vec::new();
            for seed in 0..SEEDS {
                tensors.shuffle(seed);
                for (number, &(set, id)) in (0_u8..).zip(&all) {
                    tensors.get::<f32>(set, id).fill(f32::from(number));
                }
                for (number, &(set, id)) in (0_u8..).zip(&all) {
                    let numbers = tensors.get::<f32>(set, id);
                    assert!(numbers.iter().all(|&x| x == f32::from(number)));
                    let numbers = numbers.as_ptr_range();
                    assert_eq!(numbers.start as usize % 64, 0);
                    assert!(numbers.end as usize <= end);
                }
                layouts.push(
                    (0..sets).flat_map(|set| tensors.set(set).offsets.to_vec()).collect::<Vec<_>>(),
                );
            }
            layouts.sort();
            layouts.dedup();
            assert_eq!(layouts.len() as u64, SEEDS);
        }
    }

    #[test]
    fn half_numbers_take_half_the_memory_and_poison_is_nan_in_both_formats() {
        let mut table = TensorTable::default();
        let half = table.add::<bf16>(4096);
        let single = table.add::<f32>(33);
        let odd = table.add::<bf16>(33);
        let mut tensors = table.allocate(2, &pool()).unwrap();
        tensors.poison(&pool());
        for set in 0..2 {
            assert_eq!([half, single, odd].map(|id| tensors.length(id)), [8192, 132, 66]);
            assert!(tensors.get::<bf16>(set, half).iter().all(|x| x.is_nan()));
            assert!(tensors.get::<f32>(set, single).iter().all(|x| x.is_nan()));
            assert_eq!(tensors.get::<bf16>(set, odd).len(), 33);
        }
    }

    #[test]
    fn each_set_has_a_placement_of_its_own() {
        let mut table = TensorTable::default();
        for length in [1000, 2000, 3000, 4000] {
            table.add::<f32>(length);
        }
        let tensors = table.allocate(20, &pool()).unwrap();
        // Distances from the first tensor: the same in all sets if they were only moved.
        let mut relative: Vec<Vec<usize>> = (0..20)
            .map(|set| {
                let offsets = tensors.set(set).offsets;
                offsets.iter().map(|offset| offset.wrapping_sub(offsets[0])).collect()
            })
            .collect();
        relative.sort();
        relative.dedup();
        assert_eq!(relative.len(), 20);
        let first: Vec<usize> = (0..20).map(|set| tensors.set(set).offsets[0]).collect();
        assert!(!first.is_sorted(), "the sets lie in the order of their use");
    }

    #[test]
    fn gaps_are_not_most_of_the_memory_of_many_sets() {
        let mut table = TensorTable::default();
        for _ in 0..4 {
            table.add::<f32>(4096);
        }
        assert!(table.bytes(1000) <= 2 * 4 * 4096 * 4 * 1000 + (2 << 20));
    }
}
