//! Every pattern, both variants, against the f64 reference: tiny, odd, prime and ordinary sizes,
//! one, two and more threads. A backend joins with one line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "conformance/halves.rs"]
mod halves;
#[path = "conformance/integers.rs"]
mod integers;
mod problems;

use std::sync::LazyLock;

use fused_kernels::cpu::{Cpu, Vectors};
use fused_kernels::{Backend, Expected, Inputs, Setup, Unsupported, Variant};
use fusion_cost_model::{CacheState, DType, Op, Problem, Rewrite};

fn problems() -> Vec<Problem> {
    problems::problems(DType::F32)
}

/// All problems in f32, each with its inputs.
static QUESTIONS: LazyLock<Vec<(Problem, Inputs)>> = LazyLock::new(|| questions(problems()));

fn questions(problems: Vec<Problem>) -> Vec<(Problem, Inputs)> {
    let question = |problem: Problem| {
        let inputs = Inputs::random(&problem, 42);
        (problem, inputs)
    };
    problems.into_iter().map(question).collect()
}

/// A problem, its inputs, and what every backend must make of them.
struct Case {
    problem: &'static Problem,
    inputs: &'static Inputs,
    expected: Expected<'static>,
}

/// All of [`QUESTIONS`]. The references take longer than the kernels: they are computed once for all
/// tests.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| cases(&QUESTIONS));

fn cases(questions: &'static [(Problem, Inputs)]) -> Vec<Case> {
    let case = |(problem, inputs): &'static (Problem, Inputs)| {
        let expected = Expected::compute(problem, inputs, u64::MAX);
        assert!(expected.can_prove(), "{problem}");
        assert_eq!(expected.rows(), expected.total_rows());
        Case { problem, inputs, expected }
    };
    questions.iter().map(case).collect()
}

/// Runs every problem in two layouts and holds both variants against the reference.
fn conform(backend: &mut dyn Backend, cache: CacheState) {
    conform_on(&CASES, backend, cache);
}

