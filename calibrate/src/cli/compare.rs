//! The command line of `calibrate compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fusion_cost_model::Policy;
use fusion_cost_model::compare::TargetParts;

use crate::report::CompareTable;

/// Calibrations to compare.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate compare xeon.toml epyc.toml
  calibrate compare monday.toml tuesday.toml --fail-on-regression 5%
  calibrate compare xeon.toml epyc.toml m4.toml --against B
  calibrate compare h200.toml mi300x.toml --a device/bf16/native
  calibrate compare h200.toml --by implementation --a device/bf16
  calibrate compare a.toml b.toml --table not-compared
  calibrate compare a.toml b.toml --format csv --table records -o records.csv
  calibrate compare a.toml b.toml --format markdown >> pull-request.md
  calibrate compare a.toml b.toml --format html -o page.html

What is compared are speedups: what fusion gains on each side. Ratios are always B's over A's. A \
difference counts if it is larger than the noise floor and its chance, adjusted for all records by \
the method of Holm, is below 0.05. Of the same machine a difference is a REGRESSION or an \
IMPROVEMENT, and what all times changed by together is said apart from it.

Exit codes: 0 compared, 1 failure, 2 usage, 4 a regression with --fail-on-regression.")]
pub struct CompareArgs {
    /// Calibration files, or imported profiles: A, B, C and so on
    #[arg(value_name = "FILE", required = true, num_args = 1..=26)]
    pub files: Vec<PathBuf>,
    /// The target of A to compare, if A has several: parts of cpu/2/f32/native, or of
    /// cuda/device/bf16/vendor
    #[arg(long, value_name = "TARGET")]
    pub a: Option<TargetParts>,
    /// The target of the other files [default: that of A]
    #[arg(long, value_name = "TARGET")]
    pub b: Option<TargetParts>,
    /// The file that all others are compared with
    #[arg(long, value_name = "LETTER", default_value = "A")]
    pub against: String,
    /// Compare records within one file that differ only in this
    #[arg(long, value_enum)]
    pub by: Option<CompareBy>,
    /// Join problems that differ only in their dtype
    #[arg(long)]
    pub across_dtypes: bool,
    /// The speedup from which fusing is worth it
    #[arg(long, value_name = "RATIO", value_parser = super::threshold,
        default_value_t = Policy::THRESHOLD)]
    pub threshold: f64,
    /// Exit with 4 if a speedup of the same machine has become smaller by this much
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_on_regression: Option<f64>,
    /// How many entries lists have in text and Markdown
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// How to write it
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub format: CompareFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Only this table, whole [default: the page; of --format csv: records]
    #[arg(long, value_enum)]
    pub table: Option<CompareTable>,
    /// The file to write instead of stdout, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file that has the name of --output, if there is one
    #[arg(long, requires = "output")]
    pub overwrite: bool,
    /// Do not put an apostrophe before cells of CSV that a spreadsheet would take for formulas
    #[arg(long)]
    pub raw_cells: bool,
}

impl CompareArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> CompareFormat {
        if self.json { CompareFormat::Json } else { self.format }
    }
}

/// What differs between the sides within a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareBy {
    /// Whose kernels run
    Implementation,
    /// The clock that measures the times
    Clock,
    /// The number of threads
    Threads,
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
    /// The same as the text, for a pull request or a wiki
    Markdown,
    /// One page with everything in it, without scripts
    Html,
}

/// Reads the share of a speedup.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').trim_end().parse().ok();
    let share = percent.map(|percent: f64| 0.01 * percent);
    share
        .filter(|share| (0.0..1.0).contains(share))
        .ok_or_else(|| "it must be a percentage from 0% to 99%".to_owned())
}
