//! `calibrate trace index`: makes the indexes of traces, or looks whether they are fresh.

use anyhow::Context;
use cli_support::exit;
use cli_support::output::Destination;
use cli_support::plain;
use kernel_traces::index::{self, IndexState, IndexStates};
use kernel_traces::{Options, RankFile};

use super::{open, write_json};
use crate::cli::TraceIndexArgs;
use crate::report;

/// Makes the index of every file, or says which are not fresh: then the exit code is 1.
pub(super) fn index(args: &TraceIndexArgs) -> anyhow::Result<u8> {
    let mut inputs = open::find(&args.files, args.place.policy(), false)?;
    let files = inputs.files.clone();
    let mut indexes = Vec::new();
    for file in &files {
        if !args.check {
            inputs.build_index(file)?;
        }
        let name = || file.named.display().to_string();
        indexes.push(IndexState::of(file, &inputs.policy).with_context(name)?);
    }
    drop(inputs);
    let states = IndexStates::new(indexes);
    exit::if_read(print(&states, args.json))?;
    Ok(if states.are_fresh() { exit::DONE } else { exit::FAILURE })
}

fn print(states: &IndexStates, as_json: bool) -> anyhow::Result<()> {
    let mut out = Destination::new(None)?;
    if as_json {
        write_json(&mut out, states)?;
    } else {
        for index in &states.indexes {
            out.write_text(&(plain::on_one_line(&line(index)) + "\n"))?;
        }
    }
    out.finish()
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
