//! What a GEMM does on the way is found, whatever shows it; what only one side does at all is not.

mod additions;
mod diffusion;
mod gates;
mod inductor;
mod program;

use crate::loaded::Loaded;
use kernel_traces::compare::{CompareOptions, Comparison, FusionEvidence, Role, Which};
use program::{CLAMP, GELU, HIDDEN, Op, Program, SILU, WIDE, layer};

/// A fusion: who fuses, what the fused kernel does, and what the separate ones do.
type Finding = (Which, String, Vec<String>);

fn load(program: &Program) -> Loaded {
    let loaded = Loaded::read(program.text());
    assert_eq!(loaded.segments.layers.count, 6);
    loaded
}

/// The fusions that are found between two programs, each once, in the order of the sides.
fn found(first: &Loaded, second: &Loaded) -> Vec<(Finding, FusionEvidence)> {
    let sides = [first.side("first.json"), second.side("second.json")];
    let comparison = Comparison::of(sides[0], sides[1], &CompareOptions::default()).unwrap();
    assert!(comparison.gap.rounding_ns.abs() < 0.1);
    let fusions = comparison.fusions.into_iter();
    let mut found: Vec<_> =
        fusions.map(|one| ((one.fused_by, one.operation, one.separate), one.by)).collect();
    found.sort_by_key(|((side, operation, separate), _)| {
        (format!("{side:?}"), operation.clone(), separate.clone())
    });
    found.dedup();
    found
}

/// What is found between programs on the same machine and on those of two vendors, in both orders:
/// the one that fuses comes first.
fn of_pairs(fused: &Program, separate: &Program) -> Vec<Vec<(Finding, FusionEvidence)>> {
    let turned = |found: Vec<(Finding, FusionEvidence)>| {
        let turn = |side| if side == Which::First { Which::Second } else { Which::First };
        let found = found.into_iter();
        let found = found.map(|((side, what, parts), by)| ((turn(side), what, parts), by));
        found.collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for vendors in [[false, false], [true, false], [false, true], [true, true]] {
        let [first, second] = [(fused, vendors[0], 7), (separate, vendors[1], 70)]
            .map(|(program, is_amd, seed)| load(&Program { is_amd, seed, ..program.clone() }));
        all.push(found(&first, &second));
        let mut back = turned(found(&second, &first));
        back.sort_by_key(|((side, operation, separate), _)| {
            (format!("{side:?}"), operation.clone(), separate.clone())
        });
        assert_eq!(back, all[all.len() - 1], "the mirror image");
    }
    all
}

/// All pairs show these fusions by the first side, by name or by its operator, and nothing else.
#[track_caller]
fn check(fused: &Program, separate: &Program, expected: &[(&str, &[&str])]) {
    let by_first = |(operation, parts): &(&str, &[&str])| {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        ((Which::First, (*operation).to_owned(), parts), FusionEvidence::Name)
    };
    let expected: Vec<_> = expected.iter().map(by_first).collect();
    for found in of_pairs(fused, separate) {
        assert_eq!(found, expected);
    }
}

fn up(rest: &[Op]) -> Program {
    let mut feed_forward = vec![Op::norm()];
    feed_forward.extend_from_slice(rest);
    feed_forward.extend([Op::addmm(HIDDEN, WIDE), Op::residual()]);
    Program::of(layer(&[Op::addmm(HIDDEN, HIDDEN), Op::residual()], &feed_forward))
}

fn without_sizes(program: &Program) -> Program {
    Program { has_sizes: false, ..program.clone() }
}

const RELU: (&str, &[&str]) = ("ACT+GEMM", &["GEMM", "ELEMENTWISE"]);
const ACT: (&str, &[&str]) = ("ACT+GEMM", &["GEMM", "ACT"]);
const BIAS: (&str, &[&str]) = ("ADD+GEMM", &["GEMM", "ELEMENTWISE"]);

#[test]
fn operators_show_activations() {
    let fused = up(&[Op::addmm_activation(WIDE, HIDDEN)]);
    for (kernel, expected) in [(CLAMP, RELU), (GELU, ACT)] {
        let separate = up(&[Op::addmm(WIDE, HIDDEN), Op::act(kernel, WIDE)]);
        check(&fused, &separate, &[expected]);
        check(&without_sizes(&fused), &without_sizes(&separate), &[expected]);
    }
}

#[test]
fn the_operator_computes_one_activation() {
    let fused = up(&[Op::addmm_activation(WIDE, HIDDEN)]);
    let act = Op::act(GELU, WIDE);
    check(&fused, &up(&[Op::addmm(WIDE, HIDDEN), act.clone(), act]), &[ACT]);
}

#[test]
fn the_operator_says_which_activation_it_computes() {
    for (is_gelu, kernel, expected) in [(false, CLAMP, RELU), (true, GELU, ACT)] {
        let fused = up(&[Op::addmm_activation(WIDE, HIDDEN).with_activation(is_gelu)]);
        let separate = |kernel| up(&[Op::addmm(WIDE, HIDDEN), Op::act(kernel, WIDE)]);
        check(&fused, &separate(kernel), &[expected]);
        for other in [CLAMP, GELU, SILU].into_iter().filter(|other| *other != kernel) {
            for found in of_pairs(&fused, &separate(other)) {
                assert_eq!(found, []);
            }
        }
    }
}

/// It has no projections of a next one behind it.
#[test]
fn a_fusion_in_the_last_layer_is_that_of_the_others() {
    let separate = up(&[Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)]);
    let [fused, separate] =
        [up(&[Op::addmm_activation(WIDE, HIDDEN)]), separate].map(|program| load(&program));
    let sides = [fused.side("first.json"), separate.side("second.json")];
    let comparison = Comparison::of(sides[0], sides[1], &CompareOptions::default()).unwrap();
    let [fusion] = &comparison.fusions[..] else { panic!("{:?}", comparison.fusions) };
    // In each of six layers in each of four steps.
    assert_eq!((fusion.role, fusion.count), (Role::GateUp, 24));
}

