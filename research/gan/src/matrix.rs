//! Matrices in single precision, and the matrix product that all layers use.
//!
//! Sums run in a fixed order on one thread, without fused operations: the same seed gives the same numbers on every
//! machine.

use crate::Error;

/// Number of rows and columns in a block of a product. The sums of a block stay in registers.
const BLOCK: (usize, usize) = (4, 8);

/// A matrix in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// Creates a matrix of zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            values: vec![0.0; rows * columns],
        }
    }

    /// Creates a matrix from its values in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of values does not match.
    pub fn new(rows: usize, columns: usize, values: Vec<f32>) -> Result<Self, Error> {
        if rows.checked_mul(columns) == Some(values.len()) {
            Ok(Self {
                rows,
                columns,
                values,
            })
        } else {
            Err(Error::Shape(format!(
                "{} values do not fill a matrix of {rows} rows and {columns} columns",
                values.len()
            )))
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns all values in row-major order.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Returns all values for modification.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Returns a row, or an empty slice if the number is out of range.
    pub fn row(&self, row: usize) -> &[f32] {
        let start = row * self.columns;
        self.values.get(start..start + self.columns).unwrap_or(&[])
    }

    /// Returns a row for modification.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let start = row * self.columns;
        self.values
            .get_mut(start..start + self.columns)
            .unwrap_or(&mut [])
    }

    /// Returns the rows with these numbers, in this order. Skips numbers that are out of range.
    pub fn select(&self, numbers: &[usize]) -> Self {
        let known = || numbers.iter().filter(|&&number| number < self.rows);
        Self {
            rows: known().count(),
            columns: self.columns,
            values: known().flat_map(|&n| self.row(n)).copied().collect(),
        }
    }

    /// Appends the rows of `other`, which must have as many columns.
    pub(crate) fn above(mut self, other: &Self) -> Self {
        debug_assert_eq!(self.columns, other.columns);
        self.values.extend_from_slice(&other.values);
        self.rows += other.rows;
        self
    }

    /// Appends each row of `other` to the same row of `self`. Returns `self` if `other` has no columns.
    pub(crate) fn beside(self, other: &Self) -> Self {
        if other.columns == 0 {
            return self;
        }
        let rows = (0..self.rows).flat_map(|n| [self.row(n), other.row(n)]);
        Self {
            values: rows.flatten().copied().collect(),
            columns: self.columns + other.columns,
            ..self
        }
    }

    /// Returns the first columns of each row.
    pub(crate) fn first_columns(&self, columns: usize) -> Self {
        let columns = columns.min(self.columns);
        let rows = (0..self.rows).flat_map(|n| &self.row(n)[..columns]);
        Self {
            rows: self.rows,
            columns,
            values: rows.copied().collect(),
        }
    }

    /// Returns the transposed matrix.
    pub fn transposed(&self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            values: transpose(&self.values, self.rows, self.columns),
        }
    }

    /// Multiplies by `right`, which has as many rows as `self` has columns.
    pub(crate) fn times(&self, right: &[f32], columns: usize) -> Self {
        let mut product = Self::zeros(self.rows, columns);
        add_product(
            &self.values,
            right,
            &mut product.values,
            (self.rows, self.columns, columns),
        );
        product
    }
}

/// Transposes a matrix of `rows` by `columns` values.
pub(crate) fn transpose(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut transposed = vec![0.0; values.len()];
    for (i, row) in values.chunks_exact(columns.max(1)).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            transposed[j * rows + i] = value;
        }
    }
    transposed
}

/// Adds to `sum` (m by n) the product of `left` (m by k) and `right` (k by n).
///
/// Each sum runs over ascending k, regardless of its block.
pub(crate) fn add_product(
    left: &[f32],
    right: &[f32],
    sum: &mut [f32],
    (m, k, n): (usize, usize, usize),
) {
    debug_assert_eq!(
        (left.len(), right.len(), sum.len()),
        (m * k, k * n, m * n),
        "shapes of a product"
    );
    let whole = (m - m % BLOCK.0, n - n % BLOCK.1);
    for j in (0..whole.1).step_by(BLOCK.1) {
        for i in (0..whole.0).step_by(BLOCK.0) {
            add_block(left, right, sum, (i, j), (k, n));
        }
    }
    let edges = (0..m).map(|i| (i, if i < whole.0 { whole.1 } else { 0 }));
    for (i, from) in edges {
        for j in from..n {
            // The shapes match, so each index is within its matrix.
            let products = left[i * k..(i + 1) * k]
                .iter()
                .enumerate()
                .map(|(p, x)| x * right[p * n + j]);
            sum[i * n + j] += products.fold(0.0, |total, product| total + product);
        }
    }
}

/// Adds one block of [`add_product`], at row i and column j.
#[inline]
fn add_block(
    left: &[f32],
    right: &[f32],
    sum: &mut [f32],
    (i, j): (usize, usize),
    (k, n): (usize, usize),
) {
    let mut block = [[0.0f32; BLOCK.1]; BLOCK.0];
    // The block is complete, so these rows and columns exist.
    let rows: [&[f32]; BLOCK.0] = std::array::from_fn(|r| &left[(i + r) * k..(i + r + 1) * k]);
    for (p, line) in right.chunks_exact(n).enumerate() {
        let line = &line[j..j + BLOCK.1];
        for (sums, row) in block.iter_mut().zip(rows) {
            let x = row[p];
            for (total, y) in sums.iter_mut().zip(line) {
                *total += x * y;
            }
        }
    }
    for (r, sums) in block.iter().enumerate() {
        let start = (i + r) * n + j;
        for (total, found) in sum[start..start + BLOCK.1].iter_mut().zip(sums) {
            *total += found;
        }
    }
}

/// Returns the dot product of two rows, in double precision.
pub(crate) fn dot(one: &[f32], two: &[f32]) -> f64 {
    let products = one
        .iter()
        .zip(two)
        .map(|(&x, &y)| f64::from(x) * f64::from(y));
    products.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_is_correct_for_shapes_of_all_block_edges() {
        for (m, k, n) in [(1, 1, 1), (3, 5, 7), (4, 3, 8), (9, 16, 17), (13, 2, 33)] {
            let value = |seed: usize| move |i: usize| ((i * 7 + seed) % 11) as f32 - 5.0;
            let left: Vec<f32> = (0..m * k).map(value(1)).collect();
            let right: Vec<f32> = (0..k * n).map(value(2)).collect();
            let left = Matrix::new(m, k, left).unwrap();
            let product = left.times(&right, n);
            for i in 0..m {
                for j in 0..n {
                    let expected: f32 = (0..k).map(|p| left.row(i)[p] * right[p * n + j]).sum();
                    assert_eq!(product.row(i)[j], expected, "{m} {k} {n}: {i} {j}");
                }
            }
            assert_eq!(product.transposed().transposed(), product);
        }
        assert!(matches!(
            Matrix::new(2, 2, vec![0.0; 3]),
            Err(Error::Shape(..))
        ));
    }

    #[test]
    fn rows_are_selected_and_joined() {
        let matrix = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(matrix.select(&[1, 5, 0]).values(), [3.0, 4.0, 1.0, 2.0]);
        let beside = matrix.clone().beside(&matrix);
        assert_eq!(beside.row(1), [3.0, 4.0, 3.0, 4.0]);
        assert_eq!(beside.first_columns(2), matrix);
        assert_eq!(matrix.clone().above(&matrix).row(3), [3.0, 4.0]);
        assert_eq!(matrix.clone().beside(&Matrix::zeros(2, 0)), matrix);
    }
}
