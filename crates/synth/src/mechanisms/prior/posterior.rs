//! Search for the most likely log shares, and their evidence.

use super::covariance::Covariance;
use super::curvature::{Curvature, DataCurvature, newton_direction};
use super::vectors::{add, centered, dot};

/// Largest number of steps towards a mode.
const STEPS: usize = 200;

/// The search ends if the next step would lower the loss by less than about this.
const TOLERANCE: f64 = 1e-15;

/// The search starts with the curvature of Gauss and Newton, which finds the better of several modes
/// more often. It continues with the exact curvature, which converges faster, after `FIRST_STEPS`
/// steps or a step that lowers the loss by less than `FINAL_FALL`.
const FIRST_STEPS: usize = 30;
const FINAL_FALL: f64 = 0.1;

/// Damping of the first step. A successful step divides the damping by `DAMPING_FACTOR`, and a step
/// that raises the loss multiplies it.
const FIRST_DAMPING: f64 = 1e-2;
const DAMPING_FACTOR: f64 = 4.0;
const LEAST_DAMPING: f64 = 1e-9;
const LARGEST_DAMPING: f64 = 1e9;

/// Noisy counts of one attribute.
#[derive(Debug)]
pub(super) struct Observation<'a> {
    pub(super) counts: &'a [f64],
    /// Sum of the counts without noise.
    pub(super) total: f64,
    /// Standard deviation of the noise.
    pub(super) scale: f64,
}

/// The most likely shares under one covariance.
#[derive(Debug)]
pub(super) struct Mode {
    pub(super) shares: Vec<f64>,
    /// Logarithm of the probability of the counts, up to a constant.
    pub(super) evidence: f64,
}

/// Log shares f, with their shares and residuals.
#[derive(Debug)]
pub(super) struct Point {
    /// K^-1 f.
    coefficients: Vec<f64>,
    /// f.
    logs: Vec<f64>,
    shares: Vec<f64>,
    /// Expected counts minus observed counts, in units of the noise.
    residuals: Vec<f64>,
}

impl Point {
    /// Returns the negative log posterior, up to a constant: half of r' r + f' K^-1 f for residuals
    /// r.
    pub(super) fn loss(&self) -> f64 {
        0.5 * (dot(&self.residuals, &self.residuals) + dot(&self.coefficients, &self.logs))
    }

    /// Returns the loss of `self` minus the loss of `next`.
    ///
    /// The sum runs over differences, so that a large loss does not hide a small fall.
    fn fall(&self, next: &Self) -> f64 {
        let residuals = self.residuals.iter().zip(&next.residuals);
        let data: f64 = residuals.map(|(r, s)| (r - s) * (r + s)).sum();
        let coefficients = self.coefficients.iter().zip(&next.coefficients);
        let cells = coefficients.zip(self.logs.iter().zip(&next.logs));
        let prior: f64 = cells.map(|((a, b), (f, g))| (a - b) * (f + g)).sum();
        0.5 * (data + prior)
    }
}

/// Posterior of the log shares under one covariance.
#[derive(Debug)]
pub(super) struct Posterior<'a> {
    pub(super) observation: &'a Observation<'a>,
    pub(super) covariance: &'a Covariance,
}

impl Posterior<'_> {
    /// Finds the most likely shares; `None` if a pivot breaks down or the counts are not finite.
    pub(super) fn mode(&self) -> Option<Mode> {
        let at = self.search();
        let data = self.data_curvature(&at, Bend::Omitted);
        let curvature = Curvature::new(self.covariance, &data)?;
        let evidence = -at.loss() - 0.5 * curvature.log_determinant();
        evidence.is_finite().then_some(Mode {
            evidence,
            shares: at.shares,
        })
    }

    /// Finds a mode by Newton's method with the damping of Levenberg and Marquardt, starting at
    /// even shares.
    pub(super) fn search(&self) -> Point {
        let mut at = self.point(vec![0.0; self.observation.counts.len()]);
        let mut damping = FIRST_DAMPING;
        let mut bend = Bend::Omitted;
        for step in 1..=STEPS {
            let Some(next) = self.step(&at, bend, &mut damping) else {
                break;
            };
            if at.fall(&next) < FINAL_FALL || step == FIRST_STEPS {
                bend = Bend::Included;
            }
            at = next;
        }
        at
    }

    /// Takes one step; `None` if no step lowers the loss by a relevant amount.
    fn step(&self, at: &Point, bend: Bend, damping: &mut f64) -> Option<Point> {
        let slope = self.slope(at);
        let steepest = self.covariance.product(&slope);
        let data = self.data_curvature(at, bend);
        while *damping < LARGEST_DAMPING {
            // The damped curvature is (1 + damping) K^-1 + W. The solver gets it divided by
            // 1 + damping.
            let shrink = 1.0 / (1.0 + *damping);
            let data = data.scaled(shrink);
            let Some(direction) = newton_direction(self.covariance, &data, &slope) else {
                *damping *= DAMPING_FACTOR;
                continue;
            };
            if shrink * dot(&direction, &steepest) < TOLERANCE {
                return None;
            }
            let mut coefficients = at.coefficients.clone();
            add(&mut coefficients, -shrink, &direction);
            let next = self.point(coefficients);
            if at.fall(&next) > 0.0 {
                *damping = (*damping / DAMPING_FACTOR).max(LEAST_DAMPING);
                return Some(next);
            }
            *damping *= DAMPING_FACTOR;
        }
        None
    }

    /// Evaluates the log shares K a for `coefficients` a.
    fn point(&self, coefficients: Vec<f64>) -> Point {
        let Observation {
            counts,
            total,
            scale,
        } = self.observation;
        let logs = self.covariance.product(&coefficients);
        let shares = softmax(&logs);
        let cells = shares.iter().zip(*counts);
        let residuals = cells.map(|(share, count)| (total * share - count) / scale);
        Point {
            residuals: residuals.collect(),
            coefficients,
            logs,
            shares,
        }
    }

    /// Returns the total in units of the noise.
    fn weight(&self) -> f64 {
        self.observation.total / self.observation.scale
    }

    /// Returns the slope of the loss in the log shares.
    fn slope(&self, at: &Point) -> Vec<f64> {
        let mut slope = at.coefficients.clone();
        let pulls = centered(&at.residuals, &at.shares);
        for (slope, (share, pull)) in slope.iter_mut().zip(at.shares.iter().zip(pulls)) {
            *slope += self.weight() * share * pull;
        }
        slope
    }

    /// Returns the curvature of the data term, half of r' r, in the log shares.
    fn data_curvature<'a>(&self, at: &'a Point, bend: Bend) -> DataCurvature<'a> {
        let pulls = centered(&at.residuals, &at.shares);
        let weight = self.weight();
        let precision = |(share, pull): (&f64, f64)| match bend {
            Bend::Included => weight * share * (weight * share + pull),
            Bend::Omitted => weight * share * weight * share,
        };
        DataCurvature {
            shares: &at.shares,
            precisions: at.shares.iter().zip(pulls).map(precision).collect(),
        }
    }
}

