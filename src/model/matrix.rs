//! Small dense matrices that are symmetric and positive definite.
//!
//! Matrices are slices of `n * n` values, row by row; only the lower triangle is read, and of the
//! upper one nothing is left that is of use. A caller owns them, so that a query can keep its own on
//! the stack.
//!
//! What grows with the third power of `n` is done in tiles of four rows and four columns: sixteen
//! sums that do not wait for each other, and that share what they read.

/// Rows and columns of a tile. Rows that are left over behind whole tiles take longer.
pub(super) const TILE: usize = 4;

/// Four columns, row by row.
type Columns = [[f64; TILE]];

/// Rows of four columns that are kept on the stack at a time.
const DEPTH: usize = 32;

/// The sum of the products of two slices, in four sums so that they can be vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a_fours, b_fours) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a_fours.remainder().iter().zip(b_fours.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; 4];
    for (x, y) in a_fours.zip(b_fours) {
        for lane in 0..4 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
}

/// The products of four rows with four columns.
#[inline(always)]
fn products(rows: [&[f64]; TILE], columns: &Columns) -> [[f64; TILE]; TILE] {
    let mut sums = [[0.0; TILE]; TILE];
    let [a, b, c, d] = rows;
    for ((((column, a), b), c), d) in columns.iter().zip(a).zip(b).zip(c).zip(d) {
        for (sums, value) in sums.iter_mut().zip([a, b, c, d]) {
            for lane in 0..TILE {
                sums[lane] += value * column[lane];
            }
        }
    }
    sums
}

/// Replaces a matrix by its Cholesky factor. `false` when the matrix is not positive definite, and
/// what it holds then is of no use.
pub(super) fn factor(matrix: &mut [f64], n: usize) -> bool {
    let tiled = n - n % TILE;
    let mut columns = [[0.0; TILE]; DEPTH];
    for first in (0..tiled).step_by(TILE) {
        for start in (0..first).step_by(DEPTH) {
            let depth = DEPTH.min(first - start);
            subtract_products(matrix, n, [first, tiled], start, &mut columns[..depth]);
        }
        let Some(tile) = Tile::factored(matrix, n, first) else { return false };
        for row in first + TILE..tiled {
            tile.solve(&mut matrix[row * n + first..][..TILE]);
        }
    }
    (tiled..n).all(|row| factor_row(matrix, n, row))
}

/// Takes from four columns, from their own row on, what the `start`th column and some behind it make
/// of them.
fn subtract_products(
    matrix: &mut [f64],
    n: usize,
    [first, tiled]: [usize; 2],
    start: usize,
    columns: &mut Columns,
) {
    let depth = columns.len();
    for lane in 0..TILE {
        let row = &matrix[(first + lane) * n + start..][..depth];
        for (column, value) in columns.iter_mut().zip(row) {
            column[lane] = *value;
        }
    }
    for row in (first..tiled).step_by(TILE) {
        let of_row = |index: usize| &matrix[(row + index) * n + start..][..depth];
        let sums = products([0, 1, 2, 3].map(of_row), columns);
        for (index, sums) in sums.iter().enumerate() {
            let own = &mut matrix[(row + index) * n + first..][..TILE];
            for (own, sum) in own.iter_mut().zip(sums) {
                *own -= sum;
            }
        }
    }
}

/// A tile on the diagonal of a factor.
struct Tile {
    /// Below the diagonal.
    values: [[f64; TILE]; TILE],
    /// One over the diagonal.
    inverse: [f64; TILE],
}

impl Tile {
    /// Of a factor, whose other columns are taken from it.
    fn of(factor: &[f64], n: usize, first: usize) -> Self {
        let mut values = [[0.0; TILE]; TILE];
        for (row, values) in values.iter_mut().enumerate() {
            values[..=row].copy_from_slice(&factor[(first + row) * n + first..][..=row]);
        }
        Self { values, inverse: [0, 1, 2, 3].map(|row| values[row][row].recip()) }
    }

    /// Factors it in place.
    fn factored(matrix: &mut [f64], n: usize, first: usize) -> Option<Self> {
        let mut values = [[0.0; TILE]; TILE];
        let mut inverse = [0.0; TILE];
        for row in 0..TILE {
            let own = &mut matrix[(first + row) * n + first..][..=row];
            let mut pivot = own[row];
            for col in 0..row {
                let mut value = own[col];
                for (known, other) in values[row][..col].iter().zip(&values[col]) {
                    value -= known * other;
                }
                value *= inverse[col];
                pivot -= value * value;
                values[row][col] = value;
                own[col] = value;
            }
            own[row] = root(pivot)?;
            values[row][row] = own[row];
            // What comes next waits for this: a division beside the root rather than after it.
            inverse[row] = pivot.recip() * own[row];
        }
        Some(Self { values, inverse })
    }

