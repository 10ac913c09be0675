//! Whether two traces are one recording, under whatever names.

use crate::Trace;

/// Whether all kernels have the same names and times; the recordings may count time from another
/// moment.
pub(super) fn are_one_recording([first, second]: [&Trace; 2]) -> bool {
    let (a, b) = (&first.kernels, &second.kernels);
    if a.len() != b.len() || a.duration_ns != b.duration_ns {
        return false;
    }
    let since = |trace: &Trace, start_ns: &i64| {
        start_ns.wrapping_sub(trace.kernels.start_ns.first().copied().unwrap_or_default())
    };
    let mut starts = a.start_ns.iter().zip(b.start_ns.iter());
    let mut names = a.name.iter().zip(b.name.iter());
    starts.all(|(own, other)| since(first, own) == since(second, other))
        && names.all(|(own, other)| first.names.text(*own) == second.names.text(*other))
}
