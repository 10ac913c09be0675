//! `calibrate doctor`: what works, what fails, and what is missing.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

use super::stand_ins::StandIns;

fn doctor(stand_ins: &StandIns, more: &[&str]) -> Command {
    let always = ["doctor", "--backend", "cuda", "--code-cache", "code", "--launches", "2"];
    stand_ins.calibrate(&[&always[..], more].concat())
}

#[test]
fn a_device_on_which_everything_works_is_examined_to_the_end() {
    let Some(stand_ins) = StandIns::new("device sm_80") else { return };
    let page = doctor(&stand_ins, &[]).assert().success();
    let page = String::from_utf8_lossy(&page.get_output().stdout).into_owned();
    for part in [
        "Stand-in for sm_80 (no GPU)",
        "a tile of the matrix core, bf16 (mma)",
        "a tile of the matrix core, f16 (plain)",
        "all blocks wait for each other",
        "attention (mma)",
        "memory",
        "0 noted, 0 missing, 0 failed",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // The file has the same, and may be replaced by the next examination.
    let file = std::fs::read_to_string(stand_ins.path("calibrate-doctor.txt")).unwrap();
    assert_eq!(file.matches("  passed  ").count(), page.matches("  passed  ").count());
}

#[test]
#[ignore = "kernels hang until their limit: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn each_failure_is_printed_with_what_repeats_it() {
    // Only one check has tiles of 256 columns, so that there is one limit to wait for.
    let flaws = ["wgmma hang 128x256", "mma wrong linear", "plain launch linear"];
    let flaws = flaws.map(|flaw| format!("flaw {flaw}")).join("\n");
    let Some(stand_ins) = StandIns::new(&format!("device sm_90\n{flaws}")) else { return };
    doctor(&stand_ins, &["--kernel-limit", "20s"])
        .assert()
        .code(1)
        .stdout(contains("FAILED  linear layer (wgmma)"))
        .stdout(contains("while it ran linear_0_wgmma_128x256").and(contains("and was killed")))
        .stdout(contains("FAILED  a tile of the matrix core, f16 (mma)"))
        .stdout(contains("wrong result: the unfused variant is off by"))
        .stdout(contains("FAILED  a tile of the matrix core, bf16 (plain)"))
        .stdout(contains("LAUNCH_OUT_OF_RESOURCES"))
        .stdout(contains("--backend cuda --core mma --quick --problem linear_bias/f16/"))
        // Nothing else fails with them.
        .stdout(contains("passed  a ring of 1 to 9 steps (wgmma)"))
        .stdout(contains("passed  attention (wgmma)").and(contains("passed  elementwise")));
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let Some(stand_ins) = StandIns::new("") else { return };
    doctor(&stand_ins, &[])
        .assert()
        .code(5)
        .stdout(contains("MISSING device").and(contains("no capable device is detected")))
        .stdout(contains("/dev/nvidiactl"));
    // A file that is none of an examination stays.
    std::fs::write(stand_ins.path("mine.txt"), "mine\n").unwrap();
    doctor(&stand_ins, &["--output", "mine.txt"])
        .assert()
        .code(2)
        .stderr(contains("cannot write mine.txt"));
    assert_eq!(std::fs::read_to_string(stand_ins.path("mine.txt")).unwrap(), "mine\n");
    for _ in 0..2 {
        doctor(&stand_ins, &[]).assert().code(5);
    }
}

/// Every chain of the checks on the one device that is always there.
#[test]
fn a_processor_is_examined_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder.path()).args(["doctor", "--backend", "cpu", "--launches", "3"]);
    command
        .assert()
        .success()
        .stdout(contains("passed  convolution and pooling").and(contains("passed  memory")))
        .stdout(contains(" 0 missing, 0 failed"))
        .stderr(contains("wrote calibrate-doctor.txt"));
}
