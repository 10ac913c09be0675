//! The micro-kernel of GEMMs: some rows of one matrix times a panel, which is a few neighbouring
//! columns of another.
//!
//! Rows and panel are numbers of any kind, sums are f32. The sums of six rows and a few vectors of
//! columns stay in registers. A part of the panel that fits into the first-level cache is
//! multiplied with all rows before the next part. Nothing is packed here: the rows are read as they
//! lie, one number at a time, and the panel a vector at a time. So a GEMM on few rows costs no more
//! per row than one on many, and a kernel may cut its rows as its caches want; and a row may be the
//! window of a pixel, whose numbers lie in several places.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::ahead::Ahead;
use super::element::{Element, Left};
use super::epilogue::Epilogue;
use super::factors::Factors;
use super::gemm::share;
use super::lanes::first_lanes;
use super::sums::Terms;

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
    /// Whether the matrix unit multiplies them (`amx`).
    pub(crate) on_amx: bool,
}

impl Cut {
    /// For these vectors, and for a first-level cache of this many bytes. A part of a panel takes
    /// two thirds of them: the rest is for the source and the target.
    pub(crate) fn new<E: Element>(arch: Arch, first_level_bytes: usize, together: usize) -> Self {
        let [width, lanes] = arch.dispatch(Width);
        let depth = first_level_bytes * 2 / 3 / (width * size_of::<E>());
        Self { width, lanes, depth: depth.max(32) / together * together, together, on_amx: false }
    }

    /// The same where each row of a panel lies by itself.
    pub(crate) const fn one_by_one(self) -> Self {
        Self { together: 1, on_amx: false, ..self }
    }

    /// What panels are packed into, for the name of a kernel.
    pub(crate) const fn name(&self) -> &'static str {
        match (self.together, self.on_amx) {
            (1, _) => "panels",
            (2, false) => "panels of pairs",
            (2, true) => "panels of pairs on AMX",
            (_, false) => "panels of fours",
            (_, true) => "panels of fours on AMX",
        }
    }

    /// Where their rows are multiplied, for the name of a kernel that does not name its panels.
    pub(crate) const fn unit(&self) -> &'static str {
        if self.on_amx { " on AMX" } else { "" }
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

    /// In which run a number of a row lies, and where in it.
    #[inline(always)]
    pub(super) fn place(&self, number: usize) -> (usize, usize) {
        divide(number, self.run)
    }
}

/// Quotient and rest, at once where the quotient is zero: a division takes as long as a few vectors.
#[inline(always)]
pub(super) fn divide(number: usize, by: usize) -> (usize, usize) {
    if number < by { (0, number) } else { (number / by, number % by) }
}

/// Some rows times one panel.
#[derive(Clone, Copy)]
pub(crate) struct Strip<E: Left = f32> {
    pub(crate) rows: usize,
    /// Terms of each sum.
    pub(crate) k: usize,
    /// Columns of the panel, at most the width of a [`Cut`].
    pub(crate) cols: usize,
    pub(crate) source: Source<E>,
    pub(crate) panel: *const E::Weight,
    /// Numbers from one row of the panel to the next.
    pub(crate) panel_stride: usize,
    /// Whether each of its rows goes on up to a whole vector.
    pub(crate) is_padded: bool,
    pub(crate) target: *mut f32,
    /// Numbers from one row of the target to the next.
    pub(crate) target_stride: usize,
    pub(crate) factors: Factors,
    /// What is done to the products then.
    pub(crate) epilogue: Epilogue,
    /// As in [`Cut`].
    pub(crate) depth: usize,
}

impl<E: Left> Strip<E> {
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
struct Compute<E: Left>(Strip<E>);

impl<E: Left> WithSimd for Compute<E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let vectors = self.0.cols.div_ceil(S::F32_LANES);
        let whole = self.0.cols.is_multiple_of(S::F32_LANES);
        // A constant, so that nothing is compiled of the other branch.
        if const { S::REGISTER_COUNT >= 32 } {
            match (vectors, whole) {
                (1, _) => self.0.panel::<S, 1, true>(simd),
                (2, _) => self.0.panel::<S, 2, true>(simd),
                (3, _) => self.0.panel::<S, 3, true>(simd),
                (_, false) => self.0.panel::<S, 4, true>(simd),
                (_, true) => self.0.panel::<S, 4, false>(simd),
            }
        } else {
            match (vectors, whole) {
                (1, false) => self.0.panel::<S, 1, true>(simd),
                // A part of a vector of narrow numbers is loaded one by one.
                (1, true) => self.0.panel::<S, 1, false>(simd),
                (_, false) => self.0.panel::<S, 2, true>(simd),
                (_, true) => self.0.panel::<S, 2, false>(simd),
            }
        }
    }
}

impl<E: Left> Strip<E> {
    /// Parts of the panel that are multiplied one after the other.
    pub(super) fn parts(&self) -> usize {
        self.k.div_ceil(self.depth)
    }

