//! How fast kernels were on both sides, and for what the devices waited.

use cli_support::tables::right;
use comfy_table::Cell;

use super::super::{CompareReport, words};
use super::{at_most, heading, sized, write_sentence, write_table};
use crate::report::shortened;

pub(super) fn write(text: &mut String, report: CompareReport<'_>) {
    rates(text, report);
    idle(text, report);
}

fn rates(text: &mut String, report: CompareReport<'_>) {
    let CompareReport { comparison, top, .. } = report;
    let rates = &comparison.rates;
    if rates.rows.is_empty() {
        return;
    }
    heading(text, "Achieved rates");
    comparison.rates_sentence().into_iter().for_each(|sentence| write_sentence(text, sentence));
    write_sentence(text, words::machines(comparison));
    let mut table = sized();
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    let roofline = |label: &str| format!("of roofline {label}");
    table.set_header(["class", "dtype", first, second, &roofline(first), &roofline(second)]);
    let shown = top.min(words::SHOWN_RATES);
    for row in rates.rows.iter().take(shown) {
        let sides = [row.first.as_ref(), row.second.as_ref()];
        let mut cells = vec![Cell::new(&row.class), Cell::new(row.dtype.unwrap_or("-"))];
        cells.extend(sides.map(|side| right(words::rate(side))));
        cells.extend(sides.map(|side| right(words::of_roofline(side))));
        table.add_row(cells);
    }
    write_table(text, &table, &words::left_out_of_all(rates.rows.len(), shown, "class"));
}

fn idle(text: &mut String, report: CompareReport<'_>) {
    let comparison = report.comparison;
    let Some(sentence) = comparison.idle_sentence() else { return };
    heading(text, "Idle time");
    write_sentence(text, sentence);
    let mut table = sized();
    let (first, second) = (&comparison.first.label, &comparison.second.label);
    table.set_header(["cause", first, second, "gap", "what the host did"]);
    for row in &comparison.idle.rows {
        table.add_row([
            Cell::new(row.cause.describe()),
            right(words::time(row.first_ns)),
            right(words::time(row.second_ns)),
            right(words::signed(row.gap_ns)),
            Cell::new(shortened(&words::doing(comparison, row))),
        ]);
    }
    at_most(&mut table, 4, 50);
    write_table(text, &table, "");
}
