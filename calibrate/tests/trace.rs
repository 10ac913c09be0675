//! `calibrate trace` as a user meets it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command as Process, Stdio};

use assert_cmd::Command;
use kernel_traces::synthetic::{self, Oddity, Plan};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use tempfile::TempDir;

fn trace(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).arg("trace");
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
        let text = text(rank, &[]).replace("\"rank\": 3,", &format!("\"rank\": {rank},"));
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
    for command in ["info", "kernels"] {
        let help = stdout(trace(folder.path()).args([command, "--help"]));
        insta::assert_snapshot!(format!("trace_{command}_help"), help);
    }
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
    assert_eq!(parts["ranks"][0]["span_ns"], whole["span_ns"]);
    assert_eq!(parts["ranks"][0]["busy_ns"], Value::Null);
    trace(folder.path())
        .args(["kernels", "t.json", "--stream"])
        .assert()
        .success()
        .stdout(contains("classes are by the kernels' names alone"));
    let info =
        |more: &[&str]| json(trace(folder.path()).args(["info", "t.json", "--json"]).args(more));
    let (whole, mut parts) = (info(&[]), info(&["--stream"]));
    assert!(whole["busy_ns"].as_u64().unwrap() > 0);
    parts["busy_ns"] = whole["busy_ns"].clone();
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
    assert_eq!(nine["busy_ns"], ranks[1]["busy_ns"]);
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
    // One that cannot be read ends it, whatever the others are.
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
            row.remove("op");
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
            .args(["--output", "out"])
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
        let mut child = Process::new(env!("CARGO_BIN_EXE_calibrate"))
            .current_dir(folder.path())
            .args(["trace", "kernels", "t.json", "--rows"])
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
