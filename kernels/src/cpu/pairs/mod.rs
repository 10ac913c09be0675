//! The micro-kernel of GEMMs in bf16 where the processor multiplies pairs (`vdpbf16ps`).
//!
//! One instruction multiplies 32 numbers with 32 others and adds the two products of each lane to a
//! sum in f32: twice the multiply-adds of one on f32. It goes through rows and panels as `strip` does,
//! two numbers of a row at a time. What is left of a run of numbers that lie side by side is multiplied
//! by itself, with nothing beside it.
//!
//! Products of bf16 are exact in f32. The instruction rounds to the nearest, at most once for each
//! product that it adds, so that a sum of `k` products is off by no more than `k` rounding steps of f32,
//! as one of fused multiply-adds is. It takes denormals for zeros and leaves none, whatever the mode of
//! the thread; kernels run in that mode anyway (`numeric`).

use half::bf16;
use pulp::{Arch, Simd, WithSimd};

use super::panels::Panels;
use super::strip::Strip;
use super::vendor;

/// Numbers of a row that are multiplied together.
pub(crate) const TOGETHER: usize = 2;

/// Whether the processor has the instruction, where kernels may use vectors of its width.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) fn supported(arch: Arch) -> bool {
    matches!(arch, Arch::V4(_)) && is_x86_feature_detected!("avx512bf16")
}

/// There is no such instruction.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(crate) fn supported(_: Arch) -> bool {
    false
}

/// Whether it multiplies more numbers in a cycle than multiply-adds of f32 do. On an Intel processor
/// (family 6, model 207) it reaches half of their peak (87 and 179 GFLOP/s), so that numbers which are
/// widened ahead of the products are multiplied twice as fast; others of Intel's were not measured.
pub(crate) fn are_fast() -> bool {
    cfg!(all(target_arch = "x86_64", not(miri))) && !vendor::is_intel()
}