#[test]
fn an_activation_beside_another_one() {
    let gated = |last: &[Op]| {
        let mut rest = vec![Op::norm(), Op::mm(2 * WIDE, HIDDEN), Op::swiglu(WIDE)];
        rest.extend_from_slice(last);
        rest.push(Op::residual());
        Program::of(layer(&[Op::addmm(HIDDEN, HIDDEN), Op::residual()], &rest))
    };
    let fused = gated(&[Op::addmm_activation(HIDDEN, WIDE)]);
    for (kernel, expected) in [(CLAMP, RELU), (GELU, ACT)] {
        let separate = gated(&[Op::addmm(HIDDEN, WIDE), Op::act(kernel, HIDDEN)]);
        check(&fused, &separate, &[expected]);
    }
}

#[test]
fn operators_show_a_bias() {
    let fused = up(&[Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)]);
    let separate = up(&[Op::mm(WIDE, HIDDEN), Op::bias(WIDE), Op::act(GELU, WIDE)]);
    check(&fused, &separate, &[BIAS]);
    // Where a residual is added behind it, and where it is added with the norm.
    let out = |ops: &[Op]| {
        let rest = [Op::norm(), Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)];
        let rest = [&rest[..], &[Op::addmm(HIDDEN, WIDE), Op::residual()]].concat();
        Program::of(layer(ops, &rest))
    };
    let fused = out(&[Op::addmm(HIDDEN, HIDDEN), Op::residual()]);
    let separate = out(&[Op::mm(HIDDEN, HIDDEN), Op::bias(HIDDEN), Op::residual()]);
    check(&fused, &separate, &[BIAS]);
    let added = |ops: &[Op]| {
        let rest = [Op::add_norm(), Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)];
        let mut rest = [&rest[..], &[Op::addmm(HIDDEN, WIDE)]].concat();
        rest.push(Op::residual());
        Program::of(layer(ops, &rest))
    };
    let fused = added(&[Op::addmm(HIDDEN, HIDDEN)]);
    let separate = added(&[Op::mm(HIDDEN, HIDDEN), Op::bias(HIDDEN)]);
    check(&fused, &separate, &[BIAS]);
}

#[test]
fn without_sizes_the_operator_around_it_shows_a_bias() {
    let fused = without_sizes(&up(&[Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)]));
    let bias = Op::bias(WIDE);
    let separate =
        |bias: Op| without_sizes(&up(&[Op::mm(WIDE, HIDDEN), bias, Op::act(GELU, WIDE)]));
    check(&fused, &separate(bias.clone().inside("aten::linear")), &[BIAS]);
    check(&fused, &separate(bias), &[]);
}

#[test]
fn a_bias_and_an_activation_in_one_epilogue() {
    let fused = up(&[Op::addmm_activation(WIDE, HIDDEN)]);
    for (kernel, act) in [(CLAMP, "ELEMENTWISE"), (GELU, "ACT")] {
        let separate = up(&[Op::mm(WIDE, HIDDEN), Op::bias(WIDE), Op::act(kernel, WIDE)]);
        check(&fused, &separate, &[("ADD+ACT+GEMM", &["GEMM", "ELEMENTWISE", act])]);
    }
}

