//! The fourth stage: what a measurement says, and what it does not.

mod least_time;
mod noise;
mod reason;
mod surroundings;
#[cfg(test)]
mod tests;
pub mod throttle;

use fused_kernels::Variant;
use fusion_cost_model::calibration::{FailedCore, FusionRecord, MachineState, NoiseFloor, Verdict};
use fusion_cost_model::cost::LeastTime;
use fusion_cost_model::{Clock, Core, Problem};

use crate::digits::rounded;
use crate::measure::{Estimate, Procedure, Surroundings, Unit};

pub use least_time::{beats_ceilings, least_time};
pub use noise::{control, controls_for, noise_floor, same_margin};
pub(crate) use reason::causes_of;
pub use reason::{InState, Reason};
pub use surroundings::{LEAST_SPAN, others_busy, span};

/// A verdict with its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What the measurement says.
    pub verdict: Verdict,
    /// Why it is not a better one, and what a reader should know.
    pub reasons: Vec<Reason>,
}

/// What the judgement is based on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case<'a> {
    /// What was measured.
    pub problem: Problem,
    /// The measurement.
    pub estimate: &'a Estimate,
    /// Processes that were planned.
    pub planned_processes: u32,
    /// Of a single op, what its own A/A run says.
    pub own_control: Option<&'a NoiseFloor>,
    /// The usable A/A runs of its kind, single ops among them.
    pub controls: &'a [NoiseFloor],
    /// The speedup that the roofline allows.
    pub ceiling: Option<f64>,
    /// The two that were measured: twice the same in an A/A run.
    pub variants: [Variant; 2],
    /// The least time that the machine's ceilings allow.
    pub least: Option<&'a LeastTime>,
    /// The kernels of each variant, in every process.
    pub kernels: &'a [[Vec<String>; 2]],
    /// What was wrong with the result after the timing.
    pub wrong: Option<&'a str>,
    /// What the times begin and end with. It decides what could have disturbed them.
    pub clock: Clock,
    /// Why the clock of the GPU was held down, if it was.
    pub throttled: &'a [String],
    /// The core of the GPU on which both variants ran, where there is one to choose.
    pub core: Option<Core>,
    /// How they failed on better ones.
    pub failed_cores: &'a [FailedCore],
    /// What the machine was like around each process.
    pub surroundings: &'a [Surroundings],
    /// The states of the machine in this run.
    pub states: &'a [MachineState],
}

/// Judges a measurement. The verdict starts at AMBIGUOUS and must earn another one.
#[must_use]
pub fn judge(case: &Case<'_>) -> Judgement {
    let floor = noise_floor(case.controls);
    let mut reasons = invalidity(case);
    let verdict = if !reasons.is_empty() {
        Verdict::Invalid
    } else if case.problem.chain().is_single() {
        Verdict::Single
    } else {
        by_interval(case.estimate, floor)
    };
    if verdict == Verdict::Ambiguous {
        reasons.push(Reason::Undecided {
            floor: floor.exp_m1(),
            margin: same_margin(floor).exp_m1(),
            half_width: case.estimate.half_width().exp_m1(),
        });
    }
    reasons.extend(remarks(case, floor, verdict));
    Judgement { verdict, reasons }
}

/// From the numbers with the digits that they have in a file, so that a reader finds the verdict that
/// they say.
fn by_interval(estimate: &Estimate, floor: f64) -> Verdict {
    let [ratio, low, high] = [estimate.ratio, estimate.low, estimate.high].map(rounded);
    Verdict::by_interval(ratio, [low, high], rounded(floor.exp_m1()))
}

