//! The kernels of the CPU on one thread, both variants, in f32 and in bf16.
//!
//! `cargo bench -p fused-kernels --bench cpu`

#![allow(clippy::expect_used, reason = "a bench that cannot be prepared ends")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fused_kernels::cpu::Cpu;
use fused_kernels::{Backend, Inputs, Variant};
use fusion_cost_model::{CacheState, Problem};

/// A GEMM that is compute-bound, one on few rows that reads its weights, and chains that read tensors
/// from a cache and from memory.
const PROBLEMS: [(&str, &str); 4] = [
    ("linear_bias_relu", "m512.k512.n512"),
    ("linear_bias_relu", "m8.k2048.n2048"),
    ("add_relu", "m256.n1024"),
    ("add_layernorm", "m4096.n1024"),
];

fn kernels(criterion: &mut Criterion) {
    let mut cpu = Cpu::new(1).expect("one thread, the calling one");
    for (chain, sizes) in PROBLEMS {
        let mut group = criterion.benchmark_group(format!("{chain}/{sizes}"));
        for dtype in ["f32", "bf16"] {
            let text = format!("{chain}/{dtype}/{sizes}");
            let problem: Problem = text.parse().expect("a problem in its text form");
            group.throughput(Throughput::Elements(problem.steps().map(|step| step.flops()).sum()));
            let inputs = Inputs::random(&problem, 1);
            let prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into());
            let mut prepared = prepared.expect("memory").expect("kernels in both dtypes");
            for variant in Variant::ALL {
                group.bench_function(format!("{dtype} {variant}"), |bencher| {
                    bencher.iter(|| prepared.run(variant, 1));
                });
            }
        }
        group.finish();
    }
}

criterion_group!(benches, kernels);
criterion_main!(benches);
