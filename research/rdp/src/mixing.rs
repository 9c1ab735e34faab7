//! Accounting of mixes of records (DP-CDA).

use crate::{Error, MAX_ORDER, check, least, least_epsilon, log_binomials, log_sum};

/// DP-CDA: each sample is the mean of l records of one class, with noise (Saha, Tonoy and Imtiaz 2025).
///
/// One sample is (a, e'(a))-RDP for a record that is replaced by another of its class, where e'(a) is the smaller of
///
/// ```text
/// ln(1 - p + p exp((a-1) e(a))) / (a-1)
/// ln(1 + 2 p^2 C(a,2) B(2) + sum_{j=3..a} p^j C(a,j) M(j)) / (a-1)
/// M(j) = min(sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), exp((j-1) e(j)))
/// ```
///
/// Here e(a) = a s^2 / 2 is the cost without sampling, s is the sensitivity over the deviation of the noise, and
/// B(n) = E[(w-1)^n] for the ratio w of the densities of N(s, 1) and N(0, 1), at a draw from the latter. The first
/// line is joint convexity. The second has the form of Wang, Balle and Kasiviswanathan (2019) with smaller constants:
/// theirs are 4. docs/research/cape.md has the proof.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixing {
    /// l: number of records in a mix.
    pub records: u32,
    /// The largest L2 norm of a record.
    pub clip: f64,
    /// tau: standard deviation of the noise on each coordinate.
    pub deviation: f64,
    /// Whether the one-hot label is mixed and noised too. Otherwise the drawn class is published as it is.
    pub noised_labels: bool,
    /// p: probability that a given record is in a given mix: l over the number of records of its class.
    pub rate: f64,
    /// T: number of mixes that a record may be in.
    pub samples: u32,
}

impl Mixing {
    /// e(a) = a Delta^2 / (2 tau^2). Replacing a record moves a mix by 2c/l, and a label by sqrt(2)/l.
    fn plain(&self, order: f64) -> f64 {
        let squared = 2.0 * self.clip * self.clip + if self.noised_labels { 1.0 } else { 0.0 };
        let scale = f64::from(self.records) * self.deviation;
        order * squared / (scale * scale)
    }

    /// e'(a): the cost of one sample at an order.
    fn amplified(&self, order: u32, moments: &Moments) -> f64 {
        let rate = self.rate.ln();
        let terms = log_binomials(order).filter(|&(j, _)| j != 1);
        let terms = terms.map(|(j, choices)| {
            let chosen = f64::from(j);
            match j {
                0 => 0.0,
                2 => 2f64.ln() + 2.0 * rate + choices + moments.of(2),
                // The positive part of w - 1 is below w.
                _ => {
                    let ratio = (chosen - 1.0) * self.plain(chosen);
                    chosen * rate + choices + moments.of(j).min(ratio)
                }
            }
        });
        let all = f64::from(order - 1) * self.plain(order.into());
        let convex = log_sum([(1.0 - self.rate).ln(), rate + all].into_iter());
        log_sum(terms).min(convex) / f64::from(order - 1)
    }

    /// Returns the least epsilon over all integer orders, and the order that shows it.
    ///
    /// # Errors
    /// [`fhaim_dp::Error::Delta`] for a delta outside (0, 1); [`Error::Sampled`] for a rate outside (0, 1], or noise
    /// that is not positive.
    pub fn epsilon(&self, delta: f64) -> Result<(f64, u32), Error> {
        let rate = if self.records == 0 { 0.0 } else { self.rate };
        check(rate, self.deviation)?;
        let moments = Moments::new(self.plain(2.0).sqrt());
        least_epsilon((2, self.samples), delta, |order| {
            f64::from(self.samples) * self.amplified(order, &moments)
        })
    }

