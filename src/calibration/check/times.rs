//! What must be true of the times of a record: in all processes, and in every state of the machine.

use super::contradiction::{Checked, DIGITS, fail, follows, is_mirrored, is_positive};
use super::limits::{END, RUNS, SPEEDUP_END, TIME_MS};
use super::width::{self, LEAST_PROCESSES, is_of_one_state};
use crate::calibration::{FusionRecord, StateSpeedup, Timing};
use crate::place::Place;

/// Checks the times of a record in a file with this many states of the machine.
pub(super) fn check(record: &FusionRecord, states: usize) -> Checked {
    check_timings(record)?;
    check_alike(record)?;
    check_span(record)?;
    width::check_spread(record)?;
    check_states(record, states)
}

/// What is known of the time of one variant is known of the other.
fn check_alike(record: &FusionRecord) -> Checked {
    let FusionRecord { unfused_timing: unfused, fused_timing: fused, .. } = record;
    for (key, is_alike) in [
        ("low_ms", unfused.low_ms.is_some() == fused.low_ms.is_some()),
        ("process_ms", unfused.process_ms.is_empty() == fused.process_ms.is_empty()),
    ] {
        if !is_alike {
            return fail(Place::within("fused_timing", key), "both timings have it, or neither");
        }
    }
    Ok(())
}

/// Processes are made one after the other, and each runs both variants once at least before the next one
/// begins.
fn check_span(record: &FusionRecord) -> Checked {
    let Some(span_s) = record.span_s else { return Ok(()) };
    let of = |timing: &Timing| {
        let but_the_last = timing.process_ms.len().saturating_sub(1);
        timing.process_ms.iter().take(but_the_last).sum::<f64>()
    };
    let least_s = 1e-3 * (of(&record.unfused_timing) + of(&record.fused_timing));
    if span_s * (1.0 + DIGITS) < least_s {
        let why = format!("it is {span_s}, and all processes but the last take {least_s:.6} s");
        return fail(Place::of("span_s"), why);
    }
    Ok(())
}

fn check_timings(record: &FusionRecord) -> Checked {
    for (table, timing, time) in [
        ("unfused_timing", &record.unfused_timing, record.unfused_latency_ms),
        ("fused_timing", &record.fused_timing, record.fused_latency_ms),
    ] {
        let Timing { median_ms, q1_ms, q3_ms, low_ms, high_ms, inner_iterations, .. } = *timing;
        let process_ms = &timing.process_ms;
        let place = |key| Place::within(table, key);
        for (key, value) in [("median_ms", median_ms), ("q1_ms", q1_ms), ("q3_ms", q3_ms)] {
            TIME_MS.check(place(key), value)?;
        }
        for (key, end) in [("low_ms", low_ms), ("high_ms", high_ms)] {
            end.map_or(Ok(()), |end| END.check(place(key), end))?;
        }
        let runs = f64::from(inner_iterations);
        RUNS.check(place("inner_iterations"), runs)?;
        if !TIME_MS.contains(median_ms * runs) {
            let why = format!("no sample has {runs} runs of {median_ms} ms");
            return fail(place("inner_iterations"), why);
        }
        if !(q1_ms <= median_ms && median_ms <= q3_ms) {
            return fail(place("median_ms"), "it must lie between q1_ms and q3_ms");
        }
        if low_ms.is_some() != high_ms.is_some() {
            return fail(place("low_ms"), "low_ms and high_ms stand together");
        }
        if let Some((low, high)) = low_ms.zip(high_ms) {
            check_interval(record, place, time, [low, high])?;
        }
        if !process_ms.is_empty() {
            check_processes(record, place("process_ms"), time, process_ms)?;
        }
    }
    Ok(())
}

