//! The operators that look up tokens. The framework's own selects rows of its table in an operator
//! of their own, which launches the kernel and does not say how many sequences there are.

use rustc_hash::FxHashMap;

use crate::Trace;
use crate::enclosing::{Intervals, Moment};
use crate::shapes::base;

/// By the row of an operator that selects rows, that of the operator that looks up tokens with it.
pub(super) fn lookups(trace: &Trace) -> FxHashMap<u32, u32> {
    let ops = &trace.ops;
    let rows_of = |wanted: &str| -> Vec<usize> {
        let names: Vec<bool> = trace.names.iter().map(|(_, name)| base(name) == wanted).collect();
        let is_wanted = |row: &usize| names.get(ops.name[*row].0 as usize) == Some(&true);
        (0..ops.len()).filter(is_wanted).collect()
    };
    let (outer, inner) = (rows_of("embedding"), rows_of("index_select"));
    let start_ns: Vec<i64> = outer.iter().map(|row| ops.start_ns[*row]).collect();
    let duration_ns: Vec<u64> = outer.iter().map(|row| ops.duration_ns[*row]).collect();
    let thread: Vec<u32> = outer.iter().map(|row| ops.thread[*row]).collect();
    let calls = Intervals { start_ns: &start_ns, duration_ns: &duration_ns, thread: &thread };
    let moments: Vec<Moment> = inner
        .iter()
        .map(|row| Moment { thread: ops.thread[*row], time_ns: ops.start_ns[*row] })
        .collect();
    let mut found = FxHashMap::default();
    let row = |row: usize| u32::try_from(row).ok();
    calls.around(&moments, |place, open| {
        let innermost = open.first().and_then(|open| row(outer[*open]));
        if let (Some(inner), Some(outer)) = (row(inner[place]), innermost) {
            found.insert(inner, outer);
        }
    });
    found
}
