//! The micro-kernel of GEMMs: some rows of one matrix times a panel, which is a few neighbouring
//! columns of another.
//!
//! Rows and panel are numbers of any kind, sums are f32. The sums of six rows and a few vectors of columns stay in registers. A part of the panel that fits
//! into the first-level cache is multiplied with all rows before the next part. Nothing is packed here:
//! the rows are read as they lie, one number at a time, and the panel a vector at a time. So a GEMM on
//! few rows costs no more per row than one on many, and a kernel may cut its rows as its caches want;
//! and a row may be the window of a pixel, whose numbers lie in several places.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::element::Element;
use super::epilogue::Epilogue;
use super::gemm::share;
use super::lanes::{LaneMask, first_lanes};

/// Rows that are computed together: with four vectors of columns and 32 registers, or two and 16,
/// their sums, a row of the panel and a number of the source fit into the registers.
pub(super) const ROWS: usize = 6;

/// How panels are cut for the vectors and caches of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Columns of a whole panel.
    pub(crate) width: usize,
    /// Columns of a vector.
    pub(crate) lanes: usize,
    /// Rows of a panel that all rows of the source are multiplied with before the next ones; a
    /// multiple of those that lie together.
    pub(crate) depth: usize,
    /// Rows whose numbers of a column lie together in a packed panel: more than one for instructions
    /// that multiply pairs.
    pub(crate) together: usize,
}

impl Cut {
    /// For these vectors, and for a first-level cache of this many bytes. A part of a panel takes
    /// two thirds of them: the rest is for the source and the target.
    pub(crate) fn new<E: Element>(arch: Arch, first_level_bytes: usize, together: usize) -> Self {
        let [width, lanes] = arch.dispatch(Width);
        let depth = first_level_bytes * 2 / 3 / (width * size_of::<E>());
        Self { width, lanes, depth: depth.max(32) / together * together, together }
    }

    /// The same where each row of a panel lies by itself.
    pub(crate) const fn one_by_one(self) -> Self {
        Self { together: 1, ..self }
    }

    /// What panels are packed into, for the name of a kernel.
    pub(crate) const fn name(&self) -> &'static str {
        if self.together > 1 { "panels of pairs" } else { "panels" }
    }

    /// How many of `n` columns the panel that begins at column `col` has.
    pub(crate) fn cols(&self, n: usize, col: usize) -> usize {
        self.width.min(n - col)
    }

    /// Columns of the packed panel that begins there, with its padding to whole vectors.
    pub(crate) fn packed_cols(&self, n: usize, col: usize) -> usize {
        self.cols(n, col).next_multiple_of(self.lanes)
    }
}

/// Columns of a panel, and of a vector.
struct Width;

impl WithSimd for Width {
    type Output = [usize; 2];

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> [usize; 2] {
        let vectors = if S::REGISTER_COUNT >= 32 { 4 } else { 2 };
        [vectors * S::F32_LANES, S::F32_LANES]
    }
}

/// What the rows of a product are multiplied with: one number, or one for each row.
#[derive(Clone, Copy)]
pub(crate) struct Factors {
    first: *const f32,
    step: usize,
}

static ONE: f32 = 1.0;

impl Factors {
    /// Nothing changes.
    pub(crate) fn one() -> Self {
        Self::all(&raw const ONE)
    }

    /// The same for all rows.
    pub(crate) fn all(factor: *const f32) -> Self {
        Self { first: factor, step: 0 }
    }

    /// One after the other.
    pub(crate) fn each(first: *const f32) -> Self {
        Self { first, step: 1 }
    }

    /// That of a row.
    ///
    /// # Safety
    ///
    /// There must be one for the row.
    #[inline(always)]
    pub(super) unsafe fn of_row(&self, row: usize) -> f32 {
        // SAFETY: the caller's guarantee.
        unsafe { *self.first.wrapping_add(row * self.step) }
    }
}

/// A matrix in memory whose rows are multiplied with panels: rows of numbers, or the windows of the
/// pixels of an image.
#[derive(Clone, Copy)]
pub(crate) struct Source<E = f32> {
    /// Its first row.
    pub(crate) data: *const E,
    /// Numbers from one row to the next, within a line.
    pub(crate) stride: usize,
    /// Rows in a line, and numbers from one line to the next.
    pub(crate) line: usize,
    pub(crate) line_stride: usize,
    /// Numbers of a row that lie side by side, and numbers from there to the next of them.
    pub(crate) run: usize,
    pub(crate) run_stride: usize,
}

impl<E> Source<E> {
    /// Rows of numbers that lie side by side, `stride` numbers from one row to the next.
    pub(crate) const fn rows(data: *const E, stride: usize) -> Self {
        let (line, run) = (usize::MAX, usize::MAX);
        Self { data, stride, line, line_stride: 0, run, run_stride: 0 }
    }

    #[inline(always)]
    pub(super) fn row(&self, index: usize) -> *const E {
        let (line, inside) = divide(index, self.line);
        self.data.wrapping_add(line * self.line_stride + inside * self.stride)
    }
}

