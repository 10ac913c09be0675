//! ONNX files: `messages` has the protobuf, `values` the elements of small tensors, and this makes a
//! graph of them. Weights are not read.

pub(crate) mod messages;
mod values;

use prost::Message;
use prost::bytes::Bytes;
use rustc_hash::FxHashSet;

use self::messages::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto,
    attribute_type,
};
use crate::attribute::Attribute;
use crate::builder::{Builder, NamedNode};
use crate::dims::{Dim, MAX_DIM};
use crate::error::Error;
use crate::graph::{Graph, Origin};
use crate::tensor::Element;

const FORMAT: &str = "ONNX file";

/// The domains whose operators are known. ONNX's own has two names.
const CONTRIBUTED: &str = "com.microsoft";
const ONNX_DOMAINS: [&str; 2] = ["", "ai.onnx"];

/// The version of ONNX's operators where a file does not say one, as no file of today does.
const OLDEST_OPSET: u64 = 1;

impl Graph {
    /// Reads an ONNX file. The elements of large constants are neither read nor copied.
    ///
    /// # Errors
    ///
    /// When it is not an ONNX file, or a part of one ([`Error::is_invalid_format`]), or what it says is
    /// no graph ([`Error::is_invalid_graph`]).
    pub fn from_onnx(bytes: Vec<u8>) -> Result<Self, Error> {
        let model = ModelProto::decode(Bytes::from(bytes))
            .map_err(|error| Error::format(FORMAT, format!("{error}; copy it once more")))?;
        let opset = model
            .opset_import
            .iter()
            .filter(|opset| ONNX_DOMAINS.contains(&opset.domain.as_str()))
            .filter_map(|opset| u64::try_from(opset.version).ok())
            .max();
        let functions: FxHashSet<(&str, &str)> = model
            .functions
            .iter()
            .map(|function| (function.domain.as_str(), function.name.as_str()))
            .collect();
        let graph = model.graph.as_ref();
        let graph = graph.ok_or_else(|| Error::format(FORMAT, "it has no graph"))?;
        build(graph, &functions, opset.unwrap_or(OLDEST_OPSET))
    }
}

fn build(
    graph: &GraphProto,
    functions: &FxHashSet<(&str, &str)>,
    opset: u64,
) -> Result<Graph, Error> {
    let mut builder = Builder::default();
    for tensor in &graph.initializer {
        constant(&mut builder, &tensor.name, tensor)?;
    }
    for sparse in &graph.sparse_initializer {
        let Some(tensor) = &sparse.values else { continue };
        let shape = sizes(&tensor.name, &sparse.dims)?;
        builder.constant(&tensor.name, Element::from_onnx(tensor.data_type), shape, None)?;
    }
    for input in &graph.input {
        let (element, shape) = declared(input)?;
        builder.input(&input.name, element, shape)?;
    }
    for node in &graph.node {
        match node.output.as_slice() {
            [output] if is_known(node, functions) && node.op_type == "Constant" => {
                constant_node(&mut builder, output, node)?;
            }
            _ => builder.node(named_node(node, functions))?,
        }
    }
    for value in graph.value_info.iter().chain(&graph.output) {
        let (element, shape) = declared(value)?;
        builder.declare(&value.name, element, shape);
    }
    for output in &graph.output {
        builder.output(&output.name);
    }
    builder.finish(opset)
}

fn constant(builder: &mut Builder, name: &str, tensor: &TensorProto) -> Result<(), Error> {
    let shape = sizes(name, &tensor.dims)?;
    builder.constant(name, Element::from_onnx(tensor.data_type), shape, values::of(tensor))
}

fn sizes(name: &str, dims: &[i64]) -> Result<Vec<u64>, Error> {
    let size = |&dim: &i64| {
        u64::try_from(dim).ok().filter(|&size| size <= MAX_DIM).ok_or_else(|| {
            Error::format(FORMAT, format!("a dimension of `{name}` is {dim}; at most {MAX_DIM}"))
        })
    };
    dims.iter().map(size).collect()
}

/// A node that writes a constant which is its attribute.
#[expect(clippy::cast_precision_loss, reason = "a dimension or index is far below 2^53")]
fn constant_node(builder: &mut Builder, output: &str, node: &NodeProto) -> Result<(), Error> {
    let float = Some(Element::Number(fusion_cost_model::DType::F32));
    let int = Some(Element::INT64);
    let Some(attribute) = node.attribute.first() else {
        return Err(Error::graph(format!("the Constant that writes `{output}` has no value")));
    };
    let list = |values: Vec<f64>| (vec![values.len() as u64], Some(values));
    let (element, (shape, values)) = match attribute {
        AttributeProto { t: Some(tensor), .. } => return constant(builder, output, tensor),
        AttributeProto { f: Some(f), .. } => (float, (vec![], Some(vec![f64::from(*f)]))),
        AttributeProto { i: Some(i), .. } => (int, (vec![], Some(vec![*i as f64]))),
        AttributeProto { name, floats, .. } if name == "value_floats" => {
            (float, list(floats.iter().map(|&f| f64::from(f)).collect()))
        }
        AttributeProto { name, ints, .. } if name == "value_ints" => {
            (int, list(ints.iter().map(|&i| i as f64).collect()))
        }
        // Texts and sparse tensors: nothing that decides about a graph.
        _ => (None, (vec![], None)),
    };
    let values = values.filter(|values| values.len() <= crate::tensor::MAX_VALUES);
    builder.constant(output, element, shape, values)
}

