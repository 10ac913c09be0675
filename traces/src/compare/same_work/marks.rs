//! What the marks of steps say of their sizes.

use rustc_hash::FxHashSet;

use super::super::side::Chosen;
use crate::segment::{Phase, StepSize};

/// The mean sizes of marked steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MarkedSize {
    pub(super) sequences: Option<f64>,
    pub(super) tokens: Option<f64>,
    pub(super) context: Option<f64>,
}

/// The mean sizes of the marked steps that have kernels, by phase.
pub(super) fn marked(side: &Chosen<'_>) -> Vec<(Option<Phase>, MarkedSize)> {
    let trace = side.side.trace;
    let steps = &side.side.segments.steps;
    let used: FxHashSet<usize> =
        side.rows.iter().filter_map(|row| steps.step(*row as usize)).collect();
    let phases = Phase::ALL.into_iter().map(Some).chain([None]);
    let mut found = Vec::new();
    for phase in phases {
        let of_phase = steps.list.iter().enumerate();
        let sizes: Vec<StepSize> = of_phase
            .filter(|(at, step)| step.phase == phase && used.contains(at))
            .map(|(_, step)| StepSize::of(trace.names.text(step.name)))
            .collect();
        if sizes.is_empty() {
            continue;
        }
        let mean = |of: fn(&StepSize) -> Option<u64>| {
            let values: Option<Vec<u64>> = sizes.iter().map(of).collect();
            #[expect(clippy::cast_precision_loss, reason = "a mean")]
            values.map(|values| {
                values.iter().map(|value| *value as f64).sum::<f64>() / values.len() as f64
            })
        };
        let size = MarkedSize {
            sequences: mean(|size| size.sequences),
            tokens: mean(|size| size.tokens),
            context: mean(|size| size.context),
        };
        found.push((phase, size));
    }
    found
}
