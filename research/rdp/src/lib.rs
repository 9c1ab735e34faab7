//! Renyi differential privacy of the systems that fhaim is compared with: the sampled Gaussian mechanism, and mixes
//! of records (DP-CDA).
//!
//! A mechanism that is (a, e(a))-RDP is (epsilon, delta)-DP at
//! `epsilon = min over a of steps * e(a) + ln(1/delta) / (a - 1)` (Mironov 2017, Proposition 3). Every order a gives
//! a valid epsilon, so restricting the search to integer orders can only overstate it.
//!
//! ```
//! use fhaim_rdp::SampledGaussian;
//!
//! let mechanism = SampledGaussian { rate: 0.01, multiplier: 1.1, steps: 1_000 };
//! let (epsilon, _order) = mechanism.epsilon(1e-5)?;
//! assert!(epsilon < 3.0);
//! # Ok::<(), fhaim_rdp::Error>(())
//! ```
//!
//! fhaim does not price its own releases with this crate. Costs here are doubles, and a bound on their rounding error
//! (`ROUNDING`) is added: the returned epsilon is never below the value of the formula.

mod error;
mod mixing;

use fhaim_dp::accounting::{MAX_EPSILON, MIN_EPSILON};

pub use error::Error;
pub use mixing::Mixing;

/// The largest order that is tried.
pub const MAX_ORDER: u32 = 256;

/// The largest noise that is tried: 2^40.
const MAX_NOISE: f64 = (1u64 << 40) as f64;

/// Bound on the rounding error of an epsilon, as a share of the epsilon plus three times the number of steps.
///
/// e(a) is L / (a-1), where L is the logarithm of a sum of at most a + 1 exponentials. The largest exponent is at most
/// L, and a much smaller one moves the sum by less than its own error. Logarithms of binomials are sums of at most 256
/// numbers below 2^8, and the moments of mixes take at most 256 times a logarithm below 2^8, so each exponent is right
/// to 2^16 units in the last place of 1 + L. With (a+1) / (a-1) <= 3, an epsilon is off by at most
/// 2^-52 2^16 (epsilon + 3 steps).
const ROUNDING: f64 = 1.0 / (1u64 << 36) as f64;

/// The Gaussian mechanism over a random sample of the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledGaussian {
    /// Probability that a record is in the sample of a step.
    pub rate: f64,
    /// Standard deviation of the noise over the sensitivity.
    pub multiplier: f64,
    /// Number of steps.
    pub steps: u32,
}

impl SampledGaussian {
    /// e(a) of one step: `ln(sum_j C(a,j) (1-q)^(a-j) q^j exp(j (j-1) / (2 z^2))) / (a-1)` (Mironov, Talwar
    /// and Zhang 2019, section 3.3, integer orders).
    fn of_order(&self, order: u32) -> f64 {
        let terms = log_binomials(order).map(|(j, choices)| {
            let chosen = f64::from(j);
            let others = f64::from(order - j);
            choices
                + times_log(others, 1.0 - self.rate)
                + times_log(chosen, self.rate)
                + chosen * (chosen - 1.0) / (2.0 * self.multiplier * self.multiplier)
        });
        log_sum(terms) / f64::from(order - 1)
    }

    /// Returns the least epsilon over all integer orders, and the order that shows it.
    ///
    /// # Errors
    /// [`fhaim_dp::Error::Delta`] for a delta outside (0, 1); [`Error::Sampled`] for a rate outside (0, 1], or noise
    /// that is not positive.
    pub fn epsilon(&self, delta: f64) -> Result<(f64, u32), Error> {
        check(self.rate, self.multiplier)?;
        least_epsilon((2, self.steps), delta, |order| self.of_all_steps(order))
    }

    /// Cost of all steps at an order.
    fn of_all_steps(&self, order: u32) -> f64 {
        f64::from(self.steps) * self.of_order(order)
    }

    /// Returns the least multiplier that keeps epsilon at or below `epsilon`; ignores the multiplier of `self`.
    ///
    /// # Errors
    /// Those of [`SampledGaussian::epsilon`]; [`fhaim_dp::Error::Epsilon`] outside [`MIN_EPSILON`]..=[`MAX_EPSILON`],
    /// [`Error::NoNoiseKeeps`] if no multiplier up to 2^40 keeps it.
    pub fn least_multiplier(&self, epsilon: f64, delta: f64) -> Result<f64, Error> {
        least(epsilon, |multiplier| {
            Ok(Self {
                multiplier,
                ..*self
            }
            .epsilon(delta)?
            .0)
        })
    }
}

