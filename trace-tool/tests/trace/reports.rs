//! What people and programs read of a trace.

use std::fs;

use kernel_traces::synthetic::{self, Lockstep, Model, Naming, Plan};
use predicates::str::contains;
use serde_json::Value;

use super::program::{json, one, served, stdout, three, trace};

#[test]
fn reports_read_as_they_should() {
    let folder = one();
    insta::assert_snapshot!("trace_info", stdout(trace(folder.path()).args(["info", "t.json"])));
    let kernels = ["kernels", "t.json", "--top", "3"];
    insta::assert_snapshot!("trace_kernels", stdout(trace(folder.path()).args(kernels)));
    let folder = three();
    insta::assert_snapshot!(
        "trace_info_ranks",
        stdout(trace(folder.path()).args(["info", "ranks"]))
    );
    let kernels = ["kernels", "ranks", "--top", "3"];
    insta::assert_snapshot!("trace_kernels_ranks", stdout(trace(folder.path()).args(kernels)));
    let layers = ["layers", "ranks", "--rank", "9"];
    insta::assert_snapshot!("trace_layers", stdout(trace(folder.path()).args(layers)));
    for command in ["info", "kernels", "layers", "index"] {
        let help = stdout(trace(folder.path()).args([command, "--help"]));
        insta::assert_snapshot!(format!("trace_{command}_help"), help);
    }
}

/// A folder with a trace `served.json` of prefill and decode steps, in a sequence of layers where

#[test]
fn steps_and_layers_read_as_they_should() {
    let folder = served();
    let layers = ["layers", "served.json", "--top", "1"];
    insta::assert_snapshot!("trace_layers_served", stdout(trace(folder.path()).args(layers)));
    let kernels = ["kernels", "served.json", "--top", "2"];
    insta::assert_snapshot!("trace_kernels_served", stdout(trace(folder.path()).args(kernels)));
}

#[test]
fn layers_as_json_and_csv() {
    let folder = served();
    let json = json(trace(folder.path()).args(["layers", "served.json", "--json"]));
    let rank = &json["ranks"][0];
    assert_eq!(rank["family"]["name"], "dense");
    assert_eq!(rank["layers"]["count"], 8);
    assert_eq!(rank["layers"]["marker"], "cache_write");
    assert_eq!(rank["layers"]["none_because"], Value::Null);
    assert_eq!(rank["layers"]["by_number"].as_array().unwrap().len(), 8);
    assert_eq!(rank["steps"].as_array().unwrap().len(), 6);
    let phases: Vec<&Value> =
        rank["phases"].as_array().unwrap().iter().map(|phase| &phase["phase"]).collect();
    assert_eq!(phases, [&Value::from("prefill"), &Value::from("decode"), &Value::Null]);
    let patterns = rank["patterns"].as_array().unwrap();
    let passes = rank["layers"]["passes"].as_array().unwrap();
    let of_passes: u64 = passes.iter().map(|pass| pass["layers"].as_u64().unwrap()).sum();
    let of_patterns: u64 = patterns.iter().map(|one| one["layers"].as_u64().unwrap()).sum();
    assert_eq!((passes.len(), of_passes, of_patterns), (6, 48, 48));
    let csv = stdout(trace(folder.path()).args(["layers", "served.json", "--format", "csv"]));
    assert!(csv.starts_with("file,rank,pattern,layers,ends_pass,position,class,kernel,"), "{csv}");
    let positions: usize =
        patterns.iter().map(|pattern| pattern["positions"].as_array().unwrap().len()).sum();
    assert_eq!(csv.lines().count(), positions + 1);
    let args = ["layers", "served.json", "--format", "csv", "--pattern", "1"];
    let one = stdout(trace(folder.path()).args(args));
    assert_eq!(one.lines().count(), patterns[1]["positions"].as_array().unwrap().len() + 1);
    let args = ["layers", "served.json", "--pattern", "1"];
    let text = stdout(trace(folder.path()).args(args));
    assert!(text.contains("\npattern 1: ") && !text.contains("\npattern 0: "), "{text}");
}

