//! What is known of every tensor once the open dimensions have numbers: its shape, the type of its
//! elements, and whether it is known ahead of time.
//!
//! Shapes are declared by the file or follow from the inputs of a node: `rules` has a rule for each
//! operator that we know, `layout` those that move elements, `windows` those that slide over an
//! image. `values` computes small constants, from which shapes follow in turn.

mod layout;
mod rules;
mod values;
mod windows;

use std::collections::BTreeMap;
use std::ops::Index;

pub(crate) use windows::Window;

use crate::dims::{Dim, Dims};
use crate::error::{Error, ErrorKind, OpenDim};
use crate::graph::{Graph, Node, Origin};
use crate::tensor::{Element, Source, Tensor, TensorId};

/// The sizes of a tensor, outermost first.
pub(crate) type Shape = Vec<u64>;

/// The most dimensions of a tensor. Without a bound, a few nodes that gather from themselves make
/// shapes that fill the memory.
const MAX_RANK: usize = 64;

/// What is known of a tensor.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fact {
    pub(crate) shape: Option<Shape>,
    pub(crate) element: Option<Element>,
    /// Whether no input of a run can change it.
    pub(crate) is_constant: bool,
    /// Its elements, if it is constant and they are few.
    pub(crate) values: Option<Vec<f64>>,
}

/// What is known of all tensors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Facts(Vec<Fact>);

impl Index<TensorId> for Facts {
    type Output = Fact;

    fn index(&self, id: TensorId) -> &Fact {
        &self.0[id.0]
    }
}

impl Facts {
    /// The shape of a tensor, if it is known.
    pub(crate) fn shape(&self, id: TensorId) -> Option<&[u64]> {
        self[id].shape.as_deref()
    }

    /// The one element of a constant that has a single one.
    pub(crate) fn number(&self, id: TensorId) -> Option<f64> {
        match self[id].values.as_deref() {
            Some([value]) => Some(*value),
            _ => None,
        }
    }
}

/// A shape in messages: `[8, 3, 224, 224]`.
pub(crate) fn text(shape: &[u64]) -> String {
    let dims: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("[{}]", dims.join(", "))
}

/// How many elements a tensor of a shape has; [`checked`] shapes do not overflow.
pub(crate) fn elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

/// What a rule reads of its node.
#[derive(Clone, Copy)]
struct At<'a> {
    node: &'a Node,
    facts: &'a Facts,
    /// The version of the operators.
    opset: u64,
}

impl<'a> At<'a> {
    fn fact(&self, input: usize) -> Option<&'a Fact> {
        Some(&self.facts[self.node.input(input)?])
    }

    fn shape(&self, input: usize) -> Option<&'a [u64]> {
        self.fact(input)?.shape.as_deref()
    }

    fn values(&self, input: usize) -> Option<&'a [f64]> {
        self.fact(input)?.values.as_deref()
    }

    /// A list of whole numbers that newer operators read and older ones have as an attribute.
    #[expect(clippy::cast_possible_truncation, reason = "a number too large is clamped")]
    fn list(&self, input: usize, attribute: &str) -> Option<Vec<i64>> {
        match self.node.attributes.ints(attribute) {
            Some(list) => Some(list.to_vec()),
            None => self.values(input).map(|list| list.iter().map(|&value| value as i64).collect()),
        }
    }
}

/// All that follows from the file and the numbers for its open dimensions.
pub(crate) fn facts(graph: &Graph, dims: &Dims) -> Result<Facts, Error> {
    check_names(graph, dims)?;
    check_open(graph, dims)?;
    let mut facts = Facts(vec![Fact::default(); graph.tensors.len()]);
    for (fact, tensor) in facts.0.iter_mut().zip(&graph.tensors) {
        if let Source::Node(_) = tensor.source {
            continue;
        }
        fact.shape = declared(tensor, dims).map(|shape| checked(tensor, shape)).transpose()?;
        fact.element = tensor.element;
        if let Source::Constant(values) = &tensor.source {
            fact.is_constant = true;
            fact.values.clone_from(values);
        }
    }
    for node in &graph.nodes {
        for (index, fact) in written(graph, node, &facts, dims)?.into_iter().enumerate() {
            if let Some(&Some(output)) = node.outputs.get(index) {
                facts.0[output.0] = fact;
            }
        }
    }
    Ok(facts)
}

