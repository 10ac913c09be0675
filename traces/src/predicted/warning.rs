//! What a reader of a comparison must know about its inputs.

use std::fmt;

use serde::Serialize;

use crate::words::{counted, verb};

/// Something about the inputs that changes what the figures mean. Lines count from 1 and include
/// the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "kebab-case")]
pub enum InputWarning {
    /// The model's process is the only one, but not called so.
    ProcessByDefault {
        /// The process.
        process: String,
    },
    /// More than one process could be the model's.
    SeveralProcesses {
        /// The one that was taken.
        taken: String,
        /// The others.
        others: Vec<String>,
    },
    /// Events of the model have no readable duration.
    BadPredictedDurations {
        /// How many.
        count: u64,
        /// The name of the first one.
        first: String,
    },
    /// An operator's time cannot be split as its event says.
    BadSplit {
        /// The operator.
        operator: String,
        /// How many of its events.
        count: u64,
        /// What is wrong with the first one.
        reason: String,
    },
    /// The map has an entry that cannot be used.
    BadMapEntry {
        /// The operator.
        operator: String,
        /// What is wrong.
        reason: String,
    },
    /// The map says nothing of any operator.
    EmptyMap,
    /// Measured rows have no readable start time.
    BadStarts {
        /// How many.
        count: u64,
        /// The line of the first one.
        line: u64,
        /// Whether collectives among them count as begun at zero, all at once.
        as_zero: bool,
    },
    /// There are collectives and no column of start times.
    NoStarts {
        /// How many collectives.
        collectives: u64,
    },
    /// Measured rows have no readable duration.
    BadMeasuredDurations {
        /// How many.
        count: u64,
        /// The line of the first one.
        line: u64,
    },
    /// Types are not UTF-8.
    BadText {
        /// How many rows.
        count: u64,
        /// The line of the first one.
        line: u64,
    },
    /// The measured rows are of several processes.
    SeveralRanks {
        /// How many.
        ranks: u64,
    },
    /// Nothing was measured.
    NothingMeasured,
    /// A warning of the loader of traces.
    Trace {
        /// What it says.
        message: String,
        /// What to do.
        advice: String,
    },
}

impl InputWarning {
    /// A short name that never changes, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ProcessByDefault { .. } => "process-by-default",
            Self::SeveralProcesses { .. } => "several-processes",
            Self::BadPredictedDurations { .. } => "bad-predicted-durations",
            Self::BadSplit { .. } => "bad-split",
            Self::BadMapEntry { .. } => "bad-map-entry",
            Self::EmptyMap => "empty-map",
            Self::BadStarts { .. } => "bad-starts",
            Self::NoStarts { .. } => "no-starts",
            Self::BadMeasuredDurations { .. } => "bad-measured-durations",
            Self::BadText { .. } => "bad-text",
            Self::SeveralRanks { .. } => "several-ranks",
            Self::NothingMeasured => "nothing-measured",
            Self::Trace { .. } => "trace",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &str {
        match self {
            Self::ProcessByDefault { .. } | Self::SeveralProcesses { .. } => {
                "if it is the wrong one, name the process"
            }
            Self::BadPredictedDurations { .. } => {
                "look at the `dur` of that event; predicted totals may be too small"
            }
            Self::BadSplit { .. } => "its kernels got equal shares; look at sub_kernel_durations",
            Self::BadMapEntry { .. } => {
                "it was left out; write a mapping with kernel_type or zero_cost"
            }
            Self::EmptyMap => {
                "write entries with kernel_type or zero_cost, at the top level or under \
                 operator_mappings"
            }
            Self::BadStarts { as_zero: true, .. } => {
                "of the collectives among them only the longest of each type counts"
            }
            Self::BadStarts { .. } => {
                "these rows count by themselves; a collective that was recorded on two streams may \
                 count twice"
            }
            Self::NoStarts { .. } => {
                "each counts by itself; a collective that was recorded on two streams counts twice"
            }
            Self::BadMeasuredDurations { .. } => {
                "they were left out; measured totals may be too small"
            }
            Self::BadText { .. } => {
                "their types cannot match a predicted one; save the file as UTF-8"
            }
            Self::SeveralRanks { .. } => {
                "their times are added up; write the rows of one rank with --rank"
            }
            Self::NothingMeasured => "there is nothing to compare with; look at the measured file",
            Self::Trace { advice, .. } => advice,
        }
    }
}

impl fmt::Display for InputWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ProcessByDefault { process } => write!(
                f,
                "no process has `profiling` or `empirical` in its name; the only one with events \
                 was taken, {process}"
            ),
            Self::SeveralProcesses { taken, others } => {
                write!(f, "the process {taken} was taken, and not {}", others.join(", "))
            }
            Self::BadPredictedDurations { count, first } => write!(
                f,
                "{} {} no readable duration, which counts as zero, the first is {first}",
                counted(*count, "predicted event"),
                verb(*count, "has", "have")
            ),
            Self::BadSplit { operator, count, reason } => write!(
                f,
                "the durations of the kernels of {operator} cannot be read in {}: {reason}",
                counted(*count, "event")
            ),
            Self::BadMapEntry { operator, reason } => {
                write!(f, "the entry of {operator} in the map: {reason}")
            }
            Self::EmptyMap => f.write_str("the map has no entries of operators"),
            Self::BadStarts { count, line, .. } => write!(
                f,
                "{} {} no readable start time, the first in line {line}",
                counted(*count, "measured row"),
                verb(*count, "has", "have")
            ),
            Self::NoStarts { collectives } => write!(
                f,
                "there is no column `Start Time(us)`, by which {} of collectives would be \
                 distinguished",
                counted(*collectives, "row")
            ),
            Self::BadMeasuredDurations { count, line } => write!(
                f,
                "{} {} no readable duration, the first in line {line}",
                counted(*count, "measured row"),
                verb(*count, "has", "have")
            ),
            Self::BadText { count, line } => write!(
                f,
                "the types of {} are not UTF-8, the first in line {line}",
                counted(*count, "measured row")
            ),
            Self::SeveralRanks { ranks } => {
                write!(f, "the measured rows are of {ranks} files or ranks")
            }
            Self::NothingMeasured => f.write_str("nothing was measured"),
            Self::Trace { message, .. } => f.write_str(message),
        }
    }
}
