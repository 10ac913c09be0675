//! The program as a user meets it: what it prints, writes and exits with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

use assert_cmd::Command;
use calibrate::measure::Method;
use calibrate::run::Entry;
use fusion_cost_model::calibration::{
    CheckStatus, HardwareCalibration, ReasonCode, RunEnd, Verdict,
};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

/// A problem that takes no time.
const SINGLE: &str = "layer_norm/f32/m8.n48";
const TINY: &str = "linear_bias_relu/f32/m8.k16.n8";

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    // The states of this machine are none of the tests' business.
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null");
    command
}

/// A calibration that goes on while other tests keep the machine busy.
fn forced(folder: &Path) -> Command {
    let mut command = calibrate(folder);
    command.arg("--force");
    command
}

/// The shortest calibration: one process for each problem.
fn shortest(folder: &Path) -> Command {
    let mut command = forced(folder);
    command.args(["--quick", "--processes", "1"]);
    command
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn from_the_command_line_to_a_file_to_an_answer() {
    let folder = folder();
    forced(folder.path())
        .args(["--problem", TINY, "--problem", "add+relu6/f32/m4.n4", "--problem", SINGLE])
        .args(["--quick", "--threads", "2", "--output", "t.toml"])
        .assert()
        .success()
        .stdout(contains(TINY).and(contains("add+relu6/f32/m4.n4")).and(contains("3 records")))
        .stderr(contains("wrote t.toml"));
    // Nothing is left but the file.
    assert_eq!(names(folder.path()), ["t.toml"]);

    let calibration = HardwareCalibration::load(folder.path().join("t.toml")).unwrap();
    assert_eq!(calibration.records.len(), 3);
    for record in &calibration.records {
        assert!(
            !record.reasons.iter().any(|reason| reason.code == ReasonCode::WrongAfterTiming),
            "{record:?}"
        );
        assert_eq!((record.threads, record.rounds), (2, 6));
        assert!((1..=3).contains(&record.processes), "a busy machine takes some away");
        assert!(record.sample_ticks >= 1000);
        assert!(record.verification.fused_error <= record.verification.tolerance);
        assert_eq!(record.unfused_kernels.len(), record.operators.len());
        assert!(record.ceiling_speedup.is_some());
        let [unfused, fused] = [&record.unfused_timing, &record.fused_timing];
        assert_eq!(unfused.process_ms.len(), record.processes as usize);
        if record.problem.to_string() == SINGLE {
            assert_eq!((record.speedup_factor, record.steps.len()), (1.0, 0));
            assert_eq!(unfused.process_ms, fused.process_ms);
            assert_eq!(record.unfused_latency_ms, record.fused_latency_ms);
            assert!(matches!(record.verdict, Verdict::Single | Verdict::Invalid));
        } else {
            let ops: Vec<&str> = record.steps.iter().map(|step| &step.op[..]).collect();
            assert_eq!(ops, record.operators);
            // The kernels take most of the time, but a machine that is busy can tear them apart.
            let outside = record.share_outside_steps.unwrap();
            assert!((-2.0..0.9).contains(&outside), "{outside}");
        }
    }
    assert_eq!(calibration.noise.len(), 5, "two for each family, and the single op");
    // On a busy machine a record can be INVALID, which the model does not answer with.
    let evidence = match calibration.records[0].verdict {
        Verdict::Invalid => "evidence    ",
        _ => "evidence    measured",
    };
    assert!(!calibration.ceilings.is_empty(), "one for each state of the machine");
    assert!(calibration.checks.iter().any(|check| check.name == "load"));
    assert_eq!(calibration.settings.end, RunEnd::Complete);

    calibrate(folder.path())
        .args(["show", "t.toml"])
        .assert()
        .success()
        .stdout(contains("linear").and(contains("elementwise")).and(contains(TINY)));
    calibrate(folder.path())
        .args(["query", "t.toml", "--problem", "Linear_Bias_ReLU/float32/n8.m8.k16"])
        .assert()
        .success()
        .stdout(contains(evidence).and(contains(format!("problem     {TINY}"))));
    calibrate(folder.path())
        .args(["query", "t.toml", "--problem", SINGLE])
        .assert()
        .success()
        .stdout(contains("bytes ").and(contains("decision").not()));
    calibrate(folder.path())
        .args(["query", "t.toml", "--problem", "mlp/f32/m1.k1.n1.o1"])
        .assert()
        .success()
        .stdout(contains("evidence    roofline").and(contains("calibrate --problem mlp")));
}

#[test]
fn json_goes_to_stdout_and_nothing_else_does() {
    let folder = folder();
    let output = shortest(folder.path())
        .args(["--problem", TINY, "--json", "--output", "t.toml"])
        .assert()
        .success();
    let calibration: HardwareCalibration =
        serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(calibration, HardwareCalibration::load(folder.path().join("t.toml")).unwrap());

    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let output = calibrate(folder.path())
        .args(["query", "e.toml", "--json", "--problem", "add_relu/f32/m4096.n1024"])
        .assert()
        .success();
    let answer: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(answer["evidence"], "measured");
    assert!(answer["speedup"]["low"].as_f64().unwrap() > 0.0);
}

#[test]
fn another_machine_is_measured_but_never_mislabelled() {
    let folder = folder();
    // No machine that runs tests is a Jetson as far as its processor's name goes.
    shortest(folder.path())
        .args(["--hardware", "jetson-agx-orin", "--problem", TINY, "--output", "t.toml"])
        .assert()
        .success()
        .stderr(contains("warning: --hardware names jetson-agx-orin").count(2));
    let calibration = HardwareCalibration::load(folder.path().join("t.toml")).unwrap();
    assert_eq!(calibration.settings.requested_hardware, "jetson-agx-orin");
    assert!(!calibration.settings.hardware_matches);
    assert_ne!(calibration.hardware.id, "jetson-agx-orin");

    shortest(folder.path())
        .args(["--hardware", "jetson-agx-orin", "--problem", TINY])
        .args(["--strict", "--output", "s.toml"])
        .assert()
        .code(3);
    calibrate(folder.path())
        .args(["--hardware", "jetson-agx-orin", "--require-hardware", "--problem", TINY])
        .assert()
        .code(2)
        .stderr(contains("--require-hardware refuses that"));
    assert_eq!(names(folder.path()), ["s.toml", "t.toml"]);
}

#[test]
fn the_file_is_named_after_the_observed_machine() {
    let folder = folder();
    shortest(folder.path()).args(["--problem", TINY]).assert().success();
    let [name] = &names(folder.path())[..] else { panic!("more than one file") };
    let id = HardwareCalibration::load(folder.path().join(name)).unwrap().hardware.id;
    assert_eq!(name, &format!("calibration-{id}.toml"));
}

/// Every wrong command line: one clear message, exit code 2, and nothing written.
#[test]
fn wrong_command_lines() {
    let folder = folder();
    let shapes = "kind = \"shapes\"\nschema_version = 2\nnam = 3\n";
    std::fs::write(folder.path().join("shapes.toml"), shapes).unwrap();
    let huge = "add_relu/f32/m1000000.n1000000";
    for (args, message) in [
        (&["--fusion", "linear_bais_relu"][..], "did you mean `linear_bias_relu`"),
        (&["--fusion", "linear+bais"], "unknown op `bais`; did you mean `bias`"),
        (&["--fusion", "relu+linear"], "linear must be the first op"),
        (&["--fusion", "max_pool+relu"], "max_pool stands alone or behind a convolution"),
        (&["--fusion", "all", "--shapes", "standart"], "did you mean `standard`"),
        (&["--fusion", "all", "--shapes", "no.toml"], "cannot read no.toml"),
        (&["--fusion", "all", "--shapes", "shapes.toml"], "line 3"),
        (
            &["--problem", TINY, "--hardware", "shapes.toml"],
            "it is a set of shapes, not a hardware",
        ),
        (&["--fusion", "all", "--hardware", "i7-12700x"], "did you mean `i7-12700k`"),
        (&["--fusion", "all", "--hardware", "no.toml"], "cannot read no.toml"),
        (&["--fusion", "all", "--dtype", "f33"], "did you mean `f32`"),
        (&["--fusion", "all", "--dtype", "f16"], "has no f16 kernels"),
        (&["--problem", "linear_bias/f32/m0.k1.n1"], "m (rows) is 0; it must be at least 1"),
        (&["--problem", "linear_bias/f32/m-5.k1.n1"], "must be a whole number"),
        (&["--problem", "linear_bias"], "expected chain/dtype/sizes"),
        (&["--problem", huge], "(24000000000000 bytes)"),
        (&["--problem", TINY, "--threads", "0"], "it must be a number from 1 to 4096"),
        (&["--problem", TINY, "--processes", "0"], "it must be 1, or from 3 to 1000"),
        (&["--problem", TINY, "--processes", "2"], "an interval over 2 processes says nothing"),
        (&["--problem", TINY, "--output", "x.toml", "--samples", "x.toml"], "own file"),
        (&["--problem", TINY, "--rounds", "1"], "1 is not in 2..=1000"),
        (&["--problem", TINY, "--time-budget", "soon"], "write it as 90s, 10m or 1h30m"),
        (&["--problem", TINY, "--time-budget", "0s"], "longer than nothing"),
        (&["--problem", TINY, "--cache", "hot"], "[possible values: warm, cold]"),
        (&["--problem", "add_relu/f32/m1.n1", "--cache", "cold"], "too small for cold caches"),
        (&["--problem", TINY, "--output", "no/t.toml"], "the folder no does not exist"),
        (&["--problem", TINY, "--output", "."], "is a folder"),
        (&["--problem", TINY, "--output", "shapes.toml"], "shapes.toml: it is there already"),
        (&["--problem", TINY, "--samples", "shapes.toml"], "replace it with --overwrite"),
        (&["--problem", TINY, "--output", "/dev/null"], "it is a device, not a file"),
        (&["--no-such-flag"], "unexpected argument"),
        (&["--problem", TINY, "--backend", "cida"], "did you mean `cuda`"),
        (&["--problem", TINY, "--device", "0"], "--device is for GPUs"),
        (&["--problem", TINY, "--clock", "device"], "--clock is for GPUs"),
        (&["--problem", TINY, "--implementation", "native"], "--implementation is for GPUs"),
        (&["--problem", TINY, "--gpu-lib-dir", "."], "--gpu-lib-dir is for GPUs"),
        (&["--problem", TINY, "--code-cache", "."], "--code-cache is for GPUs"),
        (
            &["--problem", TINY, "--backend", "cuda", "--threads", "2"],
            "--threads is for the cpu backend",
        ),
        (&["--problem", TINY, "--backend", "hip", "--unbound"], "--unbound is for the cpu backend"),
        (&["--problem", TINY, "--backend", "cuda", "--clock", "host"], "launch-inclusive, both]"),
        (&["--fusion", "linear_bais_relu", "--backend", "cuda"], "did you mean"),
        (&["query", "e.toml", "--problem", "add_relu/f32/m4"], "n (columns) is missing"),
    ] {
        // The sum of what a huge problem needs depends on the threads; that it is refused with
        // its bytes does not.
        let message = if args.contains(&huge) { "bytes), but only" } else { message };
        calibrate(folder.path())
            .args(args)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(message).and(contains("panicked").not()));
    }
    assert_eq!(names(folder.path()), ["shapes.toml"]);
}

