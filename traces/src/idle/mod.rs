//! Where a device waits, and for what.
//!
//! Idle time is the time between kernels, copies and fills of a device, over all its streams. Each
//! gap belongs to the kernel that ends it: `gaps` finds the gaps, and divides each into parts by
//! the time at which that kernel was launched. `host` finds what the host did meanwhile. The parts
//! of all gaps add up to the idle time.

mod gaps;
mod host;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use serde::Serialize;

use crate::launched::launches;
use crate::ratio::ratio;
use crate::segment::Steps;
use crate::{NameId, Trace};
use gaps::Part;
pub use host::Doing;
use host::Host;

/// Where the devices of a trace wait, and for what.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IdleTimes {
    /// Each device on which something ran, by its number.
    pub devices: Vec<IdleDevice>,
}

/// Where a device waits. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IdleDevice {
    /// The device; -1 where the trace does not say.
    pub device: i64,
    /// From the beginning of the first kernel to the end of the last.
    pub span_ns: u64,
    /// The time in which nothing ran.
    pub idle_ns: u64,
    /// Gaps between kernels.
    pub gaps: u64,
    /// By cause: the parts of the gaps, the longest first. They add up to the idle time.
    pub by_cause: Vec<IdleCause>,
    /// By cause, what the host did, and the kernel that ends the gap, the longest first.
    pub places: Vec<IdlePlace>,
}

/// What a device waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "IdleCause"))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The host was busy with something else and had launched nothing.
    Host,
    /// The host waited for the device, and so had launched nothing.
    Synchronisation,
    /// The queue was empty: the kernel was being launched, or had just been and was on its way.
    Launch,
    /// The kernel was in its queue, and the last one to end was on another stream.
    OtherStream,
    /// The kernel was in its queue behind the last one to end.
    Queued,
    /// The trace does not say when the kernel was launched.
    Unknown,
}

impl Cause {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Synchronisation => "synchronisation",
            Self::Launch => "launch",
            Self::OtherStream => "other_stream",
            Self::Queued => "queued",
            Self::Unknown => "unknown",
        }
    }

    /// In words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Host => "the host had launched nothing",
            Self::Synchronisation => "the host waited for the device",
            Self::Launch => "the queue was empty, the launch on its way",
            Self::OtherStream => "waiting for another stream",
            Self::Queued => "between kernels that were queued",
            Self::Unknown => "no launch is recorded",
        }
    }
}

/// Idle time of one cause. All times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IdleCause {
    /// The cause.
    pub cause: Cause,
    /// Gaps that have a part of this cause.
    pub count: u64,
    /// These parts together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// The part of the idle time.
    pub share: f64,
}

/// Idle time of one cause in one place. All times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct IdlePlace {
    /// The cause.
    pub cause: Cause,
    /// What the host did most of the time, if the trace says.
    pub doing: Option<String>,
    /// What that is.
    pub doing_kind: Option<Doing>,
    /// The kernel that ends the gap.
    pub before: String,
    /// Gaps.
    pub count: u64,
    /// Their parts of this cause together.
    pub total_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// The part of the idle time.
    pub share: f64,
    /// The marked steps in which they are; none if nothing is marked.
    pub steps: Option<u64>,
    /// Where in their steps they are on average: the part of the step's kernels that ran before.
    pub at: Option<f64>,
}

#[derive(Debug, Clone, Default)]
struct Sums {
    count: u64,
    total_ns: u64,
    longest_ns: u64,
    steps: FxHashSet<usize>,
    at: f64,
    placed: u64,
}

/// A part of a gap of a device that has one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) cause: Cause,
    pub(crate) ns: u64,
    /// The kernel that ends the gap.
    pub(crate) kernel: usize,
    /// What the host did most of the time, if the trace says.
    pub(crate) doing: Option<NameId>,
}

/// All parts of the gaps of a device.
pub(crate) fn waits(trace: &Trace, device: i64) -> Vec<Wait> {
    let (launches, host) = (launches(trace), Host::of(trace));
    let (gaps, _) = gaps::gaps(trace, &gaps::rows_of(trace, device));
    let parts: Vec<Part> =
        gaps.iter().flat_map(|gap| gaps::parts(trace, &launches, &host, gap)).collect();
    let doing = host.doing(trace, &parts);
    let wait = |(part, doing): (&Part, Option<(Doing, NameId)>)| Wait {
        cause: part.cause,
        ns: part.ns,
        kernel: part.kernel,
        doing: doing.map(|(_, name)| name),
    };
    parts.iter().zip(doing).map(wait).collect()
}

/// What gaps of one place have in common: the cause, what the host did, and the kernel behind.
type Place = (Cause, Option<(Doing, NameId)>, NameId);

