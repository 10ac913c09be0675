//! What is kept of the trace of one rank.

use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::operation::{Family, Operation};
use super::operators::Operators;
use crate::classify::Class;
use crate::ratio::ratio;
use crate::segment::MarkKind;
use crate::{
    Classes, DeviceTime, DeviceWork, Message, NameId, Overlap, RankFile, Segments, Trace, Vendor,
    device_times,
};

/// Whose trace it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankName {
    /// The number of its process, if it is known.
    pub rank: Option<u64>,
    /// The file.
    pub file: String,
}

impl RankName {
    /// What it has in the order of ranks: those without a number come last, by their files.
    pub(super) fn order(&self) -> (u64, &str) {
        (self.rank.unwrap_or(u64::MAX), &self.file)
    }
}

impl fmt::Display for RankName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rank {
            Some(rank) => write!(f, "rank {rank}"),
            None => f.write_str(&self.file),
        }
    }
}

impl From<&RankFile> for RankName {
    fn from(file: &RankFile) -> Self {
        Self { rank: file.rank, file: file.named.display().to_string() }
    }
}

/// What one rank did. All times are in nanoseconds, and those of the device that was busy longest.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RankRecord {
    /// Whose it is.
    #[serde(flatten)]
    pub name: RankName,
    /// How many processes the run had, if the trace says.
    pub world_size: Option<u64>,
    /// Who made the device.
    pub vendor: Vendor,
    /// The device; none if nothing ran, -1 where the trace does not say.
    pub device: Option<i64>,
    /// What the device is called; empty where the trace does not say.
    pub device_name: String,
    /// On how many devices something ran. Nothing here is of the others.
    pub devices: usize,
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// From the beginning of the first kernel to the end of the last.
    pub span_ns: u64,
    /// At least one kernel ran.
    pub busy_ns: u64,
    /// None ran.
    pub idle_ns: u64,
    /// Communication, exposed and overlapped.
    pub communication: Overlap,
    /// Steps that the program marked; none if they were not looked for.
    pub steps: Option<usize>,
    /// Passes through the model; none if they were not looked for.
    pub passes: Option<usize>,
    /// The share of the durations that no rule knows.
    pub unclassified_share: f64,
    /// Kernels that communicate.
    pub collectives: usize,
    /// Their durations together.
    pub collective_ns: u64,
    /// The codes of the trace's warnings.
    pub warnings: Vec<&'static str>,
    #[serde(skip)]
    pub(super) families: Vec<Family>,
    #[serde(skip)]
    pub(super) queues: Vec<Queue>,
}

/// The collectives of one process group, or of one stream where the trace names no groups, in the
/// order in which they ran. A communicator of PyTorch has a stream of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    /// The group and its ranks, in the words of the profiler.
    pub(super) group: Option<String>,
    /// How many ranks the group has; 0 if the trace does not say.
    pub(super) group_size: u64,
    /// The stream of the first.
    pub(super) stream: i64,
    pub(super) collectives: Vec<Collective>,
}

/// A kernel that communicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Collective {
    /// What it is: an index into the families of its record.
    pub(super) family: u32,
    /// When it began, by the clock of its rank.
    pub(super) start_ns: i64,
    pub(super) duration_ns: u64,
    /// The number that the profiler gave to its step, which is the same on all ranks.
    pub(super) step: Option<u64>,
    /// Its number in its group, which is the same on all ranks; 0 if the trace does not say.
    pub(super) sequence: u32,
    /// How large it is; 0 if the trace does not say.
    pub(super) bytes: u64,
}

impl Collective {
    pub(super) fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add_unsigned(self.duration_ns)
    }
}

impl RankRecord {
    /// What is kept of a trace. Steps and passes are counted if the segments are given, and
    /// collectives then know their steps.
    #[must_use]
    pub fn of(
        trace: &Trace,
        classes: &Classes,
        segments: Option<&Segments>,
        name: RankName,
    ) -> Self {
        let times = device_times(trace, classes);
        let devices = times.len();
        // Of equally busy ones the first.
        let busiest = times.into_iter().rev().max_by_key(|time| time.busy_ns);
        let device = busiest.as_ref().map(|time| time.device);
        let mut record = Self {
            world_size: trace.metadata.distributed.as_ref().and_then(|place| place.world_size),
            vendor: trace.vendor(),
            device_name: device_name(trace, device),
            devices,
            steps: segments.map(|segments| segments.steps.list.len()),
            passes: segments.map(|segments| {
                let passes = segments.layers.passes.iter();
                passes.filter(|pass| Some(pass.device) == device).count()
            }),
            unclassified_share: unclassified_share(trace, classes, device),
            warnings: trace.warnings.iter().map(crate::Warning::code).collect(),
            ..Self::empty(name, busiest)
        };
        record.collect(trace, classes, segments);
        record
    }

