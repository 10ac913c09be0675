//! `info`: the devices and what was recorded.

use std::ops::ControlFlow;

use cli_support::output::Destination;
use kernel_traces::collectives::{RankRecord, RankSurvey};
use kernel_traces::results::{InfoParts, RankInfo, RunInfo};
use kernel_traces::{Classes, Options, RankFile};

use super::open::{self, Inputs, Opened};
use super::phase::{self, Wanted};
use super::{survey, write_json};
use crate::cli::TraceInfoArgs;
use crate::report;

/// Describes all files.
pub(super) fn info(args: &TraceInfoArgs) -> anyhow::Result<()> {
    let mut inputs = open::find_input(&args.input)?;
    let files = inputs.files.clone();
    let several = files.len() > 1;
    let mut wanted = Wanted::of(&args.phase);
    let (mut ranks, mut records) = (Vec::new(), Vec::new());
    for file in &files {
        let (rank, record) = rank(&mut inputs, file, several, &mut wanted)?;
        ranks.push(rank);
        records.extend(record);
    }
    wanted.check()?;
    let is_whole = several && records.len() == ranks.len();
    let run = RunInfo::new(ranks, is_whole.then(|| RankSurvey::of(records)));
    drop(inputs);
    let mut out = Destination::new(None)?;
    if args.json {
        write_json(&mut out, &run)?;
    } else {
        out.write_text(&report::trace_info(&run))?;
    }
    out.finish()
}

/// What was recorded in a trace, and what is compared between ranks if there are several.
fn rank(
    inputs: &mut Inputs,
    file: &RankFile,
    several: bool,
    wanted: &mut Wanted,
) -> anyhow::Result<(RankInfo, Option<RankRecord>)> {
    match inputs.open(file)? {
        Opened::Whole(trace) if wanted.phase().is_some() => {
            let classes = Classes::of(&trace);
            let steps = wanted.steps(&trace, &classes);
            let (part, _) = trace.only(&classes, |kernel| wanted.takes(&steps, kernel));
            Ok((RankInfo::of(file, &trace).with_times_of(&part), None))
        }
        Opened::Whole(trace) => {
            let record = several.then(|| survey::record(file, &trace));
            Ok((RankInfo::of(file, &trace), record))
        }
        Opened::InParts if wanted.phase().is_some() => Err(phase::needs_all().into()),
        Opened::InParts => {
            let mut parts = InfoParts::default();
            let streamed = inputs.stream(file, &Options::default(), &mut |part| {
                parts.add(part);
                ControlFlow::Continue(())
            })?;
            Ok((parts.finish(file, streamed), None))
        }
    }
}
