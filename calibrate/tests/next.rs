//! Runs that choose what to measure, files that grow, and rewrites, as a user meets them.

use std::path::Path;

use assert_cmd::Command;
use calibrate::measure::Cause;
use fusion_cost_model::Rewrite;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, Reason, ReasonCode, Verdict,
};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

/// A model with an open dimension: `linear+relu`.
const MODEL: &str = r#"{
    "kind": "graph", "schema_version": 1,
    "inputs": [{"name": "x", "dtype": "f32", "shape": ["batch", 16]}],
    "constants": [{"name": "w", "dtype": "f32", "shape": [16, 8]}],
    "nodes": [
        {"op": "MatMul", "inputs": ["x", "w"], "outputs": ["y"]},
        {"op": "Relu", "inputs": ["y"], "outputs": ["z"]}
    ],
    "outputs": ["z"]
}"#;

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    // The states of this machine are none of the tests' business.
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null");
    command
}

/// A calibration that goes on while other tests keep the machine busy.
fn quick(folder: &Path) -> Command {
    let mut command = calibrate(folder);
    command.args(["--force", "--quick", "--processes", "1", "--threads", "2"]);
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.json"), MODEL).unwrap();
    std::fs::write(folder.path().join("example.toml"), EXAMPLE).unwrap();
    folder
}

fn load(folder: &Path, name: &str) -> HardwareCalibration {
    HardwareCalibration::load(folder.join(name)).unwrap()
}

fn problems(calibration: &HardwareCalibration) -> Vec<String> {
    calibration.records.iter().map(|record| record.problem.to_string()).collect()
}

/// Lets records count that a busy machine disturbed.
fn make_valid(path: &Path) {
    let mut calibration = HardwareCalibration::load(path).unwrap();
    // On a busy machine they may be lower than what was measured after them.
    calibration.ceilings.clear();
    for noise in &mut calibration.noise {
        noise.disturbed = false;
        // As wide as a single process leaves them.
        (noise.ratio, noise.ratio_low, noise.ratio_high) = (1.0, 1.0 / 1.1, 1.1);
        noise.standard_error = 0.04;
    }
    for record in &mut calibration.records {
        record.noise_floor = Verdict::LEAST_NOISE_FLOOR;
        let gone = [ReasonCode::Undecided, ReasonCode::Unobserved, ReasonCode::AboveCeiling];
        let is_kept =
            |reason: &Reason| !reason.code.is_invalidity() && !gone.contains(&reason.code);
        record.reasons.retain(is_kept);
        record.pairs_kept = record.pairs;
        record.sample_ticks = record.sample_ticks.max(FusionRecord::LEAST_TICKS.into());
        for cause in Cause::ALL {
            *cause.count_of(&mut record.disturbed) = cause.can_disturb(record.clock).then_some(0);
        }
        let ends = [record.speedup_low, record.speedup_high];
        record.verdict = Verdict::by_interval(record.speedup_factor, ends, record.noise_floor);
        (record.ceiling_speedup, record.bottleneck_unfused) = (None, None);
        record.bottleneck_fused = None;
        if record.verdict == Verdict::Ambiguous {
            let text = "by a test".to_owned();
            record.reasons.push(Reason { code: ReasonCode::Undecided, text });
        }
    }
    calibration.save(path).unwrap();
}

