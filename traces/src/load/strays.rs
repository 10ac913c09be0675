//! Events whose times cannot belong to the recording.
//!
//! A profiler that writes one wrong time makes a device idle for years. Nobody records for a week: an
//! event that lasts longer is taken for one without a duration, and an event that lies further from
//! the others is left out.

use crate::{Column, Trace};

/// A week.
pub(super) const LONGEST_NS: u64 = 7 * 24 * 3600 * 1_000_000_000;

/// Leaves out events that lie more than a week from the others: how many.
pub(super) fn leave_out(trace: &mut Trace) -> u64 {
    let Some(middle) = middle(trace) else { return 0 };
    let mut count = 0;
    macro_rules! keep_near {
        ($($table:ident),*) => {$(
            let keeps = near(&trace.$table.start_ns, middle);
            count += keeps.iter().filter(|keeps| !**keeps).count() as u64;
            trace.$table.retain(|row| keeps.get(row) == Some(&true));
        )*};
    }
    keep_near!(kernels, launches, annotations, ops, frames);
    count
}

/// Which rows of a table are not far from the middle of all; from that of the table, if it has a clock
/// of its own, as devices may.
fn near(starts: &[i64], middle: i64) -> Vec<bool> {
    let is_on_one_clock = starts.iter().any(|start| is_near(*start, middle));
    let middle = if is_on_one_clock { Some(middle) } else { median(starts.to_vec()) };
    let keeps = |start: &i64| middle.is_some_and(|middle| is_near(*start, middle));
    starts.iter().map(keeps).collect()
}

/// The median of all beginnings, if they lie further apart than a recording is long.
fn middle(trace: &Trace) -> Option<i64> {
    let tables = [
        &trace.kernels.start_ns,
        &trace.launches.start_ns,
        &trace.annotations.start_ns,
        &trace.ops.start_ns,
        &trace.frames.start_ns,
    ];
    // Table by table: a chain of them takes some times as long.
    let ends = |starts: &&Column<i64>| {
        let ends = (i64::MAX, i64::MIN);
        starts.iter().fold(ends, |(first, last), one| (first.min(*one), last.max(*one)))
    };
    let is_there = |starts: &&&Column<i64>| !starts.is_empty();
    let ends = tables.iter().filter(is_there).map(ends);
    let (first, last) = ends.reduce(|one, more| (one.0.min(more.0), one.1.max(more.1)))?;
    let starts = || tables.iter().flat_map(|starts| starts.iter().copied());
    if is_near(first, last) { None } else { median(starts().collect()) }
}

fn median(mut starts: Vec<i64>) -> Option<i64> {
    let middle = starts.len() / 2;
    (!starts.is_empty()).then(|| *starts.select_nth_unstable(middle).1)
}

/// Whether two times may be of one recording.
fn is_near(one: i64, other: i64) -> bool {
    one.abs_diff(other) <= LONGEST_NS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, Warning};

    /// Kernels and operators that begin at some microseconds, each 5 us long.
    fn trace(kernels: &[&str], ops: &[&str]) -> Trace {
        let events = |category: &str, starts: &[&str]| -> Vec<String> {
            let event = |start: &&str| {
                format!(
                    "{{\"ph\": \"X\", \"cat\": \"{category}\", \"name\": \"{category}\", \"pid\": 0, \
                     \"tid\": 7, \"ts\": {start}, \"dur\": 5}}"
                )
            };
            starts.iter().map(event).collect()
        };
        let all = [events("kernel", kernels), events("cpu_op", ops)].concat();
        let text = format!("[{}]", all.join(","));
        let strict = Options { strict: true, ..Options::default() };
        let trace = Trace::from_json(text.as_bytes(), &Options::default()).unwrap();
        assert_eq!(Trace::from_json(text.as_bytes(), &strict).unwrap(), trace);
        trace
    }

    const NOW: &str = "1428625731000000";
    const LATER: &str = "1428625731000010";

    #[test]
    fn what_lies_far_from_all_others_is_left_out() {
        for stray in ["-5", "0", "12.5", "9223372036854775"] {
            for kernels in [[NOW, stray, LATER], [stray, NOW, LATER], [NOW, LATER, stray]] {
                let trace = trace(&kernels, &[]);
                let starts: Vec<i64> = trace.kernels.start_ns.to_vec();
                assert_eq!(starts, [1_428_625_731_000_000_000, 1_428_625_731_000_010_000]);
                assert_eq!(trace.kernels.duration_ns.to_vec(), [5000, 5000]);
                assert_eq!(trace.warnings, [Warning::StrayTimes { count: 1 }]);
            }
        }
        // Of two, the operators say which.
        for kernels in [[NOW, "-5"], ["9223372036854775", NOW]] {
            let trace = trace(&kernels, &[NOW, LATER, "-7"]);
            assert_eq!((trace.kernels.len(), trace.ops.len()), (1, 2));
            assert_eq!(trace.warnings, [Warning::StrayTimes { count: 2 }]);
        }
    }

    #[test]
    fn a_device_may_have_a_clock_of_its_own() {
        let trace = trace(&["100", "200", "300"], &[NOW, LATER, NOW, LATER]);
        assert_eq!((trace.kernels.len(), trace.ops.len()), (3, 4));
        assert_eq!(trace.warnings, []);
    }

    #[test]
    fn a_day_is_not_too_long() {
        let trace = trace(&["0", "86400000000"], &[]);
        assert_eq!((trace.kernels.len(), trace.warnings.len()), (2, 0));
    }

    #[test]
    fn what_lasts_for_more_than_a_week_has_no_duration() {
        let of = |durations: &[&str]| {
            let event = |duration: &&str| {
                format!(
                    "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"a\", \"pid\": 0, \"tid\": 7, \
                     \"ts\": 1, \"dur\": {duration}}}"
                )
            };
            let events: Vec<String> = durations.iter().map(event).collect();
            Trace::from_json(format!("[{}]", events.join(",")).as_bytes(), &Options::default())
                .unwrap()
        };
        let trace = of(&["7", "604800000000", "604800000000.001", "9200000000000000"]);
        assert_eq!(trace.kernels.duration_ns.to_vec(), [7000, LONGEST_NS, 0, 0]);
        assert!(matches!(trace.warnings[..], [Warning::BadDurations { count: 2, .. }]));
        // Weeks that no sum holds.
        let many = vec!["604800000000"; usize::try_from(u64::MAX / LONGEST_NS).unwrap() + 1];
        assert_eq!(of(&many).warnings, [Warning::Overflow]);
        assert_eq!(of(&many[1..]).warnings, []);
    }
}
