//! `calibrate compare` as a user meets it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../tests/consistent/mod.rs"]
mod consistent;
#[path = "../../trace-tool/tests/compare/headless.rs"]
mod headless;

use std::path::Path;

use assert_cmd::Command;
use calibrate::report::{CompareReport, CompareTable};
use cli_support::width::Width;
use fusion_cost_model::calibration::{
    FusionRecord, HardwareCalibration, Reason, ReasonCode, Verdict,
};
use fusion_cost_model::compare::{CompareOptions, Comparison, Side, SideTarget};
use predicates::prelude::*;
use predicates::str::contains;
use proptest::prelude::*;
use tempfile::TempDir;

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

/// Problems of every family, each with a speedup and half of its interval in the logarithm.
const RECORDS: [(&str, f64, f64); 12] = [
    ("linear_bias/f32/m512.k512.n512", 1.000, 0.012),
    ("linear_bias/f32/m4096.k64.n256", 1.042, 0.010),
    ("linear_bias_relu/f32/m512.k512.n512", 1.015, 0.021),
    ("linear_bias_relu/f32/m4096.k64.n256", 1.134, 0.012),
    ("mlp/f32/m512.k512.n2048.o512", 0.975, 0.014),
    ("conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1", 1.009, 0.010),
    (
        "conv_bn_relu_maxpool/f32/n1.c3.h224.w224.k64.r7.s7.stride2.pad3.pool3.pstride2.ppad1",
        1.304,
        0.030,
    ),
    ("attention_head/f32/b1.h8.q512.d64", 1.151, 0.050),
    ("add_relu/f32/m4096.n1024", 1.333, 0.011),
    ("add_layernorm/f32/m64.n1024", 1.250, 0.040),
    ("relu/f32/m4096.n1024", 1.0, 0.0),
    ("add/f32/m4096.n1024", 1.0, 0.0),
];

fn record(like: &FusionRecord, (problem, speedup, half): (&str, f64, f64)) -> FusionRecord {
    let mut record = FusionRecord {
        problem: problem.parse().unwrap(),
        unfused_latency_ms: like.fused_latency_ms * speedup,
        speedup_factor: speedup,
        speedup_low: speedup * (-half).exp(),
        speedup_high: speedup * half.exp(),
        processes: 10,
        verdict: Verdict::Ambiguous,
        reasons: Vec::new(),
        ..like.clone()
    };
    if record.problem.chain().is_single() {
        record.verdict = Verdict::Single;
    }
    for (timing, ms) in [
        (&mut record.unfused_timing, record.unfused_latency_ms),
        (&mut record.fused_timing, record.fused_latency_ms),
    ] {
        (timing.low_ms, timing.high_ms) = (Some(ms * 0.98), Some(ms * 1.02));
    }
    record
}

fn monday() -> HardwareCalibration {
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let like = calibration.records[0].clone();
    calibration.records = RECORDS.iter().map(|one| record(&like, *one)).collect();
    calibration
}

fn slower(record: &mut FusionRecord, factor: f64) {
    record.unfused_latency_ms *= factor;
    record.fused_latency_ms *= factor;
    for timing in [&mut record.unfused_timing, &mut record.fused_timing] {
        timing.low_ms = timing.low_ms.map(|ms| ms * factor);
        timing.high_ms = timing.high_ms.map(|ms| ms * factor);
    }
}

/// The same machine later: everything takes 3 % longer, one record 30 %, and one gains less.
fn tuesday() -> HardwareCalibration {
    let mut calibration = monday();
    calibration.fingerprint.microcode = Some("0x2".to_owned());
    "2026-11-22T03:59:25Z".clone_into(&mut calibration.tool.started_at);
    for record in &mut calibration.records {
        slower(record, 1.03);
    }
    slower(&mut calibration.records[5], 1.3);
    let like = calibration.records[0].clone();
    calibration.records[8] = record(&like, ("add_relu/f32/m4096.n1024", 1.2, 0.011));
    calibration
}

