//! Segments as the nodes of a graph that a cost model splits into kernels.

use std::collections::{HashMap, HashSet};

use fusion_cost_model::GraphNode;

use super::segment::problem;
use super::{Edge, Place, Segments};
use crate::error::{Error, ErrorKind};

impl Segments {
    /// What [`OnTarget::partition_graph`](fusion_cost_model::OnTarget::partition_graph) takes: a node
    /// for every op of every segment, in the order of [`Self::segments`] and of their
    /// [`ops`](super::Segment::ops).
    ///
    /// A sum of two results may continue either of them: which one is in the same kernel is for the
    /// cost model to choose, although a segment goes on with one. What an opaque node writes comes
    /// from outside.
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
        let mut last_of = Vec::with_capacity(self.segments.len());
        let mut ops = 0;
        for segment in &self.segments {
            ops += segment.ops.len();
            last_of.push(ops - 1);
        }
        let reads = self.reads();
        let is_read_outside = self.read_by_opaque_nodes();
        let mut nodes = Vec::with_capacity(ops);
        for (index, segment) in self.segments.iter().enumerate() {
            for (at, op) in segment.ops.iter().enumerate() {
                let problem =
                    problem(std::slice::from_ref(&op.unit), segment.dtype).map_err(|error| {
                        let nodes = op.nodes.join(", ");
                        let text = format!("{nodes}: {} by itself: {error}", op.op());
                        match error.is_invalid_sizes() {
                            true => ErrorKind::Sizes(text).into(),
                            false => Error::graph(text),
                        }
                    })?;
                let mut node = GraphNode::new(problem);
                if at > 0 {
                    node = node.reading(nodes.len() - 1);
                }
                for edge in reads.get(&(index, at)).into_iter().flatten() {
                    let Place::Segment(from) = edge.from else { continue };
                    if edge.is_transformed && node.input.is_none() {
                        node.input = Some(last_of[from]);
                    } else {
                        node.operands.push(last_of[from]);
                    }
                }
                let is_last = at + 1 == segment.ops.len();
                node.is_output = is_last && (segment.is_output || is_read_outside.contains(&index));
                nodes.push(node);
            }
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
