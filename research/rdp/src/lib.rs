//! Renyi differential privacy of the systems that fhaim is compared with: the sampled Gaussian, and mixes
//! of records (DP-CDA).
//!
//! A mechanism that is (a, e(a))-RDP is (epsilon, delta)-DP at
//! `epsilon = min over a of steps * e(a) + ln(1/delta) / (a - 1)` (Mironov 2017, Proposition 3). Any order a gives
//! a valid epsilon, so looking at integer orders alone can only overstate it.
//!
//! Nothing of fhaim's own releases is priced here. These are doubles, and what they may be off by is added
//! (`ROUNDING`): the epsilon that is returned is not below the one that the formula has.

mod error;

use fhaim_dp::accounting::{MAX_EPSILON, MIN_EPSILON};

pub use error::Error;

/// The largest order that is looked at.
pub const MAX_ORDER: u32 = 256;

/// The most noise that is looked at: 2^40.
const MAX_NOISE: f64 = (1u64 << 40) as f64;

/// What rounding may take off an epsilon, as a share of it and of three times the number of steps.
///
/// e(a) is L / (a-1) with L the logarithm of a sum of at most a + 1 exponentials. The largest exponent is at most L, and
/// one that is far below moves the sum by less than its own error; binomials' logarithms are sums of at most 256 numbers
/// below 2^8, so that each exponent is right to 2^16 units in the last place of 1 + L. With (a+1) / (a-1) <= 3, an epsilon
/// is off by at most 2^-52 2^16 (epsilon + 3 steps).
const ROUNDING: f64 = 1.0 / (1u64 << 36) as f64;

/// The Gaussian mechanism over a random sample of the records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledGaussian {
    /// Each record's chance to be in a step's sample.
    pub rate: f64,
    /// The noise's deviation over the sensitivity.
    pub multiplier: f64,
    /// How many steps there are.
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

    /// The least epsilon that an integer order shows, and that order.
    ///
    /// # Errors
    /// A delta that is none; [`Error::Sampled`] for a rate outside 0..=1, or noise that is not positive.
    pub fn epsilon(&self, delta: f64) -> Result<(f64, u32), Error> {
        check(self.rate, self.multiplier)?;
        least_epsilon((2, self.steps), delta, |order| self.of_all_steps(order))
    }

    /// What all steps cost at an order.
    fn of_all_steps(&self, order: u32) -> f64 {
        f64::from(self.steps) * self.of_order(order)
    }

    /// The least multiplier at which epsilon is at most the one asked for; `self`'s own is not looked at.
    ///
    /// # Errors
    /// As [`SampledGaussian::epsilon`]; [`fhaim_dp::Error::Epsilon`] outside [`MIN_EPSILON`]..=[`MAX_EPSILON`],
    /// [`Error::NoNoiseKeeps`] where no multiplier up to 2^40 does.
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

/// DP-CDA: a sample is the mean of l records of one class with noise (Saha, Tonoy and Imtiaz 2025).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixing {
    /// l: records in a mix.
    pub records: u32,
    /// The largest norm of a record.
    pub clip: f64,
    /// tau: the noise's deviation on each coordinate.
    pub deviation: f64,
    /// Whether the one-hot label is mixed and noised too; else it is the class that was drawn, published.
    pub noised_labels: bool,
    /// p: the chance that a given record is in a given mix, l over its class's records.
    pub rate: f64,
    /// T: mixes that a record may be in.
    pub samples: u32,
}

impl Mixing {
    /// e(a) = a Delta^2 / (2 tau^2), where a replaced record moves a mix by 2c/l and a label by sqrt(2)/l.
    fn plain(&self, order: f64) -> f64 {
        let squared = 2.0 * self.clip * self.clip + if self.noised_labels { 1.0 } else { 0.0 };
        let scale = f64::from(self.records) * self.deviation;
        order * squared / (scale * scale)
    }

