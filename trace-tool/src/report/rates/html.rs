//! Rates as one page.

use cli_support::page::{page, scrolling};
use kernel_traces::rates::Rate;
use kernel_traces::results::RanksRates;
use maud::{Markup, html};

use super::roofline::roofline;
use super::{COLUMNS, cells, machine_sentence, percent, shortened, time};

const STYLE: &str = ".roofline { width: 100%; max-width: 60rem; height: auto; font-size: 13px; fill: currentColor; }
.roofline .grid { stroke: var(--soft); stroke-width: .4; }
.roofline .roof { stroke: var(--ink); stroke-width: 2; }
.roofline .point { fill: var(--first); stroke: var(--card); }
";

/// Lists have at most this many entries, so that a page stays below a megabyte.
const MOST_ENTRIES: usize = 200;

/// The page.
#[must_use]
pub fn trace_rates_html(run: &RanksRates, top: usize) -> String {
    let body = html! {
        header { h1 { "Achieved rates" } }
        main {
            @for rank in &run.ranks {
                @let rates = &rank.rates;
                @let kernels = &rates.by_kernel;
                @let shown = kernels.get(..top.min(MOST_ENTRIES).min(kernels.len())).unwrap_or_default();
                section {
                    h2 { (shortened(&rank.file)) }
                    p {
                        (percent(rates.known_share)) " of " (time(rates.total_ns))
                        " of kernels are of known work. " (machine_sentence(rates.machine.as_ref()))
                    }
                    @if let Some(drawing) = roofline(shown, rates.machine.as_ref()) {
                        h3 { "Roofline" }
                        (drawing)
                        p { "Numbers are those of the kernels below." }
                    }
                    h3 { "By class" }
                    (scrolling("By class", &table(&rates.by_class, false)))
                    h3 { "By kernel" }
                    (scrolling("By kernel", &table(shown, true)))
                }
            }
            section {
                h2 { "How to read this" }
                p {
                    "Work follows from the sizes of operators. FLOPs are exact; bytes are the least \
                     that must be moved, each tensor once. A rate above a peak means that tensors \
                     were in caches, or were not moved whole. The roofline allows the peak rate, or \
                     the intensity times the bandwidth, whichever is less."
                }
            }
        }
    };
    page("Achieved rates", STYLE, &body)
}

fn table(rates: &[Rate], has_names: bool) -> Markup {
    html! {
        table {
            thead {
                tr {
                    @if has_names { th.number scope="col" { "#" } th scope="col" { "kernel" } }
                    @for column in COLUMNS { th scope="col" { (column) } }
                }
            }
            tbody {
                @for (rate, number) in rates.iter().zip(1..) {
                    tr {
                        @if has_names {
                            td.number { (number) }
                            td { code { (shortened(&rate.name)) } }
                        }
                        @for (place, cell) in cells(rate).into_iter().enumerate() {
                            @if place < 2 { td { (cell) } } @else { td.number { (cell) } }
                        }
                    }
                }
            }
        }
    }
}