#[test]
fn damaged_files_are_refused_with_their_name() {
    let folder = folder();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("truncated.toml", &EXAMPLE[..EXAMPLE.len() / 2]);
    write("newer.toml", &EXAMPLE.replacen("schema_version = 5", "schema_version = 6", 1));
    write("binary.toml", "\u{0}\u{1}\u{2}");
    write("sheet.toml", include_str!("../profiles/hardware/h200.toml"));
    for (name, message) in [
        ("truncated.toml", "truncated.toml: not a valid calibration file"),
        ("newer.toml", "newer.toml: schema_version is 6"),
        ("binary.toml", "binary.toml: not a valid calibration file"),
        ("missing.toml", "cannot read missing.toml"),
        ("sheet.toml", "sheet.toml: it is a hardware profile, not a calibration; name it with"),
    ] {
        calibrate(folder.path())
            .args(["show", name])
            .assert()
            .code(1)
            .stdout("")
            .stderr(contains(message));
        calibrate(folder.path())
            .args(["query", name, "--problem", TINY])
            .assert()
            .code(1)
            .stderr(contains(message));
    }
}

#[test]
fn lists_and_help_read_as_they_should() {
    let folder = folder();
    for what in ["patterns", "ops", "shapes", "hardware"] {
        let output = calibrate(folder.path()).args(["list", what]).assert().success();
        let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
        insta::assert_snapshot!(format!("list_{what}"), text);
    }
    calibrate(folder.path())
        .args(["list", "devices"])
        .assert()
        .success()
        .stdout(contains("cpu   ").and(contains("\n  cuda  ")).and(contains("\n  hip   ")));
    let output = calibrate(folder.path()).args(["--help"]).assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    insta::assert_snapshot!("help", text);
    calibrate(folder.path()).assert().code(2).stderr(contains("Usage: calibrate"));
    for shell in ["bash", "zsh", "fish"] {
        calibrate(folder.path())
            .args(["completions", shell])
            .assert()
            .success()
            .stdout(contains("require-hardware"));
    }
    calibrate(folder.path()).arg("man").assert().success().stdout(contains(".TH calibrate 1"));
    calibrate(folder.path()).args(["man", "--output", "man1"]).assert().success();
    for page in ["calibrate.1", "calibrate-show.1", "calibrate-trace-compare.1"] {
        assert!(folder.path().join("man1").join(page).exists(), "{page}");
    }
}

