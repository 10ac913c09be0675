//! The command line of `calibrate trace validate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use kernel_traces::predicted::{MeasuredBy, Rules};
use serde::Deserialize;

use super::output::OutputArgs;

/// What to compare with what.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate trace validate --predicted model.json --measured kernel_details.csv
  calibrate trace validate --predicted model.json --measured kernel_details.csv \\
      --op-map op_mapping.yaml --passes 2 --max-wmape 15
  calibrate trace validate --predicted model.json --measured rank0.json.gz --measured-by class
  calibrate trace validate --scenarios scenarios.toml --json > validation.json
  calibrate trace validate --operators resnet50.json --max-wmape 15
  calibrate trace validate --scenarios scenarios.yaml --compat --json --output op_comparison.json

Scenarios are a list in TOML ([[scenarios]]) or YAML, each with name, predicted, measured and, if \
need be, op_map, passes or passes_from (a JSON file with n_forward_passes), process, measured_by, \
max_wmape. Their files are relative to the list.

This compares a performance model with a GPU profile. `calibrate validate` is a different command: it \
tests how well the records of a calibration file predict each other.

The wMAPE is the sum of the sizes of all types' errors over the measured time. A type that only \
the model has adds its whole predicted time, one that was only measured its whole measured time.

Exit codes: 0 done, 1 something could not be read or judged, 2 usage, 4 a wMAPE is above its limit.")]
pub struct TraceValidateArgs {
    /// The trace of a performance model (Chrome's JSON, plain or gzipped)
    #[arg(
        long,
        value_name = "TRACE",
        required_unless_present_any = ["scenarios", "operators"],
        requires = "measured"
    )]
    pub predicted: Option<PathBuf>,
    /// The measured kernels: Ascend's table of kernels, a profiler trace, or the CSV that
    /// `calibrate trace kernels --rows` writes
    #[arg(
        long,
        value_name = "KERNELS",
        required_unless_present_any = ["scenarios", "operators"],
        requires = "predicted"
    )]
    pub measured: Option<PathBuf>,
    /// Which kernels operators are, and which cost nothing (YAML)
    #[arg(long, value_name = "MAP")]
    pub op_map: Option<PathBuf>,
    /// How many forward passes were measured; measured times and counts are divided by it
    /// [default: 1]
    #[arg(long, value_name = "N")]
    pub passes: Option<u64>,
    /// The model's process, by its number or a part of its name [default: the one with `profiling`
    /// or `empirical` in its name, else the only one]
    #[arg(long, value_name = "PROCESS")]
    pub process: Option<String>,
    /// What counts as the type of kernels of a trace or its rows [default: name]
    #[arg(long, value_enum)]
    pub measured_by: Option<MeasuredByName>,
    /// Several comparisons, from a list (.toml, .yaml or .yml)
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["predicted", "measured", "op_map", "passes", "process", "measured_by"])]
    pub scenarios: Option<PathBuf>,
    /// Both sides in one file: the JSON or CSV of `calibrate workload`, each of its ways a comparison
    #[arg(long, value_name = "FILE", conflicts_with_all = ["predicted", "measured", "op_map",
        "passes", "process", "measured_by", "scenarios", "compat"])]
    pub operators: Option<PathBuf>,
    /// Reproduce the figures, keys and tables of msmodeling's script, oddities included
    #[arg(long)]
    pub compat: bool,
    /// Exit with 4 if a wMAPE is above this percentage; scenarios may have limits of their own
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub max_wmape: Option<f64>,
    /// How many types to list in tables
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// How to write it
    #[arg(long, value_enum, default_value_t = ValidateFormat::Text)]
    pub format: ValidateFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Where it goes.
    #[command(flatten)]
    pub out: OutputArgs,
}

impl TraceValidateArgs {
    /// The format that was asked for.
    #[must_use]
    pub fn format(&self) -> ValidateFormat {
        if self.json { ValidateFormat::Json } else { self.format }
    }

    /// The rules that were asked for.
    #[must_use]
    pub fn rules(&self) -> Rules {
        if self.compat { Rules::Original } else { Rules::Own }
    }
}

/// How comparisons are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ValidateFormat {
    /// Tables for people
    Text,
    /// RFC 4180, with a header: a record for each type of kernel
    Csv,
    /// One object
    Json,
}

/// What counts as the type of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasuredByName {
    /// Their name
    Name,
    /// Their class, as the command `kernels` has it
    Class,
}

impl From<MeasuredByName> for MeasuredBy {
    fn from(name: MeasuredByName) -> Self {
        match name {
            MeasuredByName::Name => Self::Name,
            MeasuredByName::Class => Self::Class,
        }
    }
}

/// Reads a limit.
fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("it must be a number of per cent, such as 15 or 7.5".to_owned()),
    }
}
