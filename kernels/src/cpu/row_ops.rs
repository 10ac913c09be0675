//! Softmax and normalisation of one row.
//!
//! Each is a few passes over a row that stays in the first-level cache: whole vectors, then one for
//! what is left.

mod columns;
#[macro_use]
mod passes;

use std::ops::Range;

use fusion_cost_model::kernel::{NORM_EPSILON, RMS_EPSILON};
use pulp::{Simd, WithSimd};

use super::approximation as approx;
use super::causal_mask::CausalMask;
use super::element::Element;
use super::kernel::Located;
use super::row_piece::Piece;
use super::row_sums::{PART, RowSums, Sums, is_one_part};
use super::row_target::{Ahead, Target};
use super::tensors::Tensors;
use columns::Columns;
use passes::{finish, load, store};

/// A row op with its operands.
#[derive(Debug, Clone)]
pub(crate) enum RowOp<E = f32> {
    /// Of all numbers of a row, or of those that a mask lets it see; the others become zero, or NaN in
    /// a row that sees one.
    Softmax {
        mask: Option<CausalMask>,
    },
    LayerNorm {
        weight: Located<E>,
        shift: Located<E>,
    },
    RmsNorm {
        weight: Located<E>,
    },
}

impl<E: Element> RowOp<E> {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Softmax { .. } => "softmax",
            Self::LayerNorm { .. } => "layer_norm",
            Self::RmsNorm { .. } => "rms_norm",
        }
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        match self {
            Self::Softmax { .. } => {}
            Self::LayerNorm { weight, shift } => {
                weight.locate(tensors);
                shift.locate(tensors);
            }
            Self::RmsNorm { weight } => weight.locate(tensors),
        }
    }

    /// Reads rows that lie one after the other and writes the results in the same way; `source` and
    /// the target may be the same. Meanwhile it fetches what is ahead of the piece. The `sums` of the
    /// rows are those of `source`, where they are known.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads and the target for writes of the rows, the operands for
    /// reads of as many numbers as a row has, and no other thread may write any of them meanwhile.
    /// What holds for a [`Target`] must hold.
    pub(crate) unsafe fn apply<I: Element, O: Element>(
        &self,
        piece: Piece<E>,
        source: *const I,
        target: Target<O>,
        sums: &RowSums,
    ) {
        let Piece { arch, first_row, rows, cols: len, ahead: [next, operand] } = piece;
        let rows = first_row..first_row + rows;
        if target.near {
            let ahead = Ahead::<E, true> { source: next, operand };
            arch.dispatch(Apply { op: self, source, target, rows, len, ahead, sums });
        } else {
            let ahead = Ahead::<E, false> { source: next, operand };
            arch.dispatch(Apply { op: self, source, target, rows, len, ahead, sums });
        }
    }
}

/// Applies a row op. Made only by [`RowOp::apply`], whose caller guarantees what the code below
/// relies on.
struct Apply<'a, I, O, E, const NEAR: bool> {
    op: &'a RowOp<E>,
    source: *const I,
    target: Target<O>,
    rows: Range<usize>,
    len: usize,
    ahead: Ahead<E, NEAR>,
    sums: &'a RowSums,
}

impl<I: Element, O: Element, E: Element, const NEAR: bool> WithSimd for Apply<'_, I, O, E, NEAR> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // SAFETY: the guarantee of the caller of `RowOp::apply`.
        unsafe {
            if is_one_part(simd, self.len) {
                self.rows::<S, false>(simd);
            } else {
                self.rows::<S, true>(simd);
            }
        }
    }
}

