//! What was open on a thread at a time: operators or python frames that contain it.

use rustc_hash::FxHashMap;

/// So many calls are looked at from the innermost on. Only python goes deeper.
const DEEPEST: usize = 256;

/// Intervals on the threads of the host, as columns of one table.
pub(crate) struct Intervals<'a> {
    pub(crate) start_ns: &'a [i64],
    pub(crate) duration_ns: &'a [u64],
    pub(crate) thread: &'a [u32],
}

/// A moment on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) thread: u32,
    pub(crate) time_ns: i64,
}

impl Intervals<'_> {
    /// Calls `found` with each moment's place in the list and the rows that contain the moment,
    /// the innermost first. Only the threads of the moments are sorted.
    pub(crate) fn around(&self, moments: &[Moment], mut found: impl FnMut(usize, &[usize])) {
        let mut threads: FxHashMap<u32, (Vec<usize>, Vec<usize>)> = FxHashMap::default();
        for (place, moment) in moments.iter().enumerate() {
            threads.entry(moment.thread).or_default().0.push(place);
        }
        for (row, thread) in self.thread.iter().enumerate() {
            if let Some((_, rows)) = threads.get_mut(thread) {
                rows.push(row);
            }
        }
        for (mut places, mut rows) in threads.into_values() {
            places.sort_by_key(|&place| moments[place].time_ns);
            // What contains another begins first, and of two that begin together ends last.
            rows.sort_by_key(|&row| (self.start_ns[row], std::cmp::Reverse(self.end_ns(row))));
            let mut rows = rows.into_iter().peekable();
            let mut open: Vec<usize> = Vec::new();
            for place in places {
                let now = moments[place].time_ns;
                while let Some(row) = rows.next_if(|&row| self.start_ns[row] <= now) {
                    // Calls nest, so what has ended is at the end of the list.
                    let begin = self.start_ns[row];
                    while open.last().is_some_and(|&last| self.end_ns(last) < begin) {
                        open.pop();
                    }
                    open.push(row);
                }
                let innermost = open.iter().rev().copied().take(DEEPEST);
                let around: Vec<usize> = innermost.filter(|&row| self.end_ns(row) >= now).collect();
                found(place, &around);
            }
        }
    }

    fn end_ns(&self, row: usize) -> i64 {
        self.start_ns[row].saturating_add_unsigned(self.duration_ns[row])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Nested calls: each is drawn inside of one before it.
        #[test]
        fn what_contains_a_moment_is_found(
            calls in prop::collection::vec((0_u32..2, 0_i64..90, 0_u64..90, any::<bool>()), 0..30),
            moments in prop::collection::vec((0_u32..3, -5_i64..100), 0..20),
        ) {
            let mut rows: Vec<(u32, i64, u64)> = Vec::new();
            for (thread, start, length, _) in calls {
                let end = start + length as i64;
                let nests = rows.iter().all(|&(other, begin, length)| {
                    let until = begin + length as i64;
                    let apart = end < begin || until < start;
                    let inside = begin <= start && end <= until || start <= begin && until <= end;
                    other != thread || apart || inside
                });
                if nests {
                    rows.push((thread, start, length));
                }
            }
            let thread: Vec<u32> = rows.iter().map(|row| row.0).collect();
            let start_ns: Vec<i64> = rows.iter().map(|row| row.1).collect();
            let duration_ns: Vec<u64> = rows.iter().map(|row| row.2).collect();
            let intervals =
                Intervals { start_ns: &start_ns, duration_ns: &duration_ns, thread: &thread };
            let moments: Vec<Moment> =
                moments.iter().map(|&(thread, time_ns)| Moment { thread, time_ns }).collect();
            let mut found = vec![None; moments.len()];
            intervals.around(&moments, |place, rows| found[place] = Some(rows.to_vec()));
            for (moment, found) in moments.iter().zip(found) {
                let found = found.unwrap();
                prop_assert!(found.is_sorted_by_key(|&row| duration_ns[row]));
                let mut found_sorted = found;
                found_sorted.sort_unstable();
                let contain = |&row: &usize| {
                    let (on, start, length) = rows[row];
                    let end = start + length as i64;
                    on == moment.thread && start <= moment.time_ns && moment.time_ns <= end
                };
                let expected: Vec<usize> = (0..rows.len()).filter(contain).collect();
                prop_assert_eq!(found_sorted, expected);
            }
        }
    }

    #[test]
    fn times_at_the_ends_of_the_scale() {
        let intervals = Intervals {
            start_ns: &[i64::MIN, i64::MAX],
            duration_ns: &[u64::MAX, u64::MAX],
            thread: &[0, 0],
        };
        let moments = [i64::MIN, 0, i64::MAX].map(|time_ns| Moment { thread: 0, time_ns });
        let mut found = Vec::new();
        intervals.around(&moments, |place, rows| found.push((place, rows.to_vec())));
        assert_eq!(found, [(0, vec![0]), (1, vec![0]), (2, vec![1, 0])]);
    }
}
