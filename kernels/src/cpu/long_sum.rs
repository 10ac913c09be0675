//! Sums of many numbers. A plain one rounds after each addition, and the larger it is, the more of
//! what is added gets lost: over 20,000 equal numbers many times what one rounding loses.

use pulp::Simd;

/// Vectors that a plain sum takes, or each of several side by side, until it becomes a part of a
/// [`LongSum`].
pub(crate) const PART: usize = 32;

/// A sum of plain sums, and what its additions lost.
#[derive(Clone, Copy)]
pub(crate) struct LongSum<S: Simd> {
    sum: S::f32s,
    lost: S::f32s,
}

impl<S: Simd> LongSum<S> {
    /// Of nothing.
    #[inline(always)]
    pub(crate) fn new(simd: S) -> Self {
        let zero = simd.splat_f32s(0.0);
        Self { sum: zero, lost: zero }
    }

    /// Adds a part. What the addition loses is computed exactly, by Knuth's TwoSum.
    #[inline(always)]
    pub(crate) fn add(&mut self, simd: S, part: S::f32s) {
        let sum = simd.add_f32s(self.sum, part);
        let of_part = simd.sub_f32s(sum, self.sum);
        let of_sum = simd.sub_f32s(sum, of_part);
        let lost = simd.add_f32s(simd.sub_f32s(self.sum, of_sum), simd.sub_f32s(part, of_part));
        *self = Self { sum, lost: simd.add_f32s(self.lost, lost) };
    }

    /// The sum over all lanes.
    #[inline(always)]
    pub(crate) fn total(self, simd: S) -> f32 {
        let sum = simd.reduce_sum_f32s(self.sum);
        // What an infinite sum lost is no number.
        if sum.is_finite() { sum + simd.reduce_sum_f32s(self.lost) } else { sum }
    }
}
