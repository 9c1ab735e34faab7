//! Reference for tests: modes and evidences by dense matrices, in cubic time.

use super::covariance::Shape;
use super::posterior::{Mode, Observation};
use super::vectors::{add, dot};

/// A square matrix, by rows.
pub(super) type Matrix = Vec<Vec<f64>>;

pub(super) fn matrix(n: usize, cell: impl Fn(usize, usize) -> f64) -> Matrix {
    let row = |i| (0..n).map(|j| cell(i, j)).collect();
    (0..n).map(row).collect()
}

/// Returns the covariance K of `n` log shares, from the definition of the shape.
pub(super) fn covariance(n: usize, variation: f64, shape: &Shape) -> Matrix {
    let place = |i: usize| (i as f64 + 0.5) / n as f64;
    let line = |i: usize| 2.0 * place(i) - 1.0;
    let bow = |i: usize| 1.5 * line(i).powi(2) - 0.5;
    matrix(n, |i, j| {
        let distance = 3f64.sqrt() * (place(i) - place(j)).abs() / shape.length;
        let own = if i == j { variation.powi(2) } else { 0.0 };
        own + shape.smooth.powi(2) * (1.0 + distance) * (-distance).exp()
            + shape.parabola.powi(2) * (line(i) * line(j) + bow(i) * bow(j))
    })
}

pub(super) fn product(matrix: &Matrix, x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

/// Returns the lower triangle L with L L' = `matrix`; `None` unless the matrix is positive
/// definite.
pub(super) fn cholesky(matrix: &Matrix) -> Option<Matrix> {
    let n = matrix.len();
    let mut factor = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let rest = matrix[i][j] - dot(&factor[i][..j], &factor[j][..j]);
            factor[i][j] = if j < i {
                rest / factor[j][j]
            } else {
                rest.sqrt()
            };
        }
        if factor[i][i].is_nan() || factor[i][i] <= 0.0 {
            return None;
        }
    }
    Some(factor)
}

/// Returns x with L L' x = b, for a lower triangle L.
fn solve(factor: &Matrix, b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for i in 0..x.len() {
        x[i] = (x[i] - dot(&factor[i][..i], &x[..i])) / factor[i][i];
    }
    for i in (0..x.len()).rev() {
        x[i] /= factor[i][i];
        let solved = x[i];
        add(&mut x[..i], -solved, &factor[i][..i]);
    }
    x
}

/// Returns the logarithm of the determinant of L L'.
pub(super) fn log_determinant(factor: &Matrix) -> f64 {
    (0..factor.len()).map(|i| 2.0 * factor[i][i].ln()).sum()
}

/// Returns I + L' W L, for a lower triangle L and a symmetric W.
pub(super) fn curvature(factor: &Matrix, data: &Matrix) -> Matrix {
    let n = factor.len();
    let mut curvature = matrix(n, |i, j| f64::from(i == j));
    for i in 0..n {
        let mut row = vec![0.0; n];
        for j in 0..n {
            add(&mut row, data[i][j], &factor[j]);
        }
        for j in 0..=i {
            add(&mut curvature[j], factor[i][j], &row);
        }
    }
    curvature
}

/// Log shares f = L w with their loss.
struct Point {
    w: Vec<f64>,
    shares: Vec<f64>,
    residuals: Vec<f64>,
    loss: f64,
}

fn point(observation: &Observation, factor: &Matrix, w: Vec<f64>) -> Point {
    let logs = product(factor, &w);
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    let sum: f64 = logs.iter().map(|log| (log - most).exp()).sum();
    let shares: Vec<f64> = logs.iter().map(|log| (log - most).exp() / sum).collect();
    let cells = shares.iter().zip(observation.counts);
    let residual = |(share, count): (&f64, &f64)| observation.total * share - count;
    let residuals: Vec<f64> = cells
        .map(|cell| residual(cell) / observation.scale)
        .collect();
    let loss = 0.5 * (dot(&residuals, &residuals) + dot(&w, &w));
    Point {
        w,
        shares,
        residuals,
        loss,
    }
}

