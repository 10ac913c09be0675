//! Plans in parts, and their files as one.

use std::collections::BTreeSet;
use std::path::Path;

use assert_cmd::Command;
use fusion_cost_model::calibration::HardwareCalibration;
use predicates::prelude::*;
use predicates::str::contains;

const SWEEP: &str = "add+relu6/f32/m{1,2,3,4}.n8";

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null");
    for name in ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "JOB_COMPLETION_INDEX"] {
        command.env_remove(name);
    }
    command
}

fn problems(file: &Path) -> Vec<String> {
    let calibration = HardwareCalibration::load(file).unwrap();
    calibration.records.iter().map(|record| record.problem.to_string()).collect()
}

#[test]
fn parts_of_a_plan_become_one_calibration() {
    let folder = tempfile::tempdir().unwrap();
    let part = |shard: &str, file: &str, variable: Option<(&str, &str)>| {
        calibrate(folder.path())
            .args(["--problem", SWEEP, "--quick", "--force", "--threads", "1"])
            .args(["--shard", shard, "--output", file])
            .envs(variable)
            .assert()
            .success();
    };
    part("1/2", "part1.toml", None);
    part("auto/2", "part2.toml", Some(("JOB_COMPLETION_INDEX", "1")));
    calibrate(folder.path())
        .args(["merge", "part2.toml", "part1.toml", "-o", "all.toml"])
        .assert()
        .success()
        .stdout("")
        .stderr(contains("wrote all.toml").and(contains("4 records of 2 files")));
    let all = problems(&folder.path().join("all.toml"));
    let expected: BTreeSet<String> = (1..=4).map(|m| format!("add+relu6/f32/m{m}.n8")).collect();
    assert_eq!(all.iter().cloned().collect::<BTreeSet<_>>(), expected);
    let parts = ["part1.toml", "part2.toml"].map(|name| problems(&folder.path().join(name)));
    assert_eq!(parts.concat(), all, "the earliest first");

    let merge = |args: &[&str]| calibrate(folder.path()).arg("merge").args(args).assert();
    merge(&["part1.toml", "part2.toml", "-o", "all.toml"]).code(2).stderr(contains("--overwrite"));
    merge(&["part1.toml", "part2.toml", "-o", "all.toml", "--overwrite"]).success();
    merge(&["part1.toml", "all.toml", "-o", "x.toml"])
        .code(1)
        .stderr(contains("in several files").and(contains("add+relu6/f32/m")));
    merge(&["part1.toml", "./part1.toml", "-o", "x.toml"]).code(2).stderr(contains("named twice"));
    merge(&["part1.toml", "-o", "part1.toml", "--overwrite"]).code(2).stderr(contains("output"));
    let mut other = HardwareCalibration::load(folder.path().join("part2.toml")).unwrap();
    other.fingerprint.microcode = Some("0xother".to_owned());
    other.save(folder.path().join("other.toml")).unwrap();
    merge(&["part1.toml", "other.toml", "-o", "x.toml"])
        .code(1)
        .stderr(contains("cannot be one calibration").and(contains("fingerprint.microcode: ")));
    assert!(!folder.path().join("x.toml").exists());
}

#[test]
fn a_part_can_be_empty_and_must_be_known() {
    let folder = tempfile::tempdir().unwrap();
    let of = |shard: &str| {
        let mut command = calibrate(folder.path());
        command.args(["--problem", "add+relu6/f32/m4.n4", "--shard", shard]);
        command
    };
    // One of the two has the problem, and the other one nothing.
    let outputs = ["1/2", "2/2"].map(|shard| of(shard).arg("--plan").assert().success());
    let texts = outputs.map(|output| {
        let output = output.get_output().clone();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    });
    assert_eq!(texts.iter().filter(|text| text.contains("nothing to measure: part")).count(), 1);
    for (shard, more, message) in [
        ("3/2", &[][..], "it must be I/N"),
        ("auto", &["--plan"], "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set"),
        ("1/2", &[], "name it with --output"),
    ] {
        of(shard).args(more).assert().code(2).stdout("").stderr(contains(message));
    }
    of("1/2")
        .args(["--refresh", "x.toml"])
        .assert()
        .code(2)
        .stderr(contains("cannot be used with"));
}
