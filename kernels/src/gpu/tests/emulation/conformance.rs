//! Every pattern and chain, both variants, on emulated devices.

use fusion_cost_model::{DType, Problem};

use super::check_all;
use crate::gpu::tests::problems::problems;

/// One size of every chain, another for its neighbours, and others for another turn: all kinds of
/// kernels, and over all chains all sizes.
fn some(dtype: DType, turn: usize) -> Vec<Problem> {
    let all = problems(dtype);
    let chains = all.chunk_by(|one, next| one.chain() == next.chain());
    chains.enumerate().map(|(index, sizes)| sizes[(index + turn) % sizes.len()]).collect()
}

#[test]
fn sm_80_conforms_in_f32() {
    check_all(&problems(DType::F32), "sm_80");
}

#[test]
fn sm_80_conforms_in_f16() {
    check_all(&some(DType::F16, 0), "sm_80");
}

#[test]
fn sm_80_conforms_in_bf16() {
    check_all(&some(DType::Bf16, 1), "sm_80");
}

#[test]
fn gfx942_conforms_in_f32() {
    check_all(&some(DType::F32, 2), "gfx942");
}

#[test]
fn gfx942_conforms_in_bf16() {
    check_all(&problems(DType::Bf16), "gfx942");
}

#[test]
fn gfx942_conforms_in_f16() {
    check_all(&some(DType::F16, 3), "gfx942");
}

#[test]
fn other_architectures_conform() {
    let others = [
        ("sm_75", DType::F16),
        ("sm_90a", DType::Bf16),
        ("gfx90a", DType::F16),
        ("gfx1030", DType::Bf16),
        ("gfx1100", DType::F16),
        ("gfx1201", DType::Bf16),
    ];
    for (turn, (architecture, dtype)) in others.into_iter().enumerate() {
        check_all(&some(dtype, 4 + turn), architecture);
    }
}
