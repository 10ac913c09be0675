//! Workloads: models as blocks of nodes, each a line of text.

use std::collections::BTreeMap;

use fusion_cost_model::{Error, FileKind};
use model_graphs::{Dims, Error as GraphError, Graph};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::node_line::NodeLine;

const SCHEMA_VERSION: u32 = 1;

/// More than any model has, and few enough that a typo does not fill the memory.
const MOST_NODES: usize = 100_000;

/// The bytes of all repetitions at most, as a file without `times` would have them.
const MOST_BYTES: usize = 64 << 20;

/// What a block reads of the one before it, and what it leaves to the next one.
const FLOW: [&str; 2] = ["in", "out"];

/// A model, as in a file under `profiles/workloads/`.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it is, and what of the model it leaves out.
    pub description: String,
    /// Its open dimensions, with the numbers that they have unless others are asked for.
    pub dims: BTreeMap<String, u64>,
    /// Its nodes.
    pub graph: Graph,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "kind")]
    _kind: FileKind,
    #[serde(rename = "schema_version")]
    _schema_version: u32,
    name: String,
    description: String,
    /// Of all tensors.
    dtype: String,
    #[serde(default)]
    dims: BTreeMap<String, u64>,
    inputs: Vec<Input>,
    #[serde(default)]
    blocks: Vec<Block>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    name: String,
    shape: Vec<toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    name: String,
    /// How often it is there, each with weights of its own.
    #[serde(default = "once", deserialize_with = "at_least_once")]
    times: usize,
    /// Shapes of weights; a key is a name or several, with spaces between them.
    #[serde(default)]
    weights: BTreeMap<String, Vec<u64>>,
    /// A node on each line.
    nodes: String,
}

const fn once() -> usize {
    1
}

fn at_least_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    match usize::deserialize(deserializer)? {
        0 => Err(D::Error::custom("`times` must be at least 1; leave the block out for none")),
        times => Ok(times),
    }
}

/// A file of a workload that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Not TOML, or not of the format.
    #[error(transparent)]
    Syntax(#[from] toml::de::Error),
    /// Not a workload, or of a format that this version does not know.
    #[error(transparent)]
    Kind(Error),
    /// A number of a dimension that cannot be, or nodes that are not a graph.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// There is nothing to run.
    #[error("it has no {0}, so that there is nothing to run")]
    Empty(&'static str),
    /// More than can be meant.
    #[error("its blocks have more than {MOST_NODES} nodes together; `times` may be a typo")]
    TooLarge,
    /// The same, of texts and weights.
    #[error(
        "its blocks have more than {} MiB of text together; `times` may be a typo",
        MOST_BYTES >> 20
    )]
    TooLong,
    /// A line of a block cannot be read.
    #[error("block `{block}`, line {line} of its nodes: {reason}")]
    Line {
        /// The block.
        block: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A block whose result no line writes.
    #[error("block `{0}`: no line writes `out`, which the next block reads")]
    NoOut(String),
}

impl Workload {
    /// Reads the file of a workload.
    ///
    /// # Errors
    ///
    /// [`WorkloadError`] with the block and line, or the key and line.
    pub fn from_toml(text: &str) -> Result<Self, WorkloadError> {
        FileKind::Workload.expect(text, SCHEMA_VERSION).map_err(WorkloadError::Kind)?;
        let file: File = toml::from_str(text)?;
        let graph = Graph::from_json(file.graph()?.to_string().as_bytes())?;
        let File { name, description, dims, .. } = file;
        let mut checked = Dims::default();
        for (name, size) in &dims {
            checked.set(&format!("{name}={size}"))?;
        }
        Ok(Self { name, description, dims, graph })
    }
}

