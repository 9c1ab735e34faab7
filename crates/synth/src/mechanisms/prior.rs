//! Estimates an attribute's counts from noisy counts, with a prior for one-way tables
//! (docs/MECHANISM.md, C step 1).
//!
//! The shares of n categories are softmax(f), where f is a Gaussian vector. Its covariance is the
//! sum of an independent variation of each category, a smooth function of the category's place, and
//! a parabola. The roughness of the attribute is unknown. So the estimate averages the posterior
//! modes under 16 covariances, in proportion to their evidence by Laplace's approximation
//! (Rasmussen and Williams 2006, section 3.4). Some covariances have neither a smooth function nor
//! a parabola: they fit categories without a natural order.
//!
//! The time is linear in n. The input is a released table, so the estimate costs no budget.

mod covariance;
mod curvature;
#[cfg(test)]
mod dense;
mod posterior;
mod state_space;
mod vectors;

use covariance::{Covariance, Shape};
use posterior::{Mode, Observation, Posterior};
use vectors::add;

/// Least noise for which the prior is used, as a share of the records of an even category. With
/// less noise the prior only adds its bias against empty categories.
const MIN_NOISE: f64 = 0.1;

/// Largest number of categories for which the prior is used. The callers shrink or project the
/// counts of wider columns.
const MAX_CATEGORIES: usize = 128;

/// Standard deviations of the independent variation of a log share.
const VARIATIONS: [f64; 4] = [0.1, 0.4, 1.5, 5.0];

/// Shapes of the remaining covariance.
const SHAPES: [Shape; 4] = [
    shape(0.0, 1.0, 0.0),
    shape(0.0, 1.0, 3.0),
    shape(2.0, 0.15, 0.0),
    shape(2.0, 0.4, 3.0),
];

const fn shape(smooth: f64, length: f64, parabola: f64) -> Shape {
    Shape {
        smooth,
        length,
        parabola,
    }
}

/// Returns the expected counts given noisy `counts`: each at least 0, with sum `total`.
///
/// `scale` is the standard deviation of the noise. Returns `None` if the counts should be used as
/// they are: with little noise, or with too many categories.
pub(crate) fn expected_counts(counts: &[f64], total: f64, scale: f64) -> Option<Vec<f64>> {
    let n = counts.len();
    let little = scale * (n as f64) < MIN_NOISE * total;
    if little || !(2..=MAX_CATEGORIES).contains(&n) || total <= 0.0 {
        return None;
    }
    let observation = Observation {
        counts,
        total,
        scale,
    };
    let modes: Vec<Mode> = covariances(n)
        .filter_map(|covariance| {
            let posterior = Posterior {
                observation: &observation,
                covariance: &covariance,
            };
            posterior.mode()
        })
        .collect();
    average(&modes, total)
}

/// Returns the average counts of the `modes`, weighted by their evidence; `None` without modes.
fn average(modes: &[Mode], total: f64) -> Option<Vec<f64>> {
    let best = modes.iter().map(|mode| mode.evidence).reduce(f64::max)?;
    let (mut sum, mut weights) = (vec![0.0; modes.first()?.shares.len()], 0.0);
    for mode in modes {
        let weight = (mode.evidence - best).exp();
        weights += weight;
        add(&mut sum, weight, &mode.shares);
    }
    Some(sum.iter().map(|sum| sum / weights * total).collect())
}

/// Returns the prior covariances of `n` log shares, one for each shape and variation.
fn covariances(n: usize) -> impl Iterator<Item = Covariance> {
    SHAPES.iter().flat_map(move |shape| {
        let covariance = move |variation| Covariance::new(n, variation, shape);
        VARIATIONS.into_iter().map(covariance)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::StdRng};

    pub(super) fn normal(rng: &mut StdRng) -> f64 {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    fn distance(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - y).abs()).sum()
    }

    /// Returns the nearest table without negative counts that adds up to `total`.
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

    /// Returns the summed distance of the estimates from `truth`, and that of the projections.
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
    fn estimates_of_common_shapes_are_closer_than_projections() {
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
    fn estimates_of_rough_tables_are_nearly_as_close_as_projections() {
        let rough: Vec<f64> = (0..10).map(|i| [20.0, 180.0][i % 2]).collect();
        let sparse = [0.0, 0.0, 900.0, 0.0, 100.0, 0.0];
        for (truth, worst) in [(&rough[..], 1.1), (&sparse, 1.35)] {
            let (estimates, projections) = distances(truth, 40.0);
            assert!(estimates < worst * projections, "{truth:?}");
        }
    }

    #[test]
    fn counts_with_little_noise_or_many_categories_have_no_estimate() {
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
    fn estimates_are_not_negative_and_sum_to_the_total_under_any_noise() {
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
}
