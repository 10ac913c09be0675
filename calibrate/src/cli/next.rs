//! The options of a run that chooses what to measure by itself.

use std::path::PathBuf;

use clap::Args;

use crate::exit::UsageError;

/// The heading of these options.
const NEXT_OPTIONS: &str = "What to measure next";

/// What a run is to be good for.
#[derive(Debug, Clone, Default, Args)]
pub struct NextArgs {
    /// Measure only what the decisions about a model need: a workload (see `calibrate list
    /// workloads`), an ONNX file, the JSON of a graph, or a .txt file with a problem on each line.
    /// Records are added to the file of --output, or to those of --profile
    #[arg(long = "for", value_name = "MODEL", group = "goal", help_heading = NEXT_OPTIONS,
        conflicts_with_all = ["fusion", "shapes", "problem"])]
    pub for_model: Option<PathBuf>,

    /// The size of a dimension that the model leaves open, such as batch=8; can be repeated
    #[arg(long, value_name = "NAME=SIZE", requires = "for_model", help_heading = NEXT_OPTIONS)]
    pub dim: Vec<String>,

    /// The calibration to begin with [default: the output, if there is one]
    #[arg(long, value_name = "FILE", requires = "for_model", help_heading = NEXT_OPTIONS)]
    pub profile: Option<PathBuf>,

    /// Measure a few problems of an older calibration of this machine again, and say whether it has
    /// drifted and how many more would update it [output: OLD.refreshed.toml]
    #[arg(long, value_name = "OLD", group = "goal", help_heading = NEXT_OPTIONS,
        conflicts_with_all = ["fusion", "shapes", "problem"])]
    pub refresh: Option<PathBuf>,

    /// At most this many problems [default: 8 with --refresh, all that are needed with --for]
    #[arg(long, value_name = "N", requires = "goal", value_parser = points,
        help_heading = NEXT_OPTIONS)]
    pub points: Option<usize>,

    /// Only say what is known and what would be measured
    #[arg(long, requires = "goal", help_heading = NEXT_OPTIONS)]
    pub dry_run: bool,
}

impl NextArgs {
    /// Whether the run chooses what to measure.
    #[must_use]
    pub const fn is_asked(&self) -> bool {
        self.for_model.is_some() || self.refresh.is_some()
    }

    /// Refuses options that say how to choose where nothing is to be chosen. The parser itself does not
    /// where what they need excludes something else that is given.
    ///
    /// # Errors
    ///
    /// [`UsageError`] with what is missing.
    pub fn check(&self) -> Result<(), UsageError> {
        let given = [
            (!self.dim.is_empty(), "--dim"),
            (self.profile.is_some(), "--profile"),
            (self.points.is_some(), "--points"),
            (self.dry_run, "--dry-run"),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given && !self.is_asked()) {
            Some((_, option)) => {
                Err(UsageError(format!("{option} is for a run with --for or --refresh")))
            }
            None => Ok(()),
        }
    }
}

/// Reads a number of problems.
fn points(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(points @ 1..=10_000) => Ok(points),
        _ => Err("it must be a number from 1 to 10000".to_owned()),
    }
}
