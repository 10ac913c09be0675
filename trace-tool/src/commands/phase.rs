//! The one phase that a command is asked about.

use std::collections::BTreeSet;

use cli_support::exit::UsageError;
use kernel_traces::segment::{Phase, Steps};
use kernel_traces::{Classes, Segments, Trace};

use crate::cli::PhaseArgs;

/// Traces that are read in parts do not show their phases.
pub(super) fn needs_all() -> UsageError {
    UsageError("--phase needs the whole trace, for which the memory is not enough".to_owned())
}

/// A phase that is asked for, and those that traces have.
#[derive(Default)]
pub(super) struct Wanted {
    phase: Option<Phase>,
    seen: BTreeSet<Phase>,
}

impl Wanted {
    pub(super) fn of(args: &PhaseArgs) -> Self {
        Self { phase: args.only(), seen: BTreeSet::new() }
    }

    /// The phase, if only one is asked for.
    pub(super) const fn phase(&self) -> Option<Phase> {
        self.phase
    }

    /// Whether a kernel is asked for.
    pub(super) fn takes(&self, steps: &Steps, kernel: usize) -> bool {
        self.phase.is_none() || steps.phase(kernel) == self.phase
    }

    /// Looks for the phases of a trace, if one is asked for.
    pub(super) fn steps(&mut self, trace: &Trace, classes: &Classes) -> Steps {
        if self.phase.is_none() {
            return Steps::default();
        }
        let steps = Segments::steps_of(trace, classes);
        self.see(trace, &steps);
        steps
    }

    /// Remembers which phases a trace has.
    pub(super) fn see(&mut self, trace: &Trace, steps: &Steps) {
        if self.phase.is_some() {
            self.seen.extend((0..trace.kernels.len()).filter_map(|kernel| steps.phase(kernel)));
        }
    }

    /// A phase that no trace has is a mistake.
    pub(super) fn check(&self) -> Result<(), UsageError> {
        let Some(phase) = self.phase.filter(|phase| !self.seen.contains(phase)) else {
            return Ok(());
        };
        let known: Vec<&str> = self.seen.iter().map(|phase| phase.name()).collect();
        let known = match known.as_slice() {
            [] => "nothing shows a phase".to_owned(),
            _ => format!("there are: {}", known.join(", ")),
        };
        Err(UsageError(format!("no kernel is of phase {}; {known}", phase.name())))
    }
}
