//! `--backend hip` on stand-ins of AMD's libraries: from the list of devices to a file to an answer.

use assert_cmd::Command;
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{Backend, Clock, Core, Implementation};
use predicates::prelude::*;
use predicates::str::contains;

use super::TINY;
use super::stand_ins::{LITTLE_MEMORY, StandIns};

#[test]
#[ignore = "emulates whole runs: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn from_the_list_of_devices_to_a_file_to_an_answer() {
    for (device, core, warp) in [("gfx942", Core::Mfma, 64), ("gfx1201", Core::Wmma, 32)] {
        let Some(stand_ins) = StandIns::new(&format!("device {device}\n{LITTLE_MEMORY}")) else {
            return;
        };
        stand_ins
            .calibrate(&["list", "devices"])
            .assert()
            .success()
            .stdout(contains(format!("0: Stand-in for {device} (no GPU)")))
            .stdout(contains("hiprtc 9.0 (libhiprtc.so.6) in "));
        stand_ins
            .measure(&["--problem", TINY, "--problem", "linear_bias/bf16/m3.k5.n7"])
            .assert()
            .success()
            .stdout(contains("elementwise, device clock"))
            .stdout(contains("linear, launch-inclusive clock").and(contains("4 records")));
        is_of(&stand_ins, device, core, warp);

        let mut query = Command::new(env!("CARGO_BIN_EXE_calibrate"));
        query
            .current_dir(stand_ins.folder.path())
            .args(["query", "t.toml", "--backend", "hip", "--problem", TINY, "--clock", "device"])
            .assert()
            .success()
            .stdout(contains("hip, device clock, native kernels"));
    }
}

/// Holds the file against what the stand-ins say.
fn is_of(stand_ins: &StandIns, device: &str, core: Core, warp: u32) {
    let file = HardwareCalibration::load(stand_ins.path("t.toml")).unwrap();
    let gpu = file.fingerprint.gpu.as_ref().unwrap();
    assert!(gpu.name.contains("no GPU") && gpu.architecture == device, "{gpu:?}");
    assert_eq!(file.hardware.name, gpu.name);
    assert_eq!(file.skipped, []);
    assert_eq!(file.records.len(), 4);
    for clock in [Clock::Device, Clock::LaunchInclusive] {
        assert_eq!(file.records.iter().filter(|record| record.clock == clock).count(), 2);
        assert!(file.noise.iter().any(|noise| noise.clock == clock));
    }
    for record in &file.records {
        assert_eq!((record.backend, record.threads), (Backend::Hip, 1));
        assert_eq!(record.implementation, Implementation::Native);
        assert!(record.verification.fused_error <= record.verification.tolerance);
        let gpu = record.gpu.as_ref().unwrap();
        assert_eq!((gpu.core, &gpu.failed_cores[..]), (Some(core), &[][..]));
        assert_eq!(gpu.unfused_kernels.len(), record.operators.len());
        let [fused] = &gpu.fused_kernels[..] else { panic!("{:?}", gpu.fused_kernels) };
        assert!(fused.blocks > 0 && fused.threads.is_multiple_of(warp), "{fused:?}");
        assert_eq!(record.fused_kernel, fused.name);
        // No library of AMD's is asked for the clock.
        assert_eq!((gpu.lowest_clock_mhz, &gpu.throttle_reasons), (None, &None));
        assert_eq!(record.steps.is_empty(), record.clock == Clock::LaunchInclusive);
    }
    assert!(stand_ins.path("code").read_dir().unwrap().count() > 0, "kernels were kept");
}

#[test]
fn a_device_that_is_not_there_is_said_with_exit_code_5() {
    for (settings, message) in [
        ("device gfx942\nfail hipInit 35", "hipInit"),
        ("device gfx803", "no kernels for gfx803"),
        ("device gfx942\nabort hipInit", "ended by signal"),
    ] {
        let Some(stand_ins) = StandIns::new(settings) else { return };
        stand_ins
            .measure(&["--problem", TINY])
            .assert()
            .code(5)
            .stdout("")
            .stderr(contains(message).and(contains("panicked").not()));
        assert!(!stand_ins.path("t.toml").exists() && !stand_ins.path("t.toml.journal").exists());
    }
}

/// hiprtc ends the process that calls it for some architectures.
#[test]
fn a_compiler_that_aborts_fails_the_problem_and_no_more() {
    let settings = "device gfx942\nabort hiprtcCompileProgram";
    let Some(stand_ins) = StandIns::new(settings) else { return };
    stand_ins
        .measure(&["--problem", TINY, "--processes", "1"])
        .assert()
        .code(1)
        .stderr(contains("ended while it compiled").and(contains("panicked").not()));
}
