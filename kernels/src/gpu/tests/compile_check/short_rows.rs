//! Softmax and norms of rows that a warp has to itself, several of them in a block.

use std::sync::Mutex;

use fusion_cost_model::kernel::Form;
use fusion_cost_model::{Chain, DType, PATTERNS, Problem};

use super::super::emulation::device;
use super::super::problems::CHAINS;
use super::clang::Clang;
use super::nvrtc::Nvrtc;
use super::{Facts, Toolchain, resident_blocks, skipped};
use crate::gpu::lower::lower;
use crate::gpu::plan::KernelPlan;

/// The longest row of a warp, that of BERT-base, and the longest with 16 numbers to a lane of 32.
const COLS: [u64; 3] = [1024, 768, 512];

/// The fused kernels of all chains of rows, each with one number of columns and one dtype.
fn kernels(name: &str, turn: usize) -> Vec<(Problem, KernelPlan)> {
    let chains = PATTERNS.iter().map(|pattern| pattern.name).chain(CHAINS.iter().copied());
    let of_rows = chains.filter(|chain| chain.parse::<Chain>().unwrap().form() == Form::Rows);
    let mut kernels = Vec::new();
    for (index, chain) in of_rows.enumerate() {
        for (other, dtype) in [DType::F32, DType::F16, DType::Bf16].into_iter().enumerate() {
            let cols = COLS[(index + other + turn) % COLS.len()];
            let problem: Problem = format!("{chain}/{dtype}/m8192.n{cols}").parse().unwrap();
            let fused = lower(&problem, &device(name)).unwrap().fused;
            if fused.code.entry.starts_with("rows") {
                kernels.push((problem, fused));
            }
        }
    }
    kernels
}

/// Nothing of a row is in memory, and a processor has room for two blocks.
fn stay_in_registers(toolchain: &dyn Toolchain, names: &[&str]) {
    for (turn, name) in names.iter().enumerate() {
        let architecture = device(name).architecture;
        let kernels = kernels(name, turn);
        let next = Mutex::new(kernels.iter());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    loop {
                        let Some((problem, kernel)) = next.lock().unwrap().next() else { break };
                        let facts = toolchain.compile(&kernel.code, &architecture);
                        let facts = facts.unwrap_or_else(|log| panic!("{name}, {problem}: {log}"));
                        let Facts { registers, spilled_bytes, stack_bytes } = facts;
                        let threads = kernel.shape.threads;
                        let blocks = resident_blocks(&architecture, threads, registers);
                        println!(
                            "{name}, {problem}: {registers} registers, {blocks} blocks of {threads} \
                             threads, {spilled_bytes} + {stack_bytes} bytes, {}",
                            kernel.code.entry
                        );
                        assert_eq!((spilled_bytes, stack_bytes), (0, 0), "{name}, {problem}");
                        assert!(blocks >= 2, "{name}, {problem}: {registers} registers");
                    }
                });
            }
        });
    }
}

#[test]
fn nvidias_compiler_keeps_short_rows_in_registers() {
    let Some(nvrtc) = Nvrtc::find() else { return skipped("NVRTC") };
    stay_in_registers(&nvrtc, &["sm_80", "sm_90a"]);
}

#[test]
fn clang_keeps_short_rows_in_registers() {
    let Some(clang) = Clang::find() else { return skipped("clang++-19") };
    stay_in_registers(&clang, &["gfx942", "gfx1100", "gfx1201"]);
}
