//! The machine around a measurement.

use fused_kernels::MachineReading;
use fusion_cost_model::calibration::FusionRecord;
use serde::{Deserialize, Serialize};

/// States whose hand-off times differ by less than this factor are one.
pub(super) const LEAST_HANDOFF_RATIO: f64 = 1.5;

/// States whose triads differ by less than this factor are one.
pub(super) const LEAST_TRIAD_RATIO: f64 = 1.25;

/// What the machine was like while a process measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Surroundings {
    /// When the samples began, in seconds since 1970.
    pub began_s: f64,
    /// A look at the machine before the samples and one after them.
    pub readings: [Option<MachineReading>; 2],
    /// How many processors other programs kept busy meanwhile, in the mean; `None` where the system
    /// does not report it.
    pub others_busy: Option<f64>,
}

impl Surroundings {
    /// What the machine was like in the middle: between the look before the samples and the one after
    /// them; `None` unless there are both.
    #[must_use]
    pub fn reading(&self) -> Option<MachineReading> {
        let [before, after] = self.readings;
        let (before, after) = (before?, after?);
        let between = |one: f64, other: f64| (one * other).sqrt();
        let handoff = before.handoff_us.zip(after.handoff_us);
        Some(MachineReading {
            handoff_us: handoff.map(|(one, other)| between(one, other)),
            triad_gb_per_s: between(before.triad_gb_per_s, after.triad_gb_per_s),
        })
    }

    /// Whether this shows a state that the machine is in by itself: other programs used little of it,
    /// and the look after the samples saw what the one before them did.
    #[must_use]
    pub fn is_undisturbed(&self) -> bool {
        let [Some(before), Some(after)] = self.readings else { return false };
        let handoffs = before.handoff_us.zip(after.handoff_us);
        self.others_busy.is_none_or(|busy| busy <= FusionRecord::MOST_OTHERS_BUSY)
            && is_one_state(before.triad_gb_per_s, after.triad_gb_per_s, LEAST_TRIAD_RATIO)
            && handoffs.is_none_or(|(one, other)| is_one_state(one, other, LEAST_HANDOFF_RATIO))
    }
}

fn is_one_state(one: f64, other: f64, least_ratio: f64) -> bool {
    (one / other).ln().abs() < least_ratio.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_or_a_changing_machine_shows_no_state() {
        let looks = |handoffs: [f64; 2], triads: [f64; 2], others_busy| Surroundings {
            began_s: 1.0,
            readings: [0, 1].map(|at| {
                let handoff_us = Some(handoffs[at]);
                Some(MachineReading { handoff_us, triad_gb_per_s: triads[at] })
            }),
            others_busy,
        };
        let quiet = looks([0.11, 0.12], [57.0, 52.0], Some(0.1));
        assert!(quiet.is_undisturbed());
        assert!(Surroundings { others_busy: None, ..quiet }.is_undisturbed());
        assert!(!Surroundings { others_busy: Some(0.5), ..quiet }.is_undisturbed());
        // Between 12 and 0.55 GB/s lies 2.6, which no machine ever gave.
        assert!(!looks([0.11, 0.12], [12.0, 0.55], Some(0.0)).is_undisturbed());
        assert!(!looks([0.11, 0.57], [57.0, 57.0], Some(0.0)).is_undisturbed());
        assert!(!Surroundings::default().is_undisturbed());
    }
}
