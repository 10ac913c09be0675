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

/// `--overwrite` does not replace what is read, by whatever way.
#[cfg(target_os = "linux")]
#[test]
fn the_file_that_stdin_is_stays() {
    let folder = one();
    let path = folder.path().join("t.json");
    let whole = fs::read(&path).unwrap();
    let program = env!("CARGO_BIN_EXE_trace-tool");
    let refused = std::process::Command::new(program)
        .current_dir(folder.path())
        .args(["kernels", "-", "-o", "t.json", "--overwrite"])
        .stdin(fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains("this command reads it"), "{stderr}");
    assert_eq!(fs::read(&path).unwrap(), whole);
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

/// Recordings of other profilers, which the tests of the library have.
const RECORDINGS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../traces/tests/data/profilers");

#[test]
fn recordings_of_other_profilers_are_traces_like_any_other() {
    for (name, classes) in [
        ("nsys.jsonl", &["GEMM", "NORM", "COPY", "FILL"][..]),
        #[cfg(feature = "sqlite")]
        ("nsys.sqlite", &["GEMM", "NORM", "COPY", "FILL"]),
        ("rocprofv3.json", &["GEMM", "NORM", "COPY"]),
        ("rocprofv3_kernel_trace.csv", &["GEMM", "NORM"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(format!("{RECORDINGS}/{name}"), folder.path().join(name)).unwrap();
        // By their names in a folder, too.
        for path in [name, "."] {
            let all = json(trace(folder.path()).args(["kernels", path, "--json"]));
            let found = all["by_class"].as_array().unwrap().iter();
            let mut found: Vec<&str> = found.map(|one| one["name"].as_str().unwrap()).collect();
            found.sort_unstable();
            let mut expected = classes.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected, "{name}");
            assert_eq!(all["kernels"], classes.len(), "{name}");
        }
        // Read in parts it is the same.
        let whole = json(trace(folder.path()).args(["kernels", name, "--json"]));
        let parts = json(trace(folder.path()).args(["kernels", name, "--stream", "--json"]));
        assert_eq!(parts["by_kernel"], whole["by_kernel"], "{name}");
    }
}

#[cfg(not(feature = "sqlite"))]
#[test]
fn databases_want_a_feature() {
    trace(std::path::Path::new(RECORDINGS))
        .args(["info", "nsys.sqlite"])
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("--features sqlite").and(contains("nsys export --type jsonlines")));
}
