//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use fused_kernels::gpu::compile_worker;
use fusion_cost_model::{CacheState, Clock, Implementation};
use trace_tool::TraceCommand;

use crate::worker::WORKER;

const EXAMPLES: &str = "\
Examples:
  calibrate --fusion all                          every pattern at the standard sizes
  calibrate --fusion all --quick --output q.toml  a first look, in under a minute
  calibrate --fusion linear,add_relu --threads 1  a family and a pattern, on one thread
  calibrate --fusion conv2d+bias+hardswish        any chain of ops
  calibrate --shapes resnet50                     what a model is made of
  calibrate --problem linear_bias_relu/f32/m512.k512.n512
  calibrate --shapes resnet50 --time-budget 10m   as far as ten minutes go; run it again to go on
  calibrate --fusion all --cache cold             with inputs that are not in the caches
  calibrate --fusion all --backend cuda --dtype bf16            the first NVIDIA GPU
  calibrate --fusion linear --backend hip --device 1 --clock device
  calibrate selftest                              how often the intervals are right on this machine
  calibrate trace kernels rank0.json.gz           where the time of a GPU profile goes
  calibrate trace compare a.json.gz b.json.gz     where the gap between two GPU profiles comes from
  calibrate show q.toml
  calibrate query q.toml --problem add_relu/f32/m1024.n1024

Exit codes: 0 done, 1 failure, 2 usage, 3 with --strict when not everything can be trusted, \
4 failed
self-test or exceeded limit of `trace validate`, 5 no such device or a library of it is missing, \
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
    /// Test the procedure on this machine: kernels against themselves, and a simulation
    Selftest(SelftestArgs),
    /// Look into GPU profiler traces (Kineto JSON, plain or gzipped)
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// What the program starts for every launch; not for people
    #[command(name = WORKER, hide = true)]
    Worker,
    /// What a GPU backend starts for a compiler that may end its process; not for people
    #[command(name = compile_worker::ARGUMENT, hide = true)]
    CompileWorker,
}

/// Above the options that only a GPU has.
const GPU_OPTIONS: &str = "GPUs";

/// What the caches hold when a sample begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CachePolicy {
    /// What the variant left there when it ran just before
    Warm,
    /// Nothing of the tensors: every run uses others than the run before
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

/// What the times of a GPU begin and end with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockChoice {
    /// The GPU's own clock, with its queue full: what a captured graph pays
    Device,
    /// The host's, from handing the work to an idle GPU to its end: what eager execution pays
    LaunchInclusive,
    /// Each of them, as records of their own
    Both,
}

impl ClockChoice {
    /// The clocks.
    #[must_use]
    pub fn clocks(self) -> Vec<Clock> {
        match self {
            Self::Device => vec![Clock::Device],
            Self::LaunchInclusive => vec![Clock::LaunchInclusive],
            Self::Both => vec![Clock::Device, Clock::LaunchInclusive],
        }
    }
}

/// Whose kernels to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImplementationChoice {
    /// The project's own
    Native,
    /// Those of the vendor's library, where it has a fused form
    Vendor,
    /// Both; what the vendor's library has not got is listed
    All,
}

impl ImplementationChoice {
    /// The implementations.
    #[must_use]
    pub fn implementations(self) -> Vec<Implementation> {
        match self {
            Self::Native => vec![Implementation::Native],
            Self::Vendor => vec![Implementation::Vendor],
            Self::All => Implementation::ALL.to_vec(),
        }
    }
}

