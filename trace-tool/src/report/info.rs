//! The devices of traces and what was recorded.

use std::fmt::Write;

use cli_support::units::gibibytes;
use kernel_traces::{Device, Metadata, RankFile, Trace, Vendor};

use super::{RankTime, ranks};

/// How many rows a trace has of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events, with those that are not kept.
    pub events: u64,
    /// Kernels, copies and fills.
    pub kernels: usize,
    /// Calls of the runtime or the driver.
    pub launches: usize,
    /// Operators.
    pub ops: usize,
    /// What the program marked.
    pub annotations: usize,
    /// Calls of Python functions and modules.
    pub frames: usize,
    /// Streams of devices.
    pub streams: usize,
}

impl Counts {
    /// Adds the rows of a trace, or of a part of one.
    pub fn add(&mut self, part: &Trace) {
        self.kernels += part.kernels.len();
        self.launches += part.launches.len();
        self.ops += part.ops.len();
        self.annotations += part.annotations.len();
        self.frames += part.frames.len();
    }

    fn with(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            kernels: self.kernels + other.kernels,
            launches: self.launches + other.launches,
            ops: self.ops + other.ops,
            annotations: self.annotations + other.annotations,
            frames: self.frames + other.frames,
            streams: self.streams + other.streams,
        }
    }
}

/// What is told of one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct RankInfo {
    /// Who made the devices.
    pub vendor: Vendor,
    /// What the file says about the run.
    pub metadata: Metadata,
    /// What was recorded.
    pub counts: Counts,
    /// The times of its kernels.
    pub time: RankTime,
}

/// A file, in one line, before it is read.
#[must_use]
pub fn trace_file(file: &RankFile) -> String {
    let mut line = format!("{}: {}", file.path.display(), bytes(file.bytes));
    if let Some(rank) = file.rank {
        let _ = write!(line, ", rank {rank}");
    }
    let vendor = file.metadata.vendor();
    if vendor != Vendor::Unknown {
        let _ = write!(line, ", {}", vendor.name());
    }
    let devices = &file.metadata.devices;
    if let Some(first) = devices.first() {
        let _ = write!(line, ", {} x {}", devices.len(), device(first));
    }
    line
}

/// The devices of the traces and what was recorded, and a row for each if they are several.
#[must_use]
pub fn trace_info(ranks: &[RankInfo]) -> String {
    let mut vendors: Vec<&str> = ranks.iter().map(|rank| rank.vendor.name()).collect();
    vendors.dedup();
    let mut text = format!("vendor      {}\n", vendors.join(", "));
    let mut described: Vec<&Device> = Vec::new();
    for one in ranks.iter().flat_map(|rank| &rank.metadata.devices) {
        if !described.contains(&one) {
            let _ = writeln!(text, "device {:<4} {}", one.id, device(one));
            described.push(one);
        }
    }
    let all = ranks.iter().fold(Counts::default(), |all, rank| all.with(rank.counts));
    let counts = [
        ("events", all.events),
        ("kernels", all.kernels as u64),
        ("launches", all.launches as u64),
        ("operators", all.ops as u64),
        ("marks", all.annotations as u64),
        ("frames", all.frames as u64),
        ("streams", all.streams as u64),
    ];
    for (what, count) in counts {
        let _ = writeln!(text, "{what:<11} {count}");
    }
    if ranks.len() > 1 {
        let _ = writeln!(text, "\n{}", ranks::table(ranks.iter().map(|rank| &rank.time)));
    }
    text
}

fn device(device: &Device) -> String {
    let name = if device.name.is_empty() { "(without a name)" } else { &device.name };
    let units = device.multiprocessors.map(|count| format!(", {count} multiprocessors"));
    let memory = device.memory_bytes.map(|bytes| format!(", {}", gibibytes(bytes)));
    format!("{name}{}{}", units.unwrap_or_default(), memory.unwrap_or_default())
}

/// Bytes of a file.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
