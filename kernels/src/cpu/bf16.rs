//! Tensors in bf16: the upper halves of f32.
//!
//! Numbers are rounded by integer arithmetic, which flushes nothing: a result in bf16 has denormals
//! where one in f32 has them. The instruction that rounds (`vcvtneps2bf16`) is none of those that
//! AVX-512 promises, and it would flush them.

use fusion_cost_model::DType;
use half::bf16;
use pulp::{Arch, Simd};

use super::amx;
use super::element::{Element, Left, Stored, load_each};
use super::lanes::{LaneMask, shift_right};
#[cfg(all(target_arch = "aarch64", not(miri)))]
use super::neon;
use super::pairs;
use super::strip::{Cut, Strip};

#[cfg(all(target_arch = "aarch64", not(miri)))]
use std::arch::aarch64 as arm;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64 as x86;

/// Bytes of a vector of AVX-512: vectors have this size only where the processor has it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const AVX512: usize = 64;

/// Bytes of a vector of AVX2, likewise.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const AVX2: usize = 32;

impl Element for bf16 {
    const DTYPE: DType = DType::Bf16;
    const STORED: Stored = Stored::Bf16;
    type Between = Self;

    /// As the vectors do: `to_f32` looks for signalling NaNs, which costs the registers of a loop.
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.to_bits()) << 16)
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        Self::from_f32(number)
    }

    #[inline(always)]
    fn as_f32(_: *mut Self) -> Option<*mut f32> {
        None
    }

    #[inline(always)]
    unsafe fn load<S: Simd>(simd: S, source: *const Self) -> S::f32s {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: the vectors have the sizes that are matched; the rest is the caller's guarantee.
        unsafe {
            match size_of::<S::f32s>() {
                AVX512 => return widen_512::<S>(source.cast::<x86::__m256i>().read_unaligned()),
                AVX2 => {
                    let halves = source.cast::<x86::__m128i>().read_unaligned();
                    let wide = x86::_mm256_slli_epi32::<16>(x86::_mm256_cvtepu16_epi32(halves));
                    return std::mem::transmute_copy(&wide);
                }
                _ => {}
            }
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        if size_of::<S::f32s>() == neon::VECTOR_BYTES {
            // SAFETY: both are vectors of 16 bytes; the rest is the caller's guarantee.
            return unsafe {
                let halves = arm::vld1_u16(source.cast());
                std::mem::transmute_copy(&arm::vshll_n_u16::<16>(halves))
            };
        }
        // SAFETY: the caller's guarantee.
        unsafe { load_each(simd, source, S::F32_LANES) }
    }

    #[inline(always)]
    unsafe fn load_some<S: Simd>(simd: S, source: *const Self, lanes: LaneMask<S>) -> S::f32s {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if size_of::<S::f32s>() == AVX512 {
            // SAFETY: as above; only the lanes of the mask are read.
            unsafe {
                let halves = x86::_mm256_maskz_loadu_epi16(bits(lanes.count), source.cast());
                return widen_512::<S>(halves);
            }
        }
        // SAFETY: the caller's guarantee.
        unsafe { load_each(simd, source, lanes.count) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(simd: S, target: *mut Self, v: S::f32s) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: as for `load`.
        unsafe {
            match size_of::<S::f32s>() {
                AVX512 => {
                    let halves = round_512::<S>(v);
                    return target.cast::<x86::__m256i>().write_unaligned(halves);
                }
                AVX2 => {
                    let halves = halves_256::<S>(round(simd, v));
                    return target.cast::<x86::__m128i>().write_unaligned(halves);
                }
                _ => {}
            }
        }
        let rounded = round(simd, v);
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        if size_of::<S::f32s>() == neon::VECTOR_BYTES {
            // SAFETY: both are vectors of 16 bytes; the rest is the caller's guarantee.
            return unsafe {
                let halves = arm::vmovn_u32(std::mem::transmute_copy(&rounded));
                arm::vst1_u16(target.cast(), halves);
            };
        }
        // SAFETY: the caller's guarantee.
        unsafe { store_each::<S>(target, S::F32_LANES, rounded) };
    }

    #[inline(always)]
    unsafe fn store_some<S: Simd>(simd: S, target: *mut Self, lanes: LaneMask<S>, v: S::f32s) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if size_of::<S::f32s>() == AVX512 {
            // SAFETY: as above; only the lanes of the mask are written.
            unsafe {
                let halves = round_512::<S>(v);
                return x86::_mm256_mask_storeu_epi16(target.cast(), bits(lanes.count), halves);
            }
        }
        // SAFETY: the caller's guarantee.
        unsafe { store_each::<S>(target, lanes.count, round(simd, v)) };
    }

    #[inline(always)]
    unsafe fn stream<S: Simd>(simd: S, target: *mut Self, v: S::f32s) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: as for `load`; the caller guarantees the alignment.
        unsafe {
            match size_of::<S::f32s>() {
                AVX512 => {
                    let halves = round_512::<S>(v);
                    return x86::_mm256_stream_si256(target.cast(), halves);
                }
                AVX2 => {
                    let halves = halves_256::<S>(round(simd, v));
                    return x86::_mm_stream_si128(target.cast(), halves);
                }
                _ => {}
            }
        }
        // SAFETY: the caller's guarantee.
        unsafe { Self::store(simd, target, v) };
    }
}

