//! Tensors of 8-bit integers: unsigned ones, which are quantised activations, and signed ones, which are
//! quantised weights.
//!
//! An unsigned one is what a chain of them ends with: numbers are rounded to the nearest, and those
//! outside of its range become its ends.

use fusion_cost_model::DType;
use pulp::{Arch, Simd};

use super::amx;
use super::element::{Element, Left, Stored, load_each};
use super::fours;
use super::lanes::LaneMask;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use super::lanes::{AVX2, AVX512};
use super::strip::{Cut, Strip};

#[cfg(all(target_arch = "aarch64", not(miri)))]
use super::neon;
#[cfg(all(target_arch = "aarch64", not(miri)))]
use std::arch::aarch64 as arm;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64 as x86;

impl Element for u8 {
    const DTYPE: DType = DType::I8;
    const STORED: Stored = Stored::U8;
    type Between = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }

    /// NaN becomes 0.
    #[inline(always)]
    fn narrow(number: f32) -> Self {
        number.round_ties_even() as Self
    }

    #[inline(always)]
    fn as_f32(_: *mut Self) -> Option<*mut f32> {
        None
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, source: *const Self) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { load_bytes(simd, source) }
    }

    #[inline(always)]
    unsafe fn load_some<S: Simd>(simd: S, source: *const Self, lanes: LaneMask<S>) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { load_some_bytes(simd, source, lanes) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(_: S, target: *mut Self, v: S::f32s) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: as for `load`.
        unsafe {
            match size_of::<S::f32s>() {
                AVX512 => {
                    let bytes = narrow_512::<S>(v);
                    return target.cast::<x86::__m128i>().write_unaligned(bytes);
                }
                AVX2 => return x86::_mm_storel_epi64(target.cast(), narrow_256::<S>(v)),
                _ => {}
            }
        }
        // SAFETY: the caller's guarantee.
        unsafe { store_each::<S, Self>(target, S::F32_LANES, v) };
    }

    #[inline(always)]
    unsafe fn store_some<S: Simd>(_: S, target: *mut Self, lanes: LaneMask<S>, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { store_each::<S, Self>(target, lanes.count, v) };
    }

    #[inline(always)]
    unsafe fn stream<S: Simd>(simd: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee. A quarter of a vector goes around no cache.
        unsafe { Self::store(simd, target, v) };
    }
}

impl Left for u8 {
    type Weight = i8;

    unsafe fn compute(strip: Strip<Self>, arch: Arch, cut: Cut) {
        // SAFETY: the caller's guarantee; panels are cut for fours only where the processor multiplies
        // them.
        unsafe {
            if cut.on_amx {
                assert!(strip.k <= fours::MOST_TERMS);
                amx::compute(&strip);
            } else if cut.together == fours::TOGETHER {
                fours::compute(&strip, arch);
            } else {
                strip.compute(arch);
            }
        }
    }
}

impl Element for i8 {
    const DTYPE: DType = DType::I8;
    const STORED: Stored = Stored::I8;
    type Between = f32;

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }

    /// NaN becomes 0.
    #[inline(always)]
    fn narrow(number: f32) -> Self {
        number.round_ties_even() as Self
    }

    #[inline(always)]
    fn as_f32(_: *mut Self) -> Option<*mut f32> {
        None
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, source: *const Self) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { load_bytes(simd, source) }
    }

    #[inline(always)]
    unsafe fn load_some<S: Simd>(simd: S, source: *const Self, lanes: LaneMask<S>) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { load_some_bytes(simd, source, lanes) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(_: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { store_each::<S, Self>(target, S::F32_LANES, v) };
    }

    #[inline(always)]
    unsafe fn store_some<S: Simd>(_: S, target: *mut Self, lanes: LaneMask<S>, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { store_each::<S, Self>(target, lanes.count, v) };
    }

    #[inline(always)]
    unsafe fn stream<S: Simd>(simd: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { Self::store(simd, target, v) };
    }
}

/// A vector of signed or unsigned ones.
///
/// # Safety
///
/// `source` must be valid for reads of a vector of numbers.
#[inline(always)]
unsafe fn load_bytes<S: Simd, E: Element>(simd: S, source: *const E) -> S::f32s {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the vectors have the sizes that are matched; the rest is the caller's guarantee.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => return widen_16::<S, E>(source.cast::<x86::__m128i>().read_unaligned()),
            AVX2 => return widen_8::<S, E>(x86::_mm_loadl_epi64(source.cast())),
            _ => {}
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    if size_of::<S::f32s>() == neon::VECTOR_BYTES {
        // SAFETY: the caller's guarantee.
        return unsafe { widen_4::<S, E>(source.cast::<u32>().read_unaligned()) };
    }
    // SAFETY: the caller's guarantee.
    unsafe { load_each(simd, source, S::F32_LANES) }
}