/// What is known of the tensors that a node writes.
fn written(graph: &Graph, node: &Node, facts: &Facts, dims: &Dims) -> Result<Vec<Fact>, Error> {
    let at = At { node, facts, opset: graph.opset };
    let mut inferred = Vec::new();
    if node.origin == Origin::Known {
        inferred = rules::shapes(&at)
            .map_err(|reason| Error::graph(format!("{}: {reason}", graph.label(node))))?;
    }
    inferred.resize(node.outputs.len(), None);
    let reads_constants = values::is_computed_ahead(&at);
    let mut written = Vec::with_capacity(inferred.len());
    for (index, (shape, output)) in inferred.into_iter().zip(&node.outputs).enumerate() {
        let Some(output) = output else {
            written.push(Fact::default());
            continue;
        };
        let tensor = graph.tensor(*output);
        let element = shape.as_ref().and_then(|_| rules::element(&at));
        let shape = match shape {
            Some(shape) => {
                let shape = checked(tensor, shape)?;
                check_declared(graph, node, tensor, &shape)?;
                Some(shape)
            }
            None => declared(tensor, dims).map(|shape| checked(tensor, shape)).transpose()?,
        };
        let element = tensor.element.or(element);
        let values = match &shape {
            Some(shape) if index == 0 => values::of(&at, shape, element),
            _ => None,
        };
        let is_constant = reads_constants || values.is_some();
        written.push(Fact { shape, element, is_constant, values });
    }
    Ok(written)
}

/// The shape that a file declares, where all of its dimensions have numbers.
fn declared(tensor: &Tensor, dims: &Dims) -> Option<Shape> {
    let size = |dim: &Dim| match dim {
        Dim::Known(size) => Some(*size),
        Dim::Named(name) => dims.get(name),
        Dim::Unknown => None,
    };
    tensor.shape.as_ref()?.iter().map(size).collect()
}

fn checked(tensor: &Tensor, shape: Shape) -> Result<Shape, Error> {
    if shape.len() > MAX_RANK {
        let (name, rank) = (&tensor.name, shape.len());
        return Err(Error::graph(format!(
            "`{name}` has {rank} dimensions; at most {MAX_RANK} are read"
        )));
    }
    // A part of a shape without elements may be multiplied too.
    let elements = shape.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim.max(1)));
    match elements {
        Some(elements) if i64::try_from(elements).is_ok() => Ok(shape),
        _ => {
            let (name, shape) = (&tensor.name, text(&shape));
            let text =
                format!("`{name}` has the shape {shape}, whose elements 63 bits cannot count");
            Err(ErrorKind::Sizes(text).into())
        }
    }
}

/// Whether the numbers in a declared shape are those that follow from the inputs.
fn check_declared(graph: &Graph, node: &Node, tensor: &Tensor, shape: &[u64]) -> Result<(), Error> {
    let Some(declared) = &tensor.shape else { return Ok(()) };
    let agrees = |(dim, size): (&Dim, &u64)| !matches!(dim, Dim::Known(known) if known != size);
    if declared.len() == shape.len() && declared.iter().zip(shape).all(agrees) {
        return Ok(());
    }
    let dims: Vec<String> = declared
        .iter()
        .map(|dim| match dim {
            Dim::Known(size) => size.to_string(),
            Dim::Named(name) => name.clone(),
            Dim::Unknown => "?".to_owned(),
        })
        .collect();
    Err(Error::graph(format!(
        "`{}` is declared as [{}], but {} writes {}; infer the shapes of the model anew",
        tensor.name,
        dims.join(", "),
        graph.label(node),
        text(shape)
    )))
}

/// Whether the graph has the dimensions that numbers are given to.
fn check_names(graph: &Graph, dims: &Dims) -> Result<(), Error> {
    let named = || {
        let declared = graph.tensors.iter().filter_map(|tensor| tensor.shape.as_ref()).flatten();
        declared.filter_map(|dim| match dim {
            Dim::Named(name) => Some(name.as_str()),
            _ => None,
        })
    };
    match dims.names().find(|&name| named().all(|known| known != name)) {
        None => Ok(()),
        Some(unknown) => {
            let error = fusion_cost_model::Error::unknown_name("dimension", unknown, named());
            Err(ErrorKind::UnknownDim(error).into())
        }
    }
}

/// Whether every dimension of the inputs has a number.
fn check_open(graph: &Graph, dims: &Dims) -> Result<(), Error> {
    let mut open = BTreeMap::<&str, Vec<String>>::new();
    for tensor in graph.inputs.iter().map(|&id| graph.tensor(id)) {
        for dim in tensor.shape.iter().flatten() {
            if let Dim::Named(name) = dim
                && dims.get(name).is_none()
            {
                let inputs = open.entry(name).or_default();
                let input = format!("`{}`", tensor.name);
                if inputs.last() != Some(&input) {
                    inputs.push(input);
                }
            }
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    let open = open.into_iter().map(|(name, inputs)| OpenDim { name: name.to_owned(), inputs });
    Err(ErrorKind::OpenDims(open.collect()).into())
}
