//! What must be true of a verdict and its reasons.

use super::contradiction::{Checked, DIGITS, check_text, fail};
use crate::calibration::{
    Disturbed, FusionRecord, HardwareCalibration, Reason, ReasonCode, Settings, Verdict,
};
use crate::place::Place;

/// Checks that the verdict of a record is that of its interval and its reasons, and that these are
/// true.
pub(super) fn check(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    check_verdict(record)?;
    check_reasons(record, calibration)
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

/// Reasons that the other figures of the record contradict, or that they demand.
fn check_reasons(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    let FusionRecord { pairs, pairs_kept, rounds, processes, .. } = *record;
    let is_mostly_disturbed = 2 * u64::from(pairs_kept) < u64::from(pairs);
    let given = |code: ReasonCode| record.reasons.iter().any(|reason| reason.code == code);
    if is_mostly_disturbed && !given(ReasonCode::MostlyDisturbed) {
        let code = ReasonCode::MostlyDisturbed;
        let why = format!("{pairs_kept} of {pairs} pairs are few, and there is no reason {code}");
        return fail(Place::of("pairs_kept"), why);
    }
    let is_coarse = record.sample_ticks < u64::from(FusionRecord::LEAST_TICKS);
    if is_coarse != given(ReasonCode::TooFewTicks) {
        let (ticks, least) = (record.sample_ticks, FusionRecord::LEAST_TICKS);
        let why = format!(
            "it is {ticks}; below {least}, and never else, a record has the reason {}",
            ReasonCode::TooFewTicks
        );
        return fail(Place::of("sample_ticks"), why);
    }
    check_span(record, given(ReasonCode::ShortSpan))?;
    check_observed(record, given(ReasonCode::Unobserved))?;
    if !record.by_state.is_empty() && !given(ReasonCode::StateChanged) {
        let why = format!("there is no reason {}", ReasonCode::StateChanged);
        return fail(Place::of_nth("by_state", 0, "state"), why);
    }
    let Settings { processes: planned, .. } = calibration.settings;
    let is_of_one_run = calibration.is_of_one_run();
    if is_of_one_run && is_far_above_ceiling(record) && !given(ReasonCode::AboveCeiling) {
        let (speedup, code) = (record.speedup_factor, ReasonCode::AboveCeiling);
        let why = format!("a speedup of {speedup} is above it, and there is no reason {code}");
        return fail(Place::of("ceiling_speedup"), why);
    }
    let demanded = match planned {
        1 => Some(ReasonCode::WithinProcess),
        _ if processes < planned => Some(ReasonCode::FewProcesses),
        _ => None,
    };
    if let Some(code) = demanded.filter(|code| is_of_one_run && !given(*code)) {
        let why = format!("it is {processes}, of {planned} planned, and there is no reason {code}");
        return fail(Place::of("processes"), why);
    }
    for (index, reason) in record.reasons.iter().enumerate() {
        check_text(Place::of_nth("reason", index, "text"), &reason.text)?;
        let why = match reason.code {
            ReasonCode::MostlyDisturbed if pairs_kept == pairs && rounds > 1 => {
                Some("no pair was disturbed".to_owned())
            }
            ReasonCode::WithinProcess if is_of_one_run && planned != 1 => {
                Some(format!("{planned} processes were planned"))
            }
            ReasonCode::FewProcesses if is_of_one_run && processes >= planned => {
                Some(format!("all {planned} processes that were planned count"))
            }
            ReasonCode::AboveCeiling if is_of_one_run && !is_above_ceiling(record) => {
                Some("the speedup is below ceiling_speedup".to_owned())
            }
            ReasonCode::OrderSensitive if record.order_sensitivity.is_none() => {
                Some("order_sensitivity was not measured".to_owned())
            }
            ReasonCode::SlowChange if record.process_correlation.is_none() => {
                Some("there is no process_correlation".to_owned())
            }
            ReasonCode::WarmingUp if is_of_one_run && rounds <= processes => {
                Some("each process had one round".to_owned())
            }
            ReasonCode::FasterThanTheMachine if calibration.ceilings.is_empty() => {
                Some("there are no [[ceilings]]".to_owned())
            }
            ReasonCode::StateChanged if record.by_state.is_empty() => {
                Some("there is no [[fusion.by_state]]".to_owned())
            }
            ReasonCode::ShortSpan if record.span_s.is_none() => {
                Some("there is no span_s".to_owned())
            }
            ReasonCode::Throttled | ReasonCode::ClockChanged if record.gpu.is_none() => {
                Some("it ran on no GPU".to_owned())
            }
            ReasonCode::LowerCore
                if record.gpu.as_ref().is_none_or(|gpu| gpu.failed_cores.is_empty()) =>
            {
                Some("its kernels failed on no core".to_owned())
            }
            _ => None,
        };
        if let Some(why) = why {
            let place = Place::of_nth("reason", index, "code");
            return fail(place, format!("it is {}, but {why}", reason.code));
        }
    }
    Ok(())
}

/// A span has as many digits as it deserves, so that one near the limit may lie on either side.
fn check_span(record: &FusionRecord, is_called_short: bool) -> Checked {
    let Some(seconds) = record.span_s else { return Ok(()) };
    let limit = FusionRecord::SHORT_SPAN_S;
    let is_near = (seconds / limit - 1.0).abs() < DIGITS;
    if is_near || is_called_short == (seconds < limit) {
        return Ok(());
    }
    let code = ReasonCode::ShortSpan;
    let why =
        format!("it is {seconds} s; below {limit} s, and never else, there is the reason {code}");
    fail(Place::of("span_s"), why)
}

/// What can disturb a time by the record's clock has a number, or a reason for having none.
fn check_observed(record: &FusionRecord, is_called_unobserved: bool) -> Checked {
    let code = ReasonCode::Unobserved;
    match record.disturbed.unobserved(record.clock).next() {
        Some(cause) if !is_called_unobserved => {
            let why = format!("it has no number, and there is no reason {code}");
            fail(Place::within("disturbed", cause), why)
        }
        None if is_called_unobserved => {
            let causes = Disturbed::causes_of(record.clock).join(", ");
            let why = format!("there is the reason {code}, but {causes} have numbers");
            fail(Place::of("disturbed"), why)
        }
        _ => Ok(()),
    }
}

fn is_far_above_ceiling(record: &FusionRecord) -> bool {
    let limit = FusionRecord::CEILING_MARGIN * (1.0 + 2.0 * DIGITS);
    record.verdict != Verdict::Invalid
        && record.ceiling_speedup.is_some_and(|ceiling| record.speedup_factor > limit * ceiling)
}

fn is_above_ceiling(record: &FusionRecord) -> bool {
    record.ceiling_speedup.is_some_and(|ceiling| record.speedup_factor > ceiling)
}