/// Another machine, where fusion gains more of what moves bytes.
fn other() -> HardwareCalibration {
    let mut calibration = monday();
    "AMD EPYC 9654".clone_into(&mut calibration.hardware.name);
    "AMD EPYC 9654 96-Core Processor".clone_into(&mut calibration.fingerprint.cpu_model);
    for ceilings in &mut calibration.ceilings {
        ceilings.ceilings.peak_gflops *= 3.0;
    }
    for (index, record) in calibration.records.iter_mut().enumerate() {
        slower(record, 0.6);
        let factor = if matches!(index, 3 | 8) { 1.1 } else { 1.002 };
        if !record.problem.chain().is_single() {
            record.speedup_factor *= factor;
            record.speedup_low *= factor;
            record.speedup_high *= factor;
            record.ceiling_speedup = record.ceiling_speedup.map(|ceiling| ceiling * factor);
        }
    }
    let disturbed = &mut calibration.records[7];
    disturbed.verdict = Verdict::Invalid;
    let text = "made up".to_owned();
    disturbed.reasons = vec![Reason { code: ReasonCode::MostlyDisturbed, text }];
    calibration.records.remove(9);
    let mut of_one_thread = calibration.records[0].clone();
    of_one_thread.threads = 1;
    calibration.records.push(of_one_thread);
    calibration
}

fn side(label: &str, calibration: &HardwareCalibration) -> Side {
    let target = SideTarget::of(&calibration.records[0]);
    Side::of(label, format!("{}.toml", label.to_lowercase()), calibration, target)
}

fn compare(first: &HardwareCalibration, others: &[&HardwareCalibration]) -> Comparison {
    let others = others.iter().zip(["B", "C"]).map(|(one, label)| side(label, one));
    let options = CompareOptions { threshold: 1.2, ..CompareOptions::default() };
    Comparison::of(&side("A", first), &others.collect::<Vec<_>>(), &options)
}

fn report(comparison: &Comparison) -> CompareReport<'_> {
    CompareReport { comparison, top: 10, fail_on: None }
}

#[test]
fn two_machines_on_pages_of_several_widths() {
    let comparison = compare(&monday(), &[&other()]);
    let report = report(&comparison);
    insta::assert_snapshot!("machines_80", report.text(None, Width::Columns(80)));
    insta::assert_snapshot!("machines_140", report.text(None, Width::Columns(140)));
    insta::assert_snapshot!("machines_unlimited", report.text(None, Width::Unlimited));
    insta::assert_snapshot!("machines_markdown", report.markdown(None));
    let table = Some(CompareTable::NotCompared);
    insta::assert_snapshot!("machines_not_compared", report.text(table, Width::Columns(80)));
}

#[test]
fn the_same_machine_on_pages_of_several_widths() {
    let comparison = compare(&monday(), &[&tuesday()]);
    let report = CompareReport { fail_on: Some(0.05), ..report(&comparison) };
    insta::assert_snapshot!("same_80", report.text(None, Width::Columns(80)));
    insta::assert_snapshot!("same_140", report.text(None, Width::Columns(140)));
    let table = Some(CompareTable::Records);
    insta::assert_snapshot!("same_records", report.text(table, Width::Columns(120)));
}

#[test]
fn three_sides_on_a_page() {
    let comparison = compare(&monday(), &[&tuesday(), &other()]);
    insta::assert_snapshot!("three_100", report(&comparison).text(None, Width::Columns(100)));
}

