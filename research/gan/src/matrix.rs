//! Matrices of single precision, and the one product that everything here is made of.
//!
//! Sums are in a fixed order, on one thread and without fused operations: the same seed gives the same numbers on
//! every machine.

use crate::Error;

/// Rows of a block of a product, and columns: their sums stay in registers.
const BLOCK: (usize, usize) = (4, 8);

/// A matrix, a row after the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// Zeros.
    pub fn zeros(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            values: vec![0.0; rows * columns],
        }
    }

    /// A matrix of these values, a row after the other.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of values.
    pub fn new(rows: usize, columns: usize, values: Vec<f32>) -> Result<Self, Error> {
        if rows.checked_mul(columns) == Some(values.len()) {
            Ok(Self {
                rows,
                columns,
                values,
            })
        } else {
            Err(Error::Shape(format!(
                "{} values are no matrix of {rows} rows and {columns} columns",
                values.len()
            )))
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values of a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// All values, a row after the other.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// A row; empty for one that there is not.
    pub fn row(&self, row: usize) -> &[f32] {
        let start = row * self.columns;
        self.values.get(start..start + self.columns).unwrap_or(&[])
    }

    /// A row, to be changed.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [f32] {
        let start = row * self.columns;
        self.values
            .get_mut(start..start + self.columns)
            .unwrap_or(&mut [])
    }

    /// Rows by their numbers, in that order; those that there are not are passed over.
    pub fn select(&self, numbers: &[usize]) -> Self {
        let known = || numbers.iter().filter(|&&number| number < self.rows);
        Self {
            rows: known().count(),
            columns: self.columns,
            values: known().flat_map(|&n| self.row(n)).copied().collect(),
        }
    }

    /// The rows of `self`, then those of `other`, which are as long.
    pub(crate) fn above(mut self, other: &Self) -> Self {
        debug_assert_eq!(self.columns, other.columns);
        self.values.extend_from_slice(&other.values);
        self.rows += other.rows;
        self
    }

    /// Each row of `self` with that of `other` behind it; `self` itself where `other` has no columns.
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

    /// The first columns of each row.
    pub(crate) fn first_columns(&self, columns: usize) -> Self {
        let columns = columns.min(self.columns);
        let rows = (0..self.rows).flat_map(|n| &self.row(n)[..columns]);
        Self {
            rows: self.rows,
            columns,
            values: rows.copied().collect(),
        }
    }

    /// Rows as columns.
    pub fn transposed(&self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            values: transpose(&self.values, self.rows, self.columns),
        }
    }

    /// The product with a matrix of as many rows as `self` has columns, which its length tells.
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

/// The transpose of `rows` by `columns` values.
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
/// Each sum is over ascending k, whatever the block that it falls into.
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
            // Shapes hold, so each index is within its matrix.
            let products = left[i * k..(i + 1) * k]
                .iter()
                .enumerate()
                .map(|(p, x)| x * right[p * n + j]);
            sum[i * n + j] += products.fold(0.0, |total, product| total + product);
        }
    }
}

/// One block of [`add_product`], at row i and column j.
#[inline]
fn add_block(
    left: &[f32],
    right: &[f32],
    sum: &mut [f32],
    (i, j): (usize, usize),
    (k, n): (usize, usize),
) {
    let mut block = [[0.0f32; BLOCK.1]; BLOCK.0];
    // The block is whole, so there are so many rows from i and columns from j.
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

/// The sum of products of two rows, in doubles.
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
    fn products_are_sums_of_products_whatever_the_shape() {
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
    fn rows_are_put_together() {
        let matrix = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(matrix.select(&[1, 5, 0]).values(), [3.0, 4.0, 1.0, 2.0]);
        let beside = matrix.clone().beside(&matrix);
        assert_eq!(beside.row(1), [3.0, 4.0, 3.0, 4.0]);
        assert_eq!(beside.first_columns(2), matrix);
        assert_eq!(matrix.clone().above(&matrix).row(3), [3.0, 4.0]);
        assert_eq!(matrix.clone().beside(&Matrix::zeros(2, 0)), matrix);
    }
}
