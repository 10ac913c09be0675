//! What must be true of the reasons of a record: no figure speaks against one that is there, and none
//! asks for one that is not.

use super::contradiction::{Checked, DIGITS, check_text, fail};
use super::controls::{self, Off};
use super::gpu;
use crate::calibration::{
    Disturbed, FusionRecord, HardwareCalibration, ReasonCode, Settings, Verdict,
};
use crate::place::Place;

/// What the figures of a file say of a reason.
pub(super) enum Figures {
    /// The record must have it: where the figure stands that says so, and what it says.
    Ask(Place, String),
    /// The record cannot have it, and why.
    Deny(String),
    /// Nothing.
    Allow,
}

use Figures::{Allow, Ask, Deny};

/// Checks the reasons of a record.
pub(super) fn check(record: &FusionRecord, calibration: &HardwareCalibration) -> Checked {
    for (index, reason) in record.reasons.iter().enumerate() {
        check_text(Place::of_nth("reason", index, "text"), &reason.text)?;
    }
    for code in ReasonCode::ALL {
        let given = record.reasons.iter().position(|reason| reason.code == *code);
        match (figures(*code, record, calibration), given) {
            (Ask(place, why), None) => {
                return fail(place, format!("{why}, and there is no reason {code}"));
            }
            (Deny(why), Some(index)) => {
                let place = Place::of_nth("reason", index, "code");
                return fail(place, format!("it is {code}, but {why}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn deny_if(is_so: bool, why: &str) -> Figures {
    if is_so { Deny(why.to_owned()) } else { Allow }
}

fn figures(code: ReasonCode, record: &FusionRecord, calibration: &HardwareCalibration) -> Figures {
    match code {
        ReasonCode::MostlyDisturbed => mostly_disturbed(record),
        ReasonCode::NoControl => no_control(record, calibration),
        ReasonCode::ControlOff => control_off(record, calibration),
        ReasonCode::TooFewTicks => too_few_ticks(record),
        ReasonCode::FasterThanTheMachine => faster_than_the_machine(record, calibration),
        ReasonCode::WithinProcess | ReasonCode::FewProcesses => {
            processes(code, record, calibration)
        }
        ReasonCode::AboveCeiling => above_ceiling(record, calibration),
        ReasonCode::OrderSensitive => order_sensitive(record),
        ReasonCode::SlowChange => slow_change(record),
        ReasonCode::WarmingUp => warming_up(record, calibration),
        ReasonCode::Unobserved => unobserved(record),
        ReasonCode::StateChanged => state_changed(record),
        ReasonCode::Neighbour => neighbour(record),
        ReasonCode::ShortSpan => short_span(record),
        ReasonCode::Throttled | ReasonCode::ClockChanged | ReasonCode::LowerCore => {
            gpu::figures(code, record)
        }
        // Two are about what is in no figure, and one stands with a verdict, and is checked with it.
        ReasonCode::WrongAfterTiming | ReasonCode::FellBack | ReasonCode::Undecided => Allow,
    }
}

/// Where less than half of the pairs are left, or those of a single round.
fn mostly_disturbed(record: &FusionRecord) -> Figures {
    let FusionRecord { pairs, pairs_kept: kept, rounds, .. } = *record;
    if 2 * u64::from(kept) < u64::from(pairs) {
        return Ask(Place::of("pairs_kept"), format!("{kept} of {pairs} pairs are few"));
    }
    // All other rounds have a pair in each order.
    let others = 2 * u64::from(rounds.saturating_sub(1));
    if rounds > 1 && u64::from(kept) + others > u64::from(pairs) {
        let why = format!("{kept} of {pairs} pairs were used, which are of several rounds");
        return Deny(why);
    }
    Allow
}

fn no_control(record: &FusionRecord, calibration: &HardwareCalibration) -> Figures {
    if record.problem.chain().is_single() {
        return Deny("a single op is compared with nothing".to_owned());
    }
    if !controls::is_any_usable(calibration, record) {
        return Ask(Place::of("noise_floor"), "no [[noise]] can be used for it".to_owned());
    }
    deny_if(calibration.is_of_one_run(), "there are [[noise]] that can be used")
}

fn control_off(record: &FusionRecord, calibration: &HardwareCalibration) -> Figures {
    if !calibration.is_of_one_run() {
        return Allow;
    }
    match controls::off(calibration, record) {
        Off::Is(noise) => {
            let (problem, ratio) = (noise.problem, noise.ratio);
            let why = format!("{problem} against itself came out as {ratio}");
            Ask(Place::of("noise_floor"), why)
        }
        Off::None => Deny("no [[noise]] for it is off".to_owned()),
        Off::Unknown => Allow,
    }
}

fn too_few_ticks(record: &FusionRecord) -> Figures {
    let (ticks, least) = (record.sample_ticks, FusionRecord::LEAST_TICKS);
    if ticks < u64::from(least) {
        let why = format!("it is {ticks}; below {least} a clock is too coarse");
        return Ask(Place::of("sample_ticks"), why);
    }
    Deny(format!("sample_ticks is {ticks}, and {least} are enough"))
}

/// The ceilings of a file of several runs are not all of the record's.
fn faster_than_the_machine(record: &FusionRecord, calibration: &HardwareCalibration) -> Figures {
    let problem = &record.problem;
    let Some(least) = calibration.least_time(record) else {
        return Deny("there are no [[ceilings]] that it could be held against".to_owned());
    };
    if !calibration.is_of_one_run() {
        return Allow;
    }
    let fused_us = if problem.chain().is_single() { least.unfused_us } else { least.fused_us };
    let times = [
        ("unfused_timing", record.unfused_timing.median_ms, least.unfused_us),
        ("fused_timing", record.fused_timing.median_ms, fused_us),
    ];
    let mut is_near = false;
    for (table, median_ms, least_us) in times {
        let share = FusionRecord::LEAST_TIME_MARGIN * median_ms * 1e3 / least_us;
        if share < 1.0 - DIGITS {
            let why = format!("the ceilings allow no less than {:.6} ms", least_us / 1e3);
            return Ask(Place::within(table, "median_ms"), why);
        }
        is_near |= share < 1.0 + DIGITS;
    }
    deny_if(!is_near, "both medians are above what the ceilings allow")
}

/// Of a file of one run, the settings are those of its records.
fn processes(
    code: ReasonCode,
    record: &FusionRecord,
    calibration: &HardwareCalibration,
) -> Figures {
    if !calibration.is_of_one_run() {
        return Allow;
    }
    let Settings { processes: planned, .. } = calibration.settings;
    let processes = record.processes;
    let is_so = match code {
        ReasonCode::WithinProcess => planned == 1,
        _ => planned > 1 && processes < planned,
    };
    if is_so {
        return Ask(Place::of("processes"), format!("it is {processes}, of {planned} planned"));
    }
    Deny(match code {
        ReasonCode::WithinProcess => format!("{planned} processes were planned"),
        _ => format!("all {planned} processes that were planned count"),
    })
}

/// Ceilings that later runs add say nothing of what an earlier one found.
fn above_ceiling(record: &FusionRecord, calibration: &HardwareCalibration) -> Figures {
    if !calibration.is_of_one_run() {
        return Allow;
    }
    let speedup = record.speedup_factor;
    let Some(ceiling) = record.ceiling_speedup else {
        return Deny("there is no ceiling_speedup".to_owned());
    };
    let limit = FusionRecord::CEILING_MARGIN * ceiling;
    let is_invalid = record.verdict == Verdict::Invalid;
    if !is_invalid && speedup > limit * (1.0 + 2.0 * DIGITS) {
        let why = format!("a speedup of {speedup} is above it");
        return Ask(Place::of("ceiling_speedup"), why);
    }
    let is_below = is_invalid || speedup < limit * (1.0 - 2.0 * DIGITS);
    deny_if(is_below, "the speedup is not far above ceiling_speedup, or not valid")
}

fn order_sensitive(record: &FusionRecord) -> Figures {
    let Some(off) = record.order_sensitivity else {
        return Deny("order_sensitivity was not measured".to_owned());
    };
    let limit = FusionRecord::ORDER_SENSITIVE.max(2.0 * record.noise_floor.ln_1p());
    if off.ln_1p().abs() > limit * (1.0 - DIGITS) - DIGITS {
        return Allow;
    }
    Deny(format!("order_sensitivity is {off}, which is within {:.6}", limit.exp_m1()))
}

/// Processes that show a correlation of their own.
const LEAST_CORRELATED: u32 = 4;

fn slow_change(record: &FusionRecord) -> Figures {
    let processes = record.processes;
    if record.process_correlation.is_none() {
        return Deny("there is no process_correlation".to_owned());
    }
    if processes < LEAST_CORRELATED {
        return Deny(format!("{processes} processes show no correlation of their own"));
    }
    Allow
}

/// A change is seen between the first round of a process and its last one, in two processes at least.
fn warming_up(record: &FusionRecord, calibration: &HardwareCalibration) -> Figures {
    let FusionRecord { processes, rounds, pairs_kept, .. } = *record;
    let has_one_round = calibration.is_of_one_run() && calibration.settings.rounds == 1;
    let is_discarded =
        record.reasons.iter().any(|reason| reason.code == ReasonCode::MostlyDisturbed);
    let why = if record.problem.chain().is_single() {
        "a single op is compared with nothing"
    } else if processes < 2 {
        "a single process shows no change that others share"
    } else if rounds <= processes || has_one_round {
        "each process had one round"
    } else if rounds < processes + 2 {
        "only one process had more than one round"
    } else if pairs_kept < 4 && !is_discarded {
        "too few pairs are left for the first and the last round of two processes"
    } else {
        return Allow;
    };
    Deny(why.to_owned())
}

/// What can disturb a time by the record's clock has a number, or a reason for having none.
fn unobserved(record: &FusionRecord) -> Figures {
    if let Some(cause) = record.disturbed.unobserved(record.clock).next() {
        return Ask(Place::within("disturbed", cause), "it has no number".to_owned());
    }
    let causes = Disturbed::causes_of(record.clock).join(", ");
    Deny(format!("{causes} have numbers"))
}

fn state_changed(record: &FusionRecord) -> Figures {
    if record.by_state.is_empty() {
        return Deny("there is no [[fusion.by_state]]".to_owned());
    }
    Ask(Place::of_nth("by_state", 0, "state"), "the speedup differs between states".to_owned())
}

/// How busy the machine was is in the text alone, and so is what memory gave, which is not known where no
/// look at the machine was taken.
fn neighbour(record: &FusionRecord) -> Figures {
    let texts = record.reasons.iter().filter(|reason| reason.code == ReasonCode::Neighbour);
    for text in texts.map(|reason| &reason.text) {
        let busy =
            text.split_once("kept ").and_then(|(_, rest)| rest.split_once(" processors busy"));
        let busy: Option<(f64, &str)> =
            busy.and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        let Some((busy, rest)) = busy else {
            let why = "the text does not say how many processors others kept busy";
            return Deny(why.to_owned());
        };
        // With one digit behind the point.
        if busy.is_nan() || busy < FusionRecord::MOST_OTHERS_BUSY {
            return Deny(format!("{busy} processors are not worth a word"));
        }
        let is_of_memory = rest.starts_with(", and memory gave ");
        match (record.states.is_empty(), is_of_memory) {
            (true, true) => return Deny("the record is of no state of the machine".to_owned()),
            (false, false) => {
                let why = "the text does not say what memory gave, and there are `states`";
                return Deny(why.to_owned());
            }
            _ => {}
        }
    }
    Allow
}

/// A span has as many digits as it deserves, so that one near the limit may lie on either side.
fn short_span(record: &FusionRecord) -> Figures {
    let Some(seconds) = record.span_s else { return Deny("there is no span_s".to_owned()) };
    let limit = FusionRecord::SHORT_SPAN_S;
    if (seconds / limit - 1.0).abs() < DIGITS {
        Allow
    } else if seconds < limit {
        Ask(Place::of("span_s"), format!("it is {seconds} s, below {limit} s"))
    } else {
        Deny(format!("span_s is {seconds}, and {limit} are enough"))
    }
}
