//! `calibrate workload` as a user meets it.

mod figures;

use std::collections::BTreeMap;
use std::path::Path;

use assert_cmd::Command;
use fusion_cost_model::calibration::{HardwareCalibration, RuntimeUsed};
use fusion_cost_model::{FusionCostModel, Target};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

/// Two blocks that take no time, and a node that the vocabulary lacks.
const TINY: &str = r#"
kind = "workload"
schema_version = 1
name = "tiny"
description = "two residual blocks"
dtype = "f32"
dims = { batch = 16 }
inputs = [{ name = "x", shape = ["batch", 64] }]

[[blocks]]
name = "block"
times = 2
weights = { "up" = [96, 64], "down" = [64, 96], "b1" = [96], "b2 gain shift" = [64] }
nodes = """
a = Linear(in, up, b1)
r = Relu(a)
d = Linear(r, down, b2)
s = Add(d, in)
out = LayerNormalization(s, gain, shift)
"""

[[blocks]]
name = "odd"
nodes = "out = CumSum(in, 1.0)"
"#;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    std::fs::write(folder.path().join("tiny.toml"), TINY).unwrap();
    folder
}

/// A calibration as if the kernels of a runtime had been measured.
fn of_a_runtime(text: &str) -> String {
    let mut calibration = HardwareCalibration::from_toml(text).unwrap();
    let implementation = "other@1.2".parse().unwrap();
    calibration.records.iter_mut().for_each(|record| record.implementation = implementation);
    calibration.noise.iter_mut().for_each(|noise| noise.implementation = implementation);
    calibration.runtimes.push(RuntimeUsed {
        implementation,
        name: "other".to_owned(),
        version: "1.2".to_owned(),
        device: "cpu".to_owned(),
        options: BTreeMap::new(),
    });
    calibration.to_toml().unwrap()
}

fn calibrate(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).args(args).env_remove("COLUMNS");
    command.env("XDG_CACHE_HOME", "/dev/null");
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).unwrap()
}

const WORKLOAD: [&str; 4] = ["workload", "tiny.toml", "--profile", "e.toml"];

