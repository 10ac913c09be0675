//! Why a trace cannot be loaded.

use std::io;
use std::path::PathBuf;

/// Why a trace cannot be loaded at all. What can be loaded in part gives a
/// [`Warning`](crate::Warning) instead.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The folder has no traces.
    #[error(
        "{} has no traces: expected files whose names end with .json, .json.gz, .jsonl, .sqlite or \
         kernel_trace.csv, one for each rank",
        path.display()
    )]
    NoTraces {
        /// The folder.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{} is not a profiler trace: {reason}; expected what torch.profiler's export_chrome_trace, \
         nsys export or rocprofv3 writes, plain or compressed with gzip",
        path.display()
    )]
    NotATrace {
        /// The file.
        path: PathBuf,
        /// What gave it away.
        reason: String,
    },
}
