//! Puts a graph together from the names of a file, and checks that it is one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::attribute::Attributes;
use crate::dims::Dim;
use crate::error::Error;
use crate::graph::{Graph, Node, Origin};
use crate::tensor::{Element, Source, Tensor, TensorId};

/// More than any model has; beyond it, finding what can be fused would take minutes.
const MOST_NODES: usize = 100_000;

/// A node as a file has it, with names for its tensors. An empty name leaves an optional one out.
#[derive(Debug, Clone)]
pub(crate) struct NamedNode {
    pub(crate) name: String,
    pub(crate) op: String,
    pub(crate) origin: Origin,
    pub(crate) inputs: Vec<String>,
    pub(crate) captured: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) attributes: Attributes,
}

/// Puts a graph together from what a file names.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    by_name: FxHashMap<String, TensorId>,
    tensors: Vec<Tensor>,
    /// Whether something provides the tensor.
    has_source: Vec<bool>,
    nodes: Vec<Node>,
    inputs: Vec<TensorId>,
    outputs: Vec<TensorId>,
}

impl Builder {
    /// The tensor of a name, which may not have been met before.
    fn tensor(&mut self, name: &str) -> TensorId {
        if let Some(&id) = self.by_name.get(name) {
            return id;
        }
        let id = TensorId(self.tensors.len());
        self.by_name.insert(name.to_owned(), id);
        let (name, source) = (name.to_owned(), Source::Input);
        self.tensors.push(Tensor { name, element: None, shape: None, source });
        self.has_source.push(false);
        id
    }

    fn provide(&mut self, name: &str, source: Source, what: &str) -> Result<TensorId, Error> {
        if name.is_empty() {
            return Err(Error::graph(format!("{what} has no name; give it one")));
        }
        let id = self.tensor(name);
        if self.has_source[id.0] {
            return Err(Error::graph(format!(
                "`{name}` is provided twice, the second time by {what}; rename one of them"
            )));
        }
        self.has_source[id.0] = true;
        self.tensors[id.0].source = source;
        Ok(id)
    }

    /// A tensor that is known ahead of time. Constants come before inputs: old ONNX files list them
    /// among the inputs too.
    pub(crate) fn constant(
        &mut self,
        name: &str,
        element: Option<Element>,
        shape: Vec<u64>,
        values: Option<Vec<f64>>,
    ) -> Result<(), Error> {
        let id = self.provide(name, Source::Constant(values), "a constant")?;
        let tensor = &mut self.tensors[id.0];
        tensor.element = element;
        tensor.shape = Some(shape.into_iter().map(Dim::Known).collect());
        Ok(())
    }

    /// A tensor that every run is given, unless a constant has the name.
    pub(crate) fn input(
        &mut self,
        name: &str,
        element: Option<Element>,
        shape: Option<Vec<Dim>>,
    ) -> Result<(), Error> {
        if let Some(&id) = self.by_name.get(name)
            && matches!(self.tensors[id.0].source, Source::Constant(_))
        {
            return Ok(());
        }
        let id = self.provide(name, Source::Input, "an input")?;
        self.inputs.push(id);
        // What has no name gets one, so that a user can give it a number.
        let named = |(axis, dim)| match dim {
            Dim::Unknown => Dim::Named(format!("{name}.{axis}")),
            dim => dim,
        };
        let tensor = &mut self.tensors[id.0];
        tensor.element = element;
        tensor.shape = shape.map(|dims| dims.into_iter().enumerate().map(named).collect());
        Ok(())
    }

    /// What is declared of a tensor that a node writes. Called after all nodes: a declaration of
    /// what nothing writes or reads means nothing.
    pub(crate) fn declare(
        &mut self,
        name: &str,
        element: Option<Element>,
        shape: Option<Vec<Dim>>,
    ) {
        let Some(&id) = self.by_name.get(name) else { return };
        let tensor = &mut self.tensors[id.0];
        if matches!(tensor.source, Source::Node(_)) {
            tensor.element = tensor.element.or(element);
            if tensor.shape.is_none() {
                tensor.shape = shape;
            }
        }
    }