impl Left for bf16 {
    type Weight = Self;

    unsafe fn compute(strip: Strip<Self>, arch: Arch, cut: Cut) {
        // SAFETY: the caller's guarantee; panels are cut for pairs only where the processor multiplies
        // them.
        unsafe {
            if cut.on_amx {
                amx::compute(&strip);
            } else if cut.together == pairs::TOGETHER {
                pairs::compute(&strip);
            } else {
                strip.compute(arch);
            }
        }
    }
}

/// The bits of the nearest bf16 to each number, in the lower half of its lane. NaN stays NaN, and
/// becomes a quiet one.
#[inline(always)]
fn round<S: Simd>(simd: S, v: S::f32s) -> S::u32s {
    let bits = simd.transmute_u32s_f32s(v);
    // One less than half of the last place that stays, and one more where that is odd.
    let odd = simd.and_u32s(shift_right(simd, bits, 16), simd.splat_u32s(1));
    let rounded = simd.add_u32s(bits, simd.add_u32s(odd, simd.splat_u32s(0x7FFF)));
    let quiet = simd.or_u32s(bits, simd.splat_u32s(0x0040_0000));
    let is_number = simd.equal_f32s(v, v);
    shift_right(simd, simd.select_u32s(is_number, rounded, quiet), 16)
}

/// # Safety
///
/// `target` must be valid for writes of `count` numbers, at most as many as a vector has.
#[inline(always)]
unsafe fn store_each<S: Simd>(target: *mut bf16, count: usize, rounded: S::u32s) {
    let numbers = (&raw const rounded).cast::<u32>();
    let mut lane = 0;
    while lane < count {
        // SAFETY: the caller's guarantee; a vector consists of its numbers.
        unsafe { target.add(lane).write(bf16::from_bits(numbers.add(lane).read() as u16)) };
        lane += 1;
    }
}

/// The mask of the first lanes of 16.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn bits(count: usize) -> x86::__mmask16 {
    ((1_u32 << count) - 1) as x86::__mmask16
}

/// # Safety
///
/// `S` must be AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn widen_512<S: Simd>(halves: x86::__m256i) -> S::f32s {
    // SAFETY: the caller's guarantee; both are vectors of 64 bytes.
    unsafe {
        let wide = x86::_mm512_slli_epi32::<16>(x86::_mm512_cvtepu16_epi32(halves));
        std::mem::transmute_copy(&wide)
    }
}

/// What [`round`] does, with masks: in six instructions in place of eleven.
///
/// # Safety
///
/// `S` must be AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn round_512<S: Simd>(v: S::f32s) -> x86::__m256i {
    /// The upper half of each lane, in order.
    static UPPER: [i16; 32] = {
        let mut upper = [0; 32];
        let mut lane = 0;
        while lane < 16 {
            upper[lane] = 2 * lane as i16 + 1;
            lane += 1;
        }
        upper
    };
    // SAFETY: the caller's guarantee; all are vectors of 64 bytes.
    unsafe {
        let v: x86::__m512 = std::mem::transmute_copy(&v);
        let bits = x86::_mm512_castps_si512(v);
        let is_odd = x86::_mm512_test_epi32_mask(bits, x86::_mm512_set1_epi32(1 << 16));
        let below = x86::_mm512_add_epi32(bits, x86::_mm512_set1_epi32(0x7FFF));
        let one = x86::_mm512_set1_epi32(1);
        let rounded = x86::_mm512_mask_add_epi32(below, is_odd, below, one);
        let is_nan = x86::_mm512_cmp_ps_mask::<{ x86::_CMP_UNORD_Q }>(v, v);
        let quiet = x86::_mm512_set1_epi32(0x0040_0000);
        let rounded = x86::_mm512_mask_or_epi32(rounded, is_nan, bits, quiet);
        let upper = (&raw const UPPER).cast::<x86::__m512i>().read_unaligned();
        x86::_mm512_castsi512_si256(x86::_mm512_permutexvar_epi16(upper, rounded))
    }
}

