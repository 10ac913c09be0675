//! Additions where the layer adds elsewhere too, in replayed graphs, whose times alone can show them.

use kernel_traces::compare::{FusionEvidence, Which};

use super::program::{GELU, HIDDEN, Op, Program, WIDE};
use super::{BIAS, found, load};

const ROPE: &str =
    "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*)";

fn graph(layer: Vec<Op>, seed: u64) -> Program {
    Program { has_operators: false, seed, ..Program::of(layer) }
}

/// A layer whose last GEMM, of these operators, adds the residual itself or not.
fn layer(down: &[Op]) -> Vec<Op> {
    let projected = [Op::norm(), Op::mm(3 * HIDDEN, HIDDEN), Op::attention()];
    let out = [Op::mm(HIDDEN, HIDDEN), Op::residual(), Op::norm()];
    let up = [Op::mm(WIDE, HIDDEN), Op::act(GELU, WIDE)];
    [&projected[..], &out, &up, down].concat()
}

#[test]
fn a_residual_that_a_gemm_adds_is_found_beside_another_one() {
    let residual = Op::residual();
    for percent in [5, 20, 40] {
        let fused = Op::mm(HIDDEN, WIDE);
        let longer = fused.ns * percent / 100;
        let fused = graph(layer(&[fused.longer_by(longer)]), 7);
        let separate = graph(layer(&[Op::mm(HIDDEN, WIDE), residual.clone()]), 70);
        let [fused, separate] = [load(&fused), load(&separate)];
        let (operation, parts) = BIAS;
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        for (found, side) in
            [(found(&fused, &separate), Which::First), (found(&separate, &fused), Which::Second)]
        {
            let expected = ((side, operation.to_owned(), parts.clone()), FusionEvidence::Absence);
            assert_eq!(found, [expected], "{percent} %");
        }
    }
}

#[test]
fn a_residual_that_nobody_adds_is_no_fusion() {
    for seed in 1..9 {
        let without = graph(layer(&[Op::mm(HIDDEN, WIDE)]), seed);
        let with = graph(layer(&[Op::mm(HIDDEN, WIDE), Op::residual()]), 10 * seed);
        assert_eq!(found(&load(&without), &load(&with)), [], "{seed}");
    }
}

/// The addition is in another order on the other side.
#[test]
fn a_residual_at_another_place_is_no_fusion() {
    let longer = Op::mm(HIDDEN, WIDE).longer_by(Op::mm(HIDDEN, WIDE).ns / 5);
    for seed in 1..9 {
        let mut elsewhere = layer(std::slice::from_ref(&longer));
        elsewhere.insert(2, Op::residual());
        let elsewhere = graph(elsewhere, seed);
        let with = graph(layer(&[Op::mm(HIDDEN, WIDE), Op::residual()]), 10 * seed);
        assert_eq!(found(&load(&elsewhere), &load(&with)), [], "{seed}");
    }
}

/// Between passes the first projection stands beside the GEMM of the tokens alone.
#[test]
fn gemms_that_are_all_longer_fuse_nothing_between_passes() {
    let rope = Op::act(GELU, 3 * HIDDEN).by(ROPE);
    let mut with = layer(&[Op::mm(HIDDEN, WIDE), Op::residual()]);
    let without: Vec<Op> = with
        .iter()
        .map(|op| match op.name {
            "aten::mm" => op.clone().longer_by(3 * op.ns / 10),
            _ => op.clone(),
        })
        .collect();
    with.insert(2, rope);
    for seed in 1..9 {
        let [with, without] = [graph(with.clone(), 10 * seed), graph(without.clone(), seed)];
        assert_eq!(found(&load(&without), &load(&with)), [], "{seed}");
    }
}
