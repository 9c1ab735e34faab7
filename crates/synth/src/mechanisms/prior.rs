//! What a noisy 1-way says about an attribute, given what 1-ways look like (docs/MECHANISM.md, C
//! step 1).
//!
//! The shares of n categories are taken as softmax(f), f a Gaussian vector of covariance K: each
//! category's own variation, plus a smooth function of its place, plus a parabola (whose
//! exponential is a geometric or a normal distribution). How rough an attribute is, nobody has
//! said; the mode of f under each of a few covariances counts in proportion to that covariance's
//! evidence, by Laplace's approximation (Rasmussen and Williams 2006, section 3.4). A table
//! whose categories have no natural order loses nothing but the smooth covariances.
//!
//! Released counts go in, an estimate comes out: no budget is spent here.

/// Noise at or above this share of an even category's records calls for the prior. With less, the
/// counts are known well enough, and what the prior adds is its bias against empty categories.
const MIN_NOISE: f64 = 0.1;

/// Upper bound on the categories that are estimated so: time goes with the cube.
const MAX_CATEGORIES: usize = 128;

/// The log share of a category may vary by itself with one of these standard deviations.
const VARIATIONS: [f64; 4] = [0.1, 0.4, 1.5, 5.0];

/// What does not vary by itself has one of these shapes.
const SHAPES: [Shape; 4] = [
    Shape::new(0.0, 1.0, 0.0),
    Shape::new(0.0, 1.0, 3.0),
    Shape::new(2.0, 0.15, 0.0),
    Shape::new(2.0, 0.4, 3.0),
];

/// Levenberg-Marquardt takes at most so many steps, and ends where the loss falls by less than this.
const STEPS: usize = 60;
const TOLERANCE: f64 = 1e-6;

/// A covariance but for the categories' own variation.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Standard deviation of the smooth function (a Matérn process of order 3/2).
    smooth: f64,
    /// Its length, as a share of the axis.
    length: f64,
    /// Standard deviation of the coefficients of a line and a parabola.
    parabola: f64,
}

impl Shape {
    const fn new(smooth: f64, length: f64, parabola: f64) -> Self {
        Self {
            smooth,
            length,
            parabola,
        }
    }

    /// Covariance of two places, both in 0..1.
    fn covariance(&self, x: f64, y: f64) -> f64 {
        let distance = 3f64.sqrt() * (x - y).abs() / self.length;
        let line = |x: f64| 2.0 * x - 1.0;
        let bow = |x: f64| 1.5 * line(x) * line(x) - 0.5;
        self.smooth * self.smooth * (1.0 + distance) * (-distance).exp()
            + self.parabola * self.parabola * (line(x) * line(y) + bow(x) * bow(y))
    }
}

/// The counts to be expected, at least 0 and `total` together, where `counts` came with noise of
/// standard deviation `scale`. `None` where the counts are better taken as they are: with little
/// noise or too many categories.
pub(crate) fn expected_counts(counts: &[f64], total: f64, scale: f64) -> Option<Vec<f64>> {
    let n = counts.len();
    let little = scale * (n as f64) < MIN_NOISE * total;
    if little || !(2..=MAX_CATEGORIES).contains(&n) || total <= 0.0 {
        return None;
    }
    let seen = Seen {
        counts,
        total,
        scale,
    };
    let priors = SHAPES.iter().flat_map(|shape| {
        let prior = |variation| prior(n, variation, shape);
        VARIATIONS.into_iter().filter_map(prior)
    });
    let modes: Vec<Mode> = priors.filter_map(|prior| seen.mode(&prior)).collect();
    let best = modes.iter().map(|mode| mode.evidence).reduce(f64::max)?;
    let (mut mean, mut weights) = (vec![0.0; n], 0.0);
    for mode in &modes {
        let weight = (mode.evidence - best).exp();
        weights += weight;
        add(&mut mean, weight, &mode.shares);
    }
    Some(mean.iter().map(|sum| sum / weights * total).collect())
}

/// L with L L' the covariance of n log shares.
fn prior(n: usize, variation: f64, shape: &Shape) -> Option<Matrix> {
    let place = |i: usize| (i as f64 + 0.5) / n as f64;
    let mut covariance = Matrix::zero(n);
    for i in 0..n {
        for j in 0..n {
            covariance.row_mut(i)[j] = shape.covariance(place(i), place(j));
        }
        covariance.row_mut(i)[i] += variation * variation;
    }
    covariance.cholesky()
}

