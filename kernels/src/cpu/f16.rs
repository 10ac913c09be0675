//! Tensors in f16: IEEE 754's binary16.
//!
//! Numbers become f32 and are rounded by the instructions that processors have for it (F16C with AVX2,
//! AVX-512's, NEON's). They flush no denormals, whatever the mode of the thread. What is beyond 65,504
//! becomes infinite.
//!
//! Sums are f32, as in every other format: f16 has 11 significant bits. A sum of some hundred products
//! would lose most of them, and it would overflow. Instructions that compute in f16 add in f16, but for
//! those of the matrix unit (`amx`).

use fusion_cost_model::DType;
use half::f16;
use pulp::{Arch, Simd};

use super::amx;
use super::element::{Element, Left, Stored};
use super::halves::{self, Half};
use super::lanes::LaneMask;
use super::strip::{Cut, Strip};

#[cfg(all(target_arch = "aarch64", not(miri)))]
use std::arch::aarch64 as arm;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::arch::{asm, x86_64 as x86};

/// Whether the processor converts f16 in vectors of this kind. All with AVX2 do so far, though it does not
/// promise that.
pub(super) fn supported(arch: Arch) -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(arch, Arch::Scalar) || is_x86_feature_detected!("f16c");
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = arch;
        true
    }
}

impl Element for f16 {
    const DTYPE: DType = DType::F16;
    const STORED: Stored = Stored::F16;
    type Between = Self;

    /// By integer arithmetic: `to_f32` asks each time what the processor has.
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32_const()
    }

    #[inline(always)]
    fn narrow(number: f32) -> Self {
        Self::from_f32_const(number)
    }

    #[inline(always)]
    fn as_f32(_: *mut Self) -> Option<*mut f32> {
        None
    }

    #[inline(always)]
    unsafe fn splat<S: Simd>(simd: S, source: *const Self) -> S::f32s {
        // SAFETY: the caller's guarantee.
        unsafe { halves::splat(simd, source) }
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

impl Left for f16 {
    type Weight = Self;

    unsafe fn compute(strip: Strip<Self>, arch: Arch, cut: Cut) {
        // SAFETY: the caller's guarantee; only the matrix unit multiplies pairs of f16.
        unsafe {
            if cut.on_amx {
                amx::compute(&strip);
            } else {
                strip.compute(arch);
            }
        }
    }
}

/// Rounds to the nearest, and to even in the middle.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const NEAREST: i32 = x86::_MM_FROUND_TO_NEAREST_INT;

impl Half for f16 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn widen_16(halves: x86::__m256i) -> x86::__m512 {
        // SAFETY: the caller's guarantee.
        unsafe { x86::_mm512_cvtph_ps(halves) }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn round_16(numbers: x86::__m512) -> x86::__m256i {
        // SAFETY: the caller's guarantee.
        unsafe { x86::_mm512_cvtps_ph::<NEAREST>(numbers) }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn widen_8(halves: x86::__m128i) -> x86::__m256 {
        // SAFETY: the caller's guarantee.
        unsafe { widen_8(halves) }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn round_8<S: Simd>(_: S, numbers: x86::__m256) -> x86::__m128i {
        // SAFETY: the caller's guarantee.
        unsafe { round_8(numbers) }
    }

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    #[inline(always)]
    fn widen_4(halves: arm::uint16x4_t) -> arm::float32x4_t {
        // SAFETY: NEON is part of every aarch64.
        unsafe { arm::vcvt_f32_f16(arm::vreinterpret_f16_u16(halves)) }
    }

    #[cfg(all(target_arch = "aarch64", not(miri)))]
    #[inline(always)]
    fn round_4<S: Simd>(_: S, numbers: arm::float32x4_t) -> arm::uint16x4_t {
        // SAFETY: as above.
        unsafe { arm::vreinterpret_u16_f16(arm::vcvt_f16_f32(numbers)) }
    }
}

/// In assembly, since the vectors of `pulp` do not promise F16C: a function that does would be called for
/// each vector, and not be part of the loop.
///
/// # Safety
///
/// The processor must have AVX and F16C.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn widen_8(halves: x86::__m128i) -> x86::__m256 {
    let numbers;
    // SAFETY: the caller's guarantee; the instruction changes no flags and no exceptions are unmasked.
    unsafe {
        asm!(
            "vcvtph2ps {}, {}",
            lateout(ymm_reg) numbers,
            in(xmm_reg) halves,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    numbers
}

/// The other way round, likewise.
///
/// # Safety
///
/// As for [`widen_8`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx")]
#[inline]
unsafe fn round_8(numbers: x86::__m256) -> x86::__m128i {
    let halves;
    // SAFETY: as above.
    unsafe {
        asm!(
            "vcvtps2ph {}, {}, {}",
            lateout(xmm_reg) halves,
            in(ymm_reg) numbers,
            const NEAREST,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    halves
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_rounds(numbers: &[f32]) {
        let expected = |x| (f16::from_f32(x), f16::from_f32(x).to_f32());
        crate::cpu::halves::tests::assert_rounds(numbers, f16::from_f32(7.0), expected);
    }

    /// A number of f32, of all and of those whose exponents f16 has.
    fn number() -> impl Strategy<Value = f32> {
        prop_oneof![
            any::<u32>().prop_map(f32::from_bits),
            (any::<u32>(), 100_u32..145).prop_map(|(bits, exponent)| {
                f32::from_bits(bits & 0x807F_FFFF | exponent << 23)
            }),
        ]
    }

    proptest! {
        #[test]
        fn every_width_rounds_to_nearest_even(
            numbers in proptest::collection::vec(number(), 0..70),
        ) {
            assert_rounds(&numbers);
        }
    }

    /// All numbers of the format, and what lies around the middles between them.
    #[test]
    fn every_number_and_every_middle_rounds_as_it_should() {
        for half in
            (0..=u16::MAX).step_by(61).chain(0x7BE0..=0x7C40).chain(0..64).chain(0x3E0..0x420)
        {
            let number = f16::from_bits(half).to_f32();
            let next = f16::from_bits(half.wrapping_add(1)).to_f32();
            let middle = number + (next - number) / 2.0;
            let around = [middle.next_down(), middle, middle.next_up(), number, -middle];
            assert_rounds(&around);
        }
    }

    #[test]
    fn what_is_too_large_becomes_infinite_and_what_is_too_small_zero() {
        for (number, expected) in [
            (65_504.0, 65_504.0),
            (65_519.996, 65_504.0),
            (65_520.0, f32::INFINITY),
            (f32::MAX, f32::INFINITY),
            (2.0_f32.powi(-24), 2.0_f32.powi(-24)),
            (2.0_f32.powi(-25), 0.0),
            (2.0_f32.powi(-25).next_up(), 2.0_f32.powi(-24)),
            (f32::from_bits(1), 0.0),
        ] {
            assert_eq!(f16::narrow(number).widen(), expected, "{number:e}");
            assert_eq!(f16::narrow(-number).widen(), -expected, "{number:e}");
            assert_rounds(&[number, -number]);
        }
    }
}
