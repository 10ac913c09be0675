//! The trace tool as a user meets it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use kernel_traces::synthetic::{self, Annotation, Communication, Model, Oddity, Plan, Variation};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

fn trace(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-tool"));
    command.current_dir(folder);
    command
}

fn stdout(command: &mut Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&stdout(command)).unwrap()
}

/// The text of a small trace.
fn text(seed: u64, oddities: &[Oddity]) -> String {
    let plan = Plan { layers: 3, seed, oddities: oddities.to_vec(), ..Plan::default() };
    String::from_utf8(synthetic::text(&plan).unwrap().0).unwrap()
}

/// A folder with a trace `t.json`.
fn one() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.json"), text(1, &[])).unwrap();
    folder
}

/// A folder with a folder `ranks`, of ranks 2, 9 and 10 of a run over eight processes.
fn three() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ranks = folder.path().join("ranks");
    fs::create_dir(&ranks).unwrap();
    for rank in [10, 2, 9] {
        let plan = Plan { layers: 3, seed: rank, rank, world_size: 8, ..Plan::default() };
        let (text, _) = synthetic::text(&plan).unwrap();
        fs::write(ranks.join(format!("rank{rank}.json")), text).unwrap();
    }
    folder
}

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
/// every fourth one has another attention kernel; a few collectives and copies.
fn served() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        layers: 8,
        steps: 6,
        variation: Variation::SlidingWindow,
        annotations: vec![Annotation::Vllm],
        communication: Communication::OwnStream,
        copies: true,
        ..Plan::default()
    };
    fs::write(folder.path().join("served.json"), synthetic::text(&plan).unwrap().0).unwrap();
    folder
}

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
    refused(&["--phase", "training"], "[possible values: prefill, decode, mixed, diffusion]");
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

#[test]
fn an_index_is_made_and_looked_at() {
    let folder = one();
    let path = folder.path();
    let check = |code: i32, message: &str| {
        let checked = trace(path).args(["index", "t.json", "--check"]).assert().code(code);
        checked.stdout(contains(message)).stderr("");
    };
    check(1, "there is no index");
    assert!(!path.join("t.json.ktindex").exists());
    let made = trace(path).args(["index", "t.json"]).assert().success();
    made.stdout(contains("t.json.ktindex"));
    check(0, "t.json.ktindex");
    let indexed = stdout(trace(path).args(["layers", "t.json", "--json"]));
    let read = stdout(trace(path).args(["layers", "t.json", "--json", "--no-index"]));
    assert_eq!(indexed, read);
    let index = fs::read(path.join("t.json.ktindex")).unwrap();
    fs::write(path.join("t.json.ktindex"), &index[..index.len() - 1]).unwrap();
    check(1, "the index is damaged");
    fs::write(path.join("t.json.ktindex"), &index).unwrap();
    fs::write(path.join("t.json"), text(2, &[])).unwrap();
    check(1, "the trace has changed since the index was written");
    let state = json(trace(path).args(["index", "t.json", "--cache-dir", "c", "--json"]));
    let state = &state["indexes"][0];
    assert_eq!((&state["is_fresh"], &state["unfit"]), (&Value::Bool(true), &Value::Null));
    assert!(state["index"].as_str().unwrap().starts_with("c/"));
    assert_eq!(fs::read_dir(path.join("c")).unwrap().count(), 1);
}

/// More than 4 MiB, for which an index is made.
#[test]
fn an_index_that_cannot_be_written_is_told_to_who_asked_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let plan = Plan { layers: 40, steps: 60, ..Plan::default() };
    let (text, _) = synthetic::text(&plan).unwrap();
    assert!(text.len() > 4 << 20);
    fs::write(path.join("t.json"), text).unwrap();
    // A folder cannot be made where a file is.
    fs::write(path.join("file"), "").unwrap();
    let told = trace(path).args(["info", "t.json", "--cache-dir", "file"]).assert().success();
    told.stderr(contains("warning: no-index: cannot write file/"));
    fs::create_dir(path.join("t.json.ktindex")).unwrap();
    trace(path).args(["info", "t.json"]).assert().success().stderr("");
    let told = trace(path).args(["info", "t.json", "--verbose"]).assert().success();
    told.stderr(contains("warning: no-index: cannot write t.json.ktindex"));
    trace(path)
        .args(["info", "t.json", "-v", "--no-index"])
        .assert()
        .success()
        .stderr(contains("warning").not());
}

