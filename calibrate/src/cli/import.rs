//! The command line of `calibrate import`.

use std::path::PathBuf;

use clap::Args;

/// What to import.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate import i7_12700k.json -o i7.toml
  calibrate compare i7.toml calibration-intel-xeon.toml

Times of another calibrator have no intervals, so that they are compared and never decided by: no \
cost model is made from an imported profile.")]
pub struct ImportArgs {
    /// A calibration profile of branes-ai/graphs (JSON)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The file to write, whole or not at all [default: imported-MACHINE.toml]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file of --output even if it is not an imported profile
    #[arg(long)]
    pub overwrite: bool,
}
