//! The phase that a command is about.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use kernel_traces::segment::Phase;

/// One phase, or everything.
#[derive(Debug, Args)]
pub struct PhaseArgs {
    /// Only kernels that were launched in steps of this phase, or in this part of steps
    #[arg(long, value_enum, value_name = "PHASE", default_value_t = PhaseChoice(None))]
    pub phase: PhaseChoice,
}

impl PhaseArgs {
    /// The one phase, if it is one.
    #[must_use]
    pub const fn only(&self) -> Option<Phase> {
        self.phase.0
    }
}

/// One phase under its name in reports; none is `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseChoice(pub Option<Phase>);

impl PhaseChoice {
    const VALUES: [Self; 1 + Phase::ALL.len()] = {
        let mut values = [Self(None); 1 + Phase::ALL.len()];
        let mut at = 0;
        while at < Phase::ALL.len() {
            values[1 + at] = Self(Some(Phase::ALL[at]));
            at += 1;
        }
        values
    };
}

impl ValueEnum for PhaseChoice {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::VALUES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self.0 {
            None => ("all", "Everything"),
            Some(phase) => (phase.name(), help(phase)),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

const fn help(phase: Phase) -> &'static str {
    match phase {
        Phase::Prefill => "Reading prompts",
        Phase::Decode => "Generating tokens",
        Phase::Mixed => "Both at once",
        Phase::Diffusion => "Refining an image or the like",
        Phase::Forward => "Computing the loss, in training",
        Phase::Backward => "Computing gradients",
        Phase::Recompute => "Running layers once more for their gradients",
        Phase::Optimizer => "Changing the weights",
    }
}
