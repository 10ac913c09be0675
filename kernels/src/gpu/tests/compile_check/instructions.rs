//! Instructions that kernels are to do without, counted in their machine code.

use fusion_cost_model::{DType, Problem};

use super::super::emulation::device;
use super::clang::Clang;
use super::nvrtc::Nvrtc;
use super::skipped;
use crate::gpu::lower::lower;
use crate::gpu::{Code, HEADERS};

/// The fused kernel of a problem.
fn fused(problem: &str, architecture: &str) -> Code {
    let problem: Problem = problem.parse().unwrap();
    lower(&problem, &device(architecture)).unwrap().fused.code
}

/// Instructions that read or write the mask of the lanes that take part: those of branches in which
/// lanes go different ways.
fn of_the_mask(assembly: &str) -> usize {
    let instruction = |line: &str| line.split(';').next().unwrap_or_default().trim().to_owned();
    let has_mask = |line: &String| {
        let is_label = line.starts_with('.') || line.ends_with(':');
        !is_label && (line.contains("exec") || line.starts_with("v_cmpx"))
    };
    assembly.lines().map(instruction).filter(has_mask).count()
}

/// A bf16 is rounded by integer operations where an f16 is by one instruction. With a branch for NaN
/// the lanes would go different ways at every number.
#[test]
fn lanes_round_to_bf16_without_branches() {
    let Some(clang) = Clang::find() else { return skipped("clang++-19") };
    let problems = [
        "attention_head/T/b8.h16.q1024.kv1024.d64",
        "linear_bias_relu/T/m4096.k4096.n4096",
        "add_layernorm/T/m8192.n1024",
        "add_relu/T/m4096.n4096",
    ];
    let count = |name: &str, problem: &str, dtype: DType| {
        let code = fused(&problem.replace('T', dtype.name()), name);
        of_the_mask(&clang.assembly(&code, &device(name).architecture).unwrap())
    };
    for name in ["gfx942", "gfx1201"] {
        for problem in problems {
            let [f16, bf16] = [DType::F16, DType::Bf16].map(|dtype| count(name, problem, dtype));
            println!("{name}, {problem}: {bf16} instructions of the mask in bf16, {f16} in f16");
            assert!(bf16 <= f16, "{name}, {problem}: {bf16} in bf16, {f16} in f16");
        }
    }
    // The branch is seen.
    let (_, number) = HEADERS.iter().find(|(name, _)| *name == "number.h").unwrap();
    let (from, to) = (
        "const u32 rounded = all",
        "if (is_nan(x)) return static_cast<u16>(all >> 16 | 0x40);\nconst u32 rounded = all",
    );
    assert_eq!(number.matches(from).count(), 1);
    let attention = |dtype| count("gfx942", problems[0], dtype);
    let without = attention(DType::Bf16);
    clang.replace("number.h", &number.replace(from, to));
    assert!(attention(DType::Bf16) > 2 * without);
}

/// A tile of 128 by 128 takes 16 of the wide core's instructions for each step along k and warp.
/// Rows of B are read in place, by words; two blocks have room in a compute unit's 64 KiB.
#[test]
fn large_gemms_on_mfma_gather_no_numbers() {
    let Some(clang) = Clang::find() else { return skipped("clang++-19") };
    for name in ["gfx90a", "gfx942"] {
        for dtype in ["f16", "bf16"] {
            let problem = format!("linear_bias_relu/{dtype}/m4096.k4096.n4096");
            let kernel = lower(&problem.parse().unwrap(), &device(name)).unwrap().fused;
            let assembly = clang.assembly(&kernel.code, &device(name).architecture).unwrap();
            let instructions = || assembly.lines().map(str::trim_start);
            let count = |what: &str| instructions().filter(|line| line.starts_with(what)).count();
            let wide = count("v_mfma_f32_32x32x8");
            for what in
                ["v_mfma", "ds_read", "ds_write", "v_perm", "v_accvgpr", "s_barrier", ".vgpr_"]
            {
                println!("{name}, {dtype}: {} {what}", count(what));
            }
            assert!(wide >= 16 && wide.is_multiple_of(16), "{name}, {dtype}: {wide} MMAs");
            assert_eq!(kernel.shape.shared_bytes, 32 << 10, "{name}, {dtype}");
            for absent in ["v_mfma_f32_16x16x16", "ds_read_u16", "scratch_"] {
                assert_eq!(count(absent), 0, "{name}, {dtype}: {absent}");
            }
        }
    }
}

/// The instructions of the kernels in an image: 16 bytes each, in sections named after them.
fn instructions(image: &[u8]) -> Vec<u128> {
    let number = |at: usize, bytes: usize| {
        (0..bytes).fold(0, |sum, i| sum | usize::from(image[at + i]) << (8 * i))
    };
    // e_shoff, e_shentsize, e_shnum and e_shstrndx; sh_name, sh_offset and sh_size of ELF-64.
    let (headers, size, count) = (number(40, 8), number(58, 2), number(60, 2));
    let of = |index: usize, at: usize, bytes: usize| number(headers + index * size + at, bytes);
    let names = of(number(62, 2), 24, 8);
    let is_code = |index: &usize| image[names + of(*index, 0, 4)..].starts_with(b".text.");
    let sections = (0..count).filter(is_code);
    let code = sections.flat_map(|index| {
        let from = of(index, 24, 8);
        image[from..from + of(index, 32, 8)].chunks_exact(16)
    });
    code.map(|bytes| u128::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// Fences that all of the device sees: `MEMBAR` (the lowest nine bits) whose scope, in bits 76 and 77,
/// is the device or the system, and not the block.
fn device_wide_fences(image: &[u8]) -> usize {
    let is_fence = |one: &&u128| **one & 0x1FF == 0x192 && **one >> 76 & 3 >= 2;
    instructions(image).iter().filter(|one| is_fence(one)).count()
}

/// Kernels of several phases wait for other blocks, and see what these have written. Others run no
/// fence for that, at which every warp would wait for its accesses of memory. Attention by `wgmma` has
/// one in a branch that is never taken, which keeps the assembler from moving its softmax.
#[test]
fn kernels_of_one_phase_run_no_fence_of_the_whole_device() {
    let Some(nvrtc) = Nvrtc::find() else { return skipped("NVRTC") };
    let count = |problem: &str, name: &str| {
        let code = fused(problem, name);
        let image = nvrtc.image(&code, &device(name).architecture).unwrap();
        assert!(instructions(&image).len() > 50, "{problem}");
        (code.entry, device_wide_fences(&image))
    };
    for name in ["sm_80", "sm_90a"] {
        for problem in [
            "linear_bias_relu/bf16/m4096.k4096.n4096",
            "linear_bias_gelu/f16/m4096.k4096.n64",
            "attention_head/bf16/b8.h16.q1024.kv1024.d64",
            "attention_head/f16/b1.h32.q2048.kv2048.d128",
            "conv_bn_relu/bf16/n32.c64.h56.w56.k64.r3.s3.pad1",
            "add_layernorm/bf16/m8192.n1024",
            "add_relu/f32/m4096.n4096",
        ] {
            let (entry, fences) = count(problem, name);
            let expected = usize::from(entry.starts_with("attention_wgmma_"));
            assert!(!entry.contains("__"), "{name}, {entry} has several phases");
            assert_eq!(fences, expected, "{name}, {entry}");
        }
        // And where there are some, they are found.
        let (entry, fences) = count("linear+bias+layer_norm/bf16/m4096.k1024.n4096", name);
        assert!(entry.contains("__") && fences > 0, "{name}, {entry}");
    }
}
