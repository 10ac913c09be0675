//! How a caller wants to decide.

use fusion_cost_model as fcm;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::by_name;

const WHEN_UNKNOWN: &[(&str, fcm::WhenUnknown)] = &[
    ("conservative", fcm::WhenUnknown::Conservative),
    ("optimistic", fcm::WhenUnknown::Optimistic),
    ("roofline", fcm::WhenUnknown::Roofline),
    ("error", fcm::WhenUnknown::Error),
];

// Python shows the default of an argument only where it is a literal.
const _: () = assert!(fcm::Policy::THRESHOLD == 1.0);

/// How to decide: a threshold, and what to assume when nothing is known.
#[pyclass(frozen, eq, module = "fusion_cost_model")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Policy(pub(crate) fcm::Policy);

#[pymethods]
impl Policy {
    #[new]
    #[pyo3(signature = (when_unknown, *, threshold=1.0))]
    fn new(when_unknown: &str, threshold: f64) -> PyResult<Self> {
        let when_unknown = by_name("choice of when_unknown", when_unknown, WHEN_UNKNOWN)?;
        if threshold.is_nan() {
            return Err(PyValueError::new_err("threshold is NaN; use a speedup, such as 1.0"));
        }
        Ok(Self(fcm::Policy::new(when_unknown).with_threshold(threshold)))
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.0.threshold
    }

    #[getter]
    fn when_unknown(&self) -> &'static str {
        let found = WHEN_UNKNOWN.iter().find(|(_, known)| *known == self.0.when_unknown);
        found.map_or("", |(name, _)| name)
    }

    fn __repr__(&self) -> String {
        format!("Policy({:?}, threshold={:?})", self.when_unknown(), self.0.threshold)
    }
}