    /// Solves for four values of a row to the right of it.
    #[inline(always)]
    fn solve(&self, row: &mut [f64]) {
        for col in 0..TILE {
            let (known, rest) = row.split_at_mut(col);
            for (known, other) in known.iter().zip(&self.values[col]) {
                rest[0] -= known * other;
            }
            rest[0] *= self.inverse[col];
        }
    }
}

/// The root of a pivot; `None` where there is none, also of a NaN.
fn root(pivot: f64) -> Option<f64> {
    (pivot > 0.0 && pivot.is_finite()).then(|| pivot.sqrt())
}

/// One row of a factor, from those above it.
fn factor_row(matrix: &mut [f64], n: usize, row: usize) -> bool {
    let (above, own) = matrix.split_at_mut(row * n);
    for col in 0..row {
        let other = &above[col * n..][..=col];
        own[col] = (own[col] - dot(&own[..col], &other[..col])) / other[col];
    }
    let pivot = root(own[row] - dot(&own[..row], &own[..row]));
    own[row] = pivot.unwrap_or(f64::NAN);
    pivot.is_some()
}

/// Solves `L x = b` in place.
pub(super) fn forward(factor: &[f64], n: usize, b: &mut [f64]) {
    for row in 0..n {
        let values = &factor[row * n..][..=row];
        b[row] = (b[row] - dot(&values[..row], &b[..row])) / values[row];
    }
}

/// Solves `L' x = b` in place.
pub(super) fn backward(factor: &[f64], n: usize, b: &mut [f64]) {
    for row in (0..n).rev() {
        let values = &factor[row * n..][..=row];
        b[row] /= values[row];
        let solved = b[row];
        for (other, value) in b.iter_mut().zip(&values[..row]) {
            *other -= solved * value;
        }
    }
}

/// The sum of the logarithms of the diagonal of the first rows of a factor with `n` columns.
pub(super) fn ln_diagonal(rows: &[f64], n: usize) -> f64 {
    /// A logarithm takes as long as a few dozen products, and as many numbers do not leave the range.
    const TOGETHER: usize = 8;
    let together = rows.chunks(TOGETHER * (n + 1));
    together.map(|rows| rows.iter().step_by(n + 1).product::<f64>().ln()).sum()
}

