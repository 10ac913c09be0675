//! The fourth stage: what a measurement says, and what it does not.

mod noise;
mod reason;
pub mod throttle;

use fused_kernels::Variant;
use fusion_cost_model::Clock;
use fusion_cost_model::calibration::{NoiseFloor, Verdict};
use fusion_cost_model::cost::LeastTime;

use crate::measure::{Cause, Estimate, Procedure, Unit};

pub use noise::{CONTROLS, LEAST_FLOOR, noise_floor, of_clock, same_margin};
pub use reason::Reason;

/// A speedup above its ceiling by more than this factor contradicts the model.
const CEILING_MARGIN: f64 = 1.1;

/// A time below the least possible one by more than this factor contradicts the ceilings.
const LEAST_TIME_MARGIN: f64 = 1.1;

/// An A/A run is off, and not just noisy, when it is further from 1 than this plus twice the
/// half-width of its interval. Once would call every twentieth run on a noisy machine off, and with
/// it all that was measured.
const MOST_CONTROL_ERROR: f64 = 0.01;

/// Measuring one variant after the other instead of in turns may change a ratio by so much, and
/// by twice the noise floor, before a reader should know.
const ORDER_SENSITIVE: f64 = 0.05;

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
    /// The measurement.
    pub estimate: &'a Estimate,
    /// Processes that were planned.
    pub planned_processes: u32,
    /// The A/A runs of the machine.
    pub controls: &'a [NoiseFloor],
    /// The speedup that the roofline allows.
    pub ceiling: Option<f64>,
    /// The two that were measured: twice the same in an A/A run.
    pub variants: [Variant; 2],
    /// The least time that the machine's ceilings allow.
    pub least: Option<LeastTime>,
    /// The kernels of each variant, in every process.
    pub kernels: &'a [[Vec<String>; 2]],
    /// What was wrong with the result after the timing.
    pub wrong: Option<&'a str>,
    /// What the times begin and end with, which tells what could have disturbed them.
    pub clock: Clock,
    /// Why the clock of the GPU was held down, if it was.
    pub throttled: &'a [String],
}

/// Judges a measurement. The verdict starts at AMBIGUOUS and must earn another one.
#[must_use]
pub fn judge(case: &Case<'_>) -> Judgement {
    let floor = noise_floor(case.controls);
    let mut reasons = invalidity(case);
    let verdict =
        if reasons.is_empty() { by_interval(case.estimate, floor) } else { Verdict::Invalid };
    if verdict == Verdict::Ambiguous {
        reasons.push(Reason::Undecided {
            floor: floor.exp_m1(),
            margin: same_margin(floor).exp_m1(),
            half_width: case.estimate.half_width().exp_m1(),
        });
    }
    reasons.extend(remarks(case, floor));
    Judgement { verdict, reasons }
}

fn by_interval(estimate: &Estimate, floor: f64) -> Verdict {
    let [log, low, high] = [estimate.ratio, estimate.low, estimate.high].map(f64::ln);
    if low > 0.0 && log > floor {
        Verdict::Faster
    } else if high < 0.0 && log < -floor {
        Verdict::Slower
    } else if low >= -same_margin(floor) && high <= same_margin(floor) {
        Verdict::Same
    } else {
        Verdict::Ambiguous
    }
}