/// The first lanes of one.
///
/// # Safety
///
/// `source` must be valid for reads of them.
#[inline(always)]
unsafe fn load_some_bytes<S: Simd, E: Element>(
    simd: S,
    source: *const E,
    lanes: LaneMask<S>,
) -> S::f32s {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: as for `load_bytes`; only the lanes of the mask are read.
    unsafe {
        match size_of::<S::f32s>() {
            AVX512 => {
                let first = ((1_u32 << lanes.count) - 1) as x86::__mmask16;
                return widen_16::<S, E>(x86::_mm_maskz_loadu_epi8(first, source.cast()));
            }
            AVX2 if lanes.count < S::F32_LANES => {
                let bytes = load_first_of_8(source.cast(), lanes.count);
                return widen_8::<S, E>(x86::_mm_cvtsi64_si128(bytes.cast_signed()));
            }
            _ => {}
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    if size_of::<S::f32s>() == neon::VECTOR_BYTES && lanes.count < S::F32_LANES {
        // SAFETY: the caller's guarantee; three bytes are half of what the register has.
        return unsafe { widen_4::<S, E>(load_first_of_8(source.cast(), lanes.count) as u32) };
    }
    // SAFETY: the caller's guarantee.
    unsafe {
        if lanes.count == S::F32_LANES {
            load_bytes(simd, source)
        } else {
            load_each(simd, source, lanes.count)
        }
    }
}

/// # Safety
///
/// `S` must be AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn widen_16<S: Simd, E: Element>(bytes: x86::__m128i) -> S::f32s {
    // SAFETY: the caller's guarantee; both are vectors of 64 bytes.
    unsafe {
        let whole = if matches!(E::STORED, Stored::I8) {
            x86::_mm512_cvtepi8_epi32(bytes)
        } else {
            x86::_mm512_cvtepu8_epi32(bytes)
        };
        std::mem::transmute_copy(&x86::_mm512_cvtepi32_ps(whole))
    }
}

/// # Safety
///
/// `S` must be AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn widen_8<S: Simd, E: Element>(bytes: x86::__m128i) -> S::f32s {
    // SAFETY: the caller's guarantee; both are vectors of 32 bytes.
    unsafe {
        let whole = if matches!(E::STORED, Stored::I8) {
            x86::_mm256_cvtepi8_epi32(bytes)
        } else {
            x86::_mm256_cvtepu8_epi32(bytes)
        };
        std::mem::transmute_copy(&x86::_mm256_cvtepi32_ps(whole))
    }
}

/// # Safety
///
/// `S` must be NEON.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
unsafe fn widen_4<S: Simd, E: Element>(bytes: u32) -> S::f32s {
    // SAFETY: NEON is part of every aarch64; both are vectors of 16 bytes.
    unsafe {
        let bytes = arm::vcreate_u8(u64::from(bytes));
        let numbers = if matches!(E::STORED, Stored::I8) {
            let words = arm::vget_low_s16(arm::vmovl_s8(arm::vreinterpret_s8_u8(bytes)));
            arm::vcvtq_f32_s32(arm::vmovl_s16(words))
        } else {
            arm::vcvtq_f32_u32(arm::vmovl_u16(arm::vget_low_u16(arm::vmovl_u8(bytes))))
        };
        std::mem::transmute_copy(&numbers)
    }
}

/// The first of eight bytes, in a register; the others are zero.
///
/// # Safety
///
/// `source` must be valid for reads of `count` bytes, fewer than eight.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[inline(always)]
unsafe fn load_first_of_8(source: *const u8, count: usize) -> u64 {
    let (mut bytes, mut at) = (0_u64, 0);
    // SAFETY: the caller's guarantee.
    unsafe {
        if count & 4 > 0 {
            bytes = u64::from(source.cast::<u32>().read_unaligned());
            at = 4;
        }
        if count & 2 > 0 {
            bytes |= u64::from(source.add(at).cast::<u16>().read_unaligned()) << (8 * at);
            at += 2;
        }
        if count & 1 > 0 {
            bytes |= u64::from(source.add(at).read()) << (8 * at);
        }
    }
    bytes
}

/// # Safety
///
/// `target` must be valid for writes of `count` numbers, at most as many as a vector has.
#[inline(always)]
unsafe fn store_each<S: Simd, E: Element>(target: *mut E, count: usize, v: S::f32s) {
    let numbers = (&raw const v).cast::<f32>();
    let mut lane = 0;
    while lane < count {
        // SAFETY: the caller's guarantee; a vector consists of its numbers.
        unsafe { target.add(lane).write(E::narrow(numbers.add(lane).read())) };
        lane += 1;
    }
}

