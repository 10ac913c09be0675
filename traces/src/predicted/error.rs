//! Why a prediction cannot be compared.

use std::io;
use std::path::PathBuf;

use super::Process;
use crate::TraceError;

/// Why a prediction cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum PredictedError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The model's trace is something else.
    #[error(
        "{} is not a trace of a performance model: {reason}; expected Chrome's JSON with \
         traceEvents, plain or compressed with gzip",
        path.display()
    )]
    NotAModelTrace {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// Several processes have events, and none is called like the model to compare.
    #[error(
        "{}: no process with events has `profiling` or `empirical` in its name, and there is more \
         than one; name one of these: {}",
        path.display(), listed(found)
    )]
    NoProcess {
        /// The file.
        path: PathBuf,
        /// Those with events.
        found: Vec<Process>,
    },
    /// No process has complete events.
    #[error("{}: it has no events with a duration (`ph` is `X`), so it predicts nothing", path.display())]
    NoEvents {
        /// The file.
        path: PathBuf,
    },
    /// The process that was named is not there, or several are.
    #[error(
        "{}: {} with events {} `{wanted}`; there are: {}",
        path.display(),
        if *is_ambiguous { "several processes" } else { "no process" },
        if *is_ambiguous { "are called" } else { "is called" },
        listed(found)
    )]
    NoSuchProcess {
        /// The file.
        path: PathBuf,
        /// What was asked for.
        wanted: String,
        /// Whether several fit.
        is_ambiguous: bool,
        /// Those with events.
        found: Vec<Process>,
    },
    /// The map is something else.
    #[error(
        "{} is not a map from operators to kernels: {reason}; expected YAML with an entry for each \
         operator, at the top level or under operator_mappings",
        path.display()
    )]
    NotAMap {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// The table of measured kernels is something else.
    #[error(
        "{} is not a table of measured kernels: {reason}; expected a CSV with the columns `Type` and \
         `Duration(us)`, one that `calibrate trace kernels --rows` writes, or a profiler trace",
        path.display()
    )]
    NotMeasured {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// The file of operators is something else.
    #[error(
        "{} has no operators with both times: {reason}; expected the JSON or CSV of `calibrate workload`",
        path.display()
    )]
    NotOperators {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
    /// The table contains the types itself.
    #[error(
        "{}: names and classes are of traces and their rows; this table has types of its own",
        path.display()
    )]
    HasTypes {
        /// The file.
        path: PathBuf,
    },
    /// The number of passes cannot be read.
    #[error("{}: {reason}", path.display())]
    Passes {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The measured trace cannot be loaded.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

fn listed(processes: &[Process]) -> String {
    if processes.is_empty() {
        return "none".to_owned();
    }
    processes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
