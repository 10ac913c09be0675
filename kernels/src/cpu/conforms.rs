//! What tests of single kernels ask of both variants.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use fusion_cost_model::CacheState;

use half::bf16;
use pulp::Arch;

use super::{Cpu, Vectors, amx, pairs};
use crate::{Backend, Expected, Inputs, Variant};

/// The widest vectors on one thread and on three, and what machines without them run.
pub(super) fn cpus() -> impl Iterator<Item = Cpu> {
    let fewer = [Vectors::Avx512Bf16, Vectors::Avx512, Vectors::Avx2, Vectors::Scalar];
    // Without a matrix unit the first of them is the widest, where it is fast.
    let is_widest = !amx::supported::<bf16>(Arch::new()) && pairs::are_fast();
    let skipped = usize::from(is_widest);
    let narrower = fewer.into_iter().skip(skipped).map(|vectors| Cpu::with_vectors(2, vectors));
    let all = [Some(Cpu::new(1)), Some(Cpu::new(3))].into_iter().chain(narrower);
    all.flatten().map(Result::unwrap)
}

/// Holds both variants of a problem against its reference. Returns the names of their kernels, of the
/// unfused variant first.
pub(super) fn conforms(cpu: &mut Cpu, text: &str) -> [Vec<String>; 2] {
    let problem = text.parse().unwrap();
    let inputs = Inputs::random(&problem, 5);
    let expected = Expected::compute(&problem, &inputs, u64::MAX);
    assert!(expected.can_prove(), "{text}");
    let mut prepared = cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
    for variant in Variant::ALL {
        prepared.poison().unwrap();
        prepared.run(variant, 2).unwrap();
        let error = expected.error(&prepared.output().unwrap());
        assert!(error <= expected.tolerance(), "{text}, {variant}: {error:e}");
    }
    [Variant::Unfused, Variant::Fused].map(|variant| prepared.kernels(variant))
}
