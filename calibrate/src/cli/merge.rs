//! The command line of `calibrate merge`.

use std::path::PathBuf;

use clap::Args;

/// Calibrations of parts of a plan.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate --shapes bert-base --shard 1/2 -o part1.toml      on one machine
  calibrate --shapes bert-base --shard 2/2 -o part2.toml      on another one of the same kind
  calibrate merge part*.toml -o bert.toml

All files must be of the same kind of machine, program and settings, and no record in two of them; \
what differs is listed key by key. States and ceilings of each file stay its own, so that a record is \
held against those of the machine that measured it. The order of the files does not matter.

Exit codes: 0 merged, 1 the files cannot be one calibration, 2 usage.")]
pub struct MergeArgs {
    /// Calibration files
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// The calibration file to write, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub overwrite: bool,
}
