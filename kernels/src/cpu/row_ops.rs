//! Softmax and normalisation of one row.
//!
//! Each is a few passes over a row that stays in the first-level cache: whole vectors, then the
//! numbers that are left, one by one.

use fusion_cost_model::kernel::NORM_EPSILON;
use pulp::{Arch, Scalar, Simd, WithSimd};

use super::approximation as approx;
use super::kernel::Located;
use super::nontemporal;
use super::tensors::Tensors;

/// A row op with its operands.
#[derive(Debug, Clone)]
pub(crate) enum RowOp {
    Softmax,
    LayerNorm { weight: Located, shift: Located },
    RmsNorm { weight: Located },
}

const EPSILON: f32 = NORM_EPSILON as f32;

impl RowOp {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::LayerNorm { .. } => "layer_norm",
            Self::RmsNorm { .. } => "rms_norm",
        }
    }

    pub(crate) fn locate(&mut self, tensors: &Tensors) {
        match self {
            Self::Softmax => {}
            Self::LayerNorm { weight, shift } => {
                weight.locate(tensors);
                shift.locate(tensors);
            }
            Self::RmsNorm { weight } => weight.locate(tensors),
        }
    }

    /// Reads rows of `len` numbers that lie one after the other and writes the results in the same
    /// way; `source` and the target may be the same.
    ///
    /// # Safety
    ///
    /// `source` must be valid for reads and the target for writes of the rows, the operands for
    /// reads of `len` numbers, and no other thread may write any of them meanwhile. What holds for
    /// a [`Target`] with room must hold.
    pub(crate) unsafe fn apply(
        &self,
        arch: Arch,
        source: *const f32,
        target: Target,
        rows: usize,
        len: usize,
    ) {
        arch.dispatch(Apply { op: self, source, target, rows, len });
    }
}

/// Where rows go.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    /// The first row.
    pub(crate) data: *mut f32,
    /// Where rows wait until the last pass over them, as many as go through the ops together. The
    /// target is then written once, around the caches, and every row of it begins at a cache line
    /// and has a whole number of lines.
    pub(crate) room: Option<*mut f32>,
}

/// Applies a row op. Made only by [`RowOp::apply`], whose caller guarantees what the code below
/// relies on.
struct Apply<'a> {
    op: &'a RowOp,
    source: *const f32,
    target: Target,
    rows: usize,
    len: usize,
}

impl WithSimd for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { op, source, target, rows, len } = self;
        for row in 0..rows {
            let first = row * len;
            let source = source.wrapping_add(first);
            let room = target.room.map(|room| room.wrapping_add(first));
            let target = Target { data: target.data.wrapping_add(first), room };
            // SAFETY: the guarantee of the caller of `RowOp::apply`.
            unsafe {
                match op {
                    RowOp::Softmax => softmax(simd, source, target, len),
                    RowOp::LayerNorm { weight, shift } => {
                        layer_norm(simd, source, target, len, weight.at(0), shift.at(0));
                    }
                    RowOp::RmsNorm { weight } => rms_norm(simd, source, target, len, weight.at(0)),
                }
            }
        }
    }
}

/// # Safety
///
/// A vector must lie at `data + i`.
#[inline(always)]
unsafe fn load<S: Simd>(data: *const f32, i: usize) -> S::f32s {
    // SAFETY: the caller's guarantee; unaligned is allowed.
    unsafe { data.add(i).cast::<S::f32s>().read_unaligned() }
}

/// # Safety
///
/// A vector must fit at `data + i`.
#[inline(always)]
unsafe fn store<S: Simd>(data: *mut f32, i: usize, v: S::f32s) {
    // SAFETY: the caller's guarantee; unaligned is allowed.
    unsafe { data.add(i).cast::<S::f32s>().write_unaligned(v) }
}

/// Writes a vector of a result: around the caches where there is room for what comes before it.
///
/// # Safety
///
/// As for [`RowOp::apply`]; the vector must lie within the row.
#[inline(always)]
unsafe fn finish<S: Simd>(target: Target, i: usize, v: S::f32s) {
    // SAFETY: the caller's guarantee; a row of whole lines has aligned vectors.
    unsafe {
        if target.room.is_some() {
            nontemporal::store::<S>(target.data.add(i), v);
        } else {
            store::<S>(target.data, i, v);
        }
    }
}

/// Where the whole vectors of a row end.
#[inline(always)]
fn whole<S: Simd>(len: usize) -> usize {
    len / S::F32_LANES * S::F32_LANES
}

/// The sum over a row of an expression of each number, in four independent sums so that additions
/// need not wait for each other.
///
/// A macro, because a closure cannot be made to inline, and would be compiled without the vector
/// instructions. Expands to unsafe code: `source` must be valid for reads of `len` numbers.
macro_rules! sum {
    ($simd:ident, $source:ident, $len:ident, |$x:ident| $vector:expr, |$y:ident| $number:expr $(,)?) => {{
        let lanes = S::F32_LANES;
        let whole = whole::<S>($len);
        let mut sums = [$simd.splat_f32s(0.0); 4];
        let mut i = 0;
        while i + 4 * lanes <= whole {
            let mut part = 0;
            while part < 4 {
                let $x = load::<S>($source, i + part * lanes);
                sums[part] = $simd.add_f32s(sums[part], $vector);
                part += 1;
            }
            i += 4 * lanes;
        }
        while i < whole {
            let $x = load::<S>($source, i);
            sums[0] = $simd.add_f32s(sums[0], $vector);
            i += lanes;
        }
        let pairs = [$simd.add_f32s(sums[0], sums[1]), $simd.add_f32s(sums[2], sums[3])];
        let mut total = $simd.reduce_sum_f32s($simd.add_f32s(pairs[0], pairs[1]));
        while i < $len {
            let $y = *$source.add(i);
            total += $number;
            i += 1;
        }
        total
    }};
}

