//! A comparison as one page of HTML: the sides, what to conclude, and every pair on one axis.

use cli_support::page::{self, bars};
use cli_support::units::counted;
use fusion_cost_model::compare::{ComparedSide, Pair, PairVerdict};
use maud::{Markup, html};

use super::View;
use super::page::{conclusions, joined, machine, run_of, times, verdicts};
use super::tables::{self, named};
use super::words::{hidden, verdict};
use crate::report::figures::{self, Forest, Mark, Row};

pub(super) fn html(view: View<'_>) -> String {
    let sides = &view.comparison.sides;
    let others = 1..sides.len();
    let title = title(view);
    let of_times: Vec<Markup> =
        others.clone().filter_map(|side| machine_times(view, side)).collect();
    let body = html! {
        header {
            h1 { (title) }
            @for side in others.clone() {
                p.verdict {
                    @if !view.is_pair() { (view.ratio_of(side)) ": " }
                    (verdicts(view, side))
                }
            }
            div.sides { @for (index, side) in sides.iter().enumerate() { (card(index, side)) } }
            @for side in others.clone() {
                p.basis {
                    (joined(view, side)) "."
                    @if let Some(machine) = machine(view, side) { " " (machine) "." }
                    @if let Some(times) = times(view, side) { " " (times) "." }
                }
            }
            nav aria-label="Parts of this page" {
                a href="#gains" { "What fusion gains" }
                a href="#records" { "Every chain" }
                @if !of_times.is_empty() { a href="#times" { "The machine, not fusion" } }
                a href="#left-out" { "What is left out" }
                a href="#reading" { "How to read this" }
            }
        }
        main {
            section #gains {
                h2 { "What fusion gains" }
                ul.conclusions { @for sentence in conclusions(view) { li { (sentence) } } }
                (page::table(&tables::families(view)))
                @for side in others.clone() { (flips(view, side)) }
                @let ceilings = tables::ceilings(view);
                @if !ceilings.is_empty() { h3 { "Ceilings" } (page::table(&ceilings)) }
            }
            section #records {
                h2 { "Every chain" }
                @for side in others.clone() { (records(view, side)) }
            }
            @if !of_times.is_empty() {
                section #times {
                    h2 { "The machine, not fusion" }
                    @for tables in &of_times { (tables) }
                }
            }
            section #left-out {
                h2 { "What is left out" }
                @for side in others { (left_out(view, side)) }
            }
            (how_to_read(view))
        }
    };
    page::page(&title, figures::STYLE, &body)
}

/// The decisions that flip on a side.
fn flips(view: View<'_>, side: usize) -> Markup {
    let pairs = view.comparison.pairs.iter().filter(|pair| pair.side == side && pair.flips());
    let table = tables::flips(view, side, "problem", pairs);
    let of = if view.is_pair() { String::new() } else { format!(", {}", view.ratio_of(side)) };
    html! {
        @if !table.is_empty() {
            h3 { "Decisions that flip at a threshold of " (view.comparison.threshold) (of) }
            (page::table(&table))
        }
    }
}

fn title(view: View<'_>) -> String {
    let sides = &view.comparison.sides;
    if (1..sides.len()).all(|side| view.is_check(side)) {
        return format!("What changed on {}", sides[0].facts.machine);
    }
    let first = &sides[0].facts;
    let has_one_name = sides.iter().all(|side| side.facts.machine == first.machine);
    if has_one_name && sides.iter().any(|side| side.facts.target != first.target) {
        let targets: Vec<String> = sides.iter().map(|side| side.facts.target.to_string()).collect();
        return format!("What fusion gains on {}: {}", first.machine, targets.join(" against "));
    }
    let machines: Vec<&str> = sides.iter().map(|side| side.facts.machine.as_str()).collect();
    format!("What fusion gains: {}", machines.join(" against "))
}

fn card(index: usize, side: &ComparedSide) -> Markup {
    let facts = &side.facts;
    let look = if index == 0 { bars::Look::Plain } else { bars::Look::Hatched };
    html! {
        section.card.(look.class()) aria-label=(facts.label) {
            h2 { (facts.label) ": " (facts.machine) }
            dl {
                dt { "File" } dd { code { (facts.file) } }
                dt { "Target" } dd { (facts.target) }
                dt { "Records" } dd { (run_of(side)) }
                dt { "Run" } dd { (facts.run) }
                @for warning in &facts.warnings { dt { "Warning" } dd { (warning) } }
            }
        }
    }
}

