//! `calibrate --runtime` as a user meets it: a tiny runtime in plain Python, its broken siblings, and
//! ONNX Runtime where it is installed. With `CALIBRATE_NEEDS_ONNXRUNTIME` set, a Python without it is a
//! failure.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod controls;
mod listed;
mod onnxruntime;
mod processes;
mod words;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process;

use assert_cmd::Command;
use fusion_cost_model::calibration::{HardwareCalibration, KernelFailure, ReasonCode, Verdict};
use fusion_cost_model::{Implementation, Target};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/tests/runtime/tiny.py");

const PROBLEM: &str = "mul+relu/f32/m16.n100";

/// So small that a sample has many runs of it, however busy the machine is.
const SMALL: &str = "mul+relu/f32/m2.n10";

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    // What is left behind is left here.
    let temporary = folder.join("tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    command
        .current_dir(folder)
        .env("TMPDIR", temporary)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// The shortest calibration: one process for each problem.
fn shortest(folder: &Path) -> Command {
    let mut command = calibrate(folder);
    command.args(["--quick", "--processes", "1", "--rounds", "2", "--threads", "1", "--force"]);
    command.args(["--output", "r.toml"]);
    command
}

/// The files of tiny runtimes, each called after its flaw, or `tiny` without one.
fn folder(flaws: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for flaw in flaws {
        let name = if *flaw == "none" { "tiny" } else { flaw };
        let text = format!(
            "kind = \"runtime\"\nschema_version = 1\nname = {name:?}\n\
             command = [\"python3\", {TINY:?}, {flaw:?}, {name:?}]\n\
             install = \"pip install tiny\"\n"
        );
        std::fs::write(folder.path().join(format!("{flaw}.toml")), text).unwrap();
    }
    folder
}

fn load(folder: &Path) -> HardwareCalibration {
    HardwareCalibration::load(folder.join("r.toml")).unwrap()
}

/// Whether Python has a module, which is needed where `CALIBRATE_NEEDS_ONNXRUNTIME` is set.
fn is_installed(module: &str) -> bool {
    let import = format!("import {module}");
    let found = process::Command::new("python3").args(["-c", &import]).output();
    let is_installed = found.is_ok_and(|output| output.status.success());
    let is_needed = std::env::var_os("CALIBRATE_NEEDS_ONNXRUNTIME").is_some();
    assert!(is_installed || !is_needed, "python3 has no {module}");
    is_installed
}

/// The private folders of runtimes.
fn left(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("tmp")).unwrap();
    let is_one = |path: &PathBuf| path.to_string_lossy().contains("calibrate-runtime");
    entries.map(|entry| entry.unwrap().path()).filter(is_one).collect()
}