/// # Safety
///
/// As for [`RowOp::apply`].
#[inline(always)]
unsafe fn softmax<S: Simd>(simd: S, source: *const f32, target: Target, len: usize) {
    let lanes = S::F32_LANES;
    let whole = whole::<S>(len);
    let powers = target.room.unwrap_or(target.data);
    // SAFETY: every access below is within the row.
    unsafe {
        let mut largest = simd.splat_f32s(f32::NEG_INFINITY);
        let mut i = 0;
        while i < whole {
            largest = simd.max_f32s(largest, load::<S>(source, i));
            i += lanes;
        }
        let mut largest = simd.reduce_max_f32s(largest);
        while i < len {
            largest = largest.max(*source.add(i));
            i += 1;
        }

        let shift = simd.splat_f32s(largest);
        let mut sums = simd.splat_f32s(0.0);
        i = 0;
        while i < whole {
            let e = approx::exp(simd, simd.sub_f32s(load::<S>(source, i), shift));
            store::<S>(powers, i, e);
            sums = simd.add_f32s(sums, e);
            i += lanes;
        }
        let mut total = simd.reduce_sum_f32s(sums);
        while i < len {
            let e = approx::exp(Scalar::new(), *source.add(i) - largest);
            *powers.add(i) = e;
            total += e;
            i += 1;
        }

        let share = 1.0 / total;
        i = 0;
        while i < whole {
            let e = load::<S>(powers.cast_const(), i);
            finish::<S>(target, i, simd.mul_f32s(e, simd.splat_f32s(share)));
            i += lanes;
        }
        while i < len {
            *target.data.add(i) = *powers.add(i) * share;
            i += 1;
        }
    }
}

/// # Safety
///
/// As for [`RowOp::apply`].
#[inline(always)]
unsafe fn layer_norm<S: Simd>(
    simd: S,
    source: *const f32,
    target: Target,
    len: usize,
    weight: *const f32,
    shift: *const f32,
) {
    let lanes = S::F32_LANES;
    let whole = whole::<S>(len);
    // SAFETY: every access below is within the row.
    unsafe {
        let mean = sum!(simd, source, len, |x| x, |x| x) / len as f32;
        let mean_lanes = simd.splat_f32s(mean);
        let squares = sum!(
            simd,
            source,
            len,
            |x| {
                let centred = simd.sub_f32s(x, mean_lanes);
                simd.mul_f32s(centred, centred)
            },
            |x| (x - mean) * (x - mean),
        );
        let scale = 1.0 / (squares / len as f32 + EPSILON).sqrt();
        let scale_lanes = simd.splat_f32s(scale);
        let mut i = 0;
        while i < whole {
            let centred = simd.sub_f32s(load::<S>(source, i), mean_lanes);
            let scaled = simd.mul_f32s(centred, scale_lanes);
            let y = simd.mul_add_e_f32s(scaled, load::<S>(weight, i), load::<S>(shift, i));
            finish::<S>(target, i, y);
            i += lanes;
        }
        while i < len {
            *target.data.add(i) = (*source.add(i) - mean) * scale * *weight.add(i) + *shift.add(i);
            i += 1;
        }
    }
}

/// # Safety
///
/// As for [`RowOp::apply`].
#[inline(always)]
unsafe fn rms_norm<S: Simd>(
    simd: S,
    source: *const f32,
    target: Target,
    len: usize,
    weight: *const f32,
) {
    let lanes = S::F32_LANES;
    let whole = whole::<S>(len);
    // SAFETY: every access below is within the row.
    unsafe {
        let squares = sum!(simd, source, len, |x| simd.mul_f32s(x, x), |x| x * x);
        let scale = 1.0 / (squares / len as f32 + EPSILON).sqrt();
        let scale_lanes = simd.splat_f32s(scale);
        let mut i = 0;
        while i < whole {
            let scaled = simd.mul_f32s(load::<S>(source, i), scale_lanes);
            finish::<S>(target, i, simd.mul_f32s(scaled, load::<S>(weight, i)));
            i += lanes;
        }
        while i < len {
            *target.data.add(i) = *source.add(i) * scale * *weight.add(i);
            i += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn softmax_of(row: &[f32]) -> Vec<f32> {
        let mut row = row.to_vec();
        let data = row.as_mut_ptr();
        let target = Target { data, room: None };
        // SAFETY: source and target are the row itself, as is allowed.
        unsafe { RowOp::Softmax.apply(Arch::new(), data.cast_const(), target, 1, row.len()) };
        row
    }

    /// What PyTorch gives for rows with infinities and NaN, at lengths with and without a rest.
    #[test]
    fn softmax_at_the_edges() {
        for len in [1, 3, 16, 35] {
            let mut row = vec![0.0; len];
            row[0] = f32::NEG_INFINITY;
            let expected = if len == 1 { f32::NAN } else { 0.0 };
            let first = softmax_of(&row)[0];
            assert!(first == expected || first.is_nan() && expected.is_nan(), "{len}: {first}");
            for bad in [f32::NAN, f32::INFINITY] {
                for at in [0, len - 1] {
                    let mut row = vec![0.5; len];
                    row[at] = bad;
                    let result = softmax_of(&row);
                    assert!(result[at].is_nan(), "{bad} at {at} of {len}: {result:?}");
                }
            }
            // Large scores must not overflow.
            let result = softmax_of(&vec![1e30; len]);
            assert!((result[0] - 1.0 / len as f32).abs() < 1e-6);
        }
    }
}
