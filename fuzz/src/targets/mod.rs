//! The targets, one for each format.

mod calibration;
mod graph;
mod hardware;
mod import;
mod journal;
mod machine;
mod options;
mod predicted;
mod problem;
mod recording;
mod runtime;
mod shapes;
mod trace;
mod worker;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::str;

use tempfile::TempDir;
use trace::checks::{SEED, random_bytes};

use crate::Target;

/// All of them.
pub const TARGETS: &[Target] = &[
    calibration::CALIBRATION,
    hardware::HARDWARE,
    shapes::SHAPES,
    workload::WORKLOAD,
    options::COMMAND_LINE,
    options::DEFAULTS,
    options::PROBLEM_LIST,
    runtime::RUNTIME,
    runtime::RUNTIME_ANSWER,
    machine::MACHINE_STATES,
    machine::COMPILED_KERNEL,
    machine::GPU_LIBRARY,
    import::IMPORTED,
    import::IMPORT_JSON,
    journal::JOURNAL,
    worker::WORKER,
    problem::PROBLEM,
    trace::TRACE,
    trace::TRACE_CHANGED,
    trace::TRACE_REPEATED,
    trace::TRACE_COMPRESSED,
    trace::TRACE_HEAD,
    trace::TRACE_INDEX,
    trace::KERNEL_NAME,
    recording::NSYS_LINES,
    recording::NSYS_DATABASE,
    recording::ROCPROF,
    recording::ROCPROF_TABLE,
    predicted::PREDICTED,
    predicted::OPERATORS,
    predicted::PASSES,
    predicted::SCENARIOS,
    graph::GRAPH,
    graph::GRAPH_CHANGED,
];

/// Hands bytes that are text to the reader of a text. Others are refused before one is asked.
fn text(bytes: &[u8], read: impl FnOnce(&str) -> String) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => read(text),
        Err(_) => "not UTF-8".to_owned(),
    }
}

/// A folder for files that need not reach a disk.
fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.unwrap()
}

thread_local! {
    /// The folder of this thread's files: making one takes longer than most inputs.
    static FOLDER: TempDir = folder();
}

/// The path of a file with these bytes, in a folder that is empty but for it.
fn file_with(name: &str, bytes: &[u8]) -> PathBuf {
    FOLDER.with(|folder| {
        for entry in fs::read_dir(folder.path()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    })
}

/// What was said of a file, without the folder that it is in.
fn said_of(path: &Path, text: &str) -> String {
    text.replace(&*path.display().to_string(), "it")
}

/// The same random bytes each time, for targets that make their inputs by themselves.
fn random_seeds(lengths: impl IntoIterator<Item = usize>) -> Vec<Vec<u8>> {
    let mut state = SEED;
    lengths.into_iter().map(|length| random_bytes(&mut state, length)).collect()
}
