//! Which nodes do work, and who reads what, once views and what is computed ahead are left out.

use crate::graph::{Graph, Node};
use crate::shapes::{Facts, elements};
use crate::tensor::{Element, Source, TensorId};

/// What becomes of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// No output of the graph needs its results.
    Unused,
    /// Its results are known ahead of time.
    Ahead,
    /// It writes the elements that it reads, in their order, with another shape at most.
    View,
    /// It runs.
    Work,
}

/// A graph as a partitioner sees it.
#[derive(Debug)]
pub(crate) struct Flow<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) facts: &'a Facts,
    roles: Vec<Role>,
    /// The tensor that a tensor is a view of; itself for what is none.
    roots: Vec<TensorId>,
    /// By root, the working nodes that read it; a node that reads it twice is there twice.
    readers: Vec<Vec<usize>>,
    is_output: Vec<bool>,
    /// Whether the dimensions are those of images, `[n, c, h, w]`.
    is_image: Vec<bool>,
}

impl<'a> Flow<'a> {
    pub(crate) fn of(graph: &'a Graph, facts: &'a Facts) -> Self {
        let count = graph.tensors.len();
        let is_needed = needed(graph);
        let mut roots: Vec<TensorId> = (0..count).map(TensorId).collect();
        let mut roles = Vec::with_capacity(graph.nodes.len());
        let mut is_image = vec![false; count];
        for node in &graph.nodes {
            let written = || node.outputs.iter().flatten().copied();
            let viewed = view(node, facts, graph.opset)
                .filter(|_| node.outputs.iter().skip(1).flatten().all(|id| !is_needed[id.0]));
            roles.push(match viewed {
                _ if written().all(|id| !is_needed[id.0]) => Role::Unused,
                _ if written().all(|id| facts[id].is_constant) => Role::Ahead,
                Some(source) => {
                    for output in written() {
                        roots[output.0] = roots[source.0];
                    }
                    Role::View
                }
                None => Role::Work,
            });
            for output in written() {
                is_image[output.0] = writes_image(node, output, facts, &is_image);
            }
        }
        let mut readers = vec![Vec::new(); count];
        for (index, node) in graph.nodes.iter().enumerate() {
            if roles[index] == Role::Work {
                node.reads().for_each(|read| readers[roots[read.0].0].push(index));
            }
        }
        let mut is_output = vec![false; count];
        for output in &graph.outputs {
            is_output[roots[output.0].0] = true;
        }
        Self { graph, facts, roles, roots, readers, is_output, is_image }
    }

    pub(crate) fn node(&self, node: usize) -> &'a Node {
        &self.graph.nodes[node]
    }

    /// The working nodes, in an order in which they can run.
    pub(crate) fn work(&self) -> impl Iterator<Item = usize> {
        (0..self.roles.len()).filter(|&node| self.roles[node] == Role::Work)
    }

    /// How many nodes have a role.
    pub(crate) fn count(&self, role: Role) -> usize {
        self.roles.iter().filter(|&&one| one == role).count()
    }

    pub(crate) fn root(&self, id: TensorId) -> TensorId {
        self.roots[id.0]
    }

    /// Whether two tensors are views of the same one.
    pub(crate) fn is_same(&self, a: TensorId, b: TensorId) -> bool {
        self.root(a) == self.root(b)
    }

    pub(crate) fn name(&self, id: TensorId) -> &'a str {
        &self.graph.tensor(id).name
    }

    pub(crate) fn shape(&self, id: TensorId) -> Option<&'a [u64]> {
        self.facts.shape(id)
    }

    pub(crate) fn element(&self, id: TensorId) -> Option<Element> {
        self.facts[id].element
    }

    pub(crate) fn is_constant(&self, id: TensorId) -> bool {
        self.facts[id].is_constant
    }

    pub(crate) fn is_image(&self, id: TensorId) -> bool {
        self.is_image[id.0]
    }

    /// The value of a constant with a single element.
    pub(crate) fn number(&self, id: TensorId) -> Option<f64> {
        self.facts.number(id)
    }

    /// Whether a tensor has a single element.
    pub(crate) fn is_scalar(&self, id: TensorId) -> bool {
        self.shape(id).is_some_and(|shape| elements(shape) == 1)
    }

    /// The working node that writes what a tensor is a view of.
    pub(crate) fn writer(&self, id: TensorId) -> Option<usize> {
        match self.graph.tensor(self.root(id)).source {
            Source::Node(node) if self.roles[node] == Role::Work => Some(node),
            _ => None,
        }
    }

    /// The working nodes that read a tensor or a view of it.
    pub(crate) fn readers(&self, id: TensorId) -> &[usize] {
        &self.readers[self.root(id).0]
    }

    /// Whether a tensor or a view of it is an output of the graph.
    pub(crate) fn is_output(&self, id: TensorId) -> bool {
        self.is_output[self.root(id).0]
    }

    /// Whether nobody but these nodes reads a tensor or a view of it.
    pub(crate) fn is_read_only_by(&self, id: TensorId, nodes: &[usize]) -> bool {
        !self.is_output(id) && self.readers(id).iter().all(|node| nodes.contains(node))
    }

    /// The one node that reads a tensor, once.
    pub(crate) fn sole_reader(&self, id: TensorId) -> Option<usize> {
        match self.readers(id) {
            &[reader] if !self.is_output(id) => Some(reader),
            _ => None,
        }
    }

    /// Whether an output of a node other than the first is read.
    pub(crate) fn writes_more(&self, node: usize) -> bool {
        let more = self.node(node).outputs.iter().skip(1).flatten();
        let is_read = |&id: &TensorId| !self.readers(id).is_empty() || self.is_output(id);
        more.into_iter().any(is_read)
    }
}