#[test]
fn a_prediction_measures_nothing() {
    let folder = folder();
    let mut command = calibrate(folder.path(), &WORKLOAD);
    let text = stdout(command.arg("--predict-only").env("COLUMNS", "90"));
    assert!(text.lines().all(|line| line.chars().count() <= 90), "{text}");
    insta::assert_snapshot!("predicted_90", text);
    let mut command = calibrate(folder.path(), &WORKLOAD);
    let text = stdout(command.args(["--predict-only", "--format", "markdown"]));
    assert!(
        text.contains("| unfused |") && text.contains("- **workload** tiny, batch=16"),
        "{text}"
    );
    let mut command = calibrate(folder.path(), &WORKLOAD);
    let json = stdout(command.args(["--predict-only", "--json", "--batch", "8"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["dims"]["batch"], &json["ops"]), (&8.into(), &14.into()));
    assert_eq!(json["measurement"], Value::Null);
    assert_eq!(json["opaque"][0]["op"], "CumSum");
    for way in json["ways"].as_array().unwrap() {
        assert!(way["predicted_ms"]["value"].as_f64().unwrap() > 0.0, "{way}");
        assert_eq!(way["measured_ms"], Value::Null);
    }
}

/// The first linear layer reads what no layer wrote, and those of its size after it what one did.
const APART: &str = r#"
kind = "workload"
schema_version = 1
name = "apart"
description = "linear layers of one size in several places"
dtype = "f32"
dims = { batch = 512 }
inputs = [{ name = "x", shape = ["batch", 2048] }]

[[blocks]]
name = "block"
times = 4
weights = { "v w" = [2048, 2048] }
nodes = """
a = Linear(in, v)
b = Linear(a, w)
out = Add(a, b)
"""
"#;

#[test]
fn each_place_takes_what_memory_takes_longer_for_it() {
    let folder = folder();
    std::fs::write(folder.path().join("apart.toml"), APART).unwrap();
    let args = ["workload", "apart.toml", "--profile", "e.toml", "--predict-only", "--json"];
    let mut command = calibrate(folder.path(), &args);
    // Nothing gains so much.
    let json = stdout(command.args(["--threshold", "100"]));
    let json: Value = serde_json::from_str(&json).unwrap();
    let model = FusionCostModel::new(HardwareCalibration::from_toml(EXAMPLE).unwrap());
    let on = model.on(Target::cpu(2));
    let (mut alone, mut most_places) = (0.0, 0);
    for operator in json["operators"].as_array().unwrap() {
        if operator["way"] == "best-partition" {
            let problem = operator["problem"].as_str().unwrap().parse().unwrap();
            let places = u32::try_from(operator["times"].as_u64().unwrap()).unwrap();
            most_places = most_places.max(places);
            alone += on.estimate(&problem).fused_ms().unwrap().value * f64::from(places);
        }
    }
    assert_eq!(most_places, 8);
    let is_best = |way: &&Value| way["way"] == "best-partition";
    let best = json["ways"].as_array().unwrap().iter().find(is_best).unwrap();
    let total = best["predicted_ms"]["value"].as_f64().unwrap();
    let extra = json["memory"]["extra_ms"].as_f64().unwrap();
    assert!(extra > 0.0);
    assert!((total - alone - extra).abs() < 1e-9 * total, "{total} {alone} {extra}");
}

#[test]
fn the_commands_for_what_is_missing_can_be_run() {
    let folder = folder();
    let text = stdout(calibrate(folder.path(), &WORKLOAD).arg("--missing"));
    assert!(text.contains("calibrate --for tiny.toml --profile e.toml --threads 2\n"), "{text}");
    assert!(text.contains("--output missing.toml \\\n  --problem "), "{text}");
    let problems = text.lines().filter_map(|line| line.trim().strip_prefix("--problem "));
    let problems: Vec<&str> = problems.map(|line| line.trim_end_matches(" \\")).collect();
    let mut plan = calibrate(folder.path(), &["--plan"]);
    problems.iter().for_each(|problem| _ = plan.args(["--problem", problem]));
    plan.assert().success();
    // The other one reads workloads by their names.
    calibrate(folder.path(), &["--for", "tiny.toml", "--dry-run", "--threads", "2"])
        .assert()
        .success()
        .stdout(contains("tiny.toml"));
}

#[test]
fn the_commands_for_what_is_missing_measure_the_same_kernels_and_are_for_a_shell() {
    let folder = folder();
    std::fs::write(folder.path().join("my tiny.toml"), TINY).unwrap();
    std::fs::write(folder.path().join("my e.toml"), of_a_runtime(EXAMPLE)).unwrap();
    let args = ["workload", "my tiny.toml", "--profile", "my e.toml", "--missing"];
    let text = stdout(&mut calibrate(folder.path(), &args));
    let options = "--threads 2 --runtime FILE";
    for expected in [
        format!("\ncalibrate --for 'my tiny.toml' --profile 'my e.toml' {options}\n"),
        format!("\ncalibrate {options} --output missing.toml \\\n"),
    ] {
        assert!(text.contains(&expected), "{expected}{text}");
    }
}

#[test]
fn a_model_is_run_in_every_way() {
    let folder = folder();
    let mut command = calibrate(folder.path(), &WORKLOAD);
    command.args(["--quick", "--force", "--seed", "3", "--json", "--output", "w.json"]);
    let said = command.args(["--progress", "json"]).assert().success().stdout("");
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    let events = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ends = events.filter(|event| event["event"] == "problem-end");
    let names: Vec<Value> = ends.by_ref().map(|end| end["subject"]["name"].clone()).collect();
    assert!(names.contains(&"tiny, unfused against best partition".into()), "{said}");
    let json = std::fs::read_to_string(folder.path().join("w.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let ways = json["ways"].as_array().unwrap();
    let names: Vec<&str> = ways.iter().map(|way| way["way"].as_str().unwrap()).collect();
    assert_eq!(names, ["unfused", "always-fused", "best-partition"]);
    for way in ways {
        let time = &way["measured_ms"];
        let [low, value, high] = ["low", "value", "high"].map(|key| time[key].as_f64().unwrap());
        assert!(0.0 < low && low <= value && value <= high, "{way}");
        let error = way["error_pct"].as_f64().unwrap();
        let predicted = way["predicted_ms"]["value"].as_f64().unwrap();
        assert!((error - 100.0 * (predicted / value - 1.0)).abs() < 1e-6, "{way}");
    }
    assert_eq!(ways[0]["kernels"], 14);
    assert!(ways[1]["kernels"].as_u64().unwrap() < 14);
    let measurement = &json["measurement"];
    assert_eq!(measurement["seed"], 3);
    // The profile is of another machine, whose speed says nothing about this one.
    assert_eq!(measurement["speed"], Value::Null);
    assert_eq!(ways[0]["error_now_pct"], Value::Null);
    // Beside other work, all samples of a process may be disturbed.
    let processes = measurement["processes"].as_u64().unwrap();
    assert!((1..=3).contains(&processes), "{measurement}");
    assert!(measurement["against_itself"]["value"].as_f64().unwrap() > 0.0);
    assert!(measurement["results_apart"].as_f64().unwrap() < 1e-5);
    assert!(measurement["proved"].as_u64().unwrap() >= 1);
    // The layers together take about as long as the way that they are of. Both are measured within seconds,
    // in which other tests may begin or end: then they are measured again.
    let again = || {
        let mut command = calibrate(folder.path(), &WORKLOAD);
        let args = ["--quick", "--force", "--seed", "3", "--json", "--output", "again.json"];
        command.args(args).assert().success();
        let json = std::fs::read_to_string(folder.path().join("again.json")).unwrap();
        serde_json::from_str::<Value>(&json).unwrap()
    };
    let agree = |[sum, whole]: [f64; 2]| sum > 0.3 * whole && sum < 5.0 * whole;
    let first = of_layers_and_whole(&json);
    assert!(agree(first) || (0..2).any(|_| agree(of_layers_and_whole(&again()))), "{first:?}");

    let mut validate = calibrate(folder.path(), &["trace", "validate", "--operators", "w.json"]);
    validate.assert().success().stdout(contains("unfused").and(contains("best-partition")));
}

/// Milliseconds of the unfused layers together, and of the unfused way.
fn of_layers_and_whole(json: &Value) -> [f64; 2] {
    let of_unfused = json["operators"].as_array().unwrap().iter();
    let of_unfused = of_unfused.filter(|one| one["way"] == "unfused");
    let sum = of_unfused.map(|one| one["measured_ms"].as_f64().unwrap()).sum();
    [sum, json["ways"][0]["measured_ms"]["value"].as_f64().unwrap()]
}

#[test]
fn what_cannot_be_is_said() {
    let folder = folder();
    let path = folder.path();
    std::fs::write(path.join("double.toml"), TINY.replace("\"f32\"", "\"f64\"")).unwrap();
    std::fs::write(path.join("empty.toml"), "kind = \"workload\"\nschema_version = 1\n").unwrap();
    for (args, code, message) in [
        (&["workload", "tinny", "--profile", "e.toml"][..], 2, "unknown workload `tinny`"),
        (&["workload", "resnet", "--profile", "e.toml"], 2, "`resnet50`"),
        (&["workload", "no.onnx", "--profile", "e.toml"], 1, "cannot read no.onnx"),
        (&["workload", "empty.toml", "--profile", "e.toml"], 2, "empty.toml: "),
        (&["workload", "tiny.toml", "--profile", "no.toml"], 1, "no.toml"),
        (&["workload", "tiny.toml"], 2, "--profile"),
        (&["workload", "tiny.toml", "--profile", "e.toml", "--dim", "tokens=8"], 2, "tokens"),
        (&["workload", "tiny.toml", "--profile", "e.toml", "--batch", "0"], 2, "--batch"),
        (&["workload", "tiny.toml", "--profile", "e.toml", "--threads", "7"], 2, "no records"),
        (&["workload", "tiny.toml", "--profile", "e.toml", "--threads", "0"], 2, "'--threads <N>'"),
        (&["workload", "tiny.toml", "--profile", "e.toml", "--processes", "2"], 2, "--processes"),
        (&["workload", "double.toml", "--profile", "e.toml"], 2, "no f64 kernels"),
        (
            &["workload", "bert-base", "--profile", "e.toml", "--batch", "1000000000"],
            2,
            "bert-base with batch=1000000000, sequence=128: ",
        ),
    ] {
        calibrate(path, args).assert().code(code).stderr(contains(message));
    }
    std::fs::write(path.join("runtime.toml"), of_a_runtime(EXAMPLE)).unwrap();
    calibrate(path, &["workload", "tiny.toml", "--profile", "runtime.toml"])
        .assert()
        .code(2)
        .stderr(contains("own kernels only").and(contains("those of other@1.2")));
    for (args, message) in [
        (&["--dim", "batch=1", "--batch", "2"][..], "twice, as batch=1 and batch=2"),
        (&["--batch", "2", "--dim", "batch=1"], "twice, as batch=1 and batch=2"),
        (&["--dim", "batch=1", "--dim", "batch=3"], "twice, as batch=1 and batch=3"),
        (&["--implementation", "pytorch"], "no kernels of pytorch; the kernels in the file on cpu"),
    ] {
        calibrate(path, &WORKLOAD).args(args).assert().code(2).stderr(contains(message));
    }
    let head = EXAMPLE.split_once("[[fusion]]").unwrap().0;
    let head = head.replace("num_records = 3", "num_records = 0");
    std::fs::write(path.join("zero.toml"), head).unwrap();
    calibrate(path, &["workload", "tiny.toml", "--profile", "zero.toml"])
        .assert()
        .code(2)
        .stderr(contains("the profile has no records").and(contains("--threads").not()));
    std::fs::write(path.join("there.txt"), "mine").unwrap();
    calibrate(path, &WORKLOAD)
        .args(["--predict-only", "--output", "there.txt"])
        .assert()
        .code(2)
        .stderr(contains("--overwrite"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_writes_what_it_measured() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let folder = folder();
    let mut child = Command::new(env!("CARGO_BIN_EXE_calibrate"))
        .current_dir(folder.path())
        .args(WORKLOAD)
        .args(["--force", "--spread", "10m", "--output", "w.txt"])
        .env("XDG_CACHE_HOME", "/dev/null")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The first pass is made, and the second one is far away.
    assert!(lines.any(|line| line.contains("waiting ")));
    let signal = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(signal.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("from fewer processes")), "{rest:?}");
    let written = std::fs::read_to_string(folder.path().join("w.txt")).unwrap();
    assert!(written.contains("measured"), "{written}");
}