#[test]
fn show_reads_as_it_should() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let output = calibrate(folder.path()).args(["show", "e.toml"]).assert().success();
    insta::assert_snapshot!("show", String::from_utf8(output.get_output().stdout.clone()).unwrap());
    let query = ["query", "e.toml", "--problem", "add_relu/f32/m4096.n1024"];
    let output = calibrate(folder.path()).args(query).assert().success();
    insta::assert_snapshot!(
        "query",
        String::from_utf8(output.get_output().stdout.clone()).unwrap()
    );
}

/// What the time does not suffice for is listed, and the same command goes on with it.
#[test]
fn a_run_goes_on_when_its_time_was_up() {
    let folder = folder();
    let args = ["--problem", TINY, "--problem", "add_relu/f32/m4.n4", "--threads", "1"];
    let args = [&args[..], &["--quick", "--processes", "3", "--rounds", "3"]].concat();
    let args = [&args[..], &["--output", "t.toml"]].concat();
    let load = || HardwareCalibration::load(folder.path().join("t.toml")).unwrap();
    forced(folder.path())
        .args(&args)
        .args(["--time-budget", "1ns"])
        .assert()
        .code(1)
        .stderr(contains("nothing was measured; no file was written"));
    // Measuring the ceilings takes about a second.
    let mut budget_s = 0;
    loop {
        // On a busy machine a part may end before anything is measured: the next one has longer.
        budget_s += 4;
        assert!(budget_s < 100);
        let budget = format!("{budget_s}s");
        let part = forced(folder.path()).args(&args).args(["--time-budget", &budget]).assert();
        if !folder.path().join("t.toml").exists() {
            part.code(1).stderr(contains("nothing was measured"));
            continue;
        }
        match load().settings.end {
            RunEnd::Complete => break,
            RunEnd::TimeBudget => assert!(folder.path().join("t.toml.journal").exists()),
            end @ (RunEnd::Interrupted | RunEnd::Disturbed) => panic!("ended as {end:?}"),
        }
    }
    let whole = load();
    assert_eq!(whole.settings.time_budget_s, Some(f64::from(budget_s)));
    assert_eq!((whole.records.len(), whole.skipped.len()), (2, 0));
    for record in &whole.records {
        assert!((3..=6).contains(&record.processes), "{}", record.processes);
        // Processes that a busy machine left without an undisturbed pair count as rounds alone.
        assert!(record.rounds % 3 == 0 && record.rounds >= 3 * record.processes);
    }
    assert_eq!(names(folder.path()), ["t.toml"]);
}

