//! What the cost model answers from a file.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use fusion_cost_model::calibration::{HardwareCalibration, Verdict};
use fusion_cost_model::model::{
    Action, Evidence, FusionCostModel, Policy, SizelessError, Target, WhenUnknown,
};
use fusion_cost_model::{Backend, CacheState, DType, Problem};

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
        let estimate = model.estimate(&problem(name), TARGET);
        assert_eq!(estimate.evidence, Evidence::Measured);
        let measured = estimate.measured.unwrap();
        assert_eq!(measured.speedup.value, record.speedup_factor);
        assert_eq!(measured.speedup.low, record.speedup_low);
        assert_eq!(measured.unfused_ms.value, record.unfused_latency_ms);
        assert_eq!(measured.fused_ms.value, record.fused_latency_ms);
    }
}

#[test]
fn another_target_is_never_answered() {
    let model = model();
    let others = [
        Target::cpu(1),
        Target { backend: Backend::Cuda, ..TARGET },
        Target { cache_state: CacheState::Cold, ..TARGET },
    ];
    for target in others {
        let estimate = model.estimate(&problem(MEASURED), target);
        assert_eq!((estimate.evidence, estimate.measured), (Evidence::Unknown, None));
    }
    let half = model.estimate(&problem("add_relu/f16/m4096.n1024"), TARGET);
    assert_eq!(half.evidence, Evidence::Unknown);
}

#[test]
fn decisions_compare_the_interval_with_the_threshold() {
    let policy = Policy::new(WhenUnknown::Error);
    for (low, value, high, action, fuse) in [
        (1.2, 1.3, 1.4, Action::Fuse, Some(true)),
        (0.9, 1.0, 1.19, Action::Keep, Some(false)),
        (1.1, 1.25, 1.4, Action::TooClose, Some(true)),
        (1.1, 1.15, 1.4, Action::TooClose, Some(false)),
    ] {
        let model = with_speedup(low, value, high);
        let decision = model.decide(&problem(MEASURED), TARGET, &policy);
        assert_eq!((decision.action, decision.fuse), (action, fuse), "{low} {value} {high}");
    }
}

#[test]
fn the_unknown_is_decided_by_the_caller() {
    let model = model();
    let decide = |when_unknown, threshold| {
        let policy = Policy::new(when_unknown).with_threshold(threshold);
        let decision = model.decide(&problem(UNKNOWN), TARGET, &policy);
        assert_eq!(decision.action, Action::Unknown);
        decision.fuse
    };
    assert_eq!(decide(WhenUnknown::Conservative, 1.2), Some(false));
    assert_eq!(decide(WhenUnknown::Optimistic, 1.2), Some(true));
    assert_eq!(decide(WhenUnknown::Error, 1.2), None);
    let roofline = model.roofline_speedup(&problem(UNKNOWN), TARGET).unwrap();
    assert_eq!(decide(WhenUnknown::Roofline, roofline - 0.01), Some(true));
    assert_eq!(decide(WhenUnknown::Roofline, roofline + 0.01), Some(false));
}

#[test]
fn invalid_records_are_ignored() {
    let mut calibration = calibration();
    for record in &mut calibration.records {
        record.verdict = Verdict::Invalid;
    }
    let model = FusionCostModel::new(calibration);
    assert_eq!(model.estimate(&problem(MEASURED), TARGET).evidence, Evidence::Unknown);
    assert_eq!(model.fusion_benefit("add_relu", DType::F32, TARGET).unwrap(), None);
}

#[test]
fn the_questions_without_sizes() {
    let model = model();
    // Two sizes of linear_bias_relu: the geometric mean and the extremes.
    let speedups: Vec<f64> = calibration()
        .records
        .iter()
        .filter(|record| record.fusion_pattern == "linear_bias_relu")
        .map(|record| record.speedup_factor)
        .collect();
    let benefit = model.fusion_benefit("Linear_Bias_ReLU", DType::F32, TARGET).unwrap().unwrap();
    assert!((benefit.value - (speedups[0] * speedups[1]).sqrt()).abs() < 1e-12);
    assert_eq!(benefit.low, speedups[0].min(speedups[1]));
    assert_eq!(benefit.high, speedups[0].max(speedups[1]));
    assert_eq!(model.fusion_benefit("conv_bn", DType::F32, TARGET).unwrap(), None);
    assert!(
        model
            .fusion_benefit("conv_bm", DType::F32, TARGET)
            .unwrap_err()
            .to_string()
            .contains("conv_bn")
    );

    assert_eq!(model.fusion_benefit("add_relu", DType::F32, Target::cpu(1)).unwrap(), None);
    assert_eq!(model.fusion_benefit("add_relu", DType::F16, TARGET).unwrap(), None);

    let careful = Policy::new(WhenUnknown::Conservative);
    assert!(
        model.should_fuse("add", "relu", DType::F32, TARGET, &careful.with_threshold(1.0)).unwrap()
    );
    assert!(
        !model
            .should_fuse("add", "relu", DType::F32, TARGET, &careful.with_threshold(9.0))
            .unwrap()
    );
    assert!(
        model
            .should_fuse("linear_bias", "ReLU", DType::F32, TARGET, &careful.with_threshold(0.5))
            .unwrap()
    );
    assert!(!model.should_fuse("conv2d", "batch_norm", DType::F32, TARGET, &careful).unwrap());
    assert!(
        model
            .should_fuse("conv2d", "bn", DType::F32, TARGET, &Policy::new(WhenUnknown::Optimistic))
            .unwrap()
    );
    let refused =
        model.should_fuse("conv2d", "bn", DType::F32, TARGET, &Policy::new(WhenUnknown::Error));
    assert!(matches!(refused, Err(SizelessError::Undecided(_))), "{refused:?}");
    let senseless = model.should_fuse("relu", "linear", DType::F32, TARGET, &careful);
    assert!(matches!(senseless, Err(SizelessError::Vocabulary(_))), "{senseless:?}");
}

#[test]
fn the_expected_hardware_is_checked() {
    assert!(model().expecting_hardware("intel-xeon-processor").is_ok());
    let error = model().expecting_hardware("i7-12700K").unwrap_err();
    assert!(error.to_string().contains("not of i7-12700K"), "{error}");
}

#[test]
fn it_can_be_shared_between_threads() {
    fn shareable<T: Send + Sync>() {}
    shareable::<FusionCostModel>();
}
