//! A comparison as one page of HTML, without scripts and without anything from elsewhere.
//!
//! Every text goes through the templates, which escape it, and `names` keeps it at a length that a
//! page can hold. Bars are inline SVG in per cent of their place, so that text next to them stays
//! text, and they fit any screen.

mod bars;
mod findings;
mod head;
mod kernels;
mod layers;
mod names;
mod ranks;
mod waterfall;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{CompareReport, words};
use names::Names;

const STYLE: &str = include_str!("style.css");

/// Nothing may be loaded or run, whatever a name in a trace says.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Lists have at most this many entries, so that a page stays below a megabyte.
const MOST_ENTRIES: usize = 80;

/// The page.
#[must_use]
pub fn trace_compare_html(report: CompareReport<'_>) -> String {
    let report = CompareReport { top: report.top.min(MOST_ENTRIES), ..report };
    let comparison = report.comparison;
    let names = Names::default();
    let title = format!("{} against {}", comparison.first.label, comparison.second.label);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (names.text(&title)) ": where the gap comes from" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (bars::definitions())
                (head::head(report, &names, &title))
                main {
                    (waterfall::section(report, &names))
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
            }
        }
    };
    page.into_string()
}

/// A table that scrolls sideways where the screen is narrow.
fn scrolling(name: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(name) { (table) } }
}

/// A line about what a list leaves out.
fn left_out(all: usize, shown: usize, noun: &str) -> Markup {
    let line = words::left_out(all, shown, noun);
    html! { @if !line.is_empty() { p.more { (line) } } }
}
