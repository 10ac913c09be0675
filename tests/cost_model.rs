//! What the cost model answers from a file.

use crate::consistent::make_consistent;
use fusion_cost_model::calibration::{
    HardwareCalibration, MachineState, StateSpeedup, Timing, Verdict,
};
use fusion_cost_model::{
    Backend, CacheState, Clock, DType, Decision, Evidence, FusionCostModel, Policy, Problem,
    Target, WhenUnknown,
};

fn calibration() -> HardwareCalibration {
    HardwareCalibration::from_toml(include_str!("data/example.toml")).unwrap()
}

fn model() -> FusionCostModel {
    FusionCostModel::new(calibration())
}

fn problem(text: &str) -> Problem {
    text.parse().unwrap()
}

const TARGET: Target = Target::cpu(2);
const MEASURED: &str = "add_relu/f32/m4096.n1024";
const UNKNOWN: &str = "conv_bn/f32/n1.c3.h8.w8.k4.r3.s3";

/// The example with another interval for the measured problem.
fn with_speedup(low: f64, value: f64, high: f64) -> FusionCostModel {
    let mut calibration = calibration();
    for record in &mut calibration.records {
        if record.problem == problem(MEASURED) {
            (record.speedup_low, record.speedup_factor, record.speedup_high) = (low, value, high);
        }
    }
    FusionCostModel::new(calibration)
}

#[test]
fn measured_points_come_back_verbatim_under_every_name() {
    let model = model();
    let record =
        calibration().records.into_iter().find(|r| r.problem == problem(MEASURED)).unwrap();
    for name in [MEASURED, "Add_ReLU/fp32/m4096.n1024", "aten::add+nn.ReLU/float32/n1024.m4096"] {
        let estimate = model.on(TARGET).estimate(&problem(name));
        assert_eq!(estimate.evidence(), Evidence::Measured);
        assert_eq!(estimate.record(), Some(&record));
        let speedup = estimate.speedup().unwrap();
        assert_eq!(speedup.value, record.speedup_factor);
        assert_eq!((speedup.low, speedup.high), (record.speedup_low, record.speedup_high));
        let unfused = estimate.unfused_ms().unwrap();
        assert_eq!(unfused.value, record.unfused_latency_ms);
        // The file has no intervals of its times, but quartiles.
        let Timing { q1_ms, q3_ms, .. } = record.unfused_timing;
        assert_eq!((unfused.low, unfused.high), (q1_ms, q3_ms));
        assert_eq!(estimate.fused_ms().unwrap().value, record.fused_latency_ms);
        assert_eq!(estimate.nearest().collect::<Vec<_>>(), [&record]);
        assert_eq!(estimate.octaves_beyond(), 0.0);
    }
}

#[test]
fn another_target_is_never_answered() {
    let model = model();
    let others = [
        Target::cpu(1),
        Target::gpu(Backend::Cuda, Clock::Host).with_threads(2),
        TARGET.with_cache_state(CacheState::Cold),
    ];
    for target in others {
        let estimate = model.on(target).estimate(&problem(MEASURED));
        assert_eq!((estimate.evidence(), estimate.speedup()), (Evidence::Unknown, None));
    }
    let half = model.on(TARGET).estimate(&problem("add_relu/f16/m4096.n1024"));
    assert_eq!(half.evidence(), Evidence::Unknown);
    assert_eq!(model.targets(), [TARGET]);
}

#[test]
fn decisions_compare_the_interval_with_the_threshold() {
    let policy = Policy::by_a_fifth(WhenUnknown::Error);
    for (low, value, high, word, fuse) in [
        (1.2, 1.3, 1.4, "Fuse", true),
        (0.9, 1.0, 1.19, "Keep", false),
        (1.1, 1.25, 1.4, "TooClose", true),
        (1.1, 1.15, 1.4, "TooClose", false),
    ] {
        let model = with_speedup(low, value, high);
        let decision = model.on(TARGET).decide(&problem(MEASURED), &policy).unwrap();
        assert!(format!("{decision:?}").starts_with(word), "{low} {value} {high}: {decision:?}");
        assert_eq!(decision.should_fuse(), fuse, "{low} {value} {high}");
        assert_eq!(decision.estimate().speedup().unwrap().value, value);
    }
}

