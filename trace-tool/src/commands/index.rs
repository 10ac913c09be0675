//! `calibrate trace index`: makes the indexes of traces, or looks whether they are fresh.

use std::io::Write;

use anyhow::Context;
use cli_support::exit;
use cli_support::output::Destination;
use kernel_traces::index::{self, Report};
use kernel_traces::{Options, RankFile};
use serde::Serialize;

use super::{open, write_json};
use crate::cli::TraceIndexArgs;
use crate::report;

/// What `--json` prints: an object with one of these for each trace under `indexes`.
#[derive(Debug, Serialize)]
struct IndexState {
    /// The trace.
    file: String,
    /// Its index.
    index: String,
    /// The next load would use it.
    is_fresh: bool,
    /// Why not.
    unfit: Option<String>,
    /// The size of the trace, in bytes.
    trace_bytes: u64,
    /// The size of the index, in bytes; 0 if it cannot be read.
    index_bytes: u64,
    /// Whether it has the calls of Python functions.
    has_frames: bool,
}

#[derive(Debug, Serialize)]
struct IndexStates {
    indexes: Vec<IndexState>,
}

/// Makes the index of every file, or says which are not fresh: then the exit code is 1.
pub(super) fn index(args: &TraceIndexArgs) -> anyhow::Result<u8> {
    let mut inputs = open::find(&args.files, args.place.policy(), false)?;
    let files = inputs.files.clone();
    let mut indexes = Vec::new();
    for file in &files {
        if !args.check {
            inputs.build_index(file)?;
        }
        indexes.push(state(&inputs, file)?);
    }
    drop(inputs);
    let mut out = Destination::new(None)?;
    let all_fresh = indexes.iter().all(|index| index.is_fresh);
    if args.json {
        write_json(&mut out, &IndexStates { indexes })?;
    } else {
        for index in &indexes {
            writeln!(out, "{}", line(index))?;
        }
    }
    out.finish()?;
    Ok(if all_fresh { exit::DONE } else { exit::FAILURE })
}

fn state(inputs: &open::Inputs, file: &RankFile) -> anyhow::Result<IndexState> {
    let name = file.path.display().to_string();
    let Report { path, unfit, bytes, has_frames, .. } =
        index::inspect(&file.path, &inputs.policy).with_context(|| name.clone())?;
    Ok(IndexState {
        file: name,
        index: path.display().to_string(),
        is_fresh: unfit.is_none(),
        unfit: unfit.map(|unfit| unfit.to_string()),
        trace_bytes: file.bytes,
        index_bytes: bytes,
        has_frames,
    })
}

fn line(state: &IndexState) -> String {
    let IndexState { file, index, unfit, trace_bytes, index_bytes, .. } = state;
    match unfit {
        Some(unfit) => format!("{file}: {unfit} ({index})"),
        None => format!(
            "{file}: {} are indexed in {index}, {}",
            report::bytes(*trace_bytes),
            report::bytes(*index_bytes)
        ),
    }
}

impl open::Inputs {
    /// Writes the index of a trace.
    fn build_index(&mut self, file: &RankFile) -> anyhow::Result<()> {
        self.note_memory(file);
        let policy = self.policy.clone();
        index::build(&file.path, &Options::default(), &policy, &mut self.progress(file))?;
        self.done += file.bytes;
        Ok(())
    }
}
