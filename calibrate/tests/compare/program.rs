//! The command.

use std::path::Path;

use assert_cmd::Command;
use fusion_cost_model::calibration::{
    Addition, FusionRecord, HardwareCalibration, Reason, ReasonCode, Verdict,
};
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

use super::consistent;
use super::made::EXAMPLE;

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").env_remove("COLUMNS");
    command
}

/// A run on another number of threads.
fn later_run() -> Addition {
    Addition {
        started_at: "2026-12-24T00:00:00Z".to_owned(),
        shapes: "standard".to_owned(),
        seed: 1,
        quick: false,
        forced: false,
        records: 1,
    }
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
    let threads = calibration.checks.iter_mut().find(|check| check.name == "threads").unwrap();
    threads.found = threads.found.replace("2 threads", "1 threads");
    calibration.noise.iter_mut().for_each(|noise| noise.threads = 1);
    consistent::make_consistent(&mut calibration);
    save(&calibration, "cold.toml");
    let mut both = HardwareCalibration::load(folder.path().join("a.toml")).unwrap();
    both.ceilings.clear();
    both.records.extend(calibration.records.iter().take(1).cloned());
    both.num_records = both.records.len() as u64;
    both.additions.push(later_run());
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

/// A gate such as `calibrate compare ... | head` under `set -o pipefail`.
#[cfg(unix)]
#[test]
fn a_regression_is_one_though_nobody_reads_of_it() {
    let folder = folder();
    let measured = "/profiles/calibrations/intel-xeon-2-threads.toml";
    let measured = format!("{}{measured}", env!("CARGO_MANIFEST_DIR"));
    for line in [
        "compare a.toml b.toml --fail-on-regression 5%",
        "compare a.toml b.toml --fail-on-regression 5% --format json",
        &format!("validate {measured} --max-regret 0%"),
    ] {
        let run = |stdout: std::process::Stdio| {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_calibrate"));
            command.current_dir(folder.path()).args(line.split(' '));
            command.stdout(stdout).stderr(std::process::Stdio::null()).status().unwrap().code()
        };
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let read = run(std::process::Stdio::null());
        assert!(read.is_some_and(|code| code != 0), "{line}: {read:?}");
        assert_eq!(run(writer.into()), read, "{line}");
    }
}

#[test]
fn a_check_that_can_find_nothing_does_not_pass() {
    let folder = folder();
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.settings.processes = 1;
    for record in &mut calibration.records {
        record.processes = 1;
        record.rounds = 10;
        record.interval_method = "95 % t interval over rounds".to_owned();
        record.speedup_low = record.speedup_factor / 1.1;
        record.speedup_high = record.speedup_factor * 1.1;
        let text = "made up".to_owned();
        record.reasons.push(Reason { code: ReasonCode::WithinProcess, text });
    }
    consistent::make_consistent(&mut calibration);
    calibration.save(folder.path().join("one.toml")).unwrap();
    let compare = |args: &[&str]| calibrate(folder.path()).arg("compare").args(args).assert();
    compare(&["one.toml", "one.toml"]).success().stdout(contains("so they are not judged"));
    compare(&["one.toml", "one.toml", "--fail-on-regression", "5%"])
        .code(2)
        .stderr(contains("--fail-on-regression has nothing to judge").and(contains("3 chains")));
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

    // What is compared is not left out.
    let mut by = HardwareCalibration::load(folder.path().join("a.toml")).unwrap();
    let on_one = by.records.iter().map(|record| FusionRecord { threads: 1, ..record.clone() });
    by.records = on_one.chain(by.records.iter().cloned()).collect();
    by.num_records = by.records.len() as u64;
    by.additions.push(later_run());
    by.ceilings.clear();
    consistent::make_consistent(&mut by);
    by.save(folder.path().join("by.toml")).unwrap();
    let others = || contains("of other targets").or(contains("other-target"));
    for output in [&["--top", "1"][..], &["--format", "csv", "--table", "not-compared"]] {
        let args = [&["by.toml", "--by", "threads"], output].concat();
        compare(&args).success().stdout(others().not());
        let sides = ["by.toml", "by.toml", "--a", "1", "--b", "2"];
        compare(&[&sides[..], output].concat()).success().stdout(others().not());
    }
    compare(&["a.toml", "by.toml"]).success().stdout(contains("3 of other targets in B"));
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
    let mut forged = other.clone();
    forged.fingerprint.cpu_family_model_stepping = Some("6/1/1\nerror: forged".to_owned());
    forged.save(folder.path().join("forged.toml")).unwrap();
    calibrate(folder.path())
        .args(["compare", pair[0], "forged.toml", "--fail-on-regression", "5%"])
        .assert()
        .code(2)
        .stderr(contains("forged").and(contains("\nerror: forged").not()));
    // They have one name, so the page says how they differ.
    calibrate(folder.path()).args(["compare", pair[0], "other.toml"]).assert().success().stdout(
        contains("A and B are of different machines: family, model and stepping 6/167/8 and 6/1/1"),
    );
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

/// A number that nobody knows neither is 0 nor makes two machines different ones.
#[test]
fn an_unknown_number_of_processors_is_said_to_be_unknown() {
    let folder = folder();
    let known = include_str!("../../profiles/calibrations/i7-12700k-imported.toml");
    assert!(known.contains("processors = 12\n"));
    let with = |line: &str| known.replacen("processors = 12\n", line, 1);
    for (file, text) in
        [("known.toml", known.to_owned()), ("unknown.toml", with("")), ("same.toml", with(""))]
    {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    let unknown = "the same name, but how many processors there are is not known of both; target \
                   cpu/?/f32/vendor and ";
    for (other, target) in [("known.toml", "cpu/12/f32/vendor"), ("same.toml", "cpu/?/f32/vendor")]
    {
        let expected = contains(format!("A and B have {unknown}{target}\n"));
        let wrong =
            contains("different machines").or(contains("same machine")).or(contains("cpu/0"));
        calibrate(folder.path())
            .args(["compare", "unknown.toml", other])
            .assert()
            .success()
            .stdout(expected.and(wrong.not()));
    }
    let index = calibrate(folder.path()).args(["report", "--index", "unknown.toml"]).assert();
    index.success().stdout(contains("cpu/?/f32/vendor"));
    std::fs::write(folder.path().join("none.toml"), with("processors = 0\n")).unwrap();
    calibrate(folder.path())
        .args(["compare", "none.toml", "known.toml"])
        .assert()
        .code(1)
        .stderr(contains("machine.processors at line").and(contains("no machine has 0")));
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