#[test]
fn tables_for_programs_have_what_json_has() {
    let comparison = compare(&monday(), &[&other()]);
    let report = report(&comparison);
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!((&json["kind"], &json["version"]), (&"calibration-comparison".into(), &1.into()));
    assert_eq!(json["sides"][1]["target"], "cpu/2/f32/native");
    for (table, key) in [
        (CompareTable::Records, "pairs"),
        (CompareTable::Families, "families"),
        (CompareTable::Patterns, "patterns"),
        (CompareTable::SingleOps, "single_ops"),
        (CompareTable::NotCompared, "not_compared"),
        (CompareTable::Ceilings, "sides"),
    ] {
        let text = String::from_utf8(report.csv(table).unwrap()).unwrap();
        let rows = text.lines().count() - 1;
        assert_eq!(rows, json[key].as_array().unwrap().len(), "{key}\n{text}");
        assert!(rows > 0, "{key}");
    }
    let records = String::from_utf8(report.csv(CompareTable::Records).unwrap()).unwrap();
    insta::assert_snapshot!("records_csv", records);
    let first = &json["pairs"][0];
    assert!(records.contains(&first["ratio"]["value"].as_f64().unwrap().to_string()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// No line is wider than the page but for names that no page of that width could have.
    #[test]
    fn no_line_is_too_wide(columns in 80_usize..200, seed in 0.5_f64..2.0) {
        let mut changed = tuesday();
        for (index, record) in changed.records.iter_mut().enumerate() {
            let factor = seed.powi(i32::try_from(index % 3).unwrap());
            record.speedup_factor *= factor;
            record.speedup_low *= factor;
            record.speedup_high *= factor;
        }
        for second in [changed, other()] {
            let comparison = compare(&monday(), &[&second]);
            let text = report(&comparison).text(None, Width::Columns(columns));
            for line in text.lines() {
                let is_name = line.contains("conv_bn_relu_maxpool") || line.contains("ppad1");
                prop_assert!(line.chars().count() <= columns || is_name, "{line}\n{text}");
            }
        }
    }
}

#[test]
fn the_page_says_what_the_tables_say_and_runs_nothing() {
    let mut second = other();
    "<script>alert(1)</script>".clone_into(&mut second.hardware.name);
    let comparison = compare(&monday(), &[&second, &tuesday()]);
    let page = report(&comparison).html();
    let in_lower_case = page.to_lowercase();
    for forbidden in ["http://", "https://", "<script", "<link", "<img", "@import", "javascript:"] {
        assert!(!in_lower_case.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("&lt;script&gt;") && page.contains("default-src 'none'"));
    assert_eq!(page.matches("<circle").count(), comparison.pairs.len());
    for pair in &comparison.pairs {
        let [low, high] = pair.ratio.interval.unwrap();
        let figure = format!("{:.3} [{low:.3}, {high:.3}]", pair.ratio.value);
        // Once read aloud, once where a pointer rests, once beside the point, once in the table.
        assert!(page.matches(&figure).count() >= 4, "{}: {figure}", pair.problem);
        assert!(page.contains(&format!("aria-label=\"{}: {figure}", pair.problem)));
    }
    for group in &comparison.families {
        let conclusion = group.conclusion.as_ref().unwrap().replace('<', "&lt;");
        assert!(page.contains(&conclusion.replace('>', "&gt;")), "{conclusion}");
    }
}

#[test]
fn a_browser_shows_every_pair_and_says_nothing_on_its_console() {
    let comparison = compare(&monday(), &[&other()]);
    let Some(page) = headless::Page::new(&report(&comparison).html()) else { return };
    let document = page.document();
    let rows = headless::between(&document, "<li class=\"row\">", "</li>");
    assert_eq!(rows.len(), comparison.pairs.len());
    page.is_shown_at(&[[1280, 2000], [500, 2000]], &[]);
}

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").env_remove("COLUMNS");
    command
}

/// A folder with the example as `a.toml`, and as `b.toml` after a loss of a tenth in one record.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    let save = |calibration: &HardwareCalibration, name: &str| {
        calibration.save(folder.path().join(name)).unwrap();
    };
    save(&calibration, "a.toml");
    let lost = &mut calibration.records[1];
    lost.speedup_factor *= 0.9;
    lost.speedup_low *= 0.9;
    lost.speedup_high *= 0.9;
    consistent::make_consistent(&mut calibration);
    save(&calibration, "b.toml");
    for record in &mut calibration.records {
        record.threads = 1;
        record.cache_state = fusion_cost_model::CacheState::Cold;
    }
    calibration.ceilings.clear();
    consistent::make_consistent(&mut calibration);
    save(&calibration, "cold.toml");
    let mut both = HardwareCalibration::load(folder.path().join("a.toml")).unwrap();
    both.ceilings.clear();
    both.records.extend(calibration.records.iter().take(1).cloned());
    both.num_records = both.records.len() as u64;
    consistent::make_consistent(&mut both);
    save(&both, "both.toml");
    folder
}

