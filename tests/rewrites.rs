//! What a rewrite gains, in records of its own.

use crate::consistent;
use crate::made::{Known, TARGET, calibration};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::cost::Traffic;
use fusion_cost_model::{
    Decision, Evidence, FusionCostModel, Policy, Problem, Rewrite, WhenUnknown,
};

fn conv(size: u64) -> Problem {
    format!("conv_bn_relu/f32/n1.c64.h{size}.w{size}.k64.r3.s3.pad1").parse().unwrap()
}

/// Two sizes, fused 1.1 times as fast as unfused and folded 1.2 times.
fn both() -> HardwareCalibration {
    let known = |size: u64, speedup: f64| Known {
        problem: conv(size),
        fused_ms: (size * size) as f64 / speedup,
        speedup,
        half_width: 0.01,
    };
    let mut all = calibration([known(14, 1.1), known(56, 1.1), known(14, 1.2), known(56, 1.2)]);
    for record in &mut all.records[2..] {
        record.rewrite = Some(Rewrite::BnFolded);
    }
    for record in &mut all.records {
        let problem = record.problem;
        let traffic = Traffic::of(&problem);
        record.input_shape = problem.input_shape();
        let sizes = problem.sizes().iter();
        record.extra_params = sizes.map(|(key, value)| (key.key.to_owned(), value)).collect();
        record.unfused_memory_bytes = traffic.unfused_bytes;
        record.fused_memory_bytes = traffic.fused_bytes;
        record.memory_reduction = traffic.memory_reduction();
        record.arithmetic_intensity_unfused = traffic.unfused_intensity();
        record.arithmetic_intensity_fused = traffic.fused_intensity();
    }
    consistent::make_consistent(&mut all);
    all
}

#[test]
fn a_file_holds_both_records_of_a_problem() {
    let all = both();
    let text = all.to_toml().unwrap();
    assert_eq!(text.matches("rewrite = \"bn_folded\"").count(), 2);
    assert_eq!(HardwareCalibration::from_toml(&text).unwrap(), all);
    let error = |text: &str| HardwareCalibration::from_toml(text).unwrap_err().to_string();
    let twice = error(&text.replacen("rewrite = \"bn_folded\"\n", "", 1));
    assert!(twice.contains("are both for conv_bn_relu"), "{twice}");
    let unknown = error(&text.replacen("bn_folded", "bn_fold", 1));
    assert!(unknown.contains("bn_folded"), "{unknown}");
}

#[test]
fn a_rewrite_that_does_not_apply_is_a_contradiction() {
    let text = include_str!("data/example.toml");
    let wrong = text.replacen(
        "implementation = \"native\"\n",
        "implementation = \"native\"\nrewrite = \"bn_folded\"\n",
        1,
    );
    let error = HardwareCalibration::from_toml(&wrong).unwrap_err().to_string();
    assert!(error.contains("rewrite at line") && error.contains("cannot be bn_folded"), "{error}");
}

#[test]
fn each_is_asked_for_by_itself() {
    let model = FusionCostModel::new(both());
    assert_eq!(model.targets(), [TARGET]);
    let (on, folded) = (model.on(TARGET), model.on(TARGET).rewritten(Rewrite::BnFolded));
    let speedup = |on: fusion_cost_model::OnTarget<'_>, size: u64| {
        let estimate = on.estimate(&conv(size));
        (estimate.evidence(), estimate.speedup().unwrap().value)
    };
    assert_eq!(speedup(on, 14), (Evidence::Measured, 1.1));
    assert_eq!(speedup(folded, 14), (Evidence::Measured, 1.2));
    let [(evidence, fused), (_, by_folding)] = [speedup(on, 28), speedup(folded, 28)];
    assert_eq!(evidence, Evidence::Interpolated);
    assert!((fused / 1.1).ln().abs() < 0.02 && (by_folding / 1.2).ln().abs() < 0.02);
    // What each is worth: the unfused time is that of both.
    let fused_ms =
        |on: fusion_cost_model::OnTarget<'_>| on.estimate(&conv(56)).fused_ms().unwrap().value;
    assert!((fused_ms(on) / fused_ms(folded) - 1.2 / 1.1).abs() < 1e-9);

    let policy = Policy::new(WhenUnknown::Roofline);
    let without: Problem = "conv_relu/f32/n1.c64.h28.w28.k64.r3.s3.pad1".parse().unwrap();
    let decision = folded.decide(&without, &policy).unwrap();
    assert!(matches!(decision, Decision::Unknown { fuse: false, .. }), "{decision:?}");
    assert_eq!(folded.estimate(&without).evidence(), Evidence::Unknown);
}