/// Everything that makes a measurement unusable.
fn invalidity(case: &Case<'_>) -> Vec<Reason> {
    let Estimate { pairs, pairs_kept, ticks, times, .. } = *case.estimate;
    let mut reasons = Vec::new();
    let is_single = case.problem.chain().is_single();
    // Of a single op nothing is compared, so that it needs no noise floor.
    if case.controls.is_empty() && !is_single {
        reasons.push(Reason::NoControl);
    }
    if let Some(wrong) = case.wrong {
        reasons.push(Reason::WrongAfterTiming(wrong.to_owned()));
    }
    if case.estimate.mostly_disturbed {
        let disturbed = case.estimate.disturbed;
        reasons.push(Reason::MostlyDisturbed { pairs, pairs_kept, disturbed });
    }
    let limit = NoiseFloor::MOST_ERROR.ln_1p();
    // A single op speaks for itself and, with all others, for the floor: of many A/A runs one may be
    // off by chance.
    let speaking: Vec<&NoiseFloor> = if is_single {
        case.own_control.into_iter().collect()
    } else {
        case.controls.iter().filter(|one| !one.problem.chain().is_single()).collect()
    };
    let is_off = |control: &&NoiseFloor| {
        let width = (control.ratio_high / control.ratio_low).ln();
        control.ratio.ln().abs() > limit + width
    };
    if let Some(control) = speaking.into_iter().find(is_off) {
        reasons.push(Reason::ControlOff(Box::new(control.clone())));
    }
    // The second side of an A/A run is several kernels where the first one is.
    let is_one_kernel =
        |[_, second]: &&[Vec<String>; 2]| second.len() == 1 || case.variants[1] == Variant::Unfused;
    if let Some(kernels) = case.kernels.iter().find(|one| !is_one_kernel(one)) {
        reasons.push(Reason::FellBack(kernels[1].clone()));
    } else if let Some(other) = case.kernels.iter().find(|other| other[1] != case.kernels[0][1]) {
        reasons.push(Reason::FellBack(other[1].clone()));
    }
    if ticks < u64::from(Procedure::LEAST_TICKS) {
        reasons.push(Reason::TooFewTicks(ticks));
    }
    if let Some(least) = case.least {
        reasons.extend(least_time::faster_than(least, case.variants, &times));
    }
    reasons
}

/// What a reader should know, whatever the verdict.
fn remarks(case: &Case<'_>, floor: f64, verdict: Verdict) -> Vec<Reason> {
    let Estimate { ratio, processes, order_sensitivity, is_order_sensitive, disturbed, .. } =
        *case.estimate;
    let mut reasons = surroundings::remarks(case);
    if case.planned_processes == 1 {
        reasons.push(Reason::WithinProcess);
    } else if processes < case.planned_processes as usize {
        let over_rounds = case.estimate.unit == Unit::Rounds;
        let planned = case.planned_processes;
        reasons.push(Reason::FewProcesses { processes, planned, over_rounds });
    }
    let is_above = |ceiling: &f64| {
        verdict != Verdict::Invalid && ratio > ceiling * FusionRecord::CEILING_MARGIN
    };
    if let Some(ceiling) = case.ceiling.filter(is_above) {
        reasons.push(Reason::AboveCeiling { ceiling });
    }
    let is_much = |off: &f64| off.abs() > FusionRecord::ORDER_SENSITIVE.max(2.0 * floor);
    if let Some(off) = order_sensitivity.filter(is_much).filter(|_| is_order_sensitive) {
        reasons.push(Reason::OrderSensitive(off.exp_m1()));
    }
    if case.estimate.changes_slowly {
        reasons.push(Reason::SlowChange(case.estimate.correlation));
    }
    let is_warming = |change: &f64| change.abs() > FusionRecord::RESOLUTION;
    if let Some(change) = case.estimate.change_within.filter(is_warming) {
        reasons.push(Reason::WarmingUp(change));
    }
    let unseen: Vec<&'static str> = disturbed.unobserved(case.clock).collect();
    if !unseen.is_empty() {
        reasons.push(Reason::Unobserved(unseen));
    }
    if !case.throttled.is_empty() {
        reasons.push(Reason::Throttled(case.throttled.to_vec()));
    }
    let Estimate { clock_changes: samples, pairs, .. } = *case.estimate;
    if samples.iter().any(|samples| 2 * samples > pairs) {
        reasons.push(Reason::ClockChanged { samples, pairs });
    }
    if let (Some(core), failed @ [_, ..]) = (case.core, case.failed_cores) {
        reasons.push(Reason::LowerCore { core, failed: failed.to_vec() });
    }
    reasons
}