fn assert_nothing_is_left(folder: &Path) {
    let left = left(folder);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_runtime_is_measured_in_turns_with_native_and_told_apart() {
    let folder = folder(&["none"]);
    shortest(folder.path())
        .args(["--runtime", "native,./none.toml"])
        .args(["--problem", PROBLEM, "--problem", "add_relu/f32/m16.n100"])
        .assert()
        .success()
        .stdout(contains("kernels of tiny 1.2").and(contains("3 records")));
    assert_nothing_is_left(folder.path());
    let calibration = load(folder.path());
    let tiny: Implementation = "tiny@1.2".parse().unwrap();
    let whose: Vec<_> = calibration.records.iter().map(|one| one.implementation).collect();
    assert_eq!(whose, [Implementation::Native, tiny, Implementation::Native]);
    // What it does not run is listed, and what is native is measured all the same.
    let [skipped] = &calibration.skipped[..] else { panic!("{:?}", calibration.skipped) };
    assert!(skipped.reason.contains("tiny does not run it: it has no add"), "{skipped:?}");
    assert_eq!(calibration.runtimes.len(), 1);
    assert_eq!(calibration.runtimes[0].device, "cpu");
    let record = &calibration.records[1];
    assert_eq!(record.unfused_kernels, ["mul", "relu"]);
    assert_eq!(record.fused_kernel, "mul+relu");
    assert!(record.verification.unfused_error <= record.verification.tolerance);
    assert!(record.disturbed.run_delay.is_some() && record.disturbed.off_processor.is_some());
    assert!(!record.reasons.iter().any(|one| one.code == ReasonCode::WrongAfterTiming));

    let model = fusion_cost_model::FusionCostModel::new(calibration.clone());
    assert!(model.targets().contains(&Target::cpu(1).with_implementation(tiny)));
    let query = |options: &[&str]| {
        let mut command = calibrate(folder.path());
        command.args(["query", "r.toml", "--problem", PROBLEM]).args(options);
        command
    };
    query(&["--implementation", "tiny"]).assert().success().stdout(contains("tiny@1.2 kernels"));
    query(&["--implementation", "tiny@1.3"]).assert().stdout(contains("measured").not());
    query(&["--implementation", "tinny"]).assert().code(2).stderr(contains("tiny@1.2"));
    calibrate(folder.path())
        .args(["compare", "r.toml", "--by", "implementation"])
        .assert()
        .success()
        .stdout(contains("cpu/1/f32/tiny@1.2"));
}

/// The program of a runtime is read, as is the file that names it, and so may be what its words name.
#[test]
fn the_program_of_a_runtime_and_files_in_its_words_are_not_replaced() {
    let folder = folder(&[]);
    std::fs::copy(TINY, folder.path().join("mine.py")).unwrap();
    let text = "kind = \"runtime\"\nschema_version = 1\nname = \"mine\"\n\
                command = [\"python3\", \"mine.py\", \"none\", \"mine\", \"--tables=1,table.json\", \
                \"-cmine.cfg\"]\n";
    std::fs::write(folder.path().join("mine.toml"), text).unwrap();
    std::fs::write(folder.path().join("found.toml"), text.replace("python3", "found")).unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    for own in ["table.json", "mine.cfg"] {
        std::fs::write(folder.path().join(own), "of the runtime").unwrap();
    }
    // A program that is found by its name alone.
    let found = folder.path().join("bin/found");
    std::fs::write(&found, "#!/bin/sh\nexec python3 \"$@\"\n").unwrap();
    std::fs::set_permissions(found, Permissions::from_mode(0o755)).unwrap();
    let places = std::env::var_os("PATH").unwrap();
    let places = std::iter::once(folder.path().join("bin")).chain(std::env::split_paths(&places));
    let places = std::env::join_paths(places).unwrap();
    for (runtime, own) in [
        ("./mine.toml", "mine.py"),
        ("./mine.toml", "table.json"),
        ("./mine.toml", "mine.cfg"),
        ("./found.toml", "bin/found"),
    ] {
        let whole = std::fs::read(folder.path().join(own)).unwrap();
        for option in ["--samples", "--output"] {
            let mut command = calibrate(folder.path());
            command.args(["--runtime", runtime, "--problem", SMALL, "--quick", "--force"]);
            command.args([option, own, "--overwrite"]);
            command.env("PATH", &places);
            command.assert().code(2).stderr(contains("this command reads it"));
            assert_eq!(std::fs::read(folder.path().join(own)).unwrap(), whole);
        }
    }
}

#[test]
fn a_broken_runtime_loses_the_problem_with_its_reason_and_the_run_goes_on() {
    let flaws = [
        ("late-crash", "its process was ended by signal 6 (at `run`)"),
        ("slow-clock", "its clock cannot be right"),
        ("wrong-fused", "wrong result: the fused variant is off by"),
        ("only-first", "so it does not make all runs that it is asked for"),
    ];
    let folder = folder(&flaws.map(|(flaw, _)| flaw));
    shortest(folder.path())
        .args([
            "--runtime",
            "./late-crash.toml,./slow-clock.toml,native,./wrong-fused.toml,./only-first.toml",
        ])
        .args(["--problem", SMALL])
        .assert()
        .code(1)
        .stderr(contains("ended by signal 6 (at `run`); it is tried once more"));
    let calibration = load(folder.path());
    assert_eq!(calibration.records.len(), 1);
    assert!(calibration.records[0].implementation.is_native());
    assert_eq!(calibration.skipped.len(), flaws.len(), "{:?}", calibration.skipped);
    for (flaw, reason) in flaws {
        let begins = format!("{SMALL} ({flaw}@1.2): ");
        let is_its = |reason: &&str| reason.starts_with(&begins);
        let found = calibration.skipped.iter().map(|skipped| skipped.reason.as_str()).find(is_its);
        assert!(found.is_some_and(|found| found.contains(reason)), "{:?}", calibration.skipped);
    }
    let crashed = calibration.skipped.iter().find(|one| one.reason.contains("(late-crash@1.2)"));
    assert_eq!(crashed.unwrap().failure, Some(KernelFailure::Crash));
    assert_nothing_is_left(folder.path());
}

/// The right results before the samples do not count.
#[test]
fn a_result_that_is_wrong_after_the_timing_is_said_at_once_and_in_the_record() {
    let folder = folder(&["late-wrong"]);
    let run = |progress: &str| {
        let mut command = shortest(folder.path());
        command.args(["--runtime", "./late-wrong.toml", "--problem", SMALL, "--overwrite"]);
        command.args(["--progress", progress]).assert().code(1)
    };
    let said = format!("{SMALL} (late-wrong@1.2): ");
    run("log").stderr(contains(format!("{said}WRONG")).and(contains(format!(
        "error: {said}after the timing: wrong result: the unfused variant is off by"
    ))));
    let event = r#""state":"wrong","error":"after the timing: wrong result: "#;
    run("json").stderr(contains(event).and(contains(r#""found":null"#)));
    let [record] = &load(folder.path()).records[..] else { panic!("one record") };
    assert_eq!(record.verdict, Verdict::Invalid);
    assert!(record.reasons.iter().any(|one| one.code == ReasonCode::WrongAfterTiming));
}

/// Every process of it dies at its first `hello`, also the one that is asked what it is.
#[test]
fn a_runtime_that_dies_at_its_start_is_started_once_more() {
    let folder = folder(&["dies-once", "dies"]);
    let run = |runtime: &str| {
        let mut command = shortest(folder.path());
        command.args(["--runtime", runtime, "--problem", PROBLEM]);
        command
    };
    run("./dies-once.toml").assert().success();
    let calibration = load(folder.path());
    assert_eq!((calibration.records.len(), calibration.skipped.len()), (1, 0));
    let reason = "the runtime dies cannot be used: its process was ended by signal 9";
    run("./dies.toml").assert().code(1).stderr(contains(reason));
    assert_nothing_is_left(folder.path());
}

/// A failure, as it is when it happens later.
#[test]
fn a_runtime_that_dies_when_it_is_asked_about_a_problem_fails_the_run() {
    let folder = folder(&["dies-at-tanh"]);
    let run = |problem: &str, reason: &str| {
        let mut command = shortest(folder.path());
        command.args(["--runtime", "native,./dies-at-tanh.toml", "--problem", problem]);
        command.arg("--overwrite").assert().code(1).stdout(contains(reason).count(1));
    };
    run("mul+tanh/f32/m2.n10", "dies-at-tanh failed when it was asked whether it runs it");
    assert_eq!(load(folder.path()).records.len(), 1);
    let mut command = calibrate(folder.path());
    command.args(["--runtime", "native,./dies-at-tanh.toml", "--problem", "mul+tanh/f32/m2.n10"]);
    command.arg("--plan").assert().code(1);
    let mut command = shortest(folder.path());
    command.args(["--runtime", "./dies-at-tanh.toml", "--problem", "mul+tanh/f32/m2.n10"]);
    let reason = "error: mul+tanh/f32/m2.n10: dies-at-tanh failed when";
    command.arg("--overwrite").assert().code(1).stderr(contains(reason));
    assert_nothing_is_left(folder.path());
}

#[test]
fn the_selftest_measures_a_runtime_against_itself() {
    let folder = folder(&["none"]);
    let mut command = calibrate(folder.path());
    command.args(["selftest", "--simulations", "0", "--runs", "1", "--processes", "3"]);
    command.args(["--threads", "1", "--runtime", "./none.toml"]);
    // Its first case has an addition, which the tiny one lacks: nothing is found out.
    command.assert().code(3).stdout(contains("on 1 thread, tiny@1.2 kernels: "));
    assert_nothing_is_left(folder.path());
    calibrate(folder.path())
        .args(["selftest", "--runtime", "numpi"])
        .assert()
        .code(2)
        .stderr(contains("did you mean `numpy`?"));
}

#[test]
fn one_that_cannot_be_used_says_what_to_install() {
    let folder = folder(&["missing", "rubbish", "leaves"]);
    std::fs::copy(folder.path().join("leaves.toml"), folder.path().join("same.toml")).unwrap();
    let run = |runtime: &str| {
        let mut command = shortest(folder.path());
        command.args(["--runtime", runtime, "--problem", PROBLEM]);
        command
    };
    run("./missing.toml").assert().code(5).stderr(
        contains("the runtime missing cannot be used: No module named 'tiny'")
            .and(contains("; to install what it needs: pip install tiny")),
    );
    run("./rubbish.toml")
        .assert()
        .code(1)
        .stderr(contains("cannot be read").and(contains("pip install").not()));
    run("./no-such.toml").assert().code(2).stderr(contains("cannot read"));
    run("pytroch").assert().code(2).stderr(contains(
        "error: unknown runtime `pytroch`; did you mean `pytorch`?; see `calibrate list runtimes`",
    ));
    run("./leaves.toml,./same.toml")
        .assert()
        .code(2)
        .stderr(contains("--runtime names two that are called leaves"));
    calibrate(folder.path())
        .args(["--runtime", "./leaves.toml", "--backend", "cuda"])
        .assert()
        .code(2)
        .stderr(contains("--runtime is for the cpu backend"));
    run("./leaves.toml").arg("--plan").assert().success();
    assert_nothing_is_left(folder.path());
}

/// A clock that is right for one variant only would make a speedup of nothing.
#[test]
fn a_clock_that_leaves_out_half_of_one_variant_makes_no_speedup() {
    let folder = folder(&["half-fused"]);
    let mut command = shortest(folder.path());
    command.args(["--runtime", "./half-fused.toml", "--problem", PROBLEM]).assert().success();
    let calibration = load(folder.path());
    let [record] = &calibration.records[..] else { panic!("{:?}", calibration.records) };
    assert_eq!(record.verdict, Verdict::Invalid, "{record:?}");
    assert!(record.disturbed.off_processor > Some(record.pairs / 2), "{record:?}");
}

/// A runtime on what the shipped ones share, whose fused variant never writes the last row of a buffer
/// that both keep their result in. The unfused one leaves the right row there.
const LAST_ROW_IS_OLD: &str = "
import sys
sys.path.insert(0, sys.argv[1])
from calibrate_runtime import Prepared, serve

class Runtime:
    name, needs, nchw = 'old-row', ['numpy'], False
    def version(self):
        return '1'
    def options(self, threads):
        return {}
    def supports(self, problem):
        pass
    def prepare(self, problem, tensors, threads):
        import numpy as np
        kept = np.empty(tensors.output.shape, np.float32)
        def bind():
            x, other = tensors.input(0), tensors.input(1)
            def rows(count):
                np.multiply(x[:count], other[:count], out=kept[:count])
                np.maximum(kept[:count], 0, out=kept[:count])
                return kept
            return {'unfused': lambda: rows(len(x)), 'fused': lambda: rows(len(x) - 1)}
        return Prepared(tensors, {'unfused': ['mul', 'relu'], 'fused': ['mul+relu']}, bind)

serve(Runtime())
";

#[test]
fn a_row_that_is_never_written_to_a_buffer_of_its_own_is_found() {
    if !is_installed("numpy") {
        return;
    }
    let folder = folder(&[]);
    std::fs::write(folder.path().join("old_row.py"), LAST_ROW_IS_OLD).unwrap();
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/runtimes");
    let text = format!(
        "kind = \"runtime\"\nschema_version = 1\nname = \"old-row\"\n\
         command = [\"python3\", \"old_row.py\", {shared:?}]\n"
    );
    std::fs::write(folder.path().join("old-row.toml"), text).unwrap();
    shortest(folder.path())
        .args(["--runtime", "./old-row.toml,native", "--problem", SMALL])
        .assert()
        .code(1)
        .stderr(contains("wrong result: the fused variant is off by inf"));
    // What is native is measured all the same.
    assert_eq!(load(folder.path()).records.len(), 1);
    assert_nothing_is_left(folder.path());
}