/// The lower halves of all lanes.
///
/// # Safety
///
/// `S` must be AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn halves_256<S: Simd>(rounded: S::u32s) -> x86::__m128i {
    /// The first and the third quarter: each half of a vector is packed by itself.
    const QUARTERS: i32 = 0b10_00;
    // SAFETY: the caller's guarantee; both are vectors of 32 bytes, whose lanes have no upper halves.
    unsafe {
        let rounded: x86::__m256i = std::mem::transmute_copy(&rounded);
        let packed = x86::_mm256_packus_epi32(rounded, rounded);
        x86::_mm256_castsi256_si128(x86::_mm256_permute4x64_epi64::<QUARTERS>(packed))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pulp::WithSimd;

    use super::*;
    use crate::cpu::Vectors;
    use crate::cpu::lanes::first_lanes;

    /// Rounds numbers to bf16 by whole vectors, and the rest by one that is cut short.
    struct Narrow<'a>(&'a [f32], &'a mut [bf16]);

    impl WithSimd for Narrow<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self(numbers, target) = self;
            for (numbers, target) in
                numbers.chunks(S::F32_LANES).zip(target.chunks_mut(S::F32_LANES))
            {
                let lanes = first_lanes(simd, numbers.len());
                // SAFETY: both have that many numbers.
                unsafe {
                    let v = f32::load_some(simd, numbers.as_ptr(), lanes);
                    if numbers.len() == S::F32_LANES {
                        bf16::store(simd, target.as_mut_ptr(), v);
                    } else {
                        bf16::store_some(simd, target.as_mut_ptr(), lanes, v);
                    }
                }
            }
        }
    }

    /// The other way round.
    struct Widen<'a>(&'a [bf16], &'a mut [f32]);

    impl WithSimd for Widen<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            let Self(numbers, target) = self;
            for (numbers, target) in
                numbers.chunks(S::F32_LANES).zip(target.chunks_mut(S::F32_LANES))
            {
                let lanes = first_lanes(simd, numbers.len());
                // SAFETY: both have that many numbers.
                unsafe {
                    let v = if numbers.len() == S::F32_LANES {
                        bf16::load(simd, numbers.as_ptr())
                    } else {
                        bf16::load_some(simd, numbers.as_ptr(), lanes)
                    };
                    f32::store_some(simd, target.as_mut_ptr(), lanes, v);
                }
            }
        }
    }

    /// Rounds as the `half` crate does, which the reference's inputs are rounded with, and writes
    /// nothing behind the last number.
    fn assert_rounds(numbers: &[f32]) {
        for arch in Vectors::all() {
            let mark = bf16::from_f32(7.0);
            let mut narrow = vec![mark; numbers.len() + 1];
            arch.dispatch(Narrow(numbers, &mut narrow[..numbers.len()]));
            assert_eq!(narrow[numbers.len()], mark);
            let mut wide = vec![7.0; numbers.len()];
            arch.dispatch(Widen(&narrow[..numbers.len()], &mut wide));
            for ((x, &narrow), wide) in numbers.iter().zip(&narrow).zip(wide) {
                let expected = bf16::from_f32(*x);
                assert_eq!(narrow.to_bits(), expected.to_bits(), "{arch:?}: {x:e}");
                assert_eq!(wide.to_bits(), expected.to_f32().to_bits(), "{arch:?}: {x:e}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_width_rounds_to_nearest_even(
            bits in proptest::collection::vec(any::<u32>(), 0..70),
        ) {
            assert_rounds(&bits.into_iter().map(f32::from_bits).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_edges_of_the_format_round_as_they_should() {
        let bits = [
            // One and the next bf16, and what lies between them: below, at and above the middle.
            0x3F80_0000,
            0x3F80_7FFF,
            0x3F80_8000,
            0x3F80_8001,
            0x3F81_7FFF,
            0x3F81_8000,
            0x3F81_8001,
            // The largest numbers; those above the middle become infinite.
            0x7F7F_0000,
            0x7F7F_7FFF,
            0x7F7F_8000,
            0x7F7F_FFFF,
            0x7F80_0000,
            // NaN whose payload lies in the lower half only, and all bits.
            0x7F80_0001,
            0x7FC0_0000,
            0x7FFF_FFFF,
            // Zero and denormals, which stay.
            0x0000_0000,
            0x0000_8001,
            0x0040_0000,
            0x007F_FFFF,
        ];
        let signs = bits.iter().flat_map(|&bits| [bits, bits | 1 << 31]);
        let numbers: Vec<f32> = signs.map(f32::from_bits).collect();
        for count in 0..=numbers.len() {
            assert_rounds(&numbers[..count]);
        }
    }
}
