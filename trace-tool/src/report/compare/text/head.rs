//! What is compared, whether it is the same work, and the verdict.

use std::fmt::Write;

use cli_support::tables::right;
use comfy_table::{Cell, Table};
use kernel_traces::compare::{Comparison, SideSummary};

use super::super::{CompareReport, words};
use super::{at_most, heading, sized, write_sentence, write_table};
use crate::report::{counted, percent, shortened};

pub(super) fn head(comparison: &Comparison) -> String {
    let sides = [&comparison.first, &comparison.second];
    let mut table = sized();
    table.set_header(["", &sides[0].label, &sides[1].label]);
    let mut row = |what: &str, of: &dyn Fn(&SideSummary) -> String| {
        table.add_row([what.to_owned(), of(sides[0]), of(sides[1])]);
    };
    row("file", &|side| words::file(&side.name));
    row("device", &words::device);
    row("kernels", &|side| format!("{}, {} together", side.kernels, words::total(side.total_ns)));
    row("span", &|side| {
        format!(
            "{}: busy {}, idle {}",
            words::total(side.span_ns),
            words::total(side.busy_ns),
            words::total(side.idle_ns)
        )
    });
    let step = counted(2, comparison.basis.noun());
    row(step.trim_start_matches("2 "), &|side| words::steps(comparison.basis, side));
    row("layers", &words::layers);
    row("kind of model", &|side| side.family.to_owned());
    row("explained", &|side| words::explained(side));
    row("unclassified", &|side| {
        format!("{} of its kernels' time", percent(side.unclassified_share))
    });
    for column in [1, 2] {
        at_most(&mut table, column, 50);
    }
    let mut text = String::new();
    write_sentence(&mut text, comparison.verdict());
    for caveat in words::caveats(comparison) {
        write_sentence(&mut text, caveat);
    }
    if !comparison.same_work.headline.is_of_a_step() {
        let _ = writeln!(text, "\n{}", questions(comparison));
    }
    let _ = writeln!(text, "\n{table}");
    write_sentence(&mut text, comparison.basis_sentence());
    text
}

/// What was asked about the work of both sides.
fn questions(comparison: &Comparison) -> Table {
    let mut table = sized();
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    table.set_header(["the same work?", first, second, "", "by"]);
    for question in &comparison.same_work.questions {
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
        table.add_row([
            words::question(question),
            side(&question.first),
            side(&question.second),
            question.answer.name().to_owned(),
            question.evidence.clone(),
        ]);
    }
    table
}

/// What both sides did with operators of the same sizes, where not everything is alike.
pub(super) fn write_matched(text: &mut String, report: CompareReport<'_>) {
    let CompareReport { comparison, top, .. } = report;
    let matched = &comparison.same_work.matched;
    let Some(sentence) = words::matched(comparison) else { return };
    heading(text, "Work that is alike");
    write_sentence(text, sentence);
    let mut table = sized();
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    table.set_header(["operator", "sizes", first, second, "ratio"]);
    for one in matched.operators.iter().take(top) {
        table.add_row([
            Cell::new(shortened(&one.operator)),
            Cell::new(shortened(&one.sizes)),
            right(words::time(one.first_mean_ns)),
            right(words::time(one.second_mean_ns)),
            right(one.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))),
        ]);
    }
    at_most(&mut table, 1, 50);
    write_table(text, &table, &words::left_out(matched.operators.len(), top, "operator"));
}
