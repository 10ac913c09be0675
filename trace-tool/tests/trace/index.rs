//! Traces as an index, and in parts.

use std::fs;

use kernel_traces::synthetic::{self, Plan};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use super::program::{json, one, stdout, text, trace};

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

#[cfg(unix)]
#[test]
fn a_name_of_two_lines_is_printed_on_one() {
    let folder = one();
    let path = folder.path();
    fs::rename(path.join("t.json"), path.join("t\nerror: no.json")).unwrap();
    let made = stdout(trace(path).args(["index", "t\nerror: no.json"]));
    assert!(made.starts_with("t\\nerror: no.json: "), "{made}");
    assert_eq!(made.lines().count(), 1, "{made}");
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
