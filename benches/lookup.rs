//! What a partitioner pays for a question and its answer.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{
    AttentionSizes, Chain, ConvSizes, DType, Error, FusionCostModel, LinearSizes, Policy, Problem,
    Target, WhenUnknown,
};

const CONV: ConvSizes =
    ConvSizes { n: 1, c: 3, h: 8, w: 8, k: 4, r: 3, s: 3, stride: 1, pad: 0, groups: 1 };

/// Questions: a problem from numbers, from its text, and from parts.
fn questions(criterion: &mut Criterion) -> Result<(), Error> {
    let linear: Chain = "linear_bias_relu".parse()?;
    criterion.bench_function("a linear problem from numbers", |bencher| {
        let sizes = LinearSizes { m: 512, k: 512, n: 512 };
        bencher.iter(|| Problem::linear(black_box(linear), DType::F32, black_box(sizes)));
    });
    let conv: Chain = "conv_bn".parse()?;
    criterion.bench_function("a convolution from numbers", |bencher| {
        bencher.iter(|| Problem::conv(black_box(conv), DType::F32, black_box(CONV)));
    });
    let attention: Chain = "attention_head".parse()?;
    criterion.bench_function("attention from numbers", |bencher| {
        let sizes = AttentionSizes { b: 1, h: 8, q: 512, kv: 512, d: 64, kvh: 8, causal: false };
        bencher.iter(|| Problem::attention(black_box(attention), DType::F32, black_box(sizes)));
    });
    criterion.bench_function("a linear problem from text", |bencher| {
        bencher.iter(|| black_box("linear_bias_relu/f32/m512.k512.n512").parse::<Problem>());
    });
    let whole: Problem = "linear_bias_relu/f32/m512.k512.n512".parse()?;
    criterion.bench_function("slice", |bencher| {
        bencher.iter(|| black_box(&whole).slice(black_box(0..2)));
    });
    if let (Some(first), Some(second)) = (whole.slice(0..2), whole.slice(2..3)) {
        criterion.bench_function("join", |bencher| {
            bencher.iter(|| black_box(&first).join(black_box(&second)));
        });
    }
    Ok(())
}

/// Answers on one target.
fn answers(criterion: &mut Criterion) -> Result<(), Error> {
    let text = include_str!("../tests/data/example.toml");
    let model = FusionCostModel::new(HardwareCalibration::from_toml(text)?);
    let on_cpu = model.on(Target::cpu(2));
    let policy = Policy::new(WhenUnknown::Conservative);
    let known: Problem = "add_relu/f32/m4096.n1024".parse()?;
    let unknown = Problem::conv("conv_bn".parse()?, DType::F32, CONV)?;

    criterion.bench_function("bind a target", |bencher| {
        bencher.iter(|| model.on(black_box(Target::cpu(2))));
    });
    criterion.bench_function("estimate, measured", |bencher| {
        bencher.iter(|| on_cpu.estimate(black_box(&known)).speedup());
    });
    criterion.bench_function("estimate, by the roofline", |bencher| {
        bencher.iter(|| on_cpu.estimate(black_box(&unknown)).speedup());
    });
    criterion.bench_function("decide, measured", |bencher| {
        bencher.iter(|| on_cpu.decide(black_box(&known), &policy).map(|it| it.should_fuse()));
    });
    if let (Some(add), Some(relu)) = (known.slice(0..1), known.slice(1..2)) {
        criterion.bench_function("should_fuse, two neighbours with sizes", |bencher| {
            bencher.iter(|| on_cpu.should_fuse(black_box(&add), black_box(&relu), &policy));
        });
    }
    criterion.bench_function("should_fuse_by_name", |bencher| {
        bencher.iter(|| on_cpu.should_fuse_by_name(black_box("add"), "relu", DType::F32, &policy));
    });
    Ok(())
}

fn lookup(criterion: &mut Criterion) {
    for result in [questions(criterion), answers(criterion)] {
        if let Err(error) = result {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, lookup);
criterion_main!(benches);
