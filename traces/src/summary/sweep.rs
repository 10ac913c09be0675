//! What runs together: one pass over the intervals of a device, with a counter for each kind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Kinds of work that are distinguished.
pub(super) const KINDS: usize = 4;

/// An interval in which a kind of work runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start_ns: i64,
    /// Never before the start.
    pub(super) end_ns: i64,
    /// Less than [`KINDS`].
    pub(super) kind: u8,
}

/// How the time from the first beginning to the last end was spent, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Swept {
    /// For each set of kinds, as bits, the time in which exactly these run. The time of the empty
    /// set is the sum of `gaps_ns`.
    pub(super) together_ns: [u64; 1 << KINDS],
    /// The times in which nothing runs, in their order.
    pub(super) gaps_ns: Vec<u64>,
}

impl Swept {
    /// From the first beginning to the last end.
    pub(super) fn span_ns(&self) -> u64 {
        self.sum(|_| true)
    }

    /// The time in which a set of kinds runs that fits.
    pub(super) fn sum(&self, fits: impl Fn(usize) -> bool) -> u64 {
        // The parts of one span of 64 bits do not overflow.
        self.together_ns.iter().enumerate().filter(|(set, _)| fits(*set)).map(|(_, &ns)| ns).sum()
    }
}

/// Sweeps over intervals, which it puts in order.
pub(super) fn sweep(intervals: &mut [Interval]) -> Swept {
    let mut swept = Swept::default();
    // Streams are in order, so that this joins sorted runs.
    intervals.sort_by_key(|interval| interval.start_ns);
    let Some(first) = intervals.first() else { return swept };
    let mut reached = first.start_ns;
    let mut running = [0_usize; KINDS];
    let mut set = 0_usize;
    // As many as run at the same time, which is about the number of streams.
    let mut ends: BinaryHeap<Reverse<(i64, u8)>> = BinaryHeap::new();
    for interval in intervals.iter() {
        while let Some(&Reverse((end, kind))) = ends.peek()
            && end <= interval.start_ns
        {
            swept.advance(set, &mut reached, end);
            ends.pop();
            set = stop(&mut running, set, kind);
        }
        swept.advance(set, &mut reached, interval.start_ns);
        running[usize::from(interval.kind)] += 1;
        set |= 1 << interval.kind;
        ends.push(Reverse((interval.end_ns, interval.kind)));
    }
    while let Some(Reverse((end, kind))) = ends.pop() {
        swept.advance(set, &mut reached, end);
        set = stop(&mut running, set, kind);
    }
    swept
}

/// The set of kinds that run when one of a kind has ended.
fn stop(running: &mut [usize; KINDS], set: usize, kind: u8) -> usize {
    let left = &mut running[usize::from(kind)];
    *left -= 1;
    if *left == 0 { set & !(1 << kind) } else { set }
}

impl Swept {
    /// The time up to `to` was spent with a set of kinds. What touches leaves no gap.
    fn advance(&mut self, set: usize, reached: &mut i64, to: i64) {
        let passed = to.abs_diff(*reached);
        if passed > 0 {
            self.together_ns[set] += passed;
            if set == 0 {
                self.gaps_ns.push(passed);
            }
            *reached = to;
        }
    }
}

/// The time in which at least one of some intervals runs, in nanoseconds. Puts them in order.
pub(super) fn union_ns(intervals: &mut [Interval]) -> u64 {
    intervals.sort_by_key(|interval| interval.start_ns);
    let mut reached = i64::MIN;
    let mut union = 0;
    for interval in intervals.iter() {
        let from = interval.start_ns.max(reached);
        if interval.end_ns > from {
            union += interval.end_ns.abs_diff(from);
            reached = interval.end_ns;
        }
    }
    union
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interval(start_ns: i64, length: u64, kind: u8) -> Interval {
        Interval { start_ns, end_ns: start_ns.saturating_add_unsigned(length), kind }
    }

    proptest! {
        #[test]
        fn every_nanosecond_counts_once(
            parts in prop::collection::vec((-60_i64..60, 0_u64..25, 0..KINDS as u8), 1..30),
        ) {
            let mut intervals: Vec<Interval> =
                parts.iter().map(|&(start, length, kind)| interval(start, length, kind)).collect();
            let first = intervals.iter().map(|i| i.start_ns).min().unwrap();
            let last = intervals.iter().map(|i| i.end_ns).max().unwrap();
            let mut expected = Swept::default();
            let mut gap = 0;
            for now in first..last {
                // A kernel without a duration ends the gap in which it lies.
                if gap > 0 && intervals.iter().any(|i| i.start_ns == now) {
                    expected.gaps_ns.push(gap);
                    gap = 0;
                }
                let mut set = 0;
                for i in &intervals {
                    if i.start_ns <= now && now < i.end_ns {
                        set |= 1 << i.kind;
                    }
                }
                expected.together_ns[set] += 1;
                gap += u64::from(set == 0);
            }
            if gap > 0 {
                expected.gaps_ns.push(gap);
            }
            prop_assert_eq!(union_ns(&mut intervals), expected.sum(|set| set != 0));
            prop_assert_eq!(sweep(&mut intervals), expected);
        }

        #[test]
        fn extreme_times_do_not_overflow(
            parts in prop::collection::vec((any::<i64>(), any::<u64>(), 0..KINDS as u8), 0..20),
        ) {
            let mut intervals: Vec<Interval> =
                parts.iter().map(|&(start, length, kind)| interval(start, length, kind)).collect();
            let swept = sweep(&mut intervals);
            let first = intervals.iter().map(|i| i.start_ns).min().unwrap_or(0);
            let last = intervals.iter().map(|i| i.end_ns).max().unwrap_or(0);
            prop_assert_eq!(swept.span_ns(), last.abs_diff(first));
            prop_assert_eq!(swept.together_ns[0], swept.gaps_ns.iter().sum::<u64>());
            prop_assert_eq!(swept.sum(|set| set != 0), union_ns(&mut intervals));
        }
    }

    #[test]
    fn the_longest_span_there_is() {
        let mut all = [interval(i64::MIN, 0, 0), interval(i64::MAX, u64::MAX, 1)];
        assert_eq!(sweep(&mut all).gaps_ns, [u64::MAX]);
    }
}