/// Everything that makes a measurement unusable.
fn invalidity(case: &Case<'_>) -> Vec<Reason> {
    let Estimate { pairs, pairs_kept, ticks, seconds, .. } = *case.estimate;
    let mut reasons = Vec::new();
    let usable = case.controls.iter().filter(|control| !control.disturbed).count();
    if usable < CONTROLS {
        reasons.push(Reason::NoControl { usable, needed: CONTROLS });
    }
    if let Some(wrong) = case.wrong {
        reasons.push(Reason::WrongAfterTiming(wrong.to_owned()));
    }
    if case.estimate.mostly_disturbed {
        let disturbed = case.estimate.disturbed;
        reasons.push(Reason::MostlyDisturbed { pairs, pairs_kept, disturbed });
    }
    let limit = MOST_CONTROL_ERROR.ln_1p();
    let is_off = |control: &&NoiseFloor| {
        let width = (control.ratio_high / control.ratio_low).ln();
        control.ratio.ln().abs() > limit + width
    };
    if let Some(control) = case.controls.iter().find(is_off) {
        reasons.push(Reason::ControlOff(Box::new(control.clone())));
    }
    if let Some(kernels) = case.kernels.iter().find(|[_, fused]| fused.len() != 1) {
        reasons.push(Reason::FellBack(kernels[1].clone()));
    } else if let Some(other) = case.kernels.iter().find(|other| other[1] != case.kernels[0][1]) {
        reasons.push(Reason::FellBack(other[1].clone()));
    }
    if ticks < u64::from(Procedure::LEAST_TICKS) {
        reasons.push(Reason::TooFewTicks(ticks));
    }
    if let Some(least) = case.least {
        for (variant, time) in case.variants.into_iter().zip(seconds) {
            let least_us = match variant {
                Variant::Unfused => least.unfused_us,
                Variant::Fused => least.fused_us,
            };
            let median_us = time.median * 1e6;
            if median_us * LEAST_TIME_MARGIN < least_us {
                let variant = variant.name();
                reasons.push(Reason::FasterThanTheMachine { variant, median_us, least_us });
            }
        }
    }
    reasons
}