/// Noisy counts of one attribute.
struct Seen<'a> {
    counts: &'a [f64],
    total: f64,
    scale: f64,
}

/// Where the loss is looked at: f = L w.
struct Point {
    w: Vec<f64>,
    shares: Vec<f64>,
    /// The negative log posterior, but for a constant.
    loss: f64,
}

/// The most likely shares under one covariance.
struct Mode {
    shares: Vec<f64>,
    /// Log of the probability of the counts, but for a constant.
    evidence: f64,
}

impl Seen<'_> {
    fn point(&self, prior: &Matrix, w: Vec<f64>) -> Point {
        let logs: Vec<f64> = (0..w.len())
            .map(|i| dot(&prior.row(i)[..=i], &w[..=i]))
            .collect();
        let shares = softmax(&logs);
        let residuals: Vec<f64> = self.residuals(&shares).collect();
        let loss = 0.5 * (dot(&residuals, &residuals) + dot(&w, &w));
        Point { w, shares, loss }
    }

    /// What the shares' counts differ from those seen, in units of the noise.
    fn residuals<'a>(&'a self, shares: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let counts = shares.iter().zip(self.counts);
        counts.map(|(share, count)| (self.total * share - count) / self.scale)
    }

    /// Slope of the loss by w, and its curvature without that of the shares (Gauss and Newton).
    fn slopes(&self, prior: &Matrix, at: &Point) -> (Vec<f64>, Matrix) {
        let n = at.w.len();
        // Row i of the residuals' slopes: (total / scale) p_i (L_i - p' L).
        let mut mean = vec![0.0; n];
        for (i, &share) in at.shares.iter().enumerate() {
            add(&mut mean, share, prior.row(i));
        }
        let mut slope = at.w.clone();
        let mut curvature = Matrix::zero(n);
        let mut row = vec![0.0; n];
        for (i, residual) in self.residuals(&at.shares).enumerate() {
            let factor = self.total / self.scale * at.shares[i];
            row.copy_from_slice(prior.row(i));
            add(&mut row, -1.0, &mean);
            row.iter_mut().for_each(|x| *x *= factor);
            add(&mut slope, residual, &row);
            for (j, &x) in row.iter().enumerate() {
                add(curvature.row_mut(j), x, &row);
            }
        }
        for i in 0..n {
            curvature.row_mut(i)[i] += 1.0;
        }
        (slope, curvature)
    }

    /// The mode of the posterior under a prior, by Levenberg and Marquardt.
    fn mode(&self, prior: &Matrix) -> Option<Mode> {
        let mut at = self.point(prior, vec![0.0; self.counts.len()]);
        let mut damping = 1e-2;
        for _ in 0..STEPS {
            let (slope, curvature) = self.slopes(prior, &at);
            let Some(next) = self.step(prior, &at, &slope, &curvature, &mut damping) else {
                break;
            };
            let fall = at.loss - next.loss;
            at = next;
            if fall < TOLERANCE {
                break;
            }
        }
        let (_, curvature) = self.slopes(prior, &at);
        let evidence = -at.loss - 0.5 * curvature.cholesky()?.log_determinant();
        Some(Mode {
            shares: at.shares,
            evidence,
        })
    }

    /// One step downhill, or `None` where no length of step goes down.
    fn step(
        &self,
        prior: &Matrix,
        at: &Point,
        slope: &[f64],
        curvature: &Matrix,
        damping: &mut f64,
    ) -> Option<Point> {
        while *damping < 1e9 {
            let mut damped = curvature.clone();
            for i in 0..slope.len() {
                damped.row_mut(i)[i] *= 1.0 + *damping;
            }
            let mut step = slope.to_vec();
            damped.cholesky()?.solve(&mut step);
            let w = at.w.iter().zip(&step).map(|(w, step)| w - step).collect();
            let next = self.point(prior, w);
            if next.loss < at.loss {
                *damping = (*damping / 4.0).max(1e-9);
                return Some(next);
            }
            *damping *= 4.0;
        }
        None
    }
}

/// A square matrix, row-major.
#[derive(Clone, Debug)]
struct Matrix {
    n: usize,
    cells: Vec<f64>,
}

impl Matrix {
    fn zero(n: usize) -> Self {
        Self {
            n,
            cells: vec![0.0; n * n],
        }
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.cells[i * self.n..(i + 1) * self.n]
    }