    pub(crate) fn node(&mut self, node: NamedNode) -> Result<(), Error> {
        let NamedNode { name, op, origin, inputs, captured, outputs, attributes } = node;
        let index = self.nodes.len();
        if index == MOST_NODES {
            return Err(Error::graph(format!("it has more than {MOST_NODES} nodes")));
        }
        let what = if name.is_empty() { format!("a {op}") } else { format!("`{name}` ({op})") };
        let mut written = Vec::with_capacity(outputs.len());
        for output in &outputs {
            written.push(match output.as_str() {
                "" => None,
                output => Some(self.provide(output, Source::Node(index), &what)?),
            });
        }
        if written.iter().flatten().next().is_none() {
            return Err(Error::graph(format!("{what} writes no tensor; name its output")));
        }
        let inputs =
            inputs.iter().map(|input| (!input.is_empty()).then(|| self.tensor(input))).collect();
        let captured = captured.iter().map(|name| self.tensor(name)).collect();
        self.nodes.push(Node { name, op, origin, inputs, captured, outputs: written, attributes });
        Ok(())
    }

    pub(crate) fn output(&mut self, name: &str) {
        let id = self.tensor(name);
        self.outputs.push(id);
    }

    /// The graph, if every tensor that is read has a source and the nodes can be put in an order.
    pub(crate) fn finish(mut self, opset: u64) -> Result<Graph, Error> {
        for &output in &self.outputs {
            self.check_source(output, "is an output of the graph")?;
        }
        for node in &self.nodes {
            for read in node.reads() {
                if !self.has_source[read.0] {
                    let what = if node.name.is_empty() { "a node" } else { &node.name };
                    let what = format!("is read by {what} ({})", node.op);
                    self.check_source(read, &what)?;
                }
            }
        }
        let order = self.order()?;
        let mut at = vec![0; self.nodes.len()];
        for (place, &node) in order.iter().enumerate() {
            at[node] = place;
        }
        for tensor in &mut self.tensors {
            if let Source::Node(node) = &mut tensor.source {
                *node = at[*node];
            }
        }
        let mut nodes: Vec<Option<Node>> = self.nodes.into_iter().map(Some).collect();
        let nodes = order.into_iter().filter_map(|node| nodes[node].take()).collect();
        let Self { tensors, inputs, outputs, .. } = self;
        Ok(Graph { nodes, tensors, inputs, outputs, opset })
    }

    fn check_source(&self, id: TensorId, what: &str) -> Result<(), Error> {
        if self.has_source[id.0] {
            return Ok(());
        }
        let name = &self.tensors[id.0].name;
        Err(Error::graph(format!(
            "`{name}` {what}, but no input, constant or node provides it; add it to one of them"
        )))
    }

    /// The node that writes a tensor.
    fn writer(&self, id: TensorId) -> Option<usize> {
        match self.tensors[id.0].source {
            Source::Node(node) => Some(node),
            _ => None,
        }
    }

    /// An order in which the nodes can run, as near to that of the file as can be.
    fn order(&self) -> Result<Vec<usize>, Error> {
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut missing = vec![0_usize; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            for writer in node.reads().filter_map(|read| self.writer(read)) {
                readers[writer].push(index);
                missing[index] += 1;
            }
        }
        let mut ready: BinaryHeap<Reverse<usize>> =
            (0..self.nodes.len()).filter(|&node| missing[node] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(node)) = ready.pop() {
            order.push(node);
            for &reader in &readers[node] {
                missing[reader] -= 1;
                if missing[reader] == 0 {
                    ready.push(Reverse(reader));
                }
            }
        }
        if order.len() == self.nodes.len() { Ok(order) } else { Err(self.circle(&missing)) }
    }

    /// The error that names a circle. `missing` counts for each node the inputs that never came.
    fn circle(&self, missing: &[usize]) -> Error {
        // From any node that never ran, its first writer that never ran either, and so on, comes
        // back to where it has been.
        let before = |node: usize| {
            let writers = self.nodes[node].reads().filter_map(|read| self.writer(read));
            writers.into_iter().find(|&writer| missing[writer] > 0)
        };
        let mut visited = vec![false; self.nodes.len()];
        let mut here = (0..missing.len()).find(|&node| missing[node] > 0);
        while let Some(node) = here.filter(|&node| !visited[node]) {
            visited[node] = true;
            here = before(node);
        }
        let Some(first) = here else { return Error::graph("its nodes have no order") };
        let mut names = vec![self.result_of(first)];
        let mut node = before(first);
        while let Some(next) = node.filter(|&next| next != first && names.len() < MOST_NAMES) {
            names.push(self.result_of(next));
            node = before(next);
        }
        if node != Some(first) {
            names.push("...".to_owned());
        }
        names.reverse();
        Error::graph(format!(
            "the nodes that write {} read each other's results in a circle; unroll the loop, or \
             make it a Loop node",
            names.join(", ")
        ))
    }

