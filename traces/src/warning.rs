//! What a reader of the results must know about the input.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::{counted, verb};

/// What the events of a file are in it, for words about those that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum EventForm {
    /// Objects in a list of JSON, as PyTorch's profiler writes them.
    #[default]
    Object,
    /// Lines of JSON of Nsight Systems.
    Line,
    /// Records in the JSON of rocprofv3.
    Record,
    /// Rows of a table of rocprofv3.
    Row,
    /// Rows of a database of Nsight Systems, which are counted over all tables.
    DatabaseRow,
}

impl EventForm {
    const fn plural(self) -> &'static str {
        match self {
            Self::Object => "events",
            Self::Line => "lines",
            Self::Record => "records",
            Self::Row | Self::DatabaseRow => "rows",
        }
    }

    /// Where something is, by the number that a [`Warning`] has for it.
    fn place(self, at: u64) -> String {
        match self {
            Self::DatabaseRow => format!("in row {at} of all tables"),
            Self::Object | Self::Line | Self::Record | Self::Row => format!("at byte {at}"),
        }
    }
}

/// Something about a trace that changes what its numbers mean.
///
/// Places are bytes of the text, after decompression, and rows of databases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Warning {
    /// The file ends before the trace does.
    Truncated {
        /// Where the last complete event ends.
        complete_bytes: u64,
        /// How many bytes behind it were an incomplete event and were dropped.
        dropped_bytes: u64,
        /// What the decompression says, if it is what ended early.
        decompression: Option<String>,
    },
    /// What follows the events is not JSON and was not read.
    BrokenEnd {
        /// Where it begins.
        at: u64,
        /// How many bytes it has.
        dropped_bytes: u64,
    },
    /// Events cannot be read, as JSON with a quote that is not escaped, or rows that are too short,
    /// and were left out.
    BrokenEvents {
        /// What they are in the file.
        form: EventForm,
        /// How many times the reader had to go on at a later event.
        count: u64,
        /// How many bytes were passed over.
        bytes: u64,
        /// Where the first one begins.
        first_at: u64,
    },
    /// Events have no readable start time and were left out.
    BadTimes {
        /// What they are in the file.
        form: EventForm,
        /// How many.
        count: u64,
        /// Where the first one begins.
        first_at: u64,
    },
    /// Events lie more than a week from the others, and were left out.
    StrayTimes {
        /// How many.
        count: u64,
    },
    /// Events have no readable duration, a negative one, or one of more than a week; it counts as
    /// zero.
    BadDurations {
        /// What they are in the file.
        form: EventForm,
        /// How many.
        count: u64,
        /// Where the first one begins.
        first_at: u64,
    },
    /// The durations of the kernels are more than 64 bits hold together.
    Overflow,
    /// Ids, as of a correlation or a stream, are not numbers that fit; they count as absent.
    BadIds {
        /// What they are in the file.
        form: EventForm,
        /// How many events have such ids.
        count: u64,
        /// Where the first one begins.
        first_at: u64,
    },
    /// Operators were called with more distinct shapes than are kept.
    ManyShapes {
        /// How many operators have a shape that was not kept.
        count: u64,
    },
    /// A part of the metadata cannot be read.
    BadMetadata {
        /// Its keys.
        keys: Vec<String>,
    },
    /// Something follows the end of the trace.
    TrailingData {
        /// Where it begins.
        at: u64,
    },
    /// Something that is not gzip follows a whole compressed trace.
    TrailingBytes {
        /// What the decompression says.
        decompression: String,
    },
    /// A table of a database cannot be read to its end.
    DamagedTable {
        /// Its name.
        table: String,
        /// What the database says.
        reason: String,
    },
    /// Graphs were recorded as a whole, so that their kernels are not there.
    WholeGraphs {
        /// How often one was launched.
        count: u64,
    },
    /// Nothing ran on a device.
    NoKernels,
    /// Nothing ran on a device that is known, but another one was used.
    OtherDevice {
        /// What kind of device it is.
        device: OtherDevice,
        /// How many of its events there are.
        count: u64,
    },
    /// Much of the time is in kernels that no rule knows.
    Unclassified {
        /// How many kernels.
        count: u64,
        /// Their durations together, in nanoseconds.
        time_ns: u64,
        /// The durations of all kernels together, in nanoseconds.
        all_ns: u64,
        /// The name with the longest durations.
        longest: String,
    },
}

/// A device whose kernels the trace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OtherDevice {
    /// An Intel GPU.
    Xpu,
    /// An accelerator of Meta.
    Mtia,
}

