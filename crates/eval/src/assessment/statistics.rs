//! Two-sample tests and the differences that two samples of the same population show.

use std::f64::consts::PI;

/// Numbers of records of the real and the synthetic table, or of a part of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sizes {
    pub(super) real: f64,
    pub(super) synthetic: f64,
}

impl Sizes {
    pub(super) fn of(real: usize, synthetic: usize) -> Self {
        Self {
            real: real as f64,
            synthetic: synthetic as f64,
        }
    }

    /// Returns the variance of the difference of two means, in units of the variance of one record.
    pub(super) fn variance(self) -> f64 {
        1.0 / self.real.max(1.0) + 1.0 / self.synthetic.max(1.0)
    }
}

/// Returns the logarithm of the gamma function (Lanczos 1964, with g = 7), for positive arguments.
pub(super) fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let sum: f64 = (1..)
        .zip(COEFFICIENTS)
        .fold(0.999_999_999_999_809_9, |sum, (n, c)| {
            sum + c / (x + f64::from(n))
        });
    let t = x + 7.5;
    0.5 * (2.0 * PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// Returns the probability that a chi-square variable exceeds `value`.
///
/// This is the upper regularised incomplete gamma function, by its series for small values and by its continued
/// fraction for large ones (Abramowitz and Stegun 1964, 6.5.29 and 6.5.31).
pub(super) fn chi_square_tail(value: f64, freedom: f64) -> f64 {
    if value <= 0.0 || freedom <= 0.0 {
        return 1.0;
    }
    let (a, x) = (freedom / 2.0, value / 2.0);
    let factor = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        while term > sum * 1e-15 {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        return (1.0 - factor * sum).clamp(0.0, 1.0);
    }
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for n in 1..10_000 {
        let n = f64::from(n);
        let numerator = -n * (n - a);
        b += 2.0;
        d = 1.0 / (numerator * d + b);
        c = b + numerator / c;
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (factor * fraction).clamp(0.0, 1.0)
}

/// Returns the value that a standard normal variable exceeds in absolute value with probability `p`.
pub(super) fn normal_limit(p: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 40.0f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match chi_square_tail(middle * middle, 1.0) > p {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Returns the probability of a normal variable's absolute value above `z` standard deviations.
pub(super) fn normal_tails(z: f64) -> f64 {
    chi_square_tail(z * z, 1.0)
}

/// Returns the probability that the Kolmogorov-Smirnov distance of two samples exceeds `distance`, with the correction
/// of Stephens 1970 for small samples. It is an upper bound if numbers repeat.
pub(super) fn kolmogorov_tail(distance: f64, sizes: Sizes) -> f64 {
    let root = (1.0 / sizes.variance()).sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    if scaled < 0.3 {
        return 1.0;
    }
    let term = |j: i32| {
        let sign = if j % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(j * j) * scaled * scaled).exp()
    };
    (1..=20).map(term).sum::<f64>().clamp(0.0, 1.0)
}

/// Mean of the Kolmogorov distribution: the expected distance of two samples, times the root of [`Sizes::variance`].
pub(super) const KOLMOGOROV_MEAN: f64 = 0.868_731_160_636_159_8;

/// Returns Cohen's h of two shares (Cohen 1988, chapter 6): the difference of their arcsine transforms.
///
/// It is large for absolute changes of common values and for relative changes of rare ones: from 0.50 to 0.60 it is
/// 0.20, from 0.05 to 0.10 it is 0.19, and from 0.002 to 0.037 it is 0.30. Its variance depends only on the sizes.
pub(super) fn cohens_h(real: f64, synthetic: f64) -> f64 {
    let arc = |share: f64| 2.0 * share.clamp(0.0, 1.0).sqrt().asin();
    (arc(real) - arc(synthetic)).abs()
}

/// Returns the two-sided mid-p value of the exact test of Fisher for a count in each of two samples (Lancaster 1961).
pub(super) fn two_counts(counts: Sizes, sizes: Sizes) -> f64 {
    let Sizes {
        real: found,
        synthetic: other,
    } = counts;
    let (total, all) = (found + other, sizes.real + sizes.synthetic);
    if total <= 0.0 || total >= all {
        return 1.0;
    }
    let choose = |n: f64, k: f64| ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    let at = choose(sizes.real, found) + choose(sizes.synthetic, other) - choose(all, total);
    let at = at.exp();
    // Add the probabilities of counts further from the expected one, until they do not matter.
    let is_above = found * sizes.synthetic >= other * sizes.real;
    let step = if is_above { 1.0 } else { -1.0 };
    let (mut x, mut term, mut sum) = (found, at, at / 2.0);
    loop {
        let ratio = if is_above {
            (sizes.real - x) * (total - x) / ((x + 1.0) * (sizes.synthetic - total + x + 1.0))
        } else {
            x * (sizes.synthetic - total + x) / ((sizes.real - x + 1.0) * (total - x + 1.0))
        };
        if ratio.is_nan() || ratio <= 0.0 {
            break;
        }
        term *= ratio;
        x += step;
        sum += term;
        if term <= sum * 1e-12 {
            break;
        }
    }
    (2.0 * sum).min(1.0)
}

/// Counts of the same cells in both tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    pub(super) real: Vec<f64>,
    pub(super) synthetic: Vec<f64>,
}

/// Comparison of the counts of all cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CellComparison {
    /// Total variation distance.
    pub(super) distance: f64,
    /// Mean distance of two samples of the same population.
    pub(super) expected: f64,
    /// Probability of a larger chi-square statistic for two samples of the same population.
    pub(super) p: f64,
    /// Degrees of freedom of that statistic.
    pub(super) freedom: f64,
}

/// Cells with fewer expected records in one of the tables are taken together in chi-square tests.
const MIN_EXPECTED: f64 = 5.0;

impl Cells {
    fn sizes(&self) -> Sizes {
        Sizes {
            real: self.real.iter().sum::<f64>().max(1.0),
            synthetic: self.synthetic.iter().sum::<f64>().max(1.0),
        }
    }

    /// Compares the two distributions.
    pub(super) fn compare(&self) -> CellComparison {
        let sizes = self.sizes();
        let all = sizes.real + sizes.synthetic;
        let (mut distance, mut expected, mut statistic, mut cells) = (0.0, 0.0, 0.0, 0.0);
        let mut rare = (0.0, 0.0);
        let mut add = |real: f64, synthetic: f64| {
            let share = (real + synthetic) / all;
            let apart = real / sizes.real - synthetic / sizes.synthetic;
            statistic += apart * apart / (share * sizes.variance());
            cells += 1.0;
        };
        for (&real, &synthetic) in self.real.iter().zip(&self.synthetic) {
            let share = (real + synthetic) / all;
            if share == 0.0 {
                continue;
            }
            distance += (real / sizes.real - synthetic / sizes.synthetic).abs() / 2.0;
            expected += expected_difference(share, sizes) / 2.0;
            match share * sizes.real.min(sizes.synthetic) < MIN_EXPECTED {
                true => rare = (rare.0 + real, rare.1 + synthetic),
                false => add(real, synthetic),
            }
        }
        if rare.0 + rare.1 > 0.0 {
            add(rare.0, rare.1);
        }
        let freedom = cells - 1.0;
        CellComparison {
            distance,
            expected,
            p: chi_square_tail(statistic, freedom),
            freedom,
        }
    }
}

/// Returns the mean absolute difference of a share in two samples of a population in which it is `share`.
pub(super) fn expected_difference(share: f64, sizes: Sizes) -> f64 {
    let normal = (2.0 / PI * share * (1.0 - share) * sizes.variance()).sqrt();
    // A cell with less than a record is usually in one table only.
    normal.min(2.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_match_published_values() {
        // Critical values of chi-square tables.
        assert!((chi_square_tail(3.841_458_8, 1.0) - 0.05).abs() < 1e-7);
        assert!((chi_square_tail(18.307_038, 10.0) - 0.05).abs() < 1e-7);
        assert!((chi_square_tail(149.449_25, 100.0) / 0.001 - 1.0).abs() < 1e-4);
        assert!((normal_limit(0.05) - 1.959_964).abs() < 1e-5);
        assert!((ln_gamma(11.0) - 3_628_800f64.ln()).abs() < 1e-10);
        // 1.358 is the 5% point of the Kolmogorov distribution.
        let sizes = Sizes::of(2_000_000, 2_000_000);
        assert!((kolmogorov_tail(1.3581e-3, sizes) - 0.05).abs() < 1e-3);
    }

    #[test]
    fn exact_test_matches_hand_computed_probabilities() {
        // All 3 of 3 against 0 of 3: probability 1/20 on one side; mid-p of both sides is 1/20.
        let p = two_counts(Sizes::of(3, 0), Sizes::of(3, 3));
        assert!((p - 0.05).abs() < 1e-12, "{p}");
        let p = two_counts(Sizes::of(0, 3), Sizes::of(3, 3));
        assert!((p - 0.05).abs() < 1e-12, "{p}");
        // 2 of 3 against 1 of 3: (9/20 / 2 + 1/20) * 2.
        let p = two_counts(Sizes::of(2, 1), Sizes::of(3, 3));
        assert!((p - 0.55).abs() < 1e-12, "{p}");
        assert_eq!(two_counts(Sizes::of(0, 0), Sizes::of(9, 9)), 1.0);
    }

    #[test]
    fn effect_sizes_match_cohens_table() {
        assert!((cohens_h(0.5, 0.6) - 0.201_36).abs() < 1e-4);
        assert!((cohens_h(0.05, 0.1) - 0.192_2).abs() < 1e-3);
    }
}