    /// e'(a): amplified by sampling without replacement (Wang, Balle and Kasiviswanathan 2019, Theorem 9,
    /// in the form with `2 p^j C(a,j) exp((j-1) e(j))`, which holds for every order).
    fn amplified(&self, order: u32) -> f64 {
        let second = self.plain(2.0);
        // ln min{4 (exp e(2) - 1), 2 exp e(2)}.
        let least = (4f64.ln() + second.exp_m1().ln()).min(2f64.ln() + second);
        let rate = self.rate.ln();
        let terms = log_binomials(order).filter(|&(j, _)| j != 1);
        let terms = terms.map(|(j, choices)| match j {
            0 => 0.0,
            2 => 2.0 * rate + choices + least,
            _ => {
                let j = f64::from(j);
                2f64.ln() + j * rate + choices + (j - 1.0) * self.plain(j)
            }
        });
        log_sum(terms) / f64::from(order - 1)
    }

    /// The least epsilon that an integer order from 3 shows, and that order.
    ///
    /// # Errors
    /// A delta that is none; [`Error::Sampled`] for noise or a rate that is no positive number.
    pub fn epsilon(&self, delta: f64) -> Result<(f64, u32), Error> {
        let rate = if self.records == 0 { 0.0 } else { self.rate };
        check(rate, self.deviation)?;
        least_epsilon((3, self.samples), delta, |order| {
            f64::from(self.samples) * self.amplified(order)
        })
    }

    /// The least deviation at which epsilon is at most the one asked for; `self`'s own is not looked at.
    ///
    /// # Errors
    /// As [`Mixing::epsilon`]; [`fhaim_dp::Error::Epsilon`] outside [`MIN_EPSILON`]..=[`MAX_EPSILON`],
    /// [`Error::NoNoiseKeeps`] where no deviation up to 2^40 does.
    pub fn least_deviation(&self, epsilon: f64, delta: f64) -> Result<f64, Error> {
        least(epsilon, |deviation| {
            Ok(Self { deviation, ..*self }.epsilon(delta)?.0)
        })
    }
}

/// Refuses a rate or a deviation that has no cost.
fn check(rate: f64, noise: f64) -> Result<(), Error> {
    match rate > 0.0 && rate <= 1.0 && noise > 0.0 {
        true => Ok(()),
        false => Err(Error::Sampled { rate, noise }),
    }
}