fn conform_on(cases: &[Case], backend: &mut dyn Backend, cache: CacheState) {
    let mut checked = 0;
    for Case { problem, inputs, expected } in cases {
        let mut prepared = backend
            .prepare(problem, inputs, cache.into())
            .unwrap_or_else(|error| panic!("{problem}: {error}"))
            .unwrap_or_else(|| panic!("{problem}: not supported"));
        prepared.poison().unwrap();
        let steps = prepared.run_steps(2).unwrap().unwrap();
        assert_eq!(steps.len(), problem.chain().len(), "{problem}");
        assert!(steps.iter().all(|seconds| (0.0..10.0).contains(seconds)), "{problem}: {steps:?}");
        assert!(expected.error(&prepared.output().unwrap()) <= expected.tolerance(), "{problem}");
        for layout in 1..=2 {
            prepared.new_layout(layout).unwrap();
            for variant in Variant::ALL {
                for iterations in 1..=2 {
                    prepared.poison().unwrap();
                    prepared.run(variant, iterations).unwrap();
                    let error = expected.error(&prepared.output().unwrap());
                    assert!(
                        error <= expected.tolerance(),
                        "{problem}, {variant}, {cache}, layout {layout}, {iterations} iterations: error \
                         {error:e} above {:e}; kernels {:?}",
                        expected.tolerance(),
                        prepared.kernels(variant),
                    );
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, cases.len() * 8);
}

/// What a kernel can get wrong, as the inputs that it would then compute with.
type Mutation = fn(&mut Inputs);

/// Problems with several tiles of rows for each thread, the last one incomplete: at these sizes a
/// run computes the reference of some rows only.
const TALL: [&str; 12] = [
    "linear_bias_relu/f32/m1000.k9.n35",
    "linear_bias_gelu/f32/m2049.k5.n3",
    "linear+bias+add+layer_norm/f32/m1201.k7.n33",
    "linear+softmax/f32/m1201.k7.n18",
    "mlp/f32/m1000.k5.n17.o9",
    "conv_bn_relu/f32/n3.c3.h21.w22.k9.r3.s3.pad1",
    "conv_bn_relu_maxpool/f32/n2.c3.h45.w47.k5.r3.s3.pad1",
    "attention_head/f32/b1.h2.q900.kv33.d9",
    "attention_head/f32/b2.h2.q450.kv501.d9.kvh1.causal1",
    "multihead_linear/f32/b2.h3.q450.kv17.d5.n11",
    "multihead_linear/f32/b1.h4.q801.d5.kvh2.causal1.n11",
    "add_layernorm/f32/m2000.n19",
];

#[test]
fn tall_problems_conform_in_every_row_with_any_reference() {
    for threads in [1, 2, 3] {
        let mut cpu = Cpu::new(threads).unwrap();
        for text in TALL {
            let problem: Problem = text.parse().unwrap();
            let inputs = Inputs::random(&problem, 42);
            // All rows in f64, and eight of them: the others are the witness's.
            let [whole, part] =
                [u64::MAX, 1].map(|budget| Expected::compute(&problem, &inputs, budget));
            assert!(whole.rows() >= 800 && part.rows() == 8, "{text}");
            let mut prepared =
                cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
            for variant in Variant::ALL {
                prepared.poison().unwrap();
                prepared.run(variant, 1).unwrap();
                let output = prepared.output().unwrap();
                for expected in [&whole, &part] {
                    let error = expected.error(&output);
                    assert!(error <= expected.tolerance(), "{text}, {variant}: {error:e}");
                }
            }
        }
    }
}

/// An op between the scores and a causal softmax needs all columns of its rows, in each block of
/// queries, though the last keys are seen by the last block alone.
#[test]
fn ops_before_a_causal_softmax_conform_in_several_blocks() {
    for text in [
        "qk+add+softmax+pv/f32/b1.h1.q120.kv130.d8.causal1",
        "qk+add+softmax+pv/bf16/b1.h2.q200.kv261.d8.kvh1.causal1",
        "qk+mul+softmax+pv/bf16/b1.h1.q150.kv150.d9.causal1",
    ] {
        let problem: Problem = text.parse().unwrap();
        let inputs = Inputs::random(&problem, 42);
        let expected = Expected::compute(&problem, &inputs, u64::MAX);
        for threads in [1, 2, 3] {
            let mut cpu = Cpu::new(threads).unwrap();
            let mut prepared =
                cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
            for variant in Variant::ALL {
                prepared.poison().unwrap();
                prepared.run(variant, 1).unwrap();
                let error = expected.error(&prepared.output().unwrap());
                assert!(error <= expected.tolerance(), "{text}, {variant}, {threads}: {error:e}");
            }
        }
    }
}

#[test]
fn cpu_with_one_thread_conforms() {
    conform(&mut Cpu::new(1).unwrap(), CacheState::Warm);
}

#[test]
fn cpu_with_two_threads_conforms() {
    conform(&mut Cpu::new(2).unwrap(), CacheState::Warm);
}

#[test]
fn cpu_with_five_threads_conforms() {
    conform(&mut Cpu::new(5).unwrap(), CacheState::Warm);
}

/// A cache so small that even the smallest problem needs no more than some hundred sets of tensors.
#[test]
fn cpu_with_cold_caches_conforms() {
    conform(&mut Cpu::new(2).unwrap().with_last_level_cache(2048), CacheState::Cold);
}

#[test]
fn cpu_with_bound_threads_conforms() {
    // In a thread of its own, since the calling one is bound.
    std::thread::spawn(|| {
        let mut cpu = Cpu::with_bound_threads(2).unwrap();
        let processors = std::thread::available_parallelism().unwrap().get();
        // Bound, the calling thread sees one processor; free, all of them.
        match cpu.pinned() {
            Some(pinned) => {
                assert!(pinned.len() == 2 && pinned[0] != pinned[1]);
                assert_eq!(processors, 1);
            }
            None => eprintln!("skipped: {processors} processors, or a system that binds none"),
        }
        conform(&mut cpu, CacheState::Warm);
    })
    .join()
    .unwrap();
}

/// What machines without AVX-512 run; on a machine that lacks even these, there is nothing to test.
#[test]
fn cpu_with_narrower_vectors_conforms() {
    for vectors in [Vectors::Avx2, Vectors::Scalar] {
        match Cpu::with_vectors(2, vectors) {
            Some(cpu) => conform(&mut cpu.unwrap(), CacheState::Warm),
            None => eprintln!("skipped: this processor has no {vectors:?}"),
        }
    }
}

#[test]
fn the_fused_variant_is_one_kernel_and_the_unfused_one_has_one_per_op() {
    let mut cpu = Cpu::new(1).unwrap();
    for problem in problems() {
        let inputs = Inputs::random(&problem, 1);
        let prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
        assert_eq!(prepared.kernels(Variant::Fused).len(), 1, "{problem}");
        assert_eq!(prepared.kernels(Variant::Unfused).len(), problem.chain().len(), "{problem}");
    }
}

/// Both variants against the reference of the chain as it is written.
#[test]
fn a_folded_batch_norm_conforms() {
    let mut checked = 0;
    for (threads, cache) in [(1, CacheState::Warm), (3, CacheState::Warm), (2, CacheState::Cold)] {
        let mut cpu = Cpu::new(threads).unwrap().with_last_level_cache(2048);
        let setup = Setup { rewrite: Some(Rewrite::BnFolded), ..cache.into() };
        for Case { problem, inputs, expected } in CASES.iter() {
            if !Rewrite::BnFolded.applies_to(problem.chain()) {
                let reason = Err(Unsupported::NoRewrite(Rewrite::BnFolded));
                assert_eq!(cpu.requirements(problem, setup), reason, "{problem}");
                continue;
            }
            let mut prepared = cpu.prepare(problem, inputs, setup).unwrap().unwrap();
            assert_eq!(prepared.kernels(Variant::Unfused).len(), problem.chain().len());
            let fused = prepared.kernels(Variant::Fused).join(", ");
            assert!(fused.contains("bias") && !fused.contains("batch_norm"), "{fused}");
            for variant in Variant::ALL {
                for layout in 1..=2 {
                    prepared.new_layout(layout).unwrap();
                    prepared.poison().unwrap();
                    prepared.run(variant, 2).unwrap();
                    let error = expected.error(&prepared.output().unwrap());
                    assert!(error <= expected.tolerance(), "{problem}, {variant}: {error:e}");
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 100, "{checked}");
}

#[test]
fn a_dtype_without_kernels_is_none_and_no_error() {
    let mut cpu = Cpu::new(1).unwrap();
    for text in ["add_relu/f64/m4.n4", "conv_bias/tf32/n1.c3.h5.w7.k2.r3.s3"] {
        let problem: Problem = text.parse().unwrap();
        let inputs = Inputs::random(&problem, 1);
        assert!(cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().is_none());
        for cache in [CacheState::Warm, CacheState::Cold] {
            assert_eq!(
                cpu.requirements(&problem, cache.into()),
                Err(Unsupported::NoKernels),
                "{text}"
            );
        }
    }
}

#[test]
fn inputs_of_another_problem_are_an_error() {
    let problem: Problem = "linear_bias/f32/m3.k5.n7".parse().unwrap();
    let mut inputs = Inputs::random(&problem, 42);
    inputs.tensors[1].truncate(10);
    let mut cpu = Cpu::new(1).unwrap();
    let error = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).err().unwrap().to_string();
    let (start, end) = error.split_once(": ").unwrap();
    assert!(start.starts_with("the inputs are not those of linear"), "{error}");
    assert_eq!(end, "tensor 1 (weight) has 35 numbers, and 10 are given");
}

#[test]
fn every_op_is_in_a_chain_of_this_suite() {
    let problems = [problems(), integers::problems()].concat();
    for op in Op::all() {
        assert!(problems.iter().any(|problem| problem.chain().contains(&op)), "{op} is in none");
    }
}
