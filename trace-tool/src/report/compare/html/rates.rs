//! How fast kernels were on both sides, and for what the devices waited.

use cli_support::page::scrolling;
use maud::{Markup, html};

use super::super::{CompareReport, words};
use super::names::Names;

pub(super) fn rates(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let rows = &comparison.rates.rows;
    let shown = top.min(words::SHOWN_RATES);
    let labels = names.sides(comparison);
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Class" }
                    th scope="col" { "dtype" }
                    @for label in &labels { th.number scope="col" { (label) } }
                    @for label in &labels { th.number scope="col" { "Of roofline, " (label) } }
                }
            }
            tbody {
                @for row in rows.iter().take(shown) {
                    @let sides = [row.first.as_ref(), row.second.as_ref()];
                    tr {
                        th scope="row" { (names.label(&row.class)) }
                        td { (row.dtype.unwrap_or("–")) }
                        @for side in sides { td.number { (words::rate(side)) } }
                        @for side in sides { td.number { (words::of_roofline(side)) } }
                    }
                }
            }
        }
    };
    html! {
        @if !rows.is_empty() {
            section #rates {
                h2 { "Achieved rates" }
                @if let Some(sentence) = comparison.rates_sentence() { p { (names.text(&sentence)) "." } }
                p { (names.text(&words::machines(comparison))) }
                (scrolling("Achieved rates", &table))
                @let more = words::left_out_of_all(rows.len(), shown, "class");
                @if !more.is_empty() { p.more { (more) } }
            }
        }
    }
}

pub(super) fn idle(report: CompareReport<'_>, names: &Names) -> Markup {
    let comparison = report.comparison;
    let labels = names.sides(comparison);
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Cause" }
                    @for label in &labels { th.number scope="col" { (label) } }
                    th.number scope="col" { "Gap" }
                    th scope="col" { "What the host did" }
                }
            }
            tbody {
                @for row in &comparison.idle.rows {
                    tr {
                        th scope="row" { (row.cause.describe()) }
                        td.number { (words::time(row.first_ns)) }
                        td.number { (words::time(row.second_ns)) }
                        td.number { (words::signed(row.gap_ns)) }
                        td { (names.kernel(&words::doing(comparison, row))) }
                    }
                }
            }
        }
    };
    html! {
        @if let Some(sentence) = comparison.idle_sentence() {
            section #idle {
                h2 { "Idle time" }
                p { (names.text(&sentence)) "." }
                (scrolling("Idle time", &table))
            }
        }
    }
}