/// # Safety
///
/// `S` must be AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn narrow_512<S: Simd>(v: S::f32s) -> x86::__m128i {
    // SAFETY: the caller's guarantee; both are vectors of 64 bytes.
    unsafe {
        // The second operand takes the place of what is no number.
        let v = x86::_mm512_max_ps(std::mem::transmute_copy(&v), x86::_mm512_setzero_ps());
        let v = x86::_mm512_min_ps(v, x86::_mm512_set1_ps(255.0));
        x86::_mm512_cvtepi32_epi8(x86::_mm512_cvtps_epi32(v))
    }
}

/// The numbers in the lower half of the vector.
///
/// # Safety
///
/// `S` must be AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn narrow_256<S: Simd>(v: S::f32s) -> x86::__m128i {
    /// The first and the third quarter: each half of a vector is packed by itself.
    const QUARTERS: i32 = 0b10_00;
    // SAFETY: the caller's guarantee; both are vectors of 32 bytes.
    unsafe {
        // The second operand takes the place of what is no number.
        let v = x86::_mm256_max_ps(std::mem::transmute_copy(&v), x86::_mm256_setzero_ps());
        let whole = x86::_mm256_cvtps_epi32(x86::_mm256_min_ps(v, x86::_mm256_set1_ps(255.0)));
        let halves = x86::_mm256_packus_epi32(whole, whole);
        let halves = x86::_mm256_castsi256_si128(x86::_mm256_permute4x64_epi64::<QUARTERS>(halves));
        x86::_mm_packus_epi16(halves, halves)
    }
}

#[cfg(test)]
mod tests {
    use pulp::WithSimd;

    use super::*;
    use crate::cpu::Vectors;
    use crate::cpu::lanes::first_lanes;

    /// Rounds numbers by whole vectors, and the rest by one that is cut short, and widens them again.
    struct There<'a, E>(&'a [f32], &'a mut [E], &'a mut [f32]);

    impl<E: Element> WithSimd for There<'_, E> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let lanes = S::F32_LANES;
            let Self(numbers, stored, back) = self;
            for at in (0..numbers.len()).step_by(lanes) {
                let count = lanes.min(numbers.len() - at);
                let some = first_lanes(simd, count);
                let place = stored[at..].as_mut_ptr();
                // SAFETY: all of them have that many numbers.
                unsafe {
                    let v = f32::load_some(simd, numbers[at..].as_ptr(), some);
                    let v = if count == lanes {
                        E::store(simd, place, v);
                        E::load(simd, place)
                    } else {
                        E::store_some(simd, place, some, v);
                        E::load_some(simd, place, some)
                    };
                    f32::store_some(simd, back[at..].as_mut_ptr(), some, v);
                }
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_and_to_the_ends() {
        let numbers: Vec<f32> = (-1200..1200)
            .map(|eighth| eighth as f32 / 4.0)
            .chain([0.499_999_97, 254.500_02, 1e9, -1e9, f32::INFINITY, f32::NEG_INFINITY])
            .chain([f32::NAN, -f32::NAN, f32::MIN_POSITIVE, -0.0])
            .collect();
        // Every length of the last vector, from both ends.
        let lengths = 0..40;
        let parts =
            lengths.flat_map(|length| [&numbers[..length], &numbers[numbers.len() - length..]]);
        let parts = parts.chain([&numbers[..]]);
        for (numbers, arch) in parts.flat_map(|part| Vectors::all().map(move |arch| (part, arch))) {
            let (mut unsigned, mut back) = (vec![7_u8; numbers.len()], vec![7.0; numbers.len()]);
            arch.dispatch(There(numbers, &mut unsigned, &mut back));
            for ((&number, &stored), &back) in numbers.iter().zip(&unsigned).zip(&back) {
                let expected = number.round_ties_even().clamp(0.0, 255.0);
                let expected = if number.is_nan() { 0.0 } else { expected };
                assert_eq!(f32::from(stored), expected, "{number}");
                assert_eq!(back, expected, "{number}");
            }
            let (mut signed, mut back) = (vec![7_i8; numbers.len()], vec![7.0; numbers.len()]);
            arch.dispatch(There(numbers, &mut signed, &mut back));
            for ((&number, &stored), &back) in numbers.iter().zip(&signed).zip(&back) {
                let expected = number.round_ties_even().clamp(-128.0, 127.0);
                let expected = if number.is_nan() { 0.0 } else { expected };
                assert_eq!((f32::from(stored), back), (expected, expected), "{number}");
            }
        }
    }
}
