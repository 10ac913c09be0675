//! `calibrate export` as a user meets it, and what DuckDB reads.

#[path = "../../trace-tool/tests/duckdb/mod.rs"]
mod duckdb;

use std::path::Path;

use assert_cmd::Command;
use fusion_cost_model::calibration::{HardwareCalibration, Verdict};
use predicates::str::contains;
use tempfile::TempDir;

const COMMITTED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/calibrations/intel-xeon-2-threads.toml");

const EXAMPLE: &str = include_str!("../../tests/data/example.toml");

/// What a spreadsheet would compute and a terminal obey.
const NAME: &str = "=HYPERLINK(\"x\")\u{1b}[31m\u{9b}";

fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null").arg("export");
    command
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut calibration = HardwareCalibration::from_toml(EXAMPLE).unwrap();
    calibration.save(folder.path().join("a.toml")).unwrap();
    // That of a data sheet; what is observed has the name in the fingerprint.
    calibration.hardware.cores.source = "made up".to_owned();
    calibration.hardware.name = NAME.to_owned();
    calibration.save(folder.path().join("b.toml")).unwrap();
    folder
}

#[test]
fn rows_of_several_files_are_written() {
    let folder = folder();
    let records = HardwareCalibration::from_toml(EXAMPLE).unwrap().records.len();
    let csv = calibrate(folder.path()).args(["a.toml", "b.toml"]).assert().success();
    let csv = String::from_utf8(csv.get_output().stdout.clone()).unwrap();
    assert_eq!(csv.lines().count(), 2 * records + 1);
    assert!(csv.contains("\"'=HYPERLINK(\"\"x\"\")\\u{1b}[31m\\u{9b}\""), "{csv}");
    let commands = |text: &str| text.contains(|c: char| c.is_control() && c != '\n' && c != '\r');
    assert!(!commands(&csv));
    let lines = calibrate(folder.path()).args(["b.toml", "--format", "jsonl"]).assert().success();
    let lines = String::from_utf8(lines.get_output().stdout.clone()).unwrap();
    assert!(!commands(&lines));
    let row: serde_json::Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(row["hardware.name"], NAME);
    calibrate(folder.path())
        .args(["a.toml", "-o", "x.jsonl"])
        .assert()
        .success()
        .stdout("")
        .stderr(contains("wrote x.jsonl"));
    let lines = std::fs::read_to_string(folder.path().join("x.jsonl")).unwrap();
    for line in lines.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row["operators"].is_array() && row["unfused_timing.median_ms"].is_f64());
    }
    assert_eq!(lines.lines().count(), records);
    calibrate(folder.path())
        .args(["a.toml", "-o", "x.jsonl"])
        .assert()
        .code(2)
        .stderr(contains("--overwrite"));
    calibrate(folder.path()).args(["a.toml", "-o", "x.jsonl", "--overwrite"]).assert().success();
    calibrate(folder.path())
        .args(["no.toml"])
        .assert()
        .code(1)
        .stdout("")
        .stderr(contains("cannot read no.toml"));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_wants_a_feature() {
    use predicates::prelude::*;

    calibrate(folder().path())
        .args(["a.toml", "-o", "x.parquet"])
        .assert()
        .code(2)
        .stderr(contains("built without Parquet").and(contains("--features parquet")));
}

#[test]
fn duckdb_reads_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let calibration = HardwareCalibration::load(COMMITTED).unwrap();
    let slower = |verdict| calibration.records.iter().filter(|one| one.verdict == verdict).count();
    let bytes: u64 = calibration.records.iter().map(|one| one.fused_memory_bytes).sum();
    let most = calibration.records.iter().map(|one| one.speedup_factor).fold(0.0, f64::max);
    let median: f64 = calibration.records.iter().map(|one| one.unfused_timing.median_ms).sum();
    let mut names = vec!["x.csv", "x.jsonl"];
    if cfg!(feature = "parquet") {
        names.push("x.parquet");
    }
    for name in names {
        calibrate(folder.path()).args([COMMITTED, "-o", name]).assert().success();
        let query = format!(
            "SELECT count(*), count(*) FILTER (verdict = 'SLOWER'), sum(fused_memory_bytes)::BIGINT, \
             max(speedup_factor), sum(\"unfused_timing.median_ms\"), any_value(\"settings.quick\"), \
             count(ceiling_speedup) FROM '{name}'"
        );
        let Some(answer) = duckdb::ask(folder.path(), &query) else { return };
        let row = &answer[0];
        assert_eq!(row[0], calibration.records.len(), "{name}");
        assert_eq!((&row[1], &row[2]), (&slower(Verdict::Slower).into(), &bytes.into()), "{name}");
        assert_eq!((row[3].as_f64(), row[5].as_bool()), (Some(most), Some(false)), "{name}");
        assert!((row[4].as_f64().unwrap() / median - 1.0).abs() < 1e-9, "{name}");
        let ceilings = calibration.records.iter().filter(|one| one.ceiling_speedup.is_some());
        assert_eq!(row[6], ceilings.count(), "{name}");
    }
}
