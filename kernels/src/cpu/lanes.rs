//! Vector registers that the formulas of pointwise ops can be evaluated on.

use std::ops::{Add, Div, Mul, Neg, Sub};

use fusion_cost_model::kernel::Value;
use pulp::{MemMask, Simd};

use super::approximation as approx;
use super::element::Element;
use crate::random;

/// Bytes of a vector of AVX-512: vectors have this size only where the processor has it.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) const AVX512: usize = 64;

/// Bytes of a vector of AVX2, likewise.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) const AVX2: usize = 32;

/// `U` vector registers of f32: the tile that a pointwise formula works on at once.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<S: Simd, const U: usize> {
    pub(crate) simd: S,
    pub(crate) v: [S::f32s; U],
}

/// The first lanes of a vector, where not all of them are read or written.
#[derive(Clone, Copy)]
pub(crate) struct LaneMask<S: Simd> {
    /// How many, at most all.
    pub(crate) count: usize,
    /// The same for instructions that access f32.
    pub(crate) memory: MemMask<S::m32s>,
}

/// The first `count` lanes, at most all.
#[inline(always)]
pub(crate) fn first_lanes<S: Simd>(simd: S, count: usize) -> LaneMask<S> {
    // Only the lanes: with the functions that `pulp` puts into a mask of its own, each load is a call.
    let memory = MemMask::new(simd.mask_between_m32s(0, count as u32).mask());
    LaneMask { count, memory }
}

/// Applies an expression to every register.
///
/// A macro and not a closure over `array::map`: everything must be inlined into the function that
/// enables the vector instructions, and the loop over a constant is unrolled there, so that the
/// tile stays in registers.
macro_rules! each {
    ($lanes:expr, |$simd:ident, $a:ident| $body:expr) => {{
        let Lanes { simd: $simd, mut v } = $lanes;
        let mut i = 0;
        while i < U {
            let $a = v[i];
            v[i] = $body;
            i += 1;
        }
        Lanes { simd: $simd, v }
    }};
    ($lanes:expr, $other:expr, |$simd:ident, $a:ident, $b:ident| $body:expr) => {{
        let Lanes { simd: $simd, mut v } = $lanes;
        let other = $other;
        let mut i = 0;
        while i < U {
            let $a = v[i];
            let $b = other.v[i];
            v[i] = $body;
            i += 1;
        }
        Lanes { simd: $simd, v }
    }};
}

impl<S: Simd, const U: usize> Lanes<S, U> {
    /// Numbers in one tile.
    pub(crate) const COUNT: usize = U * S::F32_LANES;

    /// The same number everywhere.
    #[inline(always)]
    pub(crate) fn splat(simd: S, value: f32) -> Self {
        Self { simd, v: [simd.splat_f32s(value); U] }
    }

    /// Reads [`Self::COUNT`] numbers.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads of that many numbers.
    #[inline(always)]
    pub(crate) unsafe fn load<E: Element>(simd: S, source: *const E) -> Self {
        // SAFETY: the caller's guarantee.
        unsafe { Self::load_apart(simd, source, S::F32_LANES) }
    }

    /// Reads `U` vectors, `step` numbers from one to the next.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads of all of them.
    #[inline(always)]
    pub(crate) unsafe fn load_apart<E: Element>(simd: S, source: *const E, step: usize) -> Self {
        let mut v = [simd.splat_f32s(0.0); U];
        let mut i = 0;
        while i < U {
            // SAFETY: the caller guarantees U vectors of F32_LANES numbers.
            v[i] = unsafe { E::load(simd, source.add(i * step)) };
            i += 1;
        }
        Self { simd, v }
    }

    /// The same of the lanes in a mask; the others are zero.
    ///
    /// # Safety
    ///
    /// As for [`Self::load_apart`], for those lanes.
    #[inline(always)]
    pub(crate) unsafe fn load_some<E: Element>(
        simd: S,
        source: *const E,
        step: usize,
        lanes: LaneMask<S>,
    ) -> Self {
        let mut v = [simd.splat_f32s(0.0); U];
        let mut i = 0;
        while i < U {
            // SAFETY: the caller's guarantee.
            v[i] = unsafe { E::load_some(simd, source.wrapping_add(i * step), lanes) };
            i += 1;
        }
        Self { simd, v }
    }

    /// Reads vectors side by side, with `REST` only the lanes `last` of the last one.
    ///
    /// # Safety
    ///
    /// As for [`Self::load_apart`], for those lanes.
    #[inline(always)]
    pub(crate) unsafe fn load_row<const REST: bool>(
        simd: S,
        source: *const f32,
        last: LaneMask<S>,
    ) -> Self {
        let mut v = [simd.splat_f32s(0.0); U];
        let mut i = 0;
        while i < U {
            let source = source.wrapping_add(i * S::F32_LANES);
            // SAFETY: the caller's guarantee.
            v[i] = unsafe {
                if REST && i + 1 == U {
                    f32::load_some(simd, source, last)
                } else {
                    f32::load(simd, source)
                }
            };
            i += 1;
        }
        Self { simd, v }
    }

