//! `--backend cuda` on stand-ins of the vendor's libraries: from the command line to the file. Their
//! times mean nothing; their device says by its name that it is none.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod amd;
mod doctor;
mod ladder;
#[path = "../../../kernels/tests/stand_in/libraries.rs"]
mod libraries;
mod stand_ins;

use std::time::Duration;

use assert_cmd::Command;
use fusion_cost_model::calibration::{HardwareCalibration, ReasonCode};
use fusion_cost_model::{Backend, Clock, Evidence, FusionCostModel, Implementation, Target};
use predicates::prelude::*;
use predicates::str::contains;
use stand_ins::StandIns;

const TINY: &str = "add_relu/f32/m3.n37";

#[test]
fn from_the_command_line_to_a_file_to_an_answer() {
    let Some(stand_ins) = StandIns::new("device sm_80") else { return };
    stand_ins
        .calibrate(&["list", "devices"])
        .assert()
        .success()
        .stdout(contains("0: Stand-in for sm_80 (no GPU)").and(contains("NVRTC 12.4 in ")));
    let run = stand_ins.measure(&["--problem", TINY, "--problem", "linear_bias/f32/m3.k5.n7"]);
    { run }
        .args(["--problem", "relu/f32/m3.n5", "--hardware", "h200"])
        .assert()
        .success()
        .stdout(contains("elementwise, device clock"))
        .stdout(contains("linear, launch-inclusive clock").and(contains("6 records")))
        .stderr(contains("warning: --hardware names h200").count(2));

    let file = HardwareCalibration::load(stand_ins.path("t.toml")).unwrap();
    let gpu = file.fingerprint.gpu.as_ref().unwrap();
    assert!(gpu.name.contains("no GPU") && gpu.architecture == "sm_80", "{gpu:?}");
    assert!(!file.settings.hardware_matches);
    assert_eq!(file.hardware.name, gpu.name);
    assert_eq!(file.skipped, [], "that the vendor has nothing is no news");
    let names: Vec<&str> = file.checks.iter().map(|check| check.name.as_str()).collect();
    assert!(names.contains(&"gpu memory") && !names.contains(&"threads"), "{names:?}");

    let clocks: Vec<Clock> = file.records.iter().map(|record| record.clock).collect();
    assert_eq!(clocks.iter().filter(|clock| **clock == Clock::Device).count(), 3);
    assert_eq!(clocks.iter().filter(|clock| **clock == Clock::LaunchInclusive).count(), 3);
    for record in &file.records {
        assert_eq!((record.backend, record.threads), (Backend::Cuda, 1));
        assert_eq!(record.implementation, Implementation::Native);
        assert!(record.verification.fused_error <= record.verification.tolerance);
        assert_eq!((record.disturbed.migration, record.disturbed.cpu_pressure), (None, None));
        assert!(record.disturbed.clock_change.is_some());
        let is_launch_inclusive = record.clock == Clock::LaunchInclusive;
        assert_eq!(record.disturbed.involuntary_switch.is_some(), is_launch_inclusive);
        assert!(!record.reasons.iter().any(|reason| reason.code == ReasonCode::Unobserved));
        let gpu = record.gpu.as_ref().unwrap();
        assert!(gpu.lowest_clock_mhz.unwrap() > 0 && gpu.throttle_reasons.is_some());
        // The management library says 990 MHz, and the processors of a stand-in count 1500.
        assert_eq!(gpu.lowest_clock_mhz, Some(990));
        let counted = gpu.device_clock_mhz.map(|range| range.map(|mhz| mhz.abs_diff(1500) <= 1));
        assert_eq!(counted, (!is_launch_inclusive).then_some([true; 2]));
        assert_eq!(gpu.unfused_kernels.len(), record.operators.len());
        assert_eq!(gpu.fused_kernels.len(), 1);
        let fused = &gpu.fused_kernels[0];
        assert!(fused.blocks > 0 && fused.threads > 0 && fused.resident_blocks > 0);
        assert_eq!(record.fused_kernel, fused.name);
        // The host's clock sees no kernel begin, and a single op has no steps.
        let is_single = record.problem.chain().is_single();
        assert_eq!(record.steps.is_empty(), is_launch_inclusive || is_single);
        assert!(record.speedup_factor == 1.0 || !is_single);
    }
    // Two A/A runs for each clock, and the single op.
    assert_eq!(file.noise.len(), 6);
    assert_eq!(file.noise.iter().filter(|noise| noise.clock == Clock::Device).count(), 3);
    assert!(stand_ins.path("code").read_dir().unwrap().count() > 0, "kernels were kept");

    // What a stand-in measures can be INVALID, which the model does not answer with.
    let mut valid = file;
    for record in &mut valid.records {
        record.verdict = fusion_cost_model::calibration::Verdict::Ambiguous;
    }
    let model = FusionCostModel::new(valid);
    for (clock, evidence) in [(Clock::Device, Evidence::Measured), (Clock::Host, Evidence::Unknown)]
    {
        let target = Target::gpu(Backend::Cuda, clock);
        let estimate = model.on(target).estimate(&TINY.parse().unwrap());
        assert_eq!(estimate.evidence(), evidence, "{clock}");
    }
    let query = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
        let asked = ["query", "t.toml", "--backend", "cuda", "--problem", TINY];
        command.current_dir(stand_ins.folder.path()).args(asked).args(args);
        command.assert()
    };
    query(&[]).code(2).stderr(contains("several clock (device, launch-inclusive)"));
    query(&["--clock", "device"]).success().stdout(contains("cuda, device clock, native kernels"));
    query(&["--clock", "device", "--implementation", "vendor"])
        .success()
        .stdout(contains("evidence    roofline").and(contains("--implementation vendor")));
}