impl<I: Element, O: Element, E: Element, const NEAR: bool> Apply<'_, I, O, E, NEAR> {
    /// `LONG` where a sum over a row may have several parts.
    ///
    /// # Safety
    ///
    /// As for [`RowOp::apply`].
    #[inline(always)]
    unsafe fn rows<S: Simd, const LONG: bool>(self, simd: S) {
        let Self { op, source, target, rows, len, ahead, sums } = self;
        let columns = Columns::<S, LONG>::new(simd, len);
        for (row, place) in rows.enumerate() {
            let first = row * len;
            let source = source.wrapping_add(first);
            let target = Target {
                data: target.data.wrapping_add(first),
                room: target.room.map(|room| room.wrapping_add(first)),
                stream: target.stream,
                shares: target.shares.map(|shares| shares.wrapping_add(row)),
                near: target.near,
            };
            let ahead = Ahead::<E, NEAR> {
                source: ahead.source.wrapping_add(first),
                operand: ahead.operand.wrapping_add(first),
            };
            // SAFETY: the guarantee of the caller of `RowOp::apply`.
            unsafe {
                match op {
                    RowOp::Softmax { mask: None } => {
                        softmax(columns, columns, source, target, ahead);
                    }
                    RowOp::Softmax { mask: Some(mask) } => {
                        let seen = Columns::new(simd, mask.seen_by_row(place).min(len));
                        softmax(seen, columns, source, target, ahead);
                    }
                    RowOp::LayerNorm { weight, shift } => {
                        let operands = [weight.at(0).cast_const(), shift.at(0).cast_const()];
                        layer_norm(columns, source, target, operands, ahead, sums.of(row));
                    }
                    RowOp::RmsNorm { weight } => {
                        let weight = weight.at(0).cast_const();
                        rms_norm(columns, source, target, weight, ahead, sums.of(row));
                    }
                }
            }
        }
    }
}

/// The largest number of a row. NaN may be lost, which the exponentials then bring back.
///
/// # Safety
///
/// The row must be valid.
#[inline(always)]
unsafe fn largest<S: Simd, I: Element, const LONG: bool>(
    columns: Columns<S, LONG>,
    source: *const I,
) -> f32 {
    let Columns { simd, whole, .. } = columns;
    let lanes = S::F32_LANES;
    let mut largest = [simd.splat_f32s(f32::NEG_INFINITY); 4];
    // SAFETY: every access is within the row.
    unsafe {
        let mut i = 0;
        while i + 4 * lanes <= whole {
            let mut part = 0;
            while part < 4 {
                let x = load(simd, source, i + part * lanes);
                largest[part] = simd.max_f32s(largest[part], x);
                part += 1;
            }
            i += 4 * lanes;
        }
        while i < whole {
            largest[0] = simd.max_f32s(largest[0], load(simd, source, i));
            i += lanes;
        }
        if columns.has_rest() {
            let x = columns.only_rest(columns.load_rest(source), f32::NEG_INFINITY);
            largest[1] = simd.max_f32s(largest[1], x);
        }
    }
    let pairs = [simd.max_f32s(largest[0], largest[1]), simd.max_f32s(largest[2], largest[3])];
    simd.reduce_max_f32s(simd.max_f32s(pairs[0], pairs[1]))
}

/// Of the columns that are `seen`, which come first in the row; the others become zero.
///
/// # Safety
///
/// As for [`RowOp::apply`].
#[inline(always)]
unsafe fn softmax<S: Simd, I: Element, O: Element, E, const NEAR: bool, const LONG: bool>(
    seen: Columns<S, LONG>,
    columns: Columns<S, LONG>,
    source: *const I,
    target: Target<O>,
    ahead: Ahead<E, NEAR>,
) {
    let Columns { simd, whole, .. } = seen;
    let lanes = S::F32_LANES;
    let powers = target.waiting();
    // SAFETY: every access below is within the row.
    unsafe {
        let shift = simd.splat_f32s(largest(seen, source));
        // Of the parts of a long row.
        let mut total = 0.0;
        let mut sums = simd.splat_f32s(0.0);
        let mut i = 0;
        loop {
            let end = if LONG { whole.min(i + PART * lanes) } else { whole };
            while i < end {
                let e = approx::exp(simd, simd.sub_f32s(load(simd, source, i), shift));
                ahead.fetch_source(i);
                store(simd, powers, i, e);
                sums = simd.add_f32s(sums, e);
                i += lanes;
            }
            if !LONG || i == whole {
                break;
            }
            total += f64::from(simd.reduce_sum_f32s(sums));
            sums = simd.splat_f32s(0.0);
        }
        if seen.has_rest() {
            let e = approx::exp(simd, simd.sub_f32s(seen.load_rest(source), shift));
            seen.store_rest(powers, e);
            sums = simd.add_f32s(sums, seen.only_rest(e, 0.0));
        }
        powers.add(seen.len).write_bytes(0, columns.len - seen.len);
        let sum = simd.reduce_sum_f32s(sums);
        let sum = if LONG { (total + f64::from(sum)) as f32 } else { sum };
        let share = 1.0 / sum;
        if let Some(place) = target.shares {
            *place = share;
            return;
        }
        let share = simd.splat_f32s(share);
        vectors!(columns, |i, is_first| {
            let e = load(simd, powers.cast_const(), i);
            if !NEAR || is_first {
                ahead.fetch_operand(i);
            }
            finish(simd, target, i, simd.mul_f32s(e, share));
        });
        if columns.has_rest() {
            let e = columns.load_rest(powers.cast_const());
            columns.store_rest(target.data, simd.mul_f32s(e, share));
        }
    }
}

