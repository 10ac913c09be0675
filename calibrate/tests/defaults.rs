//! Defaults of options, colours, and progress for programs, as a user meets them.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use fusion_cost_model::calibration::HardwareCalibration;
use predicates::prelude::*;
use predicates::str::contains;
use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

/// In a folder that is also where the user's files are.
fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").env("XDG_CONFIG_HOME", folder);
    for name in ["NO_COLOR", "COLUMNS", "CALIBRATE_CONFIG", "CALIBRATE_THREADS"] {
        command.env_remove(name);
    }
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    folder
}

/// The smallest run that has a verdict.
fn tiny(folder: &Path) -> Command {
    let mut command = calibrate(folder);
    command.args(["--problem", "add+relu6/f32/m4.n8", "--quick", "--force", "-o", "t.toml"]);
    command.args(["--processes", "1", "--rounds", "2"]);
    command
}

fn write_config(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join("calibrate")).unwrap();
    fs::write(folder.join("calibrate/config.toml"), text).unwrap();
}

#[test]
fn a_result_never_takes_the_place_of_the_defaults() {
    let folder = folder();
    let folder = folder.path();
    write_config(folder, "threads = 1\n");
    let file = folder.join("calibrate/config.toml");
    calibrate(folder)
        .args(["export", "e.toml", "--overwrite", "-o", "calibrate/config.toml"])
        .assert()
        .code(2)
        .stderr(contains("this command reads it; name another output"));
    let other = folder.join("other.toml");
    fs::copy(&file, &other).unwrap();
    calibrate(folder)
        .env("CALIBRATE_CONFIG", &other)
        .args(["export", "e.toml", "--overwrite", "-o", "other.toml"])
        .assert()
        .code(2);
    for path in [&file, &other] {
        assert_eq!(fs::read_to_string(path).unwrap(), "threads = 1\n");
    }
}

#[test]
fn the_file_and_variables_set_defaults_and_config_lists_them() {
    let folder = folder();
    let folder = folder.path();
    calibrate(folder)
        .arg("config")
        .assert()
        .success()
        .stdout(contains("config.toml, which is not there").and(contains("nothing is set")));
    write_config(folder, "threads = 1\nrounds = 3\nprocess-limit = \"5m\"\n");
    calibrate(folder)
        .arg("config")
        .env("CALIBRATE_ROUNDS", "2")
        .assert()
        .success()
        .stdout(contains("threads       = 1  (").and(contains("config.toml:1)")))
        .stdout(contains("rounds        = 2  (CALIBRATE_ROUNDS)"));
    // A run obeys, and the command line comes first.
    tiny(folder).assert().success();
    let calibration = HardwareCalibration::load(folder.join("t.toml")).unwrap();
    assert_eq!((calibration.records[0].threads, calibration.settings.rounds), (1, 2));
    // Another file, or none.
    fs::write(folder.join("mine.toml"), "cache = \"cold\"\n").unwrap();
    calibrate(folder)
        .args(["config", "--config", "mine.toml"])
        .assert()
        .success()
        .stdout(contains("file: mine.toml\n").and(contains("cache = cold  (mine.toml:1)")));
    // A name of two lines looks like no default.
    fs::copy(folder.join("mine.toml"), folder.join("a\nthreads = 9")).unwrap();
    calibrate(folder)
        .args(["config", "--config", "a\nthreads = 9"])
        .assert()
        .success()
        .stdout(contains("file: a\\nthreads = 9\n").and(contains("cache = cold  (a\\nthreads")));
    calibrate(folder)
        .arg("config")
        .env("CALIBRATE_CONFIG", "/dev/null")
        .assert()
        .success()
        .stdout(contains("nothing is set"));
    calibrate(folder)
        .arg("--help")
        .assert()
        .success()
        .stdout(contains("$XDG_CONFIG_HOME/calibrate/config.toml").and(contains("NO_COLOR")));
}

#[test]
fn a_wrong_file_is_refused_with_its_line() {
    let folder = folder();
    let folder = folder.path();
    write_config(folder, "threads = 2\nthread = 1\n");
    for args in [&["config"][..], &["show", "e.toml"], &["--problem", "x"]] {
        calibrate(folder)
            .args(args)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains("config.toml:2: unknown key `thread`; the keys are backend, cache"));
    }
    calibrate(folder)
        .args(["show", "e.toml", "--config", "no.toml"])
        .assert()
        .code(2)
        .stderr(contains("cannot read no.toml"));
    calibrate(folder)
        .args(["show", "e.toml", "--config", "/dev/null"])
        .env("CALIBRATE_BACKEND", "cida")
        .assert()
        .code(2)
        .stderr(contains("CALIBRATE_BACKEND: invalid value 'cida'"));
}

