//! The gaps of a device, and the parts of each by cause.

use super::Cause;
use super::host::Host;
use crate::launched::NONE;
use crate::{NameId, Trace};

/// Time in which nothing ran on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    start_ns: i64,
    end_ns: i64,
    /// The kernel that ends it.
    pub(super) kernel: usize,
    /// The last kernel that ended before it.
    last: usize,
}

/// A part of a gap that has one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) cause: Cause,
    /// When it begins, by the clock of the trace.
    pub(super) start_ns: i64,
    pub(super) ns: u64,
    /// The kernel that ends the gap.
    pub(super) kernel: usize,
    /// The thread that launched it, if it is known.
    pub(super) thread: Option<u32>,
}

/// What ran on a device, in the order in which it began.
pub(super) fn rows_of(trace: &Trace, device: i64) -> Vec<usize> {
    let is_here = |row: &usize| trace.lane_of(*row).is_some_and(|lane| lane.device == device);
    let mut rows: Vec<usize> = (0..trace.kernels.len()).filter(is_here).collect();
    rows.sort_by_key(|row| trace.kernels.start_ns.get(*row).copied());
    rows
}

/// The gaps between them, and the time from the first to the end of the last.
pub(super) fn gaps(trace: &Trace, rows: &[usize]) -> (Vec<Gap>, u64) {
    let kernels = &trace.kernels;
    let mut gaps = Vec::new();
    let (mut first_ns, mut last): (Option<i64>, Option<(i64, usize)>) = (None, None);
    for &row in rows {
        let (Some(&start_ns), Some(&duration)) =
            (kernels.start_ns.get(row), kernels.duration_ns.get(row))
        else {
            continue;
        };
        let end_ns = start_ns.saturating_add_unsigned(duration);
        first_ns.get_or_insert(start_ns);
        match last {
            Some((busy_until, last)) if start_ns > busy_until => {
                gaps.push(Gap { start_ns: busy_until, end_ns: start_ns, kernel: row, last });
            }
            _ => {}
        }
        if last.is_none_or(|(busy_until, _)| end_ns >= busy_until) {
            last = Some((end_ns, row));
        }
    }
    let span = first_ns.zip(last).map(|(first, (end, _))| between(first, end));
    (gaps, span.unwrap_or(0))
}

/// The call that launched a kernel.
struct Call {
    start_ns: i64,
    end_ns: i64,
    name: NameId,
    thread: u32,
}

impl Call {
    /// By its row in the table of launches.
    fn of(trace: &Trace, launch: u32) -> Option<Self> {
        let (calls, row) = (&trace.launches, launch as usize);
        let start_ns = *calls.start_ns.get(row)?;
        Some(Self {
            start_ns,
            end_ns: start_ns.saturating_add_unsigned(*calls.duration_ns.get(row)?),
            name: *calls.name.get(row)?,
            thread: *calls.thread.get(row)?,
        })
    }
}

/// The parts of a gap, which add up to it.
pub(super) fn parts(trace: &Trace, launches: &[u32], host: &Host, gap: &Gap) -> Vec<Part> {
    let Gap { start_ns, end_ns, kernel, last } = *gap;
    let launch = launches.get(kernel).copied().filter(|launch| *launch != NONE);
    let call = launch.and_then(|launch| Call::of(trace, launch));
    let part = |cause, start_ns, ns, thread| Part { cause, start_ns, ns, kernel, thread };
    let whole = between(start_ns, end_ns);
    // A launch behind the kernel is that of another one.
    let Some(call) = call.filter(|call| call.start_ns <= end_ns) else {
        return vec![part(Cause::Unknown, start_ns, whole, None)];
    };
    let Call { start_ns: launched_ns, end_ns: returned_ns, thread, .. } = call;
    if launched_ns <= start_ns {
        let is_same = trace.lane_of(kernel) == trace.lane_of(last);
        let behind = if is_same { Cause::Queued } else { Cause::OtherStream };
        // Until the call returns, the kernel may not be in its queue. A call that waits for the
        // device returns long after that.
        let queued_ns =
            if host.waits_in(call.name) { start_ns } else { returned_ns.clamp(start_ns, end_ns) };
        let parts = [
            part(Cause::Launch, start_ns, between(start_ns, queued_ns), Some(thread)),
            part(behind, queued_ns, between(queued_ns, end_ns), Some(thread)),
        ];
        return parts.into_iter().filter(|part| part.ns > 0).collect();
    }
    let before = between(start_ns, launched_ns);
    let waited = host.waited_ns(thread, start_ns, launched_ns).min(before);
    let parts = [
        part(Cause::Synchronisation, start_ns, waited, Some(thread)),
        part(Cause::Host, start_ns, before - waited, Some(thread)),
        part(Cause::Launch, launched_ns, whole - before, Some(thread)),
    ];
    parts.into_iter().filter(|part| part.ns > 0).collect()
}

/// From one time to a later one.
pub(super) fn between(start_ns: i64, end_ns: i64) -> u64 {
    u64::try_from(i128::from(end_ns) - i128::from(start_ns)).unwrap_or(0)
}
