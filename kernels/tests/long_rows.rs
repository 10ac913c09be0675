//! Rows of many numbers, whose sums in f32 lose what is small beside them: equal numbers, which are
//! all rounded in the same direction, and shares that are each half a unit of the first one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use fused_kernels::cpu::{Cpu, Vectors};
use fused_kernels::{Backend, Expected, Inputs, Variant};
use fusion_cost_model::{CacheState, Problem};

/// A problem in one row, and the numbers of its tensors that are not those of [`Inputs::random`].
struct Case {
    problem: Problem,
    inputs: Inputs,
}

/// The number of a tensor, and what lies at each index of it.
type Given = (usize, fn(usize) -> f32);

fn case(text: &str, given: &[Given]) -> Case {
    let problem: Problem = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut inputs = Inputs::random(&problem, 1);
    for &(tensor, number) in given {
        for (index, x) in inputs.tensors[tensor].iter_mut().enumerate() {
            *x = number(index);
        }
    }
    Case { problem, inputs }
}

/// One score takes nearly all, and each other one a little less than the half of its last digit.
fn one_above_all(index: usize) -> f32 {
    if index == 0 { 0.0 } else { -16.656 }
}

fn cases() -> Vec<Case> {
    vec![
        case("layer_norm/f32/m3.n513", &[(0, |_| 3.3)]),
        case("layer_norm/f32/m3.n4096", &[(0, |_| 3.3)]),
        case("layer_norm/f32/m3.n65537", &[(0, |_| 1.1)]),
        case("layer_norm/f32/m1.n100001", &[(0, |i| 100.0 + (i * 37 % 1000) as f32 / 1000.0)]),
        case("rms_norm/f32/m1.n65537", &[(0, |_| 1.1)]),
        case("add+layer_norm/f32/m3.n12289", &[(0, |_| 1.1), (1, |_| 1.1)]),
        case("add+layer_norm/f32/m1.n65536", &[(0, |_| 1.1), (1, |_| 1.1)]),
        case("add+rms_norm/f32/m1.n65536", &[(0, |_| 1.1), (1, |_| 1.1)]),
        case("linear+layer_norm/f32/m3.k1.n8192", &[(0, |_| 1.0), (1, |_| 1.1)]),
        case("softmax/f32/m1.n4097", &[(0, one_above_all)]),
        case("softmax/f32/m2.n23961", &[(0, one_above_all)]),
        case("softmax/f32/m1.n300001", &[(0, one_above_all)]),
        // One number for each query and key: the scores are the keys.
        case("attention_scores/f32/b1.h1.q1.kv32768.d1", &[(0, |_| 1.0), (1, one_above_all)]),
        case("attention_head/f32/b1.h1.q3.kv16384.d1", &[(0, |_| 1.0), (1, one_above_all)]),
    ]
}

#[test]
fn sums_over_long_rows_keep_what_is_small() {
    let vectors = [Vectors::Avx512, Vectors::Avx2, Vectors::Scalar];
    let backends = vectors.into_iter().filter_map(|one| Some((one, Cpu::with_vectors(1, one)?)));
    let mut backends: Vec<(Vectors, Cpu)> =
        backends.map(|(vectors, cpu)| (vectors, cpu.unwrap())).collect();
    assert!(!backends.is_empty());
    for Case { problem, inputs } in &cases() {
        let expected = Expected::compute(problem, inputs, u64::MAX);
        assert!(expected.can_prove(), "{problem}");
        for (vectors, cpu) in &mut backends {
            let mut prepared =
                cpu.prepare(problem, inputs, CacheState::Warm.into()).unwrap().unwrap();
            for variant in Variant::ALL {
                prepared.poison().unwrap();
                prepared.run(variant, 1).unwrap();
                let error = expected.error(&prepared.output().unwrap());
                assert!(
                    error <= expected.tolerance(),
                    "{problem}, {variant}, {vectors:?}: {error:e} above {:e}",
                    expected.tolerance(),
                );
            }
        }
    }
}
