//! Looks at all ranks of one side of a comparison, one after another, and chooses the one that
//! stands for all.

use kernel_traces::collectives::{RankName, RankRecord, RankSurvey};
use kernel_traces::{Classes, RankFile, Segments, Trace};

use super::open::Inputs;

/// Reads every rank of a run, and keeps of each what is compared between ranks.
pub(super) fn survey(files: &[RankFile], inputs: &mut Inputs) -> anyhow::Result<RankSurvey> {
    let mut records = Vec::with_capacity(files.len());
    for file in files {
        inputs.note_memory(file);
        let trace = inputs.load(file)?;
        records.push(record(file, &trace));
    }
    Ok(RankSurvey::of(records))
}

/// What is compared between ranks.
pub(super) fn record(file: &RankFile, trace: &Trace) -> RankRecord {
    let classes = Classes::of(trace);
    let segments = Segments::of(trace, &classes);
    RankRecord::of(trace, &classes, Some(&segments), RankName::from(file))
}