    fn empty(name: RankName, time: Option<DeviceTime>) -> Self {
        let mut record = Self {
            name,
            world_size: None,
            vendor: Vendor::Unknown,
            device: None,
            device_name: String::new(),
            devices: 0,
            kernels: 0,
            span_ns: 0,
            busy_ns: 0,
            idle_ns: 0,
            communication: Overlap::default(),
            steps: None,
            passes: None,
            unclassified_share: 0.0,
            collectives: 0,
            collective_ns: 0,
            warnings: Vec::new(),
            families: Vec::new(),
            queues: Vec::new(),
        };
        if let Some(time) = time {
            record.device = Some(time.device);
            record.kernels = time.kernels;
            record.span_ns = time.span_ns;
            record.busy_ns = time.busy_ns;
            record.idle_ns = time.idle.total_ns;
            record.communication = time.communication;
        }
        record
    }

    /// Puts the collectives of the device into queues.
    fn collect(&mut self, trace: &Trace, classes: &Classes, segments: Option<&Segments>) {
        let kernels = &trace.kernels;
        let is_one = |kernel: &usize| {
            kernels.work.get(*kernel) == Some(&DeviceWork::Kernel)
                && classes.get(*kernel).main == Class::Comm
                && trace.lane_of(*kernel).map(|lane| lane.device) == self.device
        };
        let rows: Vec<usize> = (0..kernels.len()).filter(is_one).collect();
        let operators = Operators::of(trace, &rows);
        let mut families: FxHashMap<(NameId, Option<Operation>), u32> = FxHashMap::default();
        let mut known: FxHashMap<Family, u32> = FxHashMap::default();
        let messages: Vec<Option<Message>> =
            trace.messages.iter().map(|(_, text)| Message::of(text)).collect();
        let mut queues: BTreeMap<(Option<String>, i64), Queue> = BTreeMap::new();
        for row in rows {
            let (Some(&name), Some(&start_ns), Some(&duration_ns), Some(lane)) = (
                kernels.name.get(row),
                kernels.start_ns.get(row),
                kernels.duration_ns.get(row),
                trace.lane_of(row),
            ) else {
                continue;
            };
            let message =
                kernels.message.get(row).and_then(|id| messages.get(*id as usize)?.as_ref());
            let launched_by = operators.of_kernel(row);
            let operator = message
                .map(|message| Operation::of(&message.collective))
                .filter(|operation| *operation != Operation::Unnamed)
                .or(launched_by.map(|operator| operator.operation));
            let family = *families.entry((name, operator)).or_insert_with(|| {
                let family = Family::of(trace.names.text(name), || operator);
                *known.entry(family.clone()).or_insert_with(|| {
                    self.families.push(family);
                    u32::try_from(self.families.len() - 1).unwrap_or(u32::MAX)
                })
            });
            let step = segments.and_then(|segments| step_number(trace, segments, row));
            let bytes = message.and_then(Message::bytes);
            let bytes = bytes.or(launched_by.and_then(|operator| operator.bytes)).unwrap_or(0);
            let sequence = kernels.sequence.get(row).copied().unwrap_or(0);
            let one = Collective { family, start_ns, duration_ns, step, sequence, bytes };
            let group = message.filter(|message| !message.group.is_empty());
            let key = match group {
                Some(Message { group, ranks, .. }) => (Some(format!("{group} {ranks}")), 0),
                None => (None, lane.stream),
            };
            let queue = queues.entry(key).or_insert_with_key(|(name, _)| Queue {
                group: name.clone(),
                group_size: group.map_or(0, |message| message.group_size),
                stream: lane.stream,
                collectives: Vec::new(),
            });
            queue.collectives.push(one);
            self.collectives += 1;
            self.collective_ns = self.collective_ns.saturating_add(duration_ns);
        }
        self.queues = queues.into_values().collect();
        for queue in &mut self.queues {
            queue.collectives.sort_by_key(|one| one.start_ns);
        }
    }

    /// Whether its trace is all that was recorded, judged by its warnings.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let not_whole = [
            "truncated",
            "broken-end",
            "broken-events",
            "bad-times",
            "stray-times",
            "bad-durations",
            "no-kernels",
        ];
        self.device.is_some() && !self.warnings.iter().any(|code| not_whole.contains(code))
    }
}

/// The number in `ProfilerStep#6`. Marks of serving have none, or those of their batches.
fn step_number(trace: &Trace, segments: &Segments, kernel: usize) -> Option<u64> {
    let step = segments.steps.list.get(segments.steps.step(kernel)?)?;
    if step.kind != MarkKind::ProfilerStep {
        return None;
    }
    trace.names.text(step.name).rsplit('#').next()?.trim().parse().ok()
}

fn device_name(trace: &Trace, device: Option<i64>) -> String {
    let devices = &trace.metadata.devices;
    let same = devices.iter().find(|described| Some(described.id) == device);
    same.map_or_else(String::new, |described| described.name.clone())
}

fn unclassified_share(trace: &Trace, classes: &Classes, device: Option<i64>) -> f64 {
    let (mut unknown_ns, mut all_ns) = (0_u64, 0_u64);
    for (kernel, &duration_ns) in trace.kernels.duration_ns.iter().enumerate() {
        if trace.lane_of(kernel).map(|lane| lane.device) == device {
            all_ns = all_ns.saturating_add(duration_ns);
            if classes.get(kernel).main == Class::Unclassified {
                unknown_ns = unknown_ns.saturating_add(duration_ns);
            }
        }
    }
    ratio(unknown_ns, all_ns)
}