/// Rejects rates and deviations for which no cost is defined.
fn check(rate: f64, noise: f64) -> Result<(), Error> {
    match rate > 0.0 && rate <= 1.0 && noise > 0.0 {
        true => Ok(()),
        false => Err(Error::Sampled { rate, noise }),
    }
}

/// Returns the least noise whose cost is at most `epsilon`, by bisection.
fn least(epsilon: f64, cost: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
    if !(MIN_EPSILON..=MAX_EPSILON).contains(&epsilon) {
        return Err(fhaim_dp::Error::Epsilon(epsilon).into());
    }
    // Orders end at 256, so ln(1/delta) / 255 remains even with unlimited noise.
    let floor = cost(MAX_NOISE)?;
    if floor > epsilon {
        return Err(Error::NoNoiseKeeps { epsilon, floor });
    }
    let enough = |noise: f64| -> Result<bool, Error> { Ok(cost(noise)? <= epsilon) };
    let (mut low, mut high) = (0.0, 1.0);
    // This terminates: `high` is a power of two and reaches the largest noise, which is enough.
    while !enough(high)? {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if middle > 0.0 && enough(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}

/// Returns the least value over orders from `first` of `cost(a) + ln(1/delta) / (a-1)`, rounded up, and its order.
fn least_epsilon(
    (first, steps): (u32, u32),
    delta: f64,
    cost: impl Fn(u32) -> f64,
) -> Result<(f64, u32), Error> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(fhaim_dp::Error::Delta(delta).into());
    }
    let mut best = (f64::INFINITY, first);
    for order in first..=MAX_ORDER {
        let epsilon = cost(order) - delta.ln() / f64::from(order - 1);
        if epsilon < best.0 {
            best = (epsilon, order);
        }
    }
    best.0 += ROUNDING * (best.0 + 3.0 * f64::from(steps));
    Ok(best)
}

/// (j, ln C(n, j)) for j from 0 to n.
fn log_binomials(n: u32) -> impl Iterator<Item = (u32, f64)> {
    let mut last = 0.0;
    (0..=n).map(move |j| {
        if j > 0 {
            last += (f64::from(n - j + 1) / f64::from(j)).ln();
        }
        (j, last)
    })
}

/// `factor * ln(value)`, or 0 if `factor` is 0.
fn times_log(factor: f64, value: f64) -> f64 {
    if factor == 0.0 {
        0.0
    } else {
        factor * value.ln()
    }
}