#[test]
fn a_trace_without_layers_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { model: Model::Bag, ..Plan::default() };
    fs::write(folder.path().join("bag.json"), synthetic::text(&plan).unwrap().0).unwrap();
    trace(folder.path())
        .args(["layers", "bag.json"])
        .assert()
        .success()
        .stdout(contains("no layers were found, because there is no attention"));
    let json = json(trace(folder.path()).args(["layers", "bag.json", "--json"]));
    assert_eq!(json["ranks"][0]["layers"]["none_because"]["reason"], "no_marker");
    trace(folder.path())
        .args(["layers", "bag.json", "--pattern", "0"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("there is no pattern 0: no layers were found"));
}

#[test]
fn a_phase_is_a_part_of_the_whole() {
    let folder = served();
    let kernels = |more: &[&str]| {
        json(trace(folder.path()).args(["kernels", "served.json", "--json"]).args(more))
    };
    let whole = kernels(&[]);
    let phases = whole["ranks"][0]["phases"].as_array().unwrap();
    for (phase, name) in phases.iter().zip(["prefill", "decode"]) {
        let part = kernels(&["--phase", name]);
        assert_eq!(part["kernels"], phase["count"], "{name}");
        assert_eq!(part["total_ns"], phase["total_ns"], "{name}");
        assert_eq!(part["by_class"], phase["by_class"], "{name}");
    }
    let refused = |args: &[&str], message: &str| {
        let args = [&["kernels", "served.json"], args].concat();
        trace(folder.path()).args(args).assert().code(2).stdout("").stderr(contains(message));
    };
    refused(&["--phase", "mixed"], "no kernel is of phase mixed; there are: prefill, decode");
    refused(
        &["--phase", "training"],
        "[possible values: all, prefill, decode, mixed, diffusion, forward",
    );
    refused(&["--phase", "decode", "--stream"], "cannot be used with");
}

#[test]
fn mistakes_are_told_in_one_line() {
    let folder = served();
    for (args, code, message) in [
        (&["layers", "no.json"][..], 1, "cannot read no.json"),
        (&["index", "no.json"], 1, "cannot read no.json"),
        (
            &["layers", "served.json", "--pattern", "99"],
            2,
            "there is no pattern 99; they are 0 to ",
        ),
        (&["layers", "served.json", "--pattern", "x"], 2, "invalid value 'x'"),
        (
            &["layers", "served.json", "--format", "parquet"],
            2,
            "[possible values: text, csv, json]",
        ),
        (&["kernels", "served.json", "--no-index", "--cache-dir", "c"], 2, "cannot be used with"),
    ] {
        trace(folder.path()).args(args).assert().code(code).stdout("").stderr(contains(message));
    }
}

/// Copies and fills have their own number, and are none of the kernels.
#[test]
fn info_counts_kernels_without_copies() {
    let folder = served();
    let info = json(trace(folder.path()).args(["info", "served.json", "--json"]));
    let parts = json(trace(folder.path()).args(["info", "served.json", "--json", "--stream"]));
    let all = json(trace(folder.path()).args(["kernels", "served.json", "--json"]));
    let count = |value: &Value, key: &str| value["ranks"][0][key].as_u64().unwrap();
    assert!(count(&info, "copies") > 0);
    assert_eq!(count(&info, "kernels") + count(&info, "copies"), all["kernels"].as_u64().unwrap());
    for key in ["kernels", "copies"] {
        assert_eq!(count(&info, key), count(&parts, key));
    }
    trace(folder.path())
        .args(["info", "served.json"])
        .assert()
        .stdout(contains(format!("\nkernels     {}\ncopies      ", count(&info, "kernels"))));
}

/// The ranks of a folder are compared with each other, as in `compare`.
#[test]
fn info_of_a_folder_says_which_rank_waits_for_which() {
    let folder = tempfile::tempdir().unwrap();
    let run = Lockstep {
        late: vec![(2, 90_000)],
        naming: Naming::Sequences,
        steps: 2,
        ..Lockstep::default()
    };
    run.write(folder.path()).unwrap();
    let shown = stdout(trace(folder.path()).args(["info", "."]));
    insta::assert_snapshot!("trace_info_skew", shown);
    let json = json(trace(folder.path()).args(["info", ".", "--json"]));
    let group = &json["survey"]["skew"]["groups"][0];
    assert_eq!(group["straggler"]["rank"], 2);
    assert!(group["by_family"][0]["bus_gb_per_s"].as_f64().unwrap() > 0.0);
    let one = super::program::json(trace(folder.path()).args(["info", "rank0.json", "--json"]));
    assert_eq!(one["survey"], Value::Null);
}
