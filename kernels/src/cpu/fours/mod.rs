//! The micro-kernel of GEMMs on 8-bit integers: unsigned ones times signed ones, four of a row at a time,
//! with sums in 32 bits.
//!
//! A sum is exact: it has at most [`MOST_TERMS`] terms. It becomes f32 when it is whole, by one
//! rounding, and is multiplied with the scales of both matrices.
//!
//! One instruction of a processor with VNNI (`vpdpbusd`) multiplies four numbers of each lane and adds
//! the products to its sum. On others, the even and the odd numbers are widened to 16 bits, and two
//! products at a time are added up (`vpmaddwd`), which is exact: the instruction that takes 8-bit
//! numbers (`vpmaddubsw`) is not, since its sums of two products may not fit into 16 bits.
//!
//! It goes through rows and panels as `strip` does.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod vectors;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86;

use pulp::Arch;

use super::strip::Strip;

/// Numbers of a row that are multiplied together.
pub(crate) const TOGETHER: usize = 4;

/// A sum of this many terms always fits into 32 bits.
pub(crate) const MOST_TERMS: usize = i32::MAX as usize / (255 * 128);

/// Whether there is a micro-kernel for these vectors.
pub(crate) fn supported(arch: Arch) -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return matches!(arch, Arch::V3(_) | Arch::V4(_));
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let _ = arch;
        false
    }
}

/// Computes a strip whose panel has fours.
///
/// # Safety
///
/// As for [`Strip::compute`], where [`supported`], of at most [`MOST_TERMS`] terms. The numbers of a run
/// are whole fours, but for those of rows that are one run, and there is no epilogue.
pub(crate) unsafe fn compute(strip: &Strip<u8>, arch: Arch) {
    assert!(strip.epilogue.is_none() && strip.k <= MOST_TERMS);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's guarantee.
    unsafe {
        x86::compute(strip, arch);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = arch;
}

/// Adds products to as many sums as the micro-kernel has, and returns how many operations that are;
/// 0 where there is none.
pub(crate) fn operations(arch: Arch) -> f64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return x86::operations(arch);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let _ = arch;
        0.0
    }
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests;
