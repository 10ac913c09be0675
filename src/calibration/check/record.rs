//! What must be true of a record: its derived figures follow from its problem and from what was
//! measured, and its verdict from its interval.

use super::contradiction::{Checked, check_threads, fail, follows, is_mirrored, is_positive};
use super::{model, times, verdict};
use crate::calibration::{FusionRecord, HardwareCalibration, Verification};
use crate::place::Place;
use crate::vocabulary::{Backend, Problem};

/// Checks a record of a calibration.
pub(super) fn check(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    check_problem(record)?;
    check_threads(calibration, record.backend, record.threads)?;
    check_speedup(record)?;
    times::check(record, calibration.states.len())?;
    model::check(record, &calibration.ceilings)?;
    check_counts(record)?;
    check_proof(&record.verification, &record.problem)?;
    verdict::check(record, calibration)
}

/// What only repeats the problem.
fn check_problem(record: &FusionRecord) -> Checked {
    let problem = &record.problem;
    let ops: Vec<&str> = problem.chain().iter().map(|op| op.name()).collect();
    if record.operators != ops || record.num_operators as usize != ops.len() {
        let key = if record.operators == ops { "num_operators" } else { "operators" };
        let ops = ops.join(", ");
        return fail(
            Place::of(key),
            format!("operators are not those of {problem}, which are {ops}"),
        );
    }
    if record.fusion_pattern != problem.chain().name() {
        let name = problem.chain().name();
        return fail(Place::of("fusion_pattern"), format!("the name of {problem} is {name}"));
    }
    if (record.backend == Backend::Cpu) != record.clock.is_host() {
        let why = format!("there is no {} clock on {}", record.clock, record.backend);
        return fail(Place::of("clock"), why);
    }
    if record.dtype != problem.dtype() {
        let why = format!("dtype {} is not that of {problem}", record.dtype);
        return fail(Place::of("dtype"), why);
    }
    if let Some(rewrite) = record.rewrite.filter(|one| !one.applies_to(problem.chain())) {
        return fail(Place::of("rewrite"), format!("{problem} cannot be {rewrite}"));
    }
    if record.input_shape != problem.input_shape() {
        let why = format!("that of {problem} is {:?}", problem.input_shape());
        return fail(Place::of("input_shape"), why);
    }
    let sizes = problem.sizes().iter().map(|(key, value)| (key.key.to_owned(), value));
    if record.extra_params != sizes.collect() {
        return fail(Place::of("problem"), "extra_params are not the sizes of the problem");
    }
    Ok(())
}

fn check_speedup(record: &FusionRecord) -> Checked {
    let FusionRecord {
        unfused_latency_ms: unfused,
        fused_latency_ms: fused,
        speedup_factor: speedup,
        speedup_low: low,
        speedup_high: high,
        ..
    } = *record;
    for (key, value) in [
        ("unfused_latency_ms", unfused),
        ("fused_latency_ms", fused),
        ("speedup_factor", speedup),
        ("speedup_low", low),
        ("speedup_high", high),
    ] {
        if !is_positive(value) {
            let why = format!("{key} is {value}; it must be a positive number");
            return fail(Place::of(key), why);
        }
    }
    let place = Place::of("speedup_factor");
    if !(low <= speedup && speedup <= high) {
        let why = format!("speedup_factor {speedup} is outside its interval {low} to {high}");
        return fail(place, why);
    }
    if !follows(speedup, unfused / fused, 0.0) {
        let expected = unfused / fused;
        let why =
            format!("it is {speedup}, but unfused_latency_ms is {expected:.6} times the other");
        return fail(place, why);
    }
    // Over several states of the machine it reaches as far as that of each.
    if record.by_state.is_empty() && !is_mirrored(low, speedup, high) {
        let why = format!(
            "it is {high}, but an interval is as wide upwards as downwards, as factors: from {low} \
             by {speedup} to {:.6}",
            speedup * speedup / low
        );
        return fail(Place::of("speedup_high"), why);
    }
    if !follows(record.efficiency_improvement, speedup - 1.0, 1.0) {
        let (place, expected) = (Place::of("efficiency_improvement"), speedup - 1.0);
        return fail(place, format!("it must be speedup_factor - 1, which is {expected:.6}"));
    }
    Ok(())
}

fn check_counts(record: &FusionRecord) -> Checked {
    let FusionRecord { pairs, pairs_kept, processes, rounds, .. } = *record;
    if processes == 0 || rounds < processes {
        let why = format!("it is {processes}, and there are {rounds} rounds");
        return fail(Place::of("processes"), why);
    }
    if pairs_kept > pairs {
        let why = format!("{pairs_kept} pairs were used, of {pairs}");
        return fail(Place::of("pairs_kept"), why);
    }
    let left_out = pairs - pairs_kept;
    let mut by_causes = 0_u32;
    let clock_change = record.disturbed.clock_change.unwrap_or(0);
    if clock_change > pairs {
        let why = format!("the clock changed in {clock_change} of {pairs} pairs");
        return fail(Place::within("disturbed", "clock_change"), why);
    }
    let clock_changes = record.gpu.as_ref().and_then(|gpu| gpu.clock_changes).unwrap_or_default();
    if let Some(most) = clock_changes.into_iter().find(|samples| *samples > clock_change) {
        let why = format!("{most} samples met a change, and {clock_change} pairs");
        return fail(Place::within("gpu", "clock_changes"), why);
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
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    if !record.placement.huge_page_share.is_none_or(is_share) {
        let why = "a share lies between 0 and 1";
        return fail(Place::within("placement", "huge_page_share"), why);
    }
    if !record.process_correlation.is_none_or(|one| (-1.0..=1.0).contains(&one)) {
        return fail(Place::of("process_correlation"), "it must lie between -1 and 1");
    }
    if record.sample_ticks == 0 {
        return fail(Place::of("sample_ticks"), "a sample of no ticks has no time");
    }
    let at_least = |least: f64| move |number: f64| number.is_finite() && number >= least;
    for (key, value, least) in [
        ("noise_floor", Some(record.noise_floor), 0.0),
        ("order_sensitivity", record.order_sensitivity, -1.0),
        ("span_s", record.span_s, 0.0),
    ] {
        if !value.is_none_or(at_least(least)) {
            let why = format!("{key} must be a number of at least {least}");
            return fail(Place::of(key), why);
        }
    }
    Ok(())
}

/// A kernel that is wrong is never timed.
fn check_proof(proof: &Verification, problem: &Problem) -> Checked {
    let place = |key| Place::within("verification", key);
    // Errors are relative: a tolerance of 1 takes zeros for any result.
    if !(is_positive(proof.tolerance) && proof.tolerance < 1.0) {
        return fail(place("tolerance"), "it must be a number between 0 and 1");
    }
    for (key, error) in [("unfused_error", proof.unfused_error), ("fused_error", proof.fused_error)]
    {
        if !(error >= 0.0 && error <= proof.tolerance) {
            let why = format!("it is {error}, which is not between 0 and the tolerance");
            return fail(place(key), why);
        }
    }
    let rows = problem.steps().last().map_or(0, |step| step.output.rows);
    if proof.rows != rows {
        let why = format!("it is {}; the output of {problem} has {rows} rows", proof.rows);
        return fail(place("rows"), why);
    }
    if proof.reference_rows > proof.rows {
        return fail(place("reference_rows"), "there are fewer rows");
    }
    if proof.reference_rows == 0 {
        return fail(place("reference_rows"), "no row was compared: that proves nothing");
    }
    Ok(())
}
