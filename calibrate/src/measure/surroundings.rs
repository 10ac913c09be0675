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
