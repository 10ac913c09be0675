//! The command line of a calibration.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fusion_cost_model::{Backend, DType, Implementation, Rewrite};
use regex::Regex;

use super::duration::{duration, duration_or_none};
use super::{CachePolicy, ClockChoice, GpuArgs, ImplementationChoice, NextArgs};
use crate::exit::UsageError;
use crate::judge::LEAST_SPAN;
use crate::machine::fingerprint;
use crate::measure::Procedure;
use crate::plan::{Request, ShardChoice, Sweep, Ways};
use crate::run::{RunSettings, Seed, Target};
use crate::worker::Device;

/// The project's own kernels, among the names of runtimes.
const NATIVE: &str = "native";

/// How progress is reported on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressChoice {
    /// A bar on a terminal, lines elsewhere
    Auto,
    /// Lines for people
    Log,
    /// One JSON object on each line, for all other messages too
    Json,
}

/// How to calibrate.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// What runs the kernels: cpu, cuda (NVIDIA GPUs) or hip (AMD GPUs)
    #[arg(long, value_name = "NAME", default_value_t = Backend::Cpu)]
    pub backend: Backend,

    /// The machine you expect, or a hardware file; the calibration always describes the observed
    /// machine
    #[arg(long, value_name = "NAME|FILE|auto", default_value = "auto")]
    pub hardware: String,

    /// What only a GPU has.
    #[command(flatten)]
    pub gpu: GpuArgs,

    /// Whose kernels to measure on a CPU, in turns: native and runtimes, separated by commas (see
    /// `calibrate list runtimes`), or files that name a runtime [default: native]
    #[arg(long, value_name = "NAME|FILE", value_delimiter = ',')]
    pub runtime: Vec<String>,

    /// What to measure, separated by commas: all, a family (linear, conv, attention, elementwise),
    /// a pattern, or a chain of ops joined with +; all and a family include the single ops that
    /// --shapes lists [default: all, or what --shapes lists]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fusion: Vec<String>,

    /// The sizes: a set (see `calibrate list shapes`) or a file [default: standard, gpu with a GPU
    /// backend, quick with --quick]
    #[arg(long, value_name = "SET|FILE")]
    pub shapes: Option<String>,

    /// One problem, such as linear_bias_relu/f32/m512.k512.n512, or a sweep of sizes, such as
    /// linear_bias_relu/f32/m{64..4096*2}.k1024.n{256,1024}; can be repeated
    #[arg(long, value_name = "PROBLEM")]
    pub problem: Vec<Sweep>,

    /// Only problems whose text matches, such as 'conv.*/f32/.*r3'
    #[arg(long, value_name = "REGEX", value_parser = expression)]
    pub filter: Option<Regex>,

    /// Only one part of the problems, for one of several tasks: 2/8 is the second of eight parts,
    /// auto/8 and auto the part that Slurm or Kubernetes assign to this task; `calibrate merge`
    /// joins the files
    #[arg(long, value_name = "I/N|auto[/N]", conflicts_with_all = ["for_model", "refresh"])]
    pub shard: Option<ShardChoice>,

    /// Print what would be measured and about how long it would take, and measure nothing; with --for
    /// and --refresh the same as --dry-run
    #[arg(long)]
    pub plan: bool,

    /// Also measure what these rewrites gain, separated by commas, where they apply: bn_folded (a
    /// batch norm folded into the filter before it; CPU only)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub rewrite: Vec<Rewrite>,

    /// The dtypes of the problems from a set of sizes, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "f32")]
    pub dtype: Vec<DType>,

    /// Threads of the kernels [default: the physical cores]
    #[arg(long, value_name = "N", value_parser = super::threads)]
    pub threads: Option<usize>,

    /// Fewer sizes, fewer samples and three processes per problem, without waiting between them;
    /// good for a first look
    #[arg(long)]
    pub quick: bool,

    /// Fresh processes per problem; an undecided problem gets up to twice as many [default: 10, and
    /// up to 20 where undecided, or 40 where a run is short; 3 with --quick]
    #[arg(long, value_name = "N", value_parser = processes)]
    pub processes: Option<u32>,

    /// Rounds per process, each with a fresh placement of the tensors in memory
    /// [default: 4, or 2 with --quick and for problems of 10 ms and more]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rounds: Option<u32>,

    /// Spread the processes of each problem over this time at least, since a state of the machine
    /// can last minutes; 0s does not wait [default: 2m, or 0s with --quick]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_none)]
    pub spread: Option<Duration>,

    /// End the run after this time, such as 90s, 10m or 2h; run the same command again to continue
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub time_budget: Option<Duration>,

    /// Kill a process that measures for longer than this, such as one that was stopped, and try it
    /// once more [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub process_limit: Option<Duration>,

    /// What the caches hold when a run of a kernel begins
    #[arg(long, value_enum, default_value_t = CachePolicy::Warm)]
    pub cache: CachePolicy,

    /// Let the system move the threads between processors instead of binding each to one
    #[arg(long)]
    pub unbound: bool,

    /// Measure even if a check of the machine fails; the calibration records it
    #[arg(long)]
    pub force: bool,

    /// Seed of the inputs, the memory layouts and the order of the samples [default: a new one for
    /// every run, which the calibration records; a run that continues keeps its own]
    // TOML has no larger integers.
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,

    /// The calibration file to write [default: calibration-MACHINE.toml]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Also write every sample, as lines of JSON
    #[arg(long, value_name = "FILE")]
    pub samples: Option<PathBuf>,

    /// Replace the files of --output and --samples even if an earlier run did not write them
    #[arg(long)]
    pub overwrite: bool,

    /// An older calibration of this machine: print how the speedup of each problem has changed, as
    /// soon as it is finished; `calibrate compare` judges all of them together
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,

    /// How progress is reported on stderr
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressChoice::Auto)]
    pub progress: ProgressChoice,

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

    /// What to measure by itself.
    #[command(flatten)]
    pub next: NextArgs,
}

