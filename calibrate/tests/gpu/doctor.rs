//! `calibrate doctor`: what works, what fails, and what is missing.

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

use super::stand_ins::StandIns;

fn doctor(stand_ins: &StandIns, more: &[&str]) -> Command {
    let always = ["doctor", "--backend", stand_ins.backend, "--code-cache", "code"];
    let launches: &[&str] = if more.contains(&"--launches") { &[] } else { &["--launches", "2"] };
    stand_ins.calibrate(&[&always[..], launches, more].concat())
}

#[test]
fn a_device_on_which_everything_works_is_examined_to_the_end() {
    let Some(stand_ins) = StandIns::new("device sm_80") else { return };
    works(&stand_ins, "sm_80", "mma");
}

#[test]
fn a_device_of_amd_on_which_everything_works_is_examined_to_the_end() {
    let Some(stand_ins) = StandIns::new("device gfx1100") else { return };
    works(&stand_ins, "gfx1100", "wmma");
}

fn works(stand_ins: &StandIns, device: &str, core: &str) {
    let page = doctor(stand_ins, &[]).assert().success();
    let page = String::from_utf8_lossy(&page.get_output().stdout).into_owned();
    for part in [
        &format!("Stand-in for {device} (no GPU)"),
        &format!("a tile of the matrix core, bf16 ({core})"),
        "a tile of the matrix core, f16 (plain)",
        "a launch and a wait",
        "all blocks wait for each other",
        &format!("attention ({core})"),
        &format!("depthwise convolution ({core})"),
        &format!("rows that no block holds ({core})"),
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
        // The second of the check's problems: the first one has no such kernel.
        .stdout(contains("--core wgmma --quick --problem linear_bias_relu/bf16/m130.k72.n136"))
        .stdout(contains("FAILED  a tile of the matrix core, f16 (mma)"))
        .stdout(contains("wrong result: the unfused variant is off by"))
        .stdout(contains("FAILED  a tile of the matrix core, bf16 (plain)"))
        .stdout(contains("LAUNCH_OUT_OF_RESOURCES").and(contains(" bytes of shared memory): ")))
        .stdout(contains("--backend cuda --core mma --quick --problem linear_bias/f16/"))
        // Nothing else fails with them.
        .stdout(contains("passed  a ring of 1 to 9 steps (wgmma)"))
        .stdout(contains("passed  attention (wgmma)").and(contains("passed  elementwise")));
}

/// Nothing but the search for libraries and devices.
#[test]
fn a_device_on_which_nothing_works_has_a_page_that_says_so() {
    for (device, core) in [("sm_80", "mma"), ("gfx942", "mfma")] {
        let flaws = format!("flaw {core} compile _\nflaw plain compile _");
        let Some(stand_ins) = StandIns::new(&format!("device {device}\n{flaws}")) else { return };
        let page = doctor(&stand_ins, &[]).assert().code(1);
        let page = String::from_utf8_lossy(&page.get_output().stdout).into_owned();
        assert!(page.contains("\n1 passed, 0 noted, 0 missing, "), "{page}");
        assert_eq!(page.matches("  FAILED  ").count(), 22, "{page}");
        for part in ["FAILED  timings", "does not compile", "--check 'convolution ("] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let file = std::fs::read_to_string(stand_ins.path("calibrate-doctor.txt")).unwrap();
        assert_eq!(file.matches("  FAILED  ").count(), 22);
    }
}

/// After its proof, and after many launches.
#[test]
fn a_kernel_that_hangs_late_is_named_and_the_rest_is_examined() {
    for (device, core) in [("sm_80", "mma"), ("gfx1100", "wmma")] {
        let settings = format!("device {device}\nflaw {core} hang pointwise 40");
        let Some(stand_ins) = StandIns::new(&settings) else { return };
        let check = ["--check", "elementwise", "--launches", "60", "--kernel-limit", "20s"];
        doctor(&stand_ins, &check)
            .assert()
            .code(1)
            .stdout(contains(format!("FAILED  elementwise ({core})")))
            .stdout(contains("gave no answer in 20 s while it ran pointwise_"))
            .stdout(contains(" (add_relu/f32/m130.n72), and was killed"))
            .stdout(contains("for the first time").not())
            .stdout(contains("\n1 passed, 0 noted, 0 missing, 1 failed"));
    }
}

#[test]
#[ignore = "emulates whole runs: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn one_check_runs_by_its_name() {
    let Some(stand_ins) = StandIns::new("device sm_80") else { return };
    doctor(&stand_ins, &["--check", "a launch and a wait"])
        .assert()
        .success()
        .stdout(contains("passed  a launch and a wait").and(contains("2 passed, 0 noted")));
    doctor(&stand_ins, &["--check", "atention"])
        .assert()
        .code(2)
        .stderr(contains("--check atention names no check; there are: a tile of the matrix core"))
        .stderr(contains("attention (mma)").and(contains("timings")));
}

#[test]
fn what_is_missing_is_said_with_what_to_do() {
    let Some(stand_ins) = StandIns::new("") else { return };
    doctor(&stand_ins, &[])
        .assert()
        .code(5)
        .stdout(contains("MISSING libraries and devices"))
        .stdout(contains("no capable device is detected").count(1))
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
    // What nobody reads is in the file all the same.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut unread = std::process::Command::new(env!("CARGO_BIN_EXE_calibrate"));
    unread.current_dir(stand_ins.path(".")).env("XDG_CACHE_HOME", "/dev/null").stdout(writer);
    unread.args(["doctor", "--backend", stand_ins.backend, "--gpu-lib-dir", "lib"]);
    unread.args(["--output", "unread.txt"]);
    assert_eq!(unread.status().unwrap().code(), Some(5));
    assert!(std::fs::read_to_string(stand_ins.path("unread.txt")).unwrap().contains("MISSING"));
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
