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
    check_all(&some(DType::Bf16, 4), "gfx942");
}

#[test]
fn gfx942_conforms_in_f16() {
    check_all(&some(DType::F16, 3), "gfx942");
}

/// Those that share most of their code with an architecture above.
const OTHERS: [(&str, DType); 6] = [
    ("sm_75", DType::F16),
    ("sm_90a", DType::Bf16),
    ("gfx90a", DType::F16),
    ("gfx1030", DType::Bf16),
    ("gfx1100", DType::F16),
    ("gfx1201", DType::Bf16),
];

/// Every chain on two of them.
#[test]
fn other_architectures_conform() {
    for (turn, (architecture, dtype)) in OTHERS.into_iter().enumerate() {
        let problems = some(dtype, 4 + turn).into_iter().enumerate();
        let dealt = problems.filter(|(index, _)| index % 3 == turn % 3);
        check_all(&dealt.map(|(_, problem)| problem).collect::<Vec<_>>(), architecture);
    }
}

#[test]
#[ignore = "takes some minutes: ALL_ARCHITECTURES=1 .ci/run runs it, and so does the workflow"]
fn every_chain_conforms_on_every_architecture() {
    for (turn, (architecture, dtype)) in OTHERS.into_iter().enumerate() {
        check_all(&some(dtype, 4 + turn), architecture);
    }
    check_all(&problems(DType::Bf16), "gfx942");
}
