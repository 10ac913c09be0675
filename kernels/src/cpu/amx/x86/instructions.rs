//! The instructions of the unit.
//!
//! Rust has no name for them yet, so that they are written in assembly. The compiler keeps nothing in
//! tiles: what one instruction leaves there, the next finds.

use std::arch::asm;
use std::hint::black_box;

use half::{bf16, f16};

use super::tiles::{COLS, Dot, ROW_BYTES, ROWS, Shapes, Unit, left, right, sums};
use crate::cpu::{fours, pairs};

/// The unit of this processor.
pub(super) struct Amx;

impl Unit for Amx {
    #[inline(always)]
    unsafe fn set(shapes: &Shapes) {
        // SAFETY: the caller's guarantee; the 64 bytes are read.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) std::ptr::from_ref(shapes),
                options(nostack, preserves_flags, readonly),
            );
        }
    }

    #[inline(always)]
    unsafe fn release() {
        // SAFETY: the caller's guarantee.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) }
    }

    #[inline(always)]
    unsafe fn zero<const TILE: usize>() {
        // SAFETY: the caller's guarantee.
        unsafe { asm!("tilezero tmm{}", const TILE, options(nostack, preserves_flags, nomem)) }
    }

    #[inline(always)]
    unsafe fn load<const TILE: usize>(rows: *const u8, stride: usize) {
        // SAFETY: the caller's guarantee.
        unsafe {
            asm!(
                "tileloadd tmm{}, [{} + 1*{}]",
                const TILE,
                in(reg) rows,
                in(reg) stride,
                options(nostack, preserves_flags, readonly),
            );
        }
    }

    #[inline(always)]
    unsafe fn store<const TILE: usize>(rows: *mut u8, stride: usize) {
        // SAFETY: the caller's guarantee.
        unsafe {
            asm!(
                "tilestored [{} + 1*{}], tmm{}",
                in(reg) rows,
                in(reg) stride,
                const TILE,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    unsafe fn add_products<E: Dot, const SUMS: usize, const LEFT: usize, const RIGHT: usize>() {
        // SAFETY: the caller's guarantee.
        unsafe { E::add_products::<SUMS, LEFT, RIGHT>() };
    }
}

impl Dot for bf16 {
    const TOGETHER: usize = pairs::TOGETHER;

    #[inline(always)]
    unsafe fn add_products<const SUMS: usize, const LEFT: usize, const RIGHT: usize>() {
        // SAFETY: the caller's guarantee.
        unsafe {
            asm!(
                "tdpbf16ps tmm{}, tmm{}, tmm{}",
                const SUMS,
                const LEFT,
                const RIGHT,
                options(nostack, preserves_flags, nomem),
            );
        }
    }

    #[inline(always)]
    fn finish(sum: f32, factor: f32) -> f32 {
        sum * factor
    }
}

impl Dot for f16 {
    const TOGETHER: usize = pairs::TOGETHER;

    #[inline(always)]
    unsafe fn add_products<const SUMS: usize, const LEFT: usize, const RIGHT: usize>() {
        // SAFETY: the caller's guarantee.
        unsafe {
            asm!(
                "tdpfp16ps tmm{}, tmm{}, tmm{}",
                const SUMS,
                const LEFT,
                const RIGHT,
                options(nostack, preserves_flags, nomem),
            );
        }
    }

    #[inline(always)]
    fn finish(sum: f32, factor: f32) -> f32 {
        sum * factor
    }
}

impl Dot for u8 {
    const TOGETHER: usize = fours::TOGETHER;

    #[inline(always)]
    unsafe fn add_products<const SUMS: usize, const LEFT: usize, const RIGHT: usize>() {
        // SAFETY: the caller's guarantee.
        unsafe {
            asm!(
                "tdpbusd tmm{}, tmm{}, tmm{}",
                const SUMS,
                const LEFT,
                const RIGHT,
                options(nostack, preserves_flags, nomem),
            );
        }
    }

    /// A sum is an integer until then.
    #[inline(always)]
    fn finish(sum: f32, factor: f32) -> f32 {
        sum.to_bits().cast_signed() as f32 * factor
    }
}

/// See `amx::operations`.
///
/// # Safety
///
/// As for [`Unit`].
pub(in crate::cpu::amx) unsafe fn operations<E: Dot>() -> f64 {
    /// Products of tiles in each sum.
    const DEPTH: usize = 1024;
    // As two numbers of bf16 they are a little below one, and as f16 below two.
    let numbers = black_box([0x3F7F_3F7F_u32; ROWS * COLS]);
    let rows = numbers.as_ptr().cast();
    // SAFETY: the caller's guarantee; the tiles are whole ones.
    unsafe {
        Amx::set(&Shapes::new([ROWS; 2], [COLS; 2]));
        Amx::load::<{ left(0) }>(rows, ROW_BYTES);
        Amx::load::<{ left(1) }>(rows, ROW_BYTES);
        Amx::load::<{ right(0) }>(rows, ROW_BYTES);
        Amx::load::<{ right(1) }>(rows, ROW_BYTES);
        for _ in 0..DEPTH {
            E::add_products::<{ sums(0, 0) }, { left(0) }, { right(0) }>();
            E::add_products::<{ sums(0, 1) }, { left(0) }, { right(1) }>();
            E::add_products::<{ sums(1, 0) }, { left(1) }, { right(0) }>();
            E::add_products::<{ sums(1, 1) }, { left(1) }, { right(1) }>();
        }
        Amx::release();
    }
    let terms = COLS * E::TOGETHER;
    (2 * ROWS * COLS * terms * 4 * DEPTH) as f64
}
