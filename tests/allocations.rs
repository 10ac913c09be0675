//! A question allocates nothing, whatever its answer rests on.

use crate::made::{Known, calibration};
use allocation_counter::{AllocationInfo, measure};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{Evidence, FusionCostModel, Policy, Problem, Target, WhenUnknown};

fn problem(text: &str) -> Problem {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A file that answers in every way: some chains at several sizes, and ceilings.
fn model() -> FusionCostModel {
    let sizes =
        ["m64.k64.n64", "m256.k512.n512", "m512.k64.n4096", "m4096.k900.n300", "m700.k90.n900"];
    let gemms = sizes.map(|sizes| format!("linear_bias_relu/f32/{sizes}"));
    let own = ["m64.k64.n64", "m4096.k512.n512", "m300.k900.n4096"];
    let own = own.map(|sizes| format!("linear+bias+silu/f32/{sizes}"));
    let tails = ["relu", "silu"].into_iter().flat_map(|op| {
        ["m64.n64", "m512.n512", "m4096.n4096"].map(|sizes| format!("{op}/f32/{sizes}"))
    });
    let known = gemms.into_iter().chain(own).chain(tails).enumerate().map(|(index, text)| {
        let fused_ms = 0.1 + 0.01 * index as f64;
        let problem = problem(&text);
        let speedup = if problem.chain().is_single() { 1.0 } else { 1.1 };
        Known { problem, fused_ms, speedup, half_width: 0.02 }
    });
    let example = include_str!("data/example.toml");
    let ceilings = HardwareCalibration::from_toml(example).unwrap().ceilings;
    FusionCostModel::new(HardwareCalibration { ceilings, ..calibration(known) })
}

#[test]
fn nothing_is_allocated_to_answer() {
    let model = model();
    let on = model.on(Target::cpu(2));
    let policy = Policy::new(WhenUnknown::Roofline);
    for (text, evidence) in [
        ("linear_bias_relu/f32/m256.k512.n512", Evidence::Measured),
        ("linear+bias+silu/f32/m256.k512.n512", Evidence::ComposedAtSize),
        ("linear+bias+silu/f32/m700.k700.n700", Evidence::Interpolated),
        ("linear_bias_relu/f32/m9999.k9999.n9999", Evidence::Extrapolated),
        ("conv_bn_relu/f32/n1.c8.h9.w9.k8.r3.s3.pad1", Evidence::Roofline),
        ("linear_bias_relu/f64/m256.k512.n512", Evidence::Unknown),
    ] {
        let problem = problem(text);
        let counted = measure(|| {
            let estimate = on.estimate(&problem);
            assert_eq!(estimate.evidence(), evidence, "{text}");
            assert_eq!(estimate.nearest().count() > 0, evidence < Evidence::Roofline, "{text}");
            let decision = on.decide(&problem, &policy);
            assert!(decision.is_ok(), "{text}");
        });
        assert_eq!(counted.count_total, 0, "{text}: {counted:?}");
    }
}

/// The count is one that can fail.
#[test]
fn what_allocates_is_counted() {
    let AllocationInfo { count_total, .. } = measure(|| {
        let text = problem("relu/f32/m4.n4").to_string();
        assert_eq!(text, "relu/f32/m4.n4");
    });
    assert!(count_total > 0);
}
