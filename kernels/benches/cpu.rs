//! Both variants of the CPU kernels, on one thread and on all, and what share of the measured ceilings
//! they reach.
//!
//! `cargo bench -p fused-kernels --bench cpu -- linear` runs those with `linear` in the name. The rate
//! that Criterion prints is that of the floating-point operations. The share is the time that the
//! roofline allows, over the median of the samples: a kernel whose working set is partly in a nearer
//! cache than the roofline assumes can have more than 100 %.

#![allow(clippy::expect_used, clippy::panic, reason = "a bench that cannot be prepared ends")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use fused_kernels::cpu::Cpu;
use fused_kernels::{Backend, BackendError, Inputs, Prepared, Variant};
use fusion_cost_model::cost::{Ceilings, Traffic};
use fusion_cost_model::{CacheState, Clock, DType, Problem};

/// One of each kind: squares, few rows, one row, and little depth; convolutions that are depthwise,
/// the first of a network, 3x3 and 1x1; attention over a sequence and for one token; what streams
/// through memory, and rows that stay in the caches.
const PROBLEMS: [&str; 27] = [
    "linear_bias_relu/f32/m512.k512.n512",
    "linear_bias_gelu/f32/m32.k4096.n4096",
    "linear_bias_relu/bf16/m512.k512.n512",
    "linear_bias_gelu/bf16/m32.k4096.n4096",
    "linear_bias_relu/f16/m512.k512.n512",
    "linear_bias_gelu/f16/m32.k4096.n4096",
    "linear+bias+relu+requantize/i8/m512.k512.n512",
    "linear+bias+relu+requantize/i8/m32.k4096.n4096",
    "linear_bias_relu/f32/m1.k4096.n4096",
    "linear_bias_relu/f32/m4096.k64.n256",
    "mlp/f32/m128.k768.n3072.o768",
    "conv_bn_relu/f32/n1.c32.h112.w112.k32.r3.s3.pad1.groups32",
    "conv_bn_relu/f32/n1.c3.h224.w224.k64.r7.s7.stride2.pad3",
    "conv_bn_relu/f32/n1.c64.h56.w56.k64.r3.s3.pad1",
    "conv_bn_relu/f32/n1.c256.h56.w56.k64.r1.s1",
    "attention_head/f32/b1.h8.q512.d64",
    "attention_head/f32/b1.h8.q1.kv2048.d64",
    "mul_add_relu/f32/m4096.n4096",
    "mul_add_relu/bf16/m4096.n4096",
    "mul_add_relu/f16/m4096.n4096",
    "add_layernorm/f32/m512.n768",
    "add_layernorm/f32/m4096.n768",
    "add_layernorm/f32/m128.n3072",
    "add_layernorm/f32/m333.n777",
    "add_layernorm/f32/m512.n1024",
    "add_layernorm/f32/m2048.n4096",
    "add_relu/f32/m128.n3072",
];

fn main() -> Result<(), BackendError> {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    for threads in if all == 1 { vec![1] } else { vec![1, all] } {
        let mut cpu = Cpu::with_bound_threads(threads)?;
        for dtype in [DType::F32, DType::Bf16, DType::F16, DType::I8] {
            let ceilings = cpu.ceilings(dtype, Clock::Host, 1, &mut |_| {})?;
            for problem in PROBLEMS {
                let problem: Problem = problem.parse().expect("a problem of the vocabulary");
                if problem.dtype() == dtype {
                    bench(&mut criterion, &mut cpu, &problem, ceilings.as_ref())?;
                }
            }
        }
    }
    criterion.final_summary();
    Ok(())
}

fn bench(
    criterion: &mut Criterion,
    cpu: &mut Cpu,
    problem: &Problem,
    ceilings: Option<&Ceilings>,
) -> Result<(), BackendError> {
    let threads = cpu.threads();
    let inputs = Inputs::random(problem, 1);
    let Some(mut prepared) = cpu.prepare(problem, &inputs, CacheState::Warm.into())? else {
        panic!("the CPU backend has no kernels for {problem}");
    };
    prepared.new_layout(1)?;
    let roofline = ceilings.and_then(|ceilings| ceilings.roofline(problem));
    let mut group = criterion.benchmark_group(format!("{threads} threads"));
    group.throughput(Throughput::Elements(Traffic::of(problem).flops));
    for variant in Variant::ALL {
        let mut samples = Vec::new();
        group.bench_function(BenchmarkId::new(variant.name(), problem), |bencher| {
            bencher.iter_custom(|runs| {
                let took = run(prepared.as_mut(), variant, runs);
                samples.push(took.as_secs_f64() * 1e6 / runs as f64);
                took
            });
        });
        samples.sort_by(f64::total_cmp);
        // None where another part of the name was asked for.
        if let (Some(median), Some(roofline)) = (samples.get(samples.len() / 2), roofline) {
            let allowed = match variant {
                Variant::Unfused => roofline.unfused_us,
                Variant::Fused => roofline.fused_us,
            };
            println!("{:>79.0} % of the measured ceilings", 100.0 * allowed / median);
        }
    }
    group.finish();
    Ok(())
}

/// The time of `runs` runs, which may be more than one call takes.
fn run(prepared: &mut dyn Prepared, variant: Variant, runs: u64) -> Duration {
    let mut left = runs;
    let mut total = Duration::ZERO;
    while left > 0 {
        let some = u32::try_from(left).unwrap_or(u32::MAX);
        total += prepared.run(variant, some).expect("a kernel of the CPU does not fail");
        left -= u64::from(some);
    }
    total
}
