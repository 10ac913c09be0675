//! What is compared, the verdict, and how to read the page.

use cli_support::page::{bars, scrolling};
use kernel_traces::compare::{Basis, Comparison, SideSummary, Which};
use maud::{Markup, html};

use super::super::{CompareReport, words};
use super::names::Names;
use super::{left_out, look};
use crate::report::{capital, counted, percent};

pub(super) fn head(report: CompareReport<'_>, names: &Names, title: &str) -> Markup {
    let comparison = report.comparison;
    html! {
        header {
            h1 { (names.text(title)) }
            p.verdict { (names.text(&comparison.verdict())) "." }
            @let caveats = words::caveats(comparison);
            @if !caveats.is_empty() {
                ul.caveats { @for caveat in &caveats { li { (names.text(caveat)) } } }
            }
            @if !comparison.same_work.headline.is_of_a_step() { (same_work(report, names)) }
            p.basis { (comparison.basis_sentence()) }
            div.sides {
                (card(comparison, Which::First, comparison.gap.first_ns, names))
                (card(comparison, Which::Second, comparison.gap.second_ns, names))
            }
            nav aria-label="Parts of this page" {
                @if !comparison.same_work.headline.is_of_a_step() { a href="#work" { "The work" } }
                a href="#gap" { "The gap" }
                @if !comparison.rates.rows.is_empty() { a href="#rates" { "Rates" } }
                @if comparison.idle_sentence().is_some() { a href="#idle" { "Idle time" } }
                a href="#layers" { "Layers" }
                a href="#fusions" { "Fusions" }
                a href="#implementation" { "Implementation" }
                @if report.ranks.iter().any(Option::is_some) { a href="#ranks" { "Ranks" } }
                a href="#kernels" { "Kernels" }
                a href="#warnings" { "What to know" }
                a href="#reading" { "How to read this" }
            }
        }
    }
}

/// Whether the sides did the same work, and what of it is alike.
fn same_work(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let work = &comparison.same_work;
    let labels = names.sides(comparison);
    let side =
        |side: &Option<String>| side.as_ref().map_or_else(|| "-".to_owned(), |one| names.text(one));
    let questions = html! {
        table {
            thead {
                tr {
                    th scope="col" { "The same work?" }
                    @for label in &labels { th scope="col" { (label) } }
                    th scope="col" { "Answer" }
                    th scope="col" { "By" }
                }
            }
            tbody {
                @for question in &work.questions {
                    tr {
                        th scope="row" { (words::question(question)) }
                        td { (side(&question.first)) }
                        td { (side(&question.second)) }
                        td { (question.answer.name()) }
                        td { (names.text(&question.evidence)) }
                    }
                }
            }
        }
    };
    let matched = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Operator" }
                    th scope="col" { "Sizes" }
                    @for label in &labels { th.number scope="col" { (label) } }
                    th.number scope="col" { "Ratio" }
                }
            }
            tbody {
                @for one in work.matched.operators.iter().take(top) {
                    tr {
                        th scope="row" { (names.kernel(&one.operator)) }
                        td { (names.text(&one.sizes)) }
                        td.number { (words::time(one.first_mean_ns)) }
                        td.number { (words::time(one.second_mean_ns)) }
                        td.number { @if let Some(ratio) = one.ratio { (format!("{ratio:.2}")) } }
                    }
                }
            }
        }
    };
    html! {
        section #work {
            (scrolling("Whether it is the same work", &questions))
            @if let Some(sentence) = words::matched(comparison) {
                p { (names.text(&sentence)) "." }
                (scrolling("Operators with the same sizes", &matched))
                (left_out(work.matched.operators.len(), top, "operator"))
            }
        }
    }
}

fn card(comparison: &Comparison, which: Which, step_ns: f64, names: &Names) -> Markup {
    let side = comparison.side(which);
    let SideSummary { label, name, kernels, total_ns, span_ns, busy_ns, idle_ns, .. } = side;
    let step = match comparison.basis {
        Basis::Recording => "in all".to_owned(),
        basis => format!("a {}", basis.noun()),
    };
    html! {
        section.card.(look(which).class()) aria-label=(names.text(label)) {
            h2 { (bars::sample(look(which))) " " (names.text(label)) }
            p.step { span.number { (words::time(step_ns)) } " " (step) }
            dl {
                dt { "File" } dd.file { code title=(names.text(name)) { (words::file(&names.text(name))) } }
                dt { "Device" } dd { (names.text(&words::device(side))) }
                dt { "Kernels" } dd { (kernels) ", " (words::total(*total_ns)) " together" }
                dt { "Span" }
                dd {
                    (words::total(*span_ns)) ": busy " (words::total(*busy_ns)) ", idle "
                    (words::total(*idle_ns))
                }
                dt { (capital(counted(2, comparison.basis.noun()).trim_start_matches("2 "))) }
                dd { (words::steps(comparison.basis, side)) }
                dt { "Layers" } dd { (words::layers(side)) }
                dt { "Model" } dd { (side.family) }
                dt { "Explained" } dd { (words::explained(side)) }
                dt { "Unclassified" } dd { (percent(side.unclassified_share)) " of its kernels’ time" }
            }
        }
    }
}

pub(super) fn how_to_read(comparison: &Comparison, names: &Names) -> Markup {
    let [first, second] = names.sides(comparison);
    html! {
        section #reading {
            h2 { "How to read this" }
            ul {
                li {
                    "A gap is always " (first) " less " (second) ". With a plus " (first)
                    " takes longer, with a minus " (second) " does. A ratio is " (first) " over "
                    (second) "."
                }
                li {
                    "In the waterfall each cause begins where the one above it ends. All of them \
                     together lead from the step of one side to that of the other."
                }
                li {
                    "Where several things run at once on a device, the time belongs to the one \
                     that began first, computation before communication and copies. So the parts \
                     add up to the step, and not to the durations of the kernels."
                }
                li {
                    "An interval of 95 % is for the ratio of two mean durations, over the times \
                     that the kernels ran in these recordings. It says nothing of other runs."
                }
                li {
                    "A fusion is listed on evidence only: the name of a kernel, what such a kernel \
                     is by definition, or a class that is missing from every layer of one side. \
                     What is run for the sake of an implementation is listed apart."
                }
                li { "Names are cut; the whole name shows when the pointer rests on it." }
            }
        }
    }
}