/// # Safety
///
/// As for [`RowOp::apply`]; the operands are the weights and the shifts.
#[inline(always)]
unsafe fn layer_norm<
    S: Simd,
    I: Element,
    O: Element,
    E: Element,
    const NEAR: bool,
    const LONG: bool,
>(
    columns: Columns<S, LONG>,
    source: *const I,
    target: Target<O>,
    [weight, shift]: [*const E; 2],
    ahead: Ahead<E, NEAR>,
    sums: Option<Sums>,
) {
    let Columns { simd, len, .. } = columns;
    // SAFETY: every access below is within the row.
    unsafe {
        let sum = match sums {
            Some(sums) => sums.numbers,
            None => sum!(columns, source, |x, sum| simd.add_f32s(sum, x)),
        };
        let mean = simd.splat_f32s(sum / len as f32);
        let squares = sum!(columns, source, ahead, |x, sum| {
            let centred = simd.sub_f32s(x, mean);
            simd.mul_add_e_f32s(centred, centred, sum)
        });
        let scale = simd.splat_f32s(1.0 / (squares / len as f32 + NORM_EPSILON as f32).sqrt());
        vectors!(columns, |i, is_first| {
            let scaled = simd.mul_f32s(simd.sub_f32s(load(simd, source, i), mean), scale);
            let y = simd.mul_add_e_f32s(scaled, load(simd, weight, i), load(simd, shift, i));
            if !NEAR || is_first {
                ahead.fetch_operand(i);
            }
            finish(simd, target, i, y);
        });
        if columns.has_rest() {
            let scaled = simd.mul_f32s(simd.sub_f32s(columns.load_rest(source), mean), scale);
            let [weight, shift] = [columns.load_rest(weight), columns.load_rest(shift)];
            columns.store_rest(target.data, simd.mul_add_e_f32s(scaled, weight, shift));
        }
    }
}

/// # Safety
///
/// As for [`RowOp::apply`].
#[inline(always)]
unsafe fn rms_norm<
    S: Simd,
    I: Element,
    O: Element,
    E: Element,
    const NEAR: bool,
    const LONG: bool,
>(
    columns: Columns<S, LONG>,
    source: *const I,
    target: Target<O>,
    weight: *const E,
    ahead: Ahead<E, NEAR>,
    sums: Option<Sums>,
) {
    let Columns { simd, len, .. } = columns;
    // SAFETY: every access below is within the row.
    unsafe {
        let squares = match sums {
            Some(sums) => sums.squares,
            None => sum!(columns, source, ahead, |x, sum| simd.mul_add_e_f32s(x, x, sum)),
        };
        let scale = simd.splat_f32s(1.0 / (squares / len as f32 + RMS_EPSILON as f32).sqrt());
        vectors!(columns, |i, is_first| {
            let scaled = simd.mul_f32s(load(simd, source, i), scale);
            if !NEAR || is_first {
                // The pass that adds up fetches the source, where there is one.
                if sums.is_some() {
                    ahead.fetch_source(i);
                }
                ahead.fetch_operand(i);
            }
            finish(simd, target, i, simd.mul_f32s(scaled, load(simd, weight, i)));
        });
        if columns.has_rest() {
            let scaled = simd.mul_f32s(columns.load_rest(source), scale);
            columns.store_rest(target.data, simd.mul_f32s(scaled, columns.load_rest(weight)));
        }
    }
}

#[cfg(test)]
mod tests;
