//! What to know about the records: why one is INVALID or undecided, and what else was found.

use cli_support::units::counted;
use maud::{Markup, html};

use super::Part;
use crate::report::reasons::{by_code, of_first};

/// A list of the reasons, each once with its records; empty without any.
pub(super) fn reasons(part: &Part<'_>) -> Markup {
    let records = part.records().len();
    html! {
        ul.warnings {
            @for (code, found) in by_code(part.records().iter().copied()) {
                @if let Some(first) = found.first() {
                    li {
                        b { (code) }
                        @if found.len() == records && records > 1 { ", all " } @else { ", " }
                        (counted(found.len(), "record")) (of_first(&found)) ": " (first.text)
                        @if found.len() < records {
                            details {
                                summary { "Which" }
                                ul { @for said in &found { li { code { (said.name()) } } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether there is anything to know.
pub(super) fn has_any(part: &Part<'_>) -> bool {
    part.records().iter().any(|record| !record.reasons.is_empty())
}
