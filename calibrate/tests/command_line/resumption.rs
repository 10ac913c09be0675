//! Runs that end early, and go on.

use fusion_cost_model::calibration::{HardwareCalibration, RunEnd};
use predicates::str::contains;

use super::program::{EXAMPLE, TINY, folder, forced, names, shortest};

/// What the time does not suffice for is listed, and the same command goes on with it.
#[test]
fn a_run_goes_on_when_its_time_was_up() {
    let folder = folder();
    let args = ["--problem", TINY, "--problem", "add_relu/f32/m4.n4", "--threads", "1"];
    let args = [&args[..], &["--quick", "--processes", "3", "--rounds", "3"]].concat();
    let args = [&args[..], &["--output", "t.toml"]].concat();
    let load = || HardwareCalibration::load(folder.path().join("t.toml")).unwrap();
    forced(folder.path()).args(&args).args(["--time-budget", "1ns"]).assert().code(1).stderr(
        contains("nothing was measured; no file was written: the time was over before any of its"),
    );
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

/// Ctrl-C leaves a valid file with what is done, and does not take the place of a whole one.
#[cfg(unix)]
#[test]
fn an_interrupted_run_keeps_what_is_done() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command as Process, Stdio};
    use std::time::Duration;

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
        let kill =
            || Process::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap();
        assert!(kill().status.success());
        // As `timeout` and launchers of jobs do, which send one to the whole group as well.
        std::thread::sleep(Duration::from_millis(20));
        kill();
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
