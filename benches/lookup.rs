//! What a partitioner pays for an answer.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::model::{FusionCostModel, Policy, Target, WhenUnknown};
use fusion_cost_model::{DType, Problem};

fn lookup(criterion: &mut Criterion) {
    let text = include_str!("../tests/data/example.toml");
    let calibration = match HardwareCalibration::from_toml(text) {
        Ok(calibration) => calibration,
        Err(error) => return eprintln!("{error}"),
    };
    let known = calibration.records[0].problem;
    let model = FusionCostModel::new(calibration);
    let target = Target::cpu(2);
    let policy = Policy::new(WhenUnknown::Conservative);
    let unknown: Option<Problem> = "conv_bn/f32/n1.c3.h8.w8.k4.r3.s3".parse().ok();

    criterion.bench_function("estimate, measured", |bencher| {
        bencher.iter(|| model.estimate(black_box(&known), target).measured.is_some());
    });
    criterion.bench_function("estimate, unknown", |bencher| {
        bencher.iter(|| unknown.map(|problem| model.estimate(black_box(&problem), target)));
    });
    criterion.bench_function("decide, measured", |bencher| {
        bencher.iter(|| model.decide(black_box(&known), target, &policy).fuse);
    });
    criterion.bench_function("parse a problem", |bencher| {
        let text = known.to_string();
        bencher.iter(|| black_box(text.as_str()).parse::<Problem>());
    });
    criterion.bench_function("should_fuse by names", |bencher| {
        bencher.iter(|| model.should_fuse(black_box("add"), "relu", DType::F32, target, &policy));
    });
}

criterion_group!(benches, lookup);
criterion_main!(benches);