#[test]
fn a_stream_gives_the_figures_of_the_whole() {
    let folder = one();
    let kernels =
        |more: &[&str]| json(trace(folder.path()).args(["kernels", "t.json", "--json"]).args(more));
    let (whole, parts) = (kernels(&[]), kernels(&["--stream"]));
    for key in ["kernels", "total_ns", "by_class", "by_kernel", "unclassified_share"] {
        assert_eq!(parts[key], whole[key], "{key}");
    }
    assert_eq!(parts["class_evidence"], "names");
    assert_eq!(parts["ranks"][0]["span_ns"], whole["ranks"][0]["span_ns"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&parts), keys(&whole));
    assert_eq!(keys(&parts["ranks"][0]), keys(&whole["ranks"][0]));
    for key in ["busy_ns", "devices", "phases", "unclassified"] {
        assert_eq!(parts["ranks"][0][key], Value::Null, "{key}");
        assert_ne!(whole["ranks"][0][key], Value::Null, "{key}");
    }
    trace(folder.path())
        .args(["kernels", "t.json", "--stream"])
        .assert()
        .success()
        .stdout(contains("classes are by the kernels' names alone"));
    let info =
        |more: &[&str]| json(trace(folder.path()).args(["info", "t.json", "--json"]).args(more));
    let (whole, mut parts) = (info(&[]), info(&["--stream"]));
    assert!(whole["ranks"][0]["busy_ns"].as_u64().unwrap() > 0);
    parts["ranks"][0]["busy_ns"] = whole["ranks"][0]["busy_ns"].clone();
    assert_eq!(parts, whole);
}

#[test]
fn ranks_come_in_their_order_and_are_summed_up() {
    let folder = three();
    let all = json(trace(folder.path()).args(["kernels", "ranks", "--json"]));
    let ranks: Vec<&Value> = all["ranks"].as_array().unwrap().iter().collect();
    let numbers: Vec<u64> = ranks.iter().map(|rank| rank["rank"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [2, 9, 10]);
    for key in ["kernels", "total_ns"] {
        let sum: u64 = ranks.iter().map(|rank| rank[key].as_u64().unwrap()).sum();
        assert_eq!(all[key].as_u64(), Some(sum));
    }
    let nine = json(trace(folder.path()).args(["kernels", "ranks", "--rank", "9", "--json"]));
    assert_eq!(nine["total_ns"], ranks[1]["total_ns"]);
    assert_eq!(nine["ranks"][0], *ranks[1]);
    trace(folder.path())
        .args(["kernels", "ranks", "--rank", "3"])
        .assert()
        .code(2)
        .stdout("")
        .stderr(contains("no trace is of rank 3; there are: 2, 9, 10"));
    trace(folder.path())
        .args(["info", "ranks"])
        .assert()
        .success()
        .stderr(contains("warning: missing-ranks: 3 of the 8 ranks"));
    trace(folder.path())
        .args(["info", "ranks", "ranks/rank2.json"])
        .assert()
        .success()
        .stderr(contains("warning: same-rank: rank 2 has several files"));
    fs::write(folder.path().join("ranks/labels.json"), "{}").unwrap();
    trace(folder.path())
        .args(["kernels", "ranks"])
        .assert()
        .success()
        .stderr(contains("warning: no-traces: files of the folder are not traces: ranks/labels"));
    // A rank that cannot be read ends it, whatever the others are.
    fs::write(folder.path().join("ranks/rank5.json"), "").unwrap();
    trace(folder.path())
        .args(["kernels", "ranks"])
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("rank5.json is not a profiler trace: it is empty"));
    fs::create_dir(folder.path().join("none")).unwrap();
    trace(folder.path())
        .args(["info", "none"])
        .assert()
        .code(1)
        .stderr(contains("none has no traces").and(contains(".json.gz")));
}

#[test]
fn what_a_file_is_comes_first_and_not_on_stdout() {
    let folder = one();
    fs::write(folder.path().join("last.json"), text(1, &[Oddity::MetadataLast])).unwrap();
    for file in ["t.json", "last.json"] {
        let told = trace(folder.path()).args(["kernels", file, "--verbose"]).assert().success();
        let told = told.stderr(contains("NVIDIA, 1 x NVIDIA H100, 304 multiprocessors, 192.0 GiB"));
        told.stdout(contains("multiprocessors").not());
        trace(folder.path()).args(["kernels", file]).assert().success().stderr("");
    }
}

#[test]
fn rows_of_every_table_whole_and_in_parts() {
    let folder = three();
    for table in ["kernels", "launches", "annotations", "ops", "frames"] {
        let rows = |more: &[&str]| {
            let args = ["kernels", "ranks", "--rows", "--table", table];
            stdout(trace(folder.path()).args(args).args(more))
        };
        let lines = rows(&["--format", "json"]);
        let mut whole: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for row in whole.iter_mut().filter_map(Value::as_object_mut) {
            for needs_whole in ["op", "phase", "step", "pass", "layer"] {
                row.remove(needs_whole);
            }
        }
        let lines = rows(&["--stream", "--json"]);
        let parts: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(parts, whole, "{table}");
        assert!(whole.iter().any(|row| row["rank"] == 10), "{table}");
        let csv = rows(&[]);
        assert_eq!(csv.lines().count(), whole.len() + 1, "{table}");
        assert!(csv.starts_with("file,rank,start_ns,duration_ns,"), "{csv}");
    }
}

