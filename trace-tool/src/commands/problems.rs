//! `calibrate trace problems`: what a model ran, as a set of sizes to measure.

use std::path::Path;

use cli_support::exit::UsageError;
use cli_support::output::Destination;
use kernel_traces::Classes;
use kernel_traces::rates::problems::ModelProblems;

use super::phase::Wanted;
use super::{open, write_json};
use crate::cli::TraceProblemsArgs;
use crate::report;

/// Writes the problems of a trace.
pub(super) fn problems(args: &TraceProblemsArgs) -> anyhow::Result<()> {
    let target = args.out.target()?;
    let mut inputs = open::find(&args.files, args.index.policy(), false)?;
    let files = inputs.files.clone();
    let [file] = files.as_slice() else {
        let message = "problems are those of one trace; choose a rank with --rank N";
        return Err(UsageError(message.to_owned()).into());
    };
    inputs.note_memory(file);
    let trace = inputs.load(file)?;
    let mut wanted = Wanted::of(&args.phase);
    let steps = wanted.steps(&trace, &Classes::of(&trace));
    wanted.check()?;
    let found = ModelProblems::of_some(&trace, |kernel| wanted.takes(&steps, kernel));
    drop(inputs);
    if found.problems.is_empty() && !args.json {
        return Err(anyhow::anyhow!(nothing(&found, &file.named)));
    }
    let mut out = Destination::new(target)?;
    if args.json {
        write_json(&mut out, &found)?;
    } else {
        out.write_text(&report::trace_problems(&found, &file.named, args.top))?;
    }
    out.finish()
}

/// Why a trace has no problems.
fn nothing(found: &ModelProblems, file: &Path) -> String {
    let file = file.display();
    if found.left_out.is_empty() {
        return format!(
            "{file} says no sizes of GEMMs, convolutions or attention; record with record_shapes=True"
        );
    }
    let reasons: Vec<String> = found
        .left_out
        .iter()
        .take(MOST_REASONS)
        .map(|one| format!("{} ({})", one.operator, one.reason))
        .collect();
    let more = if found.left_out.len() > MOST_REASONS { " and others" } else { "" };
    format!("no operator of {file} is a problem that can be measured: {}{more}", reasons.join(", "))
}

/// A message names at most this many operators.
const MOST_REASONS: usize = 3;
