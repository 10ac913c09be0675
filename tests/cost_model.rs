//! What the cost model answers from a file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use fusion_cost_model::calibration::{HardwareCalibration, Verdict};
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
        assert_eq!(estimate.unfused_ms(), Some(record.unfused_latency_ms));
        assert_eq!(estimate.fused_ms(), Some(record.fused_latency_ms));
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
    let policy = Policy::new(WhenUnknown::Error);
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
    let roofline = on_target.roofline_speedup(&problem(UNKNOWN)).unwrap();
    assert!(decide(WhenUnknown::Roofline, roofline - 0.01).unwrap());
    assert!(!decide(WhenUnknown::Roofline, roofline + 0.01).unwrap());
}

#[test]
fn invalid_records_are_ignored() {
    let mut calibration = calibration();
    for record in &mut calibration.records {
        record.verdict = Verdict::Invalid;
    }
    let model = FusionCostModel::new(calibration);
    assert_eq!(model.on(TARGET).estimate(&problem(MEASURED)).evidence(), Evidence::Unknown);
    assert_eq!(model.on(TARGET).fusion_benefit("add_relu", DType::F32).unwrap(), None);
    assert_eq!(model.targets(), [TARGET]);
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