/// What a reader should know, whatever the verdict.
fn remarks(case: &Case<'_>, floor: f64) -> Vec<Reason> {
    let Estimate { ratio, processes, order_sensitivity, is_order_sensitive, disturbed, .. } =
        *case.estimate;
    let mut reasons = Vec::new();
    if case.planned_processes == 1 {
        reasons.push(Reason::WithinProcess);
    } else if processes < case.planned_processes as usize {
        let over_rounds = case.estimate.unit == Unit::Rounds;
        let planned = case.planned_processes;
        reasons.push(Reason::FewProcesses { processes, planned, over_rounds });
    }
    if let Some(ceiling) = case.ceiling.filter(|ceiling| ratio > ceiling * CEILING_MARGIN) {
        reasons.push(Reason::AboveCeiling { ceiling });
    }
    let is_much = |off: &f64| off.abs() > ORDER_SENSITIVE.max(2.0 * floor);
    if let Some(off) = order_sensitivity.filter(is_much).filter(|_| is_order_sensitive) {
        reasons.push(Reason::OrderSensitive(off.exp_m1()));
    }
    let mut seen = disturbed;
    let unseen = Cause::of_clock(case.clock).iter().filter(|one| one.count_of(&mut seen).is_none());
    let unseen: Vec<&'static str> = unseen.map(|cause| cause.name()).collect();
    if !unseen.is_empty() {
        reasons.push(Reason::Unobserved(unseen));
    }
    if !case.throttled.is_empty() {
        reasons.push(Reason::Throttled(case.throttled.to_vec()));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Quartiles;
    use fusion_cost_model::calibration::Disturbed;

    fn estimate([low, ratio, high]: [f64; 3]) -> Estimate {
        let quartiles = Quartiles { q1: 1e-3, median: 1e-3, q3: 1e-3 };
        Estimate {
            ratio,
            low,
            high,
            wide: [low, high],
            unit: Unit::Processes,
            seconds: [quartiles; 2],
            processes: 5,
            rounds: 40,
            pairs: 320,
            pairs_kept: 310,
            mostly_disturbed: false,
            ticks: 25_000,
            order_sensitivity: Some(0.0),
            is_order_sensitive: false,
            disturbed: all_seen(),
        }
    }

    fn all_seen() -> Disturbed {
        let none = Some(0);
        Disturbed {
            involuntary_switch: none,
            migration: none,
            run_delay: none,
            off_processor: none,
            page_fault: none,
            steal: none,
            cpu_pressure: none,
            clock_change: None,
        }
    }

    fn control([low, ratio, high]: [f64; 3]) -> NoiseFloor {
        NoiseFloor {
            problem: "add_relu/f32/m64.n1024".parse().unwrap(),
            backend: fusion_cost_model::Backend::Cpu,
            threads: 2,
            clock: Clock::Host,
            ratio,
            ratio_low: low,
            ratio_high: high,
            processes: 5,
            disturbed: false,
        }
    }

    fn quiet_controls() -> [NoiseFloor; CONTROLS] {
        [1, 2].map(|_| control([0.999, 1.0, 1.001]))
    }

    fn kernels() -> [Vec<String>; 2] {
        [vec!["add".to_owned(), "relu".to_owned()], vec!["add+relu".to_owned()]]
    }

    /// Judges a good measurement after `change` made it worse.
    fn judged(change: impl Fn(&mut Estimate, &mut Vec<[Vec<String>; 2]>)) -> Judgement {
        let mut estimate = estimate([1.15, 1.2, 1.25]);
        let mut kernels = vec![kernels(); 5];
        change(&mut estimate, &mut kernels);
        let controls = quiet_controls();
        judge(&Case { kernels: &kernels, controls: &controls, ..good(&estimate) })
    }

    fn good(estimate: &Estimate) -> Case<'_> {
        Case {
            estimate,
            planned_processes: 5,
            controls: &[],
            ceiling: Some(1.5),
            variants: Variant::ALL,
            least: Some(LeastTime { unfused_us: 900.0, fused_us: 800.0 }),
            kernels: &[],
            wrong: None,
            clock: Clock::Host,
            throttled: &[],
        }
    }

    fn codes(judgement: &Judgement) -> Vec<&'static str> {
        judgement.reasons.iter().map(|reason| reason.code().name()).collect()
    }

    #[test]
    fn verdicts_by_where_the_interval_lies() {
        for (interval, floor, expected) in [
            ([1.15, 1.20, 1.25], 0.01, Verdict::Faster),
            ([0.70, 0.75, 0.80], 0.01, Verdict::Slower),
            ([0.995, 1.0, 1.005], 0.005, Verdict::Same),
            ([0.985, 1.0, 1.015], 0.001, Verdict::Same),
            ([1.001, 1.009, 1.017], 0.001, Verdict::Same),
            ([1.001, 1.012, 1.023], 0.001, Verdict::Faster),
            ([0.999, 1.012, 1.025], 0.001, Verdict::Ambiguous),
            ([0.95, 1.10, 1.30], 0.01, Verdict::Ambiguous),
            // Excludes 1, but by less than the machine's noise.
            ([1.01, 1.02, 1.03], 0.05, Verdict::Same),
            ([1.01, 1.02, 1.09], 0.05, Verdict::Ambiguous),
            // Not beyond the noise of the machine, and clearly not nothing.
            ([1.18, 1.20, 1.22], 0.30, Verdict::Ambiguous),
            ([f64::NAN; 3], 0.01, Verdict::Ambiguous),
            ([0.0, 2.0, f64::INFINITY], 0.01, Verdict::Ambiguous),
        ] {
            let controls = [1, 2].map(|_| control([1.0 / (1.0 + floor), 1.0, 1.0 + floor]));
            let estimate = estimate(interval);
            let judgement = judge(&Case { controls: &controls, ceiling: None, ..good(&estimate) });
            assert_eq!(judgement.verdict, expected, "{interval:?} floor {floor}");
            let undecided = codes(&judgement).contains(&"undecided");
            assert_eq!(undecided, expected == Verdict::Ambiguous);
        }
    }

    #[test]
    fn a_good_measurement_needs_no_reasons() {
        let judgement = judged(|_, _| {});
        assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Faster, vec![]));
    }

    /// Each reason for INVALID: what fires it, and what comes near and does not.
    #[test]
    fn every_invalid_reason_fires_when_its_cause_is_there_and_not_before() {
        let fires = |judgement: Judgement, code| {
            assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Invalid, vec![code]));
        };
        let quiet = |judgement: Judgement| assert_eq!(judgement.verdict, Verdict::Faster);

        let wrong = estimate([1.15, 1.2, 1.25]);
        let controls = quiet_controls();
        let well_controlled = Case { controls: &controls, ..good(&wrong) };
        fires(judge(&Case { wrong: Some("off by 3"), ..well_controlled }), "wrong-after-timing");

        fires(judge(&Case { controls: &controls[1..], ..good(&wrong) }), "no-control");
        let mut disturbed = controls.clone();
        disturbed[0].disturbed = true;
        fires(judge(&Case { controls: &disturbed, ..good(&wrong) }), "no-control");
        quiet(judge(&well_controlled));

        fires(judged(|estimate, _| estimate.mostly_disturbed = true), "mostly-disturbed");
        quiet(judged(|estimate, _| estimate.pairs_kept = estimate.pairs / 2));

        let controlled = |low, ratio, high| {
            let controls = [control([0.999, 1.0, 1.001]), control([low, ratio, high])];
            judge(&Case { controls: &controls, ..good(&wrong) })
        };
        fires(controlled(1.038, 1.04, 1.042), "control-off");
        fires(controlled(0.959, 0.96, 0.961), "control-off");
        // Off in its centre, but not by more than its own noise.
        quiet(controlled(1.02, 1.04, 1.06));
        quiet(controlled(1.012, 1.015, 1.018));
        quiet(controlled(0.995, 1.0, 1.005));

        fires(judged(|_, kernels| kernels[3][1].push("relu".to_owned())), "fell-back");
        fires(judged(|_, kernels| kernels[3][1] = vec!["generic".to_owned()]), "fell-back");
        fires(judged(|_, kernels| kernels.iter_mut().for_each(|k| k[1].clear())), "fell-back");

        fires(judged(|estimate, _| estimate.ticks = 999), "too-few-ticks");
        quiet(judged(|estimate, _| estimate.ticks = 1000));

        // The ceilings allow 900 us unfused, and 800 us fused.
        fires(judged(|estimate, _| estimate.seconds[1].median = 727e-6), "faster-than-the-machine");
        fires(judged(|estimate, _| estimate.seconds[0].median = 817e-6), "faster-than-the-machine");
        quiet(judged(|estimate, _| estimate.seconds[0].median = 819e-6));
        quiet(judged(|estimate, _| estimate.seconds[1].median = 728e-6));
        // The fused variant against itself is not held against the limit of the unfused one.
        let fast = Estimate {
            seconds: [Quartiles { q1: 8e-4, median: 8e-4, q3: 8e-4 }; 2],
            ..wrong.clone()
        };
        let variants = [Variant::Fused; 2];
        quiet(judge(&Case { variants, controls: &controls, ..good(&fast) }));
    }

    #[test]
    fn several_causes_are_all_named() {
        let judgement = judged(|estimate, kernels| {
            estimate.ticks = 1;
            estimate.mostly_disturbed = true;
            kernels[0][1].clear();
        });
        assert_eq!(codes(&judgement), ["mostly-disturbed", "fell-back", "too-few-ticks"]);
    }

    #[test]
    fn remarks_do_not_change_the_verdict() {
        let remark = |change: fn(&mut Estimate)| {
            let judgement = judged(|estimate, _| change(estimate));
            assert_eq!(judgement.verdict, Verdict::Faster);
            codes(&judgement)
        };
        assert_eq!(remark(|estimate| estimate.processes = 1), ["few-processes"]);
        assert_eq!(remark(|estimate| estimate.processes = 4), ["few-processes"]);
        let quick = estimate([1.15, 1.2, 1.25]);
        let controls = quiet_controls();
        let quick = judge(&Case { planned_processes: 1, controls: &controls, ..good(&quick) });
        assert_eq!((quick.verdict, codes(&quick)), (Verdict::Faster, vec!["within-process"]));
        // The ceiling is 1.5.
        assert_eq!(remark(|estimate| estimate.ratio = 1.66), ["above-ceiling"]);
        assert!(remark(|estimate| estimate.ratio = 1.64).is_empty());
        let sensitive = |estimate: &mut Estimate| {
            estimate.order_sensitivity = Some(-0.06);
            estimate.is_order_sensitive = true;
        };
        assert_eq!(remark(sensitive), ["order-sensitive"]);
        assert!(remark(|estimate| estimate.order_sensitivity = Some(0.06)).is_empty());
        assert_eq!(remark(|estimate| estimate.disturbed.steal = None), ["unobserved"]);
    }

    #[test]
    fn only_what_can_disturb_a_clock_is_missed() {
        let controls = quiet_controls();
        let judged = |clock, disturbed, throttled: &[String]| {
            let estimate = Estimate { disturbed, ..estimate([1.15, 1.2, 1.25]) };
            let case = Case { clock, controls: &controls, throttled, ..good(&estimate) };
            judge(&case).reasons
        };
        let told = Disturbed { clock_change: Some(0), ..Disturbed::default() };
        assert_eq!(judged(Clock::Device, told, &[]), []);
        let blind = judged(Clock::Device, Disturbed::default(), &[]);
        assert_eq!(blind, [Reason::Unobserved(vec!["clock_change"])]);
        let host = Disturbed { clock_change: Some(0), ..all_seen() };
        assert_eq!(judged(Clock::LaunchInclusive, host, &[]), []);
        let [Reason::Unobserved(unseen)] = &judged(Clock::LaunchInclusive, told, &[])[..] else {
            panic!("the host's share of a launch was not seen")
        };
        assert_eq!(unseen[..], ["involuntary_switch", "run_delay", "page_fault", "steal"]);
        let throttled = ["sw-power-cap".to_owned()];
        let reasons = judged(Clock::Device, told, &throttled);
        assert_eq!(reasons, [Reason::Throttled(throttled.to_vec())]);
    }

    #[test]
    fn reasons_have_a_code_a_finding_and_an_advice() {
        let disturbed = Disturbed { migration: Some(3), steal: Some(0), ..Disturbed::default() };
        for (reason, text) in [
            (
                Reason::MostlyDisturbed { pairs: 8, pairs_kept: 3, disturbed },
                "mostly-disturbed: only 3 of 8 pairs were undisturbed (migration 3); close",
            ),
            (
                Reason::ControlOff(Box::new(control([1.02, 1.03, 1.04]))),
                "control-off: add_relu/f32/m64.n1024 against itself came out as 1.030 [1.020, ",
            ),
            (Reason::FellBack(vec!["a".to_owned(), "b".to_owned()]), "as a; b; nothing was fused"),
            (Reason::TooFewTicks(12), "too-few-ticks: the shortest sample had 12 ticks"),
            (Reason::OrderSensitive(0.07), "a speedup that is +7.0 % off"),
            (Reason::Unobserved(vec!["steal", "migration"]), "does not show steal, migration;"),
            (
                Reason::FewProcesses { processes: 2, planned: 5, over_rounds: true },
                "few-processes: 2 of 5 processes were measured, so that the interval is over rounds",
            ),
            (Reason::NoControl { usable: 1, needed: 2 }, "no-control: 1 of 2 A/A runs"),
            (Reason::Throttled(vec!["sw-power-cap".to_owned()]), "held down (sw-power-cap); the"),
        ] {
            let written = format!("{}: {reason}", reason.code());
            assert!(written.contains(text), "{written}");
            assert!(written.ends_with(reason.advice()));
        }
    }
}