fn declared(value: &ValueInfoProto) -> Result<(Option<Element>, Option<Vec<Dim>>), Error> {
    let Some(tensor) = value.r#type.as_ref().and_then(|of| of.tensor_type.as_ref()) else {
        return Ok((None, None));
    };
    let dim = |dim: &DimensionProto| match (&dim.dim_param, dim.dim_value) {
        (Some(name), _) if !name.is_empty() => Ok(Dim::Named(name.clone())),
        // Some exporters write -1 or 0 for what they do not know.
        (_, None | Some(i64::MIN..=0)) => Ok(Dim::Unknown),
        (_, Some(size)) => match size.cast_unsigned() {
            size @ ..=MAX_DIM => Ok(Dim::Known(size)),
            size => Err(Error::format(
                FORMAT,
                format!("a dimension of `{}` is {size}; at most {MAX_DIM}", value.name),
            )),
        },
    };
    let shape = tensor.shape.as_ref().map(|shape| shape.dim.iter().map(dim).collect());
    Ok((Element::from_onnx(tensor.elem_type), shape.transpose()?))
}

fn is_known(node: &NodeProto, functions: &FxHashSet<(&str, &str)>) -> bool {
    let domain = node.domain.as_str();
    (ONNX_DOMAINS.contains(&domain) || domain == CONTRIBUTED)
        && !functions.contains(&(domain, node.op_type.as_str()))
}

fn named_node(node: &NodeProto, functions: &FxHashSet<(&str, &str)>) -> NamedNode {
    let (domain, op) = (node.domain.as_str(), node.op_type.as_str());
    let origin = if functions.contains(&(domain, op)) {
        Origin::LocalFunction
    } else if is_known(node, functions) {
        Origin::Known
    } else {
        Origin::Custom
    };
    let op = if ONNX_DOMAINS.contains(&domain) { op.to_owned() } else { format!("{domain}.{op}") };
    NamedNode {
        name: node.name.clone(),
        op,
        origin,
        inputs: node.input.clone(),
        captured: captured(node),
        outputs: node.output.clone(),
        attributes: node.attribute.iter().map(|one| (one.name.clone(), attribute(one))).collect(),
    }
}

fn attribute(attribute: &AttributeProto) -> Attribute {
    let AttributeProto { f, i, s, t, ints, .. } = attribute;
    // The oldest files do not say the type.
    let kind = match attribute.r#type {
        0 if f.is_some() => attribute_type::FLOAT,
        0 if i.is_some() => attribute_type::INT,
        0 if s.is_some() => attribute_type::STRING,
        0 if t.is_some() => attribute_type::TENSOR,
        0 if !ints.is_empty() => attribute_type::INTS,
        kind => kind,
    };
    match kind {
        attribute_type::FLOAT => Attribute::Float(f64::from(f.unwrap_or_default())),
        attribute_type::INT => Attribute::Int(i.unwrap_or_default()),
        attribute_type::STRING => {
            let text = s.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
            Attribute::Text(text.unwrap_or_default())
        }
        attribute_type::INTS => Attribute::Ints(ints.clone()),
        attribute_type::TENSOR => match t.as_ref().and_then(values::of).as_deref() {
            Some([value]) => Attribute::Float(*value),
            _ => Attribute::Other,
        },
        _ => Attribute::Other,
    }
}

/// What the bodies of a node (of a loop or branch) read from around them.
fn captured(node: &NodeProto) -> Vec<String> {
    let mut bodies: Vec<&GraphProto> = bodies(node).collect();
    let mut next = 0;
    while let Some(&body) = bodies.get(next) {
        bodies.extend(body.node.iter().flat_map(self::bodies));
        next += 1;
    }
    // A name means one tensor in a graph and all bodies in it.
    let mut own = FxHashSet::<&str>::default();
    for body in &bodies {
        own.extend(body.node.iter().flat_map(|node| &node.output).map(String::as_str));
        own.extend(body.input.iter().map(|input| input.name.as_str()));
        own.extend(body.initializer.iter().map(|tensor| tensor.name.as_str()));
    }
    let mut captured = Vec::new();
    for body in &bodies {
        let outputs = body.output.iter().map(|output| &output.name);
        let read = body.node.iter().flat_map(|node| &node.input).chain(outputs);
        captured.extend(read.filter(|name| !name.is_empty() && !own.contains(name.as_str())));
    }
    captured.sort_unstable();
    captured.dedup();
    captured.into_iter().cloned().collect()
}

