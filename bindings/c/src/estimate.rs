//! What is known about a problem.

use fusion_cost_model as fcm;

use crate::constants::{EVIDENCE, Evidence, number};
use crate::error::Error;

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Interval {
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    pub(crate) fn of(known: Option<fcm::Interval>) -> Self {
        let of = |fcm::Interval { value, low, high, .. }| Self { value, low, high };
        known.map_or(Self { value: f64::NAN, low: f64::NAN, high: f64::NAN }, of)
    }
}

/// What is known about a problem on a target.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Estimate {
    /// Where the answer comes from. NaN is in all intervals where it is `FCM_EVIDENCE_UNKNOWN`.
    pub evidence: Evidence,
    /// How many records `fcm_on_target_nearest` gives.
    pub num_nearest: u32,
    /// The time of the unfused kernels together.
    pub unfused_ms: Interval,
    /// The time of the fused kernel.
    pub fused_ms: Interval,
    /// Unfused time over fused time.
    pub speedup: Interval,
    /// How far beyond the measured sizes the problem lies, in octaves of the size that is farthest away;
    /// 0 unless `evidence` is `FCM_EVIDENCE_EXTRAPOLATED`.
    pub octaves_beyond: f64,
}

impl Estimate {
    pub(crate) fn of(estimate: &fcm::Estimate<'_>) -> Result<Self, Error> {
        Ok(Self {
            evidence: number(EVIDENCE, estimate.evidence())?,
            num_nearest: estimate.nearest().map(|_| 1).sum(),
            unfused_ms: Interval::of(estimate.unfused_ms()),
            fused_ms: Interval::of(estimate.fused_ms()),
            speedup: Interval::of(estimate.speedup()),
            octaves_beyond: estimate.octaves_beyond(),
        })
    }
}
