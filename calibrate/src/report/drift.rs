//! How far a newer calibration is off an older one, as a table.

use cli_support::ranked::{Column, RankedTable};
use cli_support::units::ratio;
use cli_support::width::Width;

use crate::drift::{Drift, Factor, Finding, OfFamily};

const COLUMNS: [Column; 5] = [
    Column::numbers("records", 2),
    Column::numbers("times [95 %]", 0),
    Column::words("finding", 1),
    Column::numbers("speedups [95 %]", 0),
    Column::words("finding", 1),
];

/// The factors of each family, newer over older.
#[must_use]
pub fn drift(drift: &Drift, width: Width) -> String {
    let mut table = RankedTable::new("newer / older", &COLUMNS);
    for OfFamily { family, records, times, speedups } in &drift.families {
        let name = family.map_or("all", |family| family.name());
        let nothing = || "-".to_owned();
        let cells = [
            records.to_string(),
            in_words(times),
            finding(times).to_owned(),
            speedups.as_ref().map_or_else(nothing, in_words),
            speedups.as_ref().map_or("", finding).to_owned(),
        ];
        table.row(name.to_owned(), cells);
    }
    table.render(width)
}

fn in_words(factor: &Factor) -> String {
    ratio(factor.value, factor.low, factor.high)
}

fn finding(factor: &Factor) -> &'static str {
    match factor.finding {
        Finding::Same => "as before",
        Finding::Drifted => "drifted",
        Finding::Undecided => "undecided",
    }
}