    /// Returns the least deviation that keeps epsilon at or below `epsilon`; ignores the deviation of `self`.
    ///
    /// # Errors
    /// Those of [`Mixing::epsilon`]; [`fhaim_dp::Error::Epsilon`] for an epsilon out of its range,
    /// [`Error::NoNoiseKeeps`] if no deviation up to 2^40 keeps it.
    pub fn least_deviation(&self, epsilon: f64, delta: f64) -> Result<f64, Error> {
        least(epsilon, |deviation| {
            Ok(Self { deviation, ..*self }.epsilon(delta)?.0)
        })
    }
}

/// Upper bounds of ln B(n) for even n up to [`MAX_ORDER`].
struct Moments {
    /// Item m is for n = 2m.
    of_pairs: Vec<f64>,
}

impl Moments {
    /// Shift from which `1 + E[w^n]` is used as bound of B(n).
    const LARGE: f64 = 2.0;
    /// Distance of nodes, and half the width of a window of nodes.
    const STEP: f64 = 0.25;
    const WINDOW: f64 = 16.0;
    /// Logarithm of the error of the sum over nodes, as a share of 1 + E[w^n].
    ///
    /// The density times (w-1)^n is a combination of unit Gaussians. For each of them, the trapezoid rule with step h
    /// is off by at most 2.1 exp(-2 pi^2 / h^2), which is exp(-315); the absolute coefficients add up to at most
    /// 2^n (1 + E[w^n]), and 2^n to less than exp(178). Outside the windows, the integrand is below the tail of a unit
    /// Gaussian, times at most 1 + E[w^n]; tails beyond 16 are below exp(-128).
    const SLACK: f64 = -120.0;

    /// Computes the bounds for two unit Gaussians whose means are `shift` apart.
    fn new(shift: f64) -> Self {
        let of_pairs = (0..=MAX_ORDER / 2).map(|pairs| match pairs {
            0 => 0.0,
            // Exact: B(2) = exp(e(2)) - 1.
            1 => (shift * shift).exp_m1().ln(),
            _ => Self::even(shift, f64::from(2 * pairs)),
        });
        Self {
            of_pairs: of_pairs.collect(),
        }
    }

    /// Returns a bound of ln B(n) for even n, by the trapezoid rule. All its terms are positive, unlike those of the
    /// binomial expansion, which cancel.
    fn even(shift: f64, n: f64) -> f64 {
        // ln(1 + E[w^n]) is a bound too.
        let ratio = log_sum([0.0, n * (n - 1.0) * shift * shift / 2.0].into_iter());
        if shift >= Self::LARGE {
            return ratio;
        }
        let peak = n * shift;
        let first = nodes(-Self::WINDOW, Self::WINDOW.min(peak - Self::WINDOW));
        let second = nodes(
            (peak - Self::WINDOW).max(-Self::WINDOW),
            peak + Self::WINDOW,
        );
        let density = (Self::STEP / std::f64::consts::TAU.sqrt()).ln();
        let node = |z: f64| {
            let excess = (shift * (z - shift / 2.0)).exp_m1().abs();
            density - z * z / 2.0 + n * excess.ln()
        };
        let slack = std::iter::once(ratio + Self::SLACK);
        log_sum(first.chain(second).map(node).chain(slack)).min(ratio)
    }

    /// Returns a bound of the logarithm of E[|w-1|^j], j at least 2: for odd j by the inequality of Cauchy and Schwarz.
    fn of(&self, j: u32) -> f64 {
        let of = |pairs: u32| {
            let known = self.of_pairs.get(pairs as usize).copied();
            known.unwrap_or(f64::INFINITY)
        };
        0.5 * (of(j / 2) + of(j.div_ceil(2)))
    }
}

