//! Kernels through the compilers of the architectures that they are for.
//!
//! An emulation says that a kernel computes the right thing; this says that the compiler of a
//! device takes it, and that it keeps in registers what is meant to be there. It says nothing of
//! what a device makes of it.

mod clang;
mod instructions;
mod nvrtc;
mod probes;

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Instant;

use fusion_cost_model::kernel::Form;
use fusion_cost_model::{Chain, DType, PATTERNS, Problem};

use super::emulation::device;
use super::problems::{CHAINS, sizes};
use crate::gpu::lower::lower;
use crate::gpu::{Architecture, Code, KernelPlan};

/// A compiler that reports what it made of a kernel.
trait Toolchain: Sync {
    /// What it made, or its errors.
    fn compile(&self, code: &Code, architecture: &Architecture) -> Result<Facts, String>;
}

/// A compiled kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Facts {
    /// Registers of a thread.
    registers: u32,
    /// Bytes of registers that had no room.
    spilled_bytes: u32,
    /// Bytes of a thread's memory for whatever is in no register.
    stack_bytes: u32,
}

/// Sizes as they are measured; those of the other tests are small or odd.
fn usual_sizes(form: Form) -> &'static [&'static str] {
    match form {
        Form::Rows => &["m8192.n1024", "m4096.n4096", "m512.n32768", "m64.n131072"],
        Form::Linear => &["m4096.k4096.n4096", "m64.k4096.n4096", "m1.k4096.n4096"],
        Form::Mlp => &["m4096.k1024.n4096.o1024", "m16.k768.n3072.o768"],
        Form::Conv => &[
            "n32.c64.h56.w56.k64.r3.s3.pad1",
            "n8.c256.h14.w14.k1024.r1.s1",
            "n8.c128.h28.w28.k128.r3.s3.pad1.groups128",
        ],
        Form::Pool => &["n32.c64.h112.w112.pool3.pstride2.ppad1"],
        Form::ConvPool => &["n32.c3.h224.w224.k64.r7.s7.stride2.pad3.pool3.pstride2.ppad1"],
        Form::Attention => &["b8.h16.q1024.kv1024.d64", "b1.h32.q2048.kv2048.d128"],
        Form::MultiheadLinear => &["b8.h16.q1024.kv1024.d64.n1024"],
    }
}

/// Which chains are compiled for an architecture.
#[derive(Debug, Clone, Copy)]
enum Chains {
    /// All of them, many in two sizes: some minutes.
    All,
    /// Every chain for one of the architectures of a compiler, in one size.
    Dealt,
}

/// The kernels of an architecture: those of its chains, each in one of the usual sizes, and, where all
/// are chosen, every second one in one of the others, too. Which sizes, and in which dtypes, differs
/// from chain to chain and from one architecture to the next: everything for each would take hours.
fn kernels(
    name: &str,
    turn: usize,
    chosen: Chains,
    is_compiled: impl Fn(usize) -> bool,
    wrong: &mut Vec<String>,
) -> Vec<(DType, KernelPlan)> {
    const DTYPES: [DType; 3] = [DType::Bf16, DType::F16, DType::F32];
    let device = device(name);
    let mut known = HashSet::new();
    let mut kernels = Vec::new();
    let chains = PATTERNS.iter().map(|pattern| pattern.name).chain(CHAINS.iter().copied());
    for (index, chain) in chains.enumerate().filter(|(index, _)| is_compiled(*index)) {
        let form = chain.parse::<Chain>().unwrap().form();
        let turn = index + turn;
        let pick = |sizes: &'static [&'static str]| sizes[turn % sizes.len()];
        let has_other = matches!(chosen, Chains::All) && turn.is_multiple_of(2);
        let other = has_other.then(|| (pick(sizes(form)), turn + 1));
        for (sizes, turn) in [(pick(usual_sizes(form)), turn)].into_iter().chain(other) {
            let dtype = DTYPES[turn % DTYPES.len()];
            let problem: Problem = format!("{chain}/{dtype}/{sizes}").parse().unwrap();
            let Some(plan) = lower(&problem, &device) else {
                wrong.push(format!("{name}: there are no kernels for {problem}"));
                continue;
            };
            for kernel in plan.unfused.into_iter().chain([plan.fused]) {
                if known.insert(kernel.code.entry.clone()) {
                    kernels.push((dtype, kernel));
                }
            }
        }
    }
    kernels
}

