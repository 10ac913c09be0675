//! Graphs, and the best splits of them into kernels.

use fusion_cost_model as fcm;
use pyo3::prelude::*;

use crate::answer::{Estimate, Interval, shown};
use crate::problem::Problem;

/// Ops that follow each other, and what they read of other nodes.
#[pyclass(frozen, eq, module = "fusion_cost_model")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct GraphNode(pub(crate) fcm::GraphNode);

#[pymethods]
impl GraphNode {
    #[new]
    #[pyo3(signature = (problem, *, input=None, operands=Vec::new(), is_output=false))]
    fn new(problem: &Problem, input: Option<usize>, operands: Vec<usize>, is_output: bool) -> Self {
        let mut node = fcm::GraphNode::new(problem.0).with_operands(operands);
        node.input = input;
        node.is_output = is_output;
        Self(node)
    }

    #[getter]
    fn problem(&self) -> Problem {
        Problem(self.0.problem)
    }

    #[getter]
    fn input(&self) -> Option<usize> {
        self.0.input
    }

    #[getter]
    fn operands(&self) -> Vec<usize> {
        self.0.operands.clone()
    }

    #[getter]
    fn is_output(&self) -> bool {
        self.0.is_output
    }

    fn __repr__(&self) -> String {
        let fcm::GraphNode { problem, input, operands, is_output, .. } = &self.0;
        let input = input.map_or_else(|| "None".to_owned(), |input| input.to_string());
        let is_output = if *is_output { "True" } else { "False" };
        format!(
            "GraphNode(Problem(\"{problem}\"), input={input}, operands={operands:?}, \
             is_output={is_output})"
        )
    }
}

/// Some of a node's ops: from `begin` to before `end`.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeOps {
    node: usize,
    begin: usize,
    end: usize,
}

#[pymethods]
impl NodeOps {
    fn __repr__(&self) -> String {
        format!("NodeOps(node={}, begin={}, end={})", self.node, self.begin, self.end)
    }
}

fn parts(parts: &[fcm::NodeOps]) -> Vec<NodeOps> {
    let of =
        |part: &fcm::NodeOps| NodeOps { node: part.node, begin: part.ops.start, end: part.ops.end };
    parts.iter().map(of).collect()
}

/// Ops in one kernel, and what that costs.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Segment {
    parts: Vec<NodeOps>,
    problem: Option<Problem>,
    estimate: Estimate,
    saved_ms: Interval,
    saved_by_next_ms: Option<Interval>,
}

impl From<&fcm::Segment<'_>> for Segment {
    fn from(segment: &fcm::Segment<'_>) -> Self {
        Self {
            parts: parts(&segment.parts),
            problem: segment.problem.map(Problem),
            estimate: Estimate::from(&segment.estimate),
            saved_ms: segment.saved_ms.into(),
            saved_by_next_ms: segment.saved_by_next_ms.map(Interval::from),
        }
    }
}

#[pymethods]
impl Segment {
    fn __repr__(&self) -> String {
        let what = match &self.problem {
            Some(problem) => problem.0.to_string(),
            None => self.parts.iter().map(NodeOps::__repr__).collect::<Vec<_>>().join(", "),
        };
        format!("<Segment {what} saved_ms={}>", shown(Some(&self.saved_ms)))
    }
}

/// Another split, and how much longer it takes.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Alternative {
    segments: Vec<Vec<NodeOps>>,
    slower_by_ms: Interval,
    peak_bytes: u64,
}

impl From<&fcm::Alternative> for Alternative {
    fn from(alternative: &fcm::Alternative) -> Self {
        Self {
            segments: alternative.segments.iter().map(|segment| parts(segment)).collect(),
            slower_by_ms: alternative.slower_by_ms.into(),
            peak_bytes: alternative.peak_bytes,
        }
    }
}

#[pymethods]
impl Alternative {
    fn __repr__(&self) -> String {
        let slower = shown(Some(&self.slower_by_ms));
        format!("<Alternative of {} kernels slower_by_ms={slower}>", self.segments.len())
    }
}

/// The best split into kernels.
#[pyclass(frozen, eq, get_all, module = "fusion_cost_model")]
#[derive(Clone, PartialEq)]
pub(crate) struct Partition {
    segments: Vec<Segment>,
    total_ms: Option<Interval>,
    saved_ms: Interval,
    peak_bytes: u64,
    runner_up: Option<Alternative>,
    never: Alternative,
    always: Alternative,
}

impl From<&fcm::Partition<'_>> for Partition {
    fn from(best: &fcm::Partition<'_>) -> Self {
        Self {
            segments: best.segments.iter().map(Segment::from).collect(),
            total_ms: best.total_ms.map(Interval::from),
            saved_ms: best.saved_ms.into(),
            peak_bytes: best.peak_bytes,
            runner_up: best.runner_up.as_ref().map(Alternative::from),
            never: Alternative::from(&best.never),
            always: Alternative::from(&best.always),
        }
    }
}

#[pymethods]
impl Partition {
    fn __repr__(&self) -> String {
        let saved = shown(Some(&self.saved_ms));
        format!("<Partition into {} kernels saved_ms={saved}>", self.segments.len())
    }
}
