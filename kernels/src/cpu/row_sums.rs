//! Pointwise ops on rows, with the sums of what they leave: a norm that follows need not read the
//! rows again to add them up.

use pulp::{Simd, WithSimd};

use super::element::Element;
use super::lanes::{Lanes, first_lanes};
use super::row_piece::Piece;
use super::tail::{Place, Stretch, Tail, transform};

/// Rows whose sums are kept at a time. More than these are short ones, which cost little to read
/// again.
const MOST_ROWS: usize = 16;

/// Vectors that sums in f32 take. They round after each addition, and the larger they are, the more
/// of what is added gets lost; so those of the parts of a longer row are added in f64.
pub(crate) const PART: usize = 128;

/// Whether a row has no more whole vectors than a part.
#[inline(always)]
pub(crate) fn is_one_part<S: Simd>(_simd: S, len: usize) -> bool {
    len < (PART + 1) * S::F32_LANES
}

/// The sums of a few rows.
pub(crate) struct RowSums {
    rows: [Sums; MOST_ROWS],
    count: usize,
}

/// What the numbers of a row add up to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sums {
    pub(crate) numbers: f32,
    pub(crate) squares: f32,
}

impl RowSums {
    /// Of no row.
    pub(crate) const NONE: Self =
        Self { rows: [Sums { numbers: 0.0, squares: 0.0 }; MOST_ROWS], count: 0 };

    /// The sums of a row, if they are known.
    #[inline(always)]
    pub(crate) fn of(&self, row: usize) -> Option<Sums> {
        self.rows[..self.count].get(row).copied()
    }

    /// Reads rows that lie one after the other, applies every op of a tail, and writes them to `target`
    /// in the same way. For more rows than sums are kept of, it does nothing and says so.
    ///
    /// # Safety
    ///
    /// As for [`Tail::apply`].
    pub(crate) unsafe fn go_through<I: Element, E: Element>(
        &mut self,
        tail: &Tail<E>,
        piece: Piece<E>,
        source: *const I,
        target: *mut f32,
    ) -> bool {
        let Piece { arch, rows, .. } = piece;
        let first = piece.first();
        self.count = 0;
        let Some(sums) = self.rows.get_mut(..rows) else { return false };
        arch.dispatch(Through { tail, source, target, first, sums });
        self.count = rows;
        true
    }

    /// Knows no sums any more.
    pub(crate) fn forget(&mut self) {
        self.count = 0;
    }
}

/// Takes rows through a tail, as many as there is room for sums. Made only by
/// [`RowSums::go_through`],
/// whose caller guarantees what the code below relies on.
struct Through<'a, I, E> {
    tail: &'a Tail<E>,
    source: *const I,
    target: *mut f32,
    first: Stretch,
    sums: &'a mut [Sums],
}

impl<I: Element, E: Element> WithSimd for Through<'_, I, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // SAFETY: the guarantee of the caller of `RowSums::go_through`.
        unsafe {
            if is_one_part(simd, self.first.len) {
                self.rows::<S, false>(simd);
            } else {
                self.rows::<S, true>(simd);
            }
        }
    }
}

