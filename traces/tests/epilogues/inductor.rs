//! What Inductor fuses into the kernel of an activation, as its name lists.

use super::program::{CLAMP, GELU, HIDDEN, Op, SILU, WIDE};
use super::{ACT, BIAS, check, decoy, of_pairs, up};

/// A kernel that Inductor generates, with the operator that the profiler names after it.
fn generated(name: &'static str) -> Op {
    Op { sizes: Op::bias(WIDE).sizes, ..Op::act(GELU, WIDE).by(name).called(name) }
}

fn mm() -> Op {
    Op::mm(WIDE, HIDDEN)
}

const GELUS: [&str; 3] = [
    "triton_poi_fused_addmm_gelu_2",
    "triton_poi_fused_add_gelu_view_3",
    "triton_poi_fused_add_addmm_erf_mul_2",
];

#[test]
fn a_bias_in_the_kernel_of_an_activation() {
    for name in GELUS {
        let fused = up(&[mm(), generated(name)]);
        let separate = up(&[mm(), Op::bias(WIDE), Op::act(GELU, WIDE)]);
        check(&fused, &separate, &[("ADD+ACT", &["ELEMENTWISE", "ACT"])]);
    }
    let fused = up(&[mm(), generated("triton_poi_fused_addmm_relu_2")]);
    let separate = up(&[mm(), Op::bias(WIDE), Op::act(CLAMP, WIDE)]);
    check(&fused, &separate, &[("ADD+ACT", &["ELEMENTWISE", "ELEMENTWISE"])]);
}

#[test]
fn an_epilogue_against_the_kernel_of_an_activation() {
    for name in GELUS {
        let separate = up(&[mm(), generated(name)]);
        for activation in [
            Op::addmm_activation(WIDE, HIDDEN),
            Op::addmm_activation(WIDE, HIDDEN).with_activation(true),
        ] {
            check(&up(&[activation]), &separate, &[ACT]);
        }
        let template = "triton_tem_fused_addmm_gelu_7";
        check(&up(&[mm().called(template).by(template)]), &separate, &[ACT]);
    }
}

#[test]
fn activations_that_list_no_bias() {
    let separate = up(&[mm(), Op::bias(WIDE), Op::act(GELU, WIDE)]);
    // One that is written out adds without a bias.
    for name in ["triton_poi_fused_gelu_2", "triton_poi_fused_add_erf_mul_2"] {
        decoy(&up(&[mm(), generated(name)]), &separate);
    }
    // Another activation, and a scale instead of a bias.
    decoy(&up(&[mm(), generated(GELUS[0])]), &up(&[mm(), Op::bias(WIDE), Op::act(SILU, WIDE)]));
    let scaled = Op::bias(WIDE).called("aten::mul");
    decoy(&up(&[mm(), generated(GELUS[0])]), &up(&[mm(), scaled, Op::act(GELU, WIDE)]));
    // It lists whose result it reads: the bias is in the GEMM.
    let fused = up(&[Op::addmm(WIDE, HIDDEN), generated(GELUS[0])]);
    for found in of_pairs(&fused, &up(&[Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)])) {
        assert_eq!(found, []);
    }
    check(&fused, &separate, &[BIAS]);
}
