//! Small dense matrices that are symmetric and positive definite.
//!
//! Matrices are slices of `n * n` values, row by row; only the lower triangle is read. A caller
//! owns them, so that a query can keep its own on the stack.

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

/// Replaces a matrix by its Cholesky factor. `false` when the matrix is not positive definite, and
/// what it holds then is of no use.
pub(super) fn factor(matrix: &mut [f64], n: usize) -> bool {
    for row in 0..n {
        let (above, own) = matrix.split_at_mut(row * n);
        for col in 0..row {
            let other = &above[col * n..][..=col];
            own[col] = (own[col] - dot(&own[..col], &other[..col])) / other[col];
        }
        let pivot = own[row] - dot(&own[..row], &own[..row]);
        // Also false of a NaN.
        if !(pivot > 0.0 && pivot.is_finite()) {
            return false;
        }
        own[row] = pivot.sqrt();
    }
    true
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

/// The diagonal of the inverse of the matrix that was factored.
pub(super) fn inverse_diagonal(factor: &[f64], n: usize) -> Vec<f64> {
    let mut column = vec![0.0; n];
    let mut of_column = |col: usize| {
        column.fill(0.0);
        column[col] = 1.0;
        // Above `col` the column of the factor's inverse is zero.
        for row in col..n {
            let values = &factor[row * n..][..=row];
            let known = dot(&values[col..row], &column[col..row]);
            column[row] = (column[row] - known) / values[row];
        }
        dot(&column[col..], &column[col..])
    };
    (0..n).map(&mut of_column).collect()
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