#[test]
fn names_show_a_relu() {
    for name in [
        "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align8",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x256_32x3_tn_align8>(Params)",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_bias_bf16_relu_execute_segment_k_off_kernel__5x_cublas",
        "triton_tem_fused_addmm_relu_3",
        "Cijk_Alik_Bljk_BBS_BH_Bias_Relu_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1_AFC1",
    ] {
        let gemm = Op::addmm(WIDE, HIDDEN).called("model::linear").by(name);
        let separate = up(&[Op::addmm(WIDE, HIDDEN), Op::act(CLAMP, WIDE)]);
        check(&up(&[gemm]), &separate, &[RELU]);
    }
}

/// Epilogues that only their time shows, each with another noise: how many of those are found.
fn found_by_time(percent: u64, kernel: &'static str, has_operators: bool) -> [usize; 2] {
    let act = Op::act(kernel, WIDE);
    let gemm = Op::addmm(WIDE, HIDDEN).called("model::linear").longer_by(act.ns * percent / 100);
    let fused = Program { has_operators, ..up(&[gemm]) };
    let separate = Program { has_operators, ..up(&[Op::addmm(WIDE, HIDDEN), act]) };
    let mut count = 0;
    let seeds = 1..9;
    for seed in seeds.clone() {
        let fused = load(&Program { seed, ..fused.clone() });
        let separate = load(&Program { seed: seed + 100, ..separate.clone() });
        let (there, back) = (found(&fused, &separate), found(&separate, &fused));
        assert_eq!(there.len(), back.len());
        let of = |one: &(Finding, FusionEvidence)| (one.0.1.clone(), one.1);
        let expected = ("ACT+GEMM".to_owned(), FusionEvidence::Absence);
        assert!(there.iter().all(|one| of(one) == expected), "{there:?}");
        count += there.len();
    }
    [count, seeds.count()]
}

#[test]
fn time_shows_activations() {
    for percent in [5, 10, 30, 60, 100] {
        let mut sum = [0, 0];
        for kernel in [CLAMP, GELU] {
            for has_operators in [true, false] {
                let [found, planted] = found_by_time(percent, kernel, has_operators);
                sum = [sum[0] + found, sum[1] + planted];
            }
        }
        println!("{percent} %: {} of {}", sum[0], sum[1]);
        assert!(sum[0] * 10 >= sum[1] * 9, "{percent} %: {sum:?}");
    }
}

/// Nothing is found in these.
#[track_caller]
fn decoy(one: &Program, other: &Program) {
    for found in of_pairs(one, other) {
        assert_eq!(found, []);
    }
    let without = |program: &Program| Program { has_operators: false, ..program.clone() };
    for [one, other] in
        [[&without_sizes(one), &without_sizes(other)], [&without(one), &without(other)]]
    {
        for found in of_pairs(one, other) {
            assert_eq!(found, []);
        }
    }
}

#[test]
fn an_activation_that_one_model_lacks() {
    for kernel in [CLAMP, GELU] {
        let separate = up(&[Op::addmm(WIDE, HIDDEN), Op::act(kernel, WIDE)]);
        decoy(&up(&[Op::addmm(WIDE, HIDDEN)]), &separate);
        decoy(&up(&[Op::mm(WIDE, HIDDEN)]), &separate);
        let own = Op::addmm(WIDE, HIDDEN).called("model::linear");
        decoy(&up(&[own]), &separate);
    }
}

/// The GEMM takes longer for another reason: its operator does no more.
#[test]
fn an_activation_that_one_model_lacks_beside_a_slow_gemm() {
    for kernel in [CLAMP, GELU] {
        let act = Op::act(kernel, WIDE);
        let slow = Op::addmm(WIDE, HIDDEN).longer_by(act.ns / 2);
        let bare = Op::mm(WIDE, HIDDEN).longer_by(act.ns / 2);
        let separate = up(&[Op::addmm(WIDE, HIDDEN), act]);
        for gemm in [slow, bare] {
            for found in of_pairs(&up(&[gemm]), &separate) {
                assert_eq!(found, []);
            }
        }
    }
}

#[test]
fn an_activation_that_is_elsewhere() {
    for kernel in [CLAMP, GELU] {
        let act = |width| Op::act(kernel, width);
        let program = |first: &[Op], second: &[Op]| {
            let feed_forward = [&[Op::norm()], first, second, &[Op::residual()]].concat();
            Program::of(layer(&[Op::addmm(HIDDEN, HIDDEN), Op::residual()], &feed_forward))
        };
        let separate = program(&[Op::addmm(WIDE, HIDDEN), act(WIDE)], &[Op::addmm(HIDDEN, WIDE)]);
        let behind = [Op::addmm(HIDDEN, WIDE), act(HIDDEN)];
        decoy(&program(&[Op::addmm(WIDE, HIDDEN)], &behind), &separate);
        // It does take longer, and its operator may do more.
        let longer = Op::addmm(WIDE, HIDDEN).called("model::linear").longer_by(3000);
        decoy(&program(&[longer], &behind), &separate);
        // The operator does compute one, but not that of the other side.
        decoy(&program(&[Op::addmm_activation(WIDE, HIDDEN)], &behind), &separate);
    }
}

