//! The command line of `calibrate report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fusion_cost_model::Policy;
use fusion_cost_model::compare::TargetParts;

use super::FileArgs;

/// Calibrations to make a page of.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate report xeon.toml -o xeon.html
  calibrate report xeon.toml epyc.toml -o machines.html      one page with a part for each
  calibrate report h200.toml --target device/native -o h200.html
  calibrate report xeon.toml --threshold 1.2 > xeon.html
  calibrate report xeon.toml --plots figures/                only its figures, as SVG files
  calibrate report --index *.toml -o index.html              one row for each, to compare at a glance
  calibrate report --index -o index.html                     the calibrations that are built in

The page is one file, without scripts and without anything from elsewhere. It has the verdicts, every \
chain with its interval, ceiling and noise on one axis in three orders, the roofline, patterns against \
sizes, and the machine with its checks and settings. `calibrate show` prints the same figures as text, \
and `calibrate compare` compares files with each other.")]
pub struct ReportArgs {
    /// Calibration files; with --index also imported profiles
    #[arg(value_name = "FILE", required_unless_present = "index", num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// List the files instead, a row for each target of each: machine, ceilings, verdicts, and the
    /// geometric mean of the speedups by family; without files, the built-in calibrations
    #[arg(long, conflicts_with = "plots")]
    pub index: bool,
    /// How to write it
    #[arg(long, value_enum, default_value_t = ReportFormat::Html)]
    pub format: ReportFormat,
    /// Only these targets of files that have several: parts of cpu/2/f32/native
    #[arg(long, value_name = "TARGET")]
    pub target: Option<TargetParts>,
    /// The speedup from which fusing is worth it
    #[arg(long, value_name = "RATIO", value_parser = super::threshold,
        default_value_t = Policy::THRESHOLD)]
    pub threshold: f64,
    /// Write the figures of the page into this folder, as SVG; the page itself then only with --output
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Where it goes.
    #[command(flatten)]
    pub file: FileArgs,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// One page with everything in it, without scripts
    Html,
}
