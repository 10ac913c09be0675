//! The time of each device: busy, idle, and what hides behind computation.
//!
//! Durations that are added up count what runs at the same time twice. Here every nanosecond of
//! a device counts once: the parts of [`DeviceTime`] add up to its span exactly.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::sweep::{Interval, Swept, sweep, union_ns};
use crate::classify::Class;
use crate::ratio::ratio;
use crate::{Classes, DeviceWork, Trace};

/// How the time of one device was spent, from its first kernel to its last. All in nanoseconds.
///
/// `busy_ns` = `compute_ns` + the exposed times of communication, copies and fills +
/// `mixed_ns`; `span_ns` = `busy_ns` + `idle.total_ns`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceTime {
    /// The device; -1 where the trace does not say.
    pub device: i64,
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// From the first beginning to the last end.
    pub span_ns: u64,
    /// At least one thing runs.
    pub busy_ns: u64,
    /// A kernel runs that is not communication.
    pub compute_ns: u64,
    /// Collectives and transfers between devices.
    pub communication: Overlap,
    /// Copies of the runtime. Kernels that copy are computation: they occupy the same units.
    pub copies: Overlap,
    /// Fills of the runtime.
    pub fills: Overlap,
    /// Several of communication, copies and fills run, and no computation.
    pub mixed_ns: u64,
    /// Nothing runs.
    pub idle: Idle,
    /// The streams, the longest busy first.
    pub streams: Vec<StreamTime>,
}

/// What of a kind of work hides behind other work. All in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overlap {
    /// It runs.
    pub busy_ns: u64,
    /// It runs, and nothing of another kind does.
    pub exposed_ns: u64,
    /// It runs, and so does something of another kind.
    pub overlapped_ns: u64,
}

/// The gaps between the first kernel and the last. All in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Idle {
    /// How many.
    pub gaps: usize,
    /// Together.
    pub total_ns: u64,
    /// The longest.
    pub largest_ns: u64,
    /// By length, in powers of ten; those of less than a microsecond first.
    pub by_length: Vec<GapLength>,
}

/// Gaps of about the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct GapLength {
    /// The least length, in nanoseconds. The next entry has the limit.
    pub from_ns: u64,
    /// How many.
    pub gaps: usize,
    /// Together, in nanoseconds.
    pub total_ns: u64,
}

/// The time of one stream.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamTime {
    /// The stream; -1 where the trace does not say.
    pub stream: i64,
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// At least one of them runs, in nanoseconds.
    pub busy_ns: u64,
    /// The part of the device's busy time in which this stream is busy.
    pub share: f64,
}

/// The bits of the kinds in the sets of a sweep.
const COMPUTE: u8 = 0;
const COMMUNICATION: u8 = 1;
const COPY: u8 = 2;
const FILL: u8 = 3;

/// Gaps are grouped by these lengths: launches follow each other within a microsecond or a few,
/// a host that does something else takes longer.
const GAP_LENGTHS_NS: [u64; 6] = [0, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/// The time of every device that ran something, by its number.
#[must_use]
pub fn device_times(trace: &Trace, classes: &Classes) -> Vec<DeviceTime> {
    let kernels = &trace.kernels;
    let mut lanes: Vec<Vec<Interval>> = vec![Vec::new(); trace.lanes.len()];
    let mut totals = vec![0_u64; trace.lanes.len()];
    for (index, &lane) in kernels.lane.iter().enumerate() {
        let (Some(intervals), Some(total)) =
            (lanes.get_mut(lane as usize), totals.get_mut(lane as usize))
        else {
            continue;
        };
        let (start_ns, duration_ns) = (kernels.start_ns[index], kernels.duration_ns[index]);
        let end_ns = start_ns.saturating_add_unsigned(duration_ns);
        let kind = match kernels.work[index] {
            DeviceWork::Memcpy => COPY,
            DeviceWork::Memset => FILL,
            DeviceWork::Kernel if classes.get(index).main == Class::Comm => COMMUNICATION,
            DeviceWork::Kernel => COMPUTE,
        };
        intervals.push(Interval { start_ns, end_ns, kind });
        *total = total.saturating_add(duration_ns);
    }
    let mut devices: FxHashMap<i64, (Vec<Interval>, Vec<StreamTime>)> = FxHashMap::default();
    for ((lane, mut intervals), total_ns) in trace.lanes.iter().zip(lanes).zip(totals) {
        if intervals.is_empty() {
            continue;
        }
        let (all, streams) = devices.entry(lane.device).or_default();
        streams.push(StreamTime {
            stream: lane.stream,
            kernels: intervals.len(),
            total_ns,
            busy_ns: union_ns(&mut intervals),
            share: 0.0,
        });
        all.append(&mut intervals);
    }
    let mut times: Vec<DeviceTime> = devices
        .into_iter()
        .map(|(device, (mut all, streams))| DeviceTime::of(device, &mut all, streams))
        .collect();
    times.sort_by_key(|time| time.device);
    times
}

impl DeviceTime {
    fn of(device: i64, intervals: &mut [Interval], mut streams: Vec<StreamTime>) -> Self {
        let swept = sweep(intervals);
        let busy_ns = swept.sum(|set| set != 0);
        let computes = |set: usize| set & 1 << COMPUTE != 0;
        for stream in &mut streams {
            stream.share = ratio(stream.busy_ns, busy_ns);
        }
        streams.sort_by(|a, b| b.busy_ns.cmp(&a.busy_ns).then(a.stream.cmp(&b.stream)));
        Self {
            device,
            kernels: intervals.len(),
            span_ns: swept.span_ns(),
            busy_ns,
            compute_ns: swept.sum(computes),
            communication: Overlap::of(&swept, COMMUNICATION),
            copies: Overlap::of(&swept, COPY),
            fills: Overlap::of(&swept, FILL),
            mixed_ns: swept.sum(|set| set.count_ones() > 1 && !computes(set)),
            idle: Idle::of(&swept.gaps_ns),
            streams,
        }
    }
}

impl Overlap {
    fn of(swept: &Swept, kind: u8) -> Self {
        let bit = 1_usize << kind;
        Self {
            busy_ns: swept.sum(|set| set & bit != 0),
            exposed_ns: swept.sum(|set| set == bit),
            overlapped_ns: swept.sum(|set| set & bit != 0 && set != bit),
        }
    }
}

impl Idle {
    fn of(gaps_ns: &[u64]) -> Self {
        let mut by_length =
            GAP_LENGTHS_NS.map(|from_ns| GapLength { from_ns, ..GapLength::default() }).to_vec();
        for &gap in gaps_ns {
            if let Some(length) = by_length.iter_mut().rfind(|length| gap >= length.from_ns) {
                length.gaps += 1;
                length.total_ns += gap;
            }
        }
        Self {
            gaps: gaps_ns.len(),
            total_ns: gaps_ns.iter().sum(),
            largest_ns: gaps_ns.iter().copied().max().unwrap_or(0),
            by_length,
        }
    }
}
