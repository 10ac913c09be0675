//! Graphs of a few nodes, and what they are recognised as.

use model_graphs::{Dims, Graph, Segments};

use crate::checks;

/// A graph on a few tensors: `x [8, 16, 64]`, `y` and `z` alike, an image `i [2, 8, 28, 28]`, and
/// constants: `w [64, 32]`, `b [32]`, `v [64]`, `f [16, 8, 3, 3]`, and numbers named by their value.
pub(crate) fn found(nodes: &str, outputs: &str) -> Segments {
    let numbers: Vec<String> = NUMBERS
        .iter()
        .map(|number| {
            format!(
                "{{\"name\": \"{number}\", \"dtype\": \"f32\", \"shape\": [], \"values\": \
                 [{number}]}}"
            )
        })
        .collect();
    let lists: Vec<String> = LISTS
        .iter()
        .map(|(name, values)| {
            let count = values.len();
            format!(
                "{{\"name\": \"{name}\", \"dtype\": \"int64\", \"shape\": [{count}], \"values\": \
                 {values:?}}}"
            )
        })
        .collect();
    let tensor = |name: &str, shape: &[u64]| {
        format!("{{\"name\": \"{name}\", \"dtype\": \"f32\", \"shape\": {shape:?}}}")
    };
    let list = |tensors: &[(&str, &[u64])]| {
        tensors.iter().map(|(name, shape)| tensor(name, shape)).collect::<Vec<_>>().join(", ")
    };
    let text = format!(
        "{{\"kind\": \"graph\", \"schema_version\": 1, \"inputs\": [{}], \"constants\": [{}, {}, \
         {}], \"nodes\": [{}], \"outputs\": [{outputs}]}}",
        list(INPUTS),
        list(CONSTANTS),
        numbers.join(", "),
        lists.join(", "),
        nodes.trim_end().trim_end_matches(','),
    );
    let graph = Graph::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found = graph.segments(&Dims::default()).unwrap_or_else(|error| panic!("{error}: {text}"));
    checks::whole(&found);
    found
}

const NUMBERS: [&str; 10] =
    ["0", "0.044715", "0.25", "0.5", "0.79788456", "1", "1.41421356", "2", "3", "6"];
const LISTS: [(&str, &[i64]); 7] = [
    ("twice", &[1, 1, 2, 1, 1]),
    ("heads", &[0, 4, -1, 16]),
    ("split", &[0, 0, 4, 16]),
    ("join", &[0, 0, 64]),
    ("zero", &[0]),
    ("two", &[2]),
    ("minus", &[-1]),
];
const INPUTS: &[(&str, &[u64])] = &[
    ("x", &[8, 16, 64]),
    ("y", &[8, 16, 64]),
    ("z", &[8, 16, 64]),
    ("i", &[2, 8, 28, 28]),
    ("q", &[8, 4, 16, 16]),
    ("k", &[8, 4, 20, 16]),
    ("pv", &[8, 4, 20, 16]),
    ("gq", &[8, 4, 20, 16]),
    ("gk", &[8, 2, 20, 16]),
    ("gv", &[8, 2, 20, 16]),
    ("ok", &[8, 1, 20, 16]),
    ("ov", &[8, 1, 20, 16]),
    ("mask", &[8, 1, 1, 20]),
    ("m", &[128, 64]),
    ("y2", &[8, 64, 16]),
];
const CONSTANTS: &[(&str, &[u64])] = &[
    ("w", &[64, 32]),
    ("t", &[32, 64]),
    ("b", &[32]),
    ("v", &[64]),
    ("c", &[64]),
    ("f", &[16, 8, 3, 3]),
    ("g", &[16]),
    ("h", &[1, 16, 1, 1]),
    ("l", &[32, 128]),
];

/// Nodes as `Op(inputs) -> output {attributes}`, one a line.
pub(crate) fn nodes(lines: &[&str]) -> String {
    let node = |line: &&str| {
        let (op, rest) = line.split_once('(').unwrap();
        let (inputs, rest) = rest.split_once(") -> ").unwrap();
        let (output, attributes) = rest.split_once(' ').unwrap_or((rest, "{}"));
        let inputs: Vec<String> = inputs.split(", ").map(|input| format!("\"{input}\"")).collect();
        format!(
            "{{\"op\": \"{op}\", \"inputs\": [{}], \"outputs\": [\"{output}\"], \"attributes\": \
             {attributes}}},",
            inputs.join(", ")
        )
    };
    lines.iter().map(node).collect()
}

/// The largest kernels of a graph with one node on each line; the last node writes the result.
pub(crate) fn kernels(lines: &[&str]) -> Vec<String> {
    let found = found(&nodes(lines), "\"o\"");
    let kernels = found.segments().iter().flat_map(|segment| segment.largest_kernels());
    kernels.map(|kernel| kernel.to_string()).collect()
}

#[track_caller]
pub(crate) fn assert_kernels(lines: &[&str], expected: &[&str]) {
    assert_eq!(kernels(lines), expected, "{lines:#?}");
}

/// Why the only node is opaque.
#[track_caller]
pub(crate) fn assert_opaque(line: &str, reason: &str) {
    let found = found(&nodes(&[line]), "\"o\"");
    assert!(found.segments().is_empty(), "{found:?}");
    assert!(found.opaque()[0].reason.contains(reason), "{line}: {}", found.opaque()[0].reason);
}

/// What is found in a graph of other tensors, each as `name dtype [sizes]`. The numbers are constants
/// too.
#[track_caller]
pub(crate) fn found_in(inputs: &[&str], constants: &[&str], lines: &[&str]) -> Segments {
    let tensor = |text: &&str| {
        let (name, rest) = text.split_once(' ').unwrap();
        let (dtype, shape) = rest.split_once(' ').unwrap();
        format!("{{\"name\": \"{name}\", \"dtype\": \"{dtype}\", \"shape\": {shape}}}")
    };
    let list = |tensors: &[&str]| tensors.iter().map(tensor).collect::<Vec<_>>();
    let number = |number: &&str| {
        format!(
            "{{\"name\": \"{number}\", \"dtype\": \"f32\", \"shape\": [], \"values\": [{number}]}}"
        )
    };
    let constants: Vec<String> =
        list(constants).into_iter().chain(NUMBERS.iter().map(number)).collect();
    let text = format!(
        "{{\"kind\": \"graph\", \"schema_version\": 1, \"inputs\": [{}], \"constants\": [{}], \
         \"nodes\": [{}], \"outputs\": [\"o\"]}}",
        list(inputs).join(", "),
        constants.join(", "),
        nodes(lines).trim_end_matches(','),
    );
    let graph = Graph::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found = graph.segments(&Dims::default()).unwrap_or_else(|error| panic!("{error}: {text}"));
    checks::whole(&found);
    found
}

/// Of the same, the largest kernels, and then the opaque nodes as `Op: reason`.
#[track_caller]
pub(crate) fn assert_found(inputs: &[&str], constants: &[&str], lines: &[&str], expected: &[&str]) {
    let found = found_in(inputs, constants, lines);
    let kernels = found.segments().iter().flat_map(|segment| segment.largest_kernels());
    let opaque = found.opaque().iter().map(|node| format!("{}: {}", node.op, node.reason));
    let found: Vec<String> = kernels.map(|kernel| kernel.to_string()).chain(opaque).collect();
    assert_eq!(found, expected, "{lines:#?}");
}
