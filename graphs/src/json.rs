//! Graphs as JSON: `docs/graph-json.md` describes the form.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use crate::attribute::{Attribute, Attributes};
use crate::builder::{Builder, NamedNode};
use crate::dims::{Dim, MAX_DIM};
use crate::error::Error;
use crate::graph::{Graph, Origin};
use crate::tensor::{Element, MAX_VALUES};

const FORMAT: &str = "JSON graph";

/// The version of the form.
const SCHEMA_VERSION: u64 = 1;

/// The version of ONNX's operators whose meaning and attributes the nodes have.
const OPSET: u64 = 21;

/// What a file says that it is, before anything else of it is read.
#[derive(Deserialize)]
struct Head {
    kind: Option<String>,
    schema_version: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: de::IgnoredAny,
    #[serde(rename = "schema_version")]
    _schema_version: de::IgnoredAny,
    inputs: Vec<DeclaredTensor>,
    #[serde(default)]
    constants: Vec<Constant>,
    nodes: Vec<FileNode>,
    #[serde(default)]
    tensors: Vec<DeclaredTensor>,
    outputs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeclaredTensor {
    name: String,
    dtype: String,
    shape: Vec<FileDim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Constant {
    name: String,
    dtype: String,
    shape: Vec<FileSize>,
    values: Option<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileNode {
    #[serde(default)]
    name: String,
    op: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    #[serde(default)]
    attributes: BTreeMap<String, FileAttribute>,
}

struct FileDim(Dim);
struct FileSize(u64);
struct FileAttribute(Attribute);

impl Graph {
    /// Reads the JSON of a graph.
    ///
    /// # Errors
    ///
    /// When it is not such JSON ([`Error::is_invalid_format`]), or what it says is not a graph
    /// ([`Error::is_invalid_graph`]).
    pub fn from_json(text: &[u8]) -> Result<Self, Error> {
        let fail = |error: serde_json::Error| Error::format(FORMAT, error);
        // Some editors put a byte order mark first, which JSON does not allow.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let head: Head = serde_json::from_slice(text).map_err(fail)?;
        if head.kind.as_deref() != Some("graph") {
            return Err(Error::format(FORMAT, "it has no \"kind\": \"graph\" at its top level"));
        }
        if head.schema_version != Some(SCHEMA_VERSION) {
            let found = head.schema_version.map_or("missing".to_owned(), |found| found.to_string());
            return Err(Error::format(
                FORMAT,
                format!("its schema_version is {found}, and this version reads {SCHEMA_VERSION}"),
            ));
        }
        build(serde_json::from_slice(text).map_err(fail)?)
    }
}

fn build(file: File) -> Result<Graph, Error> {
    let mut builder = Builder::default();
    for Constant { name, dtype, shape, values } in file.constants {
        let shape: Vec<u64> = shape.into_iter().map(|FileSize(size)| size).collect();
        let element = element(&name, &dtype)?;
        let values = values.map(|values| checked_values(&name, &shape, values)).transpose()?;
        builder.constant(&name, Some(element), shape, values)?;
    }
    for DeclaredTensor { name, dtype, shape } in file.inputs {
        let element = element(&name, &dtype)?;
        builder.input(&name, Some(element), Some(dims(shape)))?;
    }
    for FileNode { name, op, inputs, outputs, attributes } in file.nodes {
        let attributes: Attributes =
            attributes.into_iter().map(|(name, FileAttribute(value))| (name, value)).collect();
        let (origin, captured) = (Origin::Known, Vec::new());
        builder.node(NamedNode { name, op, origin, inputs, captured, outputs, attributes })?;
    }
    for DeclaredTensor { name, dtype, shape } in file.tensors {
        let element = element(&name, &dtype)?;
        builder.declare(&name, Some(element), Some(dims(shape)));
    }
    for output in file.outputs {
        builder.output(&output);
    }
    builder.finish(OPSET)
}

fn element(name: &str, dtype: &str) -> Result<Element, Error> {
    Element::parse(dtype).map_err(|error| Error::format(FORMAT, format!("`{name}`: {error}")))
}

fn dims(shape: Vec<FileDim>) -> Vec<Dim> {
    shape.into_iter().map(|FileDim(dim)| dim).collect()
}

/// The elements of a constant, if they are as many as its shape says, and few.
fn checked_values(name: &str, shape: &[u64], values: Vec<f64>) -> Result<Vec<f64>, Error> {
    let elements = shape.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
    if elements != Some(values.len() as u64) {
        let (given, shape) = (values.len(), crate::shapes::text(shape));
        return Err(Error::format(
            FORMAT,
            format!("`{name}` has {given} values, but its shape is {shape}; leave out the values"),
        ));
    }
    if values.len() > MAX_VALUES {
        return Err(Error::format(
            FORMAT,
            format!("`{name}` has {} values; at most {MAX_VALUES} are read", values.len()),
        ));
    }
    Ok(values)
}

impl<'de> Deserialize<'de> for FileDim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DimVisitor).map(Self)
    }
}

