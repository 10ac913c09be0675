//! Keys as the micro-kernel reads them: transposed, in panels.

use pulp::{Arch, Simd, WithSimd};

use super::strip::Cut;

/// Numbers that the packed panels of a transposed matrix of `n x k` take.
pub(crate) fn numbers(cut: Cut, [n, k]: [usize; 2]) -> usize {
    n.next_multiple_of(cut.lanes) * k
}

/// Packs the transposed matrix into panels of columns, as weights are packed ahead of time.
///
/// # Safety
///
/// The source must be valid for `n x k` numbers and the target for [`numbers`] of them, and no other
/// thread may access the target or write the source meanwhile.
pub(crate) unsafe fn pack(
    arch: Arch,
    cut: Cut,
    source: *const f32,
    [n, k]: [usize; 2],
    target: *mut f32,
) {
    arch.dispatch(Pack { cut, source, n, k, target });
}

/// Made only by [`pack`], whose caller guarantees what the code below relies on.
struct Pack {
    cut: Cut,
    source: *const f32,
    n: usize,
    k: usize,
    target: *mut f32,
}

impl WithSimd for Pack {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { cut, source, n, k, target } = self;
        for row in (0..n).step_by(S::F32_LANES) {
            let col = row / cut.width * cut.width;
            let block = Block {
                source: source.wrapping_add(row * k),
                rows: S::F32_LANES.min(n - row),
                k,
                target: target.wrapping_add(col * k + row - col),
                stride: cut.packed_cols(n, col),
            };
            // SAFETY: the guarantee of the caller of `pack`; the vectors have these sizes only where
            // the processor has the instructions.
            unsafe {
                match size_of::<S::f32s>() {
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    64 => block.transpose_512(),
                    #[cfg(all(target_arch = "x86_64", not(miri)))]
                    32 => block.transpose_256(),
                    _ => block.transpose(S::F32_LANES, 0),
                }
            }
        }
    }
}

/// Rows that become a vector of columns.
struct Block {
    source: *const f32,
    rows: usize,
    k: usize,
    target: *mut f32,
    /// Numbers from one row of the target to the next.
    stride: usize,
}

impl Block {
    /// From the column `first` on.
    ///
    /// # Safety
    ///
    /// The rows must be valid, and the target for `k` times `lanes` numbers.
    #[inline(always)]
    unsafe fn transpose(&self, lanes: usize, first: usize) {
        let Self { source, rows, k, target, stride } = *self;
        for row in 0..lanes {
            for col in first..k {
                // SAFETY: the caller's guarantee.
                unsafe {
                    let number = if row < rows { *source.add(row * k + col) } else { 0.0 };
                    *target.add(col * stride + row) = number;
                }
            }
        }
    }

    /// The same for vectors of 8 numbers, from the first column on.
    ///
    /// # Safety
    ///
    /// As for [`Self::transpose`], and the processor must have AVX.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn transpose_256(&self) {
        use std::arch::x86_64::{_mm256_loadu_ps, _mm256_setzero_ps, _mm256_storeu_ps};
        const LANES: usize = 8;
        let Self { source, rows, k, target, stride } = *self;
        // What is left of rows is little, and so are the rows that are left.
        let whole = if rows == LANES { k / LANES * LANES } else { 0 };
        for col in (0..whole).step_by(LANES) {
            // SAFETY: the caller's guarantee.
            unsafe {
                let mut block = [_mm256_setzero_ps(); LANES];
                let mut row = 0;
                while row < LANES {
                    block[row] = _mm256_loadu_ps(source.wrapping_add(row * k + col));
                    row += 1;
                }
                let block = transposed_256(block);
                let mut row = 0;
                while row < LANES {
                    _mm256_storeu_ps(target.wrapping_add((col + row) * stride), block[row]);
                    row += 1;
                }
            }
        }
        // SAFETY: as above.
        unsafe { self.transpose(LANES, whole) };
    }

    /// The same for vectors of 16 numbers.
    ///
    /// # Safety
    ///
    /// As for [`Self::transpose`], and the processor must have AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    unsafe fn transpose_512(&self) {
        use std::arch::x86_64::{_mm512_maskz_loadu_ps, _mm512_setzero_ps, _mm512_storeu_ps};
        const LANES: usize = 16;
        let Self { source, rows, k, target, stride } = *self;
        for col in (0..k).step_by(LANES) {
            let count = LANES.min(k - col);
            let mask = u16::MAX >> (LANES - count);
            // SAFETY: the caller's guarantee.
            unsafe {
                let mut block = [_mm512_setzero_ps(); LANES];
                let mut row = 0;
                while row < LANES {
                    if row < rows {
                        let source = source.wrapping_add(row * k + col);
                        block[row] = _mm512_maskz_loadu_ps(mask, source);
                    }
                    row += 1;
                }
                let block = transposed_512(block);
                let mut row = 0;
                while row < LANES {
                    if row < count {
                        _mm512_storeu_ps(target.wrapping_add((col + row) * stride), block[row]);
                    }
                    row += 1;
                }
            }
        }
    }
}