/// Quotient and rest, at once where the quotient is zero: a division takes as long as a few vectors.
#[inline(always)]
fn divide(number: usize, by: usize) -> (usize, usize) {
    if number < by { (0, number) } else { (number / by, number % by) }
}

/// Some rows times one panel.
#[derive(Clone, Copy)]
pub(crate) struct Strip<E = f32> {
    pub(crate) rows: usize,
    /// Terms of each sum.
    pub(crate) k: usize,
    /// Columns of the panel, at most the width of a [`Cut`].
    pub(crate) cols: usize,
    pub(crate) source: Source<E>,
    pub(crate) panel: *const E,
    /// Numbers from one row of the panel to the next.
    pub(crate) panel_stride: usize,
    pub(crate) target: *mut f32,
    /// Numbers from one row of the target to the next.
    pub(crate) target_stride: usize,
    pub(crate) factors: Factors,
    /// What is done to the products then.
    pub(crate) epilogue: Epilogue,
    /// As in [`Cut`].
    pub(crate) depth: usize,
}

impl<E: Element> Strip<E> {
    /// Computes it on the calling thread.
    ///
    /// # Safety
    ///
    /// Source, panel, factors and target must be valid for the sizes, and no other thread may access
    /// the target or write the others meanwhile.
    pub(crate) unsafe fn compute(self, arch: Arch) {
        arch.dispatch(Compute(self));
    }
}

/// Made only by [`Strip::compute`], whose caller guarantees what the code below relies on.
struct Compute<E>(Strip<E>);

impl<E: Element> WithSimd for Compute<E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let vectors = self.0.cols.div_ceil(S::F32_LANES);
        let whole = self.0.cols.is_multiple_of(S::F32_LANES);
        if S::REGISTER_COUNT >= 32 {
            match (vectors, whole) {
                (1, _) => self.0.parts::<S, 1, true>(simd),
                (2, _) => self.0.parts::<S, 2, true>(simd),
                (3, _) => self.0.parts::<S, 3, true>(simd),
                (_, false) => self.0.parts::<S, 4, true>(simd),
                (_, true) => self.0.parts::<S, 4, false>(simd),
            }
        } else {
            match (vectors, whole) {
                (1, _) => self.0.parts::<S, 1, true>(simd),
                (_, false) => self.0.parts::<S, 2, true>(simd),
                (_, true) => self.0.parts::<S, 2, false>(simd),
            }
        }
    }
}

impl<E: Element> Strip<E> {
    /// `V` vectors of columns; the last one may be cut short.
    #[inline(always)]
    fn parts<S: Simd, const V: usize, const REST: bool>(self, simd: S) {
        let blocks = self.rows.div_ceil(ROWS);
        let mut from = 0;
        while from < self.k {
            let to = (from + self.depth).min(self.k);
            // What is not yet a whole sum is not multiplied.
            let factors = if to == self.k { self.factors } else { Factors::one() };
            for block in 0..blocks {
                let rows = share(self.rows, block, blocks);
                let part = Part { strip: Self { factors, ..self }, first: rows.start, from, to };
                // A function of its own for each count of rows: in one large function the sums would
                // not stay in registers.
                match rows.len() {
                    1 => simd.vectorize(Sums::<E, 1, V, 4, REST>(part)),
                    2 => simd.vectorize(Sums::<E, 2, V, 2, REST>(part)),
                    3 => simd.vectorize(Sums::<E, 3, V, 1, REST>(part)),
                    4 => simd.vectorize(Sums::<E, 4, V, 1, REST>(part)),
                    5 => simd.vectorize(Sums::<E, 5, V, 1, REST>(part)),
                    _ => simd.vectorize(Sums::<E, 6, V, 1, REST>(part)),
                }
                if to == self.k && !self.epilogue.is_none() {
                    simd.vectorize(Finish::<E, V, REST> { strip: self, rows });
                }
            }
            from = to;
        }
    }
}

/// A few rows from `first` on times the rows `from..to` of the panel.
#[derive(Clone, Copy)]
struct Part<E> {
    strip: Strip<E>,
    first: usize,
    from: usize,
    to: usize,
}

/// Computes a part with `R` rows, and adds to what the rows of the panel before it left. Sums go on
/// side by side, `U` of them for each result. With `REST` the last of `V` vectors is not a whole
/// one. Made only by [`Strip::parts`].
struct Sums<E, const R: usize, const V: usize, const U: usize, const REST: bool>(Part<E>);

