//! What must be true of the counts of a record: of its processes, rounds and pairs, and of what
//! disturbed them.

use super::contradiction::{Checked, fail};
use super::limits::TICKS;
use super::width::LEAST_PROCESSES;
use crate::calibration::{FusionRecord, HardwareCalibration, Settings};
use crate::place::Place;
use crate::vocabulary::Backend;

/// A round has one pair in each order at least.
const LEAST_PAIRS: u64 = 2;

/// Rounds that a process has at least, unless fewer are asked for.
const LEAST_ROUNDS: u32 = 2;

pub(super) fn check(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    check_processes(record, calibration)?;
    check_pairs(record)?;
    check_disturbed(record)?;
    #[expect(clippy::cast_precision_loss, reason = "far from the ends of the range")]
    Ok(TICKS.check(Place::of("sample_ticks"), record.sample_ticks as f64)?)
}

/// Those of one run are not more than were to be made.
fn check_processes(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    let FusionRecord { processes, rounds, process_correlation, .. } = *record;
    if processes == 0 || rounds < processes {
        let why = format!("it is {processes}, and there are {rounds} rounds");
        return fail(Place::of("processes"), why);
    }
    let Settings { most_processes, rounds: rounds_of_one, .. } = calibration.settings;
    let most_rounds = u64::from(most_processes) * u64::from(rounds_of_one);
    if calibration.is_of_one_run() && processes > most_processes {
        let why = format!("it is {processes}, and settings.most_processes {most_processes}");
        return fail(Place::of("processes"), why);
    }
    if calibration.is_of_one_run() && u64::from(rounds) > most_rounds {
        let why = format!(
            "it is {rounds}; settings.rounds is {rounds_of_one}, in settings.most_processes \
             {most_processes}"
        );
        return fail(Place::of("rounds"), why);
    }
    let least_rounds = u64::from(processes) * u64::from(LEAST_ROUNDS.min(rounds_of_one));
    if calibration.is_of_one_run() && u64::from(rounds) < least_rounds {
        let why = format!("it is {rounds}; {processes} processes have {least_rounds} at least");
        return fail(Place::of("rounds"), why);
    }
    match process_correlation {
        Some(one) if !(0.0..=1.0).contains(&one) => {
            fail(Place::of("process_correlation"), "it must lie between 0 and 1")
        }
        Some(_) if processes < LEAST_PROCESSES => {
            let why = format!("there are {processes} processes, which show none");
            fail(Place::of("process_correlation"), why)
        }
        _ => Ok(()),
    }
}

fn check_pairs(record: &FusionRecord) -> Checked {
    let FusionRecord { pairs, pairs_kept, rounds, .. } = *record;
    if u64::from(pairs) < LEAST_PAIRS * u64::from(rounds) {
        let why = format!("it is {pairs}; each of {rounds} rounds has {LEAST_PAIRS} at least");
        return fail(Place::of("pairs"), why);
    }
    if pairs % 2 != 0 {
        let why = format!("it is {pairs}; a round has as many pairs in one order as in the other");
        return fail(Place::of("pairs"), why);
    }
    if pairs_kept > pairs {
        let why = format!("{pairs_kept} pairs were used, of {pairs}");
        return fail(Place::of("pairs_kept"), why);
    }
    Ok(())
}

fn check_disturbed(record: &FusionRecord) -> Checked {
    let FusionRecord { backend, pairs, pairs_kept, .. } = *record;
    let left_out = pairs - pairs_kept;
    let mut by_causes = 0_u32;
    let changes = record.disturbed.clock_change;
    if backend == Backend::Cpu && changes.is_some() {
        let why = "no clock is read around the kernels of a CPU";
        return fail(Place::within("disturbed", "clock_change"), why);
    }
    let clock_change = changes.unwrap_or(0);
    if clock_change > pairs {
        let why = format!("the clock changed in {clock_change} of {pairs} pairs");
        return fail(Place::within("disturbed", "clock_change"), why);
    }
    // A change of the clock leaves no pair out. What a system cannot observe has no count.
    let causes =
        record.disturbed.causes().into_iter().filter(|(cause, _)| *cause != "clock_change");
    let is_whole = causes.clone().all(|(_, count)| count.is_some());
    for (cause, count) in causes {
        let count = count.unwrap_or(0);
        if count > left_out {
            let why = format!("it disturbed {count} pairs, and {left_out} of {pairs} are left out");
            return fail(Place::within("disturbed", cause), why);
        }
        by_causes = by_causes.saturating_add(count);
    }
    if is_whole && by_causes < left_out {
        let why = format!("{left_out} of {pairs} pairs are left out, and {by_causes} disturbed");
        return fail(Place::of("pairs_kept"), why);
    }
    Ok(())
}
