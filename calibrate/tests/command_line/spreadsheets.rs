//! CSV for programs that compute what begins with an equals sign.

use predicates::prelude::*;
use predicates::str::contains;

use super::program::{EXAMPLE, calibrate, folder};

/// A graph of one kernel whose name is a formula.
const GRAPH: &str = r#"{
  "kind": "graph", "schema_version": 1,
  "inputs": [{"name": "x", "dtype": "f32", "shape": [64, 1024]},
             {"name": "y", "dtype": "f32", "shape": [64, 1024]}],
  "constants": [],
  "nodes": [{"op": "Add", "name": "@SUM(1,1)", "inputs": ["x", "y"], "outputs": ["a"]},
            {"op": "Relu", "name": "relu", "inputs": ["a"], "outputs": ["b"]}],
  "outputs": ["b"]
}"#;

/// Every command that writes CSV makes cells of text plain unless `--raw-cells` is given.
#[test]
fn formulas_become_text_in_the_csv_of_every_command() {
    let folder = folder();
    let evil = EXAMPLE.replacen("\"rustc 1.95.0 (59807616e 2026-04-14)\"", "\"=1+cmd|x\"", 1);
    std::fs::write(folder.path().join("e.toml"), evil).unwrap();
    std::fs::write(folder.path().join("g.json"), GRAPH).unwrap();
    let partition = ["partition", "g.json", "--profile", "e.toml", "--format", "csv"];
    for (args, plain, raw) in [
        (&["export", "e.toml"][..], ",'=1+cmd|x,", ",=1+cmd|x,"),
        (&partition, ",\"'@SUM(1,1) relu\",", ",\"@SUM(1,1) relu\","),
    ] {
        calibrate(folder.path()).args(args).assert().success().stdout(contains(plain));
        calibrate(folder.path())
            .args(args)
            .arg("--raw-cells")
            .assert()
            .success()
            .stdout(contains(raw).and(contains(plain).not()));
    }
    // Those have numbers and words of their own, which stay as they are.
    for args in [
        &["compare", "e.toml", "e.toml", "--format", "csv"][..],
        &["validate", "e.toml", "--format", "csv"],
    ] {
        let run = |flag: Option<&str>| {
            let output = calibrate(folder.path()).args(args).args(flag).assert().success();
            String::from_utf8(output.get_output().stdout.clone()).unwrap()
        };
        assert_eq!(run(None), run(Some("--raw-cells")));
        assert!(!run(None).contains(['\'', '=']), "{}", run(None));
    }
}

#[test]
fn negative_numbers_stay_numbers() {
    let folder = folder();
    let negative =
        EXAMPLE.replacen("order_sensitivity = 0.000179949", "order_sensitivity = -0.000179949", 1);
    std::fs::write(folder.path().join("e.toml"), negative).unwrap();
    calibrate(folder.path())
        .args(["export", "e.toml"])
        .assert()
        .success()
        .stdout(contains(",-0.000179949,").and(contains("'-").not()));
}