#[test]
fn what_a_model_needs_is_added_to_a_file() {
    let folder = folder();
    let at = folder.path();
    let model = ["--for", "model.json", "--dim", "batch=4", "--output", "t.toml"];
    for option in ["--dry-run", "--plan"] {
        calibrate(at).args(model).args(["--threads", "2", option]).assert().success().stdout(
            contains("3 problems")
                .and(contains("1 of 1 are unsafe; nothing is known of what they may lose"))
                .and(contains("to measure").and(contains("linear+relu/f32"))),
        );
        assert!(!at.join("t.toml").exists(), "{option} writes nothing");
    }

    let single = "add_relu/f32/m4.n4";
    quick(at).args(["--problem", single, "--output", "t.toml"]).assert().success();
    let before = load(at, "t.toml");
    quick(at)
        .args(model)
        .assert()
        .success()
        .stdout(contains("known").and(contains("time   ")))
        .stderr(contains("to measure").and(contains("wrote t.toml")));
    let after = load(at, "t.toml");
    let found = problems(&after);
    for expected in [single, "linear/f32/m4.k16.n8", "linear+relu/f32/m4.k16.n8", "relu/f32/m4.n8"]
    {
        assert!(found.iter().any(|one| one == expected), "{expected}: {found:?}");
    }
    // What follows from the ceilings may change: the better ones of both runs count.
    let [kept, first] = [&after.records[0], &before.records[0]];
    assert_eq!((kept.problem, kept.speedup_factor), (first.problem, first.speedup_factor));
    assert_eq!(kept.unfused_timing, first.unfused_timing);
    assert_eq!(kept.fused_timing, first.fused_timing);
    assert_eq!(kept.verification, first.verification);
    let [addition] = &after.additions[..] else { panic!("{:?}", after.additions) };
    assert_eq!((addition.shapes.as_str(), addition.records), ("for model.json", 3));
    // A check can fail at one time and not at the other: other tests keep the machine busy.
    let mut expected = before.settings.clone();
    expected.forced = after.settings.forced;
    assert_eq!(after.settings, expected);
    calibrate(at).args(["show", "t.toml"]).assert().success().stdout(contains("4 records"));
}

#[test]
fn a_refresh_leaves_the_older_file_as_it_is() {
    let folder = folder();
    let at = folder.path();
    let named = ["add_relu/f32/m16.n64", "add_relu/f32/m64.n64", "linear_bias/f32/m8.k16.n8"];
    let named = named.iter().flat_map(|problem| ["--problem", problem]);
    quick(at).args(named).args(["--output", "old.toml"]).assert().success();
    make_valid(&at.join("old.toml"));
    let older = std::fs::read(at.join("old.toml")).unwrap();
    for option in ["--dry-run", "--plan"] {
        calibrate(at)
            .args(["--refresh", "old.toml", "--threads", "2", "--points", "2", option])
            .assert()
            .success()
            .stdout(contains("add_relu/f32").and(contains("linear_bias/f32")));
        assert!(!at.join("old.refreshed.toml").exists(), "{option} writes nothing");
    }
    quick(at)
        .args(["--refresh", "old.toml", "--points", "2"])
        .assert()
        // On a busy machine nothing may be valid.
        .stdout(contains("newer / older").and(contains("old.toml")).or(predicates::str::is_empty()))
        .stderr(contains("wrote old.refreshed.toml"));
    assert_eq!(std::fs::read(at.join("old.toml")).unwrap(), older);
    let first = problems(&load(at, "old.refreshed.toml"));
    assert_eq!(first.len(), 2);
    // Once more: the third problem is added.
    calibrate(at)
        .args(["--refresh", "old.toml", "--threads", "2", "--points", "2", "--dry-run"])
        .args(["--output", "old.refreshed.toml"])
        .assert()
        .success()
        .stdout(predicates::str::contains("/f32/").count(1));
    quick(at)
        .args(["--refresh", "old.toml", "--points", "2", "--output", "old.refreshed.toml"])
        .assert()
        .stderr(contains("wrote old.refreshed.toml"));
    let all = load(at, "old.refreshed.toml");
    assert_eq!((all.records.len(), all.additions.len()), (3, 1));
    assert_eq!(problems(&all)[..2], first);
    // And once more: nothing is left, and nothing else is measured.
    quick(at)
        .args(["--refresh", "old.toml", "--output", "old.refreshed.toml"])
        .assert()
        .success()
        .stderr(contains("old.refreshed.toml has all 3 problems of old.toml"));
    assert_eq!(problems(&load(at, "old.refreshed.toml")), problems(&all));
    calibrate(at)
        .args(["query", "old.refreshed.toml", "--prior", "old.toml"])
        .args(["--problem", "add_relu/f32/m32.n64"])
        .assert()
        .success()
        .stdout(contains("evidence    "));
    // Machines of one name may have different processors.
    let mut other = load(at, "old.toml");
    other.fingerprint.cpu_model = "another".to_owned();
    other.hardware.detect = vec!["another".to_owned()];
    other.hardware.cores.source = "made up".to_owned();
    other.save(at.join("other.toml")).unwrap();
    quick(at)
        .args(["--refresh", "other.toml"])
        .assert()
        .code(2)
        .stderr(contains("other.toml is of another machine"));
    calibrate(at)
        .args(["query", "old.refreshed.toml", "--prior", "other.toml"])
        .args(["--problem", "add_relu/f32/m32.n64"])
        .assert()
        .failure()
        .stderr(contains("the calibration is of"));
}

