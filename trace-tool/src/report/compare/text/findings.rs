//! Fusions, differences of the implementation, and warnings.

use std::fmt::Write;

use cli_support::tables::right;
use comfy_table::Cell;
use kernel_traces::compare::Comparison;

use super::super::{CompareReport, words};
use super::{heading, sized, write_sentences, write_table};
use crate::report::shortened;

pub(super) fn write(text: &mut String, report: CompareReport<'_>) {
    let CompareReport { comparison, top, .. } = report;
    heading(text, "Fusions that one side does");
    if comparison.fusions.is_empty() {
        text.push_str("None was found.\n");
    }
    for (index, fusion) in comparison.fusions.iter().enumerate().take(top) {
        let _ = writeln!(text, "{}. {}", index + 1, comparison.fusion_sentence(fusion));
        let mut lines = vec![
            (
                "   where".to_owned(),
                format!(
                    "{}, {:.1} a {}",
                    fusion.role.name(),
                    fusion.per_step,
                    comparison.basis.noun()
                ),
            ),
            ("   fused".to_owned(), shortened(&words::kernel(&fusion.fused_kernel))),
        ];
        lines.extend(
            fusion
                .separate_kernels
                .iter()
                .map(|name| ("   apart".to_owned(), shortened(&words::kernel(name)))),
        );
        let part = &fusion.part;
        lines.push((
            "   time".to_owned(),
            format!(
                "{} {}, {} {}: {} a {}",
                comparison.first.label,
                words::time(part.first_ns),
                comparison.second.label,
                words::time(part.second_ns),
                words::signed(part.gap_ns),
                comparison.basis.noun()
            ),
        ));
        lines.push((
            "   evidence".to_owned(),
            format!(
                "{} (confidence {:.2}, by {})",
                fusion.evidence,
                fusion.confidence,
                fusion.by.name()
            ),
        ));
        for records in report.records_of(index) {
            lines.extend(
                records.sentences().into_iter().map(|line| ("   measured".to_owned(), line)),
            );
        }
        write_sentences(text, lines);
    }
    let left_out = words::left_out(comparison.fusions.len(), top, "fusion");
    if !left_out.is_empty() {
        let _ = writeln!(text, "{left_out}");
    }
    if !comparison.implementation.is_empty() {
        implementation(text, comparison, top);
    }
}

fn implementation(text: &mut String, comparison: &Comparison, top: usize) {
    heading(text, "Differences of the implementation");
    let mut table = sized();
    let step = format!("a {}", comparison.basis.noun());
    table.set_header(["", "what", "run by", "role", "class", &step, "gap"]);
    let shown = comparison.implementation.iter().take(top);
    for (index, one) in shown.clone().enumerate() {
        table.add_row([
            right((index + 1).to_string()),
            Cell::new(one.kind.name()),
            Cell::new(words::label(comparison, one.run_by)),
            Cell::new(one.role.name()),
            Cell::new(&one.class),
            right(format!("{:.1}", one.per_step)),
            right(words::signed(one.part.gap_ns)),
        ]);
    }
    let left_out = words::left_out(comparison.implementation.len(), top, "difference");
    write_table(text, &table, &left_out);
    let sentences =
        shown.enumerate().map(|(at, one)| (format!("{}.", at + 1), one.sentence.clone()));
    write_sentences(text, sentences);
}

pub(super) fn write_warnings(text: &mut String, comparison: &Comparison) {
    if comparison.warnings.is_empty() {
        return;
    }
    heading(text, "What to know");
    let sentence = |warning: &kernel_traces::compare::CompareWarning| {
        let file = warning.file.as_ref().map_or_else(String::new, |file| format!(" ({file})"));
        let advice = match warning.advice.as_str() {
            "" => String::new(),
            advice => format!("; {advice}"),
        };
        let mark = format!("{}: {}:", warning.severity.name(), warning.code);
        (mark, format!("{}{file}{advice}", warning.message))
    };
    write_sentences(text, comparison.warnings.iter().map(sentence));
}
