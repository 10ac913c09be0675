//! What DuckDB says of files, for the tests of several crates.
//!
//! DuckDB is the package `duckdb` of Python. With `CALIBRATE_NEEDS_DUCKDB` set, a Python without it
//! is a failure.

use std::env;
use std::path::Path;
use std::process::Command;

/// What DuckDB answers, as a list of rows; `None` without it.
pub(crate) fn ask(folder: &Path, query: &str) -> Option<serde_json::Value> {
    let script = "import duckdb, json, sys\n\
                  print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))";
    let has = Command::new("python3").args(["-c", "import duckdb"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        assert!(
            env::var_os("CALIBRATE_NEEDS_DUCKDB").is_none(),
            "no DuckDB: python3 -m pip install duckdb"
        );
        eprintln!("SKIPPED: python3 has no DuckDB; python3 -m pip install duckdb");
        return None;
    }
    let output =
        Command::new("python3").args(["-c", script, query]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}