/// Returns the curvature of the data term in the log shares, as a sum over the cells.
fn data_curvature(at: &Point, weight: f64, exact: bool) -> Matrix {
    let n = at.shares.len();
    let bend = if exact { 1.0 } else { 0.0 };
    let mean = bend * weight * dot(&at.residuals, &at.shares);
    let mut sum = matrix(n, |i, j| {
        let own = if i == j { at.shares[i] } else { 0.0 };
        mean * (at.shares[i] * at.shares[j] - own)
    });
    for (k, (&share, residual)) in at.shares.iter().zip(&at.residuals).enumerate() {
        let mut slope: Vec<f64> = at.shares.iter().map(|share| -share).collect();
        slope[k] += 1.0;
        let factor = weight * share * (weight * share + bend * residual);
        for (row, by) in sum.iter_mut().zip(&slope) {
            add(row, factor * by, &slope);
        }
    }
    sum
}

/// Returns the slope of the loss in w.
fn slope(at: &Point, weight: f64, factor: &Matrix) -> Vec<f64> {
    let mean = dot(&at.residuals, &at.shares);
    let mut slope = at.w.clone();
    for (i, row) in factor.iter().enumerate() {
        add(
            &mut slope,
            weight * at.shares[i] * (at.residuals[i] - mean),
            row,
        );
    }
    slope
}

/// Finds the mode and its loss, by damped Newton steps until the slope is below 1e-12.
fn mode(observation: &Observation, covariance: &Matrix) -> Option<(Mode, f64)> {
    let factor = cholesky(covariance)?;
    let weight = observation.total / observation.scale;
    let mut at = point(observation, &factor, vec![0.0; factor.len()]);
    let (mut damping, mut exact) = (1e-2, false);
    for _ in 0..2000 {
        let slope = slope(&at, weight, &factor);
        if dot(&slope, &slope) < 1e-24 || damping > 1e9 {
            break;
        }
        let mut damped = curvature(&factor, &data_curvature(&at, weight, exact));
        (0..slope.len()).for_each(|i| damped[i][i] += damping * damped[i][i].abs());
        let Some(step) = cholesky(&damped).map(|factor| solve(&factor, &slope)) else {
            damping *= 4.0;
            continue;
        };
        let w = at.w.iter().zip(&step).map(|(w, step)| w - step).collect();
        let next = point(observation, &factor, w);
        // A fall below the rounding error of the loss does not show.
        if next.loss < at.loss || dot(&slope, &step) < 1e-12 * at.loss {
            exact |= at.loss - next.loss < 0.1;
            at = next;
            damping = (damping / 4.0).max(1e-9);
        } else {
            damping *= 4.0;
        }
    }
    let data = data_curvature(&at, weight, false);
    let determinant = log_determinant(&cholesky(&curvature(&factor, &data))?);
    let evidence = -at.loss - 0.5 * determinant;
    let shares = at.shares;
    Some((Mode { shares, evidence }, at.loss))
}

mod tests {
    use super::*;
    use crate::mechanisms::prior::covariance::Covariance;
    use crate::mechanisms::prior::posterior::Posterior;
    use crate::mechanisms::prior::tests::normal;
    use crate::mechanisms::prior::{SHAPES, VARIATIONS, average, expected_counts};
    use rand::{Rng, SeedableRng, rngs::StdRng};

    /// Returns noise-free weights of `n` categories of one of six kinds.
    fn weights(kind: usize, n: usize, rng: &mut StdRng) -> Vec<f64> {
        let (peak, rate) = (rng.random_range(0..n), rng.random_range(0.3..0.99));
        let width = rng.random_range(0.02..0.4) * n as f64;
        let weight = |i: usize| match kind {
            0 => (-0.5 * ((i as f64 - peak as f64) / width).powi(2)).exp(),
            1 => f64::powi(rate, i as i32),
            2 => f64::from(rng.random::<f64>() < 0.1),
            3 => rng.random::<f64>().powi(3),
            4 => f64::from(i == peak),
            _ => 0.0,
        };
        (0..n).map(weight).collect()
    }

