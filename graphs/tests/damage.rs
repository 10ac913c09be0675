//! Damaged and hostile files: nothing panics, and what is read is whole.

use crate::checks;
use std::fmt::Write;

use model_graphs::synthetic::llama_block;
use model_graphs::{Dims, Graph};
use proptest::prelude::*;

const SMALL: &str = r#"{"kind": "graph", "schema_version": 1,
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 4, 8, 8]}],
    "constants": [{"name": "w", "dtype": "f32", "shape": [4, 4, 3, 3]},
                  {"name": "s", "dtype": "int64", "shape": [2], "values": [0, -1]}],
    "nodes": [
        {"op": "Conv", "inputs": ["x", "w"], "outputs": ["a"], "attributes": {"pads": [1, 1, 1, 1]}},
        {"op": "Relu", "inputs": ["a"], "outputs": ["b"]},
        {"op": "Add", "inputs": ["b", "x"], "outputs": ["c"]},
        {"op": "Reshape", "inputs": ["c", "s"], "outputs": ["d"]},
        {"op": "Softmax", "inputs": ["d"], "outputs": ["e"], "attributes": {"axis": -1}}],
    "outputs": ["e"]}"#;

#[test]
fn a_model_cut_at_any_byte_is_an_error_or_a_graph() {
    let model = llama_block();
    for end in 0..model.len() {
        checks::read(&model[..end]);
    }
    for end in 0..SMALL.len() {
        let error = Graph::from_json(&SMALL.as_bytes()[..end]).unwrap_err();
        assert!(error.is_invalid_format(), "{error}");
    }
    checks::read(SMALL.as_bytes());
}

