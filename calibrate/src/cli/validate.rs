//! The command line of `calibrate validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fusion_cost_model::{LeaveOut, Policy};

use super::{OutputArgs, TargetArgs};

/// A calibration file whose records estimate each other.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate validate q.toml
  calibrate validate q.toml --leave-out problem      with other chains of the same sizes known
  calibrate validate q.toml --max-regret 0.5%        as a test: exit code 4 above that
  calibrate validate q.toml --format csv --output left-out.csv      every record
  calibrate validate h200.toml --backend cuda --clock device --json

The regret of a decision is the time of the variant that it chose over that of the faster one, less \
one, as they were measured; of several it is the mean. It is shown with that of always fusing, of \
never fusing, and of an oracle that knows every speedup and obeys the same threshold.

This compares the estimates of a calibration file with its own records. `calibrate trace validate` is \
a different command: it compares the times that a performance model predicts with a GPU profile.

Exit codes: 0 done, 1 the file cannot be read, or has nothing to decide with --max-regret, 2 usage, or \
no records of the target, 4 the regret is above --max-regret.")]
pub struct ValidateArgs {
    /// A calibration file
    pub file: PathBuf,
    /// What is left out at a time
    #[arg(long, value_enum, default_value_t = LeaveOutName::Shape)]
    pub leave_out: LeaveOutName,
    /// Exit with 4 if the regret of the decisions is above this percentage
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub max_regret: Option<f64>,
    /// Whose records.
    #[command(flatten)]
    pub target: TargetArgs,
    /// The speedup from which fusing is worth it
    #[arg(long, value_name = "RATIO", value_parser = super::threshold,
        default_value_t = Policy::THRESHOLD)]
    pub threshold: f64,
    /// How and where it is written.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is left out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LeaveOutName {
    /// All records of the same sizes and dtype, of whatever chain: what a size costs that nobody
    /// measured
    Shape,
    /// One record: what a chain costs that nobody measured at a size at which others were
    Problem,
}

impl From<LeaveOutName> for LeaveOut {
    fn from(name: LeaveOutName) -> Self {
        match name {
            LeaveOutName::Shape => Self::Shape,
            LeaveOutName::Problem => Self::Problem,
        }
    }
}

/// Reads a limit: a share from a number of per cent.
fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(0.01 * percent.abs()),
        _ => Err("it must be a number of per cent, such as 0.5%".to_owned()),
    }
}