    /// Writes vectors side by side, with `REST` only the lanes `last` of the last one.
    ///
    /// # Safety
    ///
    /// As for [`Self::store_apart`], for those lanes.
    #[inline(always)]
    pub(crate) unsafe fn store_row<const REST: bool>(self, target: *mut f32, last: LaneMask<S>) {
        let mut i = 0;
        while i < U {
            let target = target.wrapping_add(i * S::F32_LANES);
            // SAFETY: the caller's guarantee.
            unsafe {
                if REST && i + 1 == U {
                    f32::store_some(self.simd, target, last, self.v[i]);
                } else {
                    f32::store(self.simd, target, self.v[i]);
                }
            }
            i += 1;
        }
    }

    /// Writes [`Self::COUNT`] numbers.
    ///
    /// # Safety
    ///
    /// `target` must be valid for writes of that many numbers.
    #[inline(always)]
    pub(crate) unsafe fn store<E: Element>(self, target: *mut E) {
        // SAFETY: the caller's guarantee.
        unsafe { self.store_apart(target, S::F32_LANES) };
    }

    /// Writes `U` vectors, `step` numbers from one to the next.
    ///
    /// # Safety
    ///
    /// `target` must be valid for writes of all of them.
    #[inline(always)]
    pub(crate) unsafe fn store_apart<E: Element>(self, target: *mut E, step: usize) {
        let mut i = 0;
        while i < U {
            // SAFETY: the caller guarantees U vectors of F32_LANES numbers.
            unsafe { E::store(self.simd, target.add(i * step), self.v[i]) };
            i += 1;
        }
    }

    /// The same of the lanes in a mask.
    ///
    /// # Safety
    ///
    /// As for [`Self::store_apart`], for those lanes.
    #[inline(always)]
    pub(crate) unsafe fn store_some<E: Element>(
        self,
        target: *mut E,
        step: usize,
        lanes: LaneMask<S>,
    ) {
        let mut i = 0;
        while i < U {
            let target = target.wrapping_add(i * step);
            // SAFETY: the caller's guarantee.
            unsafe { E::store_some(self.simd, target, lanes, self.v[i]) };
            i += 1;
        }
    }

    /// Like [`Self::store_apart`], around the caches.
    ///
    /// # Safety
    ///
    /// As for [`Self::store_apart`], and for [`Element::stream`] of each vector.
    #[inline(always)]
    pub(crate) unsafe fn stream_apart<E: Element>(self, target: *mut E, step: usize) {
        let mut i = 0;
        while i < U {
            // SAFETY: the caller's guarantee.
            unsafe { E::stream(self.simd, target.add(i * step), self.v[i]) };
            i += 1;
        }
    }

    /// The larger of each pair of numbers; NaN if either is.
    #[inline(always)]
    pub(crate) fn max_or_nan(self, other: Self) -> Self {
        each!(self, other, |simd, a, b| {
            // `a` stays if it is NaN (the first comparison is false) or not smaller, unless `b`
            // is NaN, which is the only number that differs from itself.
            let larger = simd.select_f32s(simd.less_than_f32s(a, b), b, a);
            simd.select_f32s(simd.equal_f32s(b, b), larger, b)
        })
    }

    /// The uniform numbers of the elements from `first` on (see [`random::uniform`]), `step` elements
    /// from one vector to the next.
    #[inline(always)]
    pub(crate) fn uniform(simd: S, first: u32, step: u32) -> Self {
        const IOTA: [u32; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let lane = simd.partial_load_u32s(&IOTA[..S::U32_LANES]);
        let mut v = [simd.splat_f32s(0.0); U];
        let mut i = 0;
        while i < U {
            #[expect(clippy::cast_possible_truncation, reason = "a few vectors")]
            let start = first.wrapping_add((i as u32).wrapping_mul(step));
            let mut bits = simd.add_u32s(lane, simd.splat_u32s(start));
            bits = simd.xor_u32s(bits, simd.splat_u32s(random::DROPOUT_SEED));
            bits = simd.xor_u32s(bits, shift_right(simd, bits, 16));
            bits = simd.mul_u32s(bits, simd.splat_u32s(random::MIX_1));
            bits = simd.xor_u32s(bits, shift_right(simd, bits, 15));
            bits = simd.mul_u32s(bits, simd.splat_u32s(random::MIX_2));
            bits = simd.xor_u32s(bits, shift_right(simd, bits, 16));
            bits = simd.or_u32s(shift_right(simd, bits, 9), simd.splat_u32s(random::ONE_BITS));
            v[i] = simd.sub_f32s(simd.transmute_f32s_u32s(bits), simd.splat_f32s(1.0));
            i += 1;
        }
        Self { simd, v }
    }
}

/// Every lane shifted by the same count.
#[inline(always)]
pub(crate) fn shift_right<S: Simd>(simd: S, bits: S::u32s, count: u32) -> S::u32s {
    simd.wrapping_dyn_shr_u32s(bits, simd.splat_u32s(count))
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "constants of formulas")]
fn constant<S: Simd>(simd: S, value: f64) -> S::f32s {
    simd.splat_f32s(value as f32)
}