impl RunArgs {
    /// Whether the run only says what it would measure.
    #[must_use]
    pub const fn measures_nothing(&self) -> bool {
        self.plan || self.next.dry_run
    }

    /// The device that is asked for.
    ///
    /// # Errors
    ///
    /// [`UsageError`] when an option has no meaning for its backend.
    pub fn device(&self) -> anyhow::Result<Device> {
        let backend = self.backend;
        if backend == Backend::Cpu {
            self.gpu.refuse()?;
            let threads = self.threads.unwrap_or_else(fingerprint::default_threads);
            if !self.rewrite.is_empty() && !self.is_native() {
                let text = "--rewrite is for the project's own kernels; add native to --runtime";
                return Err(UsageError(text.to_owned()).into());
            }
            return Device::cpu(threads, !self.unbound).with_runtimes(self.runtimes());
        }
        let of_cpu = [
            (self.threads.is_some(), "--threads"),
            (self.unbound, "--unbound"),
            (!self.runtime.is_empty(), "--runtime"),
        ];
        if let Some((_, option)) = of_cpu.into_iter().find(|(is_given, _)| *is_given) {
            let text =
                format!("{option} is for the cpu backend; leave it out with --backend {backend}");
            return Err(UsageError(text).into());
        }
        Ok(Device::gpu(backend, self.gpu.gpu()?))
    }

    /// The problems that are asked for.
    #[must_use]
    pub fn request(&self) -> Request {
        Request {
            fusion: self.fusion.clone(),
            shapes: self.shapes.clone(),
            problems: self.problem.iter().flat_map(Sweep::problems).copied().collect(),
            source: None,
            dtypes: self.dtype.clone(),
            quick: self.quick,
            is_gpu: self.backend != Backend::Cpu,
        }
    }

    /// Whether the project's own kernels are measured on a CPU.
    fn is_native(&self) -> bool {
        self.runtime.is_empty() || self.runtime.iter().any(|one| one == NATIVE)
    }

    /// The runtimes that are asked for, each once.
    fn runtimes(&self) -> impl Iterator<Item = &str> {
        let is_first = |(index, name): &(usize, &String)| !self.runtime[..*index].contains(name);
        let all = self.runtime.iter().enumerate().filter(is_first);
        all.map(|(_, name)| name.as_str()).filter(|name| *name != NATIVE)
    }

    /// By which clocks and with whose kernels each problem is to be measured on a target.
    #[must_use]
    pub fn ways(&self, target: &Target) -> Ways {
        let rewrites = self.rewrite.clone();
        if self.backend == Backend::Cpu {
            let native = self.is_native().then_some(Implementation::Native);
            let runtimes = target.runtimes().iter().map(|runtime| runtime.implementation);
            let implementations = native.into_iter().chain(runtimes).collect();
            return Ways { rewrites, implementations, ..Ways::of_cpu() };
        }
        let implementations = self.gpu.implementation.unwrap_or(ImplementationChoice::All);
        Ways {
            clocks: self.gpu.clock.unwrap_or(ClockChoice::Both).clocks(),
            implementations: implementations.implementations(),
            rewrites,
            tells_vendor: self.gpu.implementation.is_some(),
        }
    }

    /// How much is to be measured.
    #[must_use]
    pub fn procedure(&self) -> Procedure {
        let procedure = if self.quick { Procedure::QUICK } else { Procedure::STANDARD };
        procedure.with(self.processes, self.rounds)
    }

    /// The time over which the processes of each problem are spread at least.
    #[must_use]
    pub fn spread(&self) -> Duration {
        self.spread.unwrap_or(if self.quick { Duration::ZERO } else { LEAST_SPAN })
    }

    /// The seed that was named, else a new one.
    ///
    /// # Errors
    ///
    /// Those of [`Seed::draw`].
    pub fn seed(&self) -> anyhow::Result<Seed> {
        self.seed.map_or_else(Seed::draw, |seed| Ok(Seed::Given(seed)))
    }

    /// How a run on a device is to be made.
    #[must_use]
    pub fn settings(&self, target: &Target, seed: u64) -> RunSettings {
        RunSettings {
            procedure: self.procedure(),
            backend: target.device.backend,
            threads: u32::try_from(target.device.threads).unwrap_or(u32::MAX),
            cache: self.cache.into(),
            l2_bytes: target.l2_bytes(),
            seed,
            spread: self.spread(),
            forced: self.force,
            time_budget: self.time_budget,
            cores: target.cores(),
        }
    }
}

/// A regular expression. What is wrong with it is the last of the lines that its parser has to say.
fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| {
        let text = error.to_string();
        let last = text.lines().last().unwrap_or_default();
        last.strip_prefix("error: ").unwrap_or(last).to_owned()
    })
}

/// Reads a number of processes.
pub(super) fn processes(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(processes @ (1 | 3..=1000)) => Ok(processes),
        Ok(2) => {
            Err("an interval over 2 processes says nothing; ask for 1, or 3 or more".to_owned())
        }
        _ => Err("it must be 1, or from 3 to 1000".to_owned()),
    }
}
