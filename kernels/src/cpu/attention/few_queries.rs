//! Scores of a few queries: each key is read once, where it lies.

use pulp::{Arch, Simd, WithSimd};

use crate::cpu::element::Element;
use crate::cpu::lanes::first_lanes;

/// Queries that are multiplied with a key once it is in registers.
const TOGETHER: usize = 4;

/// A few queries in f32 times the keys of a head, as these are stored.
pub(super) struct FewQueries<E> {
    /// Rows of `d` numbers, one after the other.
    pub(super) queries: *const f32,
    pub(super) rows: usize,
    /// Likewise.
    pub(super) keys: *const E,
    pub(super) used: usize,
    pub(super) d: usize,
    pub(super) scale: f32,
    /// A row of scores for each query.
    pub(super) target: *mut f32,
    pub(super) target_stride: usize,
}

impl<E: Element> FewQueries<E> {
    /// Computes the scores.
    ///
    /// # Safety
    ///
    /// All must be valid for the sizes, and no other thread may access the target or write the others
    /// meanwhile.
    pub(super) unsafe fn compute(self, arch: Arch) {
        arch.dispatch(Compute(self));
    }
}

/// Made only by [`FewQueries::compute`], whose caller guarantees what the code below relies on.
struct Compute<E>(FewQueries<E>);

impl<E: Element> WithSimd for Compute<E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for first in (0..self.0.rows).step_by(TOGETHER) {
            match self.0.rows - first {
                1 => self.scores::<S, 1>(simd, first),
                2 => self.scores::<S, 2>(simd, first),
                3 => self.scores::<S, 3>(simd, first),
                _ => self.scores::<S, TOGETHER>(simd, first),
            }
        }
    }
}

impl<E: Element> Compute<E> {
    /// Of `R` queries.
    #[inline(always)]
    fn scores<S: Simd, const R: usize>(&self, simd: S, first: usize) {
        let FewQueries { queries, keys, used, d, scale, target, target_stride, .. } = self.0;
        let whole = d / S::F32_LANES * S::F32_LANES;
        let rest = first_lanes(simd, d - whole);
        let queries = queries.wrapping_add(first * d);
        let target = target.wrapping_add(first * target_stride);
        for index in 0..used {
            let key = keys.wrapping_add(index * d);
            let mut sums = [simd.splat_f32s(0.0); R];
            let mut at = 0;
            // SAFETY: the guarantee of the caller of `FewQueries::compute`.
            unsafe {
                while at < whole {
                    let numbers = E::load(simd, key.wrapping_add(at));
                    let mut row = 0;
                    while row < R {
                        let query = f32::load(simd, queries.wrapping_add(row * d + at));
                        sums[row] = simd.mul_add_f32s(numbers, query, sums[row]);
                        row += 1;
                    }
                    at += S::F32_LANES;
                }
                if whole < d {
                    let numbers = E::load_some(simd, key.wrapping_add(at), rest);
                    let mut row = 0;
                    while row < R {
                        let query = f32::load_some(simd, queries.wrapping_add(row * d + at), rest);
                        sums[row] = simd.mul_add_f32s(numbers, query, sums[row]);
                        row += 1;
                    }
                }
                let mut row = 0;
                while row < R {
                    let score = simd.reduce_sum_f32s(sums[row]) * scale;
                    target.wrapping_add(row * target_stride + index).write(score);
                    row += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;
    use crate::cpu::Vectors;

    /// Small whole numbers, whose products are exact in any order.
    fn numbers(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|index| (index * step % 9) as f32 - 4.0).collect()
    }

    fn assert_scores<E: Element>([rows, used, d]: [usize; 3]) {
        let (queries, keys) = (numbers(rows * d, 5), numbers(used * d, 7));
        let stored: Vec<E> = keys.iter().map(|&key| E::narrow(key)).collect();
        for arch in Vectors::all() {
            // A number behind each row of scores, which is left alone.
            let stride = used + 1;
            let mut target = vec![7.5; rows * stride];
            let few = FewQueries {
                queries: queries.as_ptr(),
                rows,
                keys: stored.as_ptr(),
                used,
                d,
                scale: 0.5,
                target: target.as_mut_ptr(),
                target_stride: stride,
            };
            // SAFETY: all of them have the numbers that the sizes say.
            unsafe { few.compute(arch) };
            for (place, &found) in target.iter().enumerate() {
                let (row, key) = (place / stride, place % stride);
                let dot = |key: usize| {
                    (0..d).map(|i| queries[row * d + i] * keys[key * d + i]).sum::<f32>()
                };
                let expected = if key < used { 0.5 * dot(key) } else { 7.5 };
                assert_eq!(found, expected, "{arch:?}, {rows} x {used} x {d}, {place}");
            }
        }
    }

    /// Every number of queries that is multiplied together, and rests of every length.
    #[test]
    fn scores_are_those_of_each_query_and_key() {
        for (rows, d) in (1..10).flat_map(|rows| (1..70).map(move |d| (rows, d))) {
            assert_scores::<f32>([rows, 3, d]);
            assert_scores::<bf16>([rows, 3, d]);
            assert_scores::<f16>([rows, 3, d]);
        }
    }
}