#[test]
fn a_device_that_is_not_there_is_said_with_exit_code_5() {
    for (settings, args, message) in [
        ("device sm_80", &["--device", "7"][..], "there is no device 7"),
        ("", &[], "cuda backend cannot be used"),
        ("device sm_80\nfail cuInit 999", &[], "cuInit"),
        ("device sm_80\nabort cuInit", &[], "ended by signal"),
    ] {
        let Some(stand_ins) = StandIns::new(settings) else { return };
        stand_ins
            .measure(&[&["--problem", TINY], args].concat())
            .assert()
            .code(5)
            .stdout("")
            .stderr(contains(message).and(contains("panicked").not()));
        assert!(!stand_ins.path("t.toml").exists() && !stand_ins.path("t.toml.journal").exists());
        // Listing never fails.
        stand_ins.calibrate(&["list", "devices"]).assert().success().stdout(contains("  cuda  "));
    }
}

/// The management library only tells of clocks and of the driver's version.
#[test]
fn a_management_library_that_hangs_is_done_without() {
    let Some(stand_ins) = StandIns::new("device sm_80\nhang nvmlInit_v2") else { return };
    stand_ins
        .calibrate(&["list", "devices"])
        .assert()
        .success()
        .stdout(contains("0: Stand-in for sm_80 (no GPU)"));
    // Each process waits for it.
    let few = ["--processes", "1", "--rounds", "2"];
    stand_ins.measure(&["--problem", TINY, "--clock", "device"]).args(few).assert().success();
    let file = HardwareCalibration::load(stand_ins.path("t.toml")).unwrap();
    let [record] = &file.records[..] else { panic!("{:?}", file.skipped) };
    assert_eq!(record.gpu.as_ref().unwrap().lowest_clock_mhz, None);
    assert_eq!(record.disturbed.clock_change, None);
}

#[test]
fn a_missing_compiler_is_said_with_where_it_was_looked_for() {
    let Some(stand_ins) = StandIns::new("device sm_80") else { return };
    std::fs::remove_file(stand_ins.path("lib/libnvrtc.so.12")).unwrap();
    let listed = stand_ins.calibrate(&["list", "devices"]).assert().success();
    let listed = String::from_utf8_lossy(&listed.get_output().stdout).into_owned();
    assert!(listed.contains("Stand-in for sm_80"), "{listed}");
    // This machine may have one of its own, which then compiles for no stand-in.
    if listed.contains("was not found") {
        stand_ins
            .measure(&["--problem", TINY])
            .assert()
            .code(5)
            .stderr(contains("libnvrtc.so.12").and(contains("lib")).and(contains("install")));
    }
}

/// What the vendor library lacks is reported only on request.
#[test]
fn a_vendor_without_a_library_is_refused_by_name() {
    let Some(stand_ins) = StandIns::new("device sm_80") else { return };
    stand_ins
        .measure(&["--problem", TINY, "--implementation", "vendor"])
        .assert()
        .code(2)
        .stderr(contains("no vendor library with a fused form of it was found"));
}

#[test]
fn tensors_are_held_against_the_memory_of_the_gpu() {
    let Some(stand_ins) = StandIns::new("device sm_80\nmemory 67108864") else { return };
    // Three tensors of 32 MiB.
    stand_ins
        .measure(&["--problem", "add_relu/f32/m4096.n2048"])
        .assert()
        .code(2)
        .stderr(contains("of the GPU's memory, but only"));
}

/// Whatever is installed here: a library without a device, or nothing at all.
#[test]
fn without_a_gpu_every_backend_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let calibrate = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
        command.current_dir(folder.path()).args(args).timeout(Duration::from_secs(200));
        command.assert()
    };
    let listed = calibrate(&["list", "devices"]).success();
    let listed = String::from_utf8_lossy(&listed.get_output().stdout).into_owned();
    assert!(listed.contains("AMD GPUs; emulated and compiled, never run on hardware"), "{listed}");
    let (cuda, hip) = listed.split_once("\n  cuda  ").unwrap().1.split_once("\n  hip   ").unwrap();
    for (backend, section) in [("cuda", cuda), ("hip", hip)] {
        // A line for a device begins with its number.
        if section.lines().any(|line| line.trim_start().starts_with("0: ")) {
            eprintln!("skipped: there is a {backend} device");
            continue;
        }
        calibrate(&["--backend", backend, "--problem", TINY])
            .code(5)
            .stdout("")
            .stderr(contains("backend cannot be used").and(contains("panicked").not()));
    }
}
