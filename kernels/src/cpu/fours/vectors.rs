//! How a vector of sums is added to, by the instructions of each kind of processor.

use std::arch::x86_64 as arch;

/// A vector of sums, in 32 bits a lane.
///
/// # Safety
///
/// The caller of each function must have the instructions.
pub(super) trait Fours {
    const LANES: usize;
    /// Numbers of the left side, the same four in every lane.
    type Numbers: Copy;
    /// Four weights for each lane.
    type Weights: Copy;
    type Sums: Copy;

    unsafe fn zero() -> Self::Sums;
    unsafe fn numbers(four: i32) -> Self::Numbers;
    /// `at` must be valid for four weights a lane.
    unsafe fn weights(at: *const i8) -> Self::Weights;
    unsafe fn add(sums: Self::Sums, numbers: Self::Numbers, weights: Self::Weights) -> Self::Sums;
    /// `to` must be valid for a number a lane.
    unsafe fn store(sums: Self::Sums, to: *mut i32);
    /// As is `from`.
    unsafe fn load(from: *const i32) -> Self::Sums;
    unsafe fn plus(sums: Self::Sums, others: Self::Sums) -> Self::Sums;
    /// Writes sums as f32, times a factor; as for `store`.
    unsafe fn store_scaled(sums: Self::Sums, factor: f32, to: *mut f32);
}

/// What is the same for all vectors of a length.
macro_rules! of_length {
    (
        $lanes:literal, $vector:ident, $zero:ident, $plus:ident,
        [$floats:ident, $convert:ident, $times:ident, $all:ident]
    ) => {
        const LANES: usize = $lanes;
        type Sums = arch::$vector;

        #[inline(always)]
        unsafe fn zero() -> Self::Sums {
            // SAFETY: the caller's guarantee.
            unsafe { arch::$zero() }
        }
        #[inline(always)]
        unsafe fn store(sums: Self::Sums, to: *mut i32) {
            // SAFETY: the caller's guarantee; unaligned is allowed.
            unsafe { to.cast::<arch::$vector>().write_unaligned(sums) };
        }
        #[inline(always)]
        unsafe fn load(from: *const i32) -> Self::Sums {
            // SAFETY: as above.
            unsafe { from.cast::<arch::$vector>().read_unaligned() }
        }
        #[inline(always)]
        unsafe fn plus(sums: Self::Sums, others: Self::Sums) -> Self::Sums {
            // SAFETY: the caller's guarantee.
            unsafe { arch::$plus(sums, others) }
        }
        #[inline(always)]
        unsafe fn store_scaled(sums: Self::Sums, factor: f32, to: *mut f32) {
            // SAFETY: as for `store`.
            unsafe {
                let scaled = arch::$times(arch::$convert(sums), arch::$all(factor));
                to.cast::<arch::$floats>().write_unaligned(scaled);
            }
        }
    };
}

/// What is the same for all vectors of 512 bits, and of 256.
macro_rules! of_512 {
    () => {
        of_length!(
            16,
            __m512i,
            _mm512_setzero_si512,
            _mm512_add_epi32,
            [__m512, _mm512_cvtepi32_ps, _mm512_mul_ps, _mm512_set1_ps]
        );
    };
}
macro_rules! of_256 {
    () => {
        of_length!(
            8,
            __m256i,
            _mm256_setzero_si256,
            _mm256_add_epi32,
            [__m256, _mm256_cvtepi32_ps, _mm256_mul_ps, _mm256_set1_ps]
        );
    };
}

/// `vpdpbusd`: all four products of a lane at once.
macro_rules! dot {
    ($name:ident, $of_length:ident, $vector:ident, $set:ident, $dot:ident) => {
        pub(super) struct $name;

        impl Fours for $name {
            type Numbers = arch::$vector;
            type Weights = arch::$vector;
            $of_length!();

            #[inline(always)]
            unsafe fn numbers(four: i32) -> Self::Numbers {
                // SAFETY: the caller's guarantee.
                unsafe { arch::$set(four) }
            }
            #[inline(always)]
            unsafe fn weights(at: *const i8) -> Self::Weights {
                // SAFETY: the caller's guarantee; unaligned is allowed.
                unsafe { at.cast::<arch::$vector>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn add(
                sums: Self::Sums,
                numbers: Self::Numbers,
                weights: Self::Weights,
            ) -> Self::Sums {
                // SAFETY: the caller's guarantee.
                unsafe { arch::$dot(sums, numbers, weights) }
            }
        }
    };
}

/// `vpmaddwd`: the even and the odd numbers as 16-bit ones, two products of a lane at a time.
macro_rules! words {
    (
        $name:ident, $of_length:ident, $vector:ident, $set:ident, $set_words:ident, $and:ident,
        $right:ident, $left:ident, $right_signed:ident, $multiply:ident
    ) => {
        pub(super) struct $name;

        impl Fours for $name {
            /// The even ones and the odd ones.
            type Numbers = [arch::$vector; 2];
            type Weights = [arch::$vector; 2];
            $of_length!();

            #[inline(always)]
            unsafe fn numbers(four: i32) -> Self::Numbers {
                // SAFETY: the caller's guarantee.
                unsafe {
                    // In vectors: from memory, a number is in every lane by one instruction.
                    let both = arch::$set(four);
                    [arch::$and(both, arch::$set_words(0xFF)), arch::$right::<8>(both)]
                }
            }
            #[inline(always)]
            unsafe fn weights(at: *const i8) -> Self::Weights {
                // SAFETY: the caller's guarantee; unaligned is allowed.
                unsafe {
                    let both = at.cast::<arch::$vector>().read_unaligned();
                    let even = arch::$right_signed::<8>(arch::$left::<8>(both));
                    [even, arch::$right_signed::<8>(both)]
                }
            }
            #[inline(always)]
            unsafe fn add(
                sums: Self::Sums,
                [even, odd]: Self::Numbers,
                [of_even, of_odd]: Self::Weights,
            ) -> Self::Sums {
                // SAFETY: the caller's guarantee.
                unsafe {
                    let sums = Self::plus(sums, arch::$multiply(even, of_even));
                    Self::plus(sums, arch::$multiply(odd, of_odd))
                }
            }
        }
    };
}

dot!(Dot512, of_512, __m512i, _mm512_set1_epi32, _mm512_dpbusd_epi32);
dot!(Dot256, of_256, __m256i, _mm256_set1_epi32, _mm256_dpbusd_avx_epi32);
words!(
    Words512,
    of_512,
    __m512i,
    _mm512_set1_epi32,
    _mm512_set1_epi16,
    _mm512_and_si512,
    _mm512_srli_epi16,
    _mm512_slli_epi16,
    _mm512_srai_epi16,
    _mm512_madd_epi16
);
words!(
    Words256,
    of_256,
    __m256i,
    _mm256_set1_epi32,
    _mm256_set1_epi16,
    _mm256_and_si256,
    _mm256_srli_epi16,
    _mm256_slli_epi16,
    _mm256_srai_epi16,
    _mm256_madd_epi16
);
