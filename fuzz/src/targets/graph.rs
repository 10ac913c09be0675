//! Graphs of models, in ONNX and in JSON.

use model_graphs::Graph;
use model_graphs::synthetic::llama_block;

use super::random_seeds;
use crate::Target;

#[path = "../../../graphs/tests/checks/mod.rs"]
pub(super) mod checks;

/// Kernels cover the segments, and edges lead to parts that exist.
pub(super) const GRAPH: Target = Target {
    name: "graph",
    seeds: || {
        let small = include_bytes!("../../../graphs/tests/data/small.onnx");
        vec![JSON.into(), small.into(), llama_block()]
    },
    run,
};

/// The same of changes to one place after the other of an ONNX file.
pub(super) const GRAPH_CHANGED: Target = Target {
    name: "graph_changed",
    seeds: || random_seeds(5..37),
    run: |bytes| run(&checks::changed_model(bytes)),
};

fn run(bytes: &[u8]) -> String {
    checks::read(bytes);
    match Graph::from_bytes(bytes.to_vec()) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    }
}

/// The JSON of a graph.
const JSON: &str = r#"{"kind": "graph", "schema_version": 1,
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 64]}],
    "constants": [{"name": "w", "dtype": "f32", "shape": [64, 32]},
                  {"name": "s", "dtype": "int64", "shape": [2], "values": [0, -1]}],
    "nodes": [{"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]},
              {"op": "LeakyRelu", "inputs": ["y"], "outputs": ["z"], "attributes": {"alpha": 0.01}},
              {"op": "Reshape", "inputs": ["z", "s"], "outputs": ["r"]},
              {"op": "Softmax", "inputs": ["r"], "outputs": ["e"], "attributes": {"axis": -1}}],
    "outputs": ["e"]}"#;
