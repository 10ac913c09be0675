//! Numbers of two bytes: bf16 and f16.

use std::sync::LazyLock;

use fused_kernels::cpu::{Cpu, Vectors};
use fused_kernels::{Backend, Expected, Inputs, Variant};
use fusion_cost_model::{CacheState, DType, Problem};

use crate::{Case, Mutation, cases, conform_on, problems, questions};

static QUESTIONS_IN_BF16: LazyLock<Vec<(Problem, Inputs)>> =
    LazyLock::new(|| questions(problems::problems(DType::Bf16)));

static QUESTIONS_IN_F16: LazyLock<Vec<(Problem, Inputs)>> =
    LazyLock::new(|| questions(problems::problems(DType::F16)));

/// All of [`QUESTIONS_IN_BF16`].
static CASES_IN_BF16: LazyLock<Vec<Case>> = LazyLock::new(|| cases(&QUESTIONS_IN_BF16));

/// All of [`QUESTIONS_IN_F16`].
static CASES_IN_F16: LazyLock<Vec<Case>> = LazyLock::new(|| cases(&QUESTIONS_IN_F16));

#[test]
fn cpu_with_one_thread_conforms_in_bf16() {
    conform_on(&CASES_IN_BF16, &mut Cpu::new(1).unwrap(), CacheState::Warm);
}

#[test]
fn cpu_with_one_thread_conforms_in_f16() {
    conform_on(&CASES_IN_F16, &mut Cpu::new(1).unwrap(), CacheState::Warm);
}

#[test]
fn cpu_with_five_threads_conforms_in_bf16() {
    conform_on(&CASES_IN_BF16, &mut Cpu::new(5).unwrap(), CacheState::Warm);
}

/// Also with results that are written around the caches.
#[test]
fn cpu_with_cold_caches_conforms_in_bf16() {
    let mut cpu = Cpu::new(2).unwrap().with_last_level_cache(2048);
    conform_on(&CASES_IN_BF16, &mut cpu, CacheState::Cold);
}

#[test]
fn cpu_with_cold_caches_and_five_threads_conforms_in_f16() {
    let mut cpu = Cpu::new(5).unwrap().with_last_level_cache(2048);
    conform_on(&CASES_IN_F16, &mut cpu, CacheState::Cold);
}

/// What machines without a matrix unit run, and without instructions for bf16.
#[test]
fn cpu_with_narrower_vectors_conforms_in_bf16() {
    for vectors in [Vectors::Avx512Bf16, Vectors::Avx512, Vectors::Avx2, Vectors::Scalar] {
        match Cpu::with_vectors(1, vectors) {
            Some(cpu) => conform_on(&CASES_IN_BF16, &mut cpu.unwrap(), CacheState::Warm),
            None => eprintln!("skipped: this processor has no {vectors:?}"),
        }
    }
}

#[test]
fn cpu_with_narrower_vectors_conforms_in_f16() {
    for vectors in [Vectors::Avx512, Vectors::Avx2, Vectors::Scalar] {
        match Cpu::with_vectors(1, vectors) {
            Some(cpu) => conform_on(&CASES_IN_F16, &mut cpu.unwrap(), CacheState::Warm),
            None => eprintln!("skipped: this processor has no {vectors:?}"),
        }
    }
}

/// What a kernel for pairs can get wrong, as the inputs that it would then compute with.
const MUTATIONS: [(&str, Mutation); 6] = [
    ("the numbers of each pair change places", |inputs| {
        inputs.tensors[0].chunks_exact_mut(33).for_each(|row| {
            row.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        });
    }),
    ("the last number of an odd row is left out", |inputs| {
        inputs.tensors[0].chunks_exact_mut(33).for_each(|row| row[32] = 0.0);
    }),
    ("the number behind an odd row is taken too", |inputs| {
        let next: Vec<f32> = inputs.tensors[0].iter().skip(33).step_by(33).copied().collect();
        let rows = inputs.tensors[0].chunks_exact_mut(33).zip(next);
        rows.for_each(|(row, next)| row[32] += next);
    }),
    ("the second number of each pair is left out", |inputs| {
        inputs.tensors[0].chunks_exact_mut(33).for_each(|row| {
            row.iter_mut().skip(1).step_by(2).for_each(|x| *x = 0.0);
        });
    }),
    ("a column of the weights is that of the next vector", |inputs| {
        inputs.tensors[1].chunks_exact_mut(21).for_each(|row| row[0] = row[16]);
    }),
    ("the bias is left out", |inputs| inputs.tensors[2].fill(0.0)),
];

