//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  calibrate --fusion all                          every pattern at the standard sizes
  calibrate --fusion all --quick --output q.toml  a first look, in under a minute
  calibrate --fusion linear,add_relu --threads 1  a family and a pattern, on one thread
  calibrate --fusion conv2d+bias+hardswish        any chain of ops
  calibrate --shapes resnet50                     what a model is made of
  calibrate --problem linear_bias_relu/f32/m512.k512.n512
  calibrate show q.toml
  calibrate query q.toml --problem add_relu/f32/m1024.n1024

Exit codes: 0 done, 1 failure, 2 usage, 3 with --strict when not everything can be trusted, \
130 interrupted.";

/// Measures what kernel fusion really gains on this machine.
///
/// Runs op chains unfused (one kernel per op) and fused (one kernel), proves that both compute the
/// same thing, measures both in interleaved pairs, and writes a calibration file that a graph
/// partitioner can ask through the fusion-cost-model crate.
#[derive(Debug, Parser)]
#[command(
    name = "calibrate",
    version,
    after_help = EXAMPLES,
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true
)]
pub struct Cli {
    /// What to do instead of calibrating.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to calibrate.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What to do instead of calibrating.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the names that can be used: patterns, ops, sets of sizes, machines, devices
    List(ListArgs),
    /// Print a calibration file as tables
    Show(ShowArgs),
    /// Ask a calibration file about one problem
    Query(QueryArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// How to calibrate.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The machine you believe to be on, or a hardware file; what is written always describes the
    /// machine that was observed
    #[arg(long, value_name = "NAME|FILE|auto", default_value = "auto")]
    pub hardware: String,

    /// What to measure, separated by commas: all, a family (linear, conv, attention, elementwise),
    /// a pattern, or a chain of ops joined with + [default: all, or what --shapes lists]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fusion: Vec<String>,

    /// The sizes: a set (see `calibrate list shapes`) or a file [default: standard, or quick with
    /// --quick]
    #[arg(long, value_name = "SET|FILE")]
    pub shapes: Option<String>,

    /// One problem, such as linear_bias_relu/f32/m512.k512.n512; can be given several times
    #[arg(long, value_name = "PROBLEM")]
    pub problem: Vec<String>,

    /// The number format
    #[arg(long, default_value = "f32")]
    pub dtype: String,

    /// Threads of the kernels [default: the physical cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,

    /// Fewer sizes and fewer samples; good for a first look
    #[arg(long)]
    pub quick: bool,

    /// Seed of the inputs, the memory layouts and the order of the samples
    // TOML has no larger integers.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,

    /// The calibration file to write [default: calibration-MACHINE.toml]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print the calibration as JSON instead of tables
    #[arg(long)]
    pub json: bool,

    /// Refuse to measure if the observed machine is not the one named with --hardware
    #[arg(long)]
    pub require_hardware: bool,

    /// Exit with 3 if some records are ambiguous or invalid, or the machine is not the one named
    #[arg(long)]
    pub strict: bool,
}

/// What to list.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only one kind of name
    #[arg(value_enum)]
    pub what: Option<Listed>,
}

/// The kinds of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// The patterns by family
    Patterns,
    /// The ops that chains are made of
    Ops,
    /// The sets of sizes
    Shapes,
    /// The machines with a data sheet
    Hardware,
    /// What this machine can run on
    Devices,
}

/// Which file to show.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A calibration file
    pub file: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// What to ask.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate query q.toml --problem linear_bias_relu/f32/m512.k512.n512
  calibrate query q.toml --problem Conv2d_BN_ReLU/fp32/n1.c64.h56.w56.k64.r3.s3.pad1 --threads 1")]
pub struct QueryArgs {
    /// A calibration file
    pub file: PathBuf,
    /// The problem
    #[arg(long, value_name = "PROBLEM")]
    pub problem: String,
    /// The backend that would run it
    #[arg(long, default_value = "cpu")]
    pub backend: String,
    /// The threads that would run it [default: those of the file's records]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// The speedup from which fusing is worth it
    #[arg(long, value_name = "RATIO", default_value_t = fusion_cost_model::model::Policy::THRESHOLD)]
    pub threshold: f64,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// For which shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}
