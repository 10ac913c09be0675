//! Times in logarithms, with what is known of them.

use crate::calibration::Timing;

/// Records that an answer names.
pub(super) const NEAREST: usize = 3;

/// A value and its standard deviation.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Uncertain {
    pub(super) value: f64,
    pub(super) sd: f64,
}

impl Uncertain {
    /// A logarithm that is 0 for certain.
    pub(super) const NOTHING: Self = Self { value: 0.0, sd: 0.0 };
}

/// The logarithms of a fused time in milliseconds and of a speedup, and what they rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Prediction {
    pub(super) ln_fused: Uncertain,
    pub(super) ln_speedup: Uncertain,
    /// How far beyond the measured range.
    pub(super) octaves: f64,
    /// The nearest records, by index.
    pub(super) nearest: [Option<usize>; NEAREST],
}

/// A size that exceeds the measured range by less, 7 %, does not lie outside of it.
pub(super) const SLACK_OCTAVES: f64 = 0.1;

impl Prediction {
    /// Whether it lies within the measured range.
    pub(super) fn is_within(&self) -> bool {
        self.octaves <= SLACK_OCTAVES
    }
}

/// The standard deviation of a logarithm, from the ends of its value's 95 % interval.
pub(super) fn sd_of_interval(low: f64, high: f64) -> f64 {
    /// Standard deviations of a normal distribution in a 95 % interval.
    const IN_AN_INTERVAL: f64 = 2.0 * 1.96;
    (high / low).ln() / IN_AN_INTERVAL
}

/// That of a time, where it has an interval.
pub(super) fn sd_of_time(timing: &Timing) -> Option<f64> {
    let (low, high) = (timing.low_ms?, timing.high_ms?);
    (0.0 < low && low <= high).then(|| sd_of_interval(low, high))
}
