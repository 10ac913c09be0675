//! How a rule walks from a node to those before it.

use super::flow::Flow;
use crate::graph::Node;
use crate::tensor::TensorId;

/// Nodes that a rule has collected, and those that earlier rules took.
#[derive(Debug)]
pub(crate) struct Links<'f, 'a> {
    pub(crate) flow: &'f Flow<'a>,
    /// By node, whether a rule took it.
    taken: &'f [bool],
    pub(crate) nodes: Vec<usize>,
}

impl<'f, 'a> Links<'f, 'a> {
    /// A walk that begins at the last node of what a rule looks for.
    pub(crate) fn from(flow: &'f Flow<'a>, taken: &'f [bool], last: usize) -> Self {
        Self { flow, taken, nodes: vec![last] }
    }

    /// The node that writes a tensor, if it is one of these operators and no rule took it.
    pub(crate) fn peek(&self, id: TensorId, ops: &[&str]) -> Option<(usize, &'a Node)> {
        let index = self.flow.writer(id).filter(|&index| !self.taken[index])?;
        let node = self.flow.node(index);
        (node.is_any(ops) && node.output().is_some_and(|output| self.flow.is_same(output, id)))
            .then_some((index, node))
    }

    /// The same, and collects it.
    pub(crate) fn step(&mut self, id: TensorId, ops: &[&str]) -> Option<&'a Node> {
        let (index, node) = self.peek(id, ops)?;
        if !self.nodes.contains(&index) {
            self.nodes.push(index);
        }
        Some(node)
    }

    /// Collects a node behind those that are there, unless a rule took it.
    pub(crate) fn follow(&mut self, index: usize) -> Option<&'a Node> {
        if self.taken[index] {
            return None;
        }
        self.nodes.push(index);
        Some(self.flow.node(index))
    }

    /// What a Cast reads if it writes the tensor, and else the tensor itself. Models in half
    /// precision compute norms in single precision.
    pub(crate) fn uncast(&mut self, id: TensorId) -> TensorId {
        self.step(id, &["Cast"]).and_then(|cast| cast.input(0)).unwrap_or(id)
    }

    /// The operands of a node with two of them, the one with a single element last.
    pub(crate) fn with_number(&self, node: &Node) -> Option<(TensorId, f64)> {
        let (a, b) = (node.input(0)?, node.input(1)?);
        match (self.flow.number(a), self.flow.number(b)) {
            (_, Some(number)) => Some((a, number)),
            // A number divided by a tensor is something else.
            (Some(number), None) if !node.is_any(&["Div", "Pow", "Sub"]) => Some((b, number)),
            _ => None,
        }
    }

    /// Whether nobody else reads what the nodes before the first collected one write.
    pub(crate) fn is_closed(&self) -> bool {
        self.nodes.iter().skip(1).all(|&node| {
            let written = self.flow.node(node).outputs.iter().flatten();
            written.into_iter().all(|&id| self.flow.is_read_only_by(id, &self.nodes))
        })
    }
}

/// Whether a number in a model is a constant of a formula, at the precision of half floats.
pub(crate) fn is_near(number: f64, expected: f64) -> bool {
    (number - expected).abs() <= 0.005 * expected.abs()
}
