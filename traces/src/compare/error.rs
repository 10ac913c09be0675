//! Why two traces cannot be compared.

use thiserror::Error;

use super::side::{Chosen, CompareOptions};
use crate::segment::Phase;

/// Why two traces cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompareError {
    /// Nothing ran on a device.
    #[error(
        "{name} has nothing to compare: nothing ran on a device; record with \
         ProfilerActivity.CUDA"
    )]
    NoKernels {
        /// The file.
        name: String,
    },
    /// The phase is not there.
    #[error("{name} has no kernels of the phase {phase}; {}", there_are(known))]
    NoPhase {
        /// The file.
        name: String,
        /// The phase.
        phase: &'static str,
        /// Those that it has.
        known: Vec<&'static str>,
    },
    /// The layer is not there.
    #[error("{name} has no layer {layer}; {}", layers(*count))]
    NoLayer {
        /// The file.
        name: String,
        /// The number of the layer.
        layer: u32,
        /// How many layers there are.
        count: u32,
    },
}

fn there_are(phases: &[&str]) -> String {
    if phases.is_empty() {
        "nothing in it shows a phase".to_owned()
    } else {
        format!("there are: {}", phases.join(", "))
    }
}

fn layers(count: u32) -> String {
    match count {
        0 => "no layers were found in it".to_owned(),
        1 => "it has one, number 0".to_owned(),
        _ => format!("they are numbered from 0 to {}", count - 1),
    }
}

impl CompareError {
    /// What is wrong with a side, if anything.
    pub(super) fn of(side: &Chosen<'_>, options: &CompareOptions) -> Option<Self> {
        let segments = side.side.segments;
        let name = side.side.name.to_owned();
        if side.side.trace.kernels.is_empty() {
            return Some(Self::NoKernels { name });
        }
        let is_there = |phase: Phase| {
            let mut rows = 0..side.side.trace.kernels.len();
            rows.any(|row| side.phase(row) == Some(phase))
        };
        if let Some(phase) = options.phase.filter(|phase| !is_there(*phase)) {
            let known = Phase::ALL.into_iter().filter(|phase| is_there(*phase)).map(Phase::name);
            return Some(Self::NoPhase { name, phase: phase.name(), known: known.collect() });
        }
        if let Some(layer) = options.layer.filter(|_| side.rows.is_empty()) {
            return Some(Self::NoLayer { name, layer, count: segments.layers.count });
        }
        None
    }
}