#[test]
fn the_unknown_is_decided_by_the_caller() {
    let model = model();
    let on_target = model.on(TARGET);
    let decide = |when_unknown, threshold| {
        let policy = Policy::new(when_unknown).with_threshold(threshold);
        let decision = on_target.decide(&problem(UNKNOWN), &policy)?;
        assert!(matches!(decision, Decision::Unknown { .. }), "{decision:?}");
        Ok::<bool, fusion_cost_model::Error>(decision.should_fuse())
    };
    assert!(!decide(WhenUnknown::Conservative, 1.2).unwrap());
    assert!(decide(WhenUnknown::Optimistic, 1.2).unwrap());
    let error = decide(WhenUnknown::Error, 1.2).unwrap_err();
    assert!(error.is_undecided());
    assert_eq!(
        error.to_string(),
        "nothing was measured for conv_bn/f32/n1.c3.h8.w8.k4.r3.s3 on cpu, 2 threads, warm \
         caches, and the policy is not to guess"
    );
}

#[test]
fn a_roofline_decides_only_where_the_policy_says_so() {
    let model = model();
    let on_target = model.on(TARGET);
    let estimate = on_target.estimate(&problem(UNKNOWN));
    assert_eq!(estimate.evidence(), Evidence::Roofline);
    assert_eq!((estimate.record(), estimate.nearest().count()), (None, 0));
    let speedup = estimate.speedup().unwrap();
    // Fusion gained a part of what the ceilings allow, elsewhere.
    let ceiling = on_target.roofline_speedup(&problem(UNKNOWN)).unwrap();
    assert!(1.0 < speedup.value && speedup.value < ceiling, "{} {ceiling}", speedup.value);
    let decide = |when_unknown, threshold| {
        let policy = Policy::new(when_unknown).with_threshold(threshold);
        on_target.decide(&problem(UNKNOWN), &policy).unwrap()
    };
    let is_close = |decision| matches!(decision, Decision::TooClose { .. });
    for (off, fuse) in [(-0.01, true), (0.01, false)] {
        let decision = decide(WhenUnknown::Roofline, speedup.value + off);
        assert!(is_close(decision) && decision.should_fuse() == fuse, "{decision:?}");
    }
    assert!(matches!(decide(WhenUnknown::Roofline, 9.0), Decision::Keep(_)));
    let unknown = decide(WhenUnknown::Optimistic, 9.0);
    assert!(matches!(unknown, Decision::Unknown { fuse: true, .. }));
    assert_eq!(unknown.estimate(), estimate, "what it does not decide by can be looked at");
    // A single op has no other variant, which needs no measurement.
    let single = on_target.estimate(&problem("relu/f32/m64.n64")).speedup().unwrap();
    assert_eq!([single.low, single.value, single.high], [1.0; 3]);
}

#[test]
fn invalid_records_are_ignored() {
    let mut calibration = calibration();
    for record in &mut calibration.records {
        record.verdict = Verdict::Invalid;
    }
    let model = FusionCostModel::new(calibration);
    assert_eq!(model.on(TARGET).estimate(&problem(MEASURED)).evidence(), Evidence::Roofline);
    let left_out = |target, text| model.on(target).left_out(&problem(text));
    let record = left_out(TARGET, MEASURED).expect("it is in the file");
    assert_eq!((record.problem, record.verdict), (problem(MEASURED), Verdict::Invalid));
    assert_eq!(left_out(TARGET, UNKNOWN), None);
    assert_eq!(left_out(Target::cpu(4), MEASURED), None);
    let valid = self::model();
    assert_eq!(valid.on(TARGET).left_out(&problem(MEASURED)), None);
    assert_eq!(model.on(TARGET).fusion_benefit("add_relu", DType::F32).unwrap(), None);
    assert_eq!(model.targets(), [TARGET]);
}

#[test]
fn a_target_says_its_threads() {
    assert_eq!(Target::cpu(1).to_string(), "cpu, 1 thread, warm caches");
    assert_eq!(TARGET.to_string(), "cpu, 2 threads, warm caches");
}

