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
}

/// What is the same for all vectors of a length.
macro_rules! of_length {
    ($lanes:literal, $vector:ident, $zero:ident) => {
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
    };
}

/// `vpdpbusd`: all four products of a lane at once.
macro_rules! dot {
    ($name:ident, $lanes:literal, $vector:ident, $zero:ident, $set:ident, $dot:ident) => {
        pub(super) struct $name;

        impl Fours for $name {
            type Numbers = arch::$vector;
            type Weights = arch::$vector;
            of_length!($lanes, $vector, $zero);

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
        $name:ident, $lanes:literal, $vector:ident, $zero:ident, $set:ident, $set_words:ident,
        $and:ident, $right:ident, $left:ident, $right_signed:ident, $multiply:ident, $add:ident
    ) => {
        pub(super) struct $name;

        impl Fours for $name {
            /// The even ones and the odd ones.
            type Numbers = [arch::$vector; 2];
            type Weights = [arch::$vector; 2];
            of_length!($lanes, $vector, $zero);

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
                    let sums = arch::$add(sums, arch::$multiply(even, of_even));
                    arch::$add(sums, arch::$multiply(odd, of_odd))
                }
            }
        }
    };
}

dot!(Dot512, 16, __m512i, _mm512_setzero_si512, _mm512_set1_epi32, _mm512_dpbusd_epi32);
dot!(Dot256, 8, __m256i, _mm256_setzero_si256, _mm256_set1_epi32, _mm256_dpbusd_avx_epi32);
words!(
    Words512,
    16,
    __m512i,
    _mm512_setzero_si512,
    _mm512_set1_epi32,
    _mm512_set1_epi16,
    _mm512_and_si512,
    _mm512_srli_epi16,
    _mm512_slli_epi16,
    _mm512_srai_epi16,
    _mm512_madd_epi16,
    _mm512_add_epi32
);
words!(
    Words256,
    8,
    __m256i,
    _mm256_setzero_si256,
    _mm256_set1_epi32,
    _mm256_set1_epi16,
    _mm256_and_si256,
    _mm256_srli_epi16,
    _mm256_slli_epi16,
    _mm256_srai_epi16,
    _mm256_madd_epi16,
    _mm256_add_epi32
);