/// `calibrate 2> /dev/full`, and a stderr that nobody reads any more.
#[cfg(target_os = "linux")]
#[test]
fn a_full_or_closed_stderr_loses_nothing() {
    use std::process::{Command as Process, Stdio};
    let folder = folder();
    let closed = || {
        let mut child = Process::new("true").stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().unwrap();
        child.wait().unwrap();
        Stdio::from(stdin)
    };
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let run = ["--force", "--problem", TINY, "--quick", "--processes", "1", "--output", "t.toml"];
    for (args, stderr, code) in [
        (&["--fusion", "nothing"][..], full(), 2),
        (&["--fusion", "nothing"], closed(), 2),
        (&["show", "no.toml"], full(), 1),
        (&run, closed(), 0),
    ] {
        let mut program = Process::new(env!("CARGO_BIN_EXE_calibrate"));
        let program = program.current_dir(folder.path()).env("XDG_CACHE_HOME", "/dev/null");
        let status = program.args(args).stdout(Stdio::null()).stderr(stderr).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
    assert!(HardwareCalibration::load(folder.path().join("t.toml")).is_ok());
    let mut program = Process::new(env!("CARGO_BIN_EXE_calibrate"));
    let output = program.args(["list", "ops"]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("error: "), "{output:?}");
}

/// Two runs have two seeds, unless one is named; a run that goes on keeps its own, whose journal
/// another seed puts aside.
#[test]
fn every_run_has_a_seed_of_its_own() {
    let folder = folder();
    let run = |output: &str, args: &[&str]| {
        let mut command = shortest(folder.path());
        command.args(["--problem", TINY, "--threads", "1", "--output", output]);
        command.args(args).assert()
    };
    let seed =
        |output: &str| HardwareCalibration::load(folder.path().join(output)).unwrap().settings.seed;
    run("a.toml", &[]).success();
    run("b.toml", &[]).success();
    assert_ne!(seed("a.toml"), seed("b.toml"));
    run("c.toml", &["--seed", "7", "--time-budget", "1ns"]).code(1);
    run("c.toml", &[]).success();
    assert_eq!(seed("c.toml"), 7);
    run("c.toml", &["--seed", "8", "--time-budget", "1ns"]).code(1);
    run("c.toml", &["--seed", "9"]).success().stderr(contains("put aside"));
    assert_eq!(seed("c.toml"), 9);
    assert_eq!(names(folder.path()), ["a.toml", "b.toml", "c.toml", "c.toml.journal.old1"]);
}

/// The worker is not a command for people, and says so.
#[test]
fn a_worker_without_a_task_says_what_it_is() {
    let folder = folder();
    calibrate(folder.path())
        .arg("worker")
        .write_stdin("hello\n")
        .assert()
        .code(1)
        .stderr(contains("this is a worker, which is only started by its own program"));
    calibrate(folder.path()).arg("--help").assert().success().stdout(contains("worker").not());
}

/// A failed check of the machine stops the run before anything is written; --force is recorded.
#[test]
fn a_failed_check_stops_the_run_unless_forced() {
    let folder = folder();
    let processors = std::thread::available_parallelism().unwrap().get();
    // With more, all of them spin for the few processors there are, and the run takes minutes.
    let threads = (processors + 1).to_string();
    let args = ["--problem", TINY, "--threads", &threads, "--output", "t.toml"];
    calibrate(folder.path()).args(args).assert().code(1).stderr(
        contains(format!("error: threads: {threads} threads on"))
            .and(contains("pass --force to continue")),
    );
    assert!(names(folder.path()).is_empty());
    shortest(folder.path()).args(args).assert().success();
    let calibration = HardwareCalibration::load(folder.path().join("t.toml")).unwrap();
    let threads = calibration.checks.iter().find(|check| check.name == "threads").unwrap();
    assert!(calibration.settings.forced);
    assert_eq!(threads.status, CheckStatus::Fail);
}

#[test]
fn cold_caches_are_a_setting_of_their_own() {
    let folder = folder();
    let problem = "add_relu/f32/m512.n512";
    for cache in ["warm", "cold"] {
        let output = format!("{cache}.toml");
        shortest(folder.path())
            .args(["--problem", problem, "--threads", "1"])
            .args(["--cache", cache, "--output", &output])
            .assert()
            .success();
        calibrate(folder.path())
            .args(["query", &output, "--problem", problem, "--cache", cache])
            .assert()
            .success()
            .stdout(contains(format!("{cache} caches")));
        let file = HardwareCalibration::load(folder.path().join(&output)).unwrap();
        assert_eq!(file.records[0].cache_state.name(), cache);
    }
    calibrate(folder.path())
        .args(["query", "warm.toml", "--problem", problem, "--cache", "cold"])
        .assert()
        .success()
        .stdout(contains("evidence    unknown").and(contains("--cache cold")));
}

#[test]
fn every_sample_can_be_kept() {
    let folder = folder();
    forced(folder.path())
        .args(["--problem", TINY, "--quick", "--threads", "1", "--output", "t.toml"])
        .args(["--samples", "s.jsonl"])
        .assert()
        .success()
        .stderr(contains("wrote s.jsonl"));
    let text = std::fs::read_to_string(folder.path().join("s.jsonl")).unwrap();
    let entries: Vec<Entry> =
        text.lines().skip(1).map(|line| Entry::from_line(line).unwrap()).collect();
    let processes: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Process { subject, report, .. } => Some((subject.problem.to_string(), report)),
            _ => None,
        })
        .collect();
    assert!(processes.len() >= 9, "three each of two controls and the problem");
    let of_problem = processes.iter().filter(|(name, _)| name == TINY);
    let samples: Vec<_> = of_problem.map(|(_, report)| &report.samples).collect();
    assert_eq!(samples.iter().map(|one| one.rounds.len()).collect::<Vec<_>>(), [2, 2, 2]);
    // The speedup of the file follows from the samples, where no state of the machine comes between.
    let record = &HardwareCalibration::load(folder.path().join("t.toml")).unwrap().records[0];
    let correlation = record.process_correlation.unwrap_or_default();
    let method = Method { level: 0.95, correlation, states: &[] };
    let estimate = calibrate::measure::estimate(&samples, &method).unwrap();
    let is_same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-5;
    if record.by_state.is_empty() {
        assert!(is_same(record.speedup_factor, estimate.ratio));
        assert!(is_same(record.speedup_low, estimate.low), "{record:?}");
    }
    assert!(is_same(record.unfused_latency_ms / record.fused_latency_ms, record.speedup_factor));
}

