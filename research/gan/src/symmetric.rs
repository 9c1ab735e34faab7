//! Small symmetric matrices in double precision: square roots with Jacobi rotations, and leading eigenvectors.

use crate::matrix::Matrix;

/// Number of sweeps of rotations. Each sweep squares the off-diagonal elements, so this is more than enough.
const SWEEPS: usize = 30;

/// A symmetric matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Symmetric {
    size: usize,
    values: Vec<f64>,
}

impl Symmetric {
    pub(crate) fn zeros(size: usize) -> Self {
        Self {
            size,
            values: vec![0.0; size * size],
        }
    }

    /// Adds the outer product of a vector with itself, times a weight.
    pub(crate) fn add_square(&mut self, vector: &[f64], weight: f64) {
        for (row, x) in self.values.chunks_exact_mut(self.size.max(1)).zip(vector) {
            let x = x * weight;
            row.iter_mut()
                .zip(vector)
                .for_each(|(sum, y)| *sum += x * y);
        }
    }

    pub(crate) fn trace(&self) -> f64 {
        (0..self.size).map(|n| self.values[n * self.size + n]).sum()
    }

    /// Multiplies by a vector.
    fn times(&self, vector: &[f64]) -> Vec<f64> {
        let rows = self.values.chunks_exact(self.size.max(1));
        rows.map(|row| row.iter().zip(vector).map(|(x, y)| x * y).sum())
            .collect()
    }

    /// Returns A B A, where A is this matrix.
    pub(crate) fn around(&self, inner: &Self) -> Self {
        let n = self.size;
        let product = |left: &[f64], right: &[f64]| {
            let mut product = vec![0.0; n * n];
            for (sums, row) in product
                .chunks_exact_mut(n.max(1))
                .zip(left.chunks_exact(n.max(1)))
            {
                for (x, line) in row.iter().zip(right.chunks_exact(n.max(1))) {
                    sums.iter_mut().zip(line).for_each(|(sum, y)| *sum += x * y);
                }
            }
            product
        };
        let values = product(&product(&self.values, &inner.values), &self.values);
        Self { size: n, values }
    }

    /// Returns the square root. Eigenvalues that are negative because of rounding count as zero.
    pub(crate) fn root(&self) -> Self {
        let (values, axes) = self.eigen();
        let mut root = Self::zeros(self.size);
        for (value, axis) in values.iter().zip(axes.chunks_exact(self.size.max(1))) {
            root.add_square(axis, value.max(0.0).sqrt());
        }
        root
    }

    /// Returns the eigenvalues, and the eigenvectors one after the other (Jacobi 1846, cyclic).
    fn eigen(&self) -> (Vec<f64>, Vec<f64>) {
        let n = self.size;
        let mut a = self.values.clone();
        let mut axes = vec![0.0; n * n];
        (0..n).for_each(|i| axes[i * n + i] = 1.0);
        for _ in 0..SWEEPS {
            for p in 0..n {
                for q in p + 1..n {
                    rotate(&mut a, &mut axes, n, (p, q));
                }
            }
        }
        ((0..n).map(|i| a[i * n + i]).collect(), axes)
    }

    /// Returns the eigenvectors of the largest eigenvalues, by repeated multiplication of `start`.
    pub(crate) fn leading(&self, start: &Matrix, rounds: usize) -> Vec<Vec<f64>> {
        let mut axes: Vec<Vec<f64>> = (0..start.rows())
            .map(|row| start.row(row).iter().map(|&x| f64::from(x)).collect())
            .collect();
        for _ in 0..rounds {
            axes = axes.iter().map(|axis| self.times(axis)).collect();
            orthogonalise(&mut axes);
        }
        axes
    }
}

/// Applies the rotation that makes the element at row p and column q zero.
fn rotate(a: &mut [f64], axes: &mut [f64], n: usize, (p, q): (usize, usize)) {
    let off = a[p * n + q];
    if off.abs() < 1e-300 {
        return;
    }
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * off);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    let turn = |values: &mut [f64], i: usize, j: usize| {
        let (x, y) = (values[i], values[j]);
        values[i] = c * x - s * y;
        values[j] = s * x + c * y;
    };
    for k in 0..n {
        turn(a, k * n + p, k * n + q);
    }
    for k in 0..n {
        turn(a, p * n + k, q * n + k);
        turn(axes, p * n + k, q * n + k);
    }
}

/// Makes vectors orthonormal (Gram and Schmidt). A vector that depends on earlier ones becomes zero.
fn orthogonalise(axes: &mut [Vec<f64>]) {
    for number in 0..axes.len() {
        let (before, rest) = axes.split_at_mut(number);
        let Some(axis) = rest.first_mut() else {
            return;
        };
        for other in before.iter() {
            let along: f64 = axis.iter().zip(other).map(|(x, y)| x * y).sum();
            axis.iter_mut()
                .zip(other)
                .for_each(|(x, y)| *x -= along * y);
        }
        let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
        let scale = if length > 1e-150 { 1.0 / length } else { 0.0 };
        axis.iter_mut().for_each(|x| *x *= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::rows;

    fn some(size: usize) -> Symmetric {
        let mut matrix = Symmetric::zeros(size);
        let vectors = rows(3 * size, size, 5);
        for row in 0..3 * size {
            let vector: Vec<f64> = vectors.row(row).iter().map(|&x| f64::from(x)).collect();
            matrix.add_square(&vector, 1.0 + row as f64);
        }
        matrix
    }

    #[test]
    fn squared_root_is_the_matrix() {
        for size in [1, 2, 9, 20] {
            let matrix = some(size);
            let root = matrix.root();
            let mut identity = Symmetric::zeros(size);
            (0..size).for_each(|i| identity.values[i * size + i] = 1.0);
            let squared = root.around(&identity);
            for (found, expected) in squared.values.iter().zip(&matrix.values) {
                assert!(
                    (found - expected).abs() < 1e-8 * matrix.trace(),
                    "{found} {expected}"
                );
            }
        }
        assert_eq!(Symmetric::zeros(3).root(), Symmetric::zeros(3));
    }

    #[test]
    fn leading_axes_belong_to_the_largest_eigenvalues() {
        let matrix = some(12);
        let (mut values, _) = matrix.eigen();
        values.sort_by(|x, y| y.total_cmp(x));
        let axes = matrix.leading(&rows(4, 12, 3), 400);
        for (axis, value) in axes.iter().zip(values) {
            let turned = matrix.times(axis);
            let off: f64 = turned
                .iter()
                .zip(axis)
                .map(|(t, x)| (t - value * x).powi(2))
                .sum();
            assert!(off.sqrt() < 1e-3 * value, "{value}");
        }
    }
}