fn bodies(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        NodeProto {
            op_type: op.to_owned(),
            input: owned(inputs),
            output: owned(outputs),
            ..NodeProto::default()
        }
    }

    fn named(name: &str) -> ValueInfoProto {
        ValueInfoProto { name: name.to_owned(), ..ValueInfoProto::default() }
    }

    fn read(graph: GraphProto) -> Result<Graph, Error> {
        let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
        Graph::from_onnx(model.encode_to_vec())
    }

    #[test]
    fn what_a_body_reads_from_around_it_counts_as_read() {
        let inner = GraphProto {
            node: vec![node("Add", &["seen", "own"], &["inner"])],
            output: vec![named("inner")],
            ..GraphProto::default()
        };
        let mut branch = node("If", &["own"], &["branched"]);
        branch.attribute.push(AttributeProto { g: Some(inner), ..AttributeProto::default() });
        let body = GraphProto {
            node: vec![node("Relu", &["passed"], &["own"]), branch],
            input: vec![named("passed")],
            output: vec![named("branched")],
            ..GraphProto::default()
        };
        let mut outer = node("Loop", &["x"], &["y"]);
        outer.attribute.push(AttributeProto { g: Some(body), ..AttributeProto::default() });
        let graph = read(GraphProto {
            node: vec![outer, node("Relu", &["x"], &["seen"])],
            input: vec![named("x")],
            output: vec![named("y")],
            ..GraphProto::default()
        });
        let graph = graph.unwrap();
        // The Loop comes after the Relu, whose result only its inner body reads.
        assert_eq!(graph.nodes[1].op, "Loop");
        assert_eq!(graph.tensor(graph.nodes[1].captured[0]).name, "seen");
    }

    #[test]
    fn operators_of_others_and_functions_of_the_model_are_not_known() {
        let mut custom = node("Relu", &["x"], &["a"]);
        custom.domain = "my.ops".to_owned();
        let mut contributed = node("FastGelu", &["a"], &["b"]);
        contributed.domain = CONTRIBUTED.to_owned();
        let graph = GraphProto {
            node: vec![custom, contributed, node("Relu", &["b"], &["c"])],
            input: vec![named("x")],
            output: vec![named("c")],
            ..GraphProto::default()
        };
        let function = messages::FunctionProto { name: "Relu".to_owned(), domain: String::new() };
        let model =
            ModelProto { graph: Some(graph), functions: vec![function], ..ModelProto::default() };
        let graph = Graph::from_onnx(model.encode_to_vec()).unwrap();
        let found: Vec<_> =
            graph.nodes.iter().map(|node| (node.op.as_str(), node.origin)).collect();
        let expected = [
            ("my.ops.Relu", Origin::Custom),
            ("com.microsoft.FastGelu", Origin::Known),
            ("Relu", Origin::LocalFunction),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn bytes_that_are_no_onnx_say_so() {
        for bytes in [&b"PK\x03\x04 a zip file"[..], b"<html>", b"\xff\xff\xff"] {
            let error = Graph::from_onnx(bytes.to_vec()).unwrap_err();
            assert!(error.is_invalid_format(), "{error}");
            assert!(error.to_string().starts_with("not a valid ONNX file: "), "{error}");
        }
        assert!(Graph::from_onnx(Vec::new()).unwrap_err().to_string().contains("has no graph"));
    }

    #[test]
    fn dimensions_that_no_tensor_has_are_refused() {
        let dims = |dims: &[i64]| TensorProto {
            name: "w".to_owned(),
            dims: dims.to_vec(),
            ..TensorProto::default()
        };
        for bad in [-1, 1 << 32, i64::MIN, i64::MAX] {
            let graph = GraphProto { initializer: vec![dims(&[2, bad])], ..GraphProto::default() };
            let message = read(graph).unwrap_err().to_string();
            assert!(message.contains(&format!("a dimension of `w` is {bad}")), "{message}");
        }
    }

    #[test]
    fn a_constant_node_is_a_constant() {
        let value = AttributeProto {
            name: "value_ints".to_owned(),
            ints: vec![2, -1],
            ..AttributeProto::default()
        };
        let mut constant = node("Constant", &[], &["c"]);
        constant.attribute.push(value);
        let graph =
            GraphProto { node: vec![constant], output: vec![named("c")], ..GraphProto::default() };
        let graph = read(graph).unwrap();
        let source = &graph.tensor(graph.outputs[0]).source;
        assert_eq!(*source, crate::tensor::Source::Constant(Some(vec![2.0, -1.0])));
    }
}
