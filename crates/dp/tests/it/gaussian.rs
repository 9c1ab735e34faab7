//! Tests the sampler against its distribution and against libprio's sampler.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_dp::{DiscreteGaussian, Error};
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

fn draw(scale: u64, count: usize, seed: u64) -> Vec<i64> {
    let gaussian = DiscreteGaussian::new(scale).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    (0..count).map(|_| gaussian.sample(&mut rng)).collect()
}

/// Returns the probabilities at `-reach..=reach` by definition, normalised over at least twelve
/// scales.
fn pmf(variance: f64, reach: i64) -> Vec<f64> {
    let mass = |y: i64| (-((y * y) as f64) / (2.0 * variance)).exp();
    let far = 3 * reach;
    let total: f64 = (-far..=far).map(mass).sum();
    (-reach..=reach).map(|y| mass(y) / total).collect()
}

fn histogram(samples: &[i64], reach: i64) -> Vec<f64> {
    let mut counts = vec![0.0; (2 * reach + 1) as usize];
    for sample in samples {
        counts[(sample + reach) as usize] += 1.0;
    }
    counts
}

/// Returns the chi-square statistic in standard deviations from its mean (Wilson and Hilferty
/// 1931), over cells with an expected count of at least ten. The other cells are pooled.
fn chi_square_deviation(counts: &[f64], expected: &[f64]) -> f64 {
    let mut pooled = (0.0, 0.0);
    let mut cells: Vec<(f64, f64)> = Vec::new();
    for (&count, &expect) in counts.iter().zip(expected) {
        if expect >= 10.0 {
            cells.push((count, expect));
        } else {
            pooled = (pooled.0 + count, pooled.1 + expect);
        }
    }
    if pooled.1 >= 10.0 {
        cells.push(pooled);
    }
    let freedom = cells.len() as f64 - 1.0;
    let statistic: f64 = cells.iter().map(|(c, e)| (c - e).powi(2) / e).sum();
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

fn deviation_from(samples: &[i64], variance: f64) -> f64 {
    let reach = samples.iter().map(|y| y.abs()).max().unwrap() + 40;
    let expected: Vec<f64> = pmf(variance, reach)
        .iter()
        .map(|p| p * samples.len() as f64)
        .collect();
    chi_square_deviation(&histogram(samples, reach), &expected)
}

#[test]
fn samples_follow_the_exact_probabilities() {
    for scale in [1, 2, 3, 4, 7, 16, 100, 256] {
        let samples = draw(scale, 1_000_000, scale);
        let deviation = deviation_from(&samples, (scale * scale) as f64);
        assert!(
            deviation.abs() < 3.5,
            "scale {scale}: {deviation} deviations"
        );
    }
}

/// The same test must detect a rounded continuous Gaussian, whose variance is 1/12 larger.
#[test]
fn chi_square_test_detects_a_rounded_continuous_gaussian() {
    let samples = draw(2, 1_000_000, 2);
    assert!(deviation_from(&samples, 4.0 + 1.0 / 12.0) > 10.0);
}

/// Variance and tails from the exact series. At these scales they differ visibly from those of a
/// rounded continuous Gaussian (at scale 1, |y| >= 2 has probability .1171, not .1336).
#[test]
fn variance_and_tails_agree_with_the_exact_series() {
    for scale in [1u64, 2, 5] {
        let count = 2_000_000;
        let samples = draw(scale, count, 100 + scale);
        let reach = 40 * scale as i64;
        let pmf = pmf((scale * scale) as f64, reach);
        let probability = |low: i64| -> f64 {
            (-reach..=reach)
                .zip(&pmf)
                .filter(|(y, _)| y.abs() >= low)
                .map(|(_, p)| p)
                .sum()
        };
        let series: f64 = (-reach..=reach)
            .zip(&pmf)
            .map(|(y, p)| (y * y) as f64 * p)
            .sum();
        let seen = samples.iter().map(|y| (y * y) as f64).sum::<f64>() / count as f64;
        assert!((seen / series - 1.0).abs() < 4.0 * (2.0 / count as f64).sqrt());
        for low in [scale as i64, 2 * scale as i64, 4 * scale as i64] {
            let expected = probability(low);
            let seen = samples.iter().filter(|y| y.abs() >= low).count() as f64 / count as f64;
            let error = (expected * (1.0 - expected) / count as f64).sqrt();
            assert!(
                (seen - expected).abs() < 4.0 * error,
                "{scale} {low}: {seen} {expected}"
            );
        }
    }
}

/// First four moments, at scales for which tables of probabilities would be too large.
#[test]
fn moments_agree_at_large_scales() {
    for level in [10u32, 19, 26] {
        let scale = 2u64 << level;
        let count = 400_000;
        let samples = draw(scale, count, u64::from(level));
        let moment = |power: i32| {
            let sum: f64 = samples
                .iter()
                .map(|&y| (y as f64 / scale as f64).powi(power))
                .sum();
            sum / f64::from(count as u32)
        };
        let n = count as f64;
        assert!(moment(1).abs() < 4.0 / n.sqrt(), "mean");
        assert!((moment(2) - 1.0).abs() < 4.0 * (2.0 / n).sqrt(), "variance");
        assert!(moment(3).abs() < 4.0 * (15.0 / n).sqrt(), "skewness");
        assert!(
            (moment(4) - 3.0).abs() < 4.0 * (96.0 / n).sqrt(),
            "kurtosis"
        );
        // All bits are used: at these scales the low bits are practically uniform.
        let mut low = [0.0; 16];
        for y in &samples {
            low[y.rem_euclid(16) as usize] += 1.0;
        }
        let deviation = chi_square_deviation(&low, &[n / 16.0; 16]);
        assert!(
            deviation.abs() < 3.5,
            "low bits at level {level}: {deviation}"
        );
    }
}

/// Two samples of one distribution: from this sampler and from libprio's implementation of the same
/// algorithms.
#[test]
fn samples_agree_with_libprio() {
    use prio::dp::{Rational, distributions::DiscreteGaussian as Libprio};
    use rand_prio::{SeedableRng as _, distr::Distribution as _, rngs::StdRng};

    for scale in [2u64, 8] {
        let libprio = Libprio::new(Rational::from_unsigned(scale, 1u64).unwrap()).unwrap();
        let mut rng = StdRng::seed_from_u64(scale);
        let theirs: Vec<i64> = (0..200_000)
            .map(|_| libprio.sample(&mut rng).try_into().unwrap())
            .collect();
        let ours = draw(scale, theirs.len(), 7 * scale);
        let reach = 12 * scale as i64;
        let (a, b) = (histogram(&ours, reach), histogram(&theirs, reach));
        // The two-sample statistic (a - b)^2 / (a + b) is 2 (a - m)^2 / m with m = (a + b) / 2.
        let mean: Vec<f64> = a.iter().zip(&b).map(|(a, b)| (a + b) / 2.0).collect();
        let scaled: Vec<f64> = a
            .iter()
            .zip(&mean)
            .map(|(a, m)| m + (a - m) * std::f64::consts::SQRT_2)
            .collect();
        let deviation = chi_square_deviation(&scaled, &mean);
        assert!(
            deviation.abs() < 3.5,
            "scale {scale}: {deviation} deviations"
        );
    }
}

#[test]
fn samples_are_determined_by_the_seed() {
    assert_eq!(draw(1 << 20, 100, 5), draw(1 << 20, 100, 5));
    assert_ne!(draw(1 << 20, 100, 5), draw(1 << 20, 100, 6));
}

#[test]
fn scales_outside_the_range_are_refused() {
    for scale in [0, DiscreteGaussian::MAX_SCALE + 1, u64::MAX] {
        assert_eq!(DiscreteGaussian::new(scale), Err(Error::Scale(scale)));
    }
}
