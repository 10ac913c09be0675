//! What kernels are for where no mark says so: the parts of a step of training, prefill and decode.
//!
//! `training` looks for the operators of a backward pass around the launches of kernels, and
//! `forward` for the operators whose gradients those compute, their `partners`; `direction` looks for
//! passes through the layers that take turns in their direction, and `serving` at the attention of
//! passes that only go forward, by its `sizes` and by names, and at how many tokens the `outputs` of
//! a pass are of, and how many sequences its `tables`. What nothing shows has no phase: a wrong one
//! would be worse.

mod beside;
mod direction;
mod forward;
mod outputs;
mod partners;
mod serving;
mod sizes;
mod tables;
mod training;

use serde::Serialize;

use super::layers::Layers;
use super::marks::Phase;
use super::order::StreamOrder;
use crate::launched::operators;
use crate::{Classes, Trace};

/// What shows the phase of some kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PhaseFinding {
    /// Their phase.
    pub phase: Phase,
    /// What shows it.
    pub by: PhaseEvidence,
    /// How often it ran: passes, or stretches between kernels of other phases.
    pub runs: usize,
    /// How many kernels.
    pub kernels: usize,
}

/// What shows a phase where no mark does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PhaseEvidence {
    /// The launch lies in an operator of the backward pass.
    Autograd,
    /// It lies between the first and the last operator of a pass whose gradients are computed later.
    Gradients,
    /// It lies in what a checkpoint runs once more.
    Checkpoint,
    /// It lies in a call of the optimizer.
    Optimizer,
    /// Passes forward and backward through all layers take turns.
    Direction,
    /// The sizes of all attention of the pass.
    Sizes,
    /// How many sequences the pass has, and how many of its tokens have a next one predicted.
    Outputs,
    /// The names of all attention kernels of the pass.
    Names,
}

impl PhaseEvidence {
    /// In words.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Autograd => "operators of the backward pass",
            Self::Gradients => "operators whose gradients are computed later",
            Self::Checkpoint => "what checkpoints run once more",
            Self::Optimizer => "calls of the optimizer",
            Self::Direction => "the direction of passes",
            Self::Sizes => "sizes of attention",
            Self::Outputs => "sequences, and tokens that have an output",
            Self::Names => "names of attention kernels",
        }
    }
}

/// The phases of the kernels of a trace without marks that tell them.
pub(super) struct Derived {
    /// By kernel.
    pub(super) phases: Vec<Option<Phase>>,
    pub(super) findings: Vec<PhaseFinding>,
}

/// Looks for phases; none if nothing shows any.
pub(super) fn derive(
    trace: &Trace,
    classes: &Classes,
    launches: &[u32],
    layers: &Layers,
    order: &StreamOrder,
) -> Option<Derived> {
    let operators = operators(trace, launches);
    if let Some(found) = training::parts(trace, launches, &operators, order) {
        return collect(found.by_kernel, found.runs);
    }
    if layers.passes.iter().any(|pass| pass.is_backward) {
        let found = direction::parts(trace, layers);
        return collect(found.by_kernel, found.runs);
    }
    let found = serving::phases(trace, classes, launches, &operators, layers, order);
    collect(found.by_kernel, found.runs)
}

/// A phase, and what shows it; none if nothing does.
type Known = Option<(Phase, PhaseEvidence)>;

/// What was found: the phase of each kernel with what shows it, and what ran.
struct Found {
    by_kernel: Vec<Known>,
    runs: Vec<(Phase, PhaseEvidence)>,
}

fn collect(by_kernel: Vec<Known>, runs: Vec<(Phase, PhaseEvidence)>) -> Option<Derived> {
    let mut findings: Vec<PhaseFinding> = Vec::new();
    let mut add = |(phase, by): (Phase, PhaseEvidence), runs: usize, kernels: usize| match findings
        .iter_mut()
        .find(|one| (one.phase, one.by) == (phase, by))
    {
        Some(one) => {
            one.runs += runs;
            one.kernels += kernels;
        }
        None => findings.push(PhaseFinding { phase, by, runs, kernels }),
    };
    by_kernel.iter().flatten().for_each(|found| add(*found, 0, 1));
    runs.into_iter().for_each(|run| add(run, 1, 0));
    findings.retain(|one| one.kernels > 0);
    findings.sort_by_key(|one| (one.phase, one.by));
    let phases = by_kernel.into_iter().map(|found| found.map(|(phase, _)| phase)).collect();
    (!findings.is_empty()).then_some(Derived { phases, findings })
}