/// The simulation through the command line, with too few draws to say anything about coverage.
#[test]
fn the_selftest_reports_for_people_and_for_programs() {
    let folder = folder();
    calibrate(folder.path())
        .args(["selftest", "--runs", "0", "--simulations", "4"])
        .assert()
        .stdout(contains("position bias").and(contains("half-width")));
    let output = calibrate(folder.path())
        .args(["selftest", "--runs", "1", "--simulations", "4", "--threads", "1", "--json"])
        .assert();
    let result: serde_json::Value = serde_json::from_slice(&output.get_output().stdout).unwrap();
    assert_eq!(result["simulation"].as_array().unwrap().len(), 46);
    let kinds = result["against_itself"].as_array().unwrap();
    assert!(kinds.len() == 2 && kinds.iter().all(|kind| kind["runs"] == 1), "{kinds:?}");
    let code = match result["result"].as_str().unwrap() {
        "passed" => 0,
        "undecided" => 3,
        _ => 4,
    };
    output.code(code);
}

#[test]
fn a_trace_is_summed_up_for_people_and_for_programs() {
    let folder = folder();
    let event = |name: &str, ts: u32, dur: u32| {
        format!(
            "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"{name}\", \"pid\": 0, \"tid\": 7, \
             \"ts\": {ts}, \"dur\": {dur}, \"args\": {{\"device\": 0, \"stream\": 7}}}}"
        )
    };
    let events = [event("ampere_sgemm_128x64_tn", 0, 30), event("what_is_this", 40, 10)];
    let device = "{\"id\": 0, \"name\": \"NVIDIA A100\", \"warpSize\": 32, \"numSms\": 108}";
    let text =
        format!("{{\"deviceProperties\": [{device}], \"traceEvents\": [{}]}}", events.join(","));
    std::fs::write(folder.path().join("t.json"), text).unwrap();
    calibrate(folder.path())
        .args(["trace", "info", "t.json"])
        .assert()
        .success()
        .stdout(contains("vendor      NVIDIA").and(contains("NVIDIA A100, 108 multiprocessors")));
    calibrate(folder.path()).args(["trace", "kernels", "t.json"]).assert().success().stdout(
        contains("2 kernels, copies and fills, 40.0 us together; busy for 40.0 us of 50.0 us")
            .and(contains("75.0 %"))
            .and(contains("25.0 % of the time is in kernels that no rule knows")),
    );
    let output = calibrate(folder.path()).args(["trace", "kernels", "t.json", "--json"]).assert();
    let summary: serde_json::Value =
        serde_json::from_slice(&output.success().get_output().stdout).unwrap();
    assert_eq!(summary["by_class"][0]["name"], "GEMM");
    assert_eq!(summary["total_ns"], 40_000);

    std::fs::write(folder.path().join("no.json"), "# a heading").unwrap();
    for (file, message) in
        [("no.json", "is not a profiler trace"), ("missing.json", "cannot read missing.json")]
    {
        calibrate(folder.path())
            .args(["trace", "kernels", file])
            .assert()
            .code(1)
            .stdout("")
            .stderr(contains(message).and(contains("os error 2): ").not()));
    }
}