impl File {
    /// The same in the form of `docs/graph-json.md`.
    fn graph(&self) -> Result<Value, WorkloadError> {
        let [first, ..] = &self.inputs[..] else { return Err(WorkloadError::Empty("inputs")) };
        if self.blocks.is_empty() {
            return Err(WorkloadError::Empty("[[blocks]]"));
        }
        let mut graph = Expansion { dtype: &self.dtype, constants: Vec::new(), nodes: Vec::new() };
        let mut flowing = first.name.clone();
        let mut bytes_left = MOST_BYTES;
        for (index, block) in self.blocks.iter().enumerate() {
            let lines = block.read()?;
            if block.times.saturating_mul(lines.len().max(1)) > MOST_NODES - graph.nodes.len() {
                return Err(WorkloadError::TooLarge);
            }
            let bytes = block.times.saturating_mul(block.bytes(&lines, &self.dtype));
            bytes_left = bytes_left.checked_sub(bytes).ok_or(WorkloadError::TooLong)?;
            for time in 0..block.times {
                let own = Names {
                    prefix: format!("{}{}.{time}.", block.name, index + 1),
                    inputs: &self.inputs,
                    flowing: &flowing,
                };
                flowing = graph.add(block, &lines, &own);
            }
        }
        let tensor =
            |input: &Input| json!({"name": input.name, "dtype": self.dtype, "shape": input.shape});
        Ok(json!({
            "kind": "graph",
            "schema_version": 1,
            "inputs": self.inputs.iter().map(tensor).collect::<Vec<_>>(),
            "constants": graph.constants,
            "nodes": graph.nodes,
            "outputs": [flowing],
        }))
    }
}

impl Block {
    /// About how much one repetition adds to the graph: each name gets that of the block before it.
    fn bytes(&self, lines: &[NodeLine], dtype: &str) -> usize {
        let weights = self.weights.iter().map(|(keys, shape)| {
            let count = keys.split_whitespace().count();
            (count, keys.len() + 8 * count * shape.len())
        });
        let nodes = lines.iter().map(|line| (2 + line.inputs.len(), 0));
        let all = weights.chain(nodes);
        let (names, bytes) = all.fold((0, 0), |(names, bytes), (a, b)| (names + a, bytes + b));
        self.nodes.len() + bytes + names * (self.name.len() + dtype.len() + 16)
    }

    fn read(&self) -> Result<Vec<NodeLine>, WorkloadError> {
        let lines = self.nodes.lines().zip(1..).map(|(text, line)| (text.trim(), line));
        let lines = lines.filter(|(text, _)| !text.is_empty() && !text.starts_with('#'));
        let read = |(text, line): (&str, usize)| {
            text.parse().map_err(|reason| WorkloadError::Line {
                block: self.name.clone(),
                line,
                reason,
            })
        };
        let lines: Vec<NodeLine> = lines.map(read).collect::<Result<_, _>>()?;
        if !lines.iter().any(|line| line.output == FLOW[1]) {
            return Err(WorkloadError::NoOut(self.name.clone()));
        }
        Ok(lines)
    }
}

/// What the tensors of one repetition of a block are called in the graph.
struct Names<'f> {
    prefix: String,
    inputs: &'f [Input],
    /// What the block before it left.
    flowing: &'f str,
}

impl Names<'_> {
    fn of(&self, name: &str) -> String {
        if name == FLOW[0] {
            self.flowing.to_owned()
        } else if name.is_empty() || self.inputs.iter().any(|input| input.name == name) {
            name.to_owned()
        } else {
            format!("{}{name}", self.prefix)
        }
    }
}

/// A graph in the making.
struct Expansion<'f> {
    dtype: &'f str,
    constants: Vec<Value>,
    nodes: Vec<Value>,
}

