//! Durations in ascending order: sorted once, and every partition reads its medians from it.

/// The rows of a table by duration, the shortest first.
#[derive(Debug, Clone)]
pub struct ByDuration {
    /// Durations and their rows.
    rows: Vec<(u64, u32)>,
}

/// Digits of 11 bits: durations of up to 4 ms are sorted in two passes, and the counters of a pass
/// fit into the first level cache.
const DIGIT_BITS: u32 = 11;
const DIGITS: usize = 1 << DIGIT_BITS;

impl ByDuration {
    /// Sorts. Rows behind the 2^32nd are left out; no trace has as many kernels.
    #[must_use]
    pub fn of(durations_ns: &[u64]) -> Self {
        let mut rows: Vec<(u64, u32)> = durations_ns.iter().copied().zip(0..=u32::MAX).collect();
        let longest = durations_ns.iter().copied().max().unwrap_or(0);
        let mut other = vec![(0, 0); rows.len()];
        let mut shift = 0;
        while shift < u64::BITS && longest >> shift > 0 {
            scatter(&rows, &mut other, shift);
            std::mem::swap(&mut rows, &mut other);
            shift += DIGIT_BITS;
        }
        Self { rows }
    }

    /// The durations with their rows, in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.rows.iter().copied()
    }
}

/// One pass of a radix sort: stable by one digit.
fn scatter(from: &[(u64, u32)], to: &mut [(u64, u32)], shift: u32) {
    let digit = |duration: u64| (duration >> shift) as usize % DIGITS;
    let mut next = [0_usize; DIGITS];
    for &(duration, _) in from {
        next[digit(duration)] += 1;
    }
    let mut begin = 0;
    for place in &mut next {
        begin += std::mem::replace(place, begin);
    }
    for &row in from {
        let place = &mut next[digit(row.0)];
        to[*place] = row;
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn rows_are_in_order(
            durations in prop::collection::vec(prop_oneof![0_u64..5, 0_u64..1 << 30, any::<u64>()], 0..200),
        ) {
            let mut expected: Vec<(u64, u32)> = durations.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            let sorted: Vec<(u64, u32)> = ByDuration::of(&durations).iter().collect();
            prop_assert_eq!(sorted, expected);
        }
    }
}
