//! Kernels that hang, are wrong, are refused or do not compile: both variants go on with the next
//! core, and the record says what failed.

use fusion_cost_model::Core;
use fusion_cost_model::calibration::{HardwareCalibration, KernelFailure};
use predicates::prelude::*;
use predicates::str::contains;

use super::stand_ins::StandIns;

/// Large enough for `wgmma` on three processors.
const PROBLEM: &str = "linear_bias/bf16/m256.k64.n256";
/// Of what hangs: many times what any other kernel takes in emulation, beside other tests.
const LIMIT: &str = "20s";

fn measure(stand_ins: &StandIns, more: &[&str]) -> assert_cmd::assert::Assert {
    let always = ["--problem", PROBLEM, "--clock", "device", "--implementation", "native"];
    let limits = ["--kernel-limit", LIMIT, "--processes", "1"];
    stand_ins.measure(&[&always[..], &limits, more].concat()).assert()
}

/// What the one record says: its core, and how those above it failed.
fn cores(stand_ins: &StandIns) -> (Option<Core>, Vec<(Core, KernelFailure)>) {
    let file = HardwareCalibration::load(stand_ins.path("t.toml")).unwrap();
    assert_eq!(file.records.len(), 1, "{:?}", file.skipped);
    let gpu = file.records[0].gpu.as_ref().unwrap();
    for failed in &gpu.failed_cores {
        assert!(!failed.reason.is_empty(), "{failed}");
    }
    (gpu.core, gpu.failed_cores.iter().map(|failed| (failed.core, failed.failure)).collect())
}

#[test]
#[ignore = "kernels hang until their limit: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn a_hang_and_a_wrong_result_end_on_the_next_cores() {
    let settings = "device sm_90\nflaw wgmma hang linear\nflaw mma wrong linear";
    let Some(stand_ins) = StandIns::new(settings) else { return };
    measure(&stand_ins, &[])
        .success()
        .stderr(contains("wgmma: hung: its process gave no answer in 20 s while it ran linear"))
        .stderr(contains("for the first time, and was killed; measured on mma next"))
        .stderr(contains("mma: wrong: wrong result: ").and(contains("measured on plain next")));
    let failed = vec![(Core::Wgmma, KernelFailure::Hung), (Core::Mma, KernelFailure::Wrong)];
    assert_eq!(cores(&stand_ins), (Some(Core::Plain), failed));
    is_said(&stand_ins);
}

/// Whoever reads the record sees on which core it was measured, and why.
fn is_said(stand_ins: &StandIns) {
    let run = |args: &[&str]| {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_calibrate"));
        command.current_dir(stand_ins.folder.path()).args(args).assert().success()
    };
    let said = || {
        contains("measured on plain; wgmma: hung: its process gave no answer in 20 s while")
            .and(contains("; mma: wrong: wrong result: "))
    };
    run(&["show", "t.toml"]).stdout(contains("- lower-core, 1 record (").and(said()));
    run(&["report", "t.toml", "--output", "t.html"]);
    let page = std::fs::read_to_string(stand_ins.path("t.html")).unwrap();
    assert!(page.contains("<h3>Measured on a lower core</h3>"));
    assert!(said().eval(&page), "{page}");
}

#[test]
fn a_refused_launch_and_a_hang_end_on_the_next_cores() {
    let settings = "device sm_90\nflaw wgmma launch linear\nflaw mma hang linear";
    let Some(stand_ins) = StandIns::new(settings) else { return };
    measure(&stand_ins, &[]).success().stderr(contains("LAUNCH_OUT_OF_RESOURCES"));
    let failed = vec![(Core::Wgmma, KernelFailure::Launch), (Core::Mma, KernelFailure::Hung)];
    assert_eq!(cores(&stand_ins), (Some(Core::Plain), failed));
}

#[test]
fn what_fails_on_every_core_has_no_record_and_all_its_reasons() {
    let flaws = ["wgmma wrong", "mma compile", "plain hang"].map(|it| format!("flaw {it} linear"));
    let Some(stand_ins) = StandIns::new(&format!("device sm_90\n{}", flaws.join("\n"))) else {
        return;
    };
    // Something else is measured, so that there is a file.
    measure(&stand_ins, &["--problem", super::TINY]).code(1);
    let file = HardwareCalibration::load(stand_ins.path("t.toml")).unwrap();
    assert_eq!(file.records.len(), 1);
    let [skipped] = &file.skipped[..] else { panic!("{:?}", file.skipped) };
    assert_eq!(skipped.failure, Some(KernelFailure::Hung));
    for part in ["wgmma: wrong: ", "mma: compile: ", "plain: hung: ", "while it ran linear"] {
        assert!(skipped.reason.contains(part), "{part}: {}", skipped.reason);
    }
}

#[test]
fn a_core_that_is_named_is_the_only_one() {
    let Some(stand_ins) = StandIns::new("device sm_90\nflaw wgmma wrong linear") else { return };
    measure(&stand_ins, &["--core", "mma"]).success();
    assert_eq!(cores(&stand_ins), (Some(Core::Mma), Vec::new()));
    measure(&stand_ins, &["--core", "wgmma", "--overwrite"])
        .code(1)
        .stderr(contains("wrong result: ").and(contains("goes on").not()));
    measure(&stand_ins, &["--core", "mfma"])
        .code(5)
        .stderr(contains("sm_90a has no mfma instructions; it has wgmma, mma, plain"));
}
