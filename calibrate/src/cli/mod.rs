//! The command line.

mod compare;
mod defaults;
mod doctor;
mod duration;
mod export;
mod file;
mod gpu;
mod import;
mod merge;
mod next;
mod output;
mod partition;
mod report;
mod run;
mod target;
mod validate;
mod workload;

use std::path::PathBuf;

use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use fused_kernels::worker;
use fusion_cost_model::{CacheState, Problem, Rewrite};
use trace_tool::TraceCommand;

use crate::machine::fingerprint;
use crate::selftest::against_itself::Planted;

pub use compare::{CompareArgs, CompareBy, CompareFormat};
pub use defaults::{Defaults, Setting, Source, parse};
pub use doctor::DoctorArgs;
pub use export::{ExportArgs, ExportFormat};
pub use file::FileArgs;
pub use gpu::{ClockChoice, GpuArgs, ImplementationChoice};
pub use import::ImportArgs;
pub use merge::MergeArgs;
pub use next::NextArgs;
pub use output::{OutputArgs, OutputFormat};
pub use partition::PartitionArgs;
pub use report::{ReportArgs, ReportFormat};
pub use run::{ProgressChoice, RunArgs};
pub use target::TargetArgs;
pub use validate::{LeaveOutName, ValidateArgs};
pub use workload::{WorkloadArgs, WorkloadFormat};

const EXAMPLES: &str = "\
Examples:
  calibrate --fusion all                          every pattern at the standard sizes
  calibrate --fusion all --quick --output q.toml  a first look, in under a minute
  calibrate --fusion linear,add_relu --threads 1  a family and a pattern, on one thread
  calibrate --fusion conv2d+bias+hardswish        any chain of ops
  calibrate --shapes resnet50                     the layers of a model
  calibrate --problem linear_bias_relu/f32/m512.k512.n512
  calibrate --shapes resnet50 --time-budget 10m   at most ten minutes; run it again to continue
  calibrate --fusion all --cache cold             with inputs that are not in the caches
  calibrate --fusion conv_bn_relu --rewrite bn_folded    also with the batch norm folded
  calibrate --fusion all --backend cuda --dtype bf16            the first NVIDIA GPU
  calibrate --fusion linear --backend hip --device 1 --clock device
  calibrate --baseline q.toml --fusion all        and how each changed since an older calibration
  calibrate doctor --backend cuda                 which kinds of kernels work on this GPU
  calibrate selftest                              how often the intervals are right on this machine
  calibrate --for resnet50.onnx --dim batch=8     only what the decisions about a model need
  calibrate --refresh q.toml                      has an older calibration drifted?
  calibrate trace kernels rank0.json.gz           where the time of a GPU profile goes
  calibrate trace compare a.json.gz b.json.gz     where the gap between two GPU profiles comes from
  calibrate show q.toml
  calibrate query q.toml --problem add_relu/f32/m1024.n1024
  calibrate compare xeon.toml epyc.toml           on which machine fusion gains more
  calibrate report xeon.toml -o xeon.html         a calibration as a page with figures
  calibrate export xeon.toml -o records.parquet   a row for each record, for other programs
  calibrate partition bert.onnx --profile q.toml --dim batch=1 --dim sequence=128
  calibrate workload resnet50 --profile q.toml    a model predicted, run and compared
  calibrate validate q.toml                       how well its records predict each other

Tables fit the terminal, or COLUMNS characters where that variable is set: a pattern is a heading, \
and columns without room are left out, the ceiling first and the speedup with its verdict last. A \
pipe or a file gets every column, and each problem with its whole name on one line.

Defaults of options are read from $XDG_CONFIG_HOME/calibrate/config.toml (or ~/.config/calibrate), \
and from variables such as CALIBRATE_THREADS, which come before the file; `calibrate config` lists \
them. Other variables: CALIBRATE_CONFIG names the file; NO_COLOR and TERM=dumb turn colours off; \
COLUMNS is the width of tables; XDG_CACHE_HOME is where compiled kernels and states of the machine \
are kept; SLURM_ARRAY_TASK_ID (with _COUNT, _MIN and _STEP) and JOB_COMPLETION_INDEX name the part \
of --shard auto.

