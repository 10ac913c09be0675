//! What must be true of the A/A runs, and of what the records of one run take from them together.

use std::collections::HashMap;
use std::hash::Hash;

use super::contradiction::{Checked, DIGITS, check_target, fail, is_mirrored, is_positive};
use super::limits::END;
use super::width::{self, LEAST_ERRORS};
use crate::calibration::{FusionRecord, HardwareCalibration, NoiseFloor, ReasonCode};
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::Family;

/// Half of an interval has at most this many standard errors, beside what it does not resolve: as many
/// as Student's t has with one degree of freedom, where a result is looked at three times.
const MOST_ERRORS: f64 = 28.9;

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    // Over several states of the machine an interval reaches as far as that of each.
    let is_one_state = calibration.states.len() < 2;
    let runs = 1 + calibration.additions.len();
    let mut seen = HashMap::new();
    for (index, noise) in calibration.noise.iter().enumerate() {
        let NoiseFloor { problem, backend, threads, clock, own_tensors, implementation, .. } =
            *noise;
        let kind = (problem, backend, threads, clock, own_tensors, implementation);
        let times: &mut usize = seen.entry(kind).or_default();
        *times += 1;
        let checked = if *times > runs {
            let why = format!("{problem} is there {times} times, of {runs} runs");
            fail(Place::of("problem"), why)
        } else {
            check_target(calibration, backend, clock, threads)
                .and_then(|()| check_one(noise, is_one_state))
                .and_then(|()| check_processes(noise, calibration))
        };
        checked.map_err(|wrong| wrong.within(Section::nth("noise", index), text))?;
    }
    Ok(())
}

fn check_one(noise: &NoiseFloor, is_one_state: bool) -> Checked {
    let NoiseFloor { ratio, ratio_low: low, ratio_high: high, standard_error, .. } = *noise;
    if noise.processes == 0 {
        return fail(Place::of("processes"), "it must be at least 1");
    }
    for (key, value) in [("ratio", ratio), ("ratio_low", low), ("ratio_high", high)] {
        if !is_positive(value) {
            return fail(Place::of(key), format!("it is {value}; it must be a positive number"));
        }
    }
    for (key, end) in [("ratio_low", low), ("ratio_high", high)] {
        END.check(Place::of(key), end)?;
    }
    if !(low <= ratio && ratio <= high) {
        let why = format!("it is {ratio}, outside its interval from {low} to {high}");
        return fail(Place::of("ratio"), why);
    }
    if is_one_state && !is_mirrored(low, ratio, high) {
        let why = format!(
            "it is {high}, but an interval is as wide upwards as downwards, as factors: from {low} \
             by {ratio} to {:.6}",
            ratio * ratio / low
        );
        return fail(Place::of("ratio_high"), why);
    }
    if !(standard_error.is_finite() && standard_error >= 0.0) {
        return fail(Place::of("standard_error"), "it must be a number of at least 0");
    }
    let half = (high / ratio).ln();
    if LEAST_ERRORS * standard_error > half + DIGITS {
        let why = format!("it is {standard_error}, too much for an interval up to {high}");
        return fail(Place::of("standard_error"), why);
    }
    let most = (MOST_ERRORS * standard_error).hypot(FusionRecord::RESOLUTION);
    if is_one_state && half > most + DIGITS {
        let why = format!("it is {standard_error}, too little for an interval up to {high}");
        return fail(Place::of("standard_error"), why);
    }
    width::check(Place::of("ratio_low"), [low, high], noise.processes)
}

/// Those of one run are not more than were to be made.
fn check_processes(noise: &NoiseFloor, calibration: &HardwareCalibration) -> Checked {
    let (processes, most) = (noise.processes, calibration.settings.most_processes);
    if calibration.is_of_one_run() && processes > most {
        let why = format!("it is {processes}, and settings.most_processes {most}");
        return fail(Place::of("processes"), why);
    }
    Ok(())
}

/// The records of one run are judged by the same noise: those of a family by one clock have one noise
/// floor, those of each runtime one of their own, and all whose intervals are made over processes
/// have one correlation, but those that change slowly have a higher one of their own.
pub(super) fn check_of_records(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let runs = 1 + calibration.additions.len();
    if !calibration.is_of_one_run() {
        check_common(calibration, runs, "noise_floor", floor_of, text)?;
    }
    let correlation = |record: &FusionRecord| {
        let shared = record.process_correlation.filter(|_| !has_its_own(record))?;
        Some(((), shared))
    };
    check_common(calibration, runs, "process_correlation", correlation, text)?;
    check_own(calibration, text)
}

/// The noise floor of a record, which those of its kind share that are of the same run.
fn floor_of(record: &FusionRecord) -> Option<(impl Eq + Hash + use<>, f64)> {
    let family = Family::of(record.problem.chain().form());
    let runtime = record.implementation.runtime().copied();
    let kind = (record.backend, record.threads, record.clock, family, runtime);
    Some((kind, record.noise_floor))
}

/// Whether the correlation of a record is not that of its run.
fn has_its_own(record: &FusionRecord) -> bool {
    record.reasons.iter().any(|reason| reason.code == ReasonCode::SlowChange)
}

/// Records that change slowly are more correlated than some run was.
fn check_own(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let records = || calibration.records.iter();
    let shared = records().filter(|record| !has_its_own(record));
    let lowest = shared.filter_map(|record| record.process_correlation).reduce(f64::min);
    for (index, record) in records().enumerate().filter(|(_, record)| has_its_own(record)) {
        if let Some((own, lowest)) = record.process_correlation.zip(lowest).filter(|(a, b)| a <= b)
        {
            let why = format!("it is {own}, no more than {lowest}, and a reason says slow-change");
            return fail(Place::of("process_correlation"), why)
                .map_err(|wrong| wrong.within(Section::nth("fusion", index), text));
        }
    }
    Ok(())
}

/// Fails if the records of a kind have more values of a key than there were runs.
fn check_common<K: Eq + Hash>(
    calibration: &HardwareCalibration,
    runs: usize,
    key: &'static str,
    of: impl Fn(&FusionRecord) -> Option<(K, f64)>,
    text: &str,
) -> Result<(), Error> {
    let mut known: HashMap<K, Vec<f64>> = HashMap::new();
    for (index, record) in calibration.records.iter().enumerate() {
        let Some((kind, value)) = of(record) else { continue };
        let values = known.entry(kind).or_default();
        if values.contains(&value) {
            continue;
        }
        values.push(value);
        if values.len() > runs {
            let why = format!(
                "it is {value}, and {} in an earlier record; the records of one run share it",
                values[0]
            );
            return fail(Place::of(key), why)
                .map_err(|wrong| wrong.within(Section::nth("fusion", index), text));
        }
    }
    Ok(())
}
