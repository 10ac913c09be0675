//! The rows of kernels that `calibrate trace kernels --rows --format csv` writes.

use rustc_hash::FxHashSet;

use super::table::{BadRows, Table};
use super::{InputWarning, Measured, MeasuredBy};

const DURATION: &str = "duration_ns";

pub(super) fn is_one(table: &Table<'_>) -> bool {
    table.has(DURATION)
}

pub(super) fn read(table: Table<'_>, by: MeasuredBy) -> Result<Measured, String> {
    if !table.has("kind") {
        return Err("these are rows of another table than that of kernels".to_owned());
    }
    let duration = table.need(DURATION)?;
    let name = table.need(match by {
        MeasuredBy::Name => "name",
        MeasuredBy::Class => "class",
    })?;
    let (file, rank) = (table.find("file")?, table.find("rank")?);
    let mut measured = Measured::default();
    let mut origins = FxHashSet::default();
    let mut bad = BadRows::default();
    let mut bad_text = BadRows::default();
    table.rows(|row| {
        measured.rows += 1;
        let (name, is_text) = row.text(name);
        if name.is_empty() {
            measured.skipped.no_type += 1;
            return;
        }
        let Some(duration_ns) = row.duration(duration) else {
            measured.skipped.bad_duration += 1;
            bad.add(row);
            return;
        };
        if !is_text {
            bad_text.add(row);
        }
        let text = |column: Option<_>| column.map(|column| row.text(column).0);
        let origin = (text(file), text(rank));
        if !origins.contains(&origin) {
            origins.insert(origin);
        }
        measured.add(&name, duration_ns / 1000.0);
    })?;
    let BadRows { count, line } = bad;
    measured.warn(count, InputWarning::BadMeasuredDurations { count, line });
    let BadRows { count, line } = bad_text;
    measured.warn(count, InputWarning::BadText { count, line });
    let ranks = origins.len() as u64;
    measured.warn(ranks.saturating_sub(1), InputWarning::SeveralRanks { ranks });
    Ok(measured)
}