/// Returns the multiples of the step from `start` up to, but without, `end`.
fn nodes(start: f64, end: f64) -> impl Iterator<Item = f64> {
    let [start, end] = [start, end].map(|z| (z / Moments::STEP).ceil());
    let count = (end - start).max(0.0) as u32;
    (0..count).map(move |node| (start + f64::from(node)) * Moments::STEP)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own values")]
mod tests {
    use super::*;

    fn mixing(records: u32, rate: f64, samples: u32) -> Mixing {
        Mixing {
            records,
            clip: 1.0,
            deviation: 1.0,
            noised_labels: false,
            rate,
            samples,
        }
    }

    fn choose(n: u32, k: u32) -> f64 {
        (0..k)
            .map(|i| f64::from(n - i) / f64::from(i + 1))
            .product()
    }

    /// B(n) by its binomial expansion, which is exact to a few digits at large shifts and low orders.
    fn expanded(shift: f64, n: u32) -> f64 {
        let of = |i: u32| {
            let i_1 = f64::from(i) - 1.0;
            let sign = if (n - i).is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * choose(n, i) * (f64::from(i) * i_1 * shift * shift / 2.0).exp()
        };
        (0..=n).map(of).sum()
    }

    #[test]
    fn moments_match_their_binomial_expansion() {
        for shift in [0.3, 1.0, 1.9] {
            let moments = Moments::new(shift);
            for n in [2, 4, 6, 8] {
                let found = moments.of(n).exp();
                let ratio = found / expanded(shift, n);
                assert!((ratio - 1.0).abs() < 1e-6, "{shift} {n}: {ratio}");
            }
        }
        // At small shifts w - 1 is nearly Gaussian of deviation `shift`: B(4) is 3 shift^4.
        let small = Moments::new(1e-6).of(4).exp() / 3e-24;
        assert!((small - 1.0).abs() < 1e-4, "{small}");
    }

    /// The formula as published by Wang, Balle and Kasiviswanathan (2019), with plain sums instead of logarithms.
    fn published(mixing: &Mixing, order: u32) -> f64 {
        let second = mixing.plain(2.0);
        let mut sum = 1.0;
        sum += mixing.rate.powi(2)
            * choose(order, 2)
            * (4.0 * second.exp_m1()).min(2.0 * second.exp());
        for j in 3..=order {
            let moment = (f64::from(j - 1) * mixing.plain(f64::from(j))).exp();
            sum += 2.0 * mixing.rate.powi(j as i32) * choose(order, j) * moment;
        }
        sum.ln() / f64::from(order - 1)
    }

    #[test]
    fn cost_of_a_mix_is_at_most_the_published_and_the_unsampled_one() {
        for deviation in [0.05, 0.2, 1.0, 5.0, 100.0] {
            for rate in [0.001, 0.1, 0.5, 1.0] {
                let mixing = Mixing {
                    deviation,
                    ..mixing(4, rate, 1)
                };
                let moments = Moments::new(mixing.plain(2.0).sqrt());
                for order in 2..=12 {
                    let found = mixing.amplified(order, &moments);
                    assert!(found <= published(&mixing, order) * (1.0 + 1e-9));
                    let plain = mixing.plain(order.into());
                    assert!(found <= plain * (1.0 + 1e-9), "{found} {plain}");
                }
            }
        }
    }

    /// Returns the Renyi divergence of two mixtures of unit Gaussians with equal weights, by numerical integration.
    fn divergence(order: f64, first: &[f64], second: &[f64]) -> f64 {
        // Constants of the densities cancel.
        let log_density = |means: &[f64], z: f64| {
            let terms = means.iter().map(|mean| -(z - mean).powi(2) / 2.0);
            log_sum(terms) - (means.len() as f64).ln()
        };
        let step = 0.1;
        let nodes = (-600..600).map(|node| f64::from(node) * step);
        let moment =
            nodes.map(|z| order * log_density(first, z) + (1.0 - order) * log_density(second, z));
        (log_sum(moment) + (step / std::f64::consts::TAU.sqrt()).ln()) / (order - 1.0)
    }

    /// Returns the sums of all subsets of two records.
    fn sums(records: &[f64]) -> Vec<f64> {
        let later = |n: usize| records[n + 1..].iter().map(move |other| records[n] + other);
        (0..records.len()).flat_map(later).collect()
    }

    /// All tables of four records of -c, 0 or c, of which the first is replaced by every other value: the exact
    /// divergence of a mix of one or of two of them is never above the bound.
    #[test]
    fn cost_of_a_mix_bounds_the_exact_divergence() {
        let mut largest: f64 = 0.0;
        for shift in [0.5, 1.0, 2.5] {
            // Unit noise, and records of norm c move a sum by at most 2c: the shift.
            let values = [-0.5, 0.0, 0.5].map(|value| value * shift);
            for others in (0..27).map(|n| [n % 3, n / 3 % 3, n / 9].map(|i: usize| values[i])) {
                for (one, other) in [(0, 2), (2, 0), (1, 2), (1, 0), (0, 1)] {
                    let table = |value: usize| [&[values[value]], &others[..]].concat();
                    let [before, after] = [table(one), table(other)];
                    for (rate, first, second) in [
                        (0.25, before.clone(), after.clone()),
                        (0.5, sums(&before), sums(&after)),
                    ] {
                        let mixing = Mixing {
                            deviation: 2.0 / shift,
                            ..mixing(1, rate, 1)
                        };
                        let moments = Moments::new(mixing.plain(2.0).sqrt());
                        for order in [2, 3, 4, 7, 16] {
                            let exact = divergence(order.into(), &first, &second);
                            let bound = mixing.amplified(order, &moments);
                            assert!(
                                exact <= bound * (1.0 + 1e-9),
                                "{shift} {order}: {exact} {bound}"
                            );
                            largest = largest.max(exact / bound);
                        }
                    }
                }
            }
        }
        assert!(largest > 0.8, "the bound is loose: {largest}");
    }

    #[test]
    fn epsilon_falls_as_noise_grows() {
        for rate in [0.01, 0.4, 1.0] {
            let mut last = f64::INFINITY;
            for step in 0..40 {
                let deviation = 0.05 * 1.5f64.powi(step);
                let mixing = Mixing {
                    deviation,
                    ..mixing(4, rate, 400)
                };
                let epsilon = mixing.epsilon(1e-5).unwrap().0;
                assert!(epsilon <= last, "{rate} {deviation}: {epsilon} {last}");
                last = epsilon;
            }
            // What remains is ln(1/delta) / 255.
            assert!(last < 0.0452, "{last}");
        }
    }

    /// A sum of 1000 of 3,000 records with noise of deviation 38 keeps epsilon 10 without any amplification, for 3,600
    /// mixes of records that move a sum by 2: the cost is at most that of the plain Gaussian.
    #[test]
    fn budget_that_simple_noise_keeps_is_within_reach() {
        let mixing = mixing(1000, 1.0 / 3.0, 3000);
        let deviation = mixing.least_deviation(10.0, 1e-5).unwrap();
        let unsampled = Mixing {
            rate: 1.0,
            ..mixing
        }
        .least_deviation(10.0, 1e-5)
        .unwrap();
        assert!(deviation < 0.6 * unsampled, "{deviation} {unsampled}");
    }

    /// The example of docs/research/cape.md: N = T = 60,000, ten classes, epsilon 10, noised labels.
    #[test]
    fn mixes_need_less_noise_than_by_the_published_constants() {
        for (records, published) in [(4, 0.319), (32, 0.126)] {
            let mixing = Mixing {
                noised_labels: true,
                ..mixing(records, f64::from(records) * 10.0 / 60_000.0, 60_000)
            };
            let deviation = mixing.least_deviation(10.0, 1e-5).unwrap();
            assert!(deviation < published, "{records}: {deviation}");
        }
    }

    #[test]
    fn mixes_of_no_records_are_rejected() {
        for wrong in [mixing(4, 0.0, 1), mixing(0, 0.1, 1), mixing(4, 1.1, 1)] {
            let refused = wrong.epsilon(1e-5);
            assert!(matches!(refused, Err(Error::Sampled { .. })));
        }
    }
}
