//! The ranks of the sides that have several.

use cli_support::page::scrolling;
use kernel_traces::collectives::RankSurvey;
use maud::{Markup, html};

use super::super::super::collectives::{RANK_COLUMNS, rank_rows, rank_sentences};
use super::super::CompareReport;
use super::left_out;
use super::names::Names;

pub(super) fn section(report: CompareReport<'_>, names: &Names) -> Markup {
    let sides = [&report.comparison.first, &report.comparison.second];
    let surveys =
        || sides.iter().zip(report.ranks).filter_map(|(side, ranks)| Some((side, ranks?)));
    html! {
        @if surveys().next().is_some() {
            section #ranks {
                h2 { "Ranks" }
                @for (side, survey) in surveys() {
                    h3 { (names.text(&side.label)) }
                    @for sentence in rank_sentences(survey) { p { (names.text(&sentence)) } }
                    (scrolling(&format!("The ranks of {}", side.label), &table(survey, report.top, names)))
                    (left_out(survey.records.len(), report.top, "rank"))
                }
            }
        }
    }
}

fn table(survey: &RankSurvey, top: usize, names: &Names) -> Markup {
    let class = |column: usize| if column == 1 { "what" } else { "number" };
    html! {
        table {
            thead {
                tr {
                    @for (column, name) in RANK_COLUMNS.iter().enumerate() {
                        th class=(class(column)) scope="col" { (name) }
                    }
                }
            }
            tbody {
                @for row in rank_rows(survey).iter().take(top) {
                    tr {
                        @for (column, text) in row.iter().enumerate() {
                            td class=(class(column)) { (names.text(text)) }
                        }
                    }
                }
            }
        }
    }
}
