//! The micro-kernel of GEMMs on the matrix unit of x86-64 (AMX), for bf16, f16 and 8-bit integers.
//!
//! The unit has eight tiles of 16 rows of 64 bytes. One instruction multiplies 16 rows of 16 groups with
//! 16 groups of 16 columns, where a group is a pair of bf16 or f16 or four bytes, and adds to 16 x 16 sums in 32
//! bits: 8,192 multiply-adds of bf16, where `vdpbf16ps` does 32. It takes panels as they are packed for
//! `pairs` and `fours`, and rows as they lie, sixteen at a time. Two tiles of rows and two of columns
//! have four tiles of sums, as many as there is room for.
//!
//! Rows of a tile are a constant stride apart, so that one has rows of one line of pixels only. Groups
//! that do not lie side by side, such as those of a narrow window, are gathered first.
//!
//! Products of bf16 and of f16 are exact in f32. The unit adds those of a tile to a sum of their own,
//! and that to the tile of sums, each time rounding to the nearest: a sum is off by no more than one
//! rounding step of f32 for each term and two for each sixteen groups. Denormals of bf16 and of f32 are
//! zeros before and after, as for `pairs`; those of f16 count for what they are. Sums of integers are
//! exact.

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod x86;

use pulp::Arch;

use super::strip::Strip;

/// Numbers that the unit multiplies.
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
pub(crate) use self::x86::Dot;

/// Numbers that a unit would multiply.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
pub(crate) use super::element::Left as Dot;

/// Whether the processor has such a unit for bf16 and for bytes, and for these numbers; the system lets
/// this process use it; and kernels may use vectors as wide as its rows. Asks the system on the first
/// call.
pub(crate) fn supported<E: Dot>(arch: Arch) -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    return matches!(arch, Arch::V4(_)) && x86::granted::<E>();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
    {
        let _ = arch;
        false
    }
}

/// Computes a strip whose panel has groups.
///
/// # Safety
///
/// As for `pairs::compute` and `fours::compute`, where [`supported`].
pub(crate) unsafe fn compute<E: Dot>(strip: &Strip<E>) {
    assert!(strip.epilogue.is_none());
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    // SAFETY: the caller's guarantee.
    unsafe {
        x86::compute(strip);
    }
}

/// Adds products to as many sums as there is room for, and returns how many operations that are.
///
/// # Safety
///
/// Where [`supported`].
pub(crate) unsafe fn operations<E: Dot>() -> f64 {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
    // SAFETY: the caller's guarantee.
    return unsafe { x86::operations::<E>() };
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri))))]
    0.0
}
