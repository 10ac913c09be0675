//! The program in a folder of its own.

use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

/// A problem that takes no time.
pub(super) const SINGLE: &str = "layer_norm/f32/m8.n48";
pub(super) const TINY: &str = "linear_bias_relu/f32/m8.k16.n8";

pub(super) const EXAMPLE: &str = include_str!("../../../tests/data/example.toml");

pub(super) fn calibrate(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_calibrate"));
    // The states of this machine are none of the tests' business.
    command.current_dir(folder).env("XDG_CACHE_HOME", "/dev/null");
    command
}

/// A calibration that goes on while other tests keep the machine busy.
pub(super) fn forced(folder: &Path) -> Command {
    let mut command = calibrate(folder);
    command.arg("--force");
    command
}

/// The shortest calibration: one process for each problem.
pub(super) fn shortest(folder: &Path) -> Command {
    let mut command = forced(folder);
    command.args(["--quick", "--processes", "1"]);
    command
}

pub(super) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The names in a folder, sorted.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
