//! Where sets of tensors lie in a block of memory: a random placement, drawn anew for every round.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One tensor of a set, or one that all sets share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its length in lines; every item starts at one.
    pub(crate) lines: usize,
    /// Whether it is there once and not once per set.
    pub(crate) shared: bool,
}

/// How far items may be shifted against each other, in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gaps {
    /// The bound of the gap before an item of a single set, and the largest bound of any.
    pub(crate) most: usize,
    /// The bound of the gap before an item of several sets whose items are shorter than that.
    pub(crate) least: usize,
}

impl Gaps {
    /// Every gap is shorter than this. With several sets the gaps are no longer than the items, or
    /// they would be most of the memory.
    fn bound(self, items: &[Item], sets: usize) -> usize {
        if sets == 1 {
            return self.most;
        }
        let own: Vec<usize> =
            items.iter().filter(|item| !item.shared).map(|item| item.lines).collect();
        (own.iter().sum::<usize>() / own.len().max(1)).clamp(self.least, self.most)
    }
}

/// Sets of the same items, and where each lies now.
#[derive(Debug)]
pub(crate) struct Placement {
    items: Vec<Item>,
    sets: usize,
    gap: usize,
    /// Lines from the start of the memory to each item, one set after the other.
    offsets: Vec<usize>,
}

impl Placement {
    /// Lines of memory for `sets` sets, gaps included.
    pub(crate) fn lines_for(items: &[Item], sets: usize, gaps: Gaps) -> u64 {
        let gap = gaps.bound(items, sets);
        let of_item = |item: &Item| {
            let copies = if item.shared { 1 } else { sets as u64 };
            (item.lines.saturating_add(gap) as u64).saturating_mul(copies)
        };
        items.iter().map(of_item).fold(0, u64::saturating_add)
    }

    /// A first placement of `sets` sets, at least one.
    pub(crate) fn new(items: Vec<Item>, sets: usize, gaps: Gaps) -> Self {
        let sets = sets.max(1);
        let gap = gaps.bound(&items, sets);
        let offsets = vec![0; items.len() * sets];
        let mut placement = Self { items, sets, gap, offsets };
        placement.shuffle(0);
        placement
    }

    /// How many sets there are.
    pub(crate) fn sets(&self) -> usize {
        self.sets
    }

    /// Lines from the start of the memory to each item of a set.
    pub(crate) fn of_set(&self, set: usize) -> &[usize] {
        let items = self.items.len();
        &self.offsets[set * items..(set + 1) * items]
    }

    /// Draws a new placement: the sets in random order, among them what all share, the items of
    /// each in random order, each after a random gap.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let items = self.items.len();
        // The number after the last set stands for what is shared.
        let mut groups: Vec<usize> = (0..=self.sets).collect();
        groups.shuffle(&mut random);
        let (mut shared, mut own): (Vec<usize>, Vec<usize>) =
            (0..items).partition(|&index| self.items[index].shared);
        let mut line = 0;
        for group in groups {
            let is_shared = group == self.sets;
            let order = if is_shared { &mut shared } else { &mut own };
            order.shuffle(&mut random);
            for &index in &*order {
                line += random.next_u32() as usize % self.gap;
                let sets = if is_shared { 0..self.sets } else { group..group + 1 };
                for set in sets {
                    self.offsets[set * items + index] = line;
                }
                line += self.items[index].lines;
            }
        }
    }
}
