//! Where the time on the devices goes: by class, by kernel, by device and stream, and by any other
//! key that a kernel has.
//!
//! [`Partition`] divides kernels by a key and gives each part's [`Times`]; [`device_times`] says
//! when a device was busy with what. [`Summary`] is both for a whole trace, and [`SegmentSummary`]
//! divides it by what it is made of: phases, steps, and the layers with their patterns.

mod devices;
mod group;
mod layers;
mod order;
mod partition;
mod segments;
mod sweep;
#[cfg(test)]
mod tests;

use serde::Serialize;

pub use devices::{DeviceTime, GapLength, Idle, Overlap, StreamTime, device_times};
pub(crate) use group::longest_first;
pub use group::{Group, Times};
pub use layers::{LayerTime, PatternTime, Position};
pub use order::ByDuration;
pub use partition::Partition;
pub use segments::{PhaseTime, SegmentSummary, StepTime, phase_times};

use crate::classify::{Class, ClassSet, Classification, legacy_name};
use crate::ratio::ratio;
use crate::{Classes, NameId, Trace, Warning, at_once};
use sweep::{Interval, sweep};

/// Which names the classes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taxonomy {
    /// The project's own, fused combinations apart.
    Classes,
    /// The operation names of older tools.
    Legacy,
}

impl Taxonomy {
    /// What it calls the class of a kernel.
    pub(crate) fn label(self, classification: Classification, name: &str) -> String {
        match self {
            Self::Classes => classification.label(),
            Self::Legacy => legacy_name(classification.main, name).to_owned(),
        }
    }
}

/// Where the time on the devices goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// The time in which at least one of them ran on any device, in nanoseconds.
    pub busy_ns: u64,
    /// From the beginning of the first to the end of the last on any device, in nanoseconds.
    pub span_ns: u64,
    /// The share of the durations that no rule knows.
    pub unclassified_share: f64,
    /// What no rule knows.
    pub unclassified: Unclassified,
    /// By class, the longest first.
    pub by_class: Vec<Group>,
    /// By name and class, the longest first.
    pub by_kernel: Vec<Group>,
    /// Each device on its own.
    pub devices: Vec<DeviceTime>,
}

/// The kernels that no rule knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Unclassified {
    /// How many.
    pub count: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// The names with the longest durations, the longest first.
    pub top: Vec<Group>,
}

/// At most this many names of unknown kernels are listed.
const TOP_UNCLASSIFIED: usize = 10;

/// The share of the time in unknown kernels from which a reader must be warned.
const MOST_UNCLASSIFIED: f64 = 0.05;

impl Summary {
    /// Sums up a trace whose kernels it classifies.
    #[must_use]
    pub fn of(trace: &Trace, taxonomy: Taxonomy) -> Self {
        Self::with(trace, &Classes::of(trace), taxonomy)
    }

    /// Sums up a trace whose kernels are classified.
    #[must_use]
    pub fn with(trace: &Trace, classes: &Classes, taxonomy: Taxonomy) -> Self {
        let (groups, devices) =
            at_once(|| Groups::of(trace, classes, taxonomy), || device_times(trace, classes));
        Self::of_parts(trace, groups, devices)
    }

    fn of_parts(trace: &Trace, groups: Groups, devices: Vec<DeviceTime>) -> Self {
        let (busy_ns, span_ns) = match &devices[..] {
            [only] if only.kernels == trace.kernels.len() => (only.busy_ns, only.span_ns),
            _ => busy_and_span(trace),
        };
        let Groups { total_ns, unclassified, by_class, by_kernel } = groups;
        Self {
            kernels: trace.kernels.len(),
            total_ns,
            busy_ns,
            span_ns,
            unclassified_share: ratio(unclassified.total_ns, total_ns),
            unclassified,
            by_class,
            by_kernel,
            devices,
        }
    }

    /// The warning that too much of the time is in kernels that no rule knows.
    #[must_use]
    pub fn warning(&self) -> Option<Warning> {
        let too_much = self.unclassified_share > MOST_UNCLASSIFIED;
        too_much.then(|| Warning::Unclassified {
            count: self.unclassified.count as u64,
            time_ns: self.unclassified.total_ns,
            all_ns: self.total_ns,
            longest: self.unclassified.top.first().map(|top| top.name.clone()).unwrap_or_default(),
        })
    }
}

/// The kernels of a trace by class and by name.
struct Groups {
    total_ns: u64,
    unclassified: Unclassified,
    by_class: Vec<Group>,
    by_kernel: Vec<Group>,
}

impl Groups {
    fn of(trace: &Trace, classes: &Classes, taxonomy: Taxonomy) -> Self {
        let kernels = &trace.kernels;
        let by_duration = ByDuration::of(&kernels.duration_ns);
        let total_ns = total_ns(trace);
        let kinds = Partition::by(kernels.len(), |kernel| Kind::of(trace, classes, kernel));
        let label = |kind: &Kind| kind.label(trace, taxonomy);
        let labelled = kinds.coarser(|kind| Some((kind.name, label(kind))));
        let name = |id: &NameId| trace.names.text(*id).to_owned();
        let unknown = kinds.coarser(|kind| (kind.main == Class::Unclassified).then_some(kind.name));
        let unknown = unknown
            .groups(&by_duration, total_ns, |id| (name(id), Class::Unclassified.name().to_owned()));
        let unclassified = Unclassified::of(unknown);
        let labels = labelled.coarser(|(_, label)| Some(label.clone()));
        let by_class =
            labels.groups(&by_duration, total_ns, |label| (label.clone(), label.clone()));
        let by_kernel =
            labelled.groups(&by_duration, total_ns, |(id, label)| (name(id), label.clone()));
        Self { total_ns, unclassified, by_class, by_kernel }
    }
}

impl Unclassified {
    fn of(mut names: Vec<Group>) -> Self {
        let count = names.iter().map(|group| group.count).sum();
        let total_ns = names.iter().fold(0_u64, |sum, group| sum.saturating_add(group.total_ns));
        names.truncate(TOP_UNCLASSIFIED);
        Self { count, total_ns, top: names }
    }
}

/// Kernels of one name and class, before the class has a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    name: NameId,
    main: Class,
    also: ClassSet,
}

impl Kind {
    fn of(trace: &Trace, classes: &Classes, kernel: usize) -> Option<Self> {
        let Classification { main, also, .. } = classes.get(kernel);
        Some(Self { name: *trace.kernels.name.get(kernel)?, main, also })
    }

    fn label(&self, trace: &Trace, taxonomy: Taxonomy) -> String {
        let Self { name, main, also } = *self;
        let classification = Classification { main, also, ..Classification::UNCLASSIFIED };
        taxonomy.label(classification, trace.names.text(name))
    }
}

/// The durations of all kernels together, in nanoseconds.
fn total_ns(trace: &Trace) -> u64 {
    trace.kernels.duration_ns.iter().fold(0, |sum, &ns| u64::saturating_add(sum, ns))
}

/// The time in which anything ran on any device, and that from the first beginning to the last end,
/// in nanoseconds.
#[must_use]
pub fn busy_and_span(trace: &Trace) -> (u64, u64) {
    let kernels = &trace.kernels;
    let mut intervals: Vec<Interval> = kernels
        .start_ns
        .iter()
        .zip(&kernels.duration_ns)
        .map(|(&start_ns, &duration)| {
            let end_ns = start_ns.saturating_add_unsigned(duration);
            Interval { start_ns, end_ns, kind: 0 }
        })
        .collect();
    let swept = sweep(&mut intervals);
    (swept.sum(|set| set != 0), swept.span_ns())
}
