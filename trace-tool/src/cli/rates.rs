//! The command lines of `calibrate trace rates` and `calibrate trace problems`.

use clap::{Args, ValueEnum};

use super::input::{IndexArgs, TraceFiles};
use super::output::OutputArgs;
use super::phase::PhaseArgs;

/// Whose rates, and against which machine.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace rates rank0.json.gz
  calibrate trace rates rank0.json.gz --hardware machine.toml
  calibrate trace rates rank0.json.gz --format html --output rates.html
  calibrate trace rates traces/ --rank 3 --json > rates.json

Work follows from the sizes of operators: record with record_shapes=True. FLOPs are exact, bytes are \
the least that must be moved. A rate above a peak means that tensors were in caches, or were not \
moved whole.")]
pub struct TraceRatesArgs {
    /// Which.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Their indexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// The data sheet of the machine: a file, or the name of a built-in one [default: the built-in
    /// one of the device's name]
    #[arg(long, value_name = "NAME|FILE")]
    pub hardware: Option<String>,
    /// How many kernels to list
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// How to write it
    #[arg(long, value_enum, default_value_t = RatesFormat::Text)]
    pub format: RatesFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
}

impl TraceRatesArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> RatesFormat {
        if self.json { RatesFormat::Json } else { self.format }
    }
}

/// How rates are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RatesFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header: a record for each kernel
    Csv,
    /// One object
    Json,
    /// One page with a roofline
    Html,
}

/// Whose problems.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace problems rank0.json.gz --output model.toml
  calibrate --shapes model.toml --fusion all --dtype bf16
  calibrate trace problems rank0.json.gz --json

The GEMMs, convolutions and attentions of a model with the sizes that it ran, as a set of sizes. A \
set has no dtype: its first lines say which the trace has.")]
pub struct TraceProblemsArgs {
    /// Which.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Their indexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// At most this many problems, those with the longest kernels
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub top: usize,
    /// All of them with their times, as JSON
    #[arg(long)]
    pub json: bool,
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
}
