//! Curvature of the loss: K^-1 + W, where W is the curvature of the data term.

use super::covariance::{Covariance, Marginal, Whitened};
use super::vectors::{add, centered, dot};

/// Curvature W of the data term in the log shares.
///
/// W = (I - p 1') Q (I - 1 p') for shares p and a diagonal Q. W is 0 along the vector of ones,
/// because a constant in all log shares does not change the shares.
#[derive(Debug)]
pub(super) struct DataCurvature<'a> {
    pub(super) shares: &'a [f64],
    /// Diagonal of Q.
    pub(super) precisions: Vec<f64>,
}

impl DataCurvature<'_> {
    /// Returns W x.
    pub(super) fn product(&self, x: &[f64]) -> Vec<f64> {
        let turned = centered(x, self.shares);
        let cells = self.precisions.iter().zip(&turned);
        let mut product: Vec<f64> = cells.map(|(q, x)| q * x).collect();
        let sum: f64 = product.iter().sum();
        add(&mut product, -sum, self.shares);
        product
    }

    /// Returns W times `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        self.with_precisions(|q| q * factor)
    }

    /// Returns W with 0 in place of negative entries of Q.
    fn positive_part(&self) -> Self {
        self.with_precisions(|q| q.max(0.0))
    }

    fn with_precisions(&self, change: impl Fn(f64) -> f64) -> Self {
        Self {
            shares: self.shares,
            precisions: self.precisions.iter().map(|&q| change(q)).collect(),
        }
    }
}

/// The matrix K^-1 + W, factorised in linear time; Q has no negative entries.
///
/// Neither K^-1 nor Q^-1 is computed. A solution is a pair of x and K x, and entries of Q may be 0.
/// N stands for (K + Q^-1)^-1.
#[derive(Debug)]
pub(super) struct Curvature<'a> {
    covariance: &'a Covariance,
    shares: &'a [f64],
    /// N.
    marginal: Marginal,
    /// The vector of ones and K p, whitened.
    ones: Whitened,
    spread: Whitened,
    /// 1' N 1, 1 - 1' N K p and p' (K^-1 + Q)^-1 p.
    ones_square: f64,
    cross: f64,
    shares_square: f64,
    /// Determinant of I + K W divided by that of I + K Q.
    ratio: f64,
}

impl<'a> Curvature<'a> {
    /// Factorises the curvature; `None` if a pivot is not positive and finite.
    pub(super) fn new(covariance: &'a Covariance, data: &DataCurvature<'a>) -> Option<Self> {
        let marginal = Marginal::new(covariance, &data.precisions)?;
        let product = covariance.product(data.shares);
        let ones = marginal.whiten(&vec![1.0; product.len()]);
        let spread = marginal.whiten(&product);
        let ones_square = marginal.product(&ones, &ones);
        let cross = 1.0 - marginal.product(&ones, &spread);
        let shares_square = dot(data.shares, &product) - marginal.product(&spread, &spread);
        let ratio = ones_square * shares_square + cross * cross;
        (ratio > 0.0 && ratio.is_finite()).then_some(Self {
            covariance,
            shares: data.shares,
            marginal,
            ones,
            spread,
            ones_square,
            cross,
            shares_square,
            ratio,
        })
    }

    /// Solves (K^-1 + W) K x = b for x.
    fn solve(&self, b: &[f64]) -> Solution {
        let mut logs = self.covariance.product(b);
        let mut white = self.marginal.whiten(&logs);
        // Two multipliers account for the columns 1 and p of W: `sum` is 1' Q (I - 1 p') K x and
        // `mean` is p' K x.
        let by_ones = self.marginal.product(&self.ones, &white);
        let by_shares = dot(self.shares, &logs) - self.marginal.product(&self.spread, &white);
        let sum = (by_ones * self.cross - by_shares * self.ones_square) / self.ratio;
        let mean = (by_shares * self.cross + by_ones * self.shares_square) / self.ratio;
        white.add(sum, &self.spread);
        white.add(-mean, &self.ones);
        let mut data_part = self.marginal.apply(&white);
        add(&mut data_part, -sum, self.shares);

        let mut coefficients = b.to_vec();
        add(&mut coefficients, -1.0, &data_part);
        add(&mut logs, -1.0, &self.covariance.product(&data_part));
        Solution { coefficients, logs }
    }

