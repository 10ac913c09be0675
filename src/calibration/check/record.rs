//! What must be true of a record: its derived figures follow from its problem and from what was
//! measured, and its verdict from its interval.

use std::collections::BTreeMap;

use super::contradiction::{
    Checked, DIGITS, check_target, fail, follows, is_mirrored, is_positive,
};
use super::limits::{RATIO, SPAN_S, SPEEDUP_END, TIME_MS};
use super::{counts, gpu, kernels, model, reasons, steps, times, verdict, width};
use crate::calibration::{FusionRecord, HardwareCalibration, Verification};
use crate::place::Place;
use crate::vocabulary::{Backend, DType, Problem};

/// Checks a record of a calibration.
pub(super) fn check(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    check_problem(record)?;
    check_target(calibration, record.backend, record.clock, record.threads)?;
    check_speedup(record)?;
    check_looks(record, calibration)?;
    times::check(record, calibration.states.len())?;
    steps::check(record, calibration)?;
    model::check(record, &calibration.ceilings)?;
    counts::check(record, calibration)?;
    gpu::check(record)?;
    check_figures(record, calibration)?;
    kernels::check(record)?;
    check_method(record)?;
    check_scratch(record, calibration)?;
    check_proof(&record.verification, &record.problem)?;
    verdict::check(record)?;
    reasons::check(record, calibration)
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
    if !has_sizes(&record.extra_params, problem) {
        return fail(Place::of("problem"), "extra_params are not the sizes of the problem");
    }
    Ok(())
}

/// Whether these are the sizes of a problem. Files from before attention had heads of keys of its own
/// and a mask do not name these; their problems have the default.
fn has_sizes(given: &BTreeMap<String, u64>, problem: &Problem) -> bool {
    let attention = problem.sizes().attention();
    let is_plain = attention.is_some_and(|sizes| sizes.kvh == sizes.h && !sizes.causal);
    let is_newer = |key: &str| is_plain && matches!(key, "kvh" | "causal");
    let sizes: BTreeMap<&str, u64> =
        problem.sizes().iter().map(|(key, value)| (key.key, value)).collect();
    given.iter().all(|(key, value)| sizes.get(key.as_str()) == Some(value))
        && sizes.keys().all(|key| given.contains_key(*key) || is_newer(key))
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
    for (key, time) in [("unfused_latency_ms", unfused), ("fused_latency_ms", fused)] {
        TIME_MS.check(Place::of(key), time)?;
    }
    for (key, ratio) in [("speedup_low", low), ("speedup_high", high)] {
        SPEEDUP_END.check(Place::of(key), ratio)?;
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
    // The one kernel of a single op is as fast as itself.
    if !record.problem.chain().is_single() {
        width::check(Place::of("speedup_low"), [low, high], record.processes)?;
    }
    if !follows(record.efficiency_improvement, speedup - 1.0, 1.0) {
        let (place, expected) = (Place::of("efficiency_improvement"), speedup - 1.0);
        return fail(place, format!("it must be speedup_factor - 1, which is {expected:.6}"));
    }
    Ok(())
}

/// Every process on a CPU looks at the machine before it does anything else, but where there is no
/// memory for that. So where some have found states, all have, unless there was a run that found none.
fn check_looks(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    let HardwareCalibration { states, ceilings, .. } = calibration;
    let is_of_cpu = record.backend == Backend::Cpu && record.implementation.runtime().is_none();
    let all_looked = !states.is_empty() && ceilings.iter().all(|one| one.state.is_some());
    if is_of_cpu && all_looked && record.states.is_empty() {
        let why = format!("there are none, and the file has {} [[state]]", states.len());
        return fail(Place::of("states"), why);
    }
    Ok(())
}

fn check_figures(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    if !record.placement.huge_page_share.is_none_or(is_share) {
        let why = "a share lies between 0 and 1";
        return fail(Place::within("placement", "huge_page_share"), why);
    }
    if !record.placement.processors.is_sorted_by(|a, b| a < b) {
        let why = "each processor stands once, in order";
        return fail(Place::within("placement", "processors"), why);
    }
    let processors = record.placement.processors.len();
    if record.placement.pinned && processors < record.threads as usize {
        let why = format!("{} threads are bound to {processors} of the processors", record.threads);
        return fail(Place::within("placement", "pinned"), why);
    }
    let logical_cores = calibration.fingerprint.logical_cores;
    if processors > logical_cores as usize {
        let why = format!("there are {processors}, and the fingerprint has {logical_cores}");
        return fail(Place::within("placement", "processors"), why);
    }
    let floor = Some(record.noise_floor);
    for (key, off) in [("noise_floor", floor), ("order_sensitivity", record.order_sensitivity)] {
        if let Some(off) = off.filter(|off| !RATIO.contains(1.0 + off)) {
            return fail(Place::of(key), format!("it is {off}; it must be a ratio minus 1"));
        }
    }
    if let Some(seconds) = record.span_s {
        SPAN_S.check(Place::of("span_s"), seconds)?;
    }
    Ok(())
}

/// An interval is made over processes where there are enough of them, and over states where these
/// differ.
fn check_method(record: &FusionRecord) -> Checked {
    let FusionRecord { interval_method: method, processes, by_state, .. } = record;
    let expected = if *processes < width::LEAST_PROCESSES {
        "95 % t interval over rounds"
    } else if by_state.is_empty() {
        "95 % t interval over processes"
    } else {
        "95 % t intervals over processes, over states of the machine"
    };
    if method != expected {
        let why = format!("it is {method:?}; over {processes} processes it is {expected:?}");
        return fail(Place::of("interval_method"), why);
    }
    Ok(())
}

/// What the kernels keep for themselves fits into the memory.
fn check_scratch(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    let FusionRecord { unfused_scratch_bytes: unfused, fused_scratch_bytes: fused, .. } = *record;
    let is_known = unfused.is_some();
    for (key, is_alike) in [
        ("fused_scratch_bytes", fused.is_some() == is_known),
        ("unfused_peak_bytes", record.unfused_peak_bytes.is_some() == is_known),
        ("fused_peak_bytes", record.fused_peak_bytes.is_some() == is_known),
    ] {
        if !is_alike {
            return fail(Place::of(key), "peaks and scratch of both variants stand together");
        }
    }
    let memory_bytes = calibration.memory_bytes();
    for (key, bytes) in [("unfused_scratch_bytes", unfused), ("fused_scratch_bytes", fused)] {
        if let Some(bytes) = bytes.filter(|bytes| *bytes > memory_bytes) {
            let why = format!("it is {bytes}, and the memory of the fingerprint {memory_bytes}");
            return fail(Place::of(key), why);
        }
    }
    Ok(())
}

/// A kernel that is wrong is never timed.
fn check_proof(proof: &Verification, problem: &Problem) -> Checked {
    let place = |key| Place::within("verification", key);
    let most = match problem.dtype() {
        // Integers are exact, and become f32.
        DType::F32 | DType::I8 => Verification::single_precision(problem) * (1.0 + DIGITS),
        _ => Verification::MOST_TOLERANCE,
    };
    if !(is_positive(proof.tolerance) && proof.tolerance <= most) {
        let why = format!("it is {}; it must be above 0, and at most {most}", proof.tolerance);
        return fail(place("tolerance"), why);
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
