//! Strips of numbers that are narrower than f32, widened ahead of the products.
//!
//! A micro-kernel that widens what it reads does so once more for each panel and each block of rows, in
//! place of multiply-adds. With more than a few rows it is faster to widen a part of the panel into the
//! first-level cache, and the numbers that a block of rows has beside it, and to multiply these as f32.

use std::mem::MaybeUninit;
use std::ops::Range;

use pulp::{Simd, WithSimd};

use super::ahead::Ahead;
use super::element::{Element, Left};
use super::factors::Factors;
use super::gemm::share;
use super::lanes::first_lanes;
use super::strip::{Part, ROWS, Source, Strip};

/// Rows that a micro-kernel widens panels for as it reads them.
pub(super) const FEW_ROWS: usize = 3;

/// Numbers of a widened part of a panel, at most.
const PANEL: usize = 8 << 10;

/// Those of a row in it, at most.
const DEPTH: usize = 512;

/// Numbers behind a row, where its last vector ends.
const BEHIND: usize = 16;

/// What is widened. Its lines begin where those of the caches do.
#[repr(C, align(64))]
struct Room {
    panel: [MaybeUninit<f32>; PANEL],
    rows: [MaybeUninit<f32>; ROWS * (DEPTH + BEHIND)],
}

impl<E: Left> Strip<E> {
    /// Whether numbers are widened ahead of the products.
    pub(super) const fn is_widened(&self) -> bool {
        size_of::<E>() < size_of::<f32>() && self.rows > FEW_ROWS
    }

    /// Computes it so, with `V` vectors of columns; the last one may be cut short.
    #[inline(always)]
    pub(super) fn compute_widened<S: Simd, const V: usize, const REST: bool>(self, simd: S) {
        let mut room = MaybeUninit::<Room>::uninit();
        let room = room.as_mut_ptr();
        // SAFETY: both are places within it. Nothing is read there that was not written.
        let (panel, numbers): (*mut f32, *mut f32) =
            unsafe { ((&raw mut (*room).panel).cast(), (&raw mut (*room).rows).cast()) };
        let width = V * S::F32_LANES;
        // Half of the cache: parts as they are stored take two thirds.
        let depth = self.depth * size_of::<E::Weight>() / size_of::<f32>() * 3 / 4;
        let depth = depth.clamp(BEHIND, DEPTH).min(PANEL / width);
        let (parts, blocks) = (self.k.div_ceil(depth), self.rows.div_ceil(ROWS));
        for part in 0..parts {
            let part = share(self.k, part, parts);
            let (from, to) = (part.start, part.end);
            self.widen_panel::<S, V>(simd, &part, panel);
            let factors = if to == self.k { self.factors } else { Factors::one() };
            // They are those of the part, in their places in the whole.
            let widened = panel.wrapping_sub(from * width).cast_const();
            let next = self.panel.wrapping_add(to * self.panel_stride).cast();
            let bytes = part.len() * self.panel_stride * size_of::<E::Weight>();
            let ahead = Ahead::of_copy(widened, next, bytes, part.len(), blocks);
            for block in 0..blocks {
                let rows = share(self.rows, block, blocks);
                let stride = part.len() + BEHIND;
                for (place, row) in rows.clone().enumerate() {
                    self.widen_row(simd, row, &part, numbers.wrapping_add(place * stride));
                }
                let source = numbers.wrapping_sub(rows.start * stride + from).cast_const();
                let strip = Strip {
                    rows: self.rows,
                    k: self.k,
                    cols: self.cols,
                    source: Source::rows(source, stride),
                    panel: widened,
                    panel_stride: width,
                    is_padded: true,
                    target: self.target,
                    target_stride: self.target_stride,
                    factors,
                    epilogue: self.epilogue,
                    depth,
                };
                let ahead = ahead.of_block(block);
                let part = Part { strip, first: rows.start, from, to, ahead };
                part.multiply::<S, V, REST>(simd, rows.len());
            }
        }
    }

    /// Widens some rows of the panel, each to `V` whole vectors.
    #[inline(always)]
    fn widen_panel<S: Simd, const V: usize>(&self, simd: S, rows: &Range<usize>, target: *mut f32) {
        let (width, stride) = (V * S::F32_LANES, self.panel_stride);
        let source = self.panel.wrapping_add(rows.start * stride);
        if self.is_padded && stride == width {
            let count = rows.len() * width;
            return simd.vectorize(Widen { source, count, target });
        }
        for row in 0..rows.len() {
            let source = source.wrapping_add(row * stride);
            let target = target.wrapping_add(row * width);
            simd.vectorize(Widen { source, count: self.cols, target });
        }
    }

    /// Widens some numbers of a row, and may write a vector behind them.
    #[inline(always)]
    fn widen_row<S: Simd>(
        &self,
        simd: S,
        row: usize,
        numbers: &Range<usize>,
        mut target: *mut f32,
    ) {
        let row = self.source.row(row);
        let (mut run, mut inside) = self.source.place(numbers.start);
        let mut left = numbers.len();
        while left > 0 {
            let count = (self.source.run - inside).min(left);
            let source = row.wrapping_add(run * self.source.run_stride + inside);
            simd.vectorize(Widen { source, count, target });
            target = target.wrapping_add(count);
            left -= count;
            run += 1;
            inside = 0;
        }
    }
}

/// Widens numbers that lie side by side; the last vector is written as a whole one. Made only by
/// [`Strip::compute_widened`], whose caller guarantees that they are there.
struct Widen<E> {
    source: *const E,
    count: usize,
    target: *mut f32,
}

impl<E: Element> WithSimd for Widen<E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { source, count, target } = self;
        let whole = count / S::F32_LANES * S::F32_LANES;
        let mut at = 0;
        // SAFETY: the guarantee of the caller of `Strip::compute`; the room has a vector behind the numbers.
        unsafe {
            while at < whole {
                f32::store(simd, target.add(at), E::load(simd, source.add(at)));
                at += S::F32_LANES;
            }
            if at < count {
                let last = first_lanes(simd, count - at);
                f32::store(simd, target.add(at), E::load_some(simd, source.add(at), last));
            }
        }
    }
}
