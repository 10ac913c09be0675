//! A comparison of two traces: as text, as tables of CSV, as JSON, and as a page.
//!
//! `words` has the phrases that text and page share.

mod csv;
mod html;
mod json;
mod text;
mod words;

use kernel_traces::collectives::RankSurvey;
use kernel_traces::compare::{Comparison, FusionRecords};

pub use csv::{CompareTable, trace_compare_csv};
pub use html::trace_compare_html;
pub use json::trace_compare_json;
pub use text::trace_compare;

/// What a report of a comparison shows.
#[derive(Debug, Clone, Copy)]
pub struct CompareReport<'c> {
    /// The comparison.
    pub comparison: &'c Comparison,
    /// What calibration files say of its fusions.
    pub records: &'c [FusionRecords],
    /// All ranks of each side, where one was chosen of several.
    pub ranks: [Option<&'c RankSurvey>; 2],
    /// How many entries lists for people have; CSV and JSON have all.
    pub top: usize,
}

impl<'c> CompareReport<'c> {
    /// What calibration files say of a fusion.
    fn records_of(self, fusion: usize) -> impl Iterator<Item = &'c FusionRecords> {
        self.records.iter().filter(move |records| records.fusion == fusion)
    }
}
