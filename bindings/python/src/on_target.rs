//! The questions that a partitioner asks, on one target.

use std::sync::Arc;

use fusion_cost_model as fcm;
use pyo3::prelude::*;

use crate::answer::{Decision, Estimate};
use crate::coverage::Coverage;
use crate::errors::raise;
use crate::partition::{GraphNode, Partition};
use crate::policy::Policy;
use crate::problem::Problem;
use crate::target::Target;

/// What a model knows about one target.
#[pyclass(frozen, module = "fusion_cost_model")]
pub(crate) struct OnTarget {
    model: Arc<fcm::FusionCostModel>,
    target: fcm::Target,
    state: Option<u32>,
}

impl OnTarget {
    pub(crate) fn new(
        model: Arc<fcm::FusionCostModel>,
        target: fcm::Target,
        state: Option<u32>,
    ) -> Result<Self, fcm::Error> {
        state.map(|state| model.on(target).in_state(state)).transpose()?;
        Ok(Self { model, target, state })
    }

    fn view(&self) -> fcm::OnTarget<'_> {
        let on = self.model.on(self.target);
        // A state that is bound is one that the calibration has.
        self.state.and_then(|state| on.in_state(state).ok()).unwrap_or(on)
    }
}

#[pymethods]
impl OnTarget {
    #[getter]
    fn target(&self) -> Target {
        Target(self.target)
    }

    #[getter]
    fn state(&self) -> Option<u32> {
        self.state
    }

    fn estimate(&self, problem: &Problem) -> Estimate {
        Estimate::from(&self.view().estimate(&problem.0))
    }

    fn decide(&self, problem: &Problem, policy: &Policy) -> PyResult<Decision> {
        let decision = self.view().decide(&problem.0, &policy.0).map_err(raise)?;
        Ok(Decision::from(&decision))
    }

    fn should_fuse(&self, first: &Problem, second: &Problem, policy: &Policy) -> PyResult<bool> {
        self.view().should_fuse(&first.0, &second.0, &policy.0).map_err(raise)
    }

    fn partition(&self, py: Python<'_>, problem: &Problem, policy: &Policy) -> PyResult<Partition> {
        let (problem, policy) = (problem.0, policy.0);
        let best = py
            .detach(|| self.view().partition(&problem, &policy).map(|best| Partition::from(&best)));
        best.map_err(raise)
    }

    fn partition_graph(
        &self,
        py: Python<'_>,
        nodes: Vec<PyRef<'_, GraphNode>>,
        policy: &Policy,
    ) -> PyResult<Partition> {
        let nodes: Vec<fcm::GraphNode> = nodes.iter().map(|node| node.0.clone()).collect();
        let policy = policy.0;
        let best = py.detach(|| {
            self.view().partition_graph(&nodes, &policy).map(|best| Partition::from(&best))
        });
        best.map_err(raise)
    }

    fn coverage(
        &self,
        py: Python<'_>,
        problems: Vec<PyRef<'_, Problem>>,
        policy: &Policy,
    ) -> Coverage {
        let problems: Vec<fcm::Problem> = problems.iter().map(|problem| problem.0).collect();
        let policy = policy.0;
        py.detach(|| Coverage::from(&self.view().coverage(&problems, &policy)))
    }

    fn __repr__(&self) -> String {
        let state = self.state.map_or_else(String::new, |state| format!(" in state {state}"));
        format!("<OnTarget {}{state}>", self.target)
    }
}
