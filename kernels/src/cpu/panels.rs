//! Linear layers on few rows: weights packed ahead of time, and a micro-kernel of its own.
//!
//! On few rows a GEMM that packs its weights in every call does little else, and one that does not
//! reads them in short pieces. Here the weights lie in panels: all rows of a few columns one after the
//! other, so that a panel is read from its first number to its last. They are packed when the inputs
//! are written, outside the clock and for both variants alike. Threads share the panels, so that none
//! reads all weights.

use pulp::{Arch, Simd, WithSimd};

use super::gemm::share;

/// Rows of the input up to which weights are packed.
pub(crate) const MOST_ROWS: usize = 32;

/// Rows that are computed together: with four vectors of columns and 32 registers, or two and 16,
/// their sums, the weights and a number of the input fit into the registers.
const ROWS: usize = 6;

/// Columns of the widest panel.
const MOST_WIDTH: usize = 64;

/// Rows of a panel that all rows of the input are multiplied with before the next ones: 128 KiB of
/// the widest panel, a part of any second-level cache.
const DEPTH: usize = 512;

/// The weights of a linear layer as panels of `width` columns. What the last one lacks is zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panels {
    pub(crate) k: usize,
    pub(crate) n: usize,
    pub(crate) width: usize,
}

impl Panels {
    /// Panels as wide as the micro-kernel on these vectors.
    pub(crate) fn new(arch: Arch, k: usize, n: usize) -> Self {
        Self { k, n, width: arch.dispatch(Width) }
    }

    /// Whether there is more to read than padding: not where one panel has room for more columns than
    /// there are.
    pub(crate) fn mostly_full(&self) -> bool {
        self.n >= self.width
    }

    /// Numbers that they take.
    pub(crate) fn numbers(&self) -> usize {
        self.n.next_multiple_of(self.width) * self.k
    }

    /// Fills a part of the packed numbers, which begins at number `first`.
    pub(crate) fn pack(&self, weights: &[f32], first: usize, part: &mut [f32]) {
        let Self { k, n, width } = *self;
        let mut done = 0;
        while done < part.len() {
            let at = first + done;
            let (row, col) = (at / width % k, at / (width * k) * width + at % width);
            let count = (width - at % width).min(part.len() - done);
            let (numbers, padding) =
                part[done..][..count].split_at_mut(count.min(n.saturating_sub(col)));
            if !numbers.is_empty() {
                numbers.copy_from_slice(&weights[row * n + col..][..numbers.len()]);
            }
            padding.fill(0.0);
            done += count;
        }
    }
}

/// The width of panels.
struct Width;

impl WithSimd for Width {
    type Output = usize;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> usize {
        if S::REGISTER_COUNT >= 32 { 4 * S::F32_LANES } else { 2 * S::F32_LANES }
    }
}

/// Some rows of the input times one panel of the weights.
pub(crate) struct PanelProduct {
    /// At most [`MOST_ROWS`].
    pub(crate) rows: usize,
    pub(crate) k: usize,
    /// Columns of the panel that are not padding.
    pub(crate) cols: usize,
    /// The rows, `k` numbers apart.
    pub(crate) source: *const f32,
    pub(crate) panel: *const f32,
    pub(crate) target: *mut f32,
    /// Numbers from one row of the target to the next.
    pub(crate) stride: usize,
}

impl PanelProduct {
    /// Computes it on the calling thread.
    ///
    /// # Safety
    ///
    /// Source, panel and target must be valid, the panel as wide as [`Panels`] are on these vectors,
    /// and no other thread may access the target or write the others meanwhile.
    pub(crate) unsafe fn compute(self, arch: Arch) {
        arch.dispatch(Compute(self));
    }
}

/// Made only by [`PanelProduct::compute`], whose caller guarantees what the code below relies on.
struct Compute(PanelProduct);

impl WithSimd for Compute {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // SAFETY: the guarantee of the caller of `PanelProduct::compute`.
        unsafe {
            if S::REGISTER_COUNT >= 32 {
                self.0.panel::<S, 4>(simd);
            } else {
                self.0.panel::<S, 2>(simd);
            }
        }
    }
}

