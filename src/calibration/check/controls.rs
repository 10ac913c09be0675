//! What the A/A runs say of the records, and these of them.

use std::collections::HashMap;

use super::contradiction::{Checked, DIGITS, fail};
use crate::calibration::{FusionRecord, HardwareCalibration, NoiseFloor, ReasonCode};
use crate::error::Error;
use crate::place::{Place, Section};
use crate::vocabulary::{Backend, Clock, Family, Implementation, Problem};

/// Checks each A/A run.
pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let singles = singles(calibration);
    let most = MOST_OF_RUN * (1 + calibration.runtimes.len()) * (1 + calibration.additions.len());
    let mut first = None;
    let mut count = 0;
    for (index, noise) in calibration.noise.iter().enumerate() {
        let mut checked = check_implementation(noise);
        if noise.problem.chain().is_single() {
            checked = checked.and_then(|()| check_single(noise, &singles));
        } else {
            count += 1;
            let first = *first.get_or_insert(noise);
            checked = checked
                .and_then(|()| check_tensors(noise, first))
                .and_then(|()| check_count(count, most));
        }
        checked.map_err(|wrong| wrong.within(Section::nth("noise", index), text))?;
    }
    Ok(())
}

/// A run has two of them for each of four families, for each implementation that has its own. By the
/// clocks of a GPU there are fewer.
const MOST_OF_RUN: usize = 8;

fn check_count(count: usize, most: usize) -> Checked {
    if count <= most {
        return Ok(());
    }
    fail(Place::of("problem"), format!("it is one too many: there are {most} A/A runs at most"))
}

/// All A/A runs of a program have tensors of their own, or none has; on a GPU none has.
fn check_tensors(noise: &NoiseFloor, first: &NoiseFloor) -> Checked {
    let NoiseFloor { backend, own_tensors, .. } = *noise;
    let place = Place::of("own_tensors");
    if own_tensors && backend != Backend::Cpu {
        return fail(place, "on a GPU both sides of an A/A run share their tensors");
    }
    if own_tensors != first.own_tensors {
        let why = format!("it is {own_tensors}, and that of {} is not", first.problem);
        return fail(place, why);
    }
    Ok(())
}

fn check_implementation(noise: &NoiseFloor) -> Checked {
    let NoiseFloor { implementation, .. } = *noise;
    if implementation.yardstick() == implementation {
        return Ok(());
    }
    let why = format!("it is {implementation}; the A/A runs for it are those of native kernels");
    fail(Place::of("implementation"), why)
}

type Measured = (Problem, Clock, Implementation);

fn measured(record: &FusionRecord) -> Measured {
    (record.problem, record.clock, record.implementation)
}

/// The records of single ops in a file of one run.
fn singles(calibration: &HardwareCalibration) -> HashMap<Measured, &FusionRecord> {
    let records = calibration.records.iter().filter(|_| calibration.is_of_one_run());
    let singles = records.filter(|one| one.problem.chain().is_single());
    singles.map(|one| (measured(one), one)).collect()
}

/// A single op is measured against a copy of itself, and its record is made of that.
fn check_single(noise: &NoiseFloor, singles: &HashMap<Measured, &FusionRecord>) -> Checked {
    let NoiseFloor { problem, clock, implementation, disturbed, processes, .. } = *noise;
    if !noise.own_tensors {
        let why = format!("{problem} is a single op, which is measured against a copy");
        return fail(Place::of("own_tensors"), why);
    }
    match singles.get(&(problem, clock, implementation)) {
        Some(record) if record.processes != processes => {
            let why = format!("it is {processes}, and {} in the record of it", record.processes);
            fail(Place::of("processes"), why)
        }
        Some(record) if has(record, ReasonCode::MostlyDisturbed) != disturbed => {
            let why = format!("it is {disturbed}, and for the record of {problem} it is not");
            fail(Place::of("disturbed"), why)
        }
        _ => Ok(()),
    }
}

/// Whether an A/A run is the measurement of a record of a single op.
fn is_of(noise: &NoiseFloor, record: &FusionRecord) -> bool {
    (noise.problem, noise.clock, noise.implementation) == measured(record)
}

fn has(record: &FusionRecord, code: ReasonCode) -> bool {
    record.reasons.iter().any(|reason| reason.code == code)
}

/// The usable A/A runs for a record, whatever their family.
fn usable<'a>(
    calibration: &'a HardwareCalibration,
    record: &'a FusionRecord,
) -> impl Iterator<Item = &'a NoiseFloor> + Clone {
    let whose = record.implementation.yardstick();
    calibration.noise.iter().filter(move |one| {
        !one.disturbed && (one.clock, one.implementation) == (record.clock, whose)
    })
}

/// The usable A/A runs for a record: those of its family, or all where there are none of it.
pub(super) fn speaking_for<'a>(
    calibration: &'a HardwareCalibration,
    record: &'a FusionRecord,
) -> Vec<&'a NoiseFloor> {
    let family = |problem: &Problem| Family::of(problem.chain().form());
    let is_alike = |one: &&NoiseFloor| family(&one.problem) == family(&record.problem);
    let all = usable(calibration, record);
    let has_alike = all.clone().any(|one| is_alike(&one));
    all.filter(|one| !has_alike || is_alike(one)).collect()
}

/// Whether there is an A/A run that can be used for a record.
pub(super) fn is_any_usable(calibration: &HardwareCalibration, record: &FusionRecord) -> bool {
    usable(calibration, record).next().is_some()
}

/// What the A/A runs of the only run of a file say of one that is off.
pub(super) enum Off<'a> {
    /// This one is, without doubt.
    Is(&'a NoiseFloor),
    /// None is.
    None,
    /// That is not to be seen.
    Unknown,
}

/// Whether an A/A run that speaks for a record is further from 1 than its interval explains. Of a
/// single op it is its own; of others those of its family, or all where there are none of it.
pub(super) fn off<'a>(calibration: &'a HardwareCalibration, record: &'a FusionRecord) -> Off<'a> {
    let speaking: Vec<&NoiseFloor> = if record.problem.chain().is_single() {
        calibration.noise.iter().filter(|one| is_of(one, record)).collect()
    } else {
        let speaking = speaking_for(calibration, record).into_iter();
        speaking.filter(|one| !one.problem.chain().is_single()).collect()
    };
    if speaking.is_empty() && record.problem.chain().is_single() {
        return Off::Unknown;
    }
    let beyond = |one: &NoiseFloor| {
        let width = (one.ratio_high / one.ratio_low).ln();
        one.ratio.ln().abs() - NoiseFloor::MOST_ERROR.ln_1p() - width
    };
    if let Some(one) = speaking.iter().find(|one| beyond(one) > DIGITS) {
        Off::Is(one)
    } else if speaking.iter().all(|one| beyond(one) < -DIGITS) {
        Off::None
    } else {
        Off::Unknown
    }
}
