//! Segments as the nodes of a graph that a cost model splits into kernels.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use fusion_cost_model::{GraphNode, Op, Problem};

use super::segment::problem;
use super::{Edge, Place, Segment, SegmentOp, Segments};
use crate::error::{Error, ErrorKind};
use crate::recognise::{Layout, OpSizes, UnitOp};

impl Segments {
    /// What [`OnTarget::partition_graph`](fusion_cost_model::OnTarget::partition_graph) takes: a node
    /// for every op of every segment, in the order of [`Self::segments`] and of their
    /// [`ops`](super::Segment::ops). A causal softmax, which is no kernel by itself, is in the node of
    /// what comes before it.
    ///
    /// A sum of two results may continue either of them: which one is in the same kernel is for the
    /// cost model to choose, although a segment goes on with one. An op that takes other elements for
    /// its columns than the segment before it is [never in one kernel](GraphNode::apart_from) with it.
    /// What an opaque node writes comes from outside.
    ///
    /// # Errors
    ///
    /// When an op cannot be a kernel by itself ([`Error::is_invalid_graph`]).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use model_graphs::{Dims, Graph, synthetic};
    ///
    /// let found = Graph::from_onnx(synthetic::resnet50())?
    ///     .segments(&Dims::default().with("batch", 1))?;
    /// let nodes = found.graph_nodes()?;
    /// assert_eq!(nodes[0].problem.to_string(), "conv2d/f32/n1.c3.h224.w224.k64.r7.s7.stride2.pad3");
    /// assert_eq!(nodes[1].input, Some(0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn graph_nodes(&self) -> Result<Vec<GraphNode>, Error> {
        let reads = self.reads();
        let is_read_outside = self.read_by_opaque_nodes();
        let mut last_of = Vec::with_capacity(self.segments.len());
        let mut nodes = Vec::new();
        for (index, segment) in self.segments.iter().enumerate() {
            let parts = parts(segment)?;
            let count = parts.len();
            for (part, (ops, problem)) in parts.into_iter().enumerate() {
                let mut node = GraphNode::new(problem);
                if part > 0 {
                    node = node.reading(nodes.len() - 1);
                }
                let read = ops.flat_map(|op| {
                    let of_op = reads.get(&(index, op)).into_iter().flatten();
                    of_op.map(move |edge| (op, *edge))
                });
                for (op, edge) in read {
                    // Segments are in an order in which they can run.
                    let Place::Segment(before) = edge.from else { continue };
                    let Some(&from) = last_of.get(before) else { continue };
                    let written = self.segments[before].ops.last().map(|op| op.unit.output);
                    let is_same = |written: Layout| written.is_same(segment.ops[op].unit.input);
                    if !written.is_some_and(is_same) {
                        node.apart_from.push(from);
                    }
                    if edge.is_transformed && node.input.is_none() {
                        node.input = Some(from);
                    } else {
                        node.operands.push(from);
                    }
                }
                let is_last = part + 1 == count;
                node.is_output = is_last && (segment.is_output || is_read_outside.contains(&index));
                nodes.push(node);
            }
            last_of.push(nodes.len().saturating_sub(1));
        }
        Ok(nodes)
    }

    /// What the ops of segments read of other parts, by segment and op.
    fn reads(&self) -> HashMap<(usize, usize), Vec<&Edge>> {
        let mut reads: HashMap<(usize, usize), Vec<&Edge>> = HashMap::new();
        for edge in &self.edges {
            if let Place::Segment(to) = edge.to {
                reads.entry((to, edge.op)).or_default().push(edge);
            }
        }
        reads
    }

    /// The segments whose result an opaque node reads.
    fn read_by_opaque_nodes(&self) -> HashSet<usize> {
        let read = |edge: &Edge| match (edge.from, edge.to) {
            (Place::Segment(from), Place::Opaque(_)) => Some(from),
            _ => None,
        };
        self.edges.iter().filter_map(read).collect()
    }
}

/// The ops of a segment by node, each node with its problem: one op, and a causal softmax with those
/// before it.
fn parts(segment: &Segment) -> Result<Vec<(Range<usize>, Problem)>, Error> {
    let mut parts: Vec<(Range<usize>, Problem)> = Vec::new();
    for (at, op) in segment.ops.iter().enumerate() {
        let is_causal = matches!(op.unit.sizes, OpSizes::Attention(sizes) if sizes.causal);
        // From its GEMM on, over a scale and a mask.
        let is_qk = |(ops, _): &(Range<usize>, Problem)| segment.ops[ops.start].op() == Op::Qk;
        let qk = parts.iter().rposition(is_qk).filter(|_| is_causal);
        let before = qk.and_then(|qk| parts.drain(qk..).next());
        let ops = before.map_or(at, |(ops, _)| ops.start)..at + 1;
        let units: Vec<UnitOp> =
            segment.ops[ops.clone()].iter().map(|op| op.unit.clone()).collect();
        let problem = problem(&units, segment.dtype).map_err(|error| no_kernel(op, &error))?;
        parts.push((ops, problem));
    }
    Ok(parts)
}

fn no_kernel(op: &SegmentOp, error: &fusion_cost_model::Error) -> Error {
    let nodes = op.nodes.join(", ");
    let text = format!("{nodes}: {} by itself: {error}", op.op());
    match error.is_invalid_sizes() {
        true => ErrorKind::Sizes(text).into(),
        false => Error::graph(text),
    }
}