impl Expansion<'_> {
    /// Adds a repetition of a block; the name of what it leaves to the next one.
    fn add(&mut self, block: &Block, lines: &[NodeLine], names: &Names<'_>) -> String {
        for (keys, shape) in &block.weights {
            for name in keys.split_whitespace() {
                let name = names.of(name);
                self.constants.push(json!({"name": name, "dtype": self.dtype, "shape": shape}));
            }
        }
        for line in lines {
            let inputs: Vec<String> = line
                .inputs
                .iter()
                .map(|input| match input {
                    Value::String(name) => names.of(name),
                    values => self.constant(values, names),
                })
                .collect();
            self.nodes.push(json!({
                "name": names.of(&line.output),
                "op": line.op,
                "inputs": inputs,
                "outputs": [names.of(&line.output)],
                "attributes": line.attributes,
            }));
        }
        names.of(FLOW[1])
    }

    /// A list of whole numbers, such as a shape, or one number; its name.
    fn constant(&mut self, values: &Value, names: &Names<'_>) -> String {
        let name = format!("{}constant{}", names.prefix, self.constants.len());
        self.constants.push(match values {
            Value::Array(list) => {
                json!({"name": name, "dtype": "int64", "shape": [list.len()], "values": list})
            }
            number => json!({"name": name, "dtype": self.dtype, "shape": [], "values": [number]}),
        });
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
kind = "workload"
schema_version = 1
name = "two"
description = "two layers of a residual network"
dtype = "f32"
dims = { batch = 4 }
inputs = [{ name = "x", shape = ["batch", 16] }]

[[blocks]]
name = "layer"
times = 2
weights = { "w" = [16, 16], "b gain shift" = [16] }
nodes = """
# comment
a = Linear(in, w, b)
c = Relu(a)
s = Add(c, in)
out = LayerNormalization(s, gain, shift) axis=-1
"""
"#;

    fn problems(text: &str) -> Vec<String> {
        let workload = Workload::from_toml(text).unwrap();
        let mut dims = Dims::default();
        for (name, size) in &workload.dims {
            dims = dims.with(name.as_str(), *size);
        }
        let nodes = workload.graph.segments(&dims).unwrap().graph_nodes().unwrap();
        nodes.iter().map(|node| node.problem.to_string()).collect()
    }

    #[test]
    fn blocks_follow_each_other_with_weights_of_their_own() {
        let one = ["linear/f32/m4.k16.n16", "bias/f32/m4.n16", "relu/f32/m4.n16", "add/f32/m4.n16"];
        let found = problems(TWO);
        assert_eq!(found.len(), 10, "{found:?}");
        assert_eq!(found[..4], one);
        assert_eq!(found[5..9], one);
        assert!(found[4].starts_with("layer_norm/"), "{found:?}");
    }

    /// Fewer nodes than is too many, each with weights that nobody reads.
    #[test]
    fn weights_do_not_fill_the_memory() {
        let many: Vec<String> = (0..10_000).map(|number| format!("w{number}")).collect();
        let many = TWO.replacen("\"w\" =", &format!("\"w {}\" =", many.join(" ")), 1);
        let many = many.replacen("times = 2", "times = 20000", 1);
        let message = Workload::from_toml(&many).unwrap_err().to_string();
        assert!(message.contains("more than 64 MiB of text"), "{message}");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        for (of, by, reason) in [
            ("kind = \"workload\"", "kind = \"shapes\"", "it is a set of shapes, not a workload"),
            ("schema_version = 1", "schema_version = 2", "schema_version is 2"),
            ("times = 2", "often = 2", "unknown field `often`"),
            ("times = 2", "times = 0", "`times` must be at least 1"),
            ("times = 2", "times = 0", "line 12"),
            ("times = 2", "times = 1000000", "more than 100000 nodes"),
            ("dims = { batch = 4 }", "dims = { batch = 0 }", "batch=0"),
            ("c = Relu(a)", "c Relu(a)", "block `layer`, line 3 of its nodes: "),
            ("out = Layer", "last = Layer", "block `layer`: no line writes `out`"),
            ("Relu(a)", "Relu(z)", "z` is read by"),
            ("[{ name = \"x\", shape = [\"batch\", 16] }]", "[]", "no inputs"),
        ] {
            assert!(TWO.contains(of), "{of}");
            let message = Workload::from_toml(&TWO.replacen(of, by, 1)).unwrap_err().to_string();
            assert!(message.contains(reason), "{by}: {message}");
        }
        let (none, _) = TWO.split_once("[[blocks]]").unwrap();
        let message = Workload::from_toml(none).unwrap_err().to_string();
        assert!(message.contains("no [[blocks]]"), "{message}");
    }
}