/// Every byte of the first and last part of a model set to the ends of what it can be.
#[test]
fn a_model_with_any_byte_changed_is_an_error_or_a_graph() {
    let model = llama_block();
    let places = (0..model.len()).filter(|at| at % 13 == 0 || *at < 200 || at + 200 > model.len());
    for at in places {
        for value in [0, 0x7f, 0xff] {
            let mut changed = model.clone();
            changed[at] = value;
            checks::read(&changed);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_changed_model_is_an_error_or_a_graph(
        choices in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        checks::read(&checks::changed_model(&choices));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        checks::read(&bytes);
    }

    #[test]
    fn a_changed_json_is_an_error_or_a_graph(
        changes in prop::collection::vec((0..SMALL.len(), "[\\[\\]{}\",:0-9a-e.-]{0,3}"), 0..4),
    ) {
        let mut text = SMALL.to_owned();
        for (at, by) in changes {
            let at = at.min(text.len().saturating_sub(1));
            text.replace_range(at..=at, &by);
        }
        checks::read(text.as_bytes());
    }

    /// Random graphs of operators that have rules, with random wiring, shapes and attributes.
    #[test]
    fn random_graphs_are_read(
        ops in prop::collection::vec(
            (prop::sample::select(OPS), any::<[prop::sample::Index; 3]>(), 1_usize..4, -3_i64..4),
            1..25,
        ),
        dims in prop::collection::vec(prop::collection::vec(1_u64..5, 0..5), 3),
    ) {
        let mut names: Vec<String> = vec!["x0".into(), "x1".into(), "w0".into(), "s".into()];
        let mut nodes = String::new();
        let mut ends: Vec<String> = Vec::new();
        for (index, (op, picks, inputs, number)) in ops.iter().enumerate() {
            let read: Vec<String> =
                picks[..*inputs].iter().map(|pick| format!("\"{}\"", pick.get(&names))).collect();
            let comma = if index == 0 { "" } else { "," };
            let _ = write!(
                nodes,
                "{comma}{{\"op\": \"{op}\", \"inputs\": [{}], \"outputs\": [\"y{index}\"], \
                 \"attributes\": {{\"axis\": {number}, \"perm\": [1, 0], \"alpha\": 0.01, \
                 \"kernel_shape\": [{number}, 1], \"transB\": {number}}}}}",
                read.join(", "),
            );
            ends.retain(|end| !read.contains(end));
            ends.push(format!("\"y{index}\""));
            names.push(format!("y{index}"));
        }
        let tensor = |name: &str, shape: &[u64]| {
            format!("{{\"name\": \"{name}\", \"dtype\": \"f32\", \"shape\": {shape:?}}}")
        };
        let text = format!(
            "{{\"kind\": \"graph\", \"schema_version\": 1, \"inputs\": [{}, {}], \
             \"constants\": [{}, {{\"name\": \"s\", \"dtype\": \"int64\", \"shape\": [2], \
             \"values\": [0, 1]}}], \"nodes\": [{nodes}], \"outputs\": [{}]}}",
            tensor("x0", &dims[0]),
            tensor("x1", &dims[1]),
            tensor("w0", &dims[2]),
            // Every node is needed.
            ends.join(", "),
        );
        prop_assert!(Graph::from_json(text.as_bytes()).is_ok(), "{}", text);
        checks::read(text.as_bytes());
    }
}

/// Operators of every rule.
const OPS: &[&str] = &[
    "Add",
    "Attention",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "ConstantOfShape",
    "Conv",
    "Div",
    "Dropout",
    "Erf",
    "Expand",
    "Flatten",
    "Gather",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "Identity",
    "LayerNormalization",
    "LeakyRelu",
    "Linear",
    "MatMul",
    "MaxPool",
    "Mul",
    "Nothing",
    "Pow",
    "RMSNormalization",
    "Range",
    "ReduceMean",
    "Relu",
    "Reshape",
    "Shape",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Tanh",
    "Transpose",
    "Unsqueeze",
    "Where",
    "com.microsoft.BiasGelu",
    "com.microsoft.SkipLayerNormalization",
];

fn error_of(nodes: &str, shape: &str) -> String {
    let text = format!(
        "{{\"kind\": \"graph\", \"schema_version\": 1, \"inputs\": [{{\"name\": \"x\", \"dtype\": \
         \"f32\", \"shape\": {shape}}}], \"nodes\": [{nodes}], \"outputs\": [\"x\"]}}"
    );
    let graph = Graph::from_json(text.as_bytes());
    graph.and_then(|graph| graph.segments(&Dims::default())).unwrap_err().to_string()
}

#[test]
fn shapes_that_fill_the_memory_are_refused() {
    let large = error_of("", "[4294967295, 4294967295, 2]");
    assert!(large.contains("whose elements 63 bits cannot count"), "{large}");
    // Each of these doubles the dimensions of the one before.
    let mut nodes = r#"{"op": "Gather", "inputs": ["x", "x"], "outputs": ["y0"]}"#.to_owned();
    for index in 0..60 {
        let next = index + 1;
        let _ = write!(
            nodes,
            ", {{\"op\": \"Gather\", \"inputs\": [\"y{index}\", \"y{index}\"], \"outputs\": \
             [\"y{next}\"]}}"
        );
    }
    let deep = error_of(&nodes, "[1, 1, 1]");
    assert!(deep.contains("dimensions; at most 64 are read"), "{deep}");
}

/// A chain of nodes as long as a file may hold takes no stack and no time to speak of.
#[test]
fn a_long_chain_is_read() {
    let mut nodes = String::new();
    for index in 0..20_000 {
        let from = if index == 0 { "x".to_owned() } else { format!("y{}", index - 1) };
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(
            nodes,
            "{comma}{{\"op\": \"Mul\", \"inputs\": [\"{from}\", \"h\"], \"outputs\": [\"y{index}\"]}}"
        );
    }
    let text = format!(
        "{{\"kind\": \"graph\", \"schema_version\": 1, \"inputs\": [{{\"name\": \"x\", \"dtype\": \
         \"f32\", \"shape\": [8, 8]}}], \"constants\": [{{\"name\": \"h\", \"dtype\": \"f32\", \
         \"shape\": [], \"values\": [0.5]}}], \"nodes\": [{nodes}], \"outputs\": [\"y19999\"]}}"
    );
    let graph = Graph::from_json(text.as_bytes()).unwrap();
    let found = graph.segments(&Dims::default()).unwrap();
    assert_eq!(found.segments().len(), 1);
    assert_eq!(found.segments()[0].ops().len(), 20_000);
    checks::whole(&found);
}