/// Computes a strip whose panel has pairs.
///
/// # Safety
///
/// As for [`Strip::compute`], where [`supported`]. There is no epilogue.
pub(crate) unsafe fn compute(strip: &Strip<bf16>) {
    assert!(strip.epilogue.is_none());
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: the caller's guarantee.
    unsafe {
        x86::compute(strip);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = strip;
}

/// Packs a matrix of numbers of two bytes, which lies row after row, as [`Panels::pack`] does: while a
/// kernel runs.
///
/// # Safety
///
/// The source must be valid for the numbers of the matrix and the target for those of the panels, and no
/// other thread may access the target or write the source meanwhile.
pub(crate) unsafe fn pack(arch: Arch, panels: &Panels, source: *const u16, target: *mut u32) {
    arch.dispatch(Pack { panels, source, target });
}

/// Made only by [`pack`], whose caller guarantees what the code below relies on.
struct Pack<'a> {
    panels: &'a Panels,
    source: *const u16,
    /// Pairs.
    target: *mut u32,
}

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { panels, source, mut target } = self;
        let Panels { k, n, cut, .. } = *panels;
        for start in (0..n).step_by(cut.width) {
            let (cols, padded) = (cut.cols(n, start), cut.packed_cols(n, start));
            for row in (0..k).step_by(TOGETHER) {
                let upper = source.wrapping_add(row * n + start);
                // SAFETY: the guarantee of the caller of `pack`; a row is read where there is one.
                unsafe {
                    if row + 1 < k {
                        let lower = upper.wrapping_add(n);
                        for col in 0..cols {
                            let pair =
                                u32::from(*lower.add(col)) << 16 | u32::from(*upper.add(col));
                            target.add(col).write(pair);
                        }
                    } else {
                        for col in 0..cols {
                            target.add(col).write(u32::from(*upper.add(col)));
                        }
                    }
                    target.add(cols).write_bytes(0, padded - cols);
                }
                target = target.wrapping_add(padded);
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) mod x86 {
    use std::arch::x86_64::{
        __m512, __m512bh, __m512i, __mmask16, _mm512_add_ps, _mm512_dpbf16_ps,
        _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mul_ps, _mm512_set1_epi32,
        _mm512_set1_ps, _mm512_setzero_ps,
    };
    use std::mem::transmute;
    use std::ops::Range;

    use half::bf16;

    use super::TOGETHER;
    use crate::cpu::ahead::Ahead;
    use crate::cpu::factors::Factors;
    use crate::cpu::gemm::share;
    use crate::cpu::strip::{ROWS, Strip, divide};

    /// Sums in a vector.
    pub(crate) const LANES: usize = 16;

    /// Adds the products of the pairs of each lane to its sum.
    ///
    /// # Safety
    ///
    /// The caller must have the instruction.
    #[inline(always)]
    pub(crate) unsafe fn add_products(sums: __m512, left: __m512i, right: __m512i) -> __m512 {
        // SAFETY: the caller's guarantee; vectors of pairs are vectors of bits.
        unsafe {
            let left = transmute::<__m512i, __m512bh>(left);
            let right = transmute::<__m512i, __m512bh>(right);
            _mm512_dpbf16_ps(sums, left, right)
        }
    }

    /// # Safety
    ///
    /// As for [`super::compute`].
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) unsafe fn compute(strip: &Strip<bf16>) {
        // SAFETY: the caller's guarantee.
        unsafe {
            match strip.cols.div_ceil(LANES) {
                1 => parts::<1>(strip),
                2 => parts::<2>(strip),
                3 => parts::<3>(strip),
                _ => parts::<4>(strip),
            }
        }
    }

    /// `V` vectors of columns.
    ///
    /// # Safety
    ///
    /// As for [`super::compute`].
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn parts<const V: usize>(strip: &Strip<bf16>) {
        let blocks = strip.rows.div_ceil(ROWS);
        let run = strip.source.run.min(strip.k).max(1);
        let (runs, pairs_of_run) = (strip.k / run, run.div_ceil(TOGETHER));
        let all = runs * pairs_of_run;
        let parts = strip.parts();
        for part in 0..parts {
            let pairs = share(all, part, parts);
            let is_last = pairs.end == all;
            let bytes = TOGETHER * strip.panel_stride * size_of::<bf16>();
            let ahead = Ahead::new(&pairs, blocks.max(1), bytes);
            for block in 0..blocks {
                let rows = share(strip.rows, block, blocks);
                let (first, pairs) = (rows.start, pairs.clone());
                let is_odd = !run.is_multiple_of(TOGETHER);
                let ahead = ahead.of_block(block);
                let part = Part { strip, first, pairs, pairs_of_run, is_odd, is_last, ahead };
                // SAFETY: the caller's guarantee.
                unsafe {
                    match rows.len() {
                        1 => part.compute::<1, V, 4>(),
                        2 => part.compute::<2, V, 2>(),
                        3 => part.compute::<3, V, 1>(),
                        4 => part.compute::<4, V, 1>(),
                        5 => part.compute::<5, V, 1>(),
                        _ => part.compute::<6, V, 1>(),
                    }
                }
            }
        }
    }

    /// A few rows from `first` on times some pairs of rows of the panel.
    struct Part<'a> {
        strip: &'a Strip<bf16>,
        first: usize,
        pairs: Range<usize>,
        pairs_of_run: usize,
        /// Whether the last pair of a run is a number by itself.
        is_odd: bool,
        /// Whether the sums are whole then.
        is_last: bool,
        ahead: Ahead,
    }

    impl Part<'_> {
        /// Computes it for `R` rows, with `U` sums side by side for each result. In one function with
        /// those for other counts of rows, the sums would not stay in registers.
        ///
        /// # Safety
        ///
        /// As for [`super::compute`].
        #[inline(never)]
        #[target_feature(enable = "avx512f,avx512bf16")]
        unsafe fn compute<const R: usize, const V: usize, const U: usize>(&self) {
            let Self { strip, first, pairs_of_run, is_odd, ahead, .. } = *self;
            let mut ahead = ahead.one_by_one(strip.panel);
            let source = &strip.source;
            let mut rows = [source.data; R];
            let mut r = 0;
            while r < R {
                rows[r] = source.row(first + r);
                r += 1;
            }
            let stride = TOGETHER * strip.panel_stride;
            let mut sums = [[[_mm512_setzero_ps(); V]; R]; U];
            let (mut pair, end) = (self.pairs.start, self.pairs.end);
            let (mut run, mut inside) = divide(pair, pairs_of_run);
            let mut panel = strip.panel.wrapping_add(pair * stride);
            // SAFETY: the caller's guarantee: the rows of the panel and the numbers of the source are
            // those of the sizes, and a pair is two of them.
            unsafe {
                while pair < end {
                    let count = (pairs_of_run - inside).min(end - pair);
                    let is_odd = is_odd && inside + count == pairs_of_run;
                    let mut term = pair;
                    let mut number = run * source.run_stride + TOGETHER * inside;
                    let end_of_pairs = number + TOGETHER * (count - usize::from(is_odd));
                    while number + TOGETHER * U <= end_of_pairs {
                        let mut u = 0;
                        while u < U {
                            multiply_add(&mut sums[u], panel, pairs_at(rows, number));
                            panel = panel.wrapping_add(stride);
                            number += TOGETHER;
                            u += 1;
                        }
                        if R > 2 {
                            ahead.term(term);
                        }
                        term += U;
                    }
                    while number < end_of_pairs {
                        multiply_add(&mut sums[0], panel, pairs_at(rows, number));
                        panel = panel.wrapping_add(stride);
                        number += TOGETHER;
                    }
                    if is_odd {
                        // The number behind it is of another row, or of another window.
                        let numbers =
                            rows.map(|row| i32::from(row.wrapping_add(number).read().to_bits()));
                        multiply_add(&mut sums[0], panel, numbers);
                        panel = panel.wrapping_add(stride);
                    }
                    pair += count;
                    run += 1;
                    inside = 0;
                }
                self.store(sums);
            }
        }

        /// Adds the sums to what the rows of the panel before these left.
        ///
        /// # Safety
        ///
        /// As for [`super::compute`].
        #[inline(always)]
        unsafe fn store<const R: usize, const V: usize, const U: usize>(
            &self,
            sums: [[[__m512; V]; R]; U],
        ) {
            let Self { strip, first, is_last, .. } = *self;
            let is_first = self.pairs.start == 0;
            // What is not yet a whole sum is not multiplied.
            let factors = if is_last { strip.factors } else { Factors::one() };
            let last = first_lanes(strip.cols - (V - 1) * LANES);
            let target = strip.target.wrapping_add(first * strip.target_stride);
            let mut r = 0;
            while r < R {
                // SAFETY: the caller's guarantee.
                let factor = unsafe { _mm512_set1_ps(factors.of_row(first + r)) };
                let mut v = 0;
                while v < V {
                    let target = target.wrapping_add(r * strip.target_stride + v * LANES);
                    let lanes = if v + 1 < V { __mmask16::MAX } else { last };
                    // SAFETY: the caller's guarantee: these lanes are columns of the target.
                    unsafe {
                        let mut sum = sums[0][r][v];
                        let mut u = 1;
                        while u < U {
                            sum = _mm512_add_ps(sum, sums[u][r][v]);
                            u += 1;
                        }
                        if !is_first {
                            sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(lanes, target));
                        }
                        _mm512_mask_storeu_ps(target, lanes, _mm512_mul_ps(sum, factor));
                    }
                    v += 1;
                }
                r += 1;
            }
        }
    }

    /// The first lanes of a vector, one to all of them.
    #[inline(always)]
    fn first_lanes(count: usize) -> __mmask16 {
        __mmask16::MAX >> (LANES - count)
    }

    /// A pair of each row from a number on, as the bits of one lane.
    ///
    /// # Safety
    ///
    /// The numbers must be valid.
    #[inline(always)]
    unsafe fn pairs_at<const R: usize>(rows: [*const bf16; R], number: usize) -> [i32; R] {
        let mut pairs = [0; R];
        let mut r = 0;
        while r < R {
            // SAFETY: the caller's guarantee; unaligned is allowed.
            pairs[r] = unsafe { rows[r].wrapping_add(number).cast::<i32>().read_unaligned() };
            r += 1;
        }
        pairs
    }

    /// Adds a pair of each of `R` rows times a row of pairs of the panel.
    ///
    /// # Safety
    ///
    /// The panel must have `V` vectors of pairs, and the caller the instruction.
    #[inline(always)]
    unsafe fn multiply_add<const R: usize, const V: usize>(
        sums: &mut [[__m512; V]; R],
        panel: *const bf16,
        pairs: [i32; R],
    ) {
        // SAFETY: the caller's guarantee; unaligned is allowed.
        unsafe {
            let mut weights = [_mm512_set1_epi32(0); V];
            let mut v = 0;
            while v < V {
                let vector = panel.wrapping_add(v * TOGETHER * LANES).cast::<__m512i>();
                weights[v] = vector.read_unaligned();
                v += 1;
            }
            let mut r = 0;
            while r < R {
                let pair = _mm512_set1_epi32(pairs[r]);
                let mut v = 0;
                while v < V {
                    sums[r][v] = add_products(sums[r][v], pair, weights[v]);
                    v += 1;
                }
                r += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