#[test]
fn colours_are_for_terminals_unless_asked_for() {
    let folder = folder();
    let folder = folder.path();
    let show = |args: &[&str], no_colour: &str| {
        let mut command = calibrate(folder);
        command.args(["show", "e.toml"]).args(args).env("NO_COLOR", no_colour);
        let output = command.assert().success().get_output().clone();
        String::from_utf8(output.stdout).unwrap()
    };
    let plain = show(&[], "");
    assert!(!plain.contains('\u{1b}') && plain.contains("FASTER"));
    assert_eq!(show(&["--color", "never"], ""), plain);
    let painted = show(&["--color", "always"], "1");
    assert!(painted.contains("\u{1b}[32mFASTER\u{1b}[0m"), "{painted}");
    // The words stay, and so does the layout.
    let without: String = painted
        .split('\u{1b}')
        .enumerate()
        .map(|(index, part)| if index == 0 { part } else { part.split_once('m').unwrap().1 })
        .collect();
    assert_eq!(without, plain);
    calibrate(folder)
        .args(["show", "no.toml", "--color=always"])
        .assert()
        .code(1)
        .stderr(contains("\u{1b}[1;31merror:\u{1b}[0m"));
    calibrate(folder)
        .args(["--help", "--color", "always"])
        .assert()
        .success()
        .stdout(contains("\u{1b}["));
    calibrate(folder).args(["show", "e.toml", "--color", "red"]).assert().code(2);
    write_config(folder, "color = \"always\"\n");
    assert_eq!(show(&[], "1"), painted);
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    text.lines().map(line).collect()
}

#[test]
fn progress_for_programs_is_an_object_on_each_line() {
    let folder = folder();
    let folder = folder.path();
    let run = |more: &[&str]| {
        let mut command = tiny(folder);
        command.args(["--progress", "json", "--threads", "1"]).args(more);
        lines(&command.assert().success().get_output().stderr)
    };
    let events = run(&[]);
    let of = |events: &[Value], name: &str| -> Vec<Value> {
        events.iter().filter(|event| event["event"] == name).cloned().collect()
    };
    let start = &of(&events, "run-start")[0];
    assert_eq!((&start["problems"], &start["processes"]), (&1.into(), &1.into()));
    let ends = of(&events, "problem-end");
    let [end] = &ends[..] else { panic!("{events:?}") };
    assert_eq!(end["subject"]["problem"], "add+relu6/f32/m4.n8");
    assert_eq!((&end["state"], &end["error"]), (&"finished".into(), &Value::Null));
    let calibration = HardwareCalibration::load(folder.join("t.toml")).unwrap();
    let found = end["found"]["speedup"]["value"].as_f64().unwrap();
    assert!((found / calibration.records[0].speedup_factor - 1.0).abs() < 1e-3, "{found}");
    assert!(end["found"]["change"].is_null());
    let processes = of(&events, "process-end");
    let last = processes.last().unwrap();
    assert_eq!(last["done"], last["expected"]);
    assert!(of(&events, "message").iter().any(|one| one["text"] == "wrote t.toml"));

    // An error is an object too.
    let mut command = tiny(folder);
    let output = command.args(["--progress", "json", "--shapes", "standart"]).assert().code(2);
    let last = lines(&output.get_output().stderr).pop().unwrap();
    assert_eq!((&last["event"], &last["level"]), (&"message".into(), &"error".into()));
}

/// A problem of the example, which was measured on another machine.
const OLD: &str = "linear_bias_relu/f32/m4096.k64.n256";

#[test]
fn what_became_of_each_problem_stands_behind_it() {
    let folder = folder();
    let folder = folder.path();
    let mut other = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    other.fingerprint.cpu_model = "another".to_owned();
    other.hardware.name = "Another".to_owned();
    other.hardware.detect = vec!["another".to_owned()];
    other.hardware.cores.source = "made up".to_owned();
    other.save(folder.join("old.toml")).unwrap();
    let run = |more: &[&str]| {
        let mut command = tiny(folder);
        command.args(["--threads", "2", "--baseline", "old.toml", "--problem", OLD]).args(more);
        command.assert().success()
    };
    let output = run(&[])
        .stderr(contains("old.toml has 1 of 2 problems"))
        .stderr(contains("old.toml is of another machine, Another"))
        .stderr(contains("calibrate compare old.toml t.toml"));
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    for line in [
        r"linear_bias_relu/f32/m4096\.k64\.n256: .*; \d+\.\d+ \[.*\] times the baseline's speedup",
        r"add\+relu6/f32/m4\.n8: .*; not in the baseline",
    ] {
        assert!(Regex::new(line).unwrap().is_match(&said), "{said}");
    }
    // The same for programs.
    let events = lines(&run(&["--progress", "json"]).get_output().stderr);
    let end = events
        .iter()
        .find(|event| event["event"] == "problem-end" && event["subject"]["problem"] == OLD);
    let found = &end.unwrap()["found"];
    let number = |value: &Value| value["value"].as_f64().unwrap();
    let old = other.records.iter().find(|record| record.problem.to_string() == OLD).unwrap();
    let change = number(&found["speedup"]) / old.speedup_factor;
    assert!((number(&found["change"]) / change - 1.0).abs() < 1e-9, "{found}");
    tiny(folder)
        .args(["--baseline", "no.toml"])
        .assert()
        .code(1)
        .stderr(contains("cannot read no.toml"));
}
