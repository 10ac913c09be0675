//! What follows from the problem, the times and the ceilings of the machine.

use super::contradiction::{Checked, fail, follows};
use crate::calibration::{FusionRecord, MeasuredCeilings};
use crate::cost::{PeakMemory, RooflineTime, Traffic};
use crate::place::Place;

/// Checks the modelled figures of a record.
pub(super) fn check(record: &FusionRecord, ceilings: &[MeasuredCeilings]) -> Checked {
    check_figures(record)?;
    check_roofline(record, ceilings)
}

/// What follows from the problem and the times.
fn check_figures(record: &FusionRecord) -> Checked {
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
    check_bottlenecks(record, &rooflines)
}

/// What limits both variants at the ceilings of one of the states.
fn check_bottlenecks(record: &FusionRecord, rooflines: &[RooflineTime]) -> Checked {
    let of_record = [record.bottleneck_unfused, record.bottleneck_fused];
    let of = |time: &RooflineTime| [time.unfused_bottleneck, time.fused_bottleneck].map(Some);
    let Some(first) = rooflines.first().map(of) else {
        return if of_record == [None; 2] {
            Ok(())
        } else {
            let key =
                if of_record[0].is_some() { "bottleneck_unfused" } else { "bottleneck_fused" };
            fail(Place::of(key), "there are no ceilings that it could follow from")
        };
    };
    if rooflines.iter().any(|time| of(time) == of_record) {
        return Ok(());
    }
    // Of both, the one that no state gives; the first one if each of them is that of some state.
    let is_given = |which: usize| rooflines.iter().any(|time| of(time)[which] == of_record[which]);
    let (key, which) = match [is_given(0), is_given(1)] {
        [true, false] => ("bottleneck_fused", 1),
        _ => ("bottleneck_unfused", 0),
    };
    let expected = first[which].map_or_else(String::new, |one| one.to_string());
    fail(Place::of(key), format!("it is not that of the ceilings, which is {expected}"))
}
