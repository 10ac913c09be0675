//! Every pattern and chain, both variants, on emulated devices.

use fusion_cost_model::{DType, Problem};

use super::check_all;
use crate::gpu::problems::problems;

/// Two sizes of every chain, others for its neighbours: all kinds of kernels, and over all chains
/// all sizes.
fn some(dtype: DType) -> Vec<Problem> {
    let all = problems(dtype);
    let chains = all.chunk_by(|one, next| one.chain() == next.chain());
    let two = chains.enumerate().flat_map(|(index, sizes)| {
        let first = index % sizes.len();
        let second = (index + sizes.len() / 2) % sizes.len();
        [sizes[first], sizes[second]]
    });
    two.collect()
}

#[test]
fn sm_80_conforms_in_f32() {
    check_all(&problems(DType::F32), "sm_80");
}

#[test]
fn sm_80_conforms_in_f16() {
    check_all(&problems(DType::F16), "sm_80");
}

#[test]
fn sm_80_conforms_in_bf16() {
    check_all(&some(DType::Bf16), "sm_80");
}

#[test]
fn gfx942_conforms_in_f32() {
    check_all(&problems(DType::F32), "gfx942");
}

#[test]
fn gfx942_conforms_in_bf16() {
    check_all(&problems(DType::Bf16), "gfx942");
}

#[test]
fn gfx942_conforms_in_f16() {
    check_all(&some(DType::F16), "gfx942");
}

#[test]
fn other_architectures_conform() {
    for (architecture, dtype) in [
        ("sm_75", DType::F16),
        ("sm_90a", DType::Bf16),
        ("gfx90a", DType::F16),
        ("gfx1030", DType::Bf16),
        ("gfx1100", DType::F16),
        ("gfx1201", DType::Bf16),
    ] {
        check_all(&some(dtype), architecture);
    }
}
