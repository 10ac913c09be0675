//! Several traces side by side, and their kernels together.

use cli_support::tables::{right, styled};
use comfy_table::{Cell, Table};
use kernel_traces::results::RankTime;

use super::time;

/// The number of a rank in tables.
pub(super) fn number(rank: Option<u64>) -> String {
    rank.map_or_else(|| "?".to_owned(), |rank| rank.to_string())
}

/// A row for each trace.
pub(super) fn table<'r>(ranks: impl Iterator<Item = &'r RankTime>) -> Table {
    let mut table = styled();
    table.set_header(["rank", "kernels", "total", "busy", "span", "file"]);
    for rank in ranks {
        table.add_row([
            right(number(rank.rank)),
            right(rank.kernels.to_string()),
            right(time(rank.total_ns)),
            right(rank.busy_ns.map_or_else(|| "-".to_owned(), time)),
            right(time(rank.span_ns)),
            Cell::new(&rank.file),
        ]);
    }
    table
}