impl PanelProduct {
    /// # Safety
    ///
    /// As for [`Self::compute`], with `V` vectors in a row of the panel.
    #[inline(always)]
    unsafe fn panel<S: Simd, const V: usize>(self, simd: S) {
        let Self { rows, k, cols, source, panel, target, stride } = self;
        let width = V * S::F32_LANES;
        if cols == width {
            let whole = Strip { k, source, panel, target, stride };
            // SAFETY: the caller's guarantee.
            unsafe { whole.rows::<S, V>(simd, rows) };
            return;
        }
        // The last panel: with its padding it would not fit into the target.
        let mut padded = [0.0_f32; MOST_ROWS * MOST_WIDTH];
        let strip = Strip { k, source, panel, target: padded.as_mut_ptr(), stride: width };
        // SAFETY: the caller's guarantee, and all rows of a panel fit.
        unsafe { strip.rows::<S, V>(simd, rows) };
        for (row, numbers) in padded.chunks_exact(width).take(rows).enumerate() {
            // SAFETY: the target has `cols` numbers in each row.
            unsafe {
                let target = target.add(row * stride);
                target.copy_from_nonoverlapping(numbers.as_ptr(), cols);
            }
        }
    }
}

/// A [`PanelProduct`] with room for all columns of the panel.
#[derive(Clone, Copy)]
struct Strip {
    k: usize,
    source: *const f32,
    panel: *const f32,
    target: *mut f32,
    stride: usize,
}

impl Strip {
    /// # Safety
    ///
    /// As for [`PanelProduct::compute`], for this many rows.
    #[inline(always)]
    unsafe fn rows<S: Simd, const V: usize>(self, simd: S, rows: usize) {
        let blocks = rows.div_ceil(ROWS);
        for start in (0..self.k).step_by(DEPTH) {
            let depth = start..(start + DEPTH).min(self.k);
            for block in 0..blocks {
                let rows = share(rows, block, blocks);
                let strip = Self {
                    source: self.source.wrapping_add(rows.start * self.k),
                    target: self.target.wrapping_add(rows.start * self.stride),
                    ..self
                };
                let (from, to) = (depth.start, depth.end);
                // SAFETY: the rows and the depth are some of the caller's.
                unsafe {
                    match rows.len() {
                        1 => strip.sum::<S, 1, V, 4>(simd, from, to),
                        2 => strip.sum::<S, 2, V, 2>(simd, from, to),
                        3 => strip.sum::<S, 3, V, 1>(simd, from, to),
                        4 => strip.sum::<S, 4, V, 1>(simd, from, to),
                        5 => strip.sum::<S, 5, V, 1>(simd, from, to),
                        _ => strip.sum::<S, 6, V, 1>(simd, from, to),
                    }
                }
            }
        }
    }

    /// Multiplies `R` rows with the rows `from..to` of the panel, and adds to what the rows before
    /// them left. Sums go on side by side, `U` of them for each result.
    ///
    /// # Safety
    ///
    /// As for [`Self::rows`].
    #[inline(always)]
    unsafe fn sum<S: Simd, const R: usize, const V: usize, const U: usize>(
        self,
        simd: S,
        from: usize,
        to: usize,
    ) {
        let Self { k, source, panel, target, stride } = self;
        let width = V * S::F32_LANES;
        let mut sums = [[[simd.splat_f32s(0.0); V]; R]; U];
        let mut at = from;
        while at + U <= to {
            let mut u = 0;
            while u < U {
                // SAFETY: the row of the panel is one of the caller's.
                unsafe {
                    let weights = panel.add((at + u) * width);
                    let numbers = source.add(at + u);
                    multiply_add::<S, R, V>(simd, &mut sums[u], weights, numbers, k);
                }
                u += 1;
            }
            at += U;
        }
        while at < to {
            // SAFETY: as above.
            unsafe {
                let (weights, numbers) = (panel.add(at * width), source.add(at));
                multiply_add::<S, R, V>(simd, &mut sums[0], weights, numbers, k);
            }
            at += 1;
        }
        let mut r = 0;
        while r < R {
            let mut v = 0;
            while v < V {
                let mut sum = sums[0][r][v];
                let mut u = 1;
                while u < U {
                    sum = simd.add_f32s(sum, sums[u][r][v]);
                    u += 1;
                }
                // SAFETY: the vector is one of the target's; unaligned is allowed.
                unsafe {
                    let target = target.add(r * stride + v * S::F32_LANES).cast::<S::f32s>();
                    if from > 0 {
                        sum = simd.add_f32s(sum, target.read_unaligned());
                    }
                    target.write_unaligned(sum);
                }
                v += 1;
            }
            r += 1;
        }
    }
}