impl<I: Element, E: Element> Through<'_, I, E> {
    /// `LONG` where a row has several parts.
    ///
    /// # Safety
    ///
    /// As for [`Tail::apply`].
    #[inline(always)]
    unsafe fn rows<S: Simd, const LONG: bool>(self, simd: S) {
        /// Vectors side by side, with a sum of its own for each: additions need not wait for each
        /// other.
        const TILE: usize = 4;
        let Self { tail, source, target, first, sums } = self;
        let Stretch { col, element, len } = first;
        let lanes = S::F32_LANES;
        let whole = len / lanes * lanes;
        let rest = first_lanes(simd, len - whole);
        let place = |row: usize, i: usize| Place {
            col: col + i,
            col_step: lanes,
            element: element + row * len + i,
            element_step: lanes,
            lanes: rest,
        };
        for (row, sums) in sums.iter_mut().enumerate() {
            let source = source.wrapping_add(row * len);
            let target = target.wrapping_add(row * len);
            let mut numbers = simd.splat_f32s(0.0);
            let mut squares = numbers;
            // Of the parts of a long row.
            let (mut all_numbers, mut all_squares) = (0.0, 0.0);
            let mut i = 0;
            // SAFETY: every tile lies within the row, which the caller guarantees to be valid.
            unsafe {
                loop {
                    let end = if LONG { whole.min(i + PART * lanes) } else { whole };
                    while i + TILE * lanes <= end {
                        let tile = Lanes::<S, TILE>::load(simd, source.add(i));
                        let tile = transform::<S, E, TILE, false>(&tail.ops, tile, place(row, i));
                        tile.store(target.add(i));
                        let [a, b, c, d] = tile.v;
                        let of_tile = simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d));
                        numbers = simd.add_f32s(numbers, of_tile);
                        let of_tile = simd.mul_add_e_f32s(b, b, simd.mul_f32s(a, a));
                        let of_tile = simd.mul_add_e_f32s(c, c, of_tile);
                        squares = simd.add_f32s(squares, simd.mul_add_e_f32s(d, d, of_tile));
                        i += TILE * lanes;
                    }
                    if !LONG || i + TILE * lanes > whole {
                        break;
                    }
                    all_numbers += f64::from(simd.reduce_sum_f32s(numbers));
                    all_squares += f64::from(simd.reduce_sum_f32s(squares));
                    numbers = simd.splat_f32s(0.0);
                    squares = numbers;
                }
                while i < whole {
                    let tile = Lanes::<S, 1>::load(simd, source.add(i));
                    let tile = transform::<S, E, 1, false>(&tail.ops, tile, place(row, i));
                    tile.store(target.add(i));
                    let [x] = tile.v;
                    numbers = simd.add_f32s(numbers, x);
                    squares = simd.mul_add_e_f32s(x, x, squares);
                    i += lanes;
                }
                if whole < len {
                    let source = source.add(whole);
                    let tile = Lanes::<S, 1>::load_some(simd, source, lanes, rest);
                    let tile = transform::<S, E, 1, true>(&tail.ops, tile, place(row, whole));
                    tile.store_some(target.add(whole), lanes, rest);
                    // The other lanes were zero, and the ops may have made something of them.
                    let zero = simd.splat_f32s(0.0);
                    let x = simd.select_f32s(rest.memory.mask(), tile.v[0], zero);
                    numbers = simd.add_f32s(numbers, x);
                    squares = simd.mul_add_e_f32s(x, x, squares);
                }
            }
            // Not through `map`: a closure that is not inlined has no vectors of this width.
            let numbers = simd.reduce_sum_f32s(numbers);
            let squares = simd.reduce_sum_f32s(squares);
            *sums = if LONG {
                all_numbers += f64::from(numbers);
                all_squares += f64::from(squares);
                Sums { numbers: all_numbers as f32, squares: all_squares as f32 }
            } else {
                Sums { numbers, squares }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use fusion_cost_model::Pointwise;
    use pulp::Arch;

    use super::*;
    use crate::cpu::tail::TailOp;

    /// Rows of `len` numbers through an op without operands: what is left of them, and their sums.
    fn through(op: Pointwise, arch: Arch, given: &[f32], len: usize) -> (Vec<f32>, RowSums, bool) {
        let tail = Tail::<f32> { ops: vec![TailOp::new(op, &[], None, len)] };
        let mut target = vec![f32::NAN; given.len()];
        let (source, place) = (given.as_ptr(), target.as_mut_ptr());
        let rows = given.len() / len;
        let piece = Piece { arch, first_row: 0, rows, cols: len, ahead: [source; 2] };
        let mut sums = RowSums::NONE;
        // SAFETY: both hold the rows, and nothing else accesses them.
        let done = unsafe { sums.go_through(&tail, piece, source, place) };
        (target, sums, done)
    }

    #[test]
    fn sums_are_those_of_what_the_ops_leave() {
        // The sigmoid of zero is not zero: lanes beyond the end of a row must not be counted.
        for (op, arch) in [
            (Pointwise::Sigmoid, Arch::new()),
            (Pointwise::Sigmoid, Arch::Scalar),
            (Pointwise::Relu, Arch::new()),
        ] {
            for len in (1..=70).chain([127, 128, 1001]) {
                let given: Vec<f32> = (0..3 * len).map(|i| (i * 37 % 101) as f32 - 40.0).collect();
                let (left, sums, done) = through(op, arch, &given, len);
                assert!(done);
                for (row, numbers) in left.chunks(len).enumerate() {
                    let Some(found) = sums.of(row) else { panic!("row {row} of {len}") };
                    let exact = |f: &dyn Fn(f64) -> f64| -> f64 {
                        numbers.iter().map(|&x| f(f64::from(x))).sum()
                    };
                    for (found, exact) in
                        [(found.numbers, exact(&|x| x)), (found.squares, exact(&|x| x * x))]
                    {
                        let error = (f64::from(found) - exact).abs();
                        assert!(error <= 1e-6 * exact.abs(), "{op:?} {len}: {found} {exact}");
                    }
                }
                assert_eq!(sums.of(3), None);
            }
        }
    }

    #[test]
    fn nan_and_infinity_are_in_the_sums_of_their_row_alone() {
        let given = [1.0, f32::NAN, 2.0, 3.0, f32::INFINITY, 1.0];
        let (_, sums, _) = through(Pointwise::Relu, Arch::new(), &given, 2);
        let found = [0, 1, 2].map(|row| sums.of(row).map(|one| one.numbers));
        assert!(found[0].is_some_and(f32::is_nan), "{found:?}");
        assert_eq!(found[1..], [Some(5.0), Some(f32::INFINITY)]);
    }

    #[test]
    fn more_rows_than_there_is_room_for_are_left_alone() {
        let (left, sums, done) = through(Pointwise::Relu, Arch::new(), &[1.0; MOST_ROWS + 1], 1);
        assert!(!done && left.iter().all(|x| x.is_nan()) && sums.of(0).is_none());
        let (left, _, done) = through(Pointwise::Relu, Arch::new(), &[1.0; MOST_ROWS], 1);
        assert!(done && left.iter().all(|&x| x.to_bits() == 1.0_f32.to_bits()));
    }
}