impl<S: Simd, const U: usize> Add for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(self, other, |simd, a, b| simd.add_f32s(a, b))
    }
}

impl<S: Simd, const U: usize> Sub for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(self, other, |simd, a, b| simd.sub_f32s(a, b))
    }
}

impl<S: Simd, const U: usize> Mul for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        each!(self, other, |simd, a, b| simd.mul_f32s(a, b))
    }
}

impl<S: Simd, const U: usize> Div for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        each!(self, other, |simd, a, b| simd.div_f32s(a, b))
    }
}

impl<S: Simd, const U: usize> Neg for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        each!(self, |simd, a| simd.xor_f32s(a, simd.splat_f32s(-0.0)))
    }
}

impl<S: Simd, const U: usize> Add<f64> for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn add(self, value: f64) -> Self {
        each!(self, |simd, a| simd.add_f32s(a, constant(simd, value)))
    }
}

impl<S: Simd, const U: usize> Mul<f64> for Lanes<S, U> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, value: f64) -> Self {
        each!(self, |simd, a| simd.mul_f32s(a, constant(simd, value)))
    }
}

impl<S: Simd, const U: usize> Value for Lanes<S, U> {
    #[inline(always)]
    fn clamp_min(self, limit: f64) -> Self {
        each!(self, |simd, a| approx::clamp_min(simd, a, constant(simd, limit)))
    }

    #[inline(always)]
    fn clamp_max(self, limit: f64) -> Self {
        each!(self, |simd, a| approx::clamp_max(simd, a, constant(simd, limit)))
    }

    #[inline(always)]
    fn exp(self) -> Self {
        each!(self, |simd, a| approx::exp(simd, a))
    }

    #[inline(always)]
    fn tanh(self) -> Self {
        if S::REGISTER_COUNT < 32 {
            return Self { v: approx::tanh(self.simd, self.v), ..self };
        }
        each!(self, |simd, a| approx::tanh(simd, [a])[0])
    }

    #[inline(always)]
    fn erf(self) -> Self {
        if S::REGISTER_COUNT < 32 {
            return Self { v: approx::erf(self.simd, self.v), ..self };
        }
        each!(self, |simd, a| approx::erf(simd, [a])[0])
    }

    #[inline(always)]
    fn recip(self) -> Self {
        each!(self, |simd, a| simd.div_f32s(simd.splat_f32s(1.0), a))
    }

    #[inline(always)]
    fn rsqrt(self) -> Self {
        each!(self, |simd, a| simd.div_f32s(simd.splat_f32s(1.0), simd.sqrt_f32s(a)))
    }

    #[inline(always)]
    fn zero_where_less(self, chance: Self, limit: f64) -> Self {
        each!(self, chance, |simd, a, chance| {
            let less = simd.less_than_f32s(chance, constant(simd, limit));
            simd.select_f32s(less, simd.splat_f32s(0.0), a)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Uniform;

    impl pulp::WithSimd for Uniform {
        type Output = Vec<f32>;

        fn with_simd<S: Simd>(self, simd: S) -> Vec<f32> {
            let mut numbers = vec![0.0; Lanes::<S, 4>::COUNT];
            let lanes = Lanes::<S, 4>::uniform(simd, 12_345, S::U32_LANES as u32);
            // SAFETY: the vector holds exactly the numbers of one tile.
            unsafe { lanes.store(numbers.as_mut_ptr()) };
            numbers
        }
    }

    #[test]
    fn random_numbers_are_those_of_the_reference() {
        for (numbers, name) in [
            (pulp::Arch::new().dispatch(Uniform), "widest"),
            (pulp::Arch::Scalar.dispatch(Uniform), "scalar"),
        ] {
            for (number, index) in numbers.into_iter().zip(12_345..) {
                assert_eq!(number.to_bits(), random::uniform(index).to_bits(), "{name} {index}");
            }
        }
    }
}
