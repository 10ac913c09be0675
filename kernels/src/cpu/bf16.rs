//! Tensors in bf16: the upper halves of f32.
//!
//! Numbers are rounded by integer arithmetic, which flushes nothing: a result in bf16 has denormals
//! where one in f32 has them. The instruction that rounds (`vcvtneps2bf16`) is none of those that
//! AVX-512 promises, and it would flush them.

use fusion_cost_model::DType;
use half::bf16;
use pulp::{Arch, Simd};

use super::amx;
use super::element::{Element, Left, Stored};
use super::halves::{self, Half};
use super::lanes::LaneMask;
#[cfg(not(miri))]
use super::lanes::shift_right;
use super::pairs;
use super::strip::{Cut, Strip};

#[cfg(all(target_arch = "aarch64", not(miri)))]
use std::arch::aarch64 as arm;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::x86_64 as x86;

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
        // SAFETY: the caller's guarantee.
        unsafe { halves::load(simd, source) }
    }

    #[inline(always)]
    unsafe fn load_some<S: Simd>(simd: S, source: *const Self, lanes: LaneMask<S>) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { halves::load_some(simd, source, lanes) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(simd: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { halves::store(simd, target, v) };
    }

    #[inline(always)]
    unsafe fn store_some<S: Simd>(simd: S, target: *mut Self, lanes: LaneMask<S>, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { halves::store_some(simd, target, lanes, v) };
    }

    #[inline(always)]
    unsafe fn stream<S: Simd>(simd: S, target: *mut Self, v: S::f32s) {
        // SAFETY: the caller's guarantee.
        unsafe { halves::stream(simd, target, v) };
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

impl Half for bf16 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn widen_16(halves: x86::__m256i) -> x86::__m512 {
        // SAFETY: the caller's guarantee.
        unsafe {
            let wide = x86::_mm512_slli_epi32::<16>(x86::_mm512_cvtepu16_epi32(halves));
            x86::_mm512_castsi512_ps(wide)
        }
    }

    /// What [`round`] does, with masks: in six instructions in place of eleven.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn round_16(numbers: x86::__m512) -> x86::__m256i {
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
        // SAFETY: the caller's guarantee.
        unsafe {
            let bits = x86::_mm512_castps_si512(numbers);
            let is_odd = x86::_mm512_test_epi32_mask(bits, x86::_mm512_set1_epi32(1 << 16));
            let below = x86::_mm512_add_epi32(bits, x86::_mm512_set1_epi32(0x7FFF));
            let one = x86::_mm512_set1_epi32(1);
            let rounded = x86::_mm512_mask_add_epi32(below, is_odd, below, one);
            let is_nan = x86::_mm512_cmp_ps_mask::<{ x86::_CMP_UNORD_Q }>(numbers, numbers);
            let quiet = x86::_mm512_set1_epi32(0x0040_0000);
            let rounded = x86::_mm512_mask_or_epi32(rounded, is_nan, bits, quiet);
            let upper = (&raw const UPPER).cast::<x86::__m512i>().read_unaligned();
            x86::_mm512_castsi512_si256(x86::_mm512_permutexvar_epi16(upper, rounded))
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn widen_8(halves: x86::__m128i) -> x86::__m256 {
        // SAFETY: the caller's guarantee.
        unsafe {
            let wide = x86::_mm256_slli_epi32::<16>(x86::_mm256_cvtepu16_epi32(halves));
            x86::_mm256_castsi256_ps(wide)
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn round_8<S: Simd>(simd: S, numbers: x86::__m256) -> x86::__m128i {
        /// The first and the third quarter: each half of a vector is packed by itself.
        const QUARTERS: i32 = 0b10_00;
        // SAFETY: the caller's guarantee; vectors of `S` have 32 bytes, and its lanes no upper halves.
        unsafe {
            let rounded = round(simd, std::mem::transmute_copy(&numbers));
            let rounded: x86::__m256i = std::mem::transmute_copy(&rounded);
            let packed = x86::_mm256_packus_epi32(rounded, rounded);
            x86::_mm256_castsi256_si128(x86::_mm256_permute4x64_epi64::<QUARTERS>(packed))
        }
    }

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    #[inline(always)]
    fn widen_4(halves: arm::uint16x4_t) -> arm::float32x4_t {
        // SAFETY: NEON is part of every aarch64.
        unsafe { arm::vreinterpretq_f32_u32(arm::vshll_n_u16::<16>(halves)) }
    }

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    #[inline(always)]
    fn round_4<S: Simd>(simd: S, numbers: arm::float32x4_t) -> arm::uint16x4_t {
        // SAFETY: as above; vectors of `S` have 16 bytes.
        unsafe {
            let rounded = round(simd, std::mem::transmute_copy(&numbers));
            arm::vmovn_u32(std::mem::transmute_copy(&rounded))
        }
    }
}

/// The bits of the nearest bf16 to each number, in the lower half of its lane. NaN stays NaN, and
/// becomes a quiet one.
#[cfg(not(miri))]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_rounds(numbers: &[f32]) {
        let expected = |x| (bf16::from_f32(x), bf16::from_f32(x).to_f32());
        crate::cpu::halves::tests::assert_rounds(numbers, bf16::from_f32(7.0), expected);
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
