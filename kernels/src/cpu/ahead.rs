//! What a micro-kernel asks for before it is needed: the next part of a panel.
//!
//! Weights that are used once come from memory, and the first rows that are multiplied with a part of
//! them would wait. So the rows that are multiplied with the part before it ask for it, each block of
//! them for a share.

use std::ops::Range;

/// Terms in a turn of a loop that takes several at a time.
pub(super) const TERMS: usize = 4;

/// Bytes in a line of the caches.
const LINE: usize = 64;

/// What is fetched of the next part of a panel, or of the next panel, which lies behind it: a share of it
/// for each block of rows, so that no block takes longer than others. All but `period` in bytes.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    /// From the panel to the first line.
    first: usize,
    /// From there to what the next block begins with.
    share: usize,
    /// From there to what the next turn fetches.
    of_turn: usize,
    /// Terms from one fetch to the next where there are no turns, a power of two.
    period: usize,
    /// From what the one fetches to what the other does: at most a line, with four blocks and more.
    step: usize,
}

impl Ahead {
    /// For the first of some blocks of rows, which are all multiplied with the same rows of a panel, of
    /// `bytes` each. The next part of the panel has as many. A row is what one term is multiplied with,
    /// be it several numbers of each column.
    pub(super) const fn new(part: &Range<usize>, blocks: usize, bytes: usize) -> Self {
        let terms = part.end - part.start;
        Self::of(part.end * bytes, terms * bytes, terms, blocks)
    }

    /// For the first of some blocks that are multiplied with a copy of `terms` rows of a panel, where
    /// `bytes` of the panel itself lie at `next`, which the next copy is made of.
    pub(super) fn of_copy(
        copy: *const f32,
        next: *const u8,
        bytes: usize,
        terms: usize,
        blocks: usize,
    ) -> Self {
        Self::of(next.addr().wrapping_sub(copy.addr()), bytes, terms, blocks)
    }

    /// For the first of some blocks of `terms` terms, which share `bytes` bytes from `first` on.
    const fn of(first: usize, bytes: usize, terms: usize, blocks: usize) -> Self {
        let all_terms = if terms * blocks == 0 { 1 } else { terms * blocks };
        // A few of them to a line, if there is anything to fetch.
        let period = match (all_terms * LINE).checked_div(bytes) {
            Some(most @ 1..) => 1 << most.ilog2(),
            Some(0) | None => 1,
        };
        Self {
            first,
            share: bytes.div_ceil(blocks),
            of_turn: (bytes * TERMS).div_ceil(all_terms),
            period,
            step: (bytes * period).div_ceil(all_terms),
        }
    }

    /// For another one of them.
    pub(super) const fn of_block(self, block: usize) -> Self {
        Self { first: self.first.wrapping_add(block * self.share), ..self }
    }

    /// Where nothing need be fetched: the same line again and again, as rarely.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) const fn of_nothing(self) -> Self {
        Self { share: 0, of_turn: 0, step: 0, ..self }
    }

    /// For a loop that takes [`TERMS`] terms at a time.
    #[inline(always)]
    pub(super) const fn in_turns<T>(self, panel: *const T) -> Turns {
        Turns { next: panel.cast::<u8>().wrapping_add(self.first), bytes: self.of_turn }
    }

    /// For a loop that takes one at a time.
    #[inline(always)]
    pub(super) const fn one_by_one<T>(self, panel: *const T) -> OneByOne {
        let next = panel.cast::<u8>().wrapping_add(self.first);
        OneByOne { next, between: self.period - 1, bytes: self.step }
    }
}

/// Fetches at each turn.
pub(super) struct Turns {
    next: *const u8,
    bytes: usize,
}

impl Turns {
    /// A turn.
    #[inline(always)]
    pub(super) fn turn(&mut self) {
        fetch(self.next);
        self.next = self.next.wrapping_add(self.bytes);
    }
}

/// Fetches at some of the terms.
pub(super) struct OneByOne {
    next: *const u8,
    between: usize,
    bytes: usize,
}

impl OneByOne {
    /// A term, which may be that of a fetch.
    #[inline(always)]
    pub(super) fn term(&mut self, term: usize) {
        if term & self.between == 0 {
            fetch(self.next);
            self.next = self.next.wrapping_add(self.bytes);
        }
    }
}

/// Asks for a line, to be in the second-level cache when it is needed. Any address may be asked for.
#[inline(always)]
fn fetch(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The lines that some blocks ask for, a term at a time.
    fn asked_for(ahead: Ahead, terms: usize, blocks: usize) -> BTreeSet<usize> {
        let mut lines = BTreeSet::new();
        for block in 0..blocks {
            let ahead = ahead.of_block(block);
            let mut next = ahead.first;
            for term in (0..terms).filter(|term| term & (ahead.period - 1) == 0) {
                assert!(term == 0 || ahead.step <= LINE, "a line is left out");
                lines.insert(next / LINE);
                next += ahead.step;
            }
        }
        lines
    }

    #[test]
    fn blocks_ask_for_every_line_of_the_next_part() {
        for (terms, bytes) in
            [(128, 256), (85, 256), (341, 64), (512, 128), (1, 256), (7, 192), (85, 90)]
        {
            for blocks in [4, 5, 6, 7, 16, 86, 700] {
                let part = terms..2 * terms;
                let ahead = Ahead::new(&part, blocks, bytes);
                let lines = asked_for(ahead, terms, blocks);
                let next = 2 * terms * bytes / LINE..3 * terms * bytes / LINE;
                assert!(next.clone().all(|line| lines.contains(&line)), "{terms} {bytes} {blocks}");
                // Each of them hardly more often than once, but for what blocks have in common.
                let fetches = blocks * terms.div_ceil(ahead.period);
                assert!(fetches <= 2 * next.len() + blocks, "{terms} {bytes} {blocks}: {fetches}");
            }
        }
    }

    #[test]
    fn nothing_is_asked_for_of_nothing() {
        let Ahead { period, step, share, .. } = Ahead::new(&(5..5), 1, 256);
        assert_eq!((period, step, share), (1, 0, 0));
    }
}