/// By tensor, whether an output of the graph needs it.
fn needed(graph: &Graph) -> Vec<bool> {
    let mut is_needed = vec![false; graph.tensors.len()];
    graph.outputs.iter().for_each(|output| is_needed[output.0] = true);
    // Each node comes after those that write what it reads.
    for node in graph.nodes.iter().rev() {
        if node.outputs.iter().flatten().any(|id| is_needed[id.0]) {
            node.reads().for_each(|read| is_needed[read.0] = true);
        }
    }
    is_needed
}

/// What a node's first output is a view of, if it is one.
fn view(node: &Node, facts: &Facts, opset: u64) -> Option<TensorId> {
    let source = node.input(0)?;
    let output = node.output()?;
    let is_view = if node.is_any(&["Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"]) {
        true
    } else if node.is("Dropout") {
        !drops(node, facts, opset)
    } else if node.is_any(&["Cast", "CastLike"]) {
        let (from, to) = (facts[source].element, facts[output].element);
        from.is_some() && from == to
    } else if node.is("Expand") {
        facts.shape(source).is_some() && facts.shape(source) == facts.shape(output)
    } else if node.is("Transpose") {
        facts.shape(source).is_some_and(|shape| keeps_order(node, shape))
    } else {
        false
    };
    is_view.then_some(source)
}

/// Whether a Dropout is in training mode, which newer ones say by an input.
pub(crate) fn drops(node: &Node, facts: &Facts, opset: u64) -> bool {
    /// The first version of the operators in which an input says whether a Dropout is in training
    /// mode, and the first one in which an attribute no longer does.
    const WITH_MODE: u64 = 12;
    const WITHOUT_TEST: u64 = 7;
    if opset < WITHOUT_TEST {
        return node.attributes.int("is_test").unwrap_or(0) == 0;
    }
    let mode = node.input(2).filter(|_| opset >= WITH_MODE);
    mode.is_some_and(|mode| facts.number(mode) != Some(0.0))
}

/// Whether a Transpose moves only dimensions of one.
fn keeps_order(node: &Node, shape: &[u64]) -> bool {
    let mut reversed: Vec<i64> = (0..).take(shape.len()).collect();
    reversed.reverse();
    let order = node.attributes.ints("perm").unwrap_or(&reversed);
    let is_long = |axis: &i64| usize::try_from(*axis).is_ok_and(|axis| shape.get(axis) != Some(&1));
    let long: Vec<i64> = order.iter().copied().filter(is_long).collect();
    order.len() == shape.len() && long.is_sorted() && order.iter().all(|&axis| axis >= 0)
}

/// Whether an output is an image, as far as its node says.
fn writes_image(node: &Node, output: TensorId, facts: &Facts, is_image: &[bool]) -> bool {
    const IMAGES: [&str; 13] = [
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "GroupNormalization",
        "InstanceNormalization",
        "LRN",
        "MaxPool",
        "Resize",
        "Upsample",
    ];
    /// The dimensions of an image: the batch, channels, height and width.
    const RANK: usize = 4;
    let moves = ["Expand", "Reshape", "Squeeze", "Transpose", "Unsqueeze", "MatMul"];
    facts.shape(output).is_some_and(|shape| shape.len() == RANK)
        && (node.is_any(&IMAGES)
            || (!node.is_any(&moves) && node.inputs.iter().flatten().any(|id| is_image[id.0])))
}
