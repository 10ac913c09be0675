//! The kernels of both sides by name.

use cli_support::tables::right;
use comfy_table::Cell;
use kernel_traces::compare::{Comparison, Which};

use super::super::{CompareReport, words};
use super::{heading, sized, write_table};
use crate::report::{percent, shortened};

pub(super) fn write(text: &mut String, report: CompareReport<'_>) {
    let CompareReport { comparison, top, .. } = report;
    for side in [Which::First, Which::Second] {
        longest(text, comparison, side, top);
    }
    if !comparison.same_kernels.is_empty() {
        same(text, comparison, top);
    }
}

fn longest(text: &mut String, comparison: &Comparison, side: Which, top: usize) {
    heading(text, format!("The longest kernels of {}", words::label(comparison, side)));
    let rows: Vec<_> = comparison.kernels.iter().filter(|row| row.side == side).collect();
    let mut table = sized();
    let step = format!("a {}", comparison.basis.noun());
    table.set_header(["kernel", "class", "count", "total", &step, "share"]);
    for row in rows.iter().take(top) {
        table.add_row([
            Cell::new(shortened(&words::kernel(&row.kernel))),
            Cell::new(&row.class),
            right(row.amount.count.to_string()),
            right(words::total(row.amount.total_ns)),
            right(words::time(row.step_ns)),
            right(percent(row.share)),
        ]);
    }
    write_table(text, &table, &words::left_out(rows.len(), top, "kernel"));
}

fn same(text: &mut String, comparison: &Comparison, top: usize) {
    heading(text, "Kernels with the same name on both sides");
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let mut table = sized();
    let (first, second) = (format!("mean {first}"), format!("mean {second}"));
    table.set_header(["kernel", &first, &second, "ratio [95 %]", "gap"]);
    for same in comparison.same_kernels.iter().take(top) {
        table.add_row([
            Cell::new(shortened(&words::kernel(&same.kernel))),
            right(words::time(same.first_mean_ns)),
            right(words::time(same.second_mean_ns)),
            right(words::ratio(&same.ratio)),
            right(words::signed(same.part.gap_ns)),
        ]);
    }
    write_table(text, &table, &words::left_out(comparison.same_kernels.len(), top, "kernel"));
}