#[test]
fn a_regression_is_found_and_exits_with_4() {
    let folder = folder();
    let compare = |args: &[&str]| calibrate(folder.path()).arg("compare").args(args).assert();
    compare(&["a.toml", "b.toml"])
        .success()
        .stdout(contains("of the same machine").and(contains("1 REGRESSION")))
        .stderr("");
    compare(&["a.toml", "b.toml", "--fail-on-regression", "5%"])
        .code(4)
        .stdout(contains("1 REGRESSION (1 by 5.0 % or more)"));
    compare(&["a.toml", "b.toml", "--fail-on-regression", "20"]).success();
    compare(&["b.toml", "a.toml", "--fail-on-regression", "5%"])
        .success()
        .stdout(contains("1 IMPROVEMENT"));
    compare(&["b.toml", "a.toml", "--against", "b", "--fail-on-regression", "5%"]).code(4);
}

#[test]
fn the_formats() {
    let folder = folder();
    let of = |args: &[&str]| {
        let output =
            calibrate(folder.path()).args(["compare", "a.toml", "b.toml"]).args(args).assert();
        String::from_utf8(output.success().get_output().stdout.clone()).unwrap()
    };
    let json: serde_json::Value = serde_json::from_str(&of(&["--json"])).unwrap();
    assert_eq!(json["pairs"].as_array().unwrap().len(), 3);
    assert_eq!(of(&["--json"]), of(&["--format", "json"]));
    assert!(of(&["--format", "csv"]).starts_with("problem,pattern,family,"));
    assert!(of(&["--format", "csv", "--table", "families"]).starts_with("family,pattern,"));
    assert!(of(&["--format", "html"]).starts_with("<!DOCTYPE html>"));
    assert!(of(&["--format", "markdown"]).contains("|---|---:|"));
    let whole = of(&[]);
    assert!(whole.contains("  add_relu/f32/m4096.n1024  "), "whole names on a pipe: {whole}");
    calibrate(folder.path())
        .args(["compare", "a.toml", "b.toml", "-o", "page.txt"])
        .assert()
        .success()
        .stdout("")
        .stderr(contains("wrote page.txt"));
    assert_eq!(std::fs::read_to_string(folder.path().join("page.txt")).unwrap(), whole);
}

#[test]
fn targets_of_a_file_are_chosen() {
    let folder = folder();
    let compare = |args: &[&str]| calibrate(folder.path()).arg("compare").args(args).assert();
    // B's only target says which of A's is meant.
    compare(&["both.toml", "b.toml"]).success().stdout(contains("1 of other targets in A"));
    compare(&["both.toml", "cold.toml", "--a", "1"]).success().stdout(contains("cpu/1/f32/native"));
    compare(&["both.toml", "both.toml"])
        .code(2)
        .stdout("")
        .stderr(contains("several targets: cpu/1/f32/native (1 record), cpu/2/f32/native"));
    compare(&["both.toml", "--by", "threads"])
        .code(2)
        .stderr(contains("no problem is in both files"));
}

