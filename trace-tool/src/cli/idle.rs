//! The command line of `calibrate trace idle`.

use clap::Args;

use super::input::{IndexArgs, TraceFiles};
use super::output::OutputArgs;
use super::phase::PhaseArgs;

/// Whose idle time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace idle rank0.json.gz
  calibrate trace idle traces/ --rank 3 --top 50
  calibrate trace idle rank0.json.gz --json > idle.json

Every gap of a device belongs to the kernel that ends it. What the host did is known if operators or \
Python frames were recorded (with_stack=True).")]
pub struct TraceIdleArgs {
    /// Which.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Their indexes.
    #[command(flatten)]
    pub index: IndexArgs,
    /// Which phase.
    #[command(flatten)]
    pub phase: PhaseArgs,
    /// How many places to list
    #[arg(long, value_name = "N", default_value_t = 12)]
    pub top: usize,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
}
