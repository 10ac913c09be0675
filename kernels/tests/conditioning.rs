//! Problems at which f32 itself is off by much: right kernels are not refused there, and wrong ones
//! still are.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use fused_kernels::cpu::Cpu;
use fused_kernels::{Backend, Expected, Inputs, Variant};
use fusion_cost_model::{CacheState, Problem};

/// Norms over one to three columns, whose deviation is small by chance; softmax of scores so large
/// that one of them takes all; norms and softmax after GEMMs, whose rounding they magnify.
const PROBLEMS: [&str; 25] = [
    "layer_norm/f32/m997.n1",
    "layer_norm/f32/m997.n2",
    "layer_norm/f32/m997.n3",
    "rms_norm/f32/m997.n1",
    "rms_norm/f32/m997.n2",
    "add_layernorm/f32/m997.n1",
    "add_layernorm/f32/m997.n2",
    "add_layernorm/f32/m997.n3",
    "add+rms_norm/f32/m997.n1",
    "add+rms_norm/f32/m997.n2",
    "linear+layer_norm/f32/m499.k31.n2",
    "linear+layer_norm/f32/m499.k1021.n2",
    "linear+layer_norm/f32/m499.k1021.n3",
    "linear+rms_norm/f32/m499.k1021.n1",
    "linear+bias+add+layer_norm/f32/m499.k257.n2",
    "linear+bias+gelu+linear+bias+add+layer_norm/f32/m499.k33.n129.o2",
    "softmax/f32/m997.n1",
    "softmax/f32/m997.n3",
    "linear+softmax/f32/m499.k1021.n2",
    "linear+softmax/f32/m499.k4093.n17",
    "linear+relu+linear+softmax/f32/m499.k129.n257.o2",
    "linear+relu+linear+softmax/f32/m499.k129.n257.o17",
    "linear+relu+linear+softmax/f32/m199.k1021.n509.o33",
    "linear+relu+linear+layer_norm/f32/m199.k129.n257.o3",
    "linear+rms_norm+silu+linear+dropout+softmax+relu/f32/m499.k33.n129.o3",
];

#[test]
fn no_right_kernel_is_refused_where_f32_is_ill_conditioned() {
    let mut cpu = Cpu::new(2).unwrap();
    for text in PROBLEMS {
        let problem: Problem = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        for seed in 0..3 {
            let inputs = Inputs::random(&problem, seed);
            // With a reference of all rows, and with the witness.
            let references =
                [u64::MAX, 1].map(|budget| Expected::compute(&problem, &inputs, budget));
            let mut prepared =
                cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
            let outputs = Variant::ALL.map(|variant| {
                prepared.poison().unwrap();
                prepared.run(variant, 1).unwrap();
                prepared.output().unwrap()
            });
            for expected in &references {
                let errors = expected.errors(outputs.each_ref().map(Vec::as_slice));
                let tolerance = expected.tolerance();
                assert!(
                    errors.each.iter().all(|error| *error <= tolerance)
                        && errors.between <= 2.0 * tolerance,
                    "{text}, seed {seed}, {} rows: {errors:?} above {tolerance:e}",
                    expected.rows(),
                );
            }
        }
    }
}

#[test]
fn a_wrong_row_is_still_seen_where_f32_is_ill_conditioned() {
    for text in PROBLEMS {
        let problem: Problem = text.parse().unwrap();
        let cols = problem.steps().last().unwrap().output.cols as usize;
        if cols == 1 {
            // Every row is the shift, or a sign: there is nothing to exchange.
            continue;
        }
        let inputs = Inputs::random(&problem, 0);
        let expected = Expected::compute(&problem, &inputs, u64::MAX);
        let mut cpu = Cpu::new(1).unwrap();
        let mut prepared =
            cpu.prepare(&problem, &inputs, CacheState::Warm.into()).unwrap().unwrap();
        prepared.run(Variant::Unfused, 1).unwrap();
        let output = prepared.output().unwrap();
        // A shift by a row, by a column, and a result that is a hundredth too large.
        let flaws: [fn(&mut [f32], usize); 3] = [
            |output, cols| output.rotate_left(cols),
            |output, _| output.rotate_left(1),
            |output, _| output.iter_mut().for_each(|y| *y *= 1.01),
        ];
        for (index, flaw) in flaws.into_iter().enumerate() {
            let mut wrong = output.clone();
            flaw(&mut wrong, cols);
            assert!(expected.error(&wrong) > expected.tolerance(), "{text}, flaw {index}");
        }
    }
}
