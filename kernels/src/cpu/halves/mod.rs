//! Vectors of numbers of two bytes: how they are read and written, whatever their format.

use pulp::Simd;

use super::element::{Element, load_each};
use super::lanes::LaneMask;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::lanes::{AVX2, AVX512};
#[cfg(all(target_arch = "aarch64", not(miri)))]
use super::neon;

#[cfg(all(target_arch = "aarch64", not(miri)))]
use std::arch::aarch64 as arm;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64 as x86;

/// A format of two bytes: its numbers as f32, which is exact, and the nearest ones to numbers of f32, to
/// the even one in the middle.
pub(super) trait Half: Element {
    /// # Safety
    ///
    /// The processor must have AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn widen_16(halves: x86::__m256i) -> x86::__m512;

    /// # Safety
    ///
    /// As for [`Self::widen_16`].
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn round_16(numbers: x86::__m512) -> x86::__m256i;

    /// # Safety
    ///
    /// The processor must have AVX2, and F16C for f16.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn widen_8(halves: x86::__m128i) -> x86::__m256;

    /// # Safety
    ///
    /// As for [`Self::widen_8`].
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe fn round_8<S: Simd>(simd: S, numbers: x86::__m256) -> x86::__m128i;

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    fn widen_4(halves: arm::uint16x4_t) -> arm::float32x4_t;

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    fn round_4<S: Simd>(simd: S, numbers: arm::float32x4_t) -> arm::uint16x4_t;
}

/// See [`Element::splat`]: for formats that vectors are faster to widen than single numbers.
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub(super) unsafe fn splat<S: Simd, H: Half>(simd: S, source: *const H) -> S::f32s {
    // SAFETY: as for `load`.
    unsafe {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let bits = || source.cast::<i16>().read_unaligned();
            match size_of::<S::f32s>() {
                AVX512 => {
                    return std::mem::transmute_copy(&H::widen_16(x86::_mm256_set1_epi16(bits())));
                }
                AVX2 => return std::mem::transmute_copy(&H::widen_8(x86::_mm_set1_epi16(bits()))),
                _ => {}
            }
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        if size_of::<S::f32s>() == neon::VECTOR_BYTES {
            let halves = arm::vdup_n_u16(source.cast::<u16>().read_unaligned());
            return std::mem::transmute_copy(&H::widen_4(halves));
        }
        simd.splat_f32s(source.read_unaligned().widen())
    }
}

/// See [`Element::load`].
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub(super) unsafe fn load<S: Simd, H: Half>(simd: S, source: *const H) -> S::f32s {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the vectors have the sizes that are matched; the rest is the caller's guarantee.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => {
                let halves = source.cast::<x86::__m256i>().read_unaligned();
                return std::mem::transmute_copy(&H::widen_16(halves));
            }
            AVX2 => {
                let halves = source.cast::<x86::__m128i>().read_unaligned();
                return std::mem::transmute_copy(&H::widen_8(halves));
            }
            _ => {}
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    if size_of::<S::f32s>() == neon::VECTOR_BYTES {
        // SAFETY: both are vectors of 16 bytes; the rest is the caller's guarantee.
        return unsafe { std::mem::transmute_copy(&H::widen_4(arm::vld1_u16(source.cast()))) };
    }
    // SAFETY: the caller's guarantee.
    unsafe { load_each(simd, source, S::F32_LANES) }
}

/// See [`Element::load_some`].
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub(super) unsafe fn load_some<S: Simd, H: Half>(
    simd: S,
    source: *const H,
    lanes: LaneMask<S>,
) -> S::f32s {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `load`; only the lanes of the mask are read.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => {
                let halves = x86::_mm256_maskz_loadu_epi16(first_of_16(lanes.count), source.cast());
                return std::mem::transmute_copy(&H::widen_16(halves));
            }
            AVX2 if lanes.count < S::F32_LANES => {
                let halves = load_first_of_8(source.cast(), lanes.count);
                return std::mem::transmute_copy(&H::widen_8(halves));
            }
            _ => {}
        }
    }
    // SAFETY: the caller's guarantee.
    unsafe {
        if lanes.count == S::F32_LANES {
            load(simd, source)
        } else {
            load_each(simd, source, lanes.count)
        }
    }
}

