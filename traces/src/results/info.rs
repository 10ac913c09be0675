//! The devices of traces and what was recorded.

use serde::Serialize;

use super::RankTime;
use crate::collectives::RankSurvey;
use crate::{
    Device, DeviceWork, NameClasses, RankFile, Streamed, Taxonomy, Totals, Trace, Vendor,
    busy_and_span,
};

/// What was recorded of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunInfo {
    /// Each of its traces.
    pub ranks: Vec<RankInfo>,
    /// Which rank waits for which; none of a single trace, and of traces that were read in parts.
    pub survey: Option<RankSurvey>,
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
    /// Copies and fills, which are not among the kernels here.
    pub copies: usize,
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
    pub const fn new(ranks: Vec<RankInfo>, survey: Option<RankSurvey>) -> Self {
        Self { ranks, survey }
    }

    /// What was recorded in all traces together.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.ranks.iter().fold(Counts::default(), |all, rank| Counts {
            events: all.events + rank.counts.events,
            copies: all.copies + rank.counts.copies,
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
        let is_copy = |work: &&DeviceWork| **work != DeviceWork::Kernel;
        self.copies += part.kernels.work.iter().filter(is_copy).count();
        self.launches += part.launches.len();
        self.operators += part.ops.len();
        self.annotations += part.annotations.len();
        self.python_frames += part.frames.len();
        self.streams = part.lanes.len();
    }
}

impl RankInfo {
    /// The same with the times of some kernels only, which [`Trace::only`] gives.
    #[must_use]
    pub fn with_times_of(mut self, part: &Trace) -> Self {
        let is_kernel = |work: &&DeviceWork| **work == DeviceWork::Kernel;
        self.time.kernels = part.kernels.work.iter().filter(is_kernel).count();
        self.counts.copies = part.kernels.len() - self.time.kernels;
        self.time.total_ns = u64::try_from(part.kernels.total_ns()).unwrap_or(u64::MAX);
        // Others run in between.
        self.time.busy_ns = None;
        self.time.span_ns = busy_and_span(part).1;
        self
    }

    /// What was recorded in a trace that was loaded.
    #[must_use]
    pub fn of(file: &RankFile, trace: &Trace) -> Self {
        let (busy_ns, span_ns) = busy_and_span(trace);
        let mut counts = Counts { events: trace.events, ..Counts::default() };
        counts.add(trace);
        Self {
            time: RankTime {
                file: file.named.display().to_string(),
                rank: file.rank,
                kernels: trace.kernels.len() - counts.copies,
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
        let mut time = RankTime::of_parts(file, &self.totals);
        time.kernels = time.kernels.saturating_sub(self.counts.copies);
        RankInfo {
            time,
            vendor,
            devices: streamed.metadata.devices,
            counts: Counts { events: streamed.events, ..self.counts },
        }
    }
}
