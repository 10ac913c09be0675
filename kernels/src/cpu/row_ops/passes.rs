//! Passes over the vectors of a row: to add up what is made of its numbers, and to write results. The
//! macros expand beside what they name.

use pulp::Simd;

use crate::cpu::element::Element;
use crate::cpu::row_target::Target;

/// # Safety
///
/// A vector must lie at `data + i`.
#[inline(always)]
pub(super) unsafe fn load<S: Simd, E: Element>(simd: S, data: *const E, i: usize) -> S::f32s {
    // SAFETY: the caller's guarantee.
    unsafe { E::load(simd, data.add(i)) }
}

/// # Safety
///
/// A vector must fit at `data + i`.
#[inline(always)]
pub(super) unsafe fn store<S: Simd>(simd: S, data: *mut f32, i: usize, v: S::f32s) {
    // SAFETY: the caller's guarantee.
    unsafe { f32::store(simd, data.add(i), v) }
}

/// Writes a vector of a result: around the caches where the target says so.
///
/// # Safety
///
/// As for [`RowOp::apply`](super::RowOp::apply); the vector must lie within the row.
#[inline(always)]
pub(super) unsafe fn finish<S: Simd, O: Element>(simd: S, target: Target<O>, i: usize, v: S::f32s) {
    // SAFETY: the caller's guarantee; a row of whole lines has aligned vectors.
    unsafe {
        if target.stream {
            O::stream(simd, target.data.add(i), v);
        } else {
            O::store(simd, target.data.add(i), v);
        }
    }
}

/// Goes through the whole vectors of a row, four to a turn, so that little is done beside them: `i`
/// is where a vector is, `is_first` whether it is the first of its line of the cache.
///
/// Into the first level a line need be asked for once. On the way from memory the processor drops some
/// of the requests: asked for once, rows of 4096 x 768 took 1.10 times as long through an RMS norm.
macro_rules! vectors {
    ($columns:ident, |$i:ident, $is_first:ident| $body:block) => {{
        let Columns { whole, .. } = $columns;
        let lanes = S::F32_LANES;
        let mut first = 0;
        while first + 4 * lanes <= whole {
            let mut part = 0;
            while part < 4 {
                let ($i, $is_first) = (first + part * lanes, part * lanes % f32::LINE == 0);
                $body
                part += 1;
            }
            first += 4 * lanes;
        }
        while first < whole {
            let ($i, $is_first) = (first, true);
            $body
            first += lanes;
        }
    }};
}

/// The sum over whole vectors of an expression of each number, in four independent sums so that
/// additions need not wait for each other, and over what is `left` of the row behind them. Meanwhile it
/// fetches what comes `ahead`, where that is given.
///
/// A macro, because a closure cannot be made to inline, and would be compiled without the vector
/// instructions. Expands to unsafe code: `source` must be valid for reads of the row.
macro_rules! part {
    ($columns:ident, $source:ident, $from:expr, $end:expr, $left:expr, $($ahead:ident,)?
     |$x:ident, $sum:ident| $next:expr) => {{
        let Columns { simd, .. } = $columns;
        let lanes = S::F32_LANES;
        let mut sums = [simd.splat_f32s(0.0); 4];
        let mut i = $from;
        while i + 4 * lanes <= $end {
            let mut part = 0;
            while part < 4 {
                let at = i + part * lanes;
                let $x = load(simd, $source, at);
                $(if !NEAR || part * lanes % f32::LINE == 0 {
                    $ahead.fetch_source(at);
                })?
                let $sum = sums[part];
                sums[part] = $next;
                part += 1;
            }
            i += 4 * lanes;
        }
        while i < $end {
            let $x = load(simd, $source, i);
            $($ahead.fetch_source(i);)?
            let $sum = sums[0];
            sums[0] = $next;
            i += lanes;
        }
        if $left {
            let $x = $columns.load_rest($source);
            let $sum = simd.splat_f32s(0.0);
            sums[1] = simd.add_f32s(sums[1], $columns.only_rest($next, 0.0));
        }
        let pairs = [simd.add_f32s(sums[0], sums[1]), simd.add_f32s(sums[2], sums[3])];
        simd.add_f32s(pairs[0], pairs[1])
    }};
}

/// The sum over a row, in parts if it is long: see `part`.
macro_rules! sum {
    ($columns:ident, $source:ident, $($rest:tt)*) => {{
        let Columns { simd, whole, .. } = $columns;
        let most = PART * S::F32_LANES;
        let has_rest = $columns.has_rest();
        if !LONG {
            simd.reduce_sum_f32s(part!($columns, $source, 0, whole, has_rest, $($rest)*))
        } else {
            let (mut total, mut from) = (0.0, 0);
            while from < whole {
                let end = whole.min(from + most);
                let is_last = end == whole && has_rest;
                let part = part!($columns, $source, from, end, is_last, $($rest)*);
                total += f64::from(simd.reduce_sum_f32s(part));
                from = end;
            }
            total as f32
        }
    }};
}
