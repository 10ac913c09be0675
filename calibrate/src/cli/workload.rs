//! The command line of `calibrate workload`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cli_support::output::{Replace, Target as Place};
use fusion_cost_model::{CacheState, Policy, Target};

use super::duration::{duration, duration_or_none};
use super::run::processes;
use super::{ProgressChoice, TargetArgs};
use crate::exit::UsageError;
use crate::judge::LEAST_SPAN;
use crate::measure::Procedure;
use crate::run::RunSettings;
use crate::worker::CoreChoice;

/// A model to predict and to measure.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate workload resnet50 --profile q.toml
  calibrate workload bert-base --profile q.toml --batch 8 --dim sequence=384
  calibrate workload model.onnx --profile q.toml --dim batch=1
  calibrate workload llama-8b-block --profile q.toml --predict-only
  calibrate workload resnet50 --profile q.toml --format markdown >> pull-request.md
  calibrate workload resnet50 --profile q.toml --json -o resnet50.json
  calibrate trace validate --operators resnet50.json    how well each operator was predicted
  calibrate workload bert-base --profile q.toml --missing    what to measure for a better prediction

The model is run in three ways: one kernel per op, as few kernels as what is known allows, and the \
kernels that the profile expects to take the least time. All kernels are proved right first. Every \
layer has weights and results of its own, and reads what other layers wrote where they wrote it. The \
ways are measured in interleaved pairs, in fresh processes, as the variants of a problem are. Nodes \
that the vocabulary cannot express are in none of the times, and are listed.

Exit codes: 0 done, 1 failure, 2 usage, 130 interrupted.")]
pub struct WorkloadArgs {
    /// A built-in workload (see `calibrate list workloads`), an ONNX file, the JSON of a graph, or a
    /// workload of your own (.toml)
    #[arg(value_name = "NAME|MODEL")]
    pub model: String,
    /// The calibration file that knows what kernels cost
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// The same as --dim batch=N
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub batch: Option<u32>,
    /// The size of a dimension that the model leaves open, such as sequence=384; can be repeated
    #[arg(long, value_name = "NAME=SIZE")]
    pub dim: Vec<String>,
    /// Where the kernels run.
    #[command(flatten)]
    pub target: TargetArgs,
    /// The speedup from which the best partition fuses
    #[arg(long, value_name = "RATIO", value_parser = super::threshold,
        default_value_t = Policy::THRESHOLD)]
    pub threshold: f64,
    /// Only predict, and measure nothing
    #[arg(long)]
    pub predict_only: bool,
    /// Print the commands that measure the problems which the profile has no record of, and do nothing
    /// else
    #[arg(long, conflicts_with = "predict_only")]
    pub missing: bool,
    /// Fewer samples and three processes, without waiting between them
    #[arg(long)]
    pub quick: bool,
    /// Fresh processes for each pair of ways; one that is still undecided gets up to twice as many
    /// [default: 10, or 3 with --quick]
    #[arg(long, value_name = "N", value_parser = processes)]
    pub processes: Option<u32>,
    /// Rounds per process, each with a fresh placement of the tensors in memory
    /// [default: as the time of the model allows, at least 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub rounds: Option<u32>,
    /// Spread the processes over this time at least, since a state of the machine can last minutes
    /// [default: 2m, or 0s with --quick]
    #[arg(long, value_name = "DURATION", value_parser = duration_or_none)]
    pub spread: Option<Duration>,
    /// Kill a process that measures for longer than this [default: 15m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub process_limit: Option<Duration>,
    /// Let the system move the threads between processors instead of binding each to one
    #[arg(long)]
    pub unbound: bool,
    /// Measure even if a check of the machine fails
    #[arg(long)]
    pub force: bool,
    /// Seed of the inputs, the memory layouts and the order of the samples [default: a new one]
    #[arg(long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// How progress is reported on stderr
    #[arg(long, value_enum, value_name = "HOW", default_value_t = ProgressChoice::Auto)]
    pub progress: ProgressChoice,
    /// How many entries lists have in text and Markdown
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub top: u32,
    /// How to write it
    #[arg(long, value_enum, default_value_t = WorkloadFormat::Text)]
    pub format: WorkloadFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// The file to write instead of stdout, whole or not at all
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file that has the name of --output, if there is one
    #[arg(long, requires = "output")]
    pub overwrite: bool,
}

/// How a workload is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkloadFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header: a record for each way, and for each problem of each way
    Csv,
    /// One object
    Json,
    /// The same as the text, for a pull request or a wiki
    Markdown,
}

impl WorkloadArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> WorkloadFormat {
        if self.json { WorkloadFormat::Json } else { self.format }
    }

    /// Where the result goes; stdout where no file is named.
    ///
    /// # Errors
    ///
    /// When the file cannot be written, or is there already and may not be replaced.
    pub fn place(&self) -> Result<Option<Place>, UsageError> {
        let replace = Replace::if_told(self.overwrite);
        self.output.as_deref().map(|path| Place::new(path, replace)).transpose()
    }

    /// The numbers of open dimensions, each as `name=number`; `--batch` last.
    #[must_use]
    pub fn dims(&self) -> Vec<String> {
        let batch = self.batch.map(|batch| format!("batch={batch}"));
        self.dim.iter().cloned().chain(batch).collect()
    }

    /// How much is to be measured.
    #[must_use]
    pub fn procedure(&self) -> Procedure {
        let procedure = if self.quick { Procedure::QUICK } else { Procedure::STANDARD };
        procedure.with(self.processes, self.rounds)
    }

    /// The time over which the processes of each pair are spread at least.
    #[must_use]
    pub fn spread(&self) -> Duration {
        self.spread.unwrap_or(if self.quick { Duration::ZERO } else { LEAST_SPAN })
    }

    /// How the model is to be run on a target.
    #[must_use]
    pub fn settings(&self, target: Target, seed: u64) -> RunSettings {
        RunSettings {
            procedure: self.procedure(),
            backend: target.backend,
            threads: target.threads,
            // What a run of the whole model leaves there.
            cache: CacheState::Warm,
            l2_bytes: None,
            seed,
            spread: self.spread(),
            forced: self.force,
            time_budget: None,
            cores: CoreChoice::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        workload: WorkloadArgs,
    }

    #[test]
    fn a_forced_run_goes_on_where_all_checks_passed_too() {
        let settings = |more: &[&str]| {
            let line = ["workload", "bert-base", "--profile", "q.toml"].iter().chain(more);
            let line = Line::try_parse_from(line).ok()?;
            Some(line.workload.settings(Target::cpu(2), 7))
        };
        assert_eq!(settings(&[]).map(|one| one.forced), Some(false));
        assert_eq!(settings(&["--force"]).map(|one| one.forced), Some(true));
    }
}
