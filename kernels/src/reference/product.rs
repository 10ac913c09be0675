//! Products of matrices: in f64 as in a textbook, or in f32 as fast as a library does them.

/// What products of matrices are computed in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arithmetic {
    /// For the reference.
    F64,
    /// For the witness, which takes part in no claim about accuracy and computes every row.
    F32,
}

/// The right-hand matrix of a product: numbers of an input, and how far those of neighbouring rows
/// and columns are apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Right<'a> {
    numbers: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Right<'a> {
    /// A matrix whose rows begin `row_stride` numbers apart.
    pub(super) fn by_rows(numbers: &'a [f32], [rows, cols]: [usize; 2], row_stride: usize) -> Self {
        let end = rows.saturating_sub(1) * row_stride + cols;
        Self { numbers: &numbers[..end], rows, cols, row_stride, col_stride: 1 }
    }

    /// A matrix whose columns lie one after the other.
    pub(super) fn by_columns(numbers: &'a [f32], [rows, cols]: [usize; 2]) -> Self {
        // Columns of one number are a row, and what is one number apart in a row is a column.
        let row_stride = if rows == 1 { cols } else { 1 };
        Self { numbers: &numbers[..rows * cols], rows, cols, row_stride, col_stride: rows }
    }

    /// Its rows, each of which is multiplied with one number of a row of the left-hand matrix.
    pub(super) const fn depth(&self) -> usize {
        self.rows
    }

    /// Its columns.
    pub(super) const fn cols(&self) -> usize {
        self.cols
    }
}

impl Arithmetic {
    /// The rows of `left` times `right`.
    pub(super) fn product(self, left: &[f64], right: Right<'_>) -> Vec<f64> {
        if left.is_empty() || right.rows == 0 || right.cols == 0 {
            return Vec::new();
        }
        match self {
            Self::F64 => in_f64(left, right),
            Self::F32 => in_f32(left, right),
        }
    }
}

fn in_f64(left: &[f64], right: Right<'_>) -> Vec<f64> {
    let mut output = vec![0.0; left.len() / right.rows * right.cols];
    let rows = left.chunks_exact(right.rows).zip(output.chunks_exact_mut(right.cols));
    // Only so that the loops below are compiled for the vector unit at hand: the order of the
    // additions into each element is that of the text.
    pulp::Arch::new().dispatch(|| {
        for (row, output) in rows {
            if right.col_stride == 1 {
                for (x, weights) in row.iter().zip(right.numbers.chunks(right.row_stride)) {
                    for (sum, &weight) in output.iter_mut().zip(weights) {
                        *sum += x * f64::from(weight);
                    }
                }
            } else {
                for (sum, column) in output.iter_mut().zip(right.numbers.chunks(right.col_stride)) {
                    *sum = row.iter().zip(column).map(|(x, &weight)| x * f64::from(weight)).sum();
                }
            }
        }
    });
    output
}

fn in_f32(left: &[f64], right: Right<'_>) -> Vec<f64> {
    let Right { numbers, rows: depth, cols, row_stride, col_stride } = right;
    let rows = left.len() / depth;
    let left: Vec<f32> = left.iter().map(|&x| x as f32).collect();
    let mut output = vec![0.0_f32; rows * cols];
    let stride = |numbers: usize| isize::try_from(numbers).unwrap_or(isize::MAX);
    // SAFETY: `left` has `rows * depth` numbers and `output` has `rows * cols`, both row-major, and
    // the constructors of `Right` have cut `numbers` so that its last one is that of its last row
    // and column. With a `beta` of 0 the output is only written.
    unsafe {
        matrixmultiply::sgemm(
            rows,
            depth,
            cols,
            1.0,
            left.as_ptr(),
            stride(depth),
            1,
            numbers.as_ptr(),
            stride(row_stride),
            stride(col_stride),
            0.0,
            output.as_mut_ptr(),
            stride(cols),
            1,
        );
    }
    output.into_iter().map(f64::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_arithmetics_take_rows_columns_and_parts_of_rows() {
        let numbers: Vec<f32> = (1..=12).map(|x| x as f32).collect();
        let left = [1.0, 10.0, 0.0, 1.0];
        for arithmetic in [Arithmetic::F64, Arithmetic::F32] {
            // 1 2 3   then 4 5 6
            let rows = Right::by_rows(&numbers, [2, 3], 3);
            assert_eq!(arithmetic.product(&left, rows), [41.0, 52.0, 63.0, 4.0, 5.0, 6.0]);
            // 2 3 of rows of four, then 6 7
            let part = Right::by_rows(&numbers[1..], [2, 2], 4);
            assert_eq!(arithmetic.product(&left, part), [62.0, 73.0, 6.0, 7.0]);
            // The columns 1 2, 3 4 and 5 6
            let columns = Right::by_columns(&numbers, [2, 3]);
            assert_eq!(arithmetic.product(&left, columns), [21.0, 43.0, 65.0, 2.0, 4.0, 6.0]);
            assert!(arithmetic.product(&[], columns).is_empty());
            // A row as columns of one number, and a column as rows of one.
            let row = Right::by_columns(&numbers, [1, 3]);
            assert_eq!(arithmetic.product(&[1.0, 10.0], row), [1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
            let column = Right::by_rows(&numbers, [4, 1], 1);
            assert_eq!(arithmetic.product(&left, column), [25.0]);
        }
    }
}
