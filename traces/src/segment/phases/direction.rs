//! The parts of a step of training by the direction of its passes, where operators do not show
//! them: graphs, and recordings without operators.

use super::super::layers::{Layers, Pass};
use super::super::marks::Phase;
use super::{Found, PhaseEvidence};
use crate::Trace;

/// What the names of kernels that change weights have.
const OPTIMIZERS: [&str; 5] = ["adam", "adagrad", "fusedoptimizer", "fusedsgd", "_lamb"];

/// The parts that passes are. A pass forward is of training if a pass backward through as many
/// layers is next.
pub(super) fn parts(trace: &Trace, layers: &Layers) -> Found {
    let mut by_kernel = vec![None; trace.kernels.len()];
    let mut runs = Vec::new();
    for (index, pass) in layers.passes.iter().enumerate() {
        let Some(phase) = phase(pass, layers.passes.get(index + 1)) else { continue };
        let found = (phase, PhaseEvidence::Direction);
        runs.push(found);
        for layer in layers.list.get(pass.layers.clone()).unwrap_or_default() {
            for kernel in layers.kernels(layer) {
                if let Some(place) = by_kernel.get_mut(*kernel as usize) {
                    *place = Some(found);
                }
            }
        }
    }
    let optimizer = Some((Phase::Optimizer, PhaseEvidence::Direction));
    let names = trace.names.iter().map(|(_, name)| {
        let lower = name.to_lowercase();
        OPTIMIZERS.iter().any(|part| lower.contains(part))
    });
    let names: Vec<bool> = names.collect();
    let mut is_before = false;
    for (place, name) in by_kernel.iter_mut().zip(trace.kernels.name.iter()) {
        let changes_weights = place.is_none() && names.get(name.0 as usize) == Some(&true);
        if changes_weights {
            *place = optimizer;
            runs.extend(optimizer.filter(|_| !is_before));
        }
        is_before = changes_weights;
    }
    Found { by_kernel, runs }
}

fn phase(pass: &Pass, next: Option<&Pass>) -> Option<Phase> {
    if pass.is_backward {
        return Some(Phase::Backward);
    }
    let next = next.filter(|next| (next.device, next.stream) == (pass.device, pass.stream))?;
    let are_alike = next.is_backward && next.layers.len() == pass.layers.len();
    are_alike.then_some(Phase::Forward)
}
