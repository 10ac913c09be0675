//! The phase that a command is about.

use clap::{Args, ValueEnum};
use kernel_traces::segment::Phase;

/// One phase, or everything.
#[derive(Debug, Args)]
pub struct PhaseArgs {
    /// Only what was launched in steps of this phase, or in this part of steps
    #[arg(long, value_enum, value_name = "PHASE", default_value_t = PhaseName::All)]
    pub phase: PhaseName,
}

impl PhaseArgs {
    /// The one phase, if it is one.
    #[must_use]
    pub const fn only(&self) -> Option<Phase> {
        match self.phase {
            PhaseName::All => None,
            PhaseName::Prefill => Some(Phase::Prefill),
            PhaseName::Decode => Some(Phase::Decode),
            PhaseName::Mixed => Some(Phase::Mixed),
            PhaseName::Diffusion => Some(Phase::Diffusion),
            PhaseName::Forward => Some(Phase::Forward),
            PhaseName::Backward => Some(Phase::Backward),
            PhaseName::Recompute => Some(Phase::Recompute),
            PhaseName::Optimizer => Some(Phase::Optimizer),
        }
    }
}

/// What a step, or a part of it, is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PhaseName {
    /// Everything
    All,
    /// Reading prompts
    Prefill,
    /// Generating tokens
    Decode,
    /// Both at once
    Mixed,
    /// Refining an image or the like
    Diffusion,
    /// Computing the loss, in training
    Forward,
    /// Computing gradients
    Backward,
    /// Running layers once more for their gradients
    Recompute,
    /// Changing the weights
    Optimizer,
}
