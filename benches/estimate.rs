//! What a partitioner pays for an answer that was not measured, and for a whole split.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use fusion_cost_model::calibration::HardwareCalibration;
use fusion_cost_model::{
    Chain, DType, Error, FusionCostModel, LinearSizes, Policy, Problem, RowsSizes, Target,
    WhenUnknown,
};

const TARGET: Target = Target::cpu(2);

/// Sizes all over a range that are the same on every machine.
fn size(index: u64, dimension: u64) -> u64 {
    let mixed = (index * 3 + dimension + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    16 + mixed % 4000
}

fn linear(chain: Chain, index: u64) -> Result<Problem, Error> {
    let [m, k, n] = [0, 1, 2].map(|dimension| size(index, dimension));
    Problem::linear(chain, DType::F32, LinearSizes { m, k, n })
}

/// A model of `records` records of a chain of linear ops, and of some of pointwise ops.
fn model(records: u64) -> Result<FusionCostModel, Error> {
    let text = include_str!("../tests/data/example.toml");
    let mut calibration = HardwareCalibration::from_toml(text)?;
    let template = calibration.records.swap_remove(0);
    let mut problems = Vec::new();
    for index in 0..records {
        problems.push(linear("linear_bias_relu".parse()?, index)?);
    }
    for (m, n) in [(16, 16), (256, 256), (4096, 256), (256, 4096), (4096, 4096)] {
        for op in ["relu", "silu"] {
            problems.push(Problem::rows(op.parse()?, DType::F32, RowsSizes { m, n })?);
        }
    }
    calibration.records.clear();
    for (index, problem) in (1_u32..).zip(problems) {
        let mut record = template.clone();
        let traffic = fusion_cost_model::cost::Traffic::of(&problem);
        let noise = 1.0 + 0.01 * f64::from(index % 5);
        record.problem = problem;
        record.fused_latency_ms = noise * (0.01 + traffic.flops as f64 / 3e8);
        calibration.records.push(record);
    }
    Ok(FusionCostModel::new(calibration))
}

fn estimates(criterion: &mut Criterion) -> Result<(), Error> {
    let chain: Chain = "linear_bias_relu".parse()?;
    for records in [30, 60, 120, 250, 1000] {
        let model = model(records)?;
        let on = model.on(TARGET);
        let between = linear(chain, 5_000)?;
        let name = format!("estimate, interpolated from {records} records");
        criterion.bench_function(&name, |bencher| {
            bencher.iter(|| on.estimate(black_box(&between)).speedup());
        });
    }
    let model = model(60)?;
    let on = model.on(TARGET);
    let measured = linear(chain, 7)?;
    criterion.bench_function("estimate, measured, of 60 records", |bencher| {
        bencher.iter(|| on.estimate(black_box(&measured)).speedup());
    });
    let batch: Vec<Problem> =
        (9_000..9_064).map(|index| linear(chain, index)).collect::<Result<_, _>>()?;
    criterion.bench_function("64 estimates, interpolated from 60 records", |bencher| {
        let fused = |problem: &Problem| on.estimate(problem).fused_ms().map_or(0.0, |ms| ms.value);
        bencher.iter(|| black_box(&batch).iter().map(fused).sum::<f64>());
    });
    let sibling: Chain = "linear+bias+silu".parse()?;
    let at_size = linear(sibling, 7)?;
    criterion.bench_function("estimate, composed at size", |bencher| {
        bencher.iter(|| on.estimate(black_box(&at_size)).speedup());
    });
    let between = linear(sibling, 5_000)?;
    criterion.bench_function("estimate, composed between sizes", |bencher| {
        bencher.iter(|| on.estimate(black_box(&between)).speedup());
    });
    let policy = Policy::new(WhenUnknown::Conservative);
    criterion.bench_function("decide, interpolated from 60 records", |bencher| {
        let between = linear(chain, 5_000);
        bencher.iter(|| {
            let problem = black_box(&between).as_ref().ok()?;
            on.decide(problem, &policy).ok().map(|decision| decision.should_fuse())
        });
    });
    let chain = linear("linear+bias+relu+dropout+scale+tanh".parse()?, 5_000)?;
    criterion.bench_function("partition of six ops", |bencher| {
        bencher.iter(|| on.partition(black_box(&chain), &policy).map(|best| best.segments.len()));
    });
    Ok(())
}

/// What loading costs besides reading the file.
fn fits(criterion: &mut Criterion) -> Result<(), Error> {
    let text = include_str!("../tests/data/example.toml");
    let example = HardwareCalibration::from_toml(text)?;
    let mut group = criterion.benchmark_group("fit");
    group.sample_size(10);
    for records in [60, 250, 1000] {
        let calibration = model(records)?.calibration().clone();
        group.bench_function(format!("{records} records of a chain"), |bencher| {
            bencher.iter(|| FusionCostModel::new(black_box(calibration.clone())));
        });
    }
    group.bench_function("the example", |bencher| {
        bencher.iter(|| FusionCostModel::new(black_box(example.clone())));
    });
    // Many chains of a few records each, as the standard sizes are. The package does not contain it.
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/calibrate/profiles/calibrations/amd-epyc-zen5-2-threads.toml"
    );
    if Path::new(path).exists() {
        let committed = HardwareCalibration::load(path)?;
        let name = format!("{} records of the standard sizes", committed.records.len());
        group.bench_function(name, |bencher| {
            bencher.iter(|| FusionCostModel::new(black_box(committed.clone())));
        });
    } else {
        eprintln!("{path} is not there: loading it is not measured");
    }
    group.finish();
    Ok(())
}

fn all(criterion: &mut Criterion) {
    for result in [estimates(criterion), fits(criterion)] {
        if let Err(error) = result {
            eprintln!("{error}");
        }
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
