//! The machine around a measurement.

use fused_kernels::MachineReading;
use serde::{Deserialize, Serialize};

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
}
