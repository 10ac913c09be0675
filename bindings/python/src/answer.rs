//! What the cost model answers.

use fusion_cost_model as fcm;
use pyo3::prelude::*;

use crate::problem::Problem;

/// A value with its 95 % interval.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    value: f64,
    low: f64,
    high: f64,
}

impl From<fcm::Interval> for Interval {
    fn from(interval: fcm::Interval) -> Self {
        let fcm::Interval { value, low, high, .. } = interval;
        Self { value, low, high }
    }
}

#[pymethods]
impl Interval {
    fn __repr__(&self) -> String {
        format!("Interval(value={:?}, low={:?}, high={:?})", self.value, self.low, self.high)
    }
}

/// An interval in the text of another object.
pub(crate) fn shown(interval: Option<&Interval>) -> String {
    interval.map_or_else(|| "None".to_owned(), Interval::__repr__)
}

/// What is known about a problem on a target.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Estimate {
    evidence: &'static str,
    unfused_ms: Option<Interval>,
    fused_ms: Option<Interval>,
    speedup: Option<Interval>,
    octaves_beyond: f64,
    nearest: Vec<Problem>,
}

impl From<&fcm::Estimate<'_>> for Estimate {
    fn from(estimate: &fcm::Estimate<'_>) -> Self {
        Self {
            evidence: estimate.evidence().name(),
            unfused_ms: estimate.unfused_ms().map(Interval::from),
            fused_ms: estimate.fused_ms().map(Interval::from),
            speedup: estimate.speedup().map(Interval::from),
            octaves_beyond: estimate.octaves_beyond(),
            nearest: estimate.nearest().map(|record| Problem(record.problem)).collect(),
        }
    }
}

#[pymethods]
impl Estimate {
    pub(crate) fn __repr__(&self) -> String {
        let speedup = shown(self.speedup.as_ref());
        format!("<Estimate evidence={:?} speedup={speedup}>", self.evidence)
    }
}

/// Whether to fuse, and what that rests on.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Decision {
    should_fuse: bool,
    reason: &'static str,
    estimate: Estimate,
}

impl From<&fcm::Decision<'_>> for Decision {
    fn from(decision: &fcm::Decision<'_>) -> Self {
        let reason = match decision {
            fcm::Decision::Fuse(_) => "faster",
            fcm::Decision::Keep(_) => "slower",
            fcm::Decision::TooClose { .. } => "too close",
            _ => "unknown",
        };
        let estimate = Estimate::from(&decision.estimate());
        Self { should_fuse: decision.should_fuse(), reason, estimate }
    }
}

#[pymethods]
impl Decision {
    fn __repr__(&self) -> String {
        let should_fuse = if self.should_fuse { "True" } else { "False" };
        let estimate = self.estimate.__repr__();
        format!("<Decision should_fuse={should_fuse} reason={:?} {estimate}>", self.reason)
    }
}