Exit codes: 0 done, 1 failure, 2 usage, 3 with --strict when not everything can be trusted, \
4 failed \
self-test, regression found by `compare`, or limit of `validate` or `trace validate` exceeded, 5 a \
device, a runtime or one of its libraries is missing, 130 interrupted.";

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
    /// When to use colours: on a terminal unless NO_COLOR is set, always, or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    pub color: ColorChoice,
    /// The file of defaults [default: calibrate/config.toml in $XDG_CONFIG_HOME or ~/.config]
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
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
    /// Compare calibrations: on which machine fusion gains more, and whether it changed
    Compare(CompareArgs),
    /// Make one page of calibrations: verdicts, intervals, roofline, patterns by size
    Report(ReportArgs),
    /// Write records as rows for other programs: CSV, JSON Lines or Parquet
    Export(ExportArgs),
    /// Join the calibrations of parts of a plan (see --shard)
    Merge(MergeArgs),
    /// Convert a profile of another calibrator into a file that can be compared
    Import(ImportArgs),
    /// Split a model (ONNX or JSON) into the kernels that take the least time
    Partition(PartitionArgs),
    /// Predict a whole model unfused, always fused and in its best partition, then run it
    Workload(WorkloadArgs),
    /// Test how well the records of a calibration file predict each other, and what decisions cost
    Validate(ValidateArgs),
    /// Examine a backend: its libraries and devices, and each kind of kernel by itself
    Doctor(DoctorArgs),
    /// Test the procedure on this machine: kernels against themselves, and a simulation
    Selftest(SelftestArgs),
    /// Print the defaults of options that are set, and where they are read from
    Config,
    /// Look into GPU profiler traces (PyTorch, nsys or rocprofv3)
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one for each command
    #[command(hide = true)]
    Man(ManArgs),
    /// What the program starts to do one task; not for people
    #[command(name = worker::ARGUMENT, hide = true)]
    Worker,
}

/// What the caches hold when a sample begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CachePolicy {
    /// What the variant's own previous run left there
    Warm,
    /// None of the run's tensors: every run uses other tensors than the one before
    Cold,
}

impl From<CachePolicy> for CacheState {
    fn from(policy: CachePolicy) -> Self {
        match policy {
            CachePolicy::Warm => Self::Warm,
            CachePolicy::Cold => Self::Cold,
        }
    }
}

/// More would take weeks, and tell nothing that fewer do not.
const MOST_RUNS: i64 = 1_000_000;

/// How to test the procedure.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  calibrate selftest                       a few minutes on two cores
  calibrate selftest --runs 240            a sharper answer, which takes longer
  calibrate selftest --simulations 1000 --runs 0    the simulation alone
  calibrate selftest --simulations 0 --runs 40 --planted 2%    is a difference of 2 % found?
  calibrate selftest --simulations 0 --runtime onnxruntime     other people's kernels
  calibrate selftest --json > selftest.json

Exit codes: 0 passed, 1 failure, 3 undecided (too few runs to tell, or too noisy a machine), 4 the intervals were right too rarely, 130 interrupted.")]
pub struct SelftestArgs {
    /// A/A runs of each kind: a kernel measured against itself, in the same tensors and against a
    /// copy with tensors of its own
    #[arg(long, value_name = "N", default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(..=MOST_RUNS))]
    pub runs: u32,

    /// Measure against a copy that does this much less, instead, and count how often that is found
    #[arg(long, value_name = "PERCENT", value_parser = planted)]
    pub planted: Option<Planted>,