/// A process needs three, a file a fourth one, and a worker more than either.
#[cfg(unix)]
#[test]
fn too_few_file_descriptors_are_an_error_and_no_panic() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let program = env!("CARGO_BIN_EXE_calibrate");
    let run = |limit: u32, args: &str| {
        let script = format!("ulimit -n {limit}; exec '{program}' {args}");
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).env("XDG_CACHE_HOME", "/dev/null");
        command.args(["-c", &script]).assert()
    };
    run(4, "show e.toml").success();
    let measure = format!("--problem {TINY} --quick --force --output t.toml");
    for (limit, args) in [(3, "show e.toml"), (4, &measure), (6, &measure), (9, &measure)] {
        run(limit, args).code(predicates::ord::ne(101)).stderr(contains("panicked").not());
    }
}

/// A profile of another calibrator, with one record.
const FOREIGN: &str = r#"{
  "metadata": {"hardware_name": "other", "cpu_count": 12},
  "theoretical_peak_gflops": 1280.0, "theoretical_bandwidth_gbps": 89.6,
  "fusion_profiles": {"a": {
    "fusion_pattern": "Linear_Bias", "unfused_latency_ms": 2.0, "unfused_gflops": 537.133,
    "unfused_memory_bytes": 12587008, "fused_latency_ms": 1.6, "fused_memory_bytes": 8392704,
    "speedup_factor": 1.25, "input_shape": [512, 1024, 1024]}}}"#;