    fn result_of(&self, node: usize) -> String {
        let written = self.nodes[node].output().map(|id| self.tensors[id.0].name.as_str());
        format!("`{}`", written.unwrap_or(&self.nodes[node].name))
    }
}

/// At most this many nodes of a circle are named.
const MOST_NAMES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NamedNode {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        NamedNode {
            name: String::new(),
            op: op.to_owned(),
            origin: Origin::Known,
            inputs: owned(inputs),
            captured: Vec::new(),
            outputs: owned(outputs),
            attributes: Attributes::default(),
        }
    }

    #[test]
    fn a_graph_that_would_take_minutes_is_refused() {
        let nodes: Vec<NamedNode> =
            (0..=MOST_NODES).map(|index| node("Relu", &["x"], &[&format!("y{index}")])).collect();
        assert!(build(&nodes[..MOST_NODES], "y0").is_ok());
        let message = build(&nodes, "y0").unwrap_err().to_string();
        assert!(message.contains("it has more than 100000 nodes"), "{message}");
    }

    fn build(nodes: &[NamedNode], output: &str) -> Result<Graph, Error> {
        let mut builder = Builder::default();
        builder.input("x", None, None)?;
        for node in nodes {
            builder.node(node.clone())?;
        }
        builder.output(output);
        builder.finish(17)
    }

    #[test]
    fn nodes_are_put_in_an_order_in_which_they_can_run() {
        let nodes = [
            node("C", &["b", "a"], &["c"]),
            node("B", &["a"], &["b"]),
            node("A", &["x"], &["a"]),
            node("D", &["x"], &["d"]),
        ];
        let graph = build(&nodes, "c").unwrap();
        let ops: Vec<&str> = graph.nodes.iter().map(|node| node.op.as_str()).collect();
        assert_eq!(ops, ["A", "B", "C", "D"]);
        let c = graph.outputs[0];
        assert_eq!(graph.tensor(c).source, Source::Node(2));
    }

    #[test]
    fn what_cannot_be_a_graph_says_why() {
        let error = |nodes: &[NamedNode], output| {
            let error = build(nodes, output).unwrap_err();
            assert!(error.is_invalid_graph());
            error.to_string()
        };
        let message = error(&[node("A", &["a"], &["a"])], "a");
        assert!(message.contains("the nodes that write `a` read each other's"), "{message}");
        let nodes = [
            node("A", &["x", "c"], &["a"]),
            node("B", &["a"], &["b"]),
            node("C", &["b"], &["c"]),
            node("D", &["c"], &["d"]),
        ];
        let message = error(&nodes, "d");
        assert!(message.contains("`b`, `c`, `a` read") || message.contains("`a`, `b`, `c` read"));
        let message = error(&[node("A", &["y"], &["a"])], "a");
        assert!(message.contains("`y` is read by a node (A), but no input"), "{message}");
        let message = error(&[node("A", &["x"], &["a"])], "z");
        assert!(message.contains("`z` is an output of the graph, but no"), "{message}");
        let twice = [node("A", &["x"], &["a"]), node("B", &["x"], &["a"])];
        let message = error(&twice, "a");
        assert!(message.contains("`a` is provided twice, the second time by a B"), "{message}");
        assert!(error(&[node("A", &["x"], &["x"])], "x").contains("`x` is provided twice"));
        assert!(error(&[node("A", &["x"], &[])], "x").contains("writes no tensor"));
    }

    #[test]
    fn a_long_circle_is_cut_in_its_message() {
        let mut nodes: Vec<NamedNode> = (0..100)
            .map(|at| node("A", &[&format!("t{at}")], &[&format!("t{}", at + 1)]))
            .collect();
        nodes.push(node("A", &["t100"], &["t0"]));
        let message = build(&nodes, "t3").unwrap_err().to_string();
        assert!(message.contains("...") && message.len() < 300, "{message}");
    }
}