impl<'de> Deserialize<'de> for FileSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let size = u64::deserialize(deserializer)?;
        if size > MAX_DIM {
            return Err(too_large(size));
        }
        Ok(Self(size))
    }
}

impl<'de> Deserialize<'de> for FileAttribute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AttributeVisitor).map(Self)
    }
}

fn too_large<E: de::Error>(size: u64) -> E {
    E::custom(format!("a dimension of {size} is larger than {MAX_DIM}"))
}

struct DimVisitor;

impl Visitor<'_> for DimVisitor {
    type Value = Dim;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of at least 1, or the name of a dimension")
    }

    fn visit_u64<E: de::Error>(self, size: u64) -> Result<Dim, E> {
        match size {
            0 => Err(E::invalid_value(de::Unexpected::Unsigned(0), &self)),
            1..=MAX_DIM => Ok(Dim::Known(size)),
            _ => Err(too_large(size)),
        }
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Dim, E> {
        match name {
            "" => Err(E::invalid_value(de::Unexpected::Str(""), &self)),
            name => Ok(Dim::Named(name.to_owned())),
        }
    }
}

struct AttributeVisitor;

impl<'de> Visitor<'de> for AttributeVisitor {
    type Value = Attribute;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, a boolean, or a list of whole numbers")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Attribute, E> {
        Ok(Attribute::Int(i64::from(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Attribute, E> {
        Ok(Attribute::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Attribute, E> {
        let too_large = |_| E::invalid_value(de::Unexpected::Unsigned(value), &"a 64-bit number");
        i64::try_from(value).map(Attribute::Int).map_err(too_large)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Attribute, E> {
        Ok(Attribute::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Attribute, E> {
        Ok(Attribute::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Attribute, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Attribute::Ints(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small graph, with something of it replaced.
    fn error(of: &str, by: &str) -> String {
        let text = r#"{"kind": "graph", "schema_version": 1,
            "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 64]}],
            "constants": [{"name": "w", "dtype": "f32", "shape": [64, 32]}],
            "nodes": [{"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"],
                       "attributes": {"alpha": 1.5}}],
            "outputs": ["y"]}"#;
        assert!(Graph::from_json(text.as_bytes()).is_ok() && text.contains(of), "{of}");
        Graph::from_json(text.replacen(of, by, 1).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (of, by, reason) in [
            ("{\"kind\"", "", "not a valid JSON graph: "),
            ("\"kind\": \"graph\"", "\"kind\": \"model\"", "it has no \"kind\": \"graph\""),
            ("version\": 1", "version\": 2", "its schema_version is 2, and this version reads 1"),
            ("\"op\":", "\"op_type\":", "unknown field `op_type`, expected one of"),
            ("\"batch\"", "0", "expected a whole number of at least 1, or the name"),
            ("\"batch\"", "\"\"", "expected a whole number of at least 1, or the name"),
            ("\"batch\"", "-3", "expected a whole number of at least 1, or the name"),
            ("\"batch\"", "8589934592", "a dimension of 8589934592 is larger than"),
            ("[64, 32]", "[64, 18446744073709551616]", "line 3"),
            ("[64, 32]", "[64, 8589934592]", "a dimension of 8589934592 is larger than"),
            ("[64, 32]", "[2], \"values\": [1]", "`w` has 1 values, but its shape is [2]"),
            (
                "\"dtype\": \"f32\"",
                "\"dtype\": \"f31\"",
                "not a valid JSON graph: `x`: unknown dtype `f31`",
            ),
            ("1.5", "{\"a\": 1}", "expected a number, a text, a boolean, or a list"),
            ("1.5", "[1.5]", "line 5"),
            ("1.5", "18446744073709551615", "a 64-bit number"),
            ("[\"x\", \"w\"]", "[\"x\", \"v\"]", "`v` is read by a node (MatMul), but no input"),
            ("\"outputs\": [\"y\"]}", "\"outputs\": [\"z\"]}", "`z` is an output of the graph"),
        ] {
            let message = error(of, by);
            assert!(message.contains(reason), "{by}: {message}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let text = "[".repeat(100_000);
        assert!(Graph::from_json(text.as_bytes()).unwrap_err().is_invalid_format());
        let attribute = "[".repeat(100_000);
        assert!(error("1.5", &attribute).contains("JSON graph"));
    }
}
