//! A comparison as one object of JSON.

use cli_support::plain;
use kernel_traces::compare::{Document, RanksOfSides};

use super::CompareReport;

/// The object. Numbers that are infinite, or none, are null.
///
/// # Errors
///
/// When it cannot be written as JSON, which no comparison is.
pub fn trace_compare_json(report: CompareReport<'_>) -> serde_json::Result<String> {
    let ranks = RanksOfSides { first: report.ranks[0], second: report.ranks[1] };
    let document = Document::new(report.comparison, report.records, ranks);
    let text = serde_json::to_string_pretty(&document)? + "\n";
    Ok(plain::json(&text).into_owned())
}
