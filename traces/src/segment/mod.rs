//! What a trace is made of: steps and their phases, passes through the model, layers.
//!
//! `order` puts the kernels in the order of their streams, `marks` reads what the program marked,
//! and `steps` puts kernels into the marks by their launches, with `windows` that say which marks
//! contain a time. `cut` makes passes and layers of a `sequence` of kernels: `markers`, `modules`
//! or a `repetition` say where layers begin, `passes` where the model begins again, `strangers` which
//! passes are of other models, by their `signature`, and the `shape` of its layers where the last one
//! `ends`. `layers` puts together what was found on all devices, and `family` says what kind of model
//! it looks like. `phases` says what passes are for where no mark does.

mod cut;
mod ends;
mod family;
mod layers;
mod markers;
mod marks;
mod modules;
mod no_layers;
mod order;
mod passes;
mod phases;
mod repetition;
mod sequence;
mod shape;
mod signature;
mod some;
mod steps;
mod strangers;
#[cfg(test)]
mod tests;
mod windows;

pub use family::{Family, FamilyEvidence};
pub use layers::{Layer, Layers, Marker, OtherModel, Pass, Pattern};
pub use marks::{MarkKind, Phase, StepSize};
pub use no_layers::NoLayers;
pub use phases::{PhaseEvidence, PhaseFinding};
pub use steps::{Assignment, Assignments, Step, Steps};

use crate::launched::launches;
use crate::{Classes, Trace};

/// What a trace is made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Segments {
    /// The marked steps, and which kernels belong to them.
    pub steps: Steps,
    /// The layers, and which kernels belong to them.
    pub layers: Layers,
    /// The kind of model.
    pub family: Family,
}

impl Segments {
    /// Finds the steps and layers of a trace.
    #[must_use]
    pub fn of(trace: &Trace, classes: &Classes) -> Self {
        let launches = launches(trace);
        let order = order::by_stream(trace);
        let mut steps = Steps::of(trace, &launches, &order);
        let layers = Layers::of(trace, classes, &launches, &steps, &order);
        if !steps.have_phases()
            && let Some(derived) = phases::derive(trace, classes, &launches, &layers, &order)
        {
            steps.take(derived);
        }
        let family = Family::of(trace, classes, &layers);
        Self { steps, layers, family }
    }

    /// Finds the steps, and the phases of kernels. Where marks tell those, no layers are looked for.
    #[must_use]
    pub fn steps_of(trace: &Trace, classes: &Classes) -> Steps {
        let steps = Steps::of(trace, &launches(trace), &order::by_stream(trace));
        if steps.have_phases() { steps } else { Self::of(trace, classes).steps }
    }
}
