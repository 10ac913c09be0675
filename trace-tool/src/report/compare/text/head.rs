//! What is compared, and the verdict.

use std::fmt::Write;

use kernel_traces::compare::{Comparison, SideSummary};

use super::super::words;
use super::{at_most, sized, write_sentence};
use crate::report::{counted, percent};

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
    let _ = writeln!(text, "\n{table}");
    write_sentence(&mut text, comparison.basis_sentence());
    text
}