/// A square of 8 x 8 numbers, transposed in registers: pairs of rows, fours, and then the halves of the
/// vectors.
///
/// # Safety
///
/// The processor must have AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn transposed_256(rows: [std::arch::x86_64::__m256; 8]) -> [std::arch::x86_64::__m256; 8] {
    use std::arch::x86_64::{
        _mm256_castpd_ps, _mm256_castps_pd, _mm256_permute2f128_ps, _mm256_unpackhi_pd,
        _mm256_unpackhi_ps, _mm256_unpacklo_pd, _mm256_unpacklo_ps,
    };
    /// The first halves of both sources, and the second ones.
    const LOW: i32 = 0x20;
    const HIGH: i32 = 0x31;
    let (mut pairs, mut fours, mut columns) = (rows, rows, rows);
    // SAFETY: the caller's guarantee.
    unsafe {
        let mut i = 0;
        while i < 4 {
            pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
            pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
            i += 1;
        }
        i = 0;
        while i < 4 {
            let (four, half) = (4 * (i / 2), i % 2);
            let above = _mm256_castps_pd(pairs[four + half]);
            let below = _mm256_castps_pd(pairs[four + half + 2]);
            fours[four + 2 * half] = _mm256_castpd_ps(_mm256_unpacklo_pd(above, below));
            fours[four + 2 * half + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(above, below));
            i += 1;
        }
        i = 0;
        while i < 4 {
            columns[i] = _mm256_permute2f128_ps::<LOW>(fours[i], fours[i + 4]);
            columns[i + 4] = _mm256_permute2f128_ps::<HIGH>(fours[i], fours[i + 4]);
            i += 1;
        }
    }
    columns
}

/// A square of 16 x 16 numbers, transposed in registers: pairs of rows, fours, and then the quarters of
/// the vectors.
///
/// # Safety
///
/// The processor must have AVX-512.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn transposed_512(rows: [std::arch::x86_64::__m512; 16]) -> [std::arch::x86_64::__m512; 16] {
    use std::arch::x86_64::{
        _mm512_castpd_ps, _mm512_castps_pd, _mm512_shuffle_f32x4, _mm512_unpackhi_pd,
        _mm512_unpackhi_ps, _mm512_unpacklo_pd, _mm512_unpacklo_ps,
    };
    /// Of each source the first and the third quarter, and the second and the fourth.
    const EVEN: i32 = 0x88;
    const ODD: i32 = 0xdd;
    let (mut pairs, mut fours, mut columns) = (rows, rows, rows);
    // SAFETY: the caller's guarantee.
    unsafe {
        let mut i = 0;
        while i < 8 {
            pairs[2 * i] = _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
            pairs[2 * i + 1] = _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
            i += 1;
        }
        i = 0;
        while i < 8 {
            let (four, half) = (4 * (i / 2), i % 2);
            let above = _mm512_castps_pd(pairs[four + half]);
            let below = _mm512_castps_pd(pairs[four + half + 2]);
            fours[four + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(above, below));
            fours[four + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(above, below));
            i += 1;
        }
        i = 0;
        while i < 4 {
            let above = [fours[i], fours[i + 4]];
            let below = [fours[i + 8], fours[i + 12]];
            let [even, odd] = [
                _mm512_shuffle_f32x4::<EVEN>(above[0], above[1]),
                _mm512_shuffle_f32x4::<ODD>(above[0], above[1]),
            ];
            let [even_below, odd_below] = [
                _mm512_shuffle_f32x4::<EVEN>(below[0], below[1]),
                _mm512_shuffle_f32x4::<ODD>(below[0], below[1]),
            ];
            columns[i] = _mm512_shuffle_f32x4::<EVEN>(even, even_below);
            columns[i + 4] = _mm512_shuffle_f32x4::<EVEN>(odd, odd_below);
            columns[i + 8] = _mm512_shuffle_f32x4::<ODD>(even, even_below);
            columns[i + 12] = _mm512_shuffle_f32x4::<ODD>(odd, odd_below);
            i += 1;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::Vectors;

    #[test]
    fn packed_panels_are_the_transposed_matrix_and_zeros() {
        for arch in Vectors::all() {
            let cut = Cut::new::<f32>(arch, 32 << 10, 1);
            for [n, k] in [[1, 1], [3, 7], [16, 16], [17, 33], [64, 40], [77, 64], [131, 5]] {
                let source: Vec<f32> = (1..=n * k).map(|one| one as f32).collect();
                let mut target = vec![-1.0; numbers(cut, [n, k])];
                // SAFETY: both have the numbers that the sizes say.
                unsafe { pack(arch, cut, source.as_ptr(), [n, k], target.as_mut_ptr()) };
                let mut seen = 0;
                for start in (0..n).step_by(cut.width) {
                    let stride = cut.packed_cols(n, start);
                    for (row, col) in (0..k).flat_map(|row| (0..stride).map(move |c| (row, c))) {
                        let key = start + col;
                        let expected = if key < n { source[key * k + row] } else { 0.0 };
                        let found = target[start * k + row * stride + col];
                        assert_eq!(found, expected, "{arch:?} {n} x {k}");
                        seen += 1;
                    }
                }
                assert_eq!(seen, target.len());
            }
        }
    }
}