/// Every pair with a side: the ratio and its interval.
fn records(view: View<'_>, side: usize) -> Markup {
    let [first, second] = view.labels(side);
    let mut pairs: Vec<&Pair> =
        view.comparison.pairs.iter().filter(|pair| pair.side == side).collect();
    if pairs.is_empty() {
        return html! { p { "No chain was measured on both " (first) " and " (second) "." } };
    }
    // Rows with one heading follow each other, in the order of the first of each.
    let headings: Vec<String> = pairs.iter().map(|pair| heading(pair)).collect();
    pairs.sort_by_cached_key(|pair| {
        let heading = heading(pair);
        headings.iter().position(|known| *known == heading)
    });
    let rows = pairs.iter().map(|pair| row(view, pair)).collect();
    let title = format!("Speedups, {}", view.ratio_of(side));
    let forest = Forest::new(title, format!("side-{side}"), rows);
    let details = tables::records(view, side, &view.ratio_of(side), pairs);
    html! {
        p {
            "The speedup of " (second) " over that of " (first) ", with its 95 % interval. To the \
             right of 1 fusion gains more on " (second) ". A filled point is a difference. A ring \
             is none, or UNDECIDED; then the largest difference that it could hide stands beside it."
        }
        (forest.html())
        details {
            summary { span.name { "Both speedups, chances and decisions" } }
            (page::table(&details))
        }
    }
}

fn heading(pair: &Pair) -> String {
    named(&pair.problem, pair.cache_state).0
}

fn row(view: View<'_>, pair: &Pair) -> Row {
    let (heading, name) = named(&pair.problem, pair.cache_state);
    let mut word = verdict(pair.verdict, view.both(pair.side));
    if pair.verdict == PairVerdict::Undecided && pair.could_hide.is_some() {
        word += &format!(" ({})", hidden(pair.could_hide));
    }
    let mark = if pair.verdict.differs() { Mark::Full } else { Mark::Ring };
    let figure = pair.ratio;
    Row { heading, name, figure, ceiling: None, noise_floor: None, mark, word }
}

/// What changed by itself in both variants alike, and the single ops.
fn machine_times(view: View<'_>, side: usize) -> Option<Markup> {
    let of = view.ratio_of(side);
    let pairs = view.comparison.pairs.iter().filter(|pair| pair.side == side);
    let moved = tables::moved(view, &format!("chains, {of}"), pairs);
    let singles = tables::single_ops(view, &format!("single ops, {of}"), side);
    (!moved.is_empty() || !singles.is_empty()).then(|| {
        html! {
            @if !moved.is_empty() { (page::table(&moved)) }
            @if !singles.is_empty() {
                details {
                    summary { span.name { "Times of all single ops, " (of) } }
                    (page::table(&singles))
                }
            }
        }
    })
}

fn left_out(view: View<'_>, side: usize) -> Markup {
    let table = tables::not_compared(view, side);
    html! {
        @if table.is_empty() { p { "Nothing." } } @else { (page::table(&table)) }
    }
}

fn how_to_read(view: View<'_>) -> Markup {
    let pairs = counted(view.comparison.pairs.len(), "pair");
    html! {
        section #reading {
            h2 { "How to read this" }
            ul {
                li {
                    "A speedup is unfused time over fused time on one machine. What is compared are \
                     speedups: the machine's own speed cancels in each of them."
                }
                li {
                    "A difference counts if it is beyond the noise floor, its interval excludes 1, \
                     and its chance, adjusted for all " (pairs) " by the method of Holm, is below \
                     0.05. SAME means that the whole interval lies within 5 % of 1."
                }
                li {
                    "UNDECIDED is followed by the largest difference that the measurements leave \
                     room for: the farther end of the interval."
                }
                li {
                    "Decisions are made at a threshold of " (view.comparison.threshold) ": fuse if \
                     the whole interval is at or above it, keep if it is below. One that is open \
                     has the threshold inside its interval. A decision flips if one side fuses what \
                     the other one keeps."
                }
            }
        }
    }
}