/// ln of the sum of `exp` of the terms.
fn log_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let terms: Vec<f64> = terms.collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_finite() {
        largest + terms.iter().map(|t| (t - largest).exp()).sum::<f64>().ln()
    } else {
        largest
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own values")]
mod tests {
    use super::*;

    /// The common example of accountants: 15 epochs with batches of 250 out of 60,000 records.
    #[test]
    fn sampled_gaussian_matches_published_example() {
        let training = SampledGaussian {
            rate: 250.0 / 60_000.0,
            multiplier: 1.3,
            steps: 3600,
        };
        let (epsilon, order) = training.epsilon(1e-5).unwrap();
        assert!((epsilon - 1.180).abs() < 5e-4, "{epsilon}");
        assert_eq!(order, 17);
        let least = training.least_multiplier(epsilon, 1e-5).unwrap();
        assert!((least - 1.3).abs() < 1e-6, "{least}");
    }

    /// Invalid budgets and budgets that no noise reaches give different errors.
    #[test]
    fn unreachable_budgets_are_distinguished_from_invalid_ones() {
        let training = SampledGaussian {
            rate: 0.1,
            multiplier: 1.0,
            steps: 100,
        };
        for epsilon in [-1.0, 0.0, f64::NAN, f64::INFINITY, 1e-300, 1e10] {
            let refused = training.least_multiplier(epsilon, 1e-5);
            assert!(
                matches!(refused, Err(Error::Privacy(fhaim_dp::Error::Epsilon(_)))),
                "{epsilon}"
            );
        }
        for delta in [0.0, 1.0, -1e-5, f64::NAN] {
            let refused = training.least_multiplier(1.0, delta);
            assert!(
                matches!(refused, Err(Error::Privacy(fhaim_dp::Error::Delta(_)))),
                "{delta}"
            );
        }
        let Err(Error::NoNoiseKeeps { floor, .. }) = training.least_multiplier(0.04, 1e-5) else {
            panic!("no noise keeps this");
        };
        // ln(1/delta) / (256 - 1).
        assert!((floor - 1e5f64.ln() / 255.0).abs() < 1e-6, "{floor}");
        for epsilon in [floor * 1.001, 1e9] {
            let multiplier = training.least_multiplier(epsilon, 1e-5).unwrap();
            let kept = SampledGaussian {
                multiplier,
                ..training
            };
            assert!(kept.epsilon(1e-5).unwrap().0 <= epsilon);
        }
        let never = SampledGaussian {
            rate: 0.0,
            ..training
        };
        let refused = never.least_multiplier(1.0, 1e-5);
        assert!(matches!(refused, Err(Error::Sampled { .. })));
    }

    /// With the whole table in every step, this is the Gaussian mechanism: e(a) = a / (2 z^2).
    #[test]
    fn sampling_everything_equals_gaussian_mechanism() {
        let whole = SampledGaussian {
            rate: 1.0,
            multiplier: 4.0,
            steps: 1,
        };
        for order in [2u32, 5, 40] {
            let expected = f64::from(order) / 32.0;
            assert!((whole.of_order(order) - expected).abs() < 1e-9);
        }
        assert!(matches!(whole.epsilon(0.0), Err(Error::Privacy(..))));
        assert!(matches!(
            SampledGaussian { rate: 0.0, ..whole }.epsilon(1e-5),
            Err(Error::Sampled { .. })
        ));
    }

    /// With the whole table in every step e(a) is a fraction. The returned epsilon is not below it, and hardly above.
    #[test]
    fn rounding_never_lowers_the_epsilon() {
        for multiplier in [1.0, 2.0, 8.0, 64.0] {
            for steps in [1u32, 37, 100_000] {
                let whole = SampledGaussian {
                    rate: 1.0,
                    multiplier,
                    steps,
                };
                let (found, order) = whole.epsilon(1e-5).unwrap();
                // Powers of two and small integers: the expected value is rounded only once or twice.
                let rdp = f64::from(steps) * f64::from(order) / (2.0 * multiplier * multiplier);
                let exact = rdp + 1e5f64.ln() / f64::from(order - 1);
                assert!(
                    found > exact && found < exact * (1.0 + 1e-9) + 1e-5,
                    "{found} {exact}"
                );
            }
        }
    }

    /// e(a) of one step as published (Mironov, Talwar and Zhang 2019), with plain sums.
    fn published_step(rate: f64, multiplier: f64, order: u32) -> f64 {
        let mut choices = 1.0;
        let mut sum = 0.0;
        for j in 0..=order {
            if j > 0 {
                choices *= f64::from(order + 1 - j) / f64::from(j);
            }
            let squares = f64::from(j) * (f64::from(j) - 1.0);
            let moment = (squares / (2.0 * multiplier * multiplier)).exp();
            sum += choices * (1.0 - rate).powi((order - j) as i32) * rate.powi(j as i32) * moment;
        }
        sum.ln() / f64::from(order - 1)
    }

    #[test]
    fn sampled_gaussian_cost_matches_published_formula() {
        let one = SampledGaussian {
            rate: 0.02,
            multiplier: 1.1,
            steps: 300,
        };
        let two = SampledGaussian {
            rate: 0.1,
            multiplier: 3.0,
            steps: 50,
        };
        for sampled in [one, two] {
            let at = |order| {
                let step = published_step(sampled.rate, sampled.multiplier, order);
                f64::from(sampled.steps) * step + 1e5f64.ln() / f64::from(order - 1)
            };
            let least = (2..=40).map(at).fold(f64::INFINITY, f64::min);
            let (found, _) = sampled.epsilon(1e-5).unwrap();
            assert!((found / least - 1.0).abs() < 1e-6, "{found} {least}");
        }
    }
}
