//! What must be true of a verdict.

use super::contradiction::{Checked, fail};
use crate::calibration::{FusionRecord, Reason, ReasonCode, Verdict};
use crate::place::Place;

/// Checks that the verdict of a record is that of its interval and its reasons.
pub(super) fn check(record: &FusionRecord) -> Checked {
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
    if is_single && record.order_sensitivity.is_some() {
        let why = "a single op is one kernel, which has no order";
        return fail(Place::of("order_sensitivity"), why);
    }
    if is_single && !record.steps.is_empty() {
        let why = "a single op has no steps: its time is that of the record";
        return fail(Place::of_nth("step", 0, "op"), why);
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
