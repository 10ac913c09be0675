//! Kernels that were measured against themselves.

use serde::{Deserialize, Serialize};

use crate::vocabulary::{Backend, Clock, Implementation, Problem};

/// An A/A run: the unfused variant measured against itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseFloor {
    /// What ran.
    pub problem: Problem,
    /// Where.
    pub backend: Backend,
    /// On how many threads.
    pub threads: u32,
    /// What its times begin and end with; absent for the host's clock.
    #[serde(default, skip_serializing_if = "Clock::is_host")]
    pub clock: Clock,
    /// Whose kernels ran; absent for the project's own.
    #[serde(default, skip_serializing_if = "Implementation::is_native")]
    pub implementation: Implementation,
    /// Whether the second side was prepared by itself, with tensors of its own: as hard as a
    /// comparison of two variants. Absent where both sides share their tensors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_tensors: bool,
    /// The ratio that was measured; the truth is 1.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub ratio_low: f64,
    /// Upper end of its 95 % interval.
    pub ratio_high: f64,
    /// The standard error of the ratio's logarithm. What the interval adds to it for what processes
    /// cannot resolve is not in it.
    pub standard_error: f64,
    /// Fresh processes that it was measured in.
    pub processes: u32,
    /// Whether most of its pairs were disturbed, so that it says nothing of the machine at rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disturbed: bool,
}

impl NoiseFloor {
    /// An A/A run is off, and not just noisy, when it is further from 1 than this, as a ratio minus 1,
    /// plus twice the half-width of its interval. Once would call every twentieth run on a noisy machine
    /// off, and with it all that was measured.
    pub const MOST_ERROR: f64 = 0.01;
}