#[test]
fn every_command_replaces_what_is_its_own_and_nothing_else() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.toml"), EXAMPLE).unwrap();
    std::fs::write(path("a.json"), FOREIGN).unwrap();
    std::fs::create_dir(path("man")).unwrap();
    for (args, output, own) in [
        (&["import", "a.json", "-o", "out"][..], "out", true),
        (&["compare", "a.toml", "a.toml", "-o", "out"], "out", false),
        (&["validate", "a.toml", "-o", "out"], "out", false),
        (&["man", "-o", "man"], "man/calibrate-query.1", true),
    ] {
        let run = |overwrite: bool| {
            let flag = overwrite.then_some("--overwrite");
            calibrate(folder.path()).args(args).args(flag).assert()
        };
        std::fs::write(path(output), "years of work").unwrap();
        run(false).code(2).stderr(contains("--overwrite"));
        assert_eq!(std::fs::read_to_string(path(output)).unwrap(), "years of work");
        run(true).success();
        let written = std::fs::read(path(output)).unwrap();
        assert_ne!(written, b"years of work");
        // Its own result, once more.
        if own {
            run(false).success()
        } else {
            run(false).code(2)
        };
        assert_eq!(std::fs::read(path(output)).unwrap(), written);
    }
    assert!(names(&path("man")).len() > 10, "all pages or none");
}

/// Ctrl-C leaves a valid file with what is done, and does not take the place of a whole one.
#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_is_done() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command as Process, Stdio};

    let folder = folder();
    for (round, expected) in [(0, "t.toml"), (1, "t.partial.toml")] {
        if round == 1 {
            // Now there is a whole calibration, which a part must not replace.
            std::fs::remove_file(folder.path().join("t.toml.journal")).unwrap();
            std::fs::write(folder.path().join("t.toml"), EXAMPLE).unwrap();
        }
        let mut child = Process::new(env!("CARGO_BIN_EXE_calibrate"))
            .current_dir(folder.path())
            .args(["--fusion", "elementwise", "--quick", "--force", "--output", "t.toml"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("after 1 of 3 processes") {
            line.clear();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended by itself");
        }
        let killed = Process::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        // Read on, so that the child never waits for its reader.
        let rest: Vec<String> = stderr.lines().map(Result::unwrap).collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{rest:?}");
        let calibration = HardwareCalibration::load(folder.path().join(expected)).unwrap();
        assert_eq!(calibration.settings.end, RunEnd::Interrupted);
        assert_eq!(calibration.records.len(), 8);
        assert!(calibration.records.iter().any(|record| record.rounds < 6), "some lack a process");
        assert!(folder.path().join("t.toml.journal").exists());
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("t.toml")).unwrap(), EXAMPLE);
}
