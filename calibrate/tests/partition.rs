//! `calibrate partition` and `calibrate validate` as a user meets them.

use std::path::Path;

use assert_cmd::Command;
use model_graphs::synthetic::{bert_base, resnet50};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

/// Two linear layers, the second with a residual connection, and an op that the vocabulary lacks.
const GRAPH: &str = r#"{
  "kind": "graph", "schema_version": 1,
  "inputs": [
    {"name": "x", "dtype": "f32", "shape": ["batch", 64]},
    {"name": "r", "dtype": "f32", "shape": ["batch", 1024]}
  ],
  "constants": [
    {"name": "w1", "dtype": "f32", "shape": [64, 256]},
    {"name": "b1", "dtype": "f32", "shape": [256]},
    {"name": "w2", "dtype": "f32", "shape": [256, 1024]}
  ],
  "nodes": [
    {"op": "MatMul", "name": "up", "inputs": ["x", "w1"], "outputs": ["a"]},
    {"op": "Add", "name": "bias", "inputs": ["a", "b1"], "outputs": ["b"]},
    {"op": "Relu", "name": "relu", "inputs": ["b"], "outputs": ["c"]},
    {"op": "MatMul", "name": "down", "inputs": ["c", "w2"], "outputs": ["d"]},
    {"op": "Add", "name": "residual", "inputs": ["d", "r"], "outputs": ["e"]},
    {"op": "Relu", "name": "out", "inputs": ["e"], "outputs": ["f"]},
    {"op": "CumSum", "name": "odd", "inputs": ["f"], "outputs": ["g"]}
  ],
  "outputs": ["g"]
}"#;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("e.toml", EXAMPLE.as_bytes());
    write("g.json", GRAPH.as_bytes());
    folder
}

fn calibrate(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).args(args).env_remove("COLUMNS");
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

const PARTITION: [&str; 6] = ["partition", "g.json", "--profile", "e.toml", "--dim", "batch=4096"];

