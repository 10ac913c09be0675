//! Kernels that hang, are wrong, are refused or do not compile: both variants go on with the next
//! core, and the record says what failed.

use fusion_cost_model::Core;
use fusion_cost_model::calibration::{HardwareCalibration, KernelFailure};
use predicates::prelude::*;
use predicates::str::contains;

use super::stand_ins::{LITTLE_MEMORY, StandIns};

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

/// A problem, a word in the names of those of its kernels that fail on the first core, and in no other
/// kernel's of all rows, and how.
type Row = (&'static str, &'static str, KernelFailure);

/// Measures the problems in one run, in which the probe of the ceilings fails on the first core too, and
/// holds each record against its row.
fn each_ends_on_the_second(device: &str, cores: [Core; 2], rows: &[Row]) {
    let [first, second] = cores;
    let mut settings = format!("device {device}\n{LITTLE_MEMORY}\nflaw {first} wrong multiply\n");
    for (_, word, failure) in rows {
        let flaw = match failure {
            KernelFailure::Hung => "hang",
            KernelFailure::Launch => "launch",
            KernelFailure::Compile => "compile",
            _ => "wrong",
        };
        settings += &format!("flaw {first} {flaw} {word}\n");
    }
    let Some(stand_ins) = StandIns::new(&settings) else { return };
    let always = ["--clock", "device", "--implementation", "native", "--processes", "1"];
    let problems = rows.iter().flat_map(|(problem, ..)| ["--problem", *problem]);
    let args: Vec<&str> =
        always.into_iter().chain(["--kernel-limit", LIMIT]).chain(problems).collect();
    stand_ins
        .measure(&args)
        .assert()
        .success()
        .stderr(contains("cannot measure the ceilings: multiply").and(contains("left no result")));

    let file = HardwareCalibration::load(stand_ins.path("t.toml")).unwrap();
    assert_eq!((file.records.len(), file.skipped.len()), (rows.len(), 0), "{:?}", file.skipped);
    let [ceilings] = &file.ceilings[..] else { panic!("{:?}", file.ceilings) };
    assert_eq!(ceilings.core, Some(second));
    let [failed] = &ceilings.failed_cores[..] else { panic!("{:?}", ceilings.failed_cores) };
    assert_eq!((failed.core, failed.failure), (first, KernelFailure::Launch));
    assert!(failed.reason.contains("multiply"), "{failed}");
    for (text, word, failure) in rows {
        let problem: fusion_cost_model::Problem = text.parse().unwrap();
        let record = file.records.iter().find(|record| record.problem == problem).unwrap();
        let gpu = record.gpu.as_ref().unwrap();
        assert_eq!(gpu.core, Some(second), "{text}");
        let [failed] = &gpu.failed_cores[..] else { panic!("{text}: {:?}", gpu.failed_cores) };
        assert_eq!((failed.core, failed.failure), (first, *failure), "{text}: {failed}");
        // A wrong result is that of a variant.
        assert!(failed.reason.contains(word) || *failure == KernelFailure::Wrong, "{failed}");
        for kernel in gpu.unfused_kernels.iter().chain(&gpu.fused_kernels) {
            assert!(!kernel.name.contains(first.name()), "{text}: {}", kernel.name);
        }
    }
}

#[test]
#[ignore = "emulates four problems on two cores: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn each_failure_of_wgmma_ends_on_mma() {
    let rows: &[Row] = &[
        ("linear_bias/bf16/m256.k64.n64", "linear_0_wgmma_128x64", KernelFailure::Compile),
        ("linear_bias/bf16/m256.k64.n128", "linear_0_wgmma_128x128", KernelFailure::Launch),
        ("linear_bias/bf16/m384.k64.n256", "linear_0_wgmma_128x256", KernelFailure::Wrong),
        ("attention_head/bf16/b1.h3.q65.kv72.d64", "attention_wgmma", KernelFailure::Hung),
    ];
    each_ends_on_the_second("sm_90", [Core::Wgmma, Core::Mma], rows);
}

/// What fails on the matrix cores that have kernels of every kind.
const OF_EACH_KIND: &[Row] = &[
    ("linear_bias/bf16/m17.k31.n13", "linear", KernelFailure::Compile),
    ("conv_bias/bf16/n1.c3.h5.w7.k2.r3.s3", "conv", KernelFailure::Launch),
    ("attention_output/bf16/b1.h2.q3.kv5.d7", "attention", KernelFailure::Wrong),
    ("qk+scale/bf16/b1.h2.q3.kv5.d7", "scores", KernelFailure::Hung),
];

#[test]
#[ignore = "emulates four problems on two cores: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn each_failure_of_mma_ends_on_plain() {
    each_ends_on_the_second("sm_80", [Core::Mma, Core::Plain], OF_EACH_KIND);
}

#[test]
#[ignore = "emulates four problems on two cores: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn each_failure_of_mfma_ends_on_plain() {
    each_ends_on_the_second("gfx942", [Core::Mfma, Core::Plain], OF_EACH_KIND);
}

#[test]
#[ignore = "emulates four problems on two cores: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn each_failure_of_wmma_ends_on_plain() {
    each_ends_on_the_second("gfx1201", [Core::Wmma, Core::Plain], OF_EACH_KIND);
}

/// In the samples, after its first run and its proof: on both vendors the run goes on with the next
/// core, and the record names the kernel.
#[test]
#[ignore = "kernels hang until their limit: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn a_kernel_that_hangs_in_the_samples_ends_on_the_next_core() {
    for (device, core) in [("sm_80", Core::Mma), ("gfx942", Core::Mfma)] {
        let settings = format!("device {device}\n{LITTLE_MEMORY}\nflaw {core} hang linear 30");
        let Some(stand_ins) = StandIns::new(&settings) else { return };
        measure(&stand_ins, &[])
            .success()
            .stderr(contains("hung: its process gave no answer in 20 s while it timed linear_"))
            .stderr(contains("tried once more").not());
        assert_eq!(cores(&stand_ins), (Some(Core::Plain), vec![(core, KernelFailure::Hung)]));
    }
}

/// When all samples are taken: a driver that does not give a kernel back.
#[test]
#[ignore = "emulates whole runs: minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn a_driver_that_hangs_at_the_end_is_killed() {
    for (device, function) in [("sm_80", "cuModuleUnload"), ("gfx942", "hipModuleUnload")] {
        let settings = format!("device {device}\n{LITTLE_MEMORY}\nhang {function}");
        let Some(stand_ins) = StandIns::new(&settings) else { return };
        measure(&stand_ins, &["--core", "plain"])
            .code(1)
            .stderr(contains("gave no answer in 20 s while it gave back what"))
            .stderr(contains("linear_").and(contains("and was killed")));
    }
}

/// Before any kernel runs: both of the process of the ceilings and of that of the problem.
#[test]
#[ignore = "a driver hangs until its limit, twice three minutes; ALL_ARCHITECTURES=1 .ci/run runs it"]
fn a_driver_that_hangs_at_the_start_is_killed() {
    let settings = format!("device sm_80\n{LITTLE_MEMORY}\nhang cuMemAlloc_v2");
    let Some(stand_ins) = StandIns::new(&settings) else { return };
    let hung = |doing| contains(format!("gave no answer in 180 s while it {doing}"));
    measure(&stand_ins, &["--core", "plain"])
        .code(1)
        .stderr(hung("measured the ceilings").and(hung("made its kernels ready")));
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