impl Warning {
    /// A short name that never changes, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => "truncated",
            Self::BrokenEnd { .. } => "broken-end",
            Self::BrokenEvents { .. } => "broken-events",
            Self::BadTimes { .. } => "bad-times",
            Self::StrayTimes { .. } => "stray-times",
            Self::BadDurations { .. } => "bad-durations",
            Self::Overflow => "overflow",
            Self::BadIds { .. } => "bad-ids",
            Self::ManyShapes { .. } => "many-shapes",
            Self::BadMetadata { .. } => "bad-metadata",
            Self::TrailingData { .. } => "trailing-data",
            Self::TrailingBytes { .. } => "trailing-bytes",
            Self::DamagedTable { .. } => "damaged-table",
            Self::WholeGraphs { .. } => "whole-graphs",
            Self::NoKernels | Self::OtherDevice { .. } => "no-kernels",
            Self::Unclassified { .. } => "unclassified",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Truncated { .. } => {
                "totals and counts are of what was read; copy or record the trace again"
            }
            Self::BrokenEnd { .. } => {
                "look at that byte; events behind it are missing, and the device may be unknown"
            }
            Self::BrokenEvents { .. } => {
                "if many are missing, record the trace again with a newer profiler"
            }
            Self::BadTimes { form: EventForm::Object, .. } => {
                "look at the `ts` of the event at that byte"
            }
            Self::BadTimes { .. } => "look at when it begins",
            Self::StrayTimes { .. } => {
                "these events are missing from totals and counts; record the trace again"
            }
            Self::Overflow => "totals end there; look at the durations of the longest kernels",
            Self::BadDurations { form: EventForm::Object, .. } => {
                "look at the `dur` of the event at that byte; totals may be too small"
            }
            Self::BadDurations { .. } => "look at when it ends; totals may be too small",
            Self::BadIds { .. } => "these events cannot be tied to what launched them",
            Self::ManyShapes { .. } => {
                "what is said of sizes, tokens and FLOPs may miss them; record fewer steps"
            }
            Self::BadMetadata { .. } => "the device may be unknown; the events are not affected",
            Self::TrailingData { .. } => "two traces in one file? only the first was read",
            Self::TrailingBytes { .. } => "the trace is whole; they were not read",
            Self::DamagedTable { .. } => {
                "totals and counts are of what was read; copy the database or export it again"
            }
            Self::WholeGraphs { .. } => {
                "times and counts lack these kernels; record with --cuda-graph-trace=node"
            }
            Self::OtherDevice { device: OtherDevice::Xpu, .. } => {
                "record with ProfilerActivity.XPU and a PyTorch whose profiler writes kernels of \
                 XPUs, as an Intel GPU build does"
            }
            Self::OtherDevice { device: OtherDevice::Mtia, .. } => {
                "kernels of MTIA devices are not read; only what ran on the host is shown"
            }
            Self::NoKernels => {
                "record with ProfilerActivity.CUDA, and see that the profiled steps use the device"
            }
            Self::Unclassified { .. } => {
                "totals by class are too small by as much; recording with stacks (with_stack=True) \
                 may tell what these kernels are"
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { complete_bytes, dropped_bytes, decompression } => {
                write!(
                    f,
                    "the file ends before the trace does: {complete_bytes} bytes were read, \
                     {dropped_bytes} bytes of an incomplete part were dropped, and what should \
                     follow is missing"
                )?;
                match decompression {
                    Some(reason) => write!(f, " (decompression: {reason})"),
                    None => Ok(()),
                }
            }
            Self::BrokenEnd { at, dropped_bytes } => write!(
                f,
                "what follows the events at byte {at} is not JSON: {dropped_bytes} bytes were not \
                 read"
            ),
            Self::BrokenEvents { form: EventForm::Object, count, bytes, first_at } => write!(
                f,
                "broken JSON in {}, the first at byte {first_at}: {bytes} bytes were passed over",
                counted(*count, "place")
            ),
            Self::BrokenEvents { form, count, bytes, first_at } => write!(
                f,
                "{} that cannot be read: {count}, the first {}; {bytes} bytes were passed over",
                form.plural(),
                form.place(*first_at)
            ),
            Self::BadTimes { form, count, first_at } => write!(
                f,
                "{} without a readable start time {} left out, the first {}",
                counted(*count, "event"),
                verb(*count, "was", "were"),
                form.place(*first_at)
            ),
            Self::StrayTimes { count } => write!(
                f,
                "{} more than a week from the others {} left out",
                counted(*count, "event"),
                verb(*count, "was", "were")
            ),
            Self::Overflow => {
                f.write_str("the durations of the kernels are together more than 584 years")
            }
            Self::BadDurations { form, count, first_at } => write!(
                f,
                "{} {} no readable duration, or one of more than a week, which counts as zero, the \
                 first {}",
                counted(*count, "event"),
                verb(*count, "has", "have"),
                form.place(*first_at)
            ),
            Self::BadIds { form, count, first_at } => write!(
                f,
                "{} {} ids that are not 64-bit numbers, the first {}",
                counted(*count, "event"),
                verb(*count, "has", "have"),
                form.place(*first_at)
            ),
            Self::ManyShapes { count } => write!(
                f,
                "the shapes of {} were not kept, as there are too many",
                counted(*count, "operator")
            ),
            Self::BadMetadata { keys } => {
                write!(f, "metadata that cannot be read: {}", keys.join(", "))
            }
            Self::TrailingData { at } => {
                write!(f, "there is more after the end of the trace at byte {at}")
            }
            Self::TrailingBytes { decompression } => {
                write!(f, "what follows the compressed trace is not gzip ({decompression})")
            }
            Self::DamagedTable { table, reason } => {
                write!(f, "the table {table} cannot be read to its end ({reason})")
            }
            Self::WholeGraphs { count } => write!(
                f,
                "{} of CUDA graphs {} recorded without kernels",
                counted(*count, "launch"),
                verb(*count, "is", "are")
            ),
            Self::NoKernels => f.write_str("the trace has no kernels"),
            Self::OtherDevice { device, count } => write!(
                f,
                "the trace has no kernels, but {} of {}",
                counted(*count, "event"),
                match device {
                    OtherDevice::Xpu => "Intel's XPU runtime",
                    OtherDevice::Mtia => "the MTIA runtime",
                }
            ),
            Self::Unclassified { count, time_ns, all_ns, longest } => write!(
                f,
                "{:.1} % of the time is in {} that no rule knows, most of it in {longest}",
                100.0 * *time_ns as f64 / (*all_ns).max(1) as f64,
                counted(*count, "kernel")
            ),
        }
    }
}
