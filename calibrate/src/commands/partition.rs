//! `calibrate partition MODEL --profile FILE`.

use std::path::Path;

use cli_support::input;
use cli_support::sheet::Sheet;
use cli_support::width::Width;
use fusion_cost_model::{FusionCostModel, Policy, WhenUnknown};
use model_graphs::{Dims, Error as GraphError, Graph};

use super::target;
use super::written::{Formats, write};
use crate::cli::PartitionArgs;
use crate::exit::{self, UsageError};
use crate::report::partition::{Question, SplitModel};

/// Splits a model into the kernels that take the least time.
///
/// # Errors
///
/// When a file cannot be read, or a dimension has no number.
pub fn partition(args: &PartitionArgs) -> anyhow::Result<u8> {
    let output = args.output.target()?;
    let mut dims = Dims::default();
    for text in &args.dim {
        dims.set(text).map_err(|error| UsageError(error.to_string()))?;
    }
    let model = FusionCostModel::load(input::expect(&args.profile))?;
    let target = target::with_records(&args.target, &model)?;
    let graph = Graph::load(input::expect(&args.model))?;
    let found = graph.segments(&dims).map_err(|error| asked(error, &args.model))?;
    let nodes = found.graph_nodes()?;
    let question = Question {
        model: args.model.display().to_string(),
        dims: dims.numbers().map(|(name, size)| (name.to_owned(), size)).collect(),
        profile: args.profile.display().to_string(),
        target,
        threshold: args.threshold,
        ops: nodes.len(),
        segments: found.segments().len(),
        views: found.views(),
        computed_ahead: found.computed_ahead(),
    };
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let split = SplitModel::of(question, &found, &nodes, model.on(target), &policy)?;
    write(&split, &args.output, output)?;
    Ok(exit::DONE)
}

/// What the command line has to say is a question of usage; what is wrong with a file is not.
fn asked(error: GraphError, file: &Path) -> anyhow::Error {
    if error.is_open_dims() || error.is_invalid_dim() {
        return UsageError(error.to_string()).into();
    }
    anyhow::Error::from(error).context(file.display().to_string())
}

impl Formats for SplitModel {
    fn text(&self, width: Width) -> String {
        Self::text(self, width)
    }

    fn sheet(&self) -> Sheet {
        Self::sheet(self)
    }
}