    /// Measure the kernels of a runtime instead (see `calibrate list runtimes`), or of a file that
    /// names one
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "planted")]
    pub runtime: Option<String>,

    /// Simulated calibrations of each kind of disturbance, in large runs and in small ones
    #[arg(long, value_name = "N", default_value_t = 1000,
        value_parser = clap::value_parser!(u32).range(..=MOST_RUNS))]
    pub simulations: u32,

    /// Fresh processes for each run, as in a calibration; an undecided run gets up to twice as many
    /// [default: 10, and up to 20 where undecided, or 40 where a run of the kernel is short]
    #[arg(long, value_name = "N", value_parser = run::processes)]
    pub processes: Option<u32>,

    /// Threads of the kernels [default: the physical cores]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,

    /// Let the system move the threads between processors instead of binding each to one
    #[arg(long)]
    pub unbound: bool,

    /// Seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,

    /// Print the result as JSON instead of tables
    #[arg(long)]
    pub json: bool,
}

impl SelftestArgs {
    /// The threads of the kernels: those asked for, else one per physical core.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(fingerprint::default_threads)
    }
}

/// What to list.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate list patterns
  calibrate list devices                                what this machine can run on
  calibrate list devices --gpu-lib-dir /opt/cuda/lib64  with libraries of another folder
  calibrate list runtimes                               whose kernels can be measured")]
pub struct ListArgs {
    /// Only one kind of name
    #[arg(value_enum)]
    pub what: Option<Listed>,
    /// Search this folder first for the libraries of GPUs; can be repeated
    #[arg(long, value_name = "DIR")]
    pub gpu_lib_dir: Vec<PathBuf>,
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
    /// The models that can be run as a whole
    Workloads,
    /// The machines with a data sheet
    Hardware,
    /// What this machine can run on
    Devices,
    /// Other people's kernels that can be measured; each is started to ask for its version, so only
    /// when it is named
    Runtimes,
}

/// Which file to show.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate show q.toml                  as wide as the terminal
  calibrate show q.toml | grep FASTER    every column, and a problem with its whole name on a line
  COLUMNS=120 calibrate show q.toml | less
  calibrate show q.toml --json

On a terminal, or with COLUMNS set, a pattern is a heading, and columns without room are left out: \
first the ceiling, then the bytes saved, GFLOP/s, and both times.")]
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
  calibrate query q.toml --problem Conv2d_BN_ReLU/fp32/n1.c64.h56.w56.k64.r3.s3.pad1 --threads 1
  calibrate query h200.toml --problem add_relu/bf16/m4096.n4096 --backend cuda --clock device")]
pub struct QueryArgs {
    /// A calibration file
    pub file: PathBuf,
    /// The problem
    #[arg(long, value_name = "PROBLEM")]
    pub problem: Problem,
    /// Where it would run.
    #[command(flatten)]
    pub target: TargetArgs,
    /// A rewrite of the ops before they are fused: bn_folded
    #[arg(long, value_name = "NAME")]
    pub rewrite: Option<Rewrite>,
    /// An older calibration of the same machine, asked where FILE has no record
    #[arg(long, value_name = "OLD")]
    pub prior: Option<PathBuf>,
    /// The speedup from which fusing is worth it
    #[arg(long, value_name = "RATIO", value_parser = threshold,
        default_value_t = fusion_cost_model::Policy::THRESHOLD)]
    pub threshold: f64,
    /// Print the answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// Where manual pages go.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write a page for each command into this folder
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Replace files of these names that are not pages of this program
    #[arg(long, requires = "output")]
    pub overwrite: bool,
}

/// For which shell.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Reads a number of threads; anything larger is a typo.
fn threads(text: &str) -> Result<usize, String> {
    const MOST: usize = 4096;
    match text.parse() {
        Ok(threads @ 1..=MOST) => Ok(threads),
        _ => Err(format!("it must be a number from 1 to {MOST}")),
    }
}

/// Reads the share of a planted difference.
fn planted(text: &str) -> Result<Planted, String> {
    let percent = text.trim_end_matches('%').trim_end().parse().ok();
    let planted = percent.and_then(|percent: f64| Planted::of_share(0.01 * percent));
    planted.ok_or_else(|| "it must be a percentage from 0.1% to 50%".to_owned())
}

/// Reads a speedup.
fn threshold(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ratio) if f64::is_finite(ratio) && ratio > 0.0 => Ok(ratio),
        _ => Err("it must be a positive number".to_owned()),
    }
}
