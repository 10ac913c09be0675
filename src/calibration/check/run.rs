//! What must be true of how the file was made: of the program, the settings, the checks before the
//! run, later runs, and of what has no record.

use std::collections::HashSet;

use super::contradiction::{Checked, check_text, fail};
use super::limits::{PLANNED, SPAN_S};
use super::{outcomes, timestamp};
use crate::calibration::{
    Addition, Check, CheckStatus, FusionRecord, HardwareCalibration, ReasonCode, RunEnd, Settings,
    Skipped, Tool,
};
use crate::error::Error;
use crate::hardware::HardwareSpec;
use crate::place::{Place, Section};
use crate::vocabulary::Problem;

/// The `--hardware` that any machine meets.
const ANY: &str = "auto";

pub(super) fn check(calibration: &HardwareCalibration, text: &str) -> Result<(), Error> {
    let HardwareCalibration { tool, settings, additions, checks, skipped, .. } = calibration;
    check_tool(tool).map_err(|wrong| wrong.within(Section::only("tool"), text))?;
    check_settings(calibration).map_err(|wrong| wrong.within(Section::only("settings"), text))?;
    for (index, addition) in additions.iter().enumerate() {
        check_addition(addition, calibration)
            .map_err(|wrong| wrong.within(Section::nth("addition", index), text))?;
    }
    let mut names = HashSet::new();
    for (index, check) in checks.iter().enumerate() {
        check_of_machine(check, names.insert(&check.name), settings)
            .and_then(|()| outcomes::check(check, calibration.fingerprint.gpu.is_some()))
            .map_err(|wrong| wrong.within(Section::nth("check", index), text))?;
    }
    let measured: HashSet<Problem> = calibration.records.iter().map(|one| one.problem).collect();
    for (index, skipped) in skipped.iter().enumerate() {
        check_text(Place::of("reason"), &skipped.reason)
            .and_then(|()| check_skipped(skipped, &measured, calibration.is_of_one_run()))
            .map_err(|wrong| wrong.within(Section::nth("skipped", index), text))?;
    }
    Ok(())
}

fn check_tool(tool: &Tool) -> Checked {
    for (key, text) in [("name", &tool.name), ("version", &tool.version), ("build", &tool.build)] {
        check_text(Place::of(key), text)?;
    }
    timestamp::check(Place::of("started_at"), &tool.started_at)
}

fn check_settings(calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { settings, hardware, checks, .. } = calibration;
    let Settings { processes, most_processes, rounds, spread_s, time_budget_s, .. } = *settings;
    for (key, count) in
        [("processes", processes), ("most_processes", most_processes), ("rounds", rounds)]
    {
        PLANNED.check(Place::of(key), f64::from(count))?;
    }
    if most_processes < processes {
        let why = format!("it is {most_processes}, and processes {processes}");
        return fail(Place::of("most_processes"), why);
    }
    SPAN_S.check(Place::of("spread_s"), spread_s)?;
    if let Some(seconds) = time_budget_s {
        SPAN_S.check(Place::of("time_budget_s"), seconds)?;
    }
    check_requested(settings, hardware)?;
    let has_failed = checks.iter().any(|check| check.status == CheckStatus::Fail);
    check_end(calibration)?;
    if settings.forced && calibration.is_of_one_run() && !has_failed {
        return fail(Place::of("forced"), "it is true, and no [[check]] failed");
    }
    Ok(())
}

/// How the only run ended.
fn check_end(calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { settings, records, .. } = calibration;
    if !calibration.is_of_one_run() {
        return Ok(());
    }
    if settings.end == RunEnd::TimeBudget && settings.time_budget_s.is_none() {
        return fail(Place::of("end"), "it is time-budget, and there is no time_budget_s");
    }
    let is_disturbed = |record: &FusionRecord| {
        record.reasons.iter().any(|reason| reason.code == ReasonCode::MostlyDisturbed)
    };
    if settings.end == RunEnd::Disturbed && !records.iter().all(is_disturbed) {
        return fail(Place::of("end"), "it is disturbed, and there are records that are not");
    }
    Ok(())
}

/// Whether the machine is the requested one. What is neither its name nor that of any machine is a
/// file, which the calibration does not have.
fn check_requested(settings: &Settings, hardware: &HardwareSpec) -> Checked {
    let Settings { requested_hardware: requested, hardware_matches: matches, .. } = settings;
    check_text(Place::of("requested_hardware"), requested)?;
    let is_file = requested.contains(['/', '\\']) || requested.ends_with(".toml");
    let is_this = requested == ANY || hardware.is_called(requested);
    let (given, is) = match matches {
        false if is_this => ("false", "is"),
        true if !is_this && !is_file => ("true", "is not"),
        _ => return Ok(()),
    };
    let why = format!("it is {given}, and this machine {is} {requested}, which was asked for");
    fail(Place::of("hardware_matches"), why)
}

fn check_addition(addition: &Addition, calibration: &HardwareCalibration) -> Checked {
    timestamp::check(Place::of("started_at"), &addition.started_at)?;
    if addition.records > calibration.num_records {
        let (added, all) = (addition.records, calibration.num_records);
        let why = format!(
            "it is {added}, and the file has {all}; correct it if you took records out yourself"
        );
        return fail(Place::of("records"), why);
    }
    if addition.forced && !calibration.settings.forced {
        return fail(Place::of("forced"), "it is true, and settings.forced is false");
    }
    Ok(())
}

/// A run may have a problem by one clock and not by another; of several runs, what one has measured is
/// not missing.
fn check_skipped(skipped: &Skipped, measured: &HashSet<Problem>, is_of_one_run: bool) -> Checked {
    let problem = skipped.problem;
    if !is_of_one_run && measured.contains(&problem) {
        return fail(Place::of("problem"), format!("there is a record of {problem}"));
    }
    Ok(())
}

fn check_of_machine(check: &Check, is_new: bool, settings: &Settings) -> Checked {
    let Check { name, status, found, advice } = check;
    check_text(Place::of("name"), name)?;
    check_text(Place::of("found"), found)?;
    if !is_new {
        return fail(Place::of("name"), format!("{name} was checked before"));
    }
    if *status == CheckStatus::Fail && !settings.forced {
        let why = "it is fail, and settings.forced is false: such a run does not begin";
        return fail(Place::of("status"), why);
    }
    if advice.is_some() != (*status != CheckStatus::Pass) {
        return fail(Place::of("status"), format!("it is {status}; all but pass have an advice"));
    }
    Ok(())
}
