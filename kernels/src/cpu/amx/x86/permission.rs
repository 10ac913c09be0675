//! Whether this process may use the tiles.
//!
//! Their state is large, so that Linux saves it only for processes that ask (since 5.16). What a process
//! is granted holds for all its threads. Where one of them has a stack for signals that is too small for
//! the larger state, Linux refuses; and once it has granted, it refuses such stacks (of 8 KiB, say).

use std::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::LazyLock;

use fusion_cost_model::DType;

use super::tiles::{Dot, ROW_BYTES, ROWS, TILES};

/// `ARCH_REQ_XCOMP_PERM` of Linux's `asm/prctl.h`.
const REQUEST_PERMISSION: libc::c_long = 0x1023;

/// The state component with the tiles (Intel 64 and IA-32 Architectures Software Developer's Manual,
/// volume 1, section 13.1).
const TILE_DATA: libc::c_long = 18;

/// For numbers of a kind. Asks on the first call.
pub(in crate::cpu::amx) fn granted<E: Dot>() -> bool {
    static GRANTED: LazyLock<bool> = LazyLock::new(|| has_unit() && request());
    *GRANTED && (E::DTYPE != DType::F16 || has_f16())
}

/// Whether the processor multiplies bf16 and bytes in tiles of the size that the kernels have: leaves 7
/// and 1DH of CPUID.
fn has_unit() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    const ALL: u32 = BF16 | TILE | INT8;
    const TILE_LEAF: u32 = 0x1D;
    if __cpuid(0).eax < TILE_LEAF || __cpuid_count(7, 0).edx & ALL != ALL {
        return false;
    }
    let palette = __cpuid_count(TILE_LEAF, 1);
    let (row_bytes, tiles) = (palette.ebx & 0xFFFF, palette.ebx >> 16);
    [tiles, palette.ecx & 0xFFFF, row_bytes] == [TILES, ROWS, ROW_BYTES].map(|size| size as u32)
}

/// Whether a unit multiplies f16, from Granite Rapids on: the second part of leaf 7.
fn has_f16() -> bool {
    const F16: u32 = 1 << 21;
    __cpuid_count(7, 0).eax >= 1 && __cpuid_count(7, 1).eax & F16 != 0
}

fn request() -> bool {
    // SAFETY: this call takes two numbers and changes nothing but what the process may do.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
}
