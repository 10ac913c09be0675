//! `calibrate trace idle`: where devices wait, and for what.

use cli_support::output::Destination;
use kernel_traces::idle::IdleTimes;
use kernel_traces::results::{RankIdle, RanksIdle};
use kernel_traces::{Classes, Segments};

use super::phase::Wanted;
use super::{open, write_json};
use crate::cli::TraceIdleArgs;
use crate::report;

/// Says where the devices of all files wait.
pub(super) fn idle(args: &TraceIdleArgs) -> anyhow::Result<()> {
    let target = args.out.target()?;
    let mut inputs = open::find(&args.files, args.index.policy(), false)?;
    let files = inputs.files.clone();
    let mut wanted = Wanted::of(&args.phase);
    let mut ranks = Vec::new();
    for file in &files {
        inputs.note_memory(file);
        let trace = inputs.load(file)?;
        let steps = Segments::steps_of(&trace, &Classes::of(&trace));
        wanted.see(&trace, &steps);
        let idle = IdleTimes::before(&trace, &steps, |kernel| wanted.takes(&steps, kernel));
        ranks.push(RankIdle::new(file, idle));
    }
    drop(inputs);
    wanted.check()?;
    let result = RanksIdle::new(ranks);
    let mut out = Destination::new(target)?;
    if args.json {
        write_json(&mut out, &result)?;
    } else {
        out.write_text(&report::trace_idle(&result, args.top))?;
    }
    out.finish()
}