/// Treatment of the second derivatives of the shares in the curvature.
#[derive(Clone, Copy)]
enum Bend {
    /// Exact curvature. It may have negative directions.
    Included,
    /// Curvature of Gauss and Newton, without negative directions.
    Omitted,
}

fn softmax(logs: &[f64]) -> Vec<f64> {
    let most = logs.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - most).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanisms::prior::SHAPES;

    const OBSERVATION: Observation = Observation {
        counts: &[120.0, 15.0, -20.0, 60.0, 90.0],
        total: 265.0,
        scale: 20.0,
    };

    fn check_all_shapes(observation: &Observation, check: impl Fn(&Posterior)) {
        for shape in SHAPES {
            check(&Posterior {
                observation,
                covariance: &Covariance::new(observation.counts.len(), 0.4, &shape),
            });
        }
    }

    /// Returns the point whose coefficient `i` is higher by `by`.
    fn moved(posterior: &Posterior, at: &Point, i: usize, by: f64) -> Point {
        let mut coefficients = at.coefficients.clone();
        coefficients[i] += by;
        posterior.point(coefficients)
    }

    #[test]
    fn slope_matches_finite_differences() {
        check_all_shapes(&OBSERVATION, |posterior| {
            let at = posterior.point(vec![0.3, -0.2, 0.5, 0.1, -0.4]);
            // The slope in the coefficients is K times the slope in the log shares.
            let slope = posterior.covariance.product(&posterior.slope(&at));
            for (i, slope) in slope.into_iter().enumerate() {
                let loss = |by| moved(posterior, &at, i, by).loss();
                let difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
                assert!((slope - difference).abs() < 1e-5 * (1.0 + difference.abs()));
            }
        });
    }

    #[test]
    fn exact_curvature_matches_finite_differences_of_the_slope() {
        check_all_shapes(&OBSERVATION, |posterior| {
            let at = posterior.point(vec![0.3, -0.2, 0.5, 0.1, -0.4]);
            let data = posterior.data_curvature(&at, Bend::Included);
            for i in 0..5 {
                let [above, below] = [1e-5, -1e-5].map(|by| moved(posterior, &at, i, by));
                let change: Vec<f64> = (above.logs.iter().zip(&below.logs))
                    .map(|(above, below)| (above - below) / 2e-5)
                    .collect();
                let mut expected = data.product(&change);
                expected[i] += 1.0;
                let slopes = [above, below].map(|point| posterior.slope(&point));
                for (j, expected) in expected.into_iter().enumerate() {
                    let difference = (slopes[0][j] - slopes[1][j]) / 2e-5;
                    assert!((expected - difference).abs() < 1e-5 * (1.0 + difference.abs()));
                }
            }
        });
    }

    #[test]
    fn mode_is_a_local_minimum_of_the_loss() {
        check_all_shapes(&OBSERVATION, |posterior| {
            let mode = posterior.search();
            let slope = posterior.slope(&mode);
            assert!(slope.iter().all(|slope| slope.abs() < 1e-6));
            for i in 0..5 {
                for by in [1e-3, -1e-3] {
                    assert!(mode.fall(&moved(posterior, &mode, i, by)) < 0.0);
                }
            }
        });
    }

    #[test]
    fn huge_counts_have_a_mode() {
        for size in [1e3, 1e6, 1e9, 1e12] {
            let observation = Observation {
                counts: &[3.0 * size, -size, 2.0 * size, 0.0],
                ..OBSERVATION
            };
            check_all_shapes(&observation, |posterior| {
                assert!(posterior.mode().is_some(), "{size}");
            });
        }
    }

    #[test]
    fn counts_that_are_not_finite_have_no_mode() {
        for count in [f64::NAN, f64::INFINITY, 1e300] {
            let observation = Observation {
                counts: &[count, 1.0],
                ..OBSERVATION
            };
            check_all_shapes(&observation, |posterior| {
                assert!(posterior.mode().is_none(), "{count}");
            });
        }
    }
}
