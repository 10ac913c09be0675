mod states;

use super::*;
use crate::measure::{Quartiles, VariantTime};
use fusion_cost_model::Implementation;
use fusion_cost_model::calibration::{Disturbed, KernelFailure};

fn estimate([low, ratio, high]: [f64; 3]) -> Estimate {
    let samples = Quartiles { q1: 1e-3, median: 1e-3, q3: 1e-3 };
    let time = VariantTime { seconds: 1e-3, low: 1e-3, high: 1e-3, samples };
    Estimate {
        ratio,
        low,
        high,
        standard_error: 0.0,
        unit: Unit::Processes,
        correlation: 0.0,
        changes_slowly: false,
        states: vec![1],
        by_state: Vec::new(),
        times: [time; 2],
        by_process: vec![[1e-3; 2]; 5],
        processes: 5,
        rounds: 40,
        pairs: 320,
        pairs_kept: 310,
        mostly_disturbed: false,
        ticks: 25_000,
        order_sensitivity: Some(0.0),
        is_order_sensitive: false,
        change_within: None,
        disturbed: all_seen(),
        clock_changes: [0; 2],
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
        implementation: Implementation::Native,
        own_tensors: true,
        ratio,
        ratio_low: low,
        ratio_high: high,
        standard_error: 0.001,
        processes: 5,
        disturbed: false,
    }
}

fn quiet_controls() -> [NoiseFloor; 2] {
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

static LEAST: LeastTime = LeastTime { steps_us: Vec::new(), unfused_us: 900.0, fused_us: 800.0 };

fn good(estimate: &Estimate) -> Case<'_> {
    Case {
        problem: "add_relu/f32/m64.n1024".parse().unwrap(),
        estimate,
        planned_processes: 5,
        own_control: None,
        controls: &[],
        ceiling: Some(1.5),
        variants: Variant::ALL,
        least: Some(&LEAST),
        kernels: &[],
        wrong: None,
        clock: Clock::Host,
        throttled: &[],
        core: None,
        failed_cores: &[],
        surroundings: &[],
        states: &[],
    }
}

#[test]
fn a_single_op_is_judged_by_itself_and_judges_no_other() {
    let estimate = estimate([1.0; 3]);
    let kernels = vec![[vec!["relu".to_owned()], vec!["relu".to_owned()]]; 5];
    let problem = "relu/f32/m64.n1024".parse().unwrap();
    let [good_copy, bad_copy] = [[0.99, 1.0, 1.01], [1.09, 1.1, 1.11]]
        .map(|ratio| NoiseFloor { problem, ..control(ratio) });
    let case = Case { problem, kernels: &kernels, ceiling: Some(1.0), ..good(&estimate) };
    let of = |own_control| judge(&Case { own_control, ..case });
    for own_control in [None, Some(&good_copy)] {
        let judgement = of(own_control);
        assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Single, vec![]));
    }
    let judgement = of(Some(&bad_copy));
    assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Invalid, vec!["control-off"]));
    // The others hold it against the noise floor, and nothing else.
    let controls = [control([0.999, 1.0, 1.001]), bad_copy];
    let judgement = judge(&Case { controls: &controls, kernels: &[], ..good(&estimate) });
    assert!(!codes(&judgement).contains(&"control-off"), "{judgement:?}");
    assert!(noise_floor(&controls) > 0.1);
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
        ([1.005, 1.012, 1.02], 0.03, Verdict::Same),
        // The same, by too much to be nothing.
        ([1.01, 1.025, 1.03], 0.05, Verdict::Ambiguous),
        ([1.01, 1.02, 1.09], 0.05, Verdict::Ambiguous),
        // Not beyond the noise of the machine, and clearly not nothing.
        ([1.18, 1.20, 1.22], 0.30, Verdict::Ambiguous),
        ([f64::NAN; 3], 0.01, Verdict::Ambiguous),
        ([0.0, 2.0, f64::INFINITY], 0.01, Verdict::Ambiguous),
    ] {
        // Off by so much that 95 % of such a noise is the floor, with intervals that allow for it.
        let off = (1.0_f64 + floor).powf(1.0 / 1.96);
        let controls = [1, 2].map(|_| control([off / 1.3, off, off * 1.3]));
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

    fires(judge(&good(&wrong)), "no-control");
    quiet(judge(&Case { controls: &controls[1..], ..good(&wrong) }));
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
    fires(
        judged(|estimate, _| estimate.times[1].samples.median = 727e-6),
        "faster-than-the-machine",
    );
    fires(
        judged(|estimate, _| estimate.times[0].samples.median = 817e-6),
        "faster-than-the-machine",
    );
    quiet(judged(|estimate, _| estimate.times[0].samples.median = 819e-6));
    quiet(judged(|estimate, _| estimate.times[1].samples.median = 728e-6));
    // The fused variant against itself is not held against the limit of the unfused one.
    let mut fast = wrong.clone();
    fast.times.iter_mut().for_each(|time| time.samples.median = 8e-4);
    let variants = [Variant::Fused; 2];
    quiet(judge(&Case { variants, controls: &controls, ..good(&fast) }));
}

