//! Where results go.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command as Process, Stdio};

use kernel_traces::synthetic::{self, Plan};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use super::program::{one, stdout, three, trace};

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

#[test]
fn a_file_of_a_folder_that_is_read_stays() {
    let folder = three();
    let path = folder.path();
    let first = fs::read_dir(path.join("ranks")).unwrap().next().unwrap().unwrap().path();
    let before = fs::read(&first).unwrap();
    for command in [&["kernels", "ranks"][..], &["kernels", "ranks", "--rows"], &["idle", "ranks"]]
    {
        trace(path)
            .args(command)
            .args(["--overwrite", "--output"])
            .arg(&first)
            .assert()
            .code(2)
            .stderr(contains("this command reads it; name another output"));
        assert_eq!(fs::read(&first).unwrap(), before, "{command:?}");
    }
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
    // A file that was named is named.
    for args in [&["--format", "csv"][..], &["--json"], &[]] {
        let of_file = ["kernels", "t.json", "--output", "/dev/full"];
        let named = contains("cannot write /dev/full: ");
        trace(path).args(of_file).args(args).assert().code(1).stdout("").stderr(named);
    }
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