#[test]
fn a_folded_batch_norm_is_measured_beside_the_fused_one() {
    let folder = folder();
    let at = folder.path();
    let conv = "conv_bn_relu/f32/n1.c4.h8.w8.k8.r3.s3.pad1";
    quick(at)
        .args(["--problem", conv, "--problem", "add_relu/f32/m4.n4"])
        .args(["--rewrite", "bn_folded", "--output", "t.toml"])
        .assert()
        .success()
        .stdout(contains("fused as bn_folded").and(contains("3 records")));
    let calibration = load(at, "t.toml");
    let rewrites: Vec<Option<Rewrite>> =
        calibration.records.iter().map(|record| record.rewrite).collect();
    assert_eq!(rewrites, [None, Some(Rewrite::BnFolded), None]);
    let [fused, folded] = [&calibration.records[0], &calibration.records[1]];
    assert_eq!(fused.problem, folded.problem);
    assert_eq!(fused.unfused_kernels, folded.unfused_kernels);
    assert!(fused.fused_kernel.contains("batch_norm"), "{}", fused.fused_kernel);
    assert!(folded.fused_kernel.contains("bias+relu"), "{}", folded.fused_kernel);
    assert!(folded.verification.fused_error <= folded.verification.tolerance);
    for options in [&[][..], &["--rewrite", "bn_folded"]] {
        calibrate(at)
            .args(["query", "t.toml", "--problem", conv])
            .args(options)
            .assert()
            .success()
            .stdout(contains("evidence    "));
    }
    calibrate(at)
        .args(["query", "t.toml", "--problem", "add_relu/f32/m4.n4", "--rewrite", "bn_folded"])
        .assert()
        .success()
        .stdout(contains("evidence    unknown"));
}

/// Every wrong command line: one clear message, exit code 2, and nothing written.
#[test]
fn wrong_command_lines() {
    let folder = folder();
    std::fs::write(folder.path().join("wrong.txt"), "add_rleu/f32/m4.n4\n").unwrap();
    for (args, message) in [
        (&["--for", "model.json"][..], "--dim batch=8"),
        (&["--for", "model.json", "--dim", "batch"], "has no `=`"),
        (&["--for", "model.json", "--dim", "batch=1", "--dim", "batch=3"], "is given twice"),
        (&["--for", "model.json", "--fusion", "all"], "cannot be used with"),
        (&["--for", "model.json", "--refresh", "example.toml"], "cannot be used with"),
        (&["--for", "no.onnx"], "cannot read no.onnx"),
        (&["--for", "wrong.txt"], "wrong.txt, line 1"),
        (&["--for", "example.toml"], "example.toml"),
        (
            &["--for", "model.json", "--dim", "batch=4", "--profile", "example.toml"],
            "do not belong into example.toml",
        ),
        (&["--dim", "batch=8", "--fusion", "all"], "--dim is for a run with --for"),
        (&["--points", "8", "--fusion", "all"], "--refresh <OLD>"),
        (&["--dry-run"], "--refresh"),
        (&["--refresh", "example.toml", "--points", "0"], "from 1 to 10000"),
        (&["--rewrite", "bn_fold", "--fusion", "all"], "did you mean `bn_folded`"),
    ] {
        calibrate(folder.path())
            .args(args)
            .assert()
            .code(2)
            .stdout("")
            .stderr(contains(message).and(contains("panicked").not()));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}
