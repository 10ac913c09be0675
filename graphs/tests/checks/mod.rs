//! What must hold of any bytes, for tests with fixed seeds and for the fuzz targets.

use std::collections::HashSet;
use std::sync::LazyLock;

use model_graphs::synthetic::llama_block;
use model_graphs::{Dims, Graph, Place, Segments};

/// Reads a graph of either form, gives every open dimension a small number, and looks at its
/// segments.
pub(crate) fn read(bytes: &[u8]) {
    match Graph::from_bytes(bytes.to_vec()) {
        Ok(graph) => segments(&graph),
        Err(error) => {
            assert!(error.is_invalid_format() || error.is_invalid_graph(), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
}

fn segments(graph: &Graph) {
    let mut dims = Dims::default();
    let found = graph.segments(&dims).or_else(|error| {
        for name in error.open_dims() {
            dims = std::mem::take(&mut dims).with(name, 2);
        }
        graph.segments(&dims)
    });
    match found {
        Ok(found) => whole(&found),
        Err(error) => assert!(error.is_invalid_graph(), "{error}"),
    }
}

/// Whether segments, edges and opaque nodes go together.
pub(crate) fn whole(found: &Segments) {
    for segment in found.segments() {
        let kernels = segment.largest_kernels();
        let ops: usize = kernels.iter().map(|kernel| kernel.chain().len()).sum();
        assert_eq!(ops, segment.ops().len(), "{segment:?}");
        let dtypes: HashSet<_> = kernels.iter().map(|kernel| kernel.dtype()).collect();
        assert_eq!(dtypes, HashSet::from([segment.dtype()]));
        for op in segment.ops() {
            assert!(!op.nodes().is_empty());
        }
    }
    let exists = |place: Place| match place {
        Place::Segment(index) => index < found.segments().len(),
        Place::Opaque(index) => index < found.opaque().len(),
    };
    for edge in found.edges() {
        assert!(exists(edge.from) && exists(edge.to) && !edge.tensor.is_empty());
        match (edge.from, edge.to) {
            (Place::Segment(from), Place::Segment(to)) => assert!(from < to, "{edge:?}"),
            (Place::Opaque(from), Place::Opaque(to)) => assert!(from < to, "{edge:?}"),
            _ => {}
        }
    }
    nodes(found);
    assert!(found.opaque().iter().all(|node| !node.reason.is_empty()));
    let counted: usize = found.opaque_counts().iter().map(|count| count.nodes).sum();
    assert_eq!(counted, found.opaque().len());
}

/// Whether the nodes for a partitioner are the ops of the segments, each after what it reads.
fn nodes(found: &Segments) {
    let nodes = match found.graph_nodes() {
        Ok(nodes) => nodes,
        // Rows that are counted one by one may be more than a size can be.
        Err(error) => return assert!(error.is_invalid_sizes(), "{error}"),
    };
    let ops = found.segments().iter().flat_map(|segment| segment.ops()).map(|op| op.op());
    let of_nodes = nodes.iter().flat_map(|node| node.problem.chain().iter().copied());
    assert!(ops.eq(of_nodes), "{nodes:?}");
    for (index, node) in nodes.iter().enumerate() {
        // A causal softmax has no kernel of its own.
        assert!(node.problem.chain().is_single() || node.problem.to_string().contains("causal1"));
        assert!(node.input.iter().chain(&node.operands).all(|&read| read < index), "{nodes:?}");
    }
}

static MODEL: LazyLock<Vec<u8>> = LazyLock::new(llama_block);

/// A model with changes: of each five bytes, two say where, one how, and two what.
pub(crate) fn changed_model(choices: &[u8]) -> Vec<u8> {
    let mut bytes = MODEL.clone();
    for &[high, low, how, what, more] in choices.as_chunks().0 {
        let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len();
        match how % 4 {
            0 => bytes[at] = what,
            1 => bytes[at] ^= 1 << (what % 8),
            2 => drop(bytes.drain(at..bytes.len().min(at + usize::from(what)))),
            _ => bytes.insert(at, what ^ more),
        }
        if bytes.is_empty() {
            return bytes;
        }
    }
    bytes
}