    /// The rows of one of them, whole groups of those that lie `together`. All parts are as long: one of
    /// a few rows takes almost as long to begin and to end as others.
    pub(super) fn part(&self, index: usize, together: usize) -> Range<usize> {
        let groups = share(self.k.div_ceil(together), index, self.parts());
        groups.start * together..(groups.end * together).min(self.k)
    }

    /// `V` vectors of columns; the last one may be cut short.
    #[inline(always)]
    fn panel<S: Simd, const V: usize, const REST: bool>(self, simd: S) {
        if self.is_widened() {
            return self.compute_widened::<S, V, REST>(simd);
        }
        let blocks = self.rows.div_ceil(ROWS);
        for part in 0..self.parts() {
            let part = self.part(part, 1);
            let bytes = self.panel_stride * size_of::<E::Weight>();
            let ahead = Ahead::new(&part, blocks.max(1), bytes);
            let Range { start: from, end: to } = part;
            // What is not yet a whole sum is not multiplied.
            let factors = if to == self.k { self.factors } else { Factors::one() };
            for block in 0..blocks {
                let rows = share(self.rows, block, blocks);
                let strip = Self { factors, ..self };
                let ahead = ahead.of_block(block);
                let part = Part { strip, first: rows.start, from, to, ahead };
                part.multiply::<S, V, REST>(simd, rows.len());
                if to == self.k && !self.epilogue.is_none() {
                    simd.vectorize(Finish::<E, V, REST> { strip: self, rows });
                }
            }
        }
    }
}

/// A few rows from `first` on times the rows `from..to` of the panel.
#[derive(Clone, Copy)]
pub(super) struct Part<E: Left> {
    pub(super) strip: Strip<E>,
    pub(super) first: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) ahead: Ahead,
}

impl<E: Left> Part<E> {
    /// Computes it with this many rows. There is a function of its own for each count: in one large
    /// function the sums would not stay in registers. This one is not inlined into its callers, one for
    /// each format that numbers are widened from, so that those functions are compiled once.
    #[inline(never)]
    pub(super) fn multiply<S: Simd, const V: usize, const REST: bool>(self, simd: S, rows: usize) {
        match rows {
            1 => simd.vectorize(Sums::<E, 1, V, 4, REST>(self)),
            2 => simd.vectorize(Sums::<E, 2, V, 2, REST>(self)),
            3 => simd.vectorize(Sums::<E, 3, V, 1, REST>(self)),
            // More rows of narrower numbers are widened.
            _ if const { size_of::<E>() < size_of::<f32>() } => unreachable!(),
            4 => simd.vectorize(Sums::<E, 4, V, 1, REST>(self)),
            5 => simd.vectorize(Sums::<E, 5, V, 1, REST>(self)),
            _ => simd.vectorize(Sums::<E, 6, V, 1, REST>(self)),
        }
    }
}

/// Computes a part with `R` rows, and adds to what the rows of the panel before it left. Sums go on
/// side by side, `U` of them for each result. With `REST` the last of `V` vectors is not a whole
/// one. Made only by [`Strip::panel`].
struct Sums<E: Left, const R: usize, const V: usize, const U: usize, const REST: bool>(Part<E>);

impl<E: Left, const R: usize, const V: usize, const U: usize, const REST: bool> WithSimd
    for Sums<E, R, V, U, REST>
{
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Part { strip, first, from, to, ahead } = self.0;
        let Strip { cols, source, panel, panel_stride, target, target_stride, .. } = strip;
        let last = first_lanes(simd, cols - (V - 1) * S::F32_LANES);
        let mut rows = [source.data; R];
        let mut r = 0;
        while r < R {
            rows[r] = source.row(first + r);
            r += 1;
        }
        // A whole vector is read faster than a part.
        let last_of_panel = if strip.is_padded { first_lanes(simd, S::F32_LANES) } else { last };
        let terms = Terms { source, rows, panel, panel_stride, from, to, last: last_of_panel };
        // SAFETY: the guarantee of the caller of `Strip::compute`: the rows of the panel and the numbers
        // of the source are those of the sizes.
        let sums: [[[S::f32s; V]; R]; U] = unsafe {
            if Terms::<S, E, R>::takes_turns(REST) {
                terms.in_turns::<V, U, REST>(simd, ahead)
            } else {
                terms.one_by_one::<V, U, REST>(simd, ahead)
            }
        };
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

/// Applies the epilogue to a few rows, which lie in the first-level cache: in a function of its
/// own, since in that of the sums it pushes them out of the registers. Made only by
/// [`Strip::panel`].
struct Finish<E: Left, const V: usize, const REST: bool> {
    strip: Strip<E>,
    rows: Range<usize>,
}

impl<E: Left, const V: usize, const REST: bool> WithSimd for Finish<E, V, REST> {
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

#[cfg(test)]
mod tests;
