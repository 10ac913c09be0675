//! Products of 8-bit integers, and what requantises their sums.

use std::sync::LazyLock;

use fused_kernels::cpu::{Cpu, Vectors};
use fused_kernels::{Backend, Expected, Inputs, Reference, Variant};
use fusion_cost_model::kernel::Form;
use fusion_cost_model::{CacheState, Chain, Problem};

use crate::{Case, Mutation, cases, conform_on, questions};

/// Products of 8-bit integers with ops on their sums, and such ops alone; with sums as the result,
/// and with 8-bit integers.
const CHAINS: [&str; 12] = [
    "linear",
    "linear+requantize",
    "linear_bias_relu",
    "linear+bias+relu+requantize",
    "linear+batch_norm+gelu+add+requantize",
    "conv2d",
    "conv2d+requantize",
    "conv_bn_relu",
    "conv2d+bias+add+relu+requantize",
    "requantize",
    "bias+relu+requantize",
    "bias+silu+mul",
];

/// Depths of whole fours and of others in several parts, and windows whose rows are whole fours.
const SIZES: [&str; 7] = [
    "m13.k2052.n70",
    "m7.k1399.n130",
    "m65.k64.n16",
    "n2.c8.h9.w7.k21.r3.s3.pad1",
    "n1.c12.h8.w9.k66.r3.s2.stride2.pad1",
    "n1.c2.h9.w9.k5.r4.s4.pad2",
    "n1.c260.h5.w5.k17.r3.s3",
];

pub(crate) fn problems() -> Vec<Problem> {
    let problems = CHAINS.iter().flat_map(|name| {
        let form = name.parse::<Chain>().unwrap().form();
        let more = SIZES.iter().filter(move |sizes| match form {
            Form::Linear => sizes.starts_with('m'),
            Form::Conv => sizes.starts_with('n'),
            _ => false,
        });
        let sizes = crate::problems::sizes(form).iter().chain(more);
        sizes.map(move |sizes| format!("{name}/i8/{sizes}").parse::<Problem>().unwrap())
    });
    problems.collect()
}

/// All problems of 8-bit integers.
static QUESTIONS: LazyLock<Vec<(Problem, Inputs)>> = LazyLock::new(|| questions(problems()));

/// All of [`QUESTIONS`].
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| cases(&QUESTIONS));

#[test]
fn cpu_conforms_with_integers() {
    for threads in [1, 5] {
        conform_on(&CASES, &mut Cpu::new(threads).unwrap(), CacheState::Warm);
    }
}

#[test]
fn cpu_with_cold_caches_conforms_with_integers() {
    let mut cpu = Cpu::new(2).unwrap().with_last_level_cache(2048);
    conform_on(&CASES, &mut cpu, CacheState::Cold);
}

#[test]
fn cpu_with_narrower_vectors_conforms_with_integers() {
    for vectors in [Vectors::Avx512, Vectors::Avx2, Vectors::Scalar] {
        match Cpu::with_vectors(2, vectors) {
            Some(cpu) => conform_on(&CASES, &mut cpu.unwrap(), CacheState::Warm),
            None => eprintln!("skipped: this processor has no {vectors:?}"),
        }
    }
}

/// What a kernel for 8-bit integers can get wrong, as what it would write in place of the result, which
/// is given with what it was before it was rounded.
type WrongResult = fn(f32, f64) -> f32;

const WRONG_RESULTS: [(&str, WrongResult); 4] = [
    ("it is cut off and not rounded", |_, sum| sum.floor() as f32),
    ("it is rounded up", |_, sum| sum.ceil() as f32),
    ("what is too large wraps around", |_, sum| f32::from((2.0 * sum).round() as i64 as u8)),
    ("it is one too large", |result, _| (result + 1.0).min(255.0)),
];

#[test]
fn what_a_kernel_for_integers_can_get_wrong_is_seen() {
    let problem: Problem = "linear+bias+relu+requantize/i8/m17.k70.n33".parse().unwrap();
    let inputs = Inputs::random(&problem, 42);
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    let reference = Reference::new(&problem, &inputs);
    let sums: Vec<f64> = (0..17).flat_map(|row| reference.row(row)).collect();
    let right: Vec<f32> = sums.iter().map(|sum| sum.round_ties_even() as f32).collect();
    assert!(expected.error(&right) <= expected.tolerance());
    for (name, wrong) in WRONG_RESULTS {
        let output: Vec<f32> = right.iter().zip(&sums).map(|(&y, &sum)| wrong(y, sum)).collect();
        assert!(expected.error(&output) > expected.tolerance(), "{name}");
    }
    let mut cpu = Cpu::new(1).unwrap();
    for (name, mutation) in MUTATIONS {
        let mut wrong = inputs.clone();
        mutation(&mut wrong);
        let mut prepared = cpu.prepare(&problem, &wrong, CacheState::Warm.into()).unwrap().unwrap();
        for variant in Variant::ALL {
            prepared.run(variant, 1).unwrap();
            let error = expected.error(&prepared.output().unwrap());
            assert!(error > expected.tolerance(), "{name}, {variant}");
        }
    }
}

const MUTATIONS: [(&str, Mutation); 5] = [
    ("numbers from 128 on are taken for negative ones", |inputs| {
        inputs.tensors[0].iter_mut().for_each(|x| *x = if *x < 128.0 { *x } else { 0.0 });
    }),
    ("the last two numbers of a row are left out", |inputs| {
        inputs.tensors[0].chunks_exact_mut(70).for_each(|row| row[68..].fill(0.0));
    }),
    ("two numbers of each four change places", |inputs| {
        inputs.tensors[0].chunks_exact_mut(70).for_each(|row| {
            row.chunks_exact_mut(4).for_each(|four| four.swap(1, 2));
        });
    }),
    ("a column of the weights is that of the next vector", |inputs| {
        inputs.tensors[1].chunks_exact_mut(33).for_each(|row| row[0] = row[8]);
    }),
    ("the bias is left out", |inputs| inputs.tensors[2].fill(0.0)),
];
