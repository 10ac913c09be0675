//! The command line of `calibrate trace compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::input::IndexArgs;
use super::output::OutputArgs;
use super::phase::PhaseArgs;
use crate::report::CompareTable;

/// Two traces to compare.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace compare mi300x.json.gz h100.json.gz
  calibrate trace compare mi300x.json.gz h100.json.gz --format html --output gap.html
  calibrate trace compare a.json b.json --phase decode --top 30
  calibrate trace compare a.json b.json --layer 12
  calibrate trace compare run1/ run2/ --rank-a 3 --rank-b 3
  calibrate trace compare a.json b.json --format csv --table slots --output slots.csv
  calibrate trace compare a.json b.json --json > comparison.json
  calibrate trace compare a.json b.json --profile calibration.toml

Gaps and ratios are always A against B. Times of a step are in the text, the page, and the tables \
gap, slots, fusion and implementation. The sums in the tables operations, layers and same-kernels \
(total_ms, gap_ms) are of the whole recordings; their last columns are of a step. In operations \
status is slower above 5 ms of gap_ms, faster below -5 ms, else similar; in layers it takes 0.1 ms \
and a ratio of 1.2.")]
pub struct TraceCompareArgs {
    /// The first trace (PyTorch, nsys or rocprofv3), or a folder with one for each rank
    #[arg(value_name = "A")]
    pub first: PathBuf,
    /// The second, likewise
    #[arg(value_name = "B")]
    pub second: PathBuf,
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// Only this layer of the model, from 0
    #[arg(long, value_name = "N")]
    pub layer: Option<u32>,
    /// How many entries lists have in text and page
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// Read this rank of A alone, instead of all ranks, and compare it
    #[arg(long, value_name = "N")]
    pub rank_a: Option<u64>,
    /// Read this rank of B alone, likewise
    #[arg(long, value_name = "N")]
    pub rank_b: Option<u64>,
    /// A calibration file whose measured gains are shown next to the fusions; can be repeated
    #[arg(long, value_name = "FILE")]
    pub profile: Vec<PathBuf>,
    /// The data sheet of A's machine: a file, or the name of a built-in one [default: the built-in
    /// one of the device's name]
    #[arg(long, value_name = "NAME|FILE")]
    pub hardware_a: Option<String>,
    /// The data sheet of B's machine, likewise
    #[arg(long, value_name = "NAME|FILE")]
    pub hardware_b: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub format: CompareFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The table that --format csv writes [default: operations]
    #[arg(long, value_enum)]
    pub table: Option<CompareTable>,
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
    /// Their indexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Print on stderr what is read, even if stderr is not a terminal
    #[arg(long, short)]
    pub verbose: bool,
}

impl TraceCompareArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> CompareFormat {
        if self.json { CompareFormat::Json } else { self.format }
    }
}

/// How a comparison is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header: one table, which --table names
    Csv,
    /// One object
    Json,
    /// One page, with everything in it
    Html,
}
