//! Fusions, differences of the implementation, and warnings.

use cli_support::page::{bars, scrolling};
use kernel_traces::compare::{CompareWarning, Comparison, Fusion, Severity};
use maud::{Markup, html};

use super::super::{CompareReport, words};
use super::left_out;
use super::names::Names;

pub(super) fn fusions(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    html! {
        section #fusions {
            h2 { "Fusions that one side does" }
            @if comparison.fusions.is_empty() { p { "None was found." } }
            @for (index, one) in comparison.fusions.iter().enumerate().take(top) {
                (fusion(report, index, one, names))
            }
            (left_out(comparison.fusions.len(), top, "fusion"))
        }
    }
}

fn fusion(report: CompareReport<'_>, index: usize, fusion: &Fusion, names: &Names) -> Markup {
    let comparison = report.comparison;
    let (by, other) = (fusion.fused_by, fusion.fused_by.other());
    let label = |which| names.text(words::label(comparison, which));
    let step = comparison.basis.noun();
    let times = [fusion.part.first_ns, fusion.part.second_ns];
    let most = times[0].max(times[1]).max(1.0);
    let spoken = format!(
        "{} {}, {} {}",
        comparison.first.label,
        words::time(times[0]),
        comparison.second.label,
        words::time(times[1])
    );
    html! {
        article.finding id={ "fusion-" (index + 1) } {
            h3 { (index + 1) ". " (names.text(&comparison.fusion_sentence(fusion))) }
            p {
                (fusion.role.name().replace('_', " ")) ", " (format!("{:.1}", fusion.per_step))
                " a " (step) ": " (names.text(&spoken)) ", gap " b { (words::signed(fusion.part.gap_ns)) }
                " a " (step)
            }
            (bars::two(times.map(Some), most, ["", ""], &names.text(&spoken)))
            div.flow {
                div { p.what { (label(by)) ", fused" } (names.kernel(&fusion.fused_kernel)) }
                div {
                    p.what { (label(other)) ", apart" }
                    ol {
                        @for (at, kernel) in fusion.separate_kernels.iter().enumerate().take(20) {
                            li {
                                @if let Some(class) = fusion.separate.get(at) { b { (names.text(class)) } " " }
                                (names.kernel(kernel))
                            }
                        }
                    }
                }
            }
            p {
                "Evidence by " (fusion.by.name()) ", confidence "
                (format!("{:.2}", fusion.confidence)) ": " (names.text(&fusion.evidence))
            }
            @for records in report.records_of(index) {
                @for sentence in records.sentences() {
                    p.measured { b { "Measured: " } (names.text(&sentence)) }
                }
            }
        }
    }
}

pub(super) fn implementation(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let step = comparison.basis.noun();
    let table = html! {
        table {
            thead {
                tr {
                    th.number scope="col" { "No." }
                    th scope="col" { "What" }
                    th scope="col" { "Run by" }
                    th scope="col" { "Where" }
                    th.number scope="col" { "Gap a " (step) }
                    th scope="col" { "In words" }
                }
            }
            tbody {
                @for (index, one) in comparison.implementation.iter().enumerate().take(top) {
                    tr {
                        td.number { (index + 1) }
                        th scope="row" { (one.kind.name()) }
                        td { (names.text(words::label(comparison, one.run_by))) }
                        td { (one.role.name().replace('_', " ")) }
                        td.number { (words::signed(one.part.gap_ns)) }
                        td.sentence { (names.text(&one.sentence)) div.kernel { (names.kernel(&one.kernel)) } }
                    }
                }
            }
        }
    };
    html! {
        section #implementation {
            h2 { "Differences of the implementation" }
            @if comparison.implementation.is_empty() {
                p { "None was found." }
            } @else {
                (scrolling("Differences of the implementation", &table))
            }
            (left_out(comparison.implementation.len(), top, "difference"))
        }
    }
}

pub(super) fn warnings(comparison: &Comparison, names: &Names) -> Markup {
    let one = |warning: &CompareWarning| {
        html! {
            li.serious[warning.severity == Severity::Warning] {
                b { (warning.severity.name()) ": " (warning.code) }
                @if let Some(file) = &warning.file { " (" (names.kernel(file)) ")" }
                ": " (names.text(&warning.message))
                @if !warning.advice.is_empty() { "; " (names.text(&warning.advice)) }
            }
        }
    };
    html! {
        section #warnings {
            h2 { "What to know" }
            @if comparison.warnings.is_empty() { p { "Nothing that changes what the numbers mean." } }
            ul.warnings { @for warning in &comparison.warnings { (one(warning)) } }
        }
    }
}