/// Compiles the kernels of some architectures, prints what became of them, and returns what is
/// wrong.
fn check(toolchain: &dyn Toolchain, architectures: &[&str], chains: Chains) -> Vec<String> {
    let mut wrong = Vec::new();
    println!(
        "| architecture | kernels | dtype | number | most registers | spilled bytes | stack bytes |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for (index, name) in architectures.iter().enumerate() {
        let start = Instant::now();
        let architecture = device(name).architecture;
        let is_compiled = |chain: usize| match chains {
            Chains::All => true,
            Chains::Dealt => chain % architectures.len() == index,
        };
        let kernels = kernels(name, index, chains, is_compiled, &mut wrong);
        let next = Mutex::new(kernels.iter());
        let compiled = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(|| {
                    loop {
                        let Some((dtype, kernel)) = next.lock().unwrap().next() else { break };
                        let facts = toolchain.compile(&kernel.code, &architecture);
                        compiled.lock().unwrap().push((*dtype, kernel, facts));
                    }
                });
            }
        });
        let mut table: BTreeMap<(&str, DType), (usize, Facts)> = BTreeMap::new();
        for (dtype, kernel, facts) in compiled.into_inner().unwrap() {
            let entry = &kernel.code.entry;
            let facts = match facts {
                Ok(facts) => facts,
                Err(log) => {
                    let log: Vec<&str> = log.lines().take(6).collect();
                    wrong.push(format!("{name}: {entry} does not compile:\n{}", log.join("\n")));
                    continue;
                }
            };
            let number = entry.find(|letter: char| letter.is_ascii_digit());
            let kind = entry[..number.unwrap_or(entry.len())].trim_end_matches('_');
            let (count, most) = table.entry((kind, dtype)).or_default();
            *count += 1;
            most.registers = most.registers.max(facts.registers);
            most.spilled_bytes = most.spilled_bytes.max(facts.spilled_bytes);
            most.stack_bytes = most.stack_bytes.max(facts.stack_bytes);
            wrong.extend(objection(&architecture, dtype, kernel, &facts).map(|what| {
                format!("{name}, {dtype}: {entry}, {} threads: {what}", kernel.shape.threads)
            }));
        }
        for ((kind, dtype), (count, most)) in table {
            let Facts { registers, spilled_bytes, stack_bytes } = most;
            println!(
                "| {name} | {kind} | {dtype} | {count} | {registers} | {spilled_bytes} | \
                 {stack_bytes} |"
            );
        }
        eprintln!("{name}: {} kernels in {:.1} s", kernels.len(), start.elapsed().as_secs_f64());
    }
    wrong
}

/// Of each thread of a kernel by `wgmma` when it begins: `REGISTERS` of `hopper/gemm.h`.
const REGISTERS_TO_SHARE: u32 = 168;