/// The least noise at which a cost is at most the one asked for, found by halving.
fn least(epsilon: f64, cost: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
    if !(MIN_EPSILON..=MAX_EPSILON).contains(&epsilon) {
        return Err(fhaim_dp::Error::Epsilon(epsilon).into());
    }
    // Orders end at 256: however much noise there is, ln(1/delta) / 255 is left.
    let floor = cost(MAX_NOISE)?;
    if floor > epsilon {
        return Err(Error::NoNoiseKeeps { epsilon, floor });
    }
    let enough = |noise: f64| -> Result<bool, Error> { Ok(cost(noise)? <= epsilon) };
    let (mut low, mut high) = (0.0, 1.0);
    // It comes to its end at the largest noise at last, a power of two.
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

/// The least over orders from `first` of `cost(a) + ln(1/delta) / (a-1)`, rounded up.
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

/// `factor * ln(value)`, nothing where the factor is.
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

    /// The accountants' common example: 15 epochs of batches of 250 of 60,000 records.
    #[test]
    fn the_sampled_gaussian_gives_the_published_vector() {
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

    /// What is no budget is said to be none, and what no noise keeps is told from that.
    #[test]
    fn budgets_that_cannot_be_kept_are_refused_in_their_own_words() {
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

    /// With the whole table in every step it is the Gaussian mechanism: e(a) = a / (2 z^2).
    #[test]
    fn a_sample_of_everything_is_no_sample() {
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

    /// With the whole table in every step e(a) is a fraction: what is returned is not below it, and hardly above.
    #[test]
    fn rounding_is_against_the_spender() {
        for multiplier in [1.0, 2.0, 8.0, 64.0] {
            for steps in [1u32, 37, 100_000] {
                let whole = SampledGaussian {
                    rate: 1.0,
                    multiplier,
                    steps,
                };
                let (found, order) = whole.epsilon(1e-5).unwrap();
                // Powers of two and small integers: this side rounds once or twice.
                let rdp = f64::from(steps) * f64::from(order) / (2.0 * multiplier * multiplier);
                let exact = rdp + 1e5f64.ln() / f64::from(order - 1);
                assert!(
                    found > exact && found < exact * (1.0 + 1e-9) + 1e-5,
                    "{found} {exact}"
                );
            }
        }
    }

    /// FEDERATED's example: N = T = 60,000, ten classes, epsilon 10, noised labels.
    #[test]
    fn mixes_need_the_noise_that_the_mended_accounting_says() {
        for (records, expected) in [(4, 0.319), (32, 0.126)] {
            let mixing = Mixing {
                records,
                clip: 1.0,
                deviation: 1.0,
                noised_labels: true,
                rate: f64::from(records) * 10.0 / 60_000.0,
                samples: 60_000,
            };
            let deviation = mixing.least_deviation(10.0, 1e-5).unwrap();
            assert!(
                (deviation - expected).abs() < 1e-3,
                "{records}: {deviation}"
            );
            let published = Mixing {
                deviation,
                noised_labels: false,
                ..mixing
            };
            assert!(published.epsilon(1e-5).unwrap().0 < 10.0);
        }
    }

    /// The formula as it is published, with sums of numbers instead of their logarithms: amplified at order a.
    fn published(mixing: &Mixing, delta: f64, order: u32) -> f64 {
        let scale = f64::from(mixing.records) * mixing.deviation;
        let plain = |a: f64| a * 2.0 / (scale * scale);
        let choose = |n: u32, k: u32| {
            let factor = |i: u32| f64::from(n - i) / f64::from(i + 1);
            (0..k).map(factor).product::<f64>()
        };
        let doubled = 2.0 * plain(2.0).exp();
        let mut sum = 1.0;
        sum += mixing.rate.powi(2) * choose(order, 2) * (2.0 * doubled - 4.0).min(doubled);
        for j in 3..=order {
            let moment = (f64::from(j - 1) * plain(f64::from(j))).exp();
            sum += 2.0 * mixing.rate.powi(j as i32) * choose(order, j) * moment;
        }
        let steps = f64::from(mixing.samples);
        let less = f64::from(order - 1);
        (steps * sum.ln() + (1.0 / delta).ln()) / less
    }

    /// One to three runs at epsilon 20, as runs of so many more mixes, cost what the formula says.
    #[test]
    fn mixes_cost_what_the_formula_says() {
        let mut mixing = Mixing {
            records: 4,
            clip: 1.0,
            deviation: 1.0,
            noised_labels: false,
            rate: 4.0 / 400.0,
            samples: 400,
        };
        mixing.deviation = mixing.least_deviation(20.0, 1e-5).unwrap();
        for runs in 1..=3 {
            let longer = Mixing {
                samples: 400 * runs,
                ..mixing
            };
            let (found, order) = longer.epsilon(1e-5).unwrap();
            let at = |order| published(&longer, 1e-5, order);
            assert!((found / at(order) - 1.0).abs() < 1e-6, "{runs}: {found}");
            // No other order shows less; beyond 60 the sums pass what a double holds.
            let least = (3..=60).map(at).fold(f64::INFINITY, f64::min);
            assert!(
                (found / least - 1.0).abs() < 1e-6,
                "{runs}: {found}, {least}"
            );
        }
        for wrong in [
            Mixing {
                rate: 0.0,
                ..mixing
            },
            Mixing {
                records: 0,
                ..mixing
            },
        ] {
            let refused = wrong.epsilon(1e-5);
            assert!(matches!(refused, Err(Error::Sampled { .. })));
        }
    }

    /// e(a) of a step as it is published (Mironov, Talwar and Zhang 2019), in plain sums.
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
    fn sampled_gaussians_cost_what_the_formula_says() {
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