#[test]
fn a_split_fits_the_page_and_a_pipe_gets_every_column() {
    let folder = folder();
    let text = stdout(calibrate(folder.path(), &PARTITION).env("COLUMNS", "80"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("partition_80", text);
    insta::assert_snapshot!(
        "partition_unlimited",
        stdout(&mut calibrate(folder.path(), &PARTITION))
    );
}

#[test]
fn a_split_says_where_nothing_is_known() {
    let folder = folder();
    // Of bf16 the file has neither records nor ceilings.
    std::fs::write(folder.path().join("h.json"), GRAPH.replace("f32", "bf16")).unwrap();
    let mut args = PARTITION;
    args[1] = "h.json";
    let text = stdout(&mut calibrate(folder.path(), &args));
    assert!(text.contains("unknown     `always fused` keeps ops apart"), "{text}");
}

#[test]
fn a_split_as_json_and_csv() {
    let folder = folder();
    let text = stdout(calibrate(folder.path(), &PARTITION).arg("--json"));
    let split: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(split["dims"]["batch"], 4096);
    assert_eq!(split["ops"], 6);
    let kernels = split["kernels"].as_array().unwrap();
    assert_eq!(split["splits"]["best"]["kernels"], kernels.len());
    assert_eq!(split["splits"]["never"]["kernels"], 6);
    assert_eq!(split["opaque"][0]["op"], "CumSum");
    let mut nodes: Vec<&str> = Vec::new();
    for kernel in kernels {
        nodes.extend(kernel["nodes"].as_array().unwrap().iter().map(|node| node.as_str().unwrap()));
        assert!(kernel["fused_ms"]["value"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(nodes, ["up", "bias", "relu", "down", "residual", "out"]);
    let sum: f64 = kernels.iter().map(|kernel| kernel["fused_ms"]["value"].as_f64().unwrap()).sum();
    let total = split["splits"]["best"]["total_ms"]["value"].as_f64().unwrap();
    assert!((total / sum - 1.0).abs() < 1e-9, "{total} {sum}");
    let counts = |key: &str| {
        let evidence = split["evidence"].as_array().unwrap().iter();
        evidence.map(|known| known[key].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(counts("chosen"), kernels.len() as u64);
    assert!(counts("possible") > counts("chosen"));

    calibrate(folder.path(), &PARTITION)
        .args(["--format", "csv", "--output", "s.csv"])
        .assert()
        .success()
        .stdout("")
        .stderr(contains("wrote s.csv"));
    let csv = std::fs::read_to_string(folder.path().join("s.csv")).unwrap();
    let mut lines = csv.lines();
    let header = lines.next().unwrap();
    assert!(header.starts_with("problem,nodes,evidence,"), "{header}");
    assert_eq!(lines.clone().count(), kernels.len());
    let columns = header.split(',').count();
    assert!(lines.all(|line| line.split(',').count() == columns), "{csv}");
}

#[test]
fn models_in_onnx() {
    let folder = folder();
    std::fs::write(folder.path().join("resnet50.onnx"), resnet50()).unwrap();
    std::fs::write(folder.path().join("bert.onnx"), bert_base()).unwrap();
    let resnet = ["partition", "resnet50.onnx", "--profile", "e.toml", "--dim", "batch=1"];
    let text = stdout(calibrate(folder.path(), &resnet).env("COLUMNS", "80"));
    assert!(text.contains("conv_bn_relu/f32") && text.contains("GlobalAveragePool"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let bert = ["partition", "bert.onnx", "--profile", "e.toml", "--dim", "batch=1"];
    // One dimension is missing.
    calibrate(folder.path(), &bert)
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("leaves dimensions open: `sequence`").and(contains("--dim sequence=8")));
    let text = stdout(calibrate(folder.path(), &bert).args(["--dim", "sequence=128"]));
    assert!(text.contains(" x36") && text.contains("Gather"), "{text}");
}

#[test]
fn wrong_questions() {
    let folder = folder();
    let partition = |more: &[&str]| {
        let mut command = calibrate(folder.path(), &PARTITION[..4]);
        command.args(more);
        command
    };
    for (args, message) in [
        (&["--dim", "batch"][..], "it has no `=`"),
        (&["--dim", "batch=0"], "no elements"),
        (&["--dim", "batch=1", "--dim", "batch=3"], "twice, as batch=1 and batch=3"),
        (&["--dim", "batch=8", "--dim", "bacht=8"], "did you mean `batch`"),
        (&["--dim", "batch=8", "--threads", "64"], "the file has no records of cpu, 64 threads"),
        (&["--dim", "batch=8", "--threshold", "0"], "it must be a positive number"),
        (&["--dim", "batch=8", "--format", "html"], "[possible values: text, csv, json]"),
        (&["--dim", "batch=8", "--output", "no/s.csv"], "the folder no does not exist"),
    ] {
        partition(args).assert().code(2).stdout("").stderr(contains(message));
    }
    let of_file =
        |model: &str| calibrate(folder.path(), &["partition", model, "--profile", "e.toml"]);
    of_file("none.onnx").assert().code(1).stderr(contains("cannot read none.onnx"));
    of_file("e.toml").assert().code(1).stderr(contains("e.toml: not a valid ONNX"));
}

#[test]
fn a_file_is_validated_by_its_own_records() {
    let folder = folder();
    let text = stdout(calibrate(folder.path(), &["validate", "e.toml"]).env("COLUMNS", "80"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!("validate_80", text);
    insta::assert_snapshot!(
        "validate_problem",
        stdout(&mut calibrate(folder.path(), &["validate", "e.toml", "--leave-out", "problem"]))
    );
    let text = stdout(&mut calibrate(folder.path(), &["validate", "e.toml", "--json"]));
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let records = found["records"].as_array().unwrap().len();
    assert_eq!(found["all"]["records"], records);
    let text = stdout(&mut calibrate(folder.path(), &["validate", "e.toml", "--format", "csv"]));
    assert_eq!(text.lines().count(), records + 1);
}

#[test]
fn a_limit_of_the_regret_is_a_test() {
    let folder = folder();
    let validate = |more: &[&str]| {
        let mut command = calibrate(folder.path(), &["validate", "e.toml"]);
        command.args(more);
        command
    };
    validate(&["--max-regret", "100%"]).assert().code(0);
    // A threshold that fuses nothing loses what fusing gains.
    validate(&["--threshold", "50", "--max-regret", "0.1%"])
        .assert()
        .code(4)
        .stderr(contains("regression: the regret is").and(contains("above the limit of 0.10 %")));
    // One that is just above the limit is not shown as the limit itself.
    let text = stdout(&mut validate(&["--threshold", "50", "--json"]));
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let regret = found["all"]["regret"]["decided"].as_f64().unwrap();
    let limit = format!("{}", 100.0 * (regret - 1e-9));
    let output = validate(&["--threshold", "50", "--max-regret", &limit]).assert().code(4);
    let text = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    let shown: Vec<&str> = text.split(' ').filter(|word| word.parse::<f64>().is_ok()).collect();
    assert!(matches!(shown[..], [regret, limit] if regret != limit), "{text}");
    validate(&["--max-regret", "little"]).assert().code(2).stderr(contains("such as 0.5%"));
    validate(&["--threads", "9"]).assert().code(2).stderr(contains("has no records of cpu, 9"));
}

/// Two commands are called validate, and the help of each names the other.
#[test]
fn the_two_validations_name_each_other() {
    let folder = folder();
    let help = stdout(&mut calibrate(folder.path(), &["validate", "--help"]));
    assert!(help.contains("calibrate trace validate"), "{help}");
    let help = stdout(&mut calibrate(folder.path(), &["trace", "validate", "--help"]));
    assert!(help.contains("`calibrate validate`"), "{help}");
}
