//! Looks at all ranks of one side of a comparison, one after another, and chooses the one that
//! stands for all.

use kernel_traces::collectives::{RankName, RankRecord, Representative, Skew};
use kernel_traces::{Classes, RankFile, Segments};

use super::open::Inputs;
use crate::report::RankSurvey;

/// Reads every rank of a run, and keeps of each what is compared between ranks.
pub(super) fn survey(files: &[RankFile], inputs: &mut Inputs) -> anyhow::Result<RankSurvey> {
    let mut records = Vec::with_capacity(files.len());
    for file in files {
        inputs.note_memory(file);
        let trace = inputs.load(file)?;
        let classes = Classes::of(&trace);
        let segments = Segments::of(&trace, &classes);
        records.push(RankRecord::of(&trace, &classes, Some(&segments), RankName::from(file)));
    }
    let skew = Skew::of(&records);
    let representative = Representative::of(&records);
    Ok(RankSurvey { records, skew, representative })
}
