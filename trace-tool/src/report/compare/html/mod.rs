//! A comparison as one page of HTML, without scripts and without anything from elsewhere.
//!
//! The shell, its style and the bars are those of all pages. `names` keeps every text at a length
//! that a page can hold. Bars are inline SVG in per cent of their place, so that text next to them
//! stays text, and they fit any screen.

mod findings;
mod head;
mod kernels;
mod layers;
mod names;
mod ranks;
mod rates;
mod waterfall;

use cli_support::page::bars::Look;
use cli_support::page::page;
use kernel_traces::compare::Which;
use maud::{Markup, html};

use super::{CompareReport, words};
use names::Names;

/// What no other page needs.
const STYLE: &str = include_str!("style.css");

/// Lists have at most this many entries, so that a page stays below a megabyte.
const MOST_ENTRIES: usize = 80;

/// The page.
#[must_use]
pub fn trace_compare_html(report: CompareReport<'_>) -> String {
    let report = CompareReport { top: report.top.min(MOST_ENTRIES), ..report };
    let comparison = report.comparison;
    let names = Names::default();
    let title = format!("{} against {}", comparison.first.label, comparison.second.label);
    let body = html! {
        (head::head(report, &names, &title))
        main {
            (waterfall::section(report, &names))
            (rates::rates(report, &names))
            (rates::idle(report, &names))
            (layers::section(report, &names))
            (findings::fusions(report, &names))
            (findings::implementation(report, &names))
            (ranks::section(report, &names))
            (kernels::longest(report, &names))
            (kernels::parts(report, &names))
            (kernels::same(report, &names))
            (findings::warnings(comparison, &names))
            (head::how_to_read(comparison, &names))
        }
    };
    page(&format!("{}: where the gap comes from", names.text(&title)), STYLE, &body)
}

/// How the bars of a side look.
const fn look(side: Which) -> Look {
    match side {
        Which::First => Look::Plain,
        Which::Second => Look::Hatched,
    }
}

/// A line about what a list leaves out.
fn left_out(all: usize, shown: usize, noun: &str) -> Markup {
    let line = words::left_out(all, shown, noun);
    html! { @if !line.is_empty() { p.more { (line) } } }
}