#[test]
fn two_neighbours_are_one_question() {
    let model = model();
    let on_target = model.on(TARGET);
    let [add, relu] = ["add/f32/m4096.n1024", "relu/f32/m4096.n1024"].map(problem);
    let speedup = on_target.estimate(&problem(MEASURED)).speedup().unwrap();
    let policy = Policy::new(WhenUnknown::Error);
    let below = policy.with_threshold(speedup.low - 0.01);
    let above = policy.with_threshold(speedup.high + 0.01);
    assert!(on_target.should_fuse(&add, &relu, &below).unwrap());
    assert!(!on_target.should_fuse(&add, &relu, &above).unwrap());

    let other = problem("relu/f32/m1024.n4096");
    assert!(on_target.should_fuse(&add, &other, &policy).unwrap_err().is_not_one_kernel());
    let unmeasured = on_target.should_fuse(&relu, &add, &policy).unwrap_err();
    assert!(unmeasured.is_undecided(), "{unmeasured}");
    let optimistic = Policy::new(WhenUnknown::Optimistic);
    assert!(on_target.should_fuse(&relu, &add, &optimistic).unwrap());
}

#[test]
fn the_questions_without_sizes() {
    let model = model();
    let on_target = model.on(TARGET);
    // Two sizes of linear_bias_relu: the geometric mean and the extremes.
    let speedups: Vec<f64> = calibration()
        .records
        .iter()
        .filter(|record| record.fusion_pattern == "linear_bias_relu")
        .map(|record| record.speedup_factor)
        .collect();
    let benefit = on_target.fusion_benefit("Linear_Bias_ReLU", DType::F32).unwrap().unwrap();
    assert!((benefit.mean - (speedups[0] * speedups[1]).sqrt()).abs() < 1e-12);
    assert_eq!(benefit.least, speedups[0].min(speedups[1]));
    assert_eq!(benefit.largest, speedups[0].max(speedups[1]));
    assert_eq!(benefit.sizes, 2);
    assert_eq!(on_target.fusion_benefit("conv_bn", DType::F32).unwrap(), None);
    let error = on_target.fusion_benefit("conv_bm", DType::F32).unwrap_err();
    assert!(error.to_string().contains("conv_bn"), "{error}");

    let one_thread = model.on(Target::cpu(1));
    assert_eq!(one_thread.fusion_benefit("add_relu", DType::F32).unwrap(), None);
    assert_eq!(on_target.fusion_benefit("add_relu", DType::F16).unwrap(), None);

    let ask = |first, second, policy: Policy| {
        on_target.should_fuse_by_name(first, second, DType::F32, &policy)
    };
    let careful = Policy::new(WhenUnknown::Conservative);
    assert!(ask("add", "relu", careful.with_threshold(1.0)).unwrap());
    assert!(!ask("add", "relu", careful.with_threshold(9.0)).unwrap());
    assert!(ask("linear_bias", "ReLU", careful.with_threshold(0.5)).unwrap());
    assert!(!ask("conv2d", "batch_norm", careful).unwrap());
    assert!(ask("conv2d", "bn", Policy::new(WhenUnknown::Optimistic)).unwrap());
    let refused = ask("conv2d", "bn", Policy::new(WhenUnknown::Error)).unwrap_err();
    assert!(refused.is_undecided(), "{refused}");
    assert!(ask("relu", "linear", careful).unwrap_err().is_not_one_kernel());
    assert!(ask("relu", "linaer", careful).unwrap_err().is_unknown_name());
}

#[test]
fn the_expected_hardware_is_checked() {
    assert!(model().expecting_hardware("intel-xeon-processor").is_ok());
    let error = model().expecting_hardware("i7-12700K").unwrap_err();
    assert!(error.is_hardware_mismatch());
    assert!(error.to_string().contains("not of i7-12700K"), "{error}");
}

#[test]
fn it_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<FusionCostModel>();
}

fn state(id: u32, handoff_us: f64) -> MachineState {
    let (handoff_us, triad_range) = (Some(handoff_us), [50.0, 60.0]);
    MachineState { id, handoff_us, triad_gb_per_s: 55.0, triad_range, processes: 5 }
}

fn in_state(state: u32, speedup_factor: f64) -> StateSpeedup {
    let (speedup_low, speedup_high) = (speedup_factor / 1.25, speedup_factor * 1.25);
    StateSpeedup { state, processes: 2, speedup_factor, speedup_low, speedup_high }
}

