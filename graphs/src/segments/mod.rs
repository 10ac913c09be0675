//! Segments: runs of ops in which each result has one reader, so that kernels may be cut out of them
//! anywhere, and what lies between them.
//!
//! `segment` is one run, `build` puts recognised units together, and `nodes` makes of them what a
//! cost model splits into kernels.

mod build;
mod nodes;
mod segment;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

pub use segment::{Segment, SegmentOp};

use crate::dims::Dims;
use crate::error::Error;
use crate::graph::Graph;
use crate::recognise::Assumption;

/// What a partitioner can do with a graph: segments, in which it chooses the kernels, and opaque
/// nodes, which stay as they are.
///
/// No kernel can reach over the end of a segment: there a result has several readers or is an
/// output, or what follows is a GEMM, a convolution or an opaque node.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use model_graphs::{Dims, Graph};
///
/// let graph = Graph::from_json(br#"{
///     "kind": "graph", "schema_version": 1,
///     "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 64]}],
///     "constants": [{"name": "w", "dtype": "f32", "shape": [64, 32]}],
///     "nodes": [
///         {"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]},
///         {"op": "Relu", "inputs": ["y"], "outputs": ["z"]}
///     ],
///     "outputs": ["z"]
/// }"#)?;
/// let found = graph.segments(&Dims::default().with("batch", 8))?;
/// let problem = found.segments()[0].problem(0..2).ok_or("no kernel")?;
/// assert_eq!(problem.to_string(), "linear+relu/f32/m8.k64.n32");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Segments {
    segments: Vec<Segment>,
    opaque: Vec<OpaqueNode>,
    edges: Vec<Edge>,
    assumptions: BTreeMap<Assumption, usize>,
    views: usize,
    computed_ahead: usize,
    unused: usize,
}

/// A node that the vocabulary cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpaqueNode {
    /// Its name in the file; many have none.
    pub name: String,
    /// Its operator.
    pub op: String,
    /// Why it is opaque.
    pub reason: String,
}

/// A tensor that one part of the graph writes and another one reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge {
    /// The tensor's name in the file.
    pub tensor: String,
    /// Who writes it.
    pub from: Place,
    /// Who reads it.
    pub to: Place,
    /// Which op of a segment reads it, by its index; 0 of an opaque node.
    pub op: usize,
    /// Whether it is what that op transforms, and not an operand. An `add` or `mul` of two tensors
    /// of the same shape transforms either.
    pub is_transformed: bool,
}

/// A part of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A segment, by its index. It writes after its last op, and reads anywhere.
    Segment(usize),
    /// An opaque node, by its index.
    Opaque(usize),
}

/// Opaque nodes of one operator that are opaque for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpaqueCount {
    /// The operator.
    pub op: String,
    /// The reason.
    pub reason: String,
    /// How many nodes.
    pub nodes: usize,
}

impl Graph {
    /// The segments of the graph, where its open dimensions have these numbers.
    ///
    /// # Errors
    ///
    /// When a dimension of an input has no number ([`Error::is_open_dims`]), a number is for a
    /// dimension that the graph does not have ([`Error::is_invalid_dim`]), or shapes contradict
    /// each other ([`Error::is_invalid_graph`]).
    pub fn segments(&self, dims: &Dims) -> Result<Segments, Error> {
        build::segments(self, dims)
    }
}

impl Segments {
    /// The segments, in an order in which they can run.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The opaque nodes, in an order in which they can run.
    #[must_use]
    pub fn opaque(&self) -> &[OpaqueNode] {
        &self.opaque
    }

    /// The opaque nodes by operator and reason, the most frequent first.
    #[must_use]
    pub fn opaque_counts(&self) -> Vec<OpaqueCount> {
        let mut counts = BTreeMap::<(&str, &str), usize>::new();
        for OpaqueNode { op, reason, .. } in &self.opaque {
            *counts.entry((op, reason)).or_default() += 1;
        }
        let count = |((op, reason), nodes): ((&str, &str), usize)| OpaqueCount {
            op: op.to_owned(),
            reason: reason.to_owned(),
            nodes,
        };
        let mut counts: Vec<OpaqueCount> = counts.into_iter().map(count).collect();
        counts.sort_by_key(|count| Reverse(count.nodes));
        counts
    }

    /// The tensors between the parts. Inputs of the graph, constants and its outputs are none.
    #[must_use]
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// What the problems take for granted, and of how many groups of nodes.
    pub fn assumptions(&self) -> impl Iterator<Item = (Assumption, usize)> {
        self.assumptions.iter().map(|(&assumption, &count)| (assumption, count))
    }

    /// How many nodes only change the shape that elements have, which costs nothing.
    #[must_use]
    pub const fn views(&self) -> usize {
        self.views
    }

    /// How many nodes read constants only, so that their results are computed ahead of time.
    #[must_use]
    pub const fn computed_ahead(&self) -> usize {
        self.computed_ahead
    }

    /// How many nodes no output of the graph needs. They are left out.
    #[must_use]
    pub const fn unused(&self) -> usize {
        self.unused
    }
}

impl fmt::Display for OpaqueCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}: {}", self.nodes, self.op, self.reason)
    }
}
