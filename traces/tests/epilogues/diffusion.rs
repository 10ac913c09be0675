//! Blocks of a diffusion transformer, whose norms and sums are scaled by what the step gives: their
//! layers have many products and sums, and an activation besides that of the feed-forward part.

use super::program::{GELU, HIDDEN, Op, Program, SILU, WIDE};
use super::{ACT, BIAS, check, decoy};

/// A product of tokens with one row.
fn scale() -> Op {
    Op { sizes: format!("[[1, 1024, {HIDDEN}], [1, 1, {HIDDEN}]]"), ..Op::gate(HIDDEN) }
}

/// A row is added to all tokens, which is not the bias of a GEMM.
fn shift() -> Op {
    Op { sizes: scale().sizes, ..Op::residual() }
}

/// A block with these kernels behind attention and at the first GEMM of the feed-forward part.
fn block(out: &[Op], up: &[Op]) -> Program {
    let silu = Op { sizes: format!("[[1, {HIDDEN}]]"), ..Op::act(SILU, 1) };
    let norm = [Op::norm(), scale(), shift()];
    let sum = [scale(), Op::residual()];
    let qkv = [Op::addmm(3 * HIDDEN, HIDDEN), Op::attention()];
    let parts = [&[silu][..], &norm, &qkv, out, &sum, &norm, up, &[Op::addmm(HIDDEN, WIDE)], &sum];
    Program::of(parts.concat())
}

#[test]
fn epilogues_of_blocks() {
    let out = [Op::addmm(HIDDEN, HIDDEN)];
    let up = [Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)];
    let separate = block(&out, &up);
    check(&block(&out, &[Op::addmm_activation(WIDE, HIDDEN)]), &separate, &[ACT]);
    let template = "triton_tem_fused_addmm_gelu_7";
    let generated = Op::addmm(WIDE, HIDDEN).called(template).by(template);
    check(&block(&out, &[generated]), &separate, &[ACT]);
    check(&separate, &block(&[Op::mm(HIDDEN, HIDDEN), Op::bias(HIDDEN)], &up), &[BIAS]);
}

#[test]
fn blocks_that_fuse_nothing() {
    let out = [Op::addmm(HIDDEN, HIDDEN)];
    let up = [Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)];
    decoy(&block(&out, &up), &block(&out, &[Op::addmm(WIDE, HIDDEN)]));
    decoy(&block(&out, &up), &block(&[Op::mm(HIDDEN, HIDDEN)], &up));
}
