//! Databases of Nsight Systems.

use std::fs;
use std::path::PathBuf;

use kernel_traces::{DeviceWork, Trace, TraceError, Warning};
use rusqlite::Connection;

use super::{LINES, assert_is_prefill, calls, data, load, read, rows};

const SQL: &str = include_str!("../data/profilers/nsys.sql");

fn made(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.sqlite");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

#[test]
fn the_database_says_the_same_as_the_lines() {
    let trace = load(&data("nsys.sqlite")).unwrap();
    let lines = load(&data(LINES)).unwrap();
    assert_eq!(rows(&trace), rows(&lines));
    assert_eq!(calls(&trace), calls(&lines));
    assert_eq!(trace.threads, lines.threads);
    assert_eq!(trace.warnings, []);
    assert_is_prefill(&trace);
    let device = &trace.metadata.devices[0];
    assert_eq!((device.id, device.name.as_str()), (1, "NVIDIA A100-SXM4-80GB"));
    assert_eq!((device.multiprocessors, device.compute_capability), (Some(108), Some((8, 0))));
    assert_eq!(Trace::metadata(data("nsys.sqlite")).unwrap(), trace.metadata);
}

#[test]
fn the_file_is_what_its_text_makes() {
    let (_folder, path) = made(SQL);
    let (made, kept) = (load(&path).unwrap(), load(&data("nsys.sqlite")).unwrap());
    assert_eq!(rows(&made), rows(&kept));
    assert_eq!(made.metadata, kept.metadata);
}

#[test]
fn tables_and_columns_may_be_missing() {
    let less = "CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, shortName INTEGER);
        INSERT INTO StringIds VALUES (3, 'k');
        INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10, 30, 3), (40, 45, 9), ('x', 50, 3);";
    let (_folder, path) = made(less);
    let trace = load(&path).unwrap();
    let row = |start, duration, name: &str| {
        (start, duration, DeviceWork::Kernel, -1, -1, 0, 0, name.to_owned())
    };
    assert_eq!(rows(&trace), [row(10, 20, "k"), row(40, 5, "")]);
    assert!(matches!(trace.warnings[..], [Warning::BadTimes { count: 1, .. }]));
    let said = trace.warnings[0].to_string();
    assert!(said.ends_with("left out, the first in row 3 of all tables"), "{said}");
}

#[test]
fn other_databases_say_what_they_lack() {
    let (_folder, path) = made("CREATE TABLE rocpd_string (id INTEGER)");
    let error = load(&path).unwrap_err().to_string();
    assert!(error.contains("without the tables of Nsight Systems"), "{error}");
    assert!(error.contains("rocpd convert"), "{error}");
    let error = read(&fs::read(data("nsys.sqlite")).unwrap()).unwrap_err().to_string();
    assert!(error.contains("must be a file"), "{error}");
}

/// A view of a known name could compute without end.
#[test]
fn views_are_not_read() {
    let sql = "CREATE TABLE StringIds (id INTEGER, value TEXT);
        CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
            WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n)
            SELECT start, start AS end FROM n;";
    let (_folder, path) = made(sql);
    assert!(load(&path).unwrap().kernels.is_empty());
}

#[test]
fn whole_graphs_are_told() {
    let graphs = "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER);
        INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (1, 2), (3, 4);";
    let (_folder, path) = made(&format!("{SQL}{graphs}"));
    let trace = load(&path).unwrap();
    assert_eq!(trace.warnings, [Warning::WholeGraphs { count: 2 }]);
    assert!(trace.warnings[0].advice().contains("--cuda-graph-trace=node"));
}

#[test]
fn damage_is_no_panic_and_is_told() {
    let whole = fs::read(data("nsys.sqlite")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.sqlite");
    let expected = rows(&load(&data("nsys.sqlite")).unwrap());
    let mut whole_ones = 0;
    for cut in (0..whole.len()).step_by(97) {
        fs::write(&path, &whole[..cut]).unwrap();
        if let Ok(trace) = load(&path) {
            let is_told = trace.warnings.iter().any(|one| one.code() == "damaged-table");
            assert!(is_told || rows(&trace) == expected, "cut at {cut}");
        }
    }
    for at in (0..whole.len()).step_by(13) {
        let mut text = whole.clone();
        text[at] ^= 0x55;
        fs::write(&path, &text).unwrap();
        match load(&path) {
            Ok(trace) => whole_ones += usize::from(rows(&trace) == expected),
            Err(TraceError::NotATrace { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(whole_ones > 0);
}