#[test]
fn a_copy_of_the_unfused_variant_has_as_many_kernels() {
    let (estimate, controls) = (estimate([1.15, 1.2, 1.25]), quiet_controls());
    let [unfused, _] = kernels();
    let of_copies = |copies: &[[Vec<String>; 2]]| {
        let variants = [Variant::Unfused; 2];
        codes(&judge(&Case { variants, kernels: copies, controls: &controls, ..good(&estimate) }))
    };
    let copies = [unfused.clone(), unfused.clone()];
    assert!(of_copies(&[copies.clone(), copies.clone()]).is_empty());
    let other = [unfused, vec!["add".to_owned()]];
    assert_eq!(of_copies(&[copies, other]), ["fell-back"], "other kernels in one process");
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
    // What must not be used says nothing of the roofline.
    let invalid = judged(|estimate, _| (estimate.ratio, estimate.mostly_disturbed) = (1.66, true));
    assert_eq!(codes(&invalid), ["mostly-disturbed"]);
    let sensitive = |estimate: &mut Estimate| {
        estimate.order_sensitivity = Some(-0.06);
        estimate.is_order_sensitive = true;
    };
    assert_eq!(remark(sensitive), ["order-sensitive"]);
    assert!(remark(|estimate| estimate.order_sensitivity = Some(0.06)).is_empty());
    let slow =
        |estimate: &mut Estimate| (estimate.correlation, estimate.changes_slowly) = (0.7, true);
    assert_eq!(remark(slow), ["slow-change"]);
    assert!(remark(|estimate| estimate.correlation = 0.7).is_empty(), "that of the run");
    assert_eq!(remark(|estimate| estimate.change_within = Some(-0.011)), ["warming-up"]);
    assert!(remark(|estimate| estimate.change_within = Some(-0.009)).is_empty());
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
fn a_clock_that_changed_around_most_samples_of_a_variant_is_said() {
    let controls = quiet_controls();
    let reasons = |clock_changes| {
        let estimate = Estimate { clock_changes, ..estimate([1.15, 1.2, 1.25]) };
        let judged = judge(&Case { controls: &controls, ..good(&estimate) });
        assert_eq!(judged.verdict, Verdict::Faster);
        judged.reasons
    };
    assert_eq!(reasons([0; 2]), []);
    assert_eq!(reasons([160, 160]), [], "half of 320");
    let expected = Reason::ClockChanged { samples: [12, 161], pairs: 320 };
    let text = expected.to_string();
    assert!(
        text.starts_with(
            "the clock of the GPU changed by more than 2 % around 12 of 320 samples of"
        ),
        "{text}"
    );
    assert!(text.contains(" unfused variant and 161 of the fused; "), "{text}");
    assert_eq!(reasons([12, 161]), [expected]);
}

#[test]
fn a_core_below_the_best_is_said_and_changes_no_verdict() {
    let (controls, kernels) = (quiet_controls(), vec![kernels(); 5]);
    let estimate = estimate([1.15, 1.2, 1.25]);
    let best = Case { kernels: &kernels, controls: &controls, ..good(&estimate) };
    let best = Case { core: Some(Core::Wgmma), ..best };
    let failed = [FailedCore {
        core: Core::Wgmma,
        failure: KernelFailure::Hung,
        reason: "no answer in 60 s".to_owned(),
    }];
    let lower = Case { core: Some(Core::Mma), failed_cores: &failed, ..best };
    let [best, lower] = [best, lower].map(|case| judge(&case));
    assert_eq!((best.verdict, lower.verdict), (Verdict::Faster, Verdict::Faster));
    let expected = Reason::LowerCore { core: Core::Mma, failed: failed.to_vec() };
    assert_eq!(lower.reasons.len(), best.reasons.len() + 1);
    assert_eq!(lower.reasons.last(), Some(&expected));
    let text = expected.to_string();
    assert!(text.starts_with("measured on mma; wgmma: hung: no answer in 60 s; the"), "{text}");
}

#[test]
fn what_disturbed_a_run_is_added_up_over_its_estimates() {
    let of = |pairs_kept, steal, run_delay| {
        let disturbed = Disturbed { steal, run_delay, ..Disturbed::default() };
        Estimate { pairs: 10, pairs_kept, disturbed, ..estimate([1.15, 1.2, 1.25]) }
    };
    let estimates = [of(2, Some(8), None), of(9, Some(0), Some(1)), of(0, Some(9), Some(3))];
    let reason = Reason::mostly_disturbed(&estimates);
    let disturbed = Disturbed { steal: Some(17), run_delay: Some(4), ..Disturbed::default() };
    assert_eq!(reason, Reason::MostlyDisturbed { pairs: 30, pairs_kept: 11, disturbed });
    let nothing = Reason::mostly_disturbed(&[]);
    assert!(nothing.to_string().starts_with("only 0 of 0 pairs"), "{nothing}");
}

#[test]
fn reasons_have_a_code_a_finding_and_an_advice() {
    let disturbed = Disturbed { migration: Some(3), steal: Some(0), ..Disturbed::default() };
    let stolen = Disturbed { run_delay: Some(1), steal: Some(4), ..Disturbed::default() };
    for (reason, text) in [
        (
            Reason::MostlyDisturbed { pairs: 8, pairs_kept: 3, disturbed: stolen },
            "undisturbed (run_delay 1, steal 4); the hypervisor ran other guests meanwhile: measure",
        ),
        (
            Reason::MostlyDisturbed { pairs: 8, pairs_kept: 3, disturbed },
            "mostly-disturbed: only 3 of 8 pairs were undisturbed (migration 3); close",
        ),
        (
            Reason::ControlOff(Box::new(control([1.02, 1.03, 1.04]))),
            "control-off: add_relu/f32/m64.n1024 against itself came out as 1.030 [1.020, ",
        ),
        (Reason::FellBack(vec!["a".to_owned(), "b".to_owned()]), "as a; b; nothing was fused"),
        (Reason::TooFewTicks(12), "too-few-ticks: the shortest samples had 12 ticks"),
        (Reason::OrderSensitive(0.07), "a speedup that is +7.0 % off"),
        (
            Reason::SlowChange(0.712),
            "slow-change: the speedup of a process resembles that of the one before (correlation 0.71",
        ),
        (
            Reason::WarmingUp((-0.021_f64).ln_1p()),
            "warming-up: the speedup is -2.1 % off at the end of a process from what it is at its",
        ),
        (Reason::Unobserved(vec!["steal", "migration"]), "does not show steal, migration;"),
        (
            Reason::FewProcesses { processes: 2, planned: 5, over_rounds: true },
            "few-processes: 2 of 5 processes had undisturbed pairs, so that the interval is over rounds",
        ),
        (Reason::NoControl, "no-control: no A/A run can be used"),
        (
            Reason::ShortSpan { seconds: 3.9, wanted: 120.0 },
            "short-span: all processes lie within 4 s, not 120 s; a state",
        ),
        (
            Reason::Neighbour { processors: 0.97, lowest_triad_gb_per_s: Some(25.2) },
            "neighbour: other programs kept 1.0 processors busy, and memory gave 25 GB/s at its",
        ),
        (Reason::Throttled(vec!["sw-power-cap".to_owned()]), "held down (sw-power-cap); the"),
    ] {
        let written = format!("{}: {reason}", reason.code());
        assert!(written.contains(text), "{written}");
        assert!(written.ends_with(reason.advice()));
    }
}
