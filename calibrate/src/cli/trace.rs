//! The command line of `calibrate trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// What to look for in a trace.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// The devices and what was recorded
    Info(TraceInfoArgs),
    /// Where the time on the devices goes, by class and by kernel; or every kernel as a row
    Kernels(TraceKernelsArgs),
}

/// Which traces, and how they are read.
#[derive(Debug, Args)]
pub struct TraceInput {
    /// Traces (Kineto JSON, plain or gzipped), or folders with one for each rank
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Only the trace of this rank
    #[arg(long, value_name = "N")]
    pub rank: Option<u64>,
    /// Read in little memory, whatever the size: without what needs the whole trace, and with
    /// classes by the kernels' names alone [default: when the memory is not enough for all]
    #[arg(long)]
    pub stream: bool,
    /// Say on stderr what is read, also where that is no terminal
    #[arg(long, short)]
    pub verbose: bool,
}

/// Traces to describe.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace info rank0.json.gz
  calibrate trace info traces/               every rank of a run
  calibrate trace info traces/ --json > run.json")]
pub struct TraceInfoArgs {
    /// Which.
    #[command(flatten)]
    pub input: TraceInput,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Which kernels of which traces.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace kernels rank0.json.gz
  calibrate trace kernels traces/            all ranks together
  calibrate trace kernels traces/ --rank 3
  calibrate trace kernels rank0.json --top 50 --taxonomy legacy
  calibrate trace kernels rank0.json --json > kernels.json
  calibrate trace kernels rank0.json --format csv --output classes.csv
  calibrate trace kernels rank0.json --rows --format csv | head
  calibrate trace kernels traces/ --rows --stream --format json --output kernels.jsonl
  calibrate trace kernels traces/ --rows --table launches --format parquet --output launches.parquet

Rows have times in nanoseconds; launches and kernels meet in their correlation and rank, operators \
and kernels in their external_id and rank.")]
pub struct TraceKernelsArgs {
    /// Which.
    #[command(flatten)]
    pub input: TraceInput,
    /// How many kernels to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// The names of the classes
    #[arg(long, value_enum, default_value_t = TaxonomyName::Classes)]
    pub taxonomy: TaxonomyName,
    /// One row for each kernel instead of sums
    #[arg(long)]
    pub rows: bool,
    /// Rows of another table
    #[arg(long, value_enum, requires = "rows", default_value_t = TableName::Kernels)]
    pub table: TableName,
    /// How to write it [default: text, or csv with --rows]
    #[arg(long, value_enum)]
    pub format: Option<OutputFormat>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The file to write instead of stdout, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

impl TraceKernelsArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        let default = if self.rows { OutputFormat::Csv } else { OutputFormat::Text };
        if self.json { OutputFormat::Json } else { self.format.unwrap_or(default) }
    }
}

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header
    Csv,
    /// One object; with --rows one in each line
    Json,
    /// Apache Parquet, for --rows
    Parquet,
}

/// A table of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TableName {
    /// What ran on the devices
    Kernels,
    /// Calls of the runtime or the driver
    Launches,
    /// What the program marked
    Annotations,
    /// Operators on the host
    Ops,
    /// Calls of Python functions and modules
    Frames,
}

impl From<TableName> for kernel_traces::Table {
    fn from(name: TableName) -> Self {
        match name {
            TableName::Kernels => Self::Kernels,
            TableName::Launches => Self::Launches,
            TableName::Annotations => Self::Annotations,
            TableName::Ops => Self::Ops,
            TableName::Frames => Self::Frames,
        }
    }
}

/// The names of the classes of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TaxonomyName {
    /// The project's own
    Classes,
    /// The operation names of older tools
    Legacy,
}

impl From<TaxonomyName> for kernel_traces::Taxonomy {
    fn from(name: TaxonomyName) -> Self {
        match name {
            TaxonomyName::Classes => Self::Classes,
            TaxonomyName::Legacy => Self::Legacy,
        }
    }
}
