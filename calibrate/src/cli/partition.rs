//! The command line of `calibrate partition`.

use std::path::PathBuf;

use clap::Args;
use fusion_cost_model::Policy;

use super::{OutputArgs, TargetArgs};

/// A model to split into kernels.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  calibrate partition resnet50.onnx --profile q.toml --dim batch=1
  calibrate partition bert.onnx --profile q.toml --dim batch=8 --dim sequence=128
  calibrate partition graph.json --profile h200.toml --backend cuda --clock device
  calibrate partition resnet50.onnx --profile q.toml --dim batch=1 --format csv --output split.csv

Kernels with the same problem are one row, with the number of places behind its sizes. A time that \
was not measured is an estimate: `evidence` says from what. Splits are compared by what their kernels \
save, since times of different problems are less certain than how much faster one of them is. Nodes \
that the vocabulary cannot express stay as they are, and are listed. CSV has a record for each kernel \
of the best split; JSON has everything, in milliseconds and bytes.")]
pub struct PartitionArgs {
    /// An ONNX file, with or without weights, or the JSON of a graph
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// The calibration file that knows what kernels cost
    #[arg(long, value_name = "FILE")]
    pub profile: PathBuf,
    /// The size of a dimension that the model leaves open, such as batch=8; can be repeated
    #[arg(long, value_name = "NAME=SIZE")]
    pub dim: Vec<String>,
    /// Where the kernels would run.
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
