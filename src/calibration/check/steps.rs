//! What must be true of the steps of a record, the unfused kernels in their places.

use super::contradiction::{Checked, DIGITS, fail, follows};
use super::limits::TIME_MS;
use crate::calibration::{FusionRecord, HardwareCalibration, StepTime};
use crate::place::Place;

/// Checks the steps of a record.
pub(super) fn check(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    let FusionRecord { steps, share_outside_steps, unfused_latency_ms: time, .. } = record;
    if steps.is_empty() {
        return match share_outside_steps {
            None => Ok(()),
            Some(_) => fail(Place::of("share_outside_steps"), "there are no steps"),
        };
    }
    for (index, step) in steps.iter().enumerate() {
        let StepTime { ref op, ms, low_ms, high_ms } = *step;
        let place = |key| Place::of_nth("step", index, key);
        if record.operators.get(index) != Some(op) {
            return fail(
                place("op"),
                format!("it is {op}, which is not op {} of the chain", index + 1),
            );
        }
        let ends = [low_ms, high_ms].map(|end| end.unwrap_or(ms));
        for (key, time) in [("ms", ms), ("low_ms", ends[0]), ("high_ms", ends[1])] {
            TIME_MS.check(place(key), time)?;
        }
        if !(ends[0] <= ms && ms <= ends[1]) || low_ms.is_some() != high_ms.is_some() {
            return fail(place("ms"), "it must lie between low_ms and high_ms");
        }
    }
    if steps.len() != record.operators.len() {
        let (steps, ops) = (steps.len(), record.operators.len());
        return fail(Place::of("operators"), format!("there are {steps} steps of {ops} ops"));
    }
    let sum: f64 = steps.iter().map(|step| step.ms).sum();
    let expected = 1.0 - sum / time;
    let is_it = |share: f64| follows(share, expected, 1.0);
    if !share_outside_steps.is_some_and(is_it) {
        let why = format!("it must be {expected:.6}, the unfused time less the sum of the steps");
        return fail(Place::of("share_outside_steps"), why);
    }
    check_least(record, calibration)
}

/// No step is far below what the ceilings allow. Those of a file of several runs are not all of the
/// record's.
fn check_least(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    if !calibration.is_of_one_run() {
        return Ok(());
    }
    let Some(least) = calibration.least_time(record) else { return Ok(()) };
    for (index, (step, least_us)) in record.steps.iter().zip(&least.steps_us).enumerate() {
        let least_ms = least_us / 1e3;
        if FusionRecord::LEAST_STEP_MARGIN * step.ms < least_ms * (1.0 - DIGITS) {
            let (ms, margin) = (step.ms, FusionRecord::LEAST_STEP_MARGIN);
            let why = format!(
                "it is {ms}; the ceilings allow no less than {least_ms:.6}, and a step is below that by \
                 a factor of {margin} at most"
            );
            return fail(Place::of_nth("step", index, "ms"), why);
        }
    }
    Ok(())
}