#[test]
fn a_relu_in_the_names_of_all_gemms() {
    let relu = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align8";
    let named = |program: Program| {
        let mut program = program;
        for op in program.layer.iter_mut().filter(|op| op.kernel.starts_with("nvjet")) {
            *op = op.clone().called("model::linear").by(relu);
        }
        program
    };
    let separate = up(&[Op::addmm(WIDE, HIDDEN), Op::act(CLAMP, WIDE)]);
    decoy(&named(up(&[Op::addmm(WIDE, HIDDEN)])), &separate);
    // One of them, but the ReLU has a kernel of its own all the same.
    let one = Op::addmm(WIDE, HIDDEN).by(relu);
    decoy(&up(&[one, Op::act(CLAMP, WIDE)]), &separate);
}

/// It is the name of a kernel that libraries use for plain GEMMs, too.
#[test]
fn a_relu_in_the_name_of_one_gemm() {
    let relu = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_64x3_tn_align8";
    let named = up(&[Op::addmm(WIDE, HIDDEN).by(relu)]);
    // It is no other activation.
    for kernel in [GELU, SILU] {
        decoy(&named, &up(&[Op::addmm(WIDE, HIDDEN), Op::act(kernel, WIDE)]));
    }
    // The operator says that it does no more.
    for found in of_pairs(&named, &up(&[Op::addmm(WIDE, HIDDEN), Op::act(CLAMP, WIDE)])) {
        assert_eq!(found, []);
    }
}

#[test]
fn additions_that_are_no_bias() {
    let rest = [Op::norm(), Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE)];
    let rest = [&rest[..], &[Op::addmm(HIDDEN, WIDE), Op::residual()]].concat();
    let out = |ops: &[Op]| Program::of(layer(ops, &rest));
    // A linear without bias, a residual that one side lacks, and both.
    let usual = out(&[Op::addmm(HIDDEN, HIDDEN), Op::residual()]);
    decoy(&usual, &out(&[Op::mm(HIDDEN, HIDDEN), Op::residual()]));
    decoy(&usual, &out(&[Op::addmm(HIDDEN, HIDDEN)]));
    decoy(&out(&[Op::addmm(HIDDEN, HIDDEN)]), &out(&[Op::mm(HIDDEN, HIDDEN), Op::residual()]));
    // What is added to the norm, as positions are.
    let positions = [&[Op::norm(), Op::bias(HIDDEN)], &rest[1..]].concat();
    let positions = layer(&[Op::mm(HIDDEN, HIDDEN), Op::residual()], &positions);
    decoy(&usual, &Program::of(positions));
    // Both sides add it, and one of them has a bias besides.
    let both = out(&[Op::mm(HIDDEN, HIDDEN), Op::bias(HIDDEN), Op::residual()]);
    decoy(&out(&[Op::addmm(HIDDEN, HIDDEN), Op::bias(HIDDEN), Op::residual()]), &both);
    // A scale is no bias.
    let scaled = Op::bias(HIDDEN).called("aten::mul");
    decoy(&usual, &out(&[Op::mm(HIDDEN, HIDDEN), scaled, Op::residual()]));
}

#[test]
fn an_addition_that_is_fused_with_the_norm() {
    let rest = |norm: Op| {
        vec![norm, Op::addmm(WIDE, HIDDEN), Op::act(GELU, WIDE), Op::addmm(HIDDEN, WIDE)]
    };
    let fused = Program::of(layer(&[Op::addmm(HIDDEN, HIDDEN)], &rest(Op::add_norm())));
    let ops = |out: &[Op]| Program::of(layer(out, &rest(Op::norm())));
    let norm = ("ADD+NORM", &["ELEMENTWISE", "NORM"][..]);
    check(&fused, &ops(&[Op::mm(HIDDEN, HIDDEN), Op::residual()]), &[norm]);
    check(&fused, &ops(&[Op::addmm(HIDDEN, HIDDEN), Op::residual()]), &[norm]);
    let both = ops(&[Op::mm(HIDDEN, HIDDEN), Op::bias(HIDDEN), Op::residual()]);
    check(&fused, &both, &[BIAS, norm]);
}
