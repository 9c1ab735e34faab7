//! Samples from the distributions that partitions use.

use rand::{Rng, RngCore};

/// Draws a standard normal variate (Box and Muller 1958).
pub(super) fn normal(rng: &mut dyn RngCore) -> f64 {
    let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// Draws the logarithm of a gamma variate of this shape (Marsaglia and Tsang 2000; below shape 1, with their boost of a
/// variate of shape + 1). Small shapes give variates below the smallest double, hence the logarithm.
fn log_gamma_variate(shape: f64, rng: &mut dyn RngCore) -> f64 {
    if shape < 1.0 {
        let uniform = 1.0 - rng.random::<f64>();
        return log_gamma_variate(shape + 1.0, rng) + uniform.ln() / shape;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let v = (1.0 + c * x).powi(3);
        if v <= 0.0 {
            continue;
        }
        let uniform = 1.0 - rng.random::<f64>();
        if uniform.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return (d * v).ln();
        }
    }
}

/// Draws shares from Dirichlet(concentration, ..., concentration) of this dimension.
pub(super) fn dirichlet(dimension: usize, concentration: f64, rng: &mut dyn RngCore) -> Vec<f64> {
    let logs: Vec<f64> = (0..dimension)
        .map(|_| log_gamma_variate(concentration, rng))
        .collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Draws an integer from 1 to `most` with probability proportional to x^-exponent.
pub(super) fn zipf(most: u32, exponent: f64, rng: &mut dyn RngCore) -> u32 {
    let weight = |x: u32| f64::from(x).powf(-exponent);
    let total: f64 = (1..=most).map(weight).sum();
    let mut left = rng.random::<f64>() * total;
    for x in 1..most {
        left -= weight(x);
        if left < 0.0 {
            return x;
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    /// The variance of a Dirichlet share is (1/K)(1 - 1/K) / (K a + 1).
    #[test]
    fn dirichlet_shares_have_their_mean_and_variance() {
        let mut rng = StdRng::seed_from_u64(4);
        for concentration in [0.1, 0.5, 3.0] {
            let (draws, dimension) = (20_000, 5);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..draws {
                let shares = dirichlet(dimension, concentration, &mut rng);
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                sum += shares[2];
                squares += shares[2] * shares[2];
            }
            let mean = sum / f64::from(draws);
            let variance = squares / f64::from(draws) - mean * mean;
            let expected = 0.2 * 0.8 / (5.0 * concentration + 1.0);
            assert!((mean - 0.2).abs() < 5.0 * (expected / f64::from(draws)).sqrt());
            assert!((variance / expected - 1.0).abs() < 0.06, "{concentration}");
        }
    }

    #[test]
    fn zipf_draws_follow_the_power_law() {
        let mut rng = StdRng::seed_from_u64(5);
        let mut counts = [0.0f64; 41];
        for _ in 0..100_000 {
            counts[zipf(40, 2.0, &mut rng) as usize] += 1.0;
        }
        assert_eq!(counts[0], 0.0);
        assert!((counts[1] / counts[2] - 4.0).abs() < 0.2);
        assert!((counts[1] / counts[4] - 16.0).abs() < 2.0);
    }
}
