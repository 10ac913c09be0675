//! Tables: the longest kernels, classes and roles, kernels with the same name.

use cli_support::page::{bars, scrolling};
use kernel_traces::compare::{Comparison, KernelRow, Part, Which};
use maud::{Markup, html};

use super::super::{CompareReport, words};
use super::names::Names;
use super::{left_out, look};
use crate::report::percent;

pub(super) fn longest(report: CompareReport<'_>, names: &Names) -> Markup {
    html! {
        section #kernels {
            h2 { "The longest kernels" }
            div.columns {
                @for side in [Which::First, Which::Second] { (of_side(report, side, names)) }
            }
        }
    }
}

fn of_side(report: CompareReport<'_>, side: Which, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let label = names.text(words::label(comparison, side));
    let rows: Vec<&KernelRow> = comparison.kernels.iter().filter(|row| row.side == side).collect();
    let most = rows.iter().map(|row| row.share).fold(1e-9, f64::max);
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Kernel" }
                    th.number scope="col" { "Count" }
                    th.number scope="col" { "A " (comparison.basis.noun()) }
                    th.number scope="col" { "Share" }
                }
            }
            tbody {
                @for row in rows.iter().take(top) {
                    @let share = percent(row.share);
                    tr {
                        td.what {
                            b { (names.text(&row.class)) }
                            div.kernel { (names.kernel(&row.kernel)) }
                            (bars::one(look(side), row.share / most, &format!("{share} of the kernels’ time")))
                        }
                        td.number { (row.amount.count) }
                        td.number { (words::time(row.step_ns)) }
                        td.number { (share) }
                    }
                }
            }
        }
    };
    html! {
        div {
            h3 { (bars::sample(look(side))) " " (label) }
            (scrolling(&format!("The longest kernels of {label}"), &table))
            (left_out(rows.len(), top, "kernel"))
        }
    }
}

/// The gap by class and by role.
pub(super) fn parts(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    let gap = &comparison.gap;
    let classes: Vec<(String, &Part)> =
        gap.classes.iter().take(top).map(|class| (names.text(&class.class), &class.part)).collect();
    let roles: Vec<(String, &Part)> =
        gap.roles.iter().map(|role| (role.role.name().replace('_', " "), &role.part)).collect();
    html! {
        section #parts {
            h2 { "The gap by class and by role" }
            div.columns {
                div {
                    h3 { "By class" }
                    (table(comparison, "Class", &classes, names))
                    (left_out(gap.classes.len(), top, "class"))
                }
                @if !roles.is_empty() {
                    div { h3 { "By role in the layer" } (table(comparison, "Role", &roles, names)) }
                }
            }
        }
    }
}

fn table(comparison: &Comparison, what: &str, parts: &[(String, &Part)], names: &Names) -> Markup {
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { (what) }
                    @for label in names.sides(comparison) { th.number scope="col" { (label) } }
                    th.number scope="col" { "Gap" }
                    th.number scope="col" { "Of the gap" }
                }
            }
            tbody {
                @for (name, part) in parts {
                    tr {
                        th scope="row" { (name) }
                        td.number { (words::time(part.first_ns)) }
                        td.number { (words::time(part.second_ns)) }
                        td.number { (words::signed(part.gap_ns)) }
                        td.number { (words::share_of_gap(&comparison.gap, part.gap_ns).unwrap_or_else(|| "–".to_owned())) }
                    }
                }
            }
        }
    };
    scrolling(&format!("The gap by {}", what.to_lowercase()), &table)
}

pub(super) fn same(report: CompareReport<'_>, names: &Names) -> Markup {
    let CompareReport { comparison, top, .. } = report;
    if comparison.same_kernels.is_empty() {
        return html! {};
    }
    let table = html! {
        table {
            thead {
                tr {
                    th scope="col" { "Kernel" }
                    @for label in names.sides(comparison) { th.number scope="col" { (label) ", mean" } }
                    th.number scope="col" { "Ratio, 95 %" }
                    th.number scope="col" { "Gap a " (comparison.basis.noun()) }
                }
            }
            tbody {
                @for same in comparison.same_kernels.iter().take(top) {
                    tr {
                        td.what { b { (names.text(&same.class)) } div.kernel { (names.kernel(&same.kernel)) } }
                        td.number { (words::time(same.first_mean_ns)) }
                        td.number { (words::time(same.second_mean_ns)) }
                        td.number { (words::ratio(&same.ratio)) }
                        td.number { (words::signed(same.part.gap_ns)) }
                    }
                }
            }
        }
    };
    html! {
        section #same-kernels {
            h2 { "Kernels with the same name on both sides" }
            (scrolling("Kernels with the same name on both sides", &table))
            (left_out(comparison.same_kernels.len(), top, "kernel"))
        }
    }
}