fn check_interval(
    record: &FusionRecord,
    place: impl Fn(&'static str) -> Place,
    time: f64,
    [low, high]: [f64; 2],
) -> Checked {
    if low > time || high < time {
        return fail(place("low_ms"), format!("the time of {time} ms is outside its interval"));
    }
    if is_of_one_state(record) && !is_mirrored(low, time, high) {
        let why = format!(
            "it is {high}, but an interval is as wide upwards as downwards, as factors: from {low} \
             by {time} to {:.6}",
            time * time / low
        );
        return fail(place("high_ms"), why);
    }
    width::check(place("low_ms"), [low, high], record.processes)
}

/// The time is the mean of the processes in the logarithm, where there were enough of them.
fn check_processes(record: &FusionRecord, place: Place, time: f64, process_ms: &[f64]) -> Checked {
    if process_ms.len() != record.processes as usize {
        let (given, processes) = (process_ms.len(), record.processes);
        return fail(place, format!("it has {given} times of {processes} processes"));
    }
    for time in process_ms {
        TIME_MS.check(place, *time)?;
    }
    let least = process_ms.iter().copied().fold(f64::INFINITY, f64::min);
    let most = process_ms.iter().copied().fold(0.0, f64::max);
    if time < least * (1.0 - DIGITS) || time > most * (1.0 + DIGITS) {
        return fail(place, format!("the time of {time} ms is below or above all processes"));
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of processes")]
    let count = process_ms.len() as f64;
    let expected = (process_ms.iter().map(|ms| ms.ln()).sum::<f64>() / count).exp();
    let is_mean = record.processes >= LEAST_PROCESSES && is_of_one_state(record);
    if is_mean && !follows(time, expected, 0.0) {
        let why = format!("the time is {time} ms, but the mean of the processes {expected:.6} ms");
        return fail(place, why);
    }
    Ok(())
}

fn check_states(record: &FusionRecord, states: usize) -> Checked {
    if !record.states.is_sorted_by(|a, b| a < b) {
        return fail(Place::of("states"), "each state stands once, in order");
    }
    if let Some(state) = record.states.iter().find(|id| **id == 0 || **id as usize > states) {
        let why = format!("state {state} is named, and there are {states} states");
        return fail(Place::of("states"), why);
    }
    for (index, one) in record.by_state.iter().enumerate() {
        let StateSpeedup { state, processes, speedup_factor, speedup_low, speedup_high } = *one;
        let place = |key| Place::of_nth("by_state", index, key);
        if processes == 0 {
            return fail(place("processes"), "what no process measured has no speedup");
        }
        let ends = [speedup_low, speedup_factor, speedup_high];
        for (key, ratio) in [("speedup_low", speedup_low), ("speedup_high", speedup_high)] {
            SPEEDUP_END.check(place(key), ratio)?;
        }
        if !(ends.iter().all(|end| is_positive(*end)) && ends.is_sorted()) {
            let why = format!("by_state: the speedup in state {state} is not in its interval");
            return fail(place("speedup_factor"), why);
        }
        if !is_mirrored(speedup_low, speedup_factor, speedup_high) {
            let why = "it must lie in the middle of its interval, in the logarithm";
            return fail(place("speedup_factor"), why);
        }
        width::check_of_state(place("speedup_low"), [speedup_low, speedup_high], processes)?;
    }
    if record.by_state.is_empty() { Ok(()) } else { check_over_states(record) }
}

/// Each state counts once in the speedup, and its interval holds that of every state.
fn check_over_states(record: &FusionRecord) -> Checked {
    let FusionRecord { by_state, speedup_low, speedup_high, speedup_factor, .. } = record;
    let place = |key| Place::of_nth("by_state", 0, key);
    if by_state.len() < 2 {
        return fail(place("state"), "it is the only one; a speedup differs between several");
    }
    if !by_state.iter().map(|one| one.state).eq(record.states.iter().copied()) {
        return fail(place("state"), "they must be those of `states`, in the same order");
    }
    let processes: u64 = by_state.iter().map(|one| u64::from(one.processes)).sum();
    if processes != u64::from(record.processes) {
        let why = format!("{processes} processes are in states, of {}", record.processes);
        return fail(place("processes"), why);
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of states")]
    let count = by_state.len() as f64;
    let mean = (by_state.iter().map(|one| one.speedup_factor.ln()).sum::<f64>() / count).exp();
    if !follows(*speedup_factor, mean, 0.0) {
        let why =
            format!("the mean over the states is {mean:.6}, and the record's {speedup_factor}");
        return fail(place("speedup_factor"), why);
    }
    let low = by_state.iter().map(|one| one.speedup_low).fold(f64::INFINITY, f64::min);
    let high = by_state.iter().map(|one| one.speedup_high).fold(0.0, f64::max);
    for (key, given, expected) in
        [("speedup_low", *speedup_low, low), ("speedup_high", *speedup_high, high)]
    {
        if !follows(given, expected, 0.0) {
            let why = format!("it is {given}, but that of the states is {expected}");
            return fail(Place::of(key), why);
        }
    }
    Ok(())
}
