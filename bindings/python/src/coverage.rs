//! What is known of the problems of a model, and what to measure next.

use fusion_cost_model as fcm;
use pyo3::prelude::*;

use crate::answer::Estimate;
use crate::problem::Problem;

/// What is known of one problem.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Covered {
    problem: Problem,
    count: u32,
    estimate: Estimate,
    expected_regret_ms: Option<f64>,
    is_safe: bool,
}

impl From<&fcm::Covered<'_>> for Covered {
    fn from(covered: &fcm::Covered<'_>) -> Self {
        Self {
            problem: Problem(covered.problem),
            count: covered.count,
            estimate: Estimate::from(&covered.estimate),
            expected_regret_ms: covered.expected_regret_ms,
            is_safe: covered.is_safe,
        }
    }
}

#[pymethods]
impl Covered {
    fn __repr__(&self) -> String {
        let is_safe = if self.is_safe { "True" } else { "False" };
        format!("<Covered {} is_safe={is_safe} {}>", self.problem.0, self.estimate.__repr__())
    }
}

/// A problem to measure.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct NextPoint {
    problem: Problem,
    lowers_regret_by_ms: f64,
}

impl From<&fcm::NextPoint> for NextPoint {
    fn from(point: &fcm::NextPoint) -> Self {
        let fcm::NextPoint { problem, lowers_regret_by_ms, .. } = *point;
        Self { problem: Problem(problem), lowers_regret_by_ms }
    }
}

#[pymethods]
impl NextPoint {
    fn __repr__(&self) -> String {
        let lowers = self.lowers_regret_by_ms;
        format!("<NextPoint {} lowers_regret_by_ms={lowers:?}>", self.problem.0)
    }
}

/// What is known of some problems, and what to measure next.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Coverage {
    questions: Vec<Covered>,
    to_measure: Vec<NextPoint>,
    known: usize,
    decisions: usize,
    safe_decisions: usize,
    expected_regret_ms: f64,
}

impl From<&fcm::Coverage<'_>> for Coverage {
    fn from(coverage: &fcm::Coverage<'_>) -> Self {
        Self {
            questions: coverage.questions.iter().map(Covered::from).collect(),
            to_measure: coverage.to_measure.iter().map(NextPoint::from).collect(),
            known: coverage.known(),
            decisions: coverage.decisions(),
            safe_decisions: coverage.safe_decisions(),
            expected_regret_ms: coverage.expected_regret_ms(),
        }
    }
}

#[pymethods]
impl Coverage {
    fn __repr__(&self) -> String {
        format!(
            "<Coverage of {} problems: {} of {} decisions safe, {} to measure>",
            self.questions.len(),
            self.safe_decisions,
            self.decisions,
            self.to_measure.len()
        )
    }
}
