//! What must be true of a record: its derived figures follow from its problem and from what was
//! measured, and its verdict from its interval.

use super::is_positive;
use super::place::Place;
use crate::calibration::{
    FusionRecord, MeasuredCeilings, Reason, ReasonCode, StateSpeedup, StepTime, Timing, Verdict,
    Verification,
};
use crate::cost::{PeakMemory, RooflineTime, Traffic};
use crate::vocabulary::Backend;

/// Something that cannot be.
#[derive(Debug)]
pub(super) struct Contradiction {
    pub(super) place: Place,
    pub(super) why: String,
}

type Checked = Result<(), Contradiction>;

fn fail(place: Place, why: impl Into<String>) -> Checked {
    Err(Contradiction { place, why: why.into() })
}

/// Numbers in a file have six digits, so that what follows from several of them is off by a few in
/// the last one.
const DIGITS: f64 = 3e-5;

/// Whether a number is what follows from others. `scale` is the size of those that it is a
/// difference of.
fn follows(number: f64, expected: f64, scale: f64) -> bool {
    (number - expected).abs() <= DIGITS * expected.abs().max(scale)
}

pub(super) fn check(record: &FusionRecord, ceilings: &[MeasuredCeilings]) -> Checked {
    check_problem(record)?;
    check_speedup(record)?;
    check_times(record)?;
    check_model(record)?;
    check_roofline(record, ceilings)?;
    check_steps(record)?;
    check_states(record)?;
    check_counts(record)?;
    check_proof(&record.verification)?;
    check_verdict(record)
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
    let mirrored = low * high / speedup;
    if record.by_state.is_empty() && (mirrored / speedup - 1.0).abs() > 4.0 * DIGITS {
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

fn check_times(record: &FusionRecord) -> Checked {
    for (table, timing, time) in [
        ("unfused_timing", &record.unfused_timing, record.unfused_latency_ms),
        ("fused_timing", &record.fused_timing, record.fused_latency_ms),
    ] {
        let Timing { median_ms, q1_ms, q3_ms, low_ms, high_ms, ref process_ms, .. } = *timing;
        let place = |key| Place::within(table, key);
        let given = [("median_ms", median_ms), ("q1_ms", q1_ms), ("q3_ms", q3_ms)];
        let ends = [("low_ms", low_ms), ("high_ms", high_ms)];
        let ends = ends.into_iter().filter_map(|(key, end)| Some((key, end?)));
        for (key, value) in given.into_iter().chain(ends) {
            if !is_positive(value) {
                return fail(place(key), format!("it is {value}; it must be a positive number"));
            }
        }
        if !(q1_ms <= median_ms && median_ms <= q3_ms) {
            return fail(place("median_ms"), "it must lie between q1_ms and q3_ms");
        }
        if low_ms.is_some() != high_ms.is_some() {
            return fail(place("low_ms"), "low_ms and high_ms stand together");
        }
        if low_ms.is_some_and(|low| low > time) || high_ms.is_some_and(|high| high < time) {
            return fail(place("low_ms"), format!("the time of {time} ms is outside its interval"));
        }
        if process_ms.is_empty() {
            continue;
        }
        let place = place("process_ms");
        if process_ms.len() != record.processes as usize {
            let (given, processes) = (process_ms.len(), record.processes);
            return fail(place, format!("it has {given} times of {processes} processes"));
        }
        if !process_ms.iter().copied().all(is_positive) {
            return fail(place, "every time must be a positive number");
        }
        let least = process_ms.iter().copied().fold(f64::INFINITY, f64::min);
        let most = process_ms.iter().copied().fold(0.0, f64::max);
        if time < least * (1.0 - DIGITS) || time > most * (1.0 + DIGITS) {
            return fail(place, format!("the time of {time} ms is below or above all processes"));
        }
    }
    Ok(())
}

/// What follows from the problem and the times.
fn check_model(record: &FusionRecord) -> Checked {
    let traffic = Traffic::of(&record.problem);
    let peak = PeakMemory::of(&record.problem);
    for (key, given, expected) in [
        ("unfused_memory_bytes", Some(record.unfused_memory_bytes), traffic.unfused_bytes),
        ("fused_memory_bytes", Some(record.fused_memory_bytes), traffic.fused_bytes),
        ("unfused_peak_bytes", record.unfused_peak_bytes, peak.unfused_bytes),
        ("fused_peak_bytes", record.fused_peak_bytes, peak.fused_bytes),
    ] {
        if let Some(given) = given.filter(|given| *given != expected) {
            let problem = &record.problem;
            return fail(Place::of(key), format!("it is {given}; {problem} has {expected}"));
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "rates")]
    let gflops = |milliseconds: f64| traffic.flops as f64 / milliseconds / 1e6;
    for (key, given, expected, scale) in [
        ("memory_reduction", record.memory_reduction, traffic.memory_reduction(), 1.0),
        (
            "arithmetic_intensity_unfused",
            record.arithmetic_intensity_unfused,
            traffic.unfused_intensity(),
            0.0,
        ),
        (
            "arithmetic_intensity_fused",
            record.arithmetic_intensity_fused,
            traffic.fused_intensity(),
            0.0,
        ),
        ("unfused_gflops", record.unfused_gflops, gflops(record.unfused_latency_ms), 0.0),
        ("fused_gflops", record.fused_gflops, gflops(record.fused_latency_ms), 0.0),
    ] {
        if !follows(given, expected, scale) {
            return fail(Place::of(key), format!("it is {given}, but must be {expected:.6}"));
        }
    }
    Ok(())
}

/// What follows from the ceilings: the most that the roofline allows in a state that was met.
fn check_roofline(record: &FusionRecord, ceilings: &[MeasuredCeilings]) -> Checked {
    let FusionRecord { backend, dtype, threads, cache_state, clock, .. } = *record;
    let is_of_kind = |one: &MeasuredCeilings| {
        (one.backend, one.dtype, one.threads) == (backend, dtype, threads)
            && (one.cache_state, one.clock) == (cache_state, clock)
    };
    let met = MeasuredCeilings::met(ceilings, is_of_kind, &record.states);
    let rooflines: Vec<RooflineTime> =
        met.filter_map(|ceilings| ceilings.roofline(&record.problem)).collect();
    let speedup = rooflines.iter().map(RooflineTime::speedup).reduce(f64::max);
    let place = Place::of("ceiling_speedup");
    match (record.ceiling_speedup, speedup) {
        (None, None) => {}
        (Some(given), Some(expected)) if follows(given, expected, 0.0) => {}
        (Some(given), Some(expected)) => {
            return fail(place, format!("it is {given}, but the ceilings give {expected:.6}"));
        }
        (Some(_), None) => return fail(place, "there are no ceilings that it could follow from"),
        (None, Some(expected)) => {
            return fail(place, format!("it is missing; the ceilings give {expected:.6}"));
        }
    }
    let of_record = [record.bottleneck_unfused, record.bottleneck_fused];
    let is_it = |time: &RooflineTime| {
        [Some(time.unfused_bottleneck), Some(time.fused_bottleneck)] == of_record
    };
    if rooflines.iter().any(is_it) || rooflines.is_empty() && of_record == [None; 2] {
        Ok(())
    } else {
        fail(Place::of("bottleneck_unfused"), "the bottlenecks are not those of the ceilings")
    }
}

fn check_steps(record: &FusionRecord) -> Checked {
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
            return fail(place("op"), format!("{op} is not op {} of the chain", index + 1));
        }
        let ends = [low_ms, high_ms].map(|end| end.unwrap_or(ms));
        if ![ms, ends[0], ends[1]].into_iter().all(is_positive) {
            return fail(place("ms"), "a time must be a positive number");
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
    if share_outside_steps.is_some_and(is_it) {
        Ok(())
    } else {
        let why = format!("it must be {expected:.6}, the unfused time less the sum of the steps");
        fail(Place::of("share_outside_steps"), why)
    }
}

fn check_states(record: &FusionRecord) -> Checked {
    if !record.states.is_sorted_by(|a, b| a < b) {
        return fail(Place::of("states"), "each state stands once, in order");
    }
    for (index, one) in record.by_state.iter().enumerate() {
        let StateSpeedup { state, speedup_factor, speedup_low, speedup_high, .. } = *one;
        let place = |key| Place::of_nth("by_state", index, key);
        let ends = [speedup_low, speedup_factor, speedup_high];
        if !(ends.iter().all(|end| is_positive(*end)) && ends.is_sorted()) {
            let why = format!("by_state: the speedup in state {state} is not in its interval");
            return fail(place("speedup_factor"), why);
        }
        if speedup_low < record.speedup_low * (1.0 - DIGITS)
            || speedup_high > record.speedup_high * (1.0 + DIGITS)
        {
            let why = "the interval of the record must hold that of every state";
            return fail(place("speedup_low"), why);
        }
    }
    let in_states: u32 = record.by_state.iter().map(|one| one.processes).sum();
    if in_states > record.processes {
        let why = format!("{in_states} processes are in states, of {}", record.processes);
        return fail(Place::of_nth("by_state", 0, "processes"), why);
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
    for (cause, count) in record.disturbed.causes() {
        if count.is_some_and(|count| count > pairs) {
            let why = format!("it disturbed more than all {pairs} pairs");
            return fail(Place::within("disturbed", cause), why);
        }
    }
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    if !record.placement.huge_page_share.is_none_or(is_share) {
        let why = "a share lies between 0 and 1";
        return fail(Place::within("placement", "huge_page_share"), why);
    }
    let at_least = |least: f64| move |number: f64| number.is_finite() && number >= least;
    for (key, value, least) in [
        ("noise_floor", Some(record.noise_floor), 0.0),
        ("order_sensitivity", record.order_sensitivity, -1.0),
        ("process_correlation", record.process_correlation, -1.0),
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
fn check_proof(proof: &Verification) -> Checked {
    let place = |key| Place::within("verification", key);
    if !is_positive(proof.tolerance) {
        return fail(place("tolerance"), "it must be a positive number");
    }
    for (key, error) in [("unfused_error", proof.unfused_error), ("fused_error", proof.fused_error)]
    {
        if !(error >= 0.0 && error <= proof.tolerance) {
            let why = format!("it is {error}, which is not between 0 and the tolerance");
            return fail(place(key), why);
        }
    }
    if proof.reference_rows > proof.rows {
        return fail(place("reference_rows"), "there are fewer rows");
    }
    Ok(())
}

fn check_verdict(record: &FusionRecord) -> Checked {
    let FusionRecord { verdict, speedup_factor: speedup, noise_floor, .. } = *record;
    let ends = [record.speedup_low, record.speedup_high];
    let place = Place::of("verdict");
    let code = |is: fn(ReasonCode) -> bool| {
        record.reasons.iter().map(|reason: &Reason| reason.code).find(|code| is(*code))
    };
    let is_single = record.problem.chain().is_single();
    if is_single
        && (speedup, ends, record.unfused_latency_ms) != (1.0, [1.0; 2], record.fused_latency_ms)
    {
        let why = "a single op is one kernel: its speedup is 1, and both times are the same";
        return fail(Place::of("speedup_factor"), why);
    }
    let by_reasons = code(ReasonCode::is_invalidity);
    let expected = match by_reasons {
        Some(_) => Verdict::Invalid,
        None if is_single => Verdict::Single,
        None => Verdict::by_interval(speedup, ends, noise_floor),
    };
    if verdict != expected {
        let because = match by_reasons {
            Some(code) => format!("it has the reason {code}"),
            None if is_single => "the chain has a single op".to_owned(),
            None => format!(
                "the speedup is {speedup} [{}, {}] and the noise floor {noise_floor}",
                ends[0], ends[1]
            ),
        };
        return fail(place, format!("it is {verdict}, but must be {expected}: {because}"));
    }
    let is_undecided = code(|code| code == ReasonCode::Undecided).is_some();
    if is_undecided != (verdict == Verdict::Ambiguous) {
        return fail(place, "AMBIGUOUS and the reason undecided stand together");
    }
    Ok(())
}