/// How to calibrate.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What runs the kernels: cpu, cuda (NVIDIA GPUs) or hip (AMD GPUs)
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    pub backend: String,

    /// The machine you believe to be on, or a hardware file; what is written always describes the
    /// machine that was observed
    #[arg(long, value_name = "NAME|FILE|auto", default_value = "auto")]
    pub hardware: String,

    /// Which GPU, by its number in `calibrate list devices` [default: 0]
    #[arg(long, value_name = "N", help_heading = GPU_OPTIONS)]
    pub device: Option<u32>,

    /// Where to look for the libraries of the GPU's vendor first; can be given several times
    #[arg(long, value_name = "DIR", help_heading = GPU_OPTIONS)]
    pub gpu_lib_dir: Vec<PathBuf>,

    /// What the times of a GPU begin and end with [default: both]
    #[arg(long, value_enum, help_heading = GPU_OPTIONS)]
    pub clock: Option<ClockChoice>,

    /// Whose kernels to measure [default: native, and vendor where there is a fused form]
    #[arg(long, value_enum, help_heading = GPU_OPTIONS)]
    pub implementation: Option<ImplementationChoice>,

    /// Where compiled kernels are kept [default: fusion-cost-model in $XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR", help_heading = GPU_OPTIONS)]
    pub code_cache: Option<PathBuf>,

    /// What to measure, separated by commas: all, a family (linear, conv, attention, elementwise),
    /// a pattern, or a chain of ops joined with + [default: all, or what --shapes lists]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fusion: Vec<String>,

    /// The sizes: a set (see `calibrate list shapes`) or a file [default: standard, gpu with a GPU
    /// backend, quick with --quick]
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

    /// Fewer sizes, fewer samples and one process per problem; good for a first look
    #[arg(long)]
    pub quick: bool,

    /// Fresh processes per problem; one that is still undecided gets up to twice as many
    /// [default: 5, or 1 with --quick]
    #[arg(long, value_name = "N", value_parser = launches)]
    pub launches: Option<u32>,

    /// Rounds per process, each with a fresh placement of the tensors in memory [default: 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rounds: Option<u32>,

    /// When to end the run, such as 90s, 10m or 2h; the same command goes on with what was not
    /// reached
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub time_budget: Option<Duration>,

    /// What the caches hold when a run of a kernel begins
    #[arg(long, value_enum, default_value_t = CachePolicy::Warm)]
    pub cache: CachePolicy,

    /// Let the system move the threads between processors instead of binding each to one
    #[arg(long)]
    pub unbound: bool,

    /// Measure although a check of the machine failed; the file says so
    #[arg(long)]
    pub force: bool,

    /// Seed of the inputs, the memory layouts and the order of the samples
    // TOML has no larger integers.
    #[arg(long, value_name = "N", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,

    /// The calibration file to write [default: calibration-MACHINE.toml]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Also write every single sample, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,

    /// Print the calibration as JSON instead of tables
    #[arg(long)]
    pub json: bool,

    /// Refuse to measure if the observed machine is not the one named with --hardware
    #[arg(long)]
    pub require_hardware: bool,

    /// Exit with 3 if some records are ambiguous or invalid, the time was up before everything was
    /// measured, or the machine is not the one named
    #[arg(long)]
    pub strict: bool,
}

/// Reads a number of launches.
fn launches(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(launches @ (1 | 3..=1000)) => Ok(launches),
        Ok(2) => {
            Err("an interval over 2 launches says nothing; ask for 1, or 3 or more".to_owned())
        }
        _ => Err("it must be 1, or from 3 to 1000".to_owned()),
    }
}

/// Reads `10m` or `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be longer than nothing".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; write it as 90s, 10m or 1h30m")),
    }
}

/// How to test the procedure.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  calibrate selftest                       a few minutes on two cores
  calibrate selftest --runs 240            a sharper answer, in a quarter of an hour
  calibrate selftest --simulations 1000 --runs 0    the simulation alone
  calibrate selftest --json > selftest.json

Exit codes: 0 passed, 1 failure, 3 undecided (too few runs to tell, or too noisy a machine), 4 the intervals were right too rarely, 130 interrupted.")]
pub struct SelftestArgs {
    /// A/A runs: a kernel measured against itself
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub runs: u32,

    /// Simulated calibrations of each kind of disturbance
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub simulations: u32,

    /// Threads of the kernels [default: the physical cores]
    #[arg(long, value_name = "N")]
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

/// What to list.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate list patterns
  calibrate list devices                                what this machine can run on
  calibrate list devices --gpu-lib-dir /opt/cuda/lib64  with libraries of another folder")]
pub struct ListArgs {
    /// Only one kind of name
    #[arg(value_enum)]
    pub what: Option<Listed>,
    /// Where to look for the libraries of GPUs first; can be given several times
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
  calibrate query q.toml --problem Conv2d_BN_ReLU/fp32/n1.c64.h56.w56.k64.r3.s3.pad1 --threads 1
  calibrate query h200.toml --problem add_relu/bf16/m4096.n4096 --backend cuda --clock device")]
pub struct QueryArgs {
    /// A calibration file
    pub file: PathBuf,
    /// The problem
    #[arg(long, value_name = "PROBLEM")]
    pub problem: String,
    /// The backend that would run it
    #[arg(long, default_value = "cpu")]
    pub backend: String,
    /// What the caches would hold
    #[arg(long, value_enum, default_value_t = CachePolicy::Warm)]
    pub cache: CachePolicy,
    /// The threads that would run it [default: those of the file's records]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// What its times would begin and end with: host, device or launch-inclusive [default: that of
    /// the file's records]
    #[arg(long, value_name = "CLOCK")]
    pub clock: Option<String>,
    /// Whose kernels would run: native or vendor
    #[arg(long, value_name = "NAME", default_value = "native")]
    pub implementation: String,
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