#[test]
fn mistakes_are_said_with_what_to_do() {
    let folder = folder();
    let machine = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/hardware/h200.toml");
    let pair = ["a.toml", "b.toml"];
    for (args, code, message) in [
        (&["a.toml"][..], 2, "name a second file, or compare within this one with --by"),
        (&["a.toml", "no.toml"], 1, "cannot read no.toml"),
        (&["a.toml", machine], 1, "it is a hardware profile, not a calibration"),
        (&["a.toml", "cold.toml"], 2, "no problem is in both files: A (a.toml) has 3 of"),
        (&["a.toml", "cold.toml"], 2, "calibrate both with the same --cache"),
        (&["a.toml", "b.toml", "--a", "cuda"], 2, "a.toml has no such target; it has cpu/2/f32"),
        (&["a.toml", "b.toml", "--b", "cpu/4"], 2, "b.toml has no such target"),
        (&["a.toml", "b.toml", "--a", "naitve"], 2, "did you mean `native`?"),
        (&["a.toml", "b.toml", "--by", "threads"], 2, "--by compares within one file"),
        (&["a.toml", "--by", "implementation"], 2, "has nothing to compare by that; it has cpu/2"),
        (&["a.toml", "b.toml", "--against", "C"], 2, "the files are called A to B"),
        (&["a.toml", "b.toml", "--json", "--table", "records"], 2, "JSON and HTML have all of it"),
        (&["a.toml", "b.toml", "--format", "csv", "--table", "all"], 2, "not-compared"),
        (&["a.toml", "b.toml", "--fail-on-regression", "much"], 2, "must be a percentage"),
        (&["a.toml", "b.toml", "--top", "0"], 2, "--top"),
        (&["a.toml", "b.toml", "-o", "no/x.txt"], 2, "the folder no does not exist"),
    ] {
        calibrate(folder.path())
            .arg("compare")
            .args(args)
            .assert()
            .code(code)
            .stdout("")
            .stderr(contains(message));
    }
    calibrate(folder.path())
        .args(["compare", "a.toml", "./a.toml"])
        .assert()
        .success()
        .stderr(contains("warning: same-file: ./a.toml is compared with itself"));
    // Another machine is not a regression check.
    let mut other = HardwareCalibration::load(folder.path().join("b.toml")).unwrap();
    other.fingerprint.cpu_family_model_stepping = Some("6/1/1".to_owned());
    other.save(folder.path().join("other.toml")).unwrap();
    calibrate(folder.path())
        .args(["compare", pair[0], "other.toml", "--fail-on-regression", "5%"])
        .assert()
        .code(2)
        .stderr(contains("--fail-on-regression is for one machine and one target"));
}

/// The committed calibration against itself, and its figures in the tables.
#[test]
fn the_committed_calibration_is_the_same_as_itself() {
    let folder = folder();
    let file =
        concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/calibrations/intel-xeon-2-threads.toml");
    let records = HardwareCalibration::load(file).unwrap().records;
    let is_compared = |record: &&FusionRecord| {
        !record.problem.chain().is_single() && record.verdict != Verdict::Invalid
    };
    let chains = records.iter().filter(is_compared).count();
    assert!(chains > 80, "{chains}");
    calibrate(folder.path())
        .args(["compare", file, file, "--fail-on-regression", "1%"])
        .assert()
        .success()
        .stdout(contains(format!("{chains} chains: ")));
}

#[test]
#[ignore = "wants ../shared/profiles_json, which is not part of the repository"]
fn imported_profiles_show_no_change() {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/profiles_json");
    let folder = folder();
    let import = |file: &str, to: &str| {
        let path = format!("{shared}/{file}");
        calibrate(folder.path()).args(["import", &path, "-o", to]).assert()
    };
    import("i7_12700k_with_fusion.json", "i7.toml")
        .success()
        .stdout(
            contains("qk+scale/f32/b4.h1.q256.d64").and(contains("0.603")).and(contains("0.580")),
        )
        .stderr(contains("wrote i7.toml"));
    import("test_fusion_integration.json", "test.toml").success();
    calibrate(folder.path())
        .args(["compare", "test.toml", "i7.toml"])
        .assert()
        .success()
        .stdout(contains("3 chains: 3 UNDECIDED (no interval to judge by)"));
    calibrate(folder.path()).args(["show", "i7.toml"]).assert().success();
    calibrate(folder.path())
        .args(["query", "i7.toml", "--problem", "linear_bias/f32/m8.k8.n8"])
        .assert()
        .code(1)
        .stderr(contains("it is an imported profile, not a calibration"));
    for (file, message) in [
        ("dla_not_a_hwcal.json", "it has no `metadata` at its top level"),
        ("i7_fp32_efficiency_curves.json", "it has no `metadata`"),
        ("i7_measurement_resnet18_b1.json", "it has no `metadata`"),
        ("agx_degenerate_zero_ops.json", "nothing can be imported: it has 0 fusion records"),
        ("i7_performance_1136MHz_pytorch.json", "nothing can be imported"),
        ("agx_MODE50W_306MHz_pytorch.json", "nothing can be imported"),
    ] {
        import(file, "no.toml").code(1).stdout("").stderr(contains(message));
        assert!(!folder.path().join("no.toml").exists());
    }
}