/// See [`Element::store`].
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub(super) unsafe fn store<S: Simd, H: Half>(simd: S, target: *mut H, v: S::f32s) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `load`.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => {
                let halves = H::round_16(std::mem::transmute_copy(&v));
                return target.cast::<x86::__m256i>().write_unaligned(halves);
            }
            AVX2 => {
                let halves = H::round_8(simd, std::mem::transmute_copy(&v));
                return target.cast::<x86::__m128i>().write_unaligned(halves);
            }
            _ => {}
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    if size_of::<S::f32s>() == neon::VECTOR_BYTES {
        // SAFETY: as for `load`.
        return unsafe {
            arm::vst1_u16(target.cast(), H::round_4(simd, std::mem::transmute_copy(&v)));
        };
    }
    let _ = simd;
    // SAFETY: the caller's guarantee.
    unsafe { store_each::<S, H>(target, S::F32_LANES, v) };
}

/// See [`Element::store_some`].
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub(super) unsafe fn store_some<S: Simd, H: Half>(
    simd: S,
    target: *mut H,
    lanes: LaneMask<S>,
    v: S::f32s,
) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `load`; only the lanes of the mask are written.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => {
                let halves = H::round_16(std::mem::transmute_copy(&v));
                let first = first_of_16(lanes.count);
                return x86::_mm256_mask_storeu_epi16(target.cast(), first, halves);
            }
            AVX2 => {
                let halves = H::round_8(simd, std::mem::transmute_copy(&v));
                let halves: [u16; 8] = std::mem::transmute(halves);
                return copy(halves.as_ptr(), target.cast(), lanes.count);
            }
            _ => {}
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    if size_of::<S::f32s>() == neon::VECTOR_BYTES {
        // SAFETY: as for `load`.
        return unsafe {
            let halves: [u16; 4] =
                std::mem::transmute(H::round_4(simd, std::mem::transmute_copy(&v)));
            copy(halves.as_ptr(), target.cast(), lanes.count);
        };
    }
    let _ = simd;
    // SAFETY: the caller's guarantee.
    unsafe { store_each::<S, H>(target, lanes.count, v) };
}

/// See [`Element::stream`].
///
/// # Safety
///
/// As for that.
#[inline(always)]
pub(super) unsafe fn stream<S: Simd, H: Half>(simd: S, target: *mut H, v: S::f32s) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `load`; the caller guarantees the alignment.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => {
                let halves = H::round_16(std::mem::transmute_copy(&v));
                return x86::_mm256_stream_si256(target.cast(), halves);
            }
            AVX2 => {
                let halves = H::round_8(simd, std::mem::transmute_copy(&v));
                return x86::_mm_stream_si128(target.cast(), halves);
            }
            _ => {}
        }
    }
    // SAFETY: the caller's guarantee.
    unsafe { store(simd, target, v) };
}

/// # Safety
///
/// `target` must be valid for writes of `count` numbers, at most as many as a vector has.
#[inline(always)]
unsafe fn store_each<S: Simd, H: Half>(target: *mut H, count: usize, v: S::f32s) {
    let numbers = (&raw const v).cast::<f32>();
    let mut lane = 0;
    while lane < count {
        // SAFETY: the caller's guarantee; a vector consists of its numbers.
        unsafe { target.add(lane).write(H::narrow(numbers.add(lane).read())) };
        lane += 1;
    }
}

/// # Safety
///
/// Both must be valid for as many numbers.
#[cfg(not(miri))]
#[inline(always)]
unsafe fn copy(source: *const u16, target: *mut u16, count: usize) {
    let mut lane = 0;
    while lane < count {
        // SAFETY: the caller's guarantee; tensors of any alignment are allowed.
        unsafe { target.add(lane).write_unaligned(source.add(lane).read()) };
        lane += 1;
    }
}

/// The mask of the first lanes of 16.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn first_of_16(count: usize) -> x86::__mmask16 {
    ((1_u32 << count) - 1) as x86::__mmask16
}

/// The first numbers of eight; the others are zero. In two registers first: a vector that is read from
/// where single numbers were just written waits for these.
///
/// # Safety
///
/// `source` must be valid for reads of them.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_first_of_8(source: *const u16, count: usize) -> x86::__m128i {
    // SAFETY: the caller's guarantee; SSE2 is part of x86-64.
    unsafe {
        let lower = load_first_of_4(source, count);
        let upper = load_first_of_4(source.wrapping_add(4), count.saturating_sub(4));
        x86::_mm_set_epi64x(upper.cast_signed(), lower.cast_signed())
    }
}

/// # Safety
///
/// `source` must be valid for reads of `count` numbers, or of four if there are more.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_first_of_4(source: *const u16, count: usize) -> u64 {
    // SAFETY: the caller's guarantee.
    unsafe {
        let pair = || u64::from(source.cast::<u32>().read_unaligned());
        match count {
            0 => 0,
            1 => u64::from(source.read_unaligned()),
            2 => pair(),
            3 => pair() | u64::from(source.add(2).read_unaligned()) << 32,
            _ => source.cast::<u64>().read_unaligned(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
