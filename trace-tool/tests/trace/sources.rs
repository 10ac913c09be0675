//! Where traces come from, other than files.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use super::program::{json, one, text, trace};

#[test]
fn standard_input_is_a_trace_like_any_other() {
    let folder = one();
    let without_file = |mut all: Value| {
        all["ranks"][0]["file"] = Value::Null;
        all
    };
    let file = json(trace(folder.path()).args(["kernels", "t.json", "--json"]));
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text(1, &[]).as_bytes()).unwrap();
    for content in [text(1, &[]).into_bytes(), packed.finish().unwrap()] {
        let piped =
            json(trace(folder.path()).args(["kernels", "-", "--json"]).write_stdin(content));
        assert_eq!(piped["ranks"][0]["file"], "stdin");
        assert_eq!(without_file(piped), without_file(file.clone()));
    }
    trace(folder.path())
        .args(["info", "-"])
        .write_stdin("{}")
        .assert()
        .code(1)
        .stderr(contains("stdin is not a profiler trace: it has no traceEvents"));
    trace(folder.path())
        .args(["info", "-", "-"])
        .write_stdin(text(1, &[]))
        .assert()
        .code(2)
        .stderr(contains("stdin can be read only once"));
}

#[cfg(unix)]
#[test]
fn a_pipe_says_that_it_waits() {
    let folder = one();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = std::thread::spawn({
        let (pipe, content) = (pipe, fs::read(folder.path().join("t.json")).unwrap());
        move || fs::write(pipe, content)
    });
    trace(folder.path())
        .args(["info", "pipe"])
        .assert()
        .success()
        .stdout(contains("kernels"))
        .stderr(contains("note: pipe is a pipe; waiting").and(contains("json").not()));
    writer.join().unwrap().unwrap();
}
