//! Several traces beside each other, and their kernels together.

use cli_support::tables::{right, styled};
use comfy_table::{Cell, Table};
use kernel_traces::{DeviceTime, PhaseTime, RankFile, TotalsSummary, Unclassified};
use serde::Serialize;

use super::time;

/// The times of the kernels of one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankTime {
    /// The file.
    pub file: String,
    /// The number of its process, if it is known.
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
    /// That of a file whose kernels came together in parts.
    #[must_use]
    pub fn new(
        file: &RankFile,
        summary: &TotalsSummary,
        busy_ns: Option<u64>,
        span_ns: u64,
    ) -> Self {
        Self {
            file: file.path.display().to_string(),
            rank: file.rank,
            kernels: summary.kernels,
            total_ns: summary.total_ns,
            busy_ns,
            span_ns,
        }
    }
}

/// The kernels of one trace. What takes all of it is there only if it was read whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    /// Those of a trace that was read in parts.
    #[must_use]
    pub const fn in_parts(time: RankTime) -> Self {
        Self { time, unclassified: None, devices: None, phases: None }
    }
}

/// What the classes of kernels are told from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClassEvidence {
    /// The names of the kernels and of the operators that launched them.
    NamesAndOperators,
    /// The names of the kernels alone, for some of the traces at least.
    Names,
}

/// The kernels of one trace or of several together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RanksSummary {
    /// All kernels.
    #[serde(flatten)]
    pub summary: TotalsSummary,
    /// What the classes are told from.
    pub class_evidence: ClassEvidence,
    /// The traces.
    pub ranks: Vec<RankKernels>,
}

/// The number of a rank in tables.
pub(super) fn number(rank: Option<u64>) -> String {
    rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string())
}

/// A row for each trace.
pub(super) fn table<'r>(ranks: impl Iterator<Item = &'r RankTime>) -> Table {
    let mut table = styled();
    table.set_header(["rank", "kernels", "total", "busy", "span", "file"]);
    for rank in ranks {
        table.add_row([
            right(number(rank.rank)),
            right(rank.kernels.to_string()),
            right(time(rank.total_ns)),
            right(rank.busy_ns.map_or_else(|| "-".to_owned(), time)),
            right(time(rank.span_ns)),
            Cell::new(&rank.file),
        ]);
    }
    table
}