    struct Case {
        counts: Vec<f64>,
        total: f64,
        scale: f64,
    }

    /// Returns noisy counts with any total, and noise from 0.1 to 1e6 times an even count. In half
    /// of the cases, the records add up to another total.
    fn case(kind: usize, n: usize, rng: &mut StdRng) -> Case {
        let weights = weights(kind, n, rng);
        let sum = weights.iter().sum::<f64>().max(1e-300);
        let total = 10f64.powf(rng.random_range(-3.0..7.0));
        let highest = if rng.random() { 1.0 } else { 6.0 };
        let noise = 10f64.powf(rng.random_range(-1.0..highest));
        let scale = 1.000_001 * noise * total / n as f64;
        let other: f64 = if rng.random() {
            0.0
        } else {
            rng.random_range(-1.0..1.0)
        };
        let records = total * 10f64.powf(other);
        let noisy = |weight| records * weight / sum + scale * normal(rng);
        Case {
            counts: weights.into_iter().map(noisy).collect(),
            total,
            scale,
        }
    }

    /// Returns the largest difference of two vectors in a cell.
    fn difference(x: &[f64], y: &[f64]) -> f64 {
        let cells = x.iter().zip(y).map(|(x, y)| (x - y).abs());
        cells.fold(0.0, f64::max)
    }

    /// Numbers of modes that differ from the dense modes.
    #[derive(Debug, Default)]
    struct Different {
        /// With a lower loss than the dense mode.
        better: usize,
        /// With a higher loss.
        worse: usize,
    }

    /// Compares the modes and evidences of one case, and the average if all modes are the same.
    fn compare(case: &Case, different: &mut Different) {
        let observation = Observation {
            counts: &case.counts,
            total: case.total,
            scale: case.scale,
        };
        let n = case.counts.len();
        let (mut modes, mut same) = (Vec::new(), true);
        for (shape, variation) in SHAPES.iter().flat_map(|s| VARIATIONS.map(|v| (s, v))) {
            let posterior = Posterior {
                observation: &observation,
                covariance: &Covariance::new(n, variation, shape),
            };
            let covariance = covariance(n, variation, shape);
            let (expected, loss) = mode(&observation, &covariance).unwrap();
            let found = posterior.mode().unwrap();
            if difference(&found.shares, &expected.shares) < 1e-6 {
                let error = (found.evidence - expected.evidence).abs();
                assert!(error < 1e-6 * (1.0 + expected.evidence.abs()), "{error}");
            } else {
                same = false;
                match posterior.search().loss() < loss {
                    true => different.better += 1,
                    false => different.worse += 1,
                }
            }
            modes.push(expected);
        }
        let expected = average(&modes, case.total).unwrap();
        let found = expected_counts(&case.counts, case.total, case.scale).unwrap();
        let error = difference(&found, &expected);
        assert!(!same || error < 1e-6 * case.total, "{error}");
    }

    /// The loss has several modes in a few cases. There the dense search and the linear search may
    /// find different modes.
    #[test]
    fn modes_evidences_and_averages_match_dense_matrices() {
        let mut rng = StdRng::seed_from_u64(11);
        let mut different = Different::default();
        for round in 0..20 {
            for kind in 0..6 {
                let n = 2f64.powf(rng.random_range(1.0..5.5)).round() as usize;
                let n = if round == 0 && kind == 5 { 128 } else { n };
                compare(&case(kind, n, &mut rng), &mut different);
            }
        }
        // Of 1920 modes.
        assert!(different.better + different.worse <= 19, "{different:?}");
        assert!(different.worse <= different.better, "{different:?}");
    }
}
