//! The distance between a sum of discrete Gaussians and one discrete Gaussian, as a privacy cost.
//!
//! KLS21 (Kairouz, Liu and Steinke, The Distributed Discrete Gaussian Mechanism for Federated
//! Learning with Secure Aggregation, 2021), Theorem 9: let X and Y be independent discrete
//! Gaussians of variances s, t >= 1/4, and Z one of variance s + t. The probabilities of X + Y and
//! of Z differ at every integer by a factor of at most `exp(5 exp(-2 pi^2 / (1/s + 1/t)))`. If
//! summands are added one after the other, the exponents add up (post-processing): this is their
//! Corollary 12 for unequal variances.
//!
//! A pure bound gamma on each of d cells is gamma^2 d / 2-zCDP in both directions. The path from
//! the true sum to the ideal noise, to the neighbour's ideal noise and back adds up in square
//! roots: `sqrt(2 rho) <= Delta / sigma + 2 gamma sqrt(d)` (their Proposition 14, third bound,
//! where tau = 2 gamma).

use std::f64::consts::PI;

use crate::{BASE_VARIANCE, Digits, Error, Rho};

/// Factor on the result, so that rounding in its evaluation cannot make it too small.
const MARGIN: f64 = 1.0 + 1e-6;

/// Returns the bound gamma on |ln(P\[sum = y\] / P\[discrete Gaussian = y\])| over all y, for the
/// sum of the ladder samples that make up `variance_units` at each of `honest` holders. It is zero
/// for a single sample, and also where the bound is below the smallest double, at variances of some
/// hundred.
pub fn log_ratio_bound(variance_units: u64, honest: u32) -> f64 {
    let mut sum = 0.0;
    let mut gamma = 0.0;
    for (level, digit) in Digits::of(variance_units).iter() {
        let variance = (BASE_VARIANCE << (2 * level)) as f64;
        for _ in 0..digit as u64 * u64::from(honest) {
            if sum > 0.0 {
                gamma += 5.0 * (-2.0 * PI * PI / (1.0 / sum + 1.0 / variance)).exp();
            }
            sum += variance;
        }
    }
    gamma * MARGIN
}

/// Returns the cost of a release of `cells` numbers beyond Delta_2^2 / (2 sigma^2), which arises
/// because the noise is a sum of ladder samples: `(Delta / sigma) tau sqrt(d) + tau^2 d / 2`,
/// rounded up. The noise of `honest` holders has the variance sigma^2 = 4 honest `variance_units`.
/// A single sample costs nothing. A sum of samples costs at least 2^-80, since its gap is positive
/// even where it is too small for a double.
///
/// # Errors
/// [`Error::Rho`] if the cost does not fit.
pub fn gap_rho(
    delta2_squared: u128,
    variance_units: u64,
    cells: u64,
    honest: u32,
) -> Result<Rho, Error> {
    let samples: usize = Digits::of(variance_units).iter().map(|(_, d)| d).sum();
    if samples as u64 * u64::from(honest) <= 1 {
        return Ok(Rho::ZERO);
    }
    let tau = 2.0 * log_ratio_bound(variance_units, honest);
    let variance = variance_units as f64 * BASE_VARIANCE as f64 * f64::from(honest);
    let ratio = (delta2_squared as f64 / variance).sqrt();
    let spread = tau * (cells as f64).sqrt();
    let gap = Rho::from_f64_up((ratio * spread + spread * spread / 2.0) * MARGIN)?;
    Ok(gap.max(Rho::LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the probabilities of a discrete Gaussian at -reach..=reach.
    fn pmf(variance: f64, reach: i64) -> Vec<f64> {
        let mass = |y: i64| (-((y * y) as f64) / (2.0 * variance)).exp();
        let total: f64 = (-60 * reach..=60 * reach).map(mass).sum();
        (-reach..=reach).map(|y| mass(y) / total).collect()
    }

    /// The bound is stated for variances from 1/4, where the gap can be computed directly.
    #[test]
    fn gap_bound_holds_where_it_can_be_measured() {
        for (s, t) in [(0.25, 0.25), (0.3, 0.5), (0.5, 0.5)] {
            let reach = 12;
            let (x, y, z) = (pmf(s, reach), pmf(t, reach), pmf(s + t, reach));
            let bound = 5.0 * (-2.0 * PI * PI / (1.0 / s + 1.0 / t)).exp();
            for target in -4i64..=4 {
                let sum: f64 = (-reach..=reach)
                    .filter(|a| (target - a).abs() <= reach)
                    .map(|a| x[(a + reach) as usize] * y[(target - a + reach) as usize])
                    .sum();
                let gap = (sum / z[(target + reach) as usize]).ln().abs();
                assert!(
                    gap <= bound,
                    "variances {s} and {t} at {target}: {gap} {bound}"
                );
                assert!(
                    target != 0 || gap > bound / 100.0,
                    "a bound this loose shows nothing"
                );
            }
        }
    }

    #[test]
    fn single_samples_have_no_gap_and_sums_a_small_one() {
        for level in 0..26 {
            assert_eq!(log_ratio_bound(1 << (2 * level), 1), 0.0);
        }
        // Two base samples (variance 4 each) are the worst case of two: 5 exp(-4 pi^2).
        let worst = log_ratio_bound(2, 1);
        assert!((worst / (5.0 * (-4.0 * PI * PI).exp()) - 1.0).abs() < 1e-5);
        for units in 3..5_000 {
            assert!(log_ratio_bound(units, 1) < 2.0 * worst);
        }
        assert_eq!(gap_rho(1, 16, 1_000_000, 1), Ok(Rho::ZERO));
        let gap = gap_rho(1, 3, 100_000, 1).unwrap();
        assert!(gap > Rho::ZERO && gap.to_f64() < 1e-13);
    }

    /// One base sample at each of several holders is as much of a sum as several samples of one
    /// holder.
    #[test]
    fn samples_of_several_holders_have_the_gap_of_one_holders_samples() {
        for (units, honest) in [(1, 2), (1, 3), (4, 3), (2, 1)] {
            let together = units * u64::from(honest);
            let apart = log_ratio_bound(units, honest);
            assert!((apart / log_ratio_bound(together, 1) - 1.0).abs() < 1e-9);
        }
        assert_eq!(gap_rho(1, 16, 1, 1), Ok(Rho::ZERO));
        assert_eq!(gap_rho(1, 16, 1, 2), Ok(Rho::LEAST));
    }

    /// Two samples of variance 4 * 4^level each: from level 3 the bound is below every double, but
    /// it is never zero.
    #[test]
    fn gap_too_small_for_a_double_is_still_charged() {
        for level in 0..26 {
            let units = 2 << (2 * level);
            assert_eq!(
                log_ratio_bound(units, 1) == 0.0,
                level >= 3,
                "level {level}"
            );
            let gap = gap_rho(1, units, 1, 1).unwrap();
            assert!(gap > Rho::ZERO, "level {level}");
            assert!(level < 1 || gap == Rho::LEAST, "level {level}");
        }
    }
}