#[test]
fn results_go_to_a_file_whole_or_not_at_all() {
    let folder = one();
    let path = folder.path();
    for args in [&["--rows"][..], &["--format", "csv"], &["--json"], &[]] {
        let args = [&["kernels", "t.json"], args].concat();
        let printed = stdout(trace(path).args(&args));
        trace(path)
            .args(&args)
            .args(["--output", "out", "--overwrite"])
            .assert()
            .success()
            .stdout("")
            .stderr(contains("wrote out"));
        assert_eq!(fs::read_to_string(path.join("out")).unwrap(), printed, "{args:?}");
    }
    fs::write(path.join("bad.json"), "{\"traceEvents\": [{\"ph\": \"").unwrap();
    trace(path)
        .args(["kernels", "bad.json", "--rows", "--output", "out2"])
        .assert()
        .code(1)
        .stderr(contains("bad.json is not a profiler trace"));
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["bad.json", "out", "t.json"]);
    trace(path)
        .args(["kernels", "t.json", "--output", "no/out"])
        .assert()
        .code(2)
        .stderr(contains("the folder no does not exist"));
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = one();
    let path = folder.path();
    let before = fs::read(path.join("t.json")).unwrap();
    for command in ["kernels", "layers"] {
        trace(path)
            .args([command, "t.json", "--output", "t.json"])
            .assert()
            .code(2)
            .stderr(contains("t.json: it is there already").and(contains("--overwrite")));
    }
    assert_eq!(fs::read(path.join("t.json")).unwrap(), before);
    trace(path).args(["kernels", "t.json", "--overwrite"]).assert().code(2);
}

/// `trace-tool kernels FILE 2> /dev/full`, and a stderr that nobody reads.
#[cfg(target_os = "linux")]
#[test]
fn a_full_or_closed_stderr_loses_nothing() {
    let folder = one();
    let path = folder.path();
    let closed = || {
        let mut child = Process::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        child.wait().unwrap();
        Stdio::from(stdin)
    };
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    for (args, code) in [
        (&["kernels", "t.json", "--verbose", "--output", "out", "--overwrite"][..], 0),
        (&["kernels", "no.json"], 1),
        (&["kernels", "t.json", "--output", "t.json"], 2),
    ] {
        for stderr in [full(), closed()] {
            let mut program = Process::new(env!("CARGO_BIN_EXE_trace-tool"));
            let status = program.current_dir(path).args(args).stderr(stderr).status().unwrap();
            assert_eq!(status.code(), Some(code), "{args:?}");
        }
    }
    // Results that cannot be written are a failure, and said once.
    let mut program = Process::new(env!("CARGO_BIN_EXE_trace-tool"));
    let output = program.current_dir(path).args(["kernels", "t.json"]).stdout(full()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
}

#[test]
fn groups_as_csv() {
    let folder = one();
    let text = stdout(trace(folder.path()).args(["kernels", "t.json", "--format", "csv"]));
    let header = "by,name,class,count,total_ns,mean_ns,median_ns,p95_ns,share\r\n";
    assert!(text.starts_with(header), "{text}");
    assert!(text.contains("\r\nclass,GEMM,GEMM,"), "{text}");
    assert!(text.contains("\r\nkernel,\"void vllm::rms_norm_kernel<"), "{text}");
}

#[test]
fn what_cannot_be_written_says_what_to_do() {
    let folder = one();
    for (args, message) in [
        (&["--format", "parquet"][..], "add --rows"),
        (&["--rows", "--format", "text"], "csv, json or parquet"),
        (&["--table", "ops"], "--rows"),
        (&["--json", "--format", "csv"], "cannot be used with"),
        #[cfg(not(feature = "parquet"))]
        (&["--rows", "--format", "parquet"], "--features parquet"),
    ] {
        trace(folder.path())
            .args(["kernels", "t.json"])
            .args(args)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(message));
    }
}

#[cfg(feature = "parquet")]
#[test]
fn rows_as_parquet() {
    let folder = one();
    let args = ["kernels", "t.json", "--rows", "--format", "parquet", "--output", "out.parquet"];
    trace(folder.path()).args(args).assert().success();
    let file = fs::read(folder.path().join("out.parquet")).unwrap();
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
}

/// `calibrate trace kernels FILE --rows | head`.
#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { layers: 40, steps: 20, ..Plan::default() };
    fs::write(folder.path().join("t.json"), synthetic::text(&plan).unwrap().0).unwrap();
    for more in [&["--format", "csv"][..], &["--json"], &["--stream"], &["--stream", "--json"]] {
        let mut child = Process::new(env!("CARGO_BIN_EXE_trace-tool"))
            .current_dir(folder.path())
            .args(["kernels", "t.json", "--rows"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        assert!(out.read_line(&mut line).unwrap() > 0);
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{more:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{more:?}");
    }
}