impl<E: Element, const R: usize, const V: usize, const U: usize, const REST: bool> WithSimd
    for Sums<E, R, V, U, REST>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Part { strip, first, from, to } = self.0;
        let Strip { cols, source, panel, panel_stride, target, target_stride, .. } = strip;
        let last = first_lanes(simd, cols - (V - 1) * S::F32_LANES);
        let mut rows = [source.data; R];
        let mut r = 0;
        while r < R {
            rows[r] = source.row(first + r);
            r += 1;
        }
        let mut sums = [[[simd.splat_f32s(0.0); V]; R]; U];
        let (mut run, mut inside) = divide(from, source.run);
        let mut at = from;
        while at < to {
            let count = (source.run - inside).min(to - at);
            // From the number at `at` of the run to where it lies.
            let offset = (run * source.run_stride + inside).wrapping_sub(at);
            let end = at + count;
            // SAFETY: the guarantee of the caller of `Strip::compute`: the rows of the panel and the
            // numbers of the source are those of the sizes.
            unsafe {
                while at + U <= end {
                    let mut u = 0;
                    while u < U {
                        let row = panel.wrapping_add((at + u) * panel_stride);
                        let row = Row::<S, V, REST>::load(simd, row, last);
                        row.multiply_add(&mut sums[u], rows, offset.wrapping_add(at + u));
                        u += 1;
                    }
                    at += U;
                }
                while at < end {
                    let row = panel.wrapping_add(at * panel_stride);
                    let row = Row::<S, V, REST>::load(simd, row, last);
                    row.multiply_add(&mut sums[0], rows, offset.wrapping_add(at));
                    at += 1;
                }
            }
            run += 1;
            inside = 0;
        }
        let target = target.wrapping_add(first * target_stride);
        let factors = strip.factors.first.wrapping_add(first * strip.factors.step);
        let mut r = 0;
        while r < R {
            // SAFETY: as above.
            let factor = unsafe { *factors.wrapping_add(r * strip.factors.step) };
            let mut v = 0;
            while v < V {
                let mut sum = sums[0][r][v];
                let mut u = 1;
                while u < U {
                    sum = simd.add_f32s(sum, sums[u][r][v]);
                    u += 1;
                }
                let target = target.wrapping_add(r * target_stride + v * S::F32_LANES);
                // SAFETY: as above.
                unsafe {
                    if REST && v + 1 == V {
                        if from > 0 {
                            sum = simd.add_f32s(sum, f32::load_some(simd, target, last));
                        }
                        sum = simd.mul_f32s(sum, simd.splat_f32s(factor));
                        f32::store_some(simd, target, last, sum);
                    } else {
                        let target = target.cast::<S::f32s>();
                        if from > 0 {
                            sum = simd.add_f32s(sum, target.read_unaligned());
                        }
                        sum = simd.mul_f32s(sum, simd.splat_f32s(factor));
                        target.write_unaligned(sum);
                    }
                }
                v += 1;
            }
            r += 1;
        }
    }
}

/// Applies the epilogue to a few rows, which lie in the first-level cache: in a function of its own, since
/// in that of the sums it pushes them out of the registers. Made only by [`Strip::parts`].
struct Finish<E, const V: usize, const REST: bool> {
    strip: Strip<E>,
    rows: Range<usize>,
}

impl<E: Element, const V: usize, const REST: bool> WithSimd for Finish<E, V, REST> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Strip { cols, target, target_stride, epilogue, .. } = self.strip;
        let last = first_lanes(simd, cols - (V - 1) * S::F32_LANES);
        let first = target.wrapping_add(self.rows.start * target_stride);
        // SAFETY: the guarantee of the caller of `Strip::compute`.
        unsafe {
            epilogue.apply::<S, V, REST>(simd, first, target_stride, self.rows.len(), last);
        }
    }
}

/// A row of a panel, in registers.
struct Row<S: Simd, const V: usize, const REST: bool> {
    simd: S,
    v: [S::f32s; V],
}

impl<S: Simd, const V: usize, const REST: bool> Row<S, V, REST> {
    /// # Safety
    ///
    /// The row must be valid, with `REST` the first lanes of its last vector.
    #[inline(always)]
    unsafe fn load<E: Element>(simd: S, row: *const E, last: LaneMask<S>) -> Self {
        let mut vectors = [simd.splat_f32s(0.0); V];
        let mut v = 0;
        while v < V {
            let row = row.wrapping_add(v * S::F32_LANES);
            // SAFETY: the caller's guarantee.
            vectors[v] = unsafe {
                if REST && v + 1 == V { E::load_some(simd, row, last) } else { E::load(simd, row) }
            };
            v += 1;
        }
        Self { simd, v: vectors }
    }

    /// Adds a number of each of `R` rows, the one at `at`, times this row.
    ///
    /// # Safety
    ///
    /// The numbers must be valid.
    #[inline(always)]
    unsafe fn multiply_add<E: Element, const R: usize>(
        &self,
        sums: &mut [[S::f32s; V]; R],
        rows: [*const E; R],
        at: usize,
    ) {
        let mut r = 0;
        while r < R {
            // Like a vector, without the checks of a build with debug assertions: their branches would
            // push the sums out of the registers.
            // SAFETY: the caller's guarantee.
            let number = unsafe { rows[r].wrapping_add(at).read_unaligned() }.widen();
            let number = self.simd.splat_f32s(number);
            let mut v = 0;
            while v < V {
                sums[r][v] = self.simd.mul_add_e_f32s(number, self.v[v], sums[r][v]);
                v += 1;
            }
            r += 1;
        }
    }
}