/// At most this many places of a device are kept.
const MOST_PLACES: usize = 200;

impl IdleTimes {
    /// Those of a trace with its steps.
    #[must_use]
    pub fn of(trace: &Trace, steps: &Steps) -> Self {
        Self::before(trace, steps, |_| true)
    }

    /// Those before some kernels, by their rows: a gap is of the kernel that ends it.
    #[must_use]
    pub fn before(trace: &Trace, steps: &Steps, is_one: impl Fn(usize) -> bool) -> Self {
        let launches = launches(trace);
        let host = Host::of(trace);
        let mut numbers: Vec<i64> = (0..trace.kernels.len())
            .filter_map(|row| trace.lane_of(row).map(|lane| lane.device))
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        let devices = numbers.into_iter().map(|device| {
            let rows = gaps::rows_of(trace, device);
            let (gaps, span_ns) = gaps::gaps(trace, &rows);
            let gaps: Vec<gaps::Gap> = gaps.into_iter().filter(|gap| is_one(gap.kernel)).collect();
            let parts: Vec<Part> =
                gaps.iter().flat_map(|gap| gaps::parts(trace, &launches, &host, gap)).collect();
            let doing = host.doing(trace, &parts);
            IdleDevice::of(trace, steps, device, span_ns, &rows, gaps.len(), &parts, &doing)
        });
        Self { devices: devices.collect() }
    }
}

impl IdleDevice {
    #[expect(clippy::too_many_arguments, reason = "what was found of one device")]
    fn of(
        trace: &Trace,
        steps: &Steps,
        device: i64,
        span_ns: u64,
        rows: &[usize],
        gaps: usize,
        parts: &[Part],
        doing: &[Option<(Doing, NameId)>],
    ) -> Self {
        let at = places_in_steps(steps, rows);
        let idle_ns = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(part.ns));
        let mut causes: BTreeMap<Cause, Sums> = BTreeMap::new();
        let mut places: BTreeMap<Place, Sums> = BTreeMap::new();
        for (part, doing) in parts.iter().zip(doing) {
            let step = steps.step(part.kernel);
            let at = at.get(&part.kernel).copied();
            let before = trace.kernels.name.get(part.kernel).copied().unwrap_or(NameId(0));
            causes.entry(part.cause).or_default().add(part.ns, step, at);
            places.entry((part.cause, *doing, before)).or_default().add(part.ns, step, at);
        }
        let mut by_cause: Vec<IdleCause> = causes
            .into_iter()
            .map(|(cause, sums)| IdleCause {
                cause,
                count: sums.count,
                total_ns: sums.total_ns,
                longest_ns: sums.longest_ns,
                share: ratio(sums.total_ns, idle_ns),
            })
            .collect();
        by_cause.sort_by_key(|one| std::cmp::Reverse(one.total_ns));
        let has_steps = !steps.list.is_empty();
        let mut places: Vec<IdlePlace> = places
            .into_iter()
            .map(|((cause, doing, before), sums)| {
                #[expect(clippy::cast_precision_loss, reason = "a mean")]
                let at = (sums.placed > 0).then(|| sums.at / sums.placed as f64);
                IdlePlace {
                    cause,
                    doing: doing.map(|(_, name)| trace.names.text(name).to_owned()),
                    doing_kind: doing.map(|(kind, _)| kind),
                    before: trace.names.text(before).to_owned(),
                    count: sums.count,
                    total_ns: sums.total_ns,
                    longest_ns: sums.longest_ns,
                    share: ratio(sums.total_ns, idle_ns),
                    steps: has_steps.then_some(sums.steps.len() as u64),
                    at,
                }
            })
            .collect();
        places.sort_by_key(|one| std::cmp::Reverse(one.total_ns));
        places.truncate(MOST_PLACES);
        Self { device, span_ns, idle_ns, gaps: gaps as u64, by_cause, places }
    }
}

impl Sums {
    fn add(&mut self, ns: u64, step: Option<usize>, at: Option<f64>) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
        self.steps.extend(step);
        if let Some(at) = at {
            self.at += at;
            self.placed += 1;
        }
    }
}

/// Of each kernel of a step the part of the step's kernels that ran before it, of rows in the order
/// in which they ran.
fn places_in_steps(steps: &Steps, rows: &[usize]) -> BTreeMap<usize, f64> {
    let mut of_step: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for &row in rows {
        if let Some(step) = steps.step(row) {
            of_step.entry(step).or_default().push(row);
        }
    }
    let mut at = BTreeMap::new();
    for rows in of_step.into_values() {
        for (place, row) in rows.iter().enumerate() {
            at.insert(*row, ratio(place as u64, rows.len() as u64));
        }
    }
    at
}
