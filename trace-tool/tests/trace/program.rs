//! The program, and folders with traces.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use kernel_traces::synthetic::{self, Annotation, Communication, Oddity, Plan, Variation};
use serde_json::Value;
use tempfile::TempDir;

pub(super) fn trace(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trace-tool"));
    command.current_dir(folder);
    command
}

pub(super) fn stdout(command: &mut Command) -> String {
    let output = command.assert().success();
    String::from_utf8(output.get_output().stdout.clone()).unwrap()
}

pub(super) fn json(command: &mut Command) -> Value {
    serde_json::from_str(&stdout(command)).unwrap()
}

/// The text of a small trace.
pub(super) fn text(seed: u64, oddities: &[Oddity]) -> String {
    let plan = Plan { layers: 3, seed, oddities: oddities.to_vec(), ..Plan::default() };
    String::from_utf8(synthetic::text(&plan).unwrap().0).unwrap()
}

/// A folder with a trace `t.json`.
pub(super) fn one() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.json"), text(1, &[])).unwrap();
    folder
}

/// A folder with a folder `ranks`, of ranks 2, 9 and 10 of a run over eight processes.
pub(super) fn three() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let ranks = folder.path().join("ranks");
    fs::create_dir(&ranks).unwrap();
    for rank in [10, 2, 9] {
        let plan = Plan { layers: 3, seed: rank, rank, world_size: 8, ..Plan::default() };
        let (text, _) = synthetic::text(&plan).unwrap();
        fs::write(ranks.join(format!("rank{rank}.json")), text).unwrap();
    }
    folder
}

pub(super) fn served() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        layers: 8,
        steps: 6,
        variation: Variation::SlidingWindow,
        annotations: vec![Annotation::Vllm],
        communication: Communication::OwnStream,
        copies: true,
        ..Plan::default()
    };
    fs::write(folder.path().join("served.json"), synthetic::text(&plan).unwrap().0).unwrap();
    folder
}