#[test]
fn what_a_kernel_for_pairs_can_get_wrong_is_seen() {
    for dtype in ["bf16", "f16"] {
        let problem: Problem = format!("linear_bias/{dtype}/m7.k33.n21").parse().unwrap();
        let inputs = Inputs::random(&problem, 42);
        let expected = Expected::compute(&problem, &inputs, u64::MAX);
        let mut cpu = Cpu::new(1).unwrap();
        let mut errors = |inputs: &Inputs| {
            let mut prepared =
                cpu.prepare(&problem, inputs, CacheState::Warm.into()).unwrap().unwrap();
            Variant::ALL.map(|variant| {
                prepared.run(variant, 1).unwrap();
                expected.error(&prepared.output().unwrap())
            })
        };
        assert!(errors(&inputs).iter().all(|error| *error <= expected.tolerance()));
        for (name, mutation) in MUTATIONS {
            let mut wrong = inputs.clone();
            mutation(&mut wrong);
            assert!(
                errors(&wrong).iter().all(|error| *error > expected.tolerance()),
                "{dtype}: {name}"
            );
        }
    }
}

/// The unfused variant rounds what each kernel leaves, the fused one only its result.
#[test]
fn results_are_rounded_once_in_the_fused_variant() {
    // The number after one.
    assert_rounds_once("bf16", 1.007_812_5, |x| half::bf16::from_f32(x).to_f32());
    assert_rounds_once("f16", 1.000_976_6, |x| half::f16::from_f32(x).to_f32());
}

fn assert_rounds_once(dtype: &str, factor: f32, round: fn(f32) -> f32) {
    assert_eq!(round(factor), factor);
    let problem: Problem = format!("scale+scale+scale+scale/{dtype}/m64.n33").parse().unwrap();
    let mut inputs = Inputs::random(&problem, 42);
    for scale in &mut inputs.tensors[1..] {
        scale.fill(factor);
    }
    let mut cpu = Cpu::new(1).unwrap();
    let mut prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
    let mut output = |variant| {
        prepared.run(variant, 1).unwrap();
        prepared.output().unwrap()
    };
    let [unfused, fused] = Variant::ALL.map(&mut output);
    let mut differ = 0;
    for ((x, unfused), fused) in inputs.tensors[0].iter().zip(unfused).zip(fused) {
        let once = (0..4).fold(*x, |x, _| x * factor);
        let each = (0..4).fold(*x, |x, _| round(x * factor));
        assert_eq!((fused, unfused), (round(once), each), "{x}");
        differ += usize::from(fused != unfused);
    }
    assert!(differ > 0);
}

/// What is beyond the range of f16 becomes infinite where a kernel leaves it, and nowhere else: the fused
/// variant may come back into it.
#[test]
fn what_f16_has_not_overflows_between_kernels_only() {
    let problem: Problem = "scale+scale+relu/f16/m5.n33".parse().unwrap();
    let mut inputs = Inputs::random(&problem, 42);
    inputs.tensors[0].fill(3.0);
    inputs.tensors[1].fill(32_768.0);
    inputs.tensors[2].fill(0.25);
    for threads in [1, 3] {
        let mut cpu = Cpu::new(threads).unwrap();
        let mut prepared =
            cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
        for (variant, expected) in [(Variant::Unfused, f32::INFINITY), (Variant::Fused, 24_576.0)] {
            prepared.run(variant, 1).unwrap();
            assert!(prepared.output().unwrap().iter().all(|x| *x == expected), "{variant}");
        }
    }
}

/// Denormals of f16 are numbers of f32 like others, which no mode of the thread makes zero.
#[test]
fn denormals_of_f16_stay() {
    let problem: Problem = "scale/f16/m3.n37".parse().unwrap();
    let mut inputs = Inputs::random(&problem, 42);
    let least = 2.0_f32.powi(-24);
    for (index, x) in inputs.tensors[0].iter_mut().enumerate() {
        *x = least * (index % 1023 + 1) as f32;
    }
    inputs.tensors[1].fill(1.0);
    let mut cpu = Cpu::new(1).unwrap();
    let mut prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
    for variant in Variant::ALL {
        prepared.run(variant, 1).unwrap();
        assert_eq!(prepared.output().unwrap(), inputs.tensors[0], "{variant}");
    }
}

/// Tensors take half the memory, but for what kernels keep in f32.
#[test]
fn tensors_take_half_the_memory() {
    let cpu = Cpu::new(1).unwrap();
    let bytes = |text: &str| {
        let problem: Problem = text.parse().unwrap();
        cpu.requirements(&problem, CacheState::Warm.into()).unwrap().memory_bytes
    };
    let [bf16, f16, whole] =
        ["bf16", "f16", "f32"].map(|dtype| bytes(&format!("add_relu/{dtype}/m4096.n4096")));
    // Memory is taken in whole huge pages.
    assert!((2 * bf16).abs_diff(whole) <= 4 << 20, "{bf16} and {whole}");
    assert_eq!(f16, bf16);
}
