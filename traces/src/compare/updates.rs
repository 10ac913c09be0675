//! How often a recording of training changes the weights.
//!
//! The gradients of several passes may be added up before the optimizer runs. A step is one pass, and
//! then has only a part of the optimizer's time.

use super::basis::Steps;
use super::result::Basis;
use super::side::Chosen;
use crate::segment::Phase;

/// A pass has one run of the optimizer at most; recordings may cut a pass.
const MOST_UPDATES: f64 = 1.5;

/// The optimizer's runs of a side, each behind a backward pass, and the durations of its kernels.
#[derive(Debug, Clone, Copy)]
struct Updates {
    count: f64,
    total_ns: f64,
}

impl Updates {
    fn of(side: &Chosen<'_>) -> Self {
        let kernels = &side.side.trace.kernels;
        let parts = side.rows.iter().filter_map(|row| {
            let row = *row as usize;
            Some((*kernels.start_ns.get(row)?, side.phase(row)?, *kernels.duration_ns.get(row)?))
        });
        let mut parts: Vec<(i64, Phase, u64)> = parts.collect();
        parts.sort_unstable_by_key(|(start_ns, ..)| *start_ns);
        let mut updates = Self { count: 0.0, total_ns: 0.0 };
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

/// How many passes each side has for a run of the optimizer, if that makes more of a difference than
/// a share of a step's time.
pub(super) fn different_passes(
    sides: &[Chosen<'_>; 2],
    steps: &Steps,
    step_ns: [f64; 2],
    share: f64,
) -> Option<[f64; 2]> {
    if steps.basis != Basis::Layers {
        return None;
    }
    let updates = sides.each_ref().map(Updates::of);
    if updates.iter().any(|one| one.count == 0.0) {
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