/// The diagonal of the inverse of the matrix that was factored.
///
/// It is the sum of the squares of each column of the factor's inverse. Four columns are found at a
/// time.
pub(super) fn inverse_diagonal(factor: &[f64], n: usize) -> Vec<f64> {
    let tiled = n - n % TILE;
    let tiles: Vec<Tile> =
        (0..tiled).step_by(TILE).map(|first| Tile::of(factor, n, first)).collect();
    let mut columns = vec![[0.0; TILE]; n];
    let mut diagonal = vec![0.0; n];
    for (first, diagonal) in (0..).step_by(TILE).zip(diagonal.chunks_mut(TILE)) {
        let unit = |row: usize| -> [f64; TILE] {
            std::array::from_fn(|lane| f64::from(u8::from(first + lane == row)))
        };
        for row in (first..tiled).step_by(TILE) {
            // Above `first` the columns are zero.
            let of_row = |index: usize| &factor[(row + index) * n + first..][..row - first];
            let sums = products([0, 1, 2, 3].map(of_row), &columns[first..row]);
            let tile = &tiles[row / TILE];
            for index in 0..TILE {
                let mut values = unit(row + index);
                for lane in 0..TILE {
                    values[lane] -= sums[index][lane];
                    for before in 0..index {
                        values[lane] -= tile.values[index][before] * columns[row + before][lane];
                    }
                    values[lane] *= tile.inverse[index];
                }
                columns[row + index] = values;
            }
        }
        for row in tiled.max(first)..n {
            let values = &factor[row * n..][..=row];
            let mut own = unit(row);
            for (value, column) in values[first..row].iter().zip(&columns[first..row]) {
                for lane in 0..TILE {
                    own[lane] -= value * column[lane];
                }
            }
            columns[row] = own.map(|one| one / values[row]);
        }
        for column in &columns[first..] {
            for (diagonal, value) in diagonal.iter_mut().zip(column) {
                *diagonal += value * value;
            }
        }
    }
    diagonal
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A positive definite matrix from any numbers: `B B' + I`.
    fn matrix(n: usize, numbers: &[f64]) -> Vec<f64> {
        let at = |row: usize, col: usize| numbers[(row * n + col) % numbers.len()];
        let entry = |row: usize, col: usize| {
            let product: f64 = (0..n).map(|k| at(row, k) * at(col, k)).sum();
            product + f64::from(u8::from(row == col))
        };
        (0..n * n).map(|index| entry(index / n, index % n)).collect()
    }

    proptest! {
        #[test]
        fn solving_and_inverting_agree_with_multiplying(
            n in 1_usize..12,
            numbers in prop::collection::vec(-2.0..2.0_f64, 150),
        ) {
            let original = matrix(n, &numbers);
            let mut factored = original.clone();
            prop_assert!(factor(&mut factored, n));
            let times = |x: &[f64]| -> Vec<f64> {
                (0..n).map(|row| (0..n).map(|col| original[row * n + col] * x[col]).sum()).collect()
            };
            let diagonal = inverse_diagonal(&factored, n);
            for unit in 0..n {
                let mut x = vec![0.0; n];
                x[unit] = 1.0;
                forward(&factored, n, &mut x);
                backward(&factored, n, &mut x);
                prop_assert!((x[unit] - diagonal[unit]).abs() < 1e-7 * diagonal[unit].max(1.0));
                for (row, value) in times(&x).into_iter().enumerate() {
                    let expected = f64::from(u8::from(row == unit));
                    prop_assert!((value - expected).abs() < 1e-7, "{value} {expected}");
                }
            }
        }
    }

    /// The Cholesky factor, one number after the other; what is not positive definite gives a NaN.
    fn plain(matrix: &[f64], n: usize) -> Vec<f64> {
        let mut factor = vec![0.0; n * n];
        for row in 0..n {
            for col in 0..=row {
                let known: f64 = (0..col).map(|k| factor[row * n + k] * factor[col * n + k]).sum();
                let left = matrix[row * n + col] - known;
                let is_diagonal = row == col;
                factor[row * n + col] =
                    if is_diagonal { left.sqrt() } else { left / factor[col * n + col] };
            }
        }
        factor
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// With all remainders of tiles, and of the rows that are kept on the stack.
        #[test]
        fn tiles_give_the_plain_factor(
            n in 0_usize..110,
            numbers in prop::collection::vec(-1.0..1.0_f64, 997),
        ) {
            let original = matrix(n, &numbers);
            let expected = plain(&original, n);
            let mut found = original.clone();
            for row in 0..n {
                found[row * n + row + 1..][..n - row - 1].fill(f64::NAN);
            }
            prop_assert!(factor(&mut found, n));
            for row in 0..n {
                for index in row * n..=row * n + row {
                    let off = (found[index] - expected[index]).abs();
                    prop_assert!(off < 1e-12 * expected[row * n + row].max(1.0), "{n} {row} {off}");
                }
            }
            let expected: f64 = (0..n).map(|row| expected[row * n + row].ln()).sum();
            prop_assert!((ln_diagonal(&found, n) - expected).abs() < 1e-9);
            // Each column of the inverse of the factor by itself.
            let diagonal = inverse_diagonal(&found, n);
            for col in (0..n).step_by(7) {
                let mut column = vec![0.0; n];
                column[col] = 1.0;
                forward(&found, n, &mut column);
                let expected: f64 = column.iter().map(|one| one * one).sum();
                prop_assert!((diagonal[col] / expected - 1.0).abs() < 1e-9, "{n} {col}");
            }
        }

        #[test]
        fn a_row_without_a_pivot_is_refused_wherever_it_is(
            n in 1_usize..70,
            at in 0_usize..70,
            pivot in prop::sample::select(vec![f64::NAN, f64::INFINITY, 0.0, -1.0]),
            numbers in prop::collection::vec(-1.0..1.0_f64, 997),
        ) {
            let mut matrix = matrix(n, &numbers);
            let at = at % n;
            matrix[at * n + at] = pivot;
            prop_assert!(!factor(&mut matrix, n));
        }

        #[test]
        fn a_nan_below_the_diagonal_is_refused(
            n in 2_usize..70,
            row in 0_usize..70,
            col in 0_usize..70,
            numbers in prop::collection::vec(-1.0..1.0_f64, 997),
        ) {
            let mut matrix = matrix(n, &numbers);
            let row = 1 + row % (n - 1);
            matrix[row * n + col % row] = f64::NAN;
            prop_assert!(!factor(&mut matrix, n));
        }
    }

    #[test]
    fn a_thousand_rows() {
        let n = 1021;
        // One over one and how far apart two rows are: a matrix that is positive definite.
        let at = |row: usize, col: usize| 1.0 / (1.0 + row.abs_diff(col) as f64);
        let mut found: Vec<f64> = (0..n * n).map(|index| at(index / n, index % n)).collect();
        assert!(factor(&mut found, n));
        for (row, col) in [(0, 0), (5, 3), (1020, 0), (1020, 1020), (517, 33), (1019, 1016)] {
            let product = dot(&found[row * n..][..=col], &found[col * n..][..=col]);
            assert!((product - at(row, col)).abs() < 1e-12, "{row} {col} {product}");
        }
    }

    #[test]
    fn the_upper_triangle_is_not_read() {
        let mut matrix = [4.0, f64::NAN, 2.0, 2.0];
        assert!(factor(&mut matrix, 2));
        assert_eq!([matrix[0], matrix[2], matrix[3]], [2.0, 1.0, 1.0]);
    }

    #[test]
    fn what_is_not_positive_definite_is_refused() {
        assert!(!factor(&mut [1.0, 0.0, 2.0, 1.0], 2));
        assert!(!factor(&mut [0.0], 1));
        assert!(!factor(&mut [f64::NAN], 1));
        assert!(factor(&mut [], 0));
    }
}
