//! `info`: the devices and what was recorded.

use std::ops::ControlFlow;

use cli_support::output::Destination;
use kernel_traces::results::{InfoParts, RankInfo, RunInfo};
use kernel_traces::{Options, RankFile};

use super::open::{self, Inputs, Opened};
use super::write_json;
use crate::cli::TraceInfoArgs;
use crate::report;

/// Describes all files.
pub(super) fn info(args: &TraceInfoArgs) -> anyhow::Result<()> {
    let mut inputs = open::find_input(&args.input)?;
    let files = inputs.files.clone();
    let ranks: Result<Vec<_>, _> = files.iter().map(|file| rank(&mut inputs, file)).collect();
    let run = RunInfo::new(ranks?);
    drop(inputs);
    let mut out = Destination::new(None)?;
    if args.json {
        write_json(&mut out, &run)?;
    } else {
        out.write_text(&report::trace_info(&run))?;
    }
    out.finish()
}

fn rank(inputs: &mut Inputs, file: &RankFile) -> anyhow::Result<RankInfo> {
    match inputs.open(file)? {
        Opened::Whole(trace) => Ok(RankInfo::of(file, &trace)),
        Opened::InParts => {
            let mut parts = InfoParts::default();
            let streamed = inputs.stream(file, &Options::default(), &mut |part| {
                parts.add(part);
                ControlFlow::Continue(())
            })?;
            Ok(parts.finish(file, streamed))
        }
    }
}
