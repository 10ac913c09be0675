//! How narrow an interval can be.

use super::contradiction::{Checked, DIGITS, fail};
use crate::calibration::FusionRecord;
use crate::place::Place;

/// Half of an interval has at least this many standard errors: those of a normal distribution, with
/// as many digits as the numbers have.
pub(super) const LEAST_ERRORS: f64 = 1.9599;

/// Processes from which on an interval is made over them, and not over their rounds.
pub(super) const LEAST_PROCESSES: u32 = 3;

/// Whether a record was measured in at most one state of the machine. Over several of them each state
/// counts once, and how many processes were in which is not in the file for each time.
pub(super) fn is_of_one_state(record: &FusionRecord) -> bool {
    record.states.len() < 2
}

/// Checks that an interval over some processes is as wide as what they do not resolve.
pub(super) fn check(place: Place, ends: [f64; 2], processes: u32) -> Checked {
    let least = match processes {
        // That there are none is what is wrong.
        0 => return Ok(()),
        1..LEAST_PROCESSES => {
            LEAST_ERRORS * FusionRecord::BETWEEN_PROCESSES / f64::from(processes).sqrt()
        }
        LEAST_PROCESSES.. => FusionRecord::resolution(processes as usize),
    };
    check_least(place, ends, processes, least)
}

/// The same over the processes in one state of several, whose spread is that of all.
pub(super) fn check_of_state(place: Place, ends: [f64; 2], processes: u32) -> Checked {
    check_least(place, ends, processes, FusionRecord::resolution(processes as usize))
}

/// Checks that the intervals of a record over processes in one state are as wide as these lie apart:
/// neither correlation nor further looks make any narrower.
pub(super) fn check_spread(record: &FusionRecord) -> Checked {
    let FusionRecord { processes, unfused_timing: unfused, fused_timing: fused, .. } = record;
    let [first, second] = [unfused, fused].map(|timing| logarithms(&timing.process_ms));
    if *processes < LEAST_PROCESSES || !is_of_one_state(record) || first.is_empty() {
        return Ok(());
    }
    for (table, timing, values) in
        [("unfused_timing", unfused, &first), ("fused_timing", fused, &second)]
    {
        if let Some(ends) = timing.low_ms.zip(timing.high_ms) {
            check_apart(Place::within(table, "low_ms"), ends.into(), values)?;
        }
    }
    if record.problem.chain().is_single() {
        return Ok(());
    }
    let ratios: Vec<f64> = first.iter().zip(&second).map(|(one, other)| one - other).collect();
    check_apart(Place::of("speedup_low"), [record.speedup_low, record.speedup_high], &ratios)
}

fn logarithms(milliseconds: &[f64]) -> Vec<f64> {
    milliseconds.iter().map(|ms| ms.ln()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a count of processes")]
fn check_apart(place: Place, [low, high]: [f64; 2], values: &[f64]) -> Checked {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let least = (LEAST_ERRORS * error).hypot(FusionRecord::resolution(values.len()));
    let half = 0.5 * (high / low).ln();
    if half >= least * (1.0 - DIGITS) - DIGITS {
        return Ok(());
    }
    let [half, least] = [half, least].map(|one| 100.0 * one.exp_m1());
    let why = format!(
        "the interval from {low} to {high} reaches {half:.2} % either way, and its processes lie \
         so far apart that it reaches {least:.2} % at least"
    );
    fail(place, why)
}

fn check_least(place: Place, [low, high]: [f64; 2], processes: u32, least: f64) -> Checked {
    let half = 0.5 * (high / low).ln();
    if half >= least - DIGITS {
        return Ok(());
    }
    let [half, least] = [half, least].map(|one| 100.0 * one.exp_m1());
    let why = format!(
        "the interval from {low} to {high} reaches {half:.2} % either way; over {processes} {} it \
         reaches {least:.2} % at least",
        if processes == 1 { "process" } else { "processes" }
    );
    fail(place, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From docs/methodology.md: 1 %, less over many processes, 8 % over one.
    #[test]
    fn few_processes_resolve_less() {
        for (processes, half) in [(1, 1.081), (2, 1.056), (3, 1.01), (10, 1.01), (40, 1.0072)] {
            let is_wide =
                |half: f64| check(Place::of("x"), [half.recip(), half], processes).is_ok();
            assert!(is_wide(half + 0.001), "{processes}");
            assert!(!is_wide(1.0 + 0.9 * (half - 1.0)) && !is_wide(1.0), "{processes}");
        }
        let message = check(Place::of("x"), [1.0, 1.0], 10).unwrap_err().to_string();
        assert!(
            message.ends_with("0.00 % either way; over 10 processes it reaches 1.00 % at least")
        );
    }
}
