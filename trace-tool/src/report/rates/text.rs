//! Rates as tables.

use std::fmt::Write;

use cli_support::tables::{right, styled};
use comfy_table::{Cell, Table};
use kernel_traces::rates::Rate;
use kernel_traces::results::RanksRates;

use super::{COLUMNS, cells, machine_sentence, percent, shortened, time};

/// The classes of each trace, and the kernels that take longest.
#[must_use]
pub fn trace_rates(run: &RanksRates, top: usize) -> String {
    let mut text = String::new();
    for rank in &run.ranks {
        let rates = &rank.rates;
        if run.ranks.len() > 1 {
            let _ = writeln!(text, "{}", rank.file);
        }
        let _ = writeln!(
            text,
            "{} of {} of kernels are of known work.\n{}\n\n{}",
            percent(rates.known_share),
            time(rates.total_ns),
            machine_sentence(rates.machine.as_ref()),
            table(&rates.by_class, false)
        );
        let shown = rates.by_kernel.get(..top.min(rates.by_kernel.len())).unwrap_or_default();
        let _ = writeln!(text, "\n{}", table(shown, true));
        if let Some(more @ 1..) = rates.by_kernel.len().checked_sub(top) {
            let _ = writeln!(text, "and {more} more kernels; --top shows more");
        }
    }
    text
}

fn table(rates: &[Rate], has_names: bool) -> Table {
    let mut table = styled();
    let name = has_names.then_some("kernel");
    table.set_header(name.into_iter().chain(COLUMNS));
    for rate in rates {
        let name = has_names.then(|| Cell::new(shortened(&rate.name)));
        let cells = cells(rate).into_iter().enumerate();
        let cells =
            cells.map(|(column, text)| if column < 2 { Cell::new(text) } else { right(text) });
        table.add_row(name.into_iter().chain(cells));
    }
    table
}
