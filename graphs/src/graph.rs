//! The graph: nodes in an order in which they can run, and the tensors between them.

use crate::attribute::Attributes;
use crate::tensor::{Tensor, TensorId};

/// A neural network as its file has it: nodes, tensors and what is declared of them.
///
/// Read one with [`Graph::load`], and ask for its [`segments`](Graph::segments).
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// In an order in which they can run.
    pub(crate) nodes: Vec<Node>,
    pub(crate) tensors: Vec<Tensor>,
    /// Tensors that every run is given.
    pub(crate) inputs: Vec<TensorId>,
    pub(crate) outputs: Vec<TensorId>,
    /// The version of ONNX's operators.
    pub(crate) opset: u64,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// May be empty.
    pub(crate) name: String,
    /// The operator's name, after its domain where that is not ONNX's own.
    pub(crate) op: String,
    pub(crate) origin: Origin,
    /// `None` where an optional input is left out.
    pub(crate) inputs: Vec<Option<TensorId>>,
    /// What the bodies of a loop or branch read from around them.
    pub(crate) captured: Vec<TensorId>,
    pub(crate) outputs: Vec<Option<TensorId>>,
    pub(crate) attributes: Attributes,
}

/// Who defines what an operator means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// ONNX, or the contributed operators of ONNX Runtime.
    Known,
    /// Somebody else.
    Custom,
    /// A function in the model itself.
    LocalFunction,
}

impl Node {
    /// Whether this is a certain operator, as ONNX defines it.
    pub(crate) fn is(&self, op: &str) -> bool {
        self.origin == Origin::Known && self.op == op
    }

    /// Whether this is one of several operators.
    pub(crate) fn is_any(&self, ops: &[&str]) -> bool {
        self.origin == Origin::Known && ops.contains(&self.op.as_str())
    }

    /// An input, if it is given.
    pub(crate) fn input(&self, index: usize) -> Option<TensorId> {
        self.inputs.get(index).copied().flatten()
    }

    /// The first output.
    pub(crate) fn output(&self) -> Option<TensorId> {
        self.outputs.first().copied().flatten()
    }

    /// Everything that the node reads.
    pub(crate) fn reads(&self) -> impl Iterator<Item = TensorId> {
        self.inputs.iter().flatten().chain(&self.captured).copied()
    }
}

impl Graph {
    pub(crate) fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// How many nodes there are.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The names of the inputs, without constants.
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(|&id| self.tensor(id).name.as_str())
    }

    /// How a node is called in messages.
    pub(crate) fn label(&self, node: &Node) -> String {
        match (node.name.as_str(), node.output()) {
            ("", Some(output)) => {
                format!("the {} that writes `{}`", node.op, self.tensor(output).name)
            }
            ("", None) => format!("a {}", node.op),
            (name, _) => format!("`{name}` ({})", node.op),
        }
    }
}