    fn row_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.cells[i * self.n..(i + 1) * self.n]
    }

    /// The lower triangle L with L L' this matrix; `None` unless it is positive definite.
    fn cholesky(mut self) -> Option<Self> {
        for i in 0..self.n {
            for j in 0..=i {
                let known = dot(&self.row(i)[..j], &self.row(j)[..j]);
                let rest = self.row(i)[j] - known;
                self.row_mut(i)[j] = if j < i {
                    rest / self.row(j)[j]
                } else if rest > 0.0 && rest.is_finite() {
                    rest.sqrt()
                } else {
                    return None;
                };
            }
            self.row_mut(i)[i + 1..].fill(0.0);
        }
        Some(self)
    }

    /// Replaces b by x with L L' x = b, this being L.
    fn solve(&self, b: &mut [f64]) {
        for i in 0..self.n {
            b[i] = (b[i] - dot(&self.row(i)[..i], &b[..i])) / self.row(i)[i];
        }
        for i in (0..self.n).rev() {
            b[i] /= self.row(i)[i];
            let x = b[i];
            add(&mut b[..i], -x, &self.row(i)[..i]);
        }
    }

    /// The logarithm of the determinant of L L', this being L.
    fn log_determinant(&self) -> f64 {
        (0..self.n).map(|i| 2.0 * self.row(i)[i].ln()).sum()
    }
}

