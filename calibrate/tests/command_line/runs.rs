//! Calibrations: from the command line to a file to an answer.

use calibrate::measure::Method;
use calibrate::run::Entry;
use fusion_cost_model::calibration::{HardwareCalibration, ReasonCode, RunEnd, Verdict};
use predicates::prelude::*;
use predicates::str::contains;

use super::program::{EXAMPLE, SINGLE, TINY, calibrate, folder, forced, names, shortest};

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
        let has = |code| record.reasons.iter().any(|reason| reason.code == code);
        assert!(!has(ReasonCode::WrongAfterTiming), "{record:?}");
        assert_eq!((record.threads, record.rounds), (2, 6), "{record:?}");
        assert!((1..=3).contains(&record.processes), "a busy machine takes some away");
        assert!(record.sample_ticks >= 1000 || has(ReasonCode::TooFewTicks), "{record:?}");
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
            assert_eq!(ops, record.operators, "{record:?}");
            // The steps have times. A machine that is busy can make them any share of the whole.
            let outside = record.share_outside_steps.unwrap();
            assert!(outside.is_finite() && outside < 1.0, "{outside}");
        }
    }
    let noise = &calibration.noise;
    assert_eq!(noise.len(), 5, "two for each family, and the single op: {noise:?}");
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
    let method = Method { level: 0.95, correlation: Some(correlation), states: &[] };
    let estimate = calibrate::measure::estimate(&samples, &method).unwrap();
    let is_same = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-5;
    if record.by_state.is_empty() {
        assert!(is_same(record.speedup_factor, estimate.ratio));
        assert!(is_same(record.speedup_low, estimate.low), "{record:?}");
    }
    assert!(is_same(record.unfused_latency_ms / record.fused_latency_ms, record.speedup_factor));
}
