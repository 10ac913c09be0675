//! Files that are there already.

use predicates::str::contains;

use super::program::{EXAMPLE, calibrate, folder, names};

/// A profile of another calibrator, with one record.
pub(super) const FOREIGN: &str = r#"{
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
            run(false).code(2).stderr(contains("cannot write out: it is there already; name"))
        };
        assert_eq!(std::fs::read(path(output)).unwrap(), written);
    }
    assert!(names(&path("man")).len() > 10, "all pages or none");
}

/// A table without even a header would look like a failure of whatever reads it.
#[test]
fn a_calibration_without_records_is_refused_by_whatever_makes_rows() {
    let folder = folder();
    let head =
        EXAMPLE.split_once("[[fusion]]").unwrap().0.replace("num_records = 3", "num_records = 0");
    std::fs::write(folder.path().join("zero.toml"), head).unwrap();
    calibrate(folder.path()).args(["show", "zero.toml"]).assert().success();
    for args in ["export zero.toml", "export zero.toml --format jsonl", "report zero.toml"] {
        let mut command = calibrate(folder.path());
        command.args(args.split(' ')).assert().code(2).stderr(contains("no records"));
    }
}

/// Where nobody may write, the folder is named and not a temporary file in it.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_is_named() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let mut command = calibrate(folder.path());
    let refused = command.args(["export", "e.toml", "--output", "/proc/x.csv"]).assert().code(2);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(stderr.contains("cannot write /proc/x.csv: ") && !stderr.contains(".tmp"), "{stderr}");
}

/// `calibrate show <(cat FILE)`: what is read once can be a pipe.
#[cfg(unix)]
#[test]
fn a_pipe_is_read_like_a_file_and_a_huge_file_not_at_all() {
    let folder = folder();
    std::fs::write(folder.path().join("e.toml"), EXAMPLE).unwrap();
    let program = env!("CARGO_BIN_EXE_calibrate");
    for args in ["show /dev/stdin", "compare /dev/stdin e.toml", "validate /dev/stdin"] {
        let script = format!("cat e.toml | '{program}' {args}");
        let mut command = assert_cmd::Command::new("sh");
        command.current_dir(folder.path()).args(["-c", &script]).assert().success();
    }
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for args in [&["show", "pipe"][..], &["compare", "e.toml", "pipe"]] {
        let pipe = pipe.clone();
        let writer = std::thread::spawn(move || std::fs::write(pipe, EXAMPLE));
        let mut waiting = calibrate(folder.path());
        waiting.args(args).assert().success().stderr(contains("pipe is a pipe; waiting"));
        writer.join().unwrap().unwrap();
    }
    let huge = std::fs::File::create(folder.path().join("huge.toml")).unwrap();
    huge.set_len(5 << 30).unwrap();
    let huge = "huge.toml";
    for (args, code) in [
        (&["show", huge][..], 1),
        (&["compare", huge, "e.toml"], 1),
        (&["import", huge], 1),
        (&["--problem", "add_relu/f32/m4.n4", "--hardware", huge], 2),
    ] {
        calibrate(folder.path()).args(args).assert().code(code).stderr(contains("more than the "));
    }
}
