//! Where the time on the devices goes.

use serde::Serialize;

use crate::segment::Steps;
use crate::{
    Classes, DeviceTime, PhaseTime, RankFile, Summary, Taxonomy, Totals, TotalsSummary, Trace,
    Unclassified, phase_times,
};

/// The kernels of the traces of a run, together and by rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RanksSummary {
    /// All kernels.
    #[serde(flatten)]
    pub summary: TotalsSummary,
    /// What the classes are derived from.
    pub class_evidence: ClassEvidence,
    /// The traces.
    pub ranks: Vec<RankKernels>,
}

impl RanksSummary {
    /// The kernels of all `ranks`; `summary` is their sum.
    #[must_use]
    pub const fn new(
        summary: TotalsSummary,
        class_evidence: ClassEvidence,
        ranks: Vec<RankKernels>,
    ) -> Self {
        Self { summary, class_evidence, ranks }
    }
}

/// What the classes of kernels are derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClassEvidence {
    /// The names of the kernels and of the operators that launched them.
    NamesAndOperators,
    /// The names of the kernels alone, for at least one of the traces.
    Names,
}

/// The times of the kernels of one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankTime {
    /// The file.
    pub file: String,
    /// The rank, if it is known.
    pub rank: Option<u64>,
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// Their durations together, in nanoseconds.
    pub total_ns: u64,
    /// The time in which at least one of them ran, in nanoseconds, if the trace was read whole.
    pub busy_ns: Option<u64>,
    /// From the beginning of the first to the end of the last, in nanoseconds.
    pub span_ns: u64,
}

impl RankTime {
    /// The times of a trace that was [streamed](Trace::stream) into `totals`.
    #[must_use]
    pub fn of_parts(file: &RankFile, totals: &Totals) -> Self {
        let summary = totals.summary();
        Self {
            file: file.named.display().to_string(),
            rank: file.rank,
            kernels: summary.kernels,
            total_ns: summary.total_ns,
            busy_ns: None,
            span_ns: totals.span_ns(),
        }
    }
}

/// The kernels of one trace. What takes all of it is there only if it was read whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankKernels {
    /// Their times.
    #[serde(flatten)]
    pub time: RankTime,
    /// Those that no rule knows.
    pub unclassified: Option<Unclassified>,
    /// Each device on its own.
    pub devices: Option<Vec<DeviceTime>>,
    /// The phases; none of a trace without them, and none if only one was asked for.
    pub phases: Option<Vec<PhaseTime>>,
}

impl RankKernels {
    /// The kernels of a trace that was loaded, and their sum.
    ///
    /// `steps` is none if the kernels are those of one phase: between them run the kernels of
    /// others, so that the device is not idle there.
    #[must_use]
    pub fn of(
        file: &RankFile,
        trace: &Trace,
        classes: &Classes,
        steps: Option<&Steps>,
        taxonomy: Taxonomy,
    ) -> (Self, Summary) {
        let mut summary = Summary::with(trace, classes, taxonomy);
        let time = RankTime {
            file: file.named.display().to_string(),
            rank: file.rank,
            kernels: summary.kernels,
            total_ns: summary.total_ns,
            busy_ns: steps.map(|_| summary.busy_ns),
            span_ns: summary.span_ns,
        };
        let rank = Self {
            time,
            unclassified: Some(summary.unclassified.clone()),
            devices: steps.map(|_| std::mem::take(&mut summary.devices)),
            phases: steps.map(|steps| phase_times(trace, classes, steps, taxonomy)),
        };
        (rank, summary)
    }

    /// The kernels of a trace that was [streamed](Trace::stream) into `totals`.
    #[must_use]
    pub fn of_parts(file: &RankFile, totals: &Totals) -> Self {
        let time = RankTime::of_parts(file, totals);
        Self { time, unclassified: None, devices: None, phases: None }
    }
}