fn softmax(logs: &[f64]) -> Vec<f64> {
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// sum += by * x.
fn add(sum: &mut [f64], by: f64, x: &[f64]) {
    sum.iter_mut().zip(x).for_each(|(sum, x)| *sum += by * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    fn normal(rng: &mut StdRng) -> f64 {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn distance(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum()
    }

    /// The nearest table without negative counts that sums to `total`.
    fn projected(counts: &[f64], total: f64) -> Vec<f64> {
        let mut descending = counts.to_vec();
        descending.sort_by(|x, y| y.total_cmp(x));
        let (mut sum, mut cut) = (0.0, 0.0);
        for (i, count) in descending.iter().enumerate() {
            sum += count;
            let level = (sum - total) / (i + 1) as f64;
            if *count > level {
                cut = level;
            }
        }
        counts.iter().map(|count| (count - cut).max(0.0)).collect()
    }

    /// Mean distance of the estimates from `truth`, and that of the projections.
    fn distances(truth: &[f64], scale: f64) -> (f64, f64) {
        let mut rng = StdRng::seed_from_u64(3);
        let total = truth.iter().sum();
        let (mut estimates, mut projections) = (0.0, 0.0);
        for _ in 0..40 {
            let noisy = |count: &f64| count + scale * normal(&mut rng);
            let counts: Vec<f64> = truth.iter().map(noisy).collect();
            estimates += distance(&expected_counts(&counts, total, scale).unwrap(), truth);
            projections += distance(&projected(&counts, total), truth);
        }
        (estimates, projections)
    }

    fn bell(n: usize, middle: f64, width: f64) -> Vec<f64> {
        let count = |i: usize| (-0.5 * ((i as f64 - middle) / width).powi(2)).exp();
        let sum: f64 = (0..n).map(count).sum();
        (0..n).map(|i| 1000.0 * count(i) / sum).collect()
    }

    #[test]
    fn shapes_that_tables_have_are_told_from_noise() {
        let decay: Vec<f64> = (0..12).map(|i| 600.0 * 0.5f64.powi(i)).collect();
        let mut peaked = bell(16, 4.0, 2.0);
        peaked[0] += 150.0; // one category out of line
        let even = vec![100.0; 8];
        for truth in [bell(10, 3.5, 2.0), bell(30, 20.0, 5.0), decay, peaked, even] {
            let (estimates, projections) = distances(&truth, 50.0);
            assert!(estimates < 0.75 * projections, "{truth:?}");
        }
    }

    #[test]
    fn tables_without_a_shape_are_estimated_little_worse() {
        let rough: Vec<f64> = (0..10).map(|i| [20.0, 180.0][i % 2]).collect();
        let sparse = [0.0, 0.0, 900.0, 0.0, 100.0, 0.0];
        for (truth, worst) in [(&rough[..], 1.1), (&sparse, 1.35)] {
            let (estimates, projections) = distances(truth, 40.0);
            assert!(estimates < worst * projections, "{truth:?}");
        }
    }

    #[test]
    fn counts_known_well_or_too_many_are_left_alone() {
        let counts = [30.0, 50.0, 20.0];
        assert!(expected_counts(&counts, 100.0, 3.3).is_none());
        assert!(expected_counts(&counts, 100.0, 3.4).is_some());
        assert!(expected_counts(&counts, 0.0, 9.0).is_none());
        assert!(expected_counts(&counts, -5.0, 9.0).is_none());
        assert!(expected_counts(&[100.0], 100.0, 200.0).is_none());
        assert!(expected_counts(&vec![1.0; 128], 128.0, 9.0).is_some());
        assert!(expected_counts(&vec![1.0; 129], 129.0, 9.0).is_none());
    }

    #[test]
    fn estimates_are_counts_whatever_the_noise() {
        let mut rng = StdRng::seed_from_u64(4);
        for scale in [30.0, 1e3, 1e6, 1e12] {
            for n in [2, 7, 40] {
                let counts: Vec<f64> = (0..n).map(|_| scale * normal(&mut rng)).collect();
                for total in [1.0, 100.0, 3.0 * scale] {
                    let expected = expected_counts(&counts, total, scale).unwrap();
                    assert!(expected.iter().all(|&count| count >= 0.0));
                    let sum: f64 = expected.iter().sum();
                    assert!((sum / total - 1.0).abs() < 1e-9, "{n} {scale} {total}");
                }
            }
        }
    }

    #[test]
    fn slopes_are_those_of_the_loss_and_vanish_at_the_mode() {
        let counts = [120.0, 15.0, -20.0, 60.0, 90.0];
        let seen = Seen {
            counts: &counts,
            total: 265.0,
            scale: 20.0,
        };
        let prior = prior(5, 0.4, &SHAPES[3]).unwrap();
        let w = vec![0.3, -0.2, 0.5, 0.1, -0.4];
        let (slope, _) = seen.slopes(&prior, &seen.point(&prior, w.clone()));
        for i in 0..5 {
            let loss = |by: f64| {
                let mut moved = w.clone();
                moved[i] += by;
                seen.point(&prior, moved).loss
            };
            let difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
            assert!((slope[i] - difference).abs() < 1e-5 * (1.0 + difference.abs()));
        }
        // No shares near those of the mode are likelier.
        let mode = seen.mode(&prior).unwrap();
        let logs: Vec<f64> = mode.shares.iter().map(|share| share.ln()).collect();
        let loss = |logs: &[f64]| {
            // f is known up to a constant: the likeliest one.
            let of = |shift: f64| {
                let mut w: Vec<f64> = logs.iter().map(|log| log + shift).collect();
                for i in 0..5 {
                    w[i] = (w[i] - dot(&prior.row(i)[..i], &w[..i])) / prior.row(i)[i];
                }
                seen.point(&prior, w).loss
            };
            let shifts = (0..4000).map(|i| f64::from(i) * 1e-3);
            shifts.map(of).fold(f64::MAX, f64::min)
        };
        let least = loss(&logs);
        for i in 0..5 {
            for by in [0.02, -0.02] {
                let mut moved = logs.clone();
                moved[i] += by;
                assert!(loss(&moved) > least - 1e-4);
            }
        }
    }

    #[test]
    fn factors_multiply_to_the_matrix_and_solve_it() {
        let covariance = |i: usize, j: usize| SHAPES[2].covariance(i as f64, j as f64 * 0.9);
        let mut matrix = Matrix::zero(4);
        for i in 0..4 {
            for j in 0..4 {
                matrix.row_mut(i)[j] = covariance(i.min(j), i.max(j));
            }
            matrix.row_mut(i)[i] += 10.0;
        }
        let factor = matrix.clone().cholesky().unwrap();
        for i in 0..4 {
            for j in 0..4 {
                let product = dot(factor.row(i), factor.row(j));
                assert!((product - matrix.row(i)[j]).abs() < 1e-12);
            }
        }
        let mut x = vec![1.0, -2.0, 3.0, 0.5];
        factor.solve(&mut x);
        for (i, b) in [1.0, -2.0, 3.0, 0.5].into_iter().enumerate() {
            assert!((dot(matrix.row(i), &x) - b).abs() < 1e-12);
        }
        matrix.row_mut(2)[2] = -1.0;
        assert!(matrix.cholesky().is_none());
    }
}
