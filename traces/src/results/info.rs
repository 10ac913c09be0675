//! The devices of traces and what was recorded.

use serde::Serialize;

use super::RankTime;
use crate::{
    Device, NameClasses, RankFile, Streamed, Taxonomy, Totals, Trace, Vendor, busy_and_span,
};

/// What was recorded of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunInfo {
    /// Each of its traces.
    pub ranks: Vec<RankInfo>,
}

/// What was recorded in one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RankInfo {
    /// The times of its kernels.
    #[serde(flatten)]
    pub time: RankTime,
    /// Who made the devices.
    pub vendor: Vendor,
    /// The devices of the machine, also those that the run did not use.
    pub devices: Vec<Device>,
    /// What was recorded in addition to kernels.
    #[serde(flatten)]
    pub counts: Counts,
}

/// How many rows of each kind a trace has, apart from its kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Events, with those that are not kept.
    pub events: u64,
    /// Calls of the runtime or the driver.
    pub launches: usize,
    /// Operators.
    pub operators: usize,
    /// What the program marked.
    pub annotations: usize,
    /// Calls of Python functions and modules.
    pub python_frames: usize,
    /// Streams of devices.
    pub streams: usize,
}

impl RunInfo {
    /// The run of these traces.
    #[must_use]
    pub const fn new(ranks: Vec<RankInfo>) -> Self {
        Self { ranks }
    }

    /// What was recorded in all traces together.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.ranks.iter().fold(Counts::default(), |all, rank| Counts {
            events: all.events + rank.counts.events,
            launches: all.launches + rank.counts.launches,
            operators: all.operators + rank.counts.operators,
            annotations: all.annotations + rank.counts.annotations,
            python_frames: all.python_frames + rank.counts.python_frames,
            streams: all.streams + rank.counts.streams,
        })
    }
}

impl Counts {
    /// Adds the rows of a trace or of a part of one, but not its events.
    fn add(&mut self, part: &Trace) {
        self.launches += part.launches.len();
        self.operators += part.ops.len();
        self.annotations += part.annotations.len();
        self.python_frames += part.frames.len();
        self.streams = part.lanes.len();
    }
}

impl RankInfo {
    /// What was recorded in a trace that was loaded.
    #[must_use]
    pub fn of(file: &RankFile, trace: &Trace) -> Self {
        let (busy_ns, span_ns) = busy_and_span(trace);
        let mut counts = Counts { events: trace.events, ..Counts::default() };
        counts.add(trace);
        Self {
            time: RankTime {
                file: file.path.display().to_string(),
                rank: file.rank,
                kernels: trace.kernels.len(),
                total_ns: u64::try_from(trace.kernels.total_ns()).unwrap_or(u64::MAX),
                busy_ns: Some(busy_ns),
                span_ns,
            },
            vendor: trace.vendor(),
            devices: trace.metadata.devices.clone(),
            counts,
        }
    }
}

/// Adds up the parts of a trace that is [streamed](Trace::stream).
#[derive(Debug)]
pub struct InfoParts {
    counts: Counts,
    totals: Totals,
    classes: NameClasses,
    vendor: Vendor,
}

impl Default for InfoParts {
    fn default() -> Self {
        Self {
            counts: Counts::default(),
            totals: Totals::new(Taxonomy::Classes),
            classes: NameClasses::default(),
            vendor: Vendor::Unknown,
        }
    }
}

impl InfoParts {
    /// Adds the next part.
    pub fn add(&mut self, part: &Trace) {
        self.counts.add(part);
        self.totals.add(part, &self.classes.of(part));
        if self.vendor == Vendor::Unknown {
            self.vendor = part.vendor();
        }
    }

    /// What was recorded in all parts.
    #[must_use]
    pub fn finish(self, file: &RankFile, streamed: Streamed) -> RankInfo {
        let vendor = match streamed.metadata.vendor() {
            // What the calls are named after.
            Vendor::Unknown => self.vendor,
            known => known,
        };
        RankInfo {
            time: RankTime::of_parts(file, &self.totals),
            vendor,
            devices: streamed.metadata.devices,
            counts: Counts { events: streamed.events, ..self.counts },
        }
    }
}
