//! The command line of `calibrate trace`.

use clap::{Args, Subcommand, ValueEnum};

use super::compare::TraceCompareArgs;
use super::idle::TraceIdleArgs;
use super::input::{IndexArgs, IndexPlace, TraceFiles, TraceInput};
use super::output::OutputArgs;
use super::phase::PhaseArgs;
use super::rates::{TraceProblemsArgs, TraceRatesArgs};
use super::validate::TraceValidateArgs;

/// What to look for in a trace.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// The devices and what was recorded
    Info(TraceInfoArgs),
    /// Where the time on the devices goes, by class and by kernel; or every kernel as a row
    Kernels(TraceKernelsArgs),
    /// Steps, phases, layers, and the kind of model
    Layers(TraceLayersArgs),
    /// How fast kernels computed and moved data, against the machine's peaks
    Rates(TraceRatesArgs),
    /// Where devices wait, and for what
    Idle(TraceIdleArgs),
    /// The GEMMs, convolutions and attentions of a model, as a set of sizes to measure
    Problems(TraceProblemsArgs),
    /// Where the gap between two traces comes from
    Compare(TraceCompareArgs),
    /// Make the next load fast
    Index(TraceIndexArgs),
    /// What a performance model predicts, against what was measured
    Validate(TraceValidateArgs),
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
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// The selection of traces and of their kernels.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace kernels rank0.json.gz
  calibrate trace kernels traces/            all ranks together
  calibrate trace kernels traces/ --rank 3
  calibrate trace kernels rank0.json --phase decode
  calibrate trace kernels rank0.json --top 50 --taxonomy legacy
  calibrate trace kernels rank0.json --json > kernels.json
  calibrate trace kernels rank0.json --format csv --output classes.csv
  calibrate trace kernels rank0.json --rows --format csv | head
  calibrate trace kernels traces/ --rows --stream --format json --output kernels.jsonl
  calibrate trace kernels traces/ --rows --table launches --format parquet --output launches.parquet

Times in rows, CSV and JSON are nanoseconds. Steps, passes, layers and patterns are numbered from 0. \
In rows, correlation and rank connect launches with kernels, external_id and rank \
operators with kernels.")]
pub struct TraceKernelsArgs {
    /// Which.
    #[command(flatten)]
    pub input: TraceInput,
    /// How many kernels to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// The names of the classes
    #[arg(long, value_enum, default_value_t = TaxonomyName::Classes)]
    pub taxonomy: TaxonomyName,
    /// One row for each kernel instead of sums
    #[arg(long, conflicts_with = "phase")]
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
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
}

impl TraceKernelsArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        let default = if self.rows { OutputFormat::Csv } else { OutputFormat::Text };
        if self.json { OutputFormat::Json } else { self.format.unwrap_or(default) }
    }
}

/// Whose layers.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace layers rank0.json.gz
  calibrate trace layers rank0.json.gz --pattern 0      the kernels of one layer
  calibrate trace layers traces/ --rank 3 --top 1
  calibrate trace layers rank0.json.gz --phase decode
  calibrate trace layers rank0.json.gz --json > layers.json
  calibrate trace layers traces/ --format csv --output layers.csv

A layer begins at its marker, such as the write of the key-value cache, and ends before the next one. \
Layers with the same classes of kernels in the same order have one pattern. JSON and CSV have all \
patterns, in nanoseconds. Steps, passes, layers, patterns and positions are numbered from 0.")]
pub struct TraceLayersArgs {
    /// Which.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Their indexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// The kernels of this pattern only
    #[arg(long, value_name = "N", conflicts_with = "top")]
    pub pattern: Option<usize>,
    /// The kernels of the N most frequent patterns
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub top: usize,
    /// How to write it
    #[arg(long, value_enum, default_value_t = LayersFormat::Text)]
    pub format: LayersFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
}

impl TraceLayersArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> LayersFormat {
        if self.json { LayersFormat::Json } else { self.format }
    }
}

/// How layers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LayersFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header: a record for each position of each pattern
    Csv,
    /// One object
    Json,
}

/// Traces to index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace index rank0.json.gz
  calibrate trace index traces/ --cache-dir ~/.cache/traces
  calibrate trace index traces/ --check

Commands that load a trace of more than a few megabytes make its index by themselves, and read it \
the next time. This command makes the index of any trace, even if there is one already.

Exit code of --check: 0 if all indexes are fresh; 1 if one is missing, stale or damaged.")]
pub struct TraceIndexArgs {
    /// Which.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Where the indexes are.
    #[command(flatten)]
    pub place: IndexPlace,
    /// Only say whether the indexes are fresh
    #[arg(long)]
    pub check: bool,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
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
