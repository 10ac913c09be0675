//! Wrong command lines, damaged files, and machines that are not fit to be measured.

use fusion_cost_model::calibration::{CheckStatus, HardwareCalibration};
use predicates::prelude::*;
use predicates::str::contains;

use super::program::{EXAMPLE, TINY, calibrate, folder, names, shortest};

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
        (&["--fusion", "all", "--dtype", "f64"], "has no f64 kernels"),
        (&["--problem", "linear_bias/f32/m0.k1.n1"], "m (rows) is 0; it must be at least 1"),
        (&["--problem", "linear_bias/f32/m-5.k1.n1"], "must be a whole number"),
        (&["--problem", "linear_bias"], "expected chain/dtype/sizes"),
        (&["--problem", huge], "(24000000000000 bytes)"),
        (&["--problem", TINY, "--threads", "0"], "it must be a number from 1 to 4096"),
        (&["--problem", TINY, "--processes", "0"], "it must be 1, or from 3 to 1000"),
        (&["--problem", TINY, "--processes", "2"], "an interval over 2 processes says nothing"),
        (&["--problem", TINY, "--output", "x.toml", "--samples", "x.toml"], "own file"),
        (&["--problem", TINY, "--rounds", "1"], "1 is not in 2..=1000"),
        (&["selftest", "--runs", "4294967295"], "4294967295 is not in 0..=1000000"),
        (&["selftest", "--simulations", "1000001"], "1000001 is not in 0..=1000000"),
        (&["--fusion", "zzz"], "unknown fusion pattern `zzz`; known: "),
        (&["--problem", TINY, "--time-budget", "soon"], "write it as 90s, 10m or 1h30m"),
        (&["--problem", TINY, "--time-budget", "0s"], "longer than nothing"),
        (&["--problem", TINY, "--cache", "hot"], "[possible values: warm, cold]"),
        (&["--problem", "add_relu/f32/m1.n1", "--cache", "cold"], "too small for cold caches"),
        (&["--problem", TINY, "--output", "no/t.toml"], "the folder no does not exist"),
        (&["--problem", TINY, "--output", "."], "is a folder"),
        (&["--problem", TINY, "--output", "shapes.toml"], "shapes.toml: it is there already"),
        (&["--problem", TINY, "--samples", "shapes.toml"], "replace it with --overwrite"),
        (&["--problem", TINY, "--output", "/dev/null"], "it is a device, not a file"),
        (&["--fusion", "all", "--filter", "("], "'(' for '--filter <REGEX>': unclosed group\n"),
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
    write("sheet.toml", include_str!("../../profiles/hardware/h200.toml"));
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

/// Words of a command line are names of files where a shell has put them there: `calibrate show *`.
#[test]
fn what_a_terminal_would_obey_is_not_repeated() {
    let folder = folder();
    let name = "x\u{1b}[2J\u{9b}1m\u{202e}y";
    for args in [
        &["show", "a.toml", name][..],
        &[name],
        &["--backend", name],
        &["--problem", name],
        &["--color", "always", "show", "a.toml", name],
        &["trace", "info", name],
        &["trace", name],
    ] {
        let output = calibrate(folder.path()).args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && stderr.contains("y"), "{args:?}: {stderr:?}");
        for command in ["\u{1b}[2J", "\u{9b}", "\u{202e}"] {
            assert!(!stderr.contains(command), "{args:?}: {stderr:?}");
        }
    }
    let config = folder.path().join("config.toml");
    std::fs::write(&config, format!("hardware = \"{}\"\n", name.replace('\u{1b}', "\\u001b")))
        .unwrap();
    let mut help = calibrate(folder.path());
    let stdout = help.arg("--help").env("CALIBRATE_CONFIG", config).output().unwrap().stdout;
    let stdout = String::from_utf8(stdout).unwrap();
    assert!(stdout.contains("\\u{9b}1m") && !stdout.contains(['\u{1b}', '\u{9b}']), "{stdout:?}");
}

/// A word with a line end cannot look like a message of its own.
#[test]
fn refused_words_stay_on_one_line() {
    let folder = folder();
    for args in [
        &["show", "a.toml", "F\nerror: forged"][..],
        &["F\nerror: forged"],
        &["--progress=F\nerror: forged"],
        &["--dtype", "F\nerror: forged\u{1b}[0m"],
        &["trace", "F\nerror: forged\u{7}"],
    ] {
        let refused = calibrate(folder.path()).args(args).assert().code(2);
        let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(stderr.contains("F\\nerror: forged"), "{stderr}");
        assert!(!stderr.contains("\nerror: forged"), "{stderr}");
    }
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