    /// Returns the logarithm of the determinant of I + K W.
    pub(super) fn log_determinant(&self) -> f64 {
        self.marginal.log_determinant() + self.ratio.ln()
    }
}

/// A vector x, `coefficients`, together with K x, `logs`.
#[derive(Debug)]
struct Solution {
    coefficients: Vec<f64>,
    logs: Vec<f64>,
}

impl Solution {
    /// Returns (K^-1 + W) K x.
    fn product(&self, data: &DataCurvature) -> Vec<f64> {
        let mut product = data.product(&self.logs);
        add(&mut product, 1.0, &self.coefficients);
        product
    }

    fn add(&mut self, by: f64, other: &Self) {
        add(&mut self.coefficients, by, &other.coefficients);
        add(&mut self.logs, by, &other.logs);
    }
}

/// Largest number of steps of [`newton_direction`].
const STEPS: usize = 50;

/// [`newton_direction`] ends when its squared error has fallen by this factor.
const TOLERANCE: f64 = 1e-2;

/// Solves (K^-1 + W) K x = b for x approximately; Q may have negative entries.
///
/// The solver uses conjugate gradients. Its preconditioner is the curvature without the negative
/// entries. If Q has none, the preconditioner solves the system. The solver stops early if the
/// matrix is not positive definite. In every case b' K x is positive, so that K x points uphill if b
/// is the slope. Returns `None` if a pivot of the preconditioner breaks down.
pub(super) fn newton_direction(
    covariance: &Covariance,
    data: &DataCurvature,
    b: &[f64],
) -> Option<Vec<f64>> {
    let preconditioner = Curvature::new(covariance, &data.positive_part())?;
    let mut rest = b.to_vec();
    let mut direction = preconditioner.solve(&rest);
    if data.precisions.iter().all(|&q| q >= 0.0) {
        return Some(direction.coefficients);
    }
    let mut error = dot(&rest, &direction.logs);
    let target = TOLERANCE * error;
    let mut solution = vec![0.0; b.len()];
    for step in 0..STEPS {
        let product = direction.product(data);
        let curvature = dot(&direction.logs, &product);
        if curvature <= 0.0 {
            // Without any step, the preconditioned slope is the best direction known.
            return Some(if step == 0 {
                direction.coefficients
            } else {
                solution
            });
        }
        add(&mut solution, error / curvature, &direction.coefficients);
        add(&mut rest, -error / curvature, &product);
        let mut next = preconditioner.solve(&rest);
        let next_error = dot(&rest, &next.logs);
        if next_error <= target {
            break;
        }
        next.add(next_error / error, &direction);
        direction = next;
        error = next_error;
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms::prior::dense;
    use crate::mechanisms::prior::{SHAPES, VARIATIONS, covariance::Shape};
    use std::time::{Duration, Instant};

    const SHARES: [f64; 6] = [0.5, 0.0, 0.125, 0.25, 1e-9, 0.125 - 1e-9];

    fn check_all_covariances(check: impl Fn(&Covariance, &dense::Matrix)) {
        for shape in SHAPES {
            for variation in VARIATIONS {
                let matrix = dense::covariance(6, variation, &shape);
                check(&Covariance::new(6, variation, &shape), &matrix);
            }
        }
    }

    fn assert_close(x: &[f64], y: &[f64], tolerance: f64) {
        let size = y.iter().fold(0.0f64, |most, y| most.max(y.abs()));
        for (a, b) in x.iter().zip(y) {
            assert!((a - b).abs() <= tolerance * size, "{x:?} {y:?}");
        }
    }

    #[test]
    fn covariance_product_matches_dense_matrix() {
        let x = [1.0, -2.0, 3.0, 0.5, -0.25, 4.0];
        check_all_covariances(|covariance, matrix| {
            assert_close(&covariance.product(&x), &dense::product(matrix, &x), 1e-13);
        });
    }

    #[test]
    fn solution_solves_the_system_with_tiny_and_large_precisions() {
        let b = [1.0, -2.0, 3.0, 0.5, -0.25, -2.25];
        for size in [1e-6, 1.0, 1e3, 1e6] {
            let data = DataCurvature {
                shares: &SHARES,
                precisions: SHARES.iter().map(|share| size * share * share).collect(),
            };
            check_all_covariances(|covariance, matrix| {
                let solution = Curvature::new(covariance, &data).unwrap().solve(&b);
                let logs = dense::product(matrix, &solution.coefficients);
                assert_close(&solution.logs, &logs, 1e-6);
                assert_close(&solution.product(&data), &b, 1e-6);
            });
        }
    }

    #[test]
    fn log_determinant_matches_dense_matrix() {
        for size in [1e-6, 1.0, 1e3, 1e6] {
            let data = DataCurvature {
                shares: &SHARES,
                precisions: SHARES.iter().map(|share| size * share * share).collect(),
            };
            let columns: Vec<Vec<f64>> = (0..6)
                .map(|i| {
                    let mut unit = [0.0; 6];
                    unit[i] = 1.0;
                    data.product(&unit)
                })
                .collect();
            check_all_covariances(|covariance, matrix| {
                let factor = dense::cholesky(matrix).unwrap();
                let curvature = dense::cholesky(&dense::curvature(&factor, &columns)).unwrap();
                let expected = dense::log_determinant(&curvature);
                let found = Curvature::new(covariance, &data).unwrap().log_determinant();
                assert!(
                    (found - expected).abs() < 1e-7 * (1.0 + expected),
                    "{found} {expected}"
                );
            });
        }
    }

    #[test]
    fn newton_direction_points_uphill_with_negative_precisions() {
        let b = [1.0, -2.0, 3.0, 0.5, -0.25, -2.25];
        for size in [0.01, 1.0, 100.0] {
            let data = DataCurvature {
                shares: &SHARES,
                precisions: [1.0, -0.5, 0.3, -0.1, -0.1, 0.2].map(|q| q * size).to_vec(),
            };
            check_all_covariances(|covariance, _| {
                let direction = newton_direction(covariance, &data, &b).unwrap();
                assert!(dot(&direction, &covariance.product(&b)) > 0.0);
            });
        }
    }

    /// Returns the shortest time of a Newton direction and a determinant for `n` categories.
    fn least_time(n: usize, shape: &Shape) -> Duration {
        let shares = vec![1.0 / n as f64; n];
        let data = DataCurvature {
            shares: &shares,
            precisions: vec![1.0 / n as f64; n],
        };
        let covariance = Covariance::new(n, 0.4, shape);
        let b: Vec<f64> = (0..n).map(|i| (i % 7) as f64 - 3.0).collect();
        let run = || {
            let start = Instant::now();
            let direction = newton_direction(&covariance, &data, &b).unwrap();
            let determinant = Curvature::new(&covariance, &data)
                .unwrap()
                .log_determinant();
            std::hint::black_box((direction, determinant));
            start.elapsed()
        };
        (0..50).map(|_| run()).min().unwrap()
    }

    /// 20 times the categories take 20 times the time if it is linear, and 400 times if it is
    /// quadratic.
    #[test]
    fn time_is_linear_in_the_number_of_categories() {
        let [short, long] = [100, 2000].map(|n| least_time(n, &SHAPES[3]));
        assert!(long < 80 * short, "{short:?} {long:?}");
    }
}
