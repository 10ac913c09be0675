//! Which traces a command reads, and how.

use std::path::PathBuf;

use clap::Args;
use kernel_traces::IndexPolicy;

/// Which traces.
#[derive(Debug, Args)]
pub struct TraceFiles {
    /// Traces (PyTorch, nsys or rocprofv3), or folders with one for each rank; `-` is stdin
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only the trace of this rank
    #[arg(long, value_name = "N")]
    pub rank: Option<u64>,
    /// Print on stderr what is read, even if stderr is not a terminal
    #[arg(long, short)]
    pub verbose: bool,
}

/// Where the indexes of traces are.
#[derive(Debug, Args)]
pub struct IndexPlace {
    /// The folder of indexes [default: next to the traces]
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
}

impl IndexPlace {
    /// Where they are.
    #[must_use]
    pub fn policy(&self) -> IndexPolicy {
        self.cache_dir.clone().map_or(IndexPolicy::Beside, IndexPolicy::In)
    }
}

/// Whether and where traces have indexes.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Neither read an index nor write one
    #[arg(long, conflicts_with = "cache_dir")]
    pub no_index: bool,
    /// Where else.
    #[command(flatten)]
    pub place: IndexPlace,
}

impl IndexArgs {
    /// Whether and where.
    #[must_use]
    pub fn policy(&self) -> IndexPolicy {
        if self.no_index { IndexPolicy::Off } else { self.place.policy() }
    }
}

/// Which traces, and how they are read.
#[derive(Debug, Args)]
pub struct TraceInput {
    /// Which.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Their indexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Read in little memory, whatever the size: without results that need the whole trace, and
    /// with classes from the kernels' names alone [default: if the memory is too small for the
    /// trace]
    #[arg(long, conflicts_with = "phase")]
    pub stream: bool,
}
