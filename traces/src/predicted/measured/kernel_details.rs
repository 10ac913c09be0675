//! The table of kernels that Ascend's profiler writes.
//!
//! A collective is recorded on the stream that waits for it and on that of the hardware, with the
//! same start to the microsecond. The longer record counts.

use rustc_hash::FxHashMap;

use super::table::{BadRows, Table};
use super::{InputWarning, Measured, Rules};
use crate::number::nanoseconds;

const TYPE: &str = "Type";
const DURATION: &str = "Duration(us)";
const START: &str = "Start Time(us)";

/// How the types of collectives begin.
const COLLECTIVE: &str = "hcom_";

/// How the types of a collective's part on the processor end.
const AICPU: &str = "AicpuKernel";

pub(super) fn is_one(table: &Table<'_>) -> bool {
    table.has(TYPE) || table.has(DURATION)
}

pub(super) fn read(table: Table<'_>, rules: Rules) -> Result<Measured, String> {
    let (kernel_type, duration) = (table.need(TYPE)?, table.need(DURATION)?);
    let start = table.find(START)?;
    let mut measured = Measured::default();
    let mut collectives = Collectives::default();
    let [mut bad_durations, mut bad_starts, mut bad_text] = [BadRows::default(); 3];
    let mut without_start = 0;
    table.rows(|row| {
        measured.rows += 1;
        let (name, is_text) = row.text(kernel_type);
        if name.is_empty() {
            measured.skipped.no_type += 1;
            return;
        }
        if name.ends_with(AICPU) && !name.starts_with(COLLECTIVE) {
            measured.skipped.aicpu += 1;
            return;
        }
        let Some(duration_us) = row.duration(duration) else {
            measured.skipped.bad_duration += 1;
            bad_durations.add(row);
            return;
        };
        if !is_text {
            bad_text.add(row);
        }
        let started = start.map(|column| whole_microsecond(&row.text(column).0, rules));
        if started == Some(None) {
            bad_starts.add(row);
        }
        if !name.starts_with(COLLECTIVE) {
            measured.add(&name, duration_us);
            return;
        }
        without_start += u64::from(started.is_none());
        // To the original, what has no start began at zero.
        let at = match rules {
            Rules::Own => started.flatten(),
            Rules::Original => Some(started.flatten().unwrap_or(0)),
        };
        measured.skipped.recorded_twice += u64::from(!collectives.add(at, name, duration_us));
    })?;
    for (name, duration_us) in collectives.list {
        measured.add(&name, duration_us);
    }
    let BadRows { count, line } = bad_durations;
    measured.warn(count, InputWarning::BadMeasuredDurations { count, line });
    let BadRows { count, line } = bad_starts;
    let as_zero = rules == Rules::Original;
    measured.warn(count, InputWarning::BadStarts { count, line, as_zero });
    let BadRows { count, line } = bad_text;
    measured.warn(count, InputWarning::BadText { count, line });
    // To the original they all began at once.
    if rules == Rules::Own {
        measured.warn(without_start, InputWarning::NoStarts { collectives: without_start });
    }
    Ok(measured)
}

/// Collectives with their longest record, in the order in which they first occur.
#[derive(Default)]
struct Collectives {
    list: Vec<(String, f64)>,
    known: FxHashMap<(i64, String), usize>,
}

impl Collectives {
    /// Takes in a record; whether it is the first one of its collective. One whose start is not
    /// known is a collective by itself.
    fn add(&mut self, at: Option<i64>, name: String, duration_us: f64) -> bool {
        let new = self.list.len();
        let index = match at {
            Some(at) => *self.known.entry((at, name.clone())).or_insert(new),
            None => new,
        };
        match self.list.get_mut(index) {
            Some((_, longest)) => {
                *longest = longest.max(duration_us);
                false
            }
            None => {
                self.list.push((name, duration_us));
                true
            }
        }
    }
}

/// The whole microseconds of a time; none if it cannot be read.
fn whole_microsecond(text: &str, rules: Rules) -> Option<i64> {
    match rules {
        // Exactly: a time since 1970 has more digits than an `f64`.
        Rules::Own => nanoseconds(text.as_bytes()).map(|ns| ns.div_euclid(1000)),
        Rules::Original => {
            let us: f64 = text.parse().ok()?;
            us.is_finite().then_some(us as i64)
        }
    }
}