/// Adds a number of each of `R` rows, which are `k` apart, times a row of a panel.
///
/// # Safety
///
/// The numbers and the row of the panel must be valid.
#[inline(always)]
unsafe fn multiply_add<S: Simd, const R: usize, const V: usize>(
    simd: S,
    sums: &mut [[S::f32s; V]; R],
    weights: *const f32,
    numbers: *const f32,
    k: usize,
) {
    let mut row = [simd.splat_f32s(0.0); V];
    let mut v = 0;
    while v < V {
        // SAFETY: the caller's guarantee; unaligned is allowed.
        row[v] = unsafe { weights.add(v * S::F32_LANES).cast::<S::f32s>().read_unaligned() };
        v += 1;
    }
    let mut r = 0;
    while r < R {
        // SAFETY: the caller's guarantee.
        let number = simd.splat_f32s(unsafe { *numbers.add(r * k) });
        let mut v = 0;
        while v < V {
            sums[r][v] = simd.mul_add_e_f32s(number, row[v], sums[r][v]);
            v += 1;
        }
        r += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::conforms::{conforms, cpus};

    #[test]
    fn packed_weights_are_those_of_each_column_and_zeros() {
        for (k, n, width) in [(1, 1, 64), (3, 5, 2), (7, 64, 64), (5, 65, 64), (2, 31, 16)] {
            let panels = Panels { k, n, width };
            let weights: Vec<f32> = (1..=k * n).map(|one| one as f32).collect();
            let mut packed = vec![-1.0; panels.numbers()];
            // In parts that begin and end anywhere.
            let mut first = 0;
            for size in [1, 7, 2, 40].into_iter().cycle() {
                let end = (first + size).min(packed.len());
                panels.pack(&weights, first, &mut packed[first..end]);
                first = end;
                if end == packed.len() {
                    break;
                }
            }
            for (at, &number) in packed.iter().enumerate() {
                let (row, col) = (at / width % k, at / (width * k) * width + at % width);
                let expected = if col < n { weights[row * n + col] } else { 0.0 };
                assert_eq!(number, expected, "{panels:?} at {at}");
            }
        }
    }

    /// Every number of rows that the micro-kernel takes, depths of one part, several and a rest, and
    /// panels that are whole and not.
    #[test]
    fn few_rows_conform_on_all_vectors() {
        for mut cpu in cpus() {
            for (m, k, n) in [
                (1, 1, 1),
                (1, 1031, 130),
                (2, 513, 64),
                (3, 512, 63),
                (4, 17, 129),
                (5, 2, 16),
                (6, 67, 17),
                (7, 1025, 31),
                (13, 97, 64),
                (32, 520, 67),
                (33, 9, 5),
            ] {
                for chain in ["linear_bias_relu", "linear+bias+softmax"] {
                    let text = format!("{chain}/f32/m{m}.k{k}.n{n}");
                    let [unfused, _] = conforms(&mut cpu, &text);
                    let packed = unfused[0].contains("packed");
                    if m > MOST_ROWS || n >= MOST_WIDTH {
                        assert_eq!(packed, m <= MOST_ROWS, "{text}");
                    }
                }
            }
        }
    }

    /// What is not a number in one row stays there, and in the padding.
    #[test]
    fn infinities_and_nan_reach_only_their_row() {
        let arch = Arch::new();
        let (rows, k, n) = (3, 5, 7);
        let panels = Panels::new(arch, k, n);
        let weights = vec![1.0; k * n];
        let mut packed = vec![0.0; panels.numbers()];
        panels.pack(&weights, 0, &mut packed);
        let mut input = vec![1.0_f32; rows * k];
        input[k] = f32::NAN;
        input[2 * k] = f32::INFINITY;
        let mut output = vec![0.0_f32; rows * n];
        let (source, target) = (input.as_ptr(), output.as_mut_ptr());
        let product =
            PanelProduct { rows, k, cols: n, source, panel: packed.as_ptr(), target, stride: n };
        // SAFETY: all of them have the numbers that the sizes say.
        unsafe { product.compute(arch) };
        assert!(output[..n].iter().all(|&y| y == 5.0), "{output:?}");
        assert!(output[n..2 * n].iter().all(|y| y.is_nan()), "{output:?}");
        assert!(output[2 * n..].iter().all(|&y| y == f32::INFINITY), "{output:?}");
    }
}