/// A machine with two states: one record met both and depends on them, two met the first alone.
fn with_states() -> HardwareCalibration {
    let mut calibration = calibration();
    calibration.states = vec![state(1, 0.11), state(2, 0.57)];
    let [both, first, third] = &mut calibration.records[..] else { panic!("three records") };
    both.states = vec![1, 2];
    both.interval_method = "95 % t intervals over processes, over states of the machine".to_owned();
    both.by_state = vec![in_state(1, 1.2), in_state(2, 1.8)];
    both.by_state[0].processes = both.processes - both.by_state[1].processes;
    (both.speedup_low, both.speedup_factor, both.speedup_high) =
        (1.2 / 1.25, (1.2_f64 * 1.8).sqrt(), 1.8 * 1.25);
    first.states = vec![1];
    third.states = vec![1];
    let mut of_second = calibration.ceilings[0].clone();
    calibration.ceilings[0].state = Some(1);
    of_second.state = Some(2);
    of_second.ceilings.launch_us *= 100.0;
    calibration.ceilings.push(of_second);
    let peak = calibration.hardware.peaks[0].clone();
    calibration.hardware.peaks.push(peak);
    make_consistent(&mut calibration);
    calibration
}

#[test]
fn a_state_of_the_machine_is_matched_or_the_interval_is_wider() {
    let calibration = with_states();
    let text = calibration.to_toml().unwrap();
    assert_eq!(HardwareCalibration::from_toml(&text).unwrap(), calibration);
    let [both, first, _] = calibration.records.clone().try_into().unwrap();
    let model = FusionCostModel::new(calibration);
    let ask = |state: Option<u32>, problem: &Problem| {
        let on = model.on(TARGET);
        let on = state.map_or(on, |state| on.in_state(state).unwrap());
        let speedup = on.estimate(problem).speedup().unwrap();
        [speedup.low, speedup.value, speedup.high]
    };
    let over_both = [both.speedup_low, both.speedup_factor, both.speedup_high];
    assert_eq!(ask(None, &both.problem), over_both);
    for (asked, value) in [(1, 1.2), (2, 1.8)] {
        assert_eq!(ask(Some(asked), &both.problem), [value / 1.25, value, value * 1.25]);
    }
    let as_measured = [first.speedup_low, first.speedup_factor, first.speedup_high];
    assert_eq!(ask(None, &first.problem), as_measured);
    assert_eq!(ask(Some(1), &first.problem), as_measured);
    // It was not measured in the second state: 1.96 times what the other record differs by, and as if
    // three more did so by 5 %.
    let [low, value, high] = ask(Some(2), &first.problem);
    let squares = 1.5_f64.ln().powi(2) + 3.0 * 0.05 * 0.05;
    let wider = (1.959_964 * (squares / 4.0).sqrt()).exp();
    assert_eq!(value, as_measured[1]);
    assert!((as_measured[0] / low - wider).abs() < 1e-5, "{low}");
    assert!((high / as_measured[2] - wider).abs() < 1e-5, "{high}");
    let error = model.on(TARGET).in_state(3).unwrap_err();
    assert!(error.is_invalid_question());
    let text = "the calibration has no state 3 of the machine; it has the states 1 to 2";
    assert_eq!(error.to_string(), text);
    // The rooflines are those of the state, too: launches are far longer in the second.
    let small = problem("add_relu/f32/m8.n8");
    let roofline =
        |state| model.on(TARGET).in_state(state).unwrap().roofline_speedup(&small).unwrap();
    assert!(roofline(2) > roofline(1), "{} {}", roofline(2), roofline(1));
}

#[test]
fn a_file_names_only_states_that_it_has() {
    for (change, expected) in [
        (
            (|all| all.records[0].states.push(3)) as fn(&mut HardwareCalibration),
            "state 3 is named, and there are 2 states",
        ),
        (|all| all.ceilings[0].state = Some(0), "state 0 is named"),
        (|all| all.states[1].id = 1, "it is 1; states are numbered from 1"),
        (|all| all.states[0].triad_gb_per_s = f64::NAN, "triad_gb_per_s"),
        (|all| all.records[0].by_state[0].speedup_low = 9.0, "is not in its interval"),
        (|all| all.noise[0].standard_error = -1.0, "it must be a number of at least 0"),
    ] {
        let mut calibration = with_states();
        change(&mut calibration);
        let error = HardwareCalibration::from_toml(&calibration.to_toml().unwrap()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
