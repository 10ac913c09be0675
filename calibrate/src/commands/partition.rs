//! `calibrate partition MODEL --profile FILE`.

use cli_support::input;
use cli_support::sheet::Sheet;
use cli_support::width::Width;
use fusion_cost_model::{FusionCostModel, Policy, WhenUnknown};
use model_graphs::Graph;

use super::target;
use super::written::{Formats, write};
use crate::cli::PartitionArgs;
use crate::exit;
use crate::profiles::{given_dims, graph_error};
use crate::report::partition::{Question, SplitModel};

/// Splits a model into the kernels that take the least time.
///
/// # Errors
///
/// When a file cannot be read, or a dimension has no number.
pub fn partition(args: &PartitionArgs) -> anyhow::Result<u8> {
    let output = args.output.target()?;
    let dims = given_dims(&args.dim)?;
    let model = FusionCostModel::load(input::expect(&args.profile))?;
    let target = target::with_records(&args.target, &model)?;
    let graph = Graph::load(input::expect(&args.model))?;
    let name = args.model.display().to_string();
    let found = graph.segments(&dims).map_err(|error| graph_error(error, &name, &dims))?;
    let nodes = found.graph_nodes().map_err(|error| graph_error(error, &name, &dims))?;
    let question = Question {
        model: name,
        dims: dims.numbers().map(|(name, size)| (name.to_owned(), size)).collect(),
        profile: args.profile.display().to_string(),
        target,
        threshold: args.threshold,
        ops: nodes.iter().map(|node| node.problem.chain().len()).sum(),
        segments: found.segments().len(),
        views: found.views(),
        computed_ahead: found.computed_ahead(),
        unused: found.unused(),
    };
    let policy = Policy::new(WhenUnknown::Roofline).with_threshold(args.threshold);
    let split = SplitModel::of(question, &found, &nodes, model.on(target), &policy)?;
    write(&split, &args.output, output)?;
    Ok(exit::DONE)
}

impl Formats for SplitModel {
    fn text(&self, width: Width) -> String {
        Self::text(self, width)
    }

    fn sheet(&self) -> Sheet {
        Self::sheet(self)
    }
}
