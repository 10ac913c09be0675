//! Writes the seeds of all targets: `cargo run --example seeds` in this folder.
//!
//! Traces of every model and every oddity for `loader`, their metadata for `metadata`, the examples
//! of the classifier's families for `classify`, an input of each kind for `predicted`, models for
//! `graph`, and random choices for the targets that make their inputs by themselves.

use std::error::Error;
use std::fs;
use std::path::Path;

use kernel_traces::classify::families;
use kernel_traces::synthetic::{self, Launching, Model, Oddity, Plan};
use model_graphs::synthetic::{bert_base, llama_block, resnet50};

/// An input of each kind that a comparison of predicted and measured kernels has.
const PREDICTED: [&str; 5] = [
    r#"[('MatMulV2', 22.77), ("it's\x41", -8e-05), ]"#,
    "\u{feff}Type,Duration(us)\t,Start Time(us)\r\nMatMul,1.5,1\r\nhcom_a_,2\t,1000.25\t\r\n",
    "file,rank,start_ns,duration_ns,kind,class,label,name\na,0,1,1500,kernel,GEMM,GEMM,k\n",
    "operator_mappings:\n  aten.mm: {kernel_type: MatMul}\n  aten.view: {zero_cost: yes}\n",
    r#"{"traceEvents": [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "empirical"}},
        {"ph": "X", "name": "all_reduce", "pid": 1, "dur": 31, "args": {"kernel_type": "A,B",
        "sub_kernel_durations": "[('A', 22.77), ('B', 8.29)]"}}]}"#,
];

/// The JSON of a graph.
const GRAPH: &str = r#"{"kind": "graph", "schema_version": 1,
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 64]}],
    "constants": [{"name": "w", "dtype": "f32", "shape": [64, 32]}],
    "nodes": [{"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]},
              {"op": "LeakyRelu", "inputs": ["y"], "outputs": ["z"], "attributes": {"alpha": 0.01}}],
    "outputs": ["z"]}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = |target: &str, name: &str, bytes: &[u8]| -> Result<(), Box<dyn Error>> {
        let folder = corpus.join(target);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(name), bytes)?)
    };
    let small = Plan { layers: 1, steps: 1, ..Plan::default() };
    let models = Model::ALL.map(|model| Plan { model, ..small.clone() });
    let launching = Launching::ALL.map(|launching| Plan { launching, ..small.clone() });
    let oddities = Oddity::ALL.map(|oddity| Plan { oddities: vec![oddity], ..small.clone() });
    let plans = models.into_iter().chain(launching).chain(oddities);
    for (number, plan) in plans.enumerate() {
        let (text, _) = synthetic::text(&plan)?;
        write("loader", &format!("trace{number}"), &text)?;
        let members = text
            .split(|&byte| byte == b'[')
            .nth(1)
            .map(|devices| [b"\"deviceProperties\": [", devices].concat());
        write("metadata", &format!("members{number}"), &members.unwrap_or_default())?;
    }
    for (number, (_, _, example)) in families().enumerate() {
        write("classify", &format!("name{number}"), example.as_bytes())?;
    }
    for (number, input) in PREDICTED.into_iter().enumerate() {
        write("predicted", &format!("input{number}"), input.as_bytes())?;
    }
    for (number, model) in [bert_base(), llama_block(), resnet50()].into_iter().enumerate() {
        write("graph", &format!("model{number}"), &model)?;
    }
    write("graph", "json", GRAPH.as_bytes())?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 0..64 {
        let byte = |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let bytes: Vec<u8> = (0..13 + number).map(byte).collect();
        for target in ["loader_mutated", "index", "graph_changed"] {
            write(target, &format!("choices{number}"), &bytes)?;
        }
    }
    Ok(())
}
