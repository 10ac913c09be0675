//! How often a recording of training changes the weights, and by which optimizer.
//!
//! The gradients of several passes may be added up before the optimizer runs. A step is one pass, and
//! then has only a part of the optimizer's time. Without marks, operators over lists of tensors that
//! only optimizers call show it.

use std::collections::BTreeSet;

use super::basis::Steps;
use super::result::Basis;
use super::side::Chosen;
use crate::segment::Phase;
use crate::shapes::base;

/// A pass has one run of the optimizer at most; recordings may cut a pass.
const MOST_UPDATES: f64 = 1.5;

/// Operators that only optimizers call.
const OF_OPTIMIZERS: [&str; 8] = [
    "_fused_adam_",
    "_fused_adamw_",
    "_fused_sgd_",
    "_fused_adagrad_",
    "_foreach_add_",
    "_foreach_addcdiv_",
    "_foreach_addcmul_",
    "_foreach_lerp_",
];

/// The optimizer's runs of a side, each behind a backward pass, and the durations of its kernels.
#[derive(Debug, Clone, Default)]
struct Updates {
    count: f64,
    total_ns: f64,
    /// The operators that only optimizers call, of those that launched something.
    operators: BTreeSet<String>,
}

impl Updates {
    fn of(side: &Chosen<'_>) -> Self {
        let trace = side.side.trace;
        let kernels = &trace.kernels;
        let mut updates = Self::default();
        let is_update: Vec<bool> =
            trace.names.iter().map(|(_, name)| OF_OPTIMIZERS.contains(&base(name))).collect();
        let mut parts: Vec<(i64, Phase, u64)> = Vec::new();
        for row in side.rows.iter().map(|row| *row as usize) {
            let name = side.operator(row).and_then(|op| trace.ops.name.get(op));
            let name = name.filter(|name| is_update.get(name.0 as usize) == Some(&true));
            let phase = side.phase(row);
            if let Some(name) = name.filter(|_| phase.is_none_or(|phase| phase == Phase::Optimizer))
            {
                let name = base(trace.names.text(*name));
                if !updates.operators.contains(name) {
                    updates.operators.insert(name.to_owned());
                }
            }
            if let Some(phase) = phase.or(name.map(|_| Phase::Optimizer)) {
                parts.push((kernels.start_ns[row], phase, kernels.duration_ns[row]));
            }
        }
        parts.sort_unstable_by_key(|(start_ns, ..)| *start_ns);
        let mut before = None;
        for (_, phase, duration_ns) in parts {
            if phase == Phase::Optimizer {
                #[expect(clippy::cast_precision_loss, reason = "a duration")]
                let ns = duration_ns as f64;
                updates.total_ns += ns;
                // Gradients may also be set to zero elsewhere.
                updates.count += f64::from(u8::from(before == Some(Phase::Backward)));
            }
            before = Some(phase);
        }
        updates
    }
}

/// What the runs of both sides' optimizers show, where they make more of a difference than a share
/// of a step's time.
#[derive(Debug, PartialEq)]
pub(super) enum Difference {
    /// The passes for a run of the optimizer.
    Passes([f64; 2]),
    /// Their names.
    Optimizers([String; 2]),
    /// Only one side has an optimizer that shows, or they have no names and other operators.
    Unknown,
}

/// How the sides differ in what changes the weights, if anything shows that they do.
pub(super) fn difference(
    sides: &[Chosen<'_>; 2],
    steps: &Steps,
    step_ns: [f64; 2],
    share: f64,
) -> Option<Difference> {
    if steps.basis == Basis::Recording {
        return None;
    }
    let updates = sides.each_ref().map(Updates::of);
    let of_step = [0, 1].map(|side| updates[side].total_ns / steps.counts[side]);
    let is_long = |side: usize| of_step[side] > share * step_ns[side];
    if !is_long(0) && !is_long(1) {
        return None;
    }
    different_passes(&updates, steps, step_ns, share)
        .map(Difference::Passes)
        .or_else(|| different_optimizers(sides, &updates))
}

fn different_optimizers(sides: &[Chosen<'_>; 2], updates: &[Updates; 2]) -> Option<Difference> {
    let marked = sides.each_ref().map(marked);
    if marked.iter().all(|names| !names.is_empty()) {
        let names = marked.map(|names| names.into_iter().collect::<Vec<_>>().join(", "));
        return (names[0] != names[1]).then_some(Difference::Optimizers(names));
    }
    if marked[0] == marked[1] && updates[0].operators == updates[1].operators {
        return None;
    }
    let fused = updates.each_ref().map(|one| {
        let fused = one.operators.iter().filter(|name| name.starts_with("_fused_"));
        fused.cloned().collect::<Vec<_>>().join(", ")
    });
    if fused.iter().all(|names| !names.is_empty()) {
        return (fused[0] != fused[1]).then_some(Difference::Optimizers(fused));
    }
    Some(Difference::Unknown)
}

/// The names of the optimizers whose calls are marked.
fn marked(side: &Chosen<'_>) -> BTreeSet<String> {
    let trace = side.side.trace;
    let calls = trace.annotations.name.iter().chain(trace.ops.name.iter());
    let names: BTreeSet<_> = calls.copied().collect();
    let names = names.into_iter().filter_map(|name| {
        let call = trace.names.text(name).strip_prefix("Optimizer.step#")?;
        Some(call.split('.').next().unwrap_or(call).to_owned())
    });
    names.collect()
}

/// How many passes each side has for a run of the optimizer, if that makes more of a difference than
/// a share of a step's time.
fn different_passes(
    updates: &[Updates; 2],
    steps: &Steps,
    step_ns: [f64; 2],
    share: f64,
) -> Option<[f64; 2]> {
    if steps.basis != Basis::Layers || updates.iter().any(|one| one.count == 0.0) {
        return None;
    }
    let of_pass = [0, 1].map(|side| updates[side].count / steps.counts[side]);
    // One that changes weights inside of the backward pass runs many times in it.
    if of_pass.iter().any(|updates| *updates > MOST_UPDATES) {
        return None;
    }
    let difference = (of_pass[0] - of_pass[1]).abs();
    let matters = |side: usize| {
        let run_ns = updates[side].total_ns / updates[side].count;
        run_ns * difference > share * step_ns[side]
    };
    (matters(0) || matters(1)).then(|| of_pass.map(|updates| 1.0 / updates))
}