/// What is wrong with a compiled kernel.
///
/// GEMMs in f32 have no matrix instructions and are as fast as their multiply-adds; what they
/// spill is in the table and no error.
fn objection(
    architecture: &Architecture,
    dtype: DType,
    kernel: &KernelPlan,
    facts: &Facts,
) -> Option<String> {
    let of_memory = ["pointwise", "rows", "max_pool"]
        .iter()
        .any(|kind| kernel.code.entry.starts_with(kind) && !kernel.code.entry.contains("__"));
    let hot = of_memory || dtype != DType::F32;
    // Two kinds of kernels by `wgmma` put a few registers aside: those of several phases, which
    // store and load them outside of the loops along k, and attention with heads of 128 numbers,
    // which loads some again for every step along the keys.
    let entry = &kernel.code.entry;
    let tight = entry.contains("__") || entry.contains("attention_wgmma_128x128x128");
    let aside = if entry.contains("wgmma") && tight { 128 } else { 0 };
    if hot && (facts.spilled_bytes > aside || facts.stack_bytes > aside) {
        return Some(format!("not all of it is in registers: {facts:?}"));
    }
    // Warpgroups share out what a block begins with: were that less, one would wait for the rest
    // for ever.
    let shares = |phase: &str| phase.contains("wgmma") && !phase.contains("_128x64x");
    if entry.split("__").any(shares) && facts.registers != REGISTERS_TO_SHARE {
        return Some(format!("its threads begin with {} registers", facts.registers));
    }
    let blocks = resident_blocks(architecture, kernel.shape.threads, facts.registers);
    // What waits for memory needs others to go on with.
    let wanted = if of_memory && kernel.shape.threads <= 512 { 2 } else { 1 };
    (blocks < wanted)
        .then(|| format!("{} registers leave room for {blocks} blocks", facts.registers))
}

/// Blocks that a multiprocessor or compute unit holds at a time by their registers.
fn resident_blocks(architecture: &Architecture, threads: u32, registers: u32) -> u32 {
    let name = architecture.name.as_str();
    let warps = threads.div_ceil(architecture.warp);
    // Registers of a lane in each part of a processor, how many such parts there are, in which
    // steps registers are given out, and the most warps of a part. CUDA programming guide, table
    // of technical specifications; LLVM's AMDGPU backend, `AMDGPUBaseInfo`. From gfx10 on a block
    // has two compute units.
    let (all, parts, step, most) = match name {
        "sm_75" => (512, 4, 8, 8),
        _ if name.starts_with("sm_") => (512, 4, 8, 16),
        _ if name.starts_with("gfx9") => (512, 4, 8, 8),
        _ => (1536, 4, 24, 16),
    };
    let warps_of_part = (all / registers.max(1).next_multiple_of(step)).min(most);
    parts * warps_of_part / warps
}

fn skipped(tool: &str) {
    let needed = std::env::var_os("CALIBRATE_NEEDS_GPU_TOOLS").is_some();
    assert!(!needed, "{tool} is missing");
    eprintln!("skipped: {tool} is missing");
}

#[track_caller]
fn assert_nothing(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} kernels:\n{}", wrong.len(), wrong.join("\n"));
}

fn by_nvidias_compiler(chains: Chains) {
    match nvrtc::Nvrtc::find() {
        Some(nvrtc) => assert_nothing(&check(&nvrtc, &["sm_75", "sm_80", "sm_90a"], chains)),
        None => skipped("NVRTC (the environment variable CALIBRATE_NVRTC may name its library)"),
    }
}

fn by_clang(chains: Chains) {
    match clang::Clang::find() {
        Some(clang) => {
            let architectures = ["gfx90a", "gfx942", "gfx1100", "gfx1201"];
            assert_nothing(&check(&clang, &architectures, chains));
        }
        None => skipped("clang++-19 with lld and llvm-readelf"),
    }
}

#[test]
fn nvidias_compiler_takes_all_chains_and_keeps_them_in_registers() {
    by_nvidias_compiler(Chains::Dealt);
}

#[test]
fn clang_takes_all_chains_for_amd_and_keeps_them_in_registers() {
    by_clang(Chains::Dealt);
}

#[test]
#[ignore = "takes some minutes: ALL_ARCHITECTURES=1 .ci/run runs it, and so does the workflow"]
fn nvidias_compiler_takes_all_chains_for_all_architectures() {
    by_nvidias_compiler(Chains::All);
}

#[test]
#[ignore = "takes some minutes: ALL_ARCHITECTURES=1 .ci/run runs it, and so does the workflow"]
fn clang_takes_all_chains_for_all_architectures_of_amd() {
    by_clang(Chains::All);
}
