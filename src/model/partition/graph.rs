//! A graph of chains, op by op.

use std::ops::Range;

use super::memory::activations;
use crate::error::{Error, ErrorKind};
use crate::vocabulary::{Op, Pointwise, Problem, Step};

/// A node of a graph that is to be split into kernels: ops that follow each other, and what they
/// read of other nodes.
///
/// ```
/// use fusion_cost_model::{GraphNode, Problem};
///
/// // x -> linear -> + -> relu, where the sum reads x again.
/// let norm: Problem = "layer_norm/f32/m64.n256".parse()?;
/// let linear: Problem = "linear+bias/f32/m64.k256.n256".parse()?;
/// let sum: Problem = "add_relu/f32/m64.n256".parse()?;
/// let graph = [
///     GraphNode::new(norm),
///     GraphNode::new(linear).reading(0),
///     GraphNode::new(sum).reading(1).with_operands([0]),
/// ];
/// # let _ = graph;
/// # Ok::<(), fusion_cost_model::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GraphNode {
    /// The ops.
    pub problem: Problem,
    /// The node that writes what the first op transforms; `None` where it comes from outside.
    pub input: Option<usize>,
    /// The nodes that write other operands, in the order of the ops that read them. Weights and other
    /// constants are not nodes.
    pub operands: Vec<usize>,
    /// Nodes that it reads, but is never in one kernel with, although their problems can be joined:
    /// what one takes for channels is something else to the other, say.
    pub apart_from: Vec<usize>,
    /// Whether something outside reads what it writes.
    pub is_output: bool,
}

impl GraphNode {
    /// A node that reads nothing of others.
    #[must_use]
    pub const fn new(problem: Problem) -> Self {
        Self {
            problem,
            input: None,
            operands: Vec::new(),
            apart_from: Vec::new(),
            is_output: false,
        }
    }

    /// The same, transforming what another node writes.
    #[must_use]
    pub fn reading(self, input: usize) -> Self {
        Self { input: Some(input), ..self }
    }

    /// The same, with what other nodes write as operands.
    #[must_use]
    pub fn with_operands(self, operands: impl IntoIterator<Item = usize>) -> Self {
        Self { operands: operands.into_iter().collect(), ..self }
    }

    /// The same, never in one kernel with some of the nodes that it reads.
    #[must_use]
    pub fn apart_from(self, others: impl IntoIterator<Item = usize>) -> Self {
        Self { apart_from: others.into_iter().collect(), ..self }
    }

    /// The same, with something outside of the graph reading what it writes. A node that no other
    /// reads is such a one without being told.
    #[must_use]
    pub fn as_output(self) -> Self {
        Self { is_output: true, ..self }
    }

    pub(super) fn reads(&self) -> impl Iterator<Item = usize> {
        self.input.into_iter().chain(self.operands.iter().copied())
    }
}

/// Some of a node's ops.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeOps {
    /// The node. A problem that is split by itself is node 0.
    pub node: usize,
    /// Which of its ops.
    pub ops: Range<usize>,
}

/// The ops of a graph, numbered over all nodes.
#[derive(Debug)]
pub(super) struct Units<'g> {
    pub(super) nodes: &'g [GraphNode],
    /// The number of the first op of each node.
    pub(super) starts: Vec<usize>,
    pub(super) units: Vec<Unit>,
    /// The ops that may come before each in a kernel.
    feeders: Vec<Vec<usize>>,
    /// The op that may come behind each in a kernel: the only one that reads it.
    next: Vec<Option<usize>>,
}

/// An op of a graph.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) node: usize,
    pub(super) step: Step,
}

impl<'g> Units<'g> {
    /// Fails when a node reads one that does not come before it.
    pub(super) fn of(nodes: &'g [GraphNode]) -> Result<Self, Error> {
        let mut readers = vec![0; nodes.len()];
        for (index, node) in nodes.iter().enumerate() {
            for read in node.reads() {
                if read >= index {
                    return Err(ErrorKind::GraphOrder { node: index, read }.into());
                }
                readers[read] += 1;
            }
        }
        let (mut starts, mut units) = (Vec::new(), Vec::new());
        let mut feeders: Vec<Vec<usize>> = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            starts.push(units.len());
            // A sum is the same whichever of the two is added to the other.
            let first = node.problem.chain()[0];
            let is_either =
                first == Op::Pointwise(Pointwise::Add) || first == Op::Pointwise(Pointwise::Mul);
            let operands = node.operands.iter().copied();
            // With more operands than the node names, the one is that of a later op.
            let is_own = node.operands.len() == 1
                && node.problem.steps().map(|step| activations(&step).count()).sum::<usize>() == 1;
            let operands = operands.filter(|_| is_either && is_own);
            let flows = node.input.into_iter().chain(operands);
            let is_free = |read: &usize| {
                readers[*read] == 1 && !nodes[*read].is_output && !node.apart_from.contains(read)
            };
            let last_of = |read: usize| starts[read] + nodes[read].problem.chain().len() - 1;
            feeders.push(flows.filter(is_free).map(last_of).collect());
            for step in node.problem.steps() {
                if units.len() > starts[index] {
                    feeders.push(vec![units.len() - 1]);
                }
                units.push(Unit { node: index, step });
            }
        }
        let mut next = vec![None; units.len()];
        for (unit, of_unit) in feeders.iter().enumerate() {
            for &before in of_unit {
                next[before] = Some(unit);
            }
        }
        Ok(Self { nodes, starts, units, feeders, next })
    }

    pub(super) fn feeders(&self) -> &[Vec<usize>] {
        &self.feeders
    }

    /// The ops of a path by node.
    pub(super) fn parts(&self, path: &[usize]) -> Vec<NodeOps> {
        let mut parts: Vec<NodeOps> = Vec::new();
        for &unit in path {
            let node = self.units[unit].node;
            let op = unit - self.starts[node];
            match parts.last_mut() {
                Some(part) if part.node == node => part.ops.end = op + 1,
                _ => parts.push(NodeOps { node, ops: op..op + 1 }),
            }
        }
        parts
    }

    /// A path as one kernel; `None` where it cannot be one.
    pub(super) fn problem(&self, path: &[usize]) -> Option<Problem> {
        let parts = self.parts(path).into_iter();
        let mut problems = parts.map(|part| self.nodes[part.node].problem.slice(part.ops));
        let first = problems.next()??;
        problems.try_fold(first, |joined, next| joined.join(&next?).ok())
    }

    /// The op that reads what another writes, if it is the only one and may be in the same kernel.
    pub(super) fn next(&self, unit: usize) -> Option<usize> {
        self.next[unit]
    }

    /// The last op of a node.
    pub(super) fn last_of(&self, node: usize) -> usize {
        self.starts[node] + self.nodes[node].problem.chain().len() - 1
    }
}
