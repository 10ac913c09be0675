//! What an interval over a few processes never claims to know.

use super::FusionRecord;

/// The share of processes that have the rare effect behind [`FusionRecord::RESOLUTION`].
const RARE: f64 = 0.1;

/// The chance that none of the processes of an interval is one of those that have a rare effect.
const MISSED: f64 = 0.05;

impl FusionRecord {
    /// What an interval of some tens of processes never claims to resolve, in the logarithm: 1 %. A
    /// rare effect that none of ten processes met moves the truth by about this much (10 % in a tenth
    /// of all processes), and no number of samples in those ten shows it.
    pub const RESOLUTION: f64 = 0.009_950_330_853_168_083;

    /// How far the speedups of the processes of a problem lie apart, as a standard deviation in the
    /// logarithm: the root mean square of 95 problems in three standard runs on a virtual machine was
    /// 3.6 to 3.9 %. One process or two do not show it, and an interval over their rounds has to be
    /// wider by it.
    pub const BETWEEN_PROCESSES: f64 = 0.04;

    /// What an interval over some processes does not resolve: the effect behind
    /// [`RESOLUTION`](Self::RESOLUTION) in the largest share of processes, a tenth at most, that this
    /// many miss once in twenty times.
    #[must_use]
    pub fn resolution(processes: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count of processes")]
        let missed = 1.0 - MISSED.powf(1.0 / processes as f64);
        Self::RESOLUTION * (missed / RARE).min(1.0)
    }
}
