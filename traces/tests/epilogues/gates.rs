//! An activation with its gate in one kernel, whatever the order of the separate ones.

use super::program::{GELU, HIDDEN, Op, Program, SILU, TRITON_SWIGLU, WIDE, layer};
use super::{check, decoy};

/// A layer whose feed-forward part has two GEMMs and these operators between and behind them.
fn gated(between: &[Op], behind: &[Op]) -> Program {
    let (norm, gate, up) = (Op::norm(), Op::mm(WIDE, HIDDEN), Op::mm(WIDE, HIDDEN));
    let mut feed_forward = vec![norm, gate];
    feed_forward.extend_from_slice(between);
    feed_forward.push(up);
    feed_forward.extend_from_slice(behind);
    feed_forward.extend([Op::mm(HIDDEN, WIDE), Op::residual()]);
    Program::of(layer(&[Op::mm(HIDDEN, HIDDEN), Op::residual()], &feed_forward))
}

/// The same with one GEMM for both.
fn joined(behind: &[Op]) -> Program {
    let mut feed_forward = vec![Op::norm(), Op::mm(2 * WIDE, HIDDEN)];
    feed_forward.extend_from_slice(behind);
    feed_forward.extend([Op::mm(HIDDEN, WIDE), Op::residual()]);
    Program::of(layer(&[Op::mm(HIDDEN, HIDDEN), Op::residual()], &feed_forward))
}

fn act(kernel: &'static str) -> Op {
    Op::act(kernel, WIDE)
}

#[test]
fn the_order_of_the_separate_kernels() {
    let orders = [gated(&[act(SILU)], &[Op::gate(WIDE)]), gated(&[], &[act(SILU), Op::gate(WIDE)])];
    let triton = Op::swiglu(WIDE).called("model::swiglu").by(TRITON_SWIGLU);
    for separate in &orders {
        for swiglu in [Op::swiglu(WIDE), triton.clone()] {
            let expected = [("ACT+MUL", &["ACT", "ELEMENTWISE"][..])];
            check(&gated(&[], std::slice::from_ref(&swiglu)), separate, &expected);
            check(&joined(&[swiglu]), separate, &expected);
        }
    }
}

#[test]
fn nothing_is_fused_in_another_order() {
    let [late, early] =
        [gated(&[], &[act(SILU), Op::gate(WIDE)]), gated(&[act(SILU)], &[Op::gate(WIDE)])];
    decoy(&late, &early);
    // Another activation, or one before a gate that the other side has not.
    let fused = gated(&[], &[Op::swiglu(WIDE)]);
    decoy(&fused, &gated(&[act(GELU)], &[Op::gate(WIDE)]));
    decoy(&fused, &gated(&[], &[Op::gate(WIDE)]));
}
