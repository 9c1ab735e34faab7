//! Noise that several parties draw together, so that neither a party nor the server that adds their
//! numbers knows the noise of the sum.
//!
//! Of S parties, F may share their draws with each other and with a server that sees the sum. Each
//! party draws a discrete Gaussian of variance v / (S - F), so the noise of the other parties has
//! variance at least v. The price is that of noise of variance v, plus the gap of S - F such
//! samples (KLS21, Theorem 9, as in [`crate::gap_rho`]).

use std::f64::consts::PI;

use rand_core::RngCore;
use zeroize::Zeroizing;

use crate::price::release_rho;
use crate::{BASE_SCALE, BASE_VARIANCE, Digits, DiscreteGaussian, Error, Rho};

/// Factor on a gap, so that rounding in its evaluation cannot make it too small.
const MARGIN: f64 = 1.0 + 1e-6;

/// The division of noise of some variance among parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseShares {
    variance_units: u64,
    parties: u32,
    colluders: u32,
}

impl NoiseShares {
    /// Divides noise of variance `4 variance_units` among S parties of which less than a third
    /// collude: F = ceil(S / 3) - 1.
    ///
    /// # Errors
    /// [`Error::NoNoise`] for a variance of zero, or for no parties.
    pub fn new(variance_units: u64, parties: u32) -> Result<Self, Error> {
        Self::with_colluders(
            variance_units,
            parties,
            parties.div_ceil(3).saturating_sub(1),
        )
    }

    /// Divides noise so that any `parties - colluders` of the parties make variance `4
    /// variance_units`.
    ///
    /// # Errors
    /// [`Error::NoNoise`] for a variance of zero, or if all parties collude.
    pub fn with_colluders(
        variance_units: u64,
        parties: u32,
        colluders: u32,
    ) -> Result<Self, Error> {
        if variance_units == 0 || colluders >= parties {
            return Err(Error::NoNoise(0));
        }
        Ok(Self {
            variance_units,
            parties,
            colluders,
        })
    }

    /// Returns F: the number of parties that may share their draws.
    pub fn colluders(&self) -> u32 {
        self.colluders
    }

    /// Returns the variance of one party's noise in units of 4: v / (S - F), rounded up.
    pub fn share_units(&self) -> u64 {
        let honest = u64::from(self.parties - self.colluders());
        self.variance_units.div_ceil(honest)
    }

    /// Returns the variance of the sum of all parties' noise in units of 4, for a fit.
    pub fn sum_units(&self) -> u64 {
        self.share_units().saturating_mul(u64::from(self.parties))
    }

    /// Returns the cost of `cells` integers that one record changes by at most `delta2_squared`
    /// (squared L2 norm): the Gaussian mechanism at the requested variance, and the gap.
    ///
    /// # Errors
    /// [`Error::Rho`] or [`Error::Ratio`] for a cost of 2^48 or more.
    pub fn price(&self, delta2_squared: u128, cells: u64) -> Result<Rho, Error> {
        let gaussian = release_rho(delta2_squared, self.variance_units, 1)?;
        let gap = self.gap(delta2_squared, cells)?;
        gaussian
            .checked_add(gap)
            .ok_or(Error::Rho(gaussian.to_f64()))
    }

    /// Returns only the gap: `(Delta / sigma) tau sqrt(d) + tau^2 d / 2`, rounded up. It is zero if
    /// a single sample makes all the noise.
    ///
    /// # Errors
    /// [`Error::Rho`] if it does not fit.
    pub fn gap(&self, delta2_squared: u128, cells: u64) -> Result<Rho, Error> {
        let honest = self.parties - self.colluders();
        let share: usize = Digits::of(self.share_units()).iter().map(|(_, d)| d).sum();
        if honest == 1 && share <= 1 {
            return Ok(Rho::ZERO);
        }
        let tau = 2.0 * self.log_ratio_bound(honest);
        let variance = self.variance_units as f64 * BASE_VARIANCE as f64;
        let ratio = (delta2_squared as f64 / variance).sqrt();
        let spread = tau * (cells as f64).sqrt();
        let gap = Rho::from_f64_up((ratio * spread + spread * spread / 2.0) * MARGIN)?;
        Ok(gap.max(Rho::LEAST))
    }

    /// Returns a bound on |ln(P\[sum = y\] / P\[discrete Gaussian = y\])| for the samples of
    /// `honest` parties, added one after the other.
    fn log_ratio_bound(&self, honest: u32) -> f64 {
        let (mut sum, mut gamma) = (0.0, 0.0);
        for _ in 0..honest {
            for (level, digit) in Digits::of(self.share_units()).iter() {
                let variance = (BASE_VARIANCE << (2 * level)) as f64;
                for _ in 0..digit {
                    if sum > 0.0 {
                        gamma += 5.0 * (-2.0 * PI * PI / (1.0 / sum + 1.0 / variance)).exp();
                    }
                    sum += variance;
                }
            }
        }
        gamma * MARGIN
    }

    /// Checks that a party can draw its noise.
    ///
    /// # Errors
    /// [`Error::Scale`] for a variance beyond the samplers' range.
    pub fn check(&self) -> Result<(), Error> {
        self.samples().map(drop)
    }

    /// Returns the distributions that make up a party's noise on a cell, with the number of samples
    /// of each.
    fn samples(&self) -> Result<Vec<(DiscreteGaussian, usize)>, Error> {
        let digits = Digits::of(self.share_units());
        let sample = |(level, digit): (usize, usize)| {
            let scale = BASE_SCALE
                .checked_shl(level as u32)
                .ok_or(Error::Scale(u64::MAX))?;
            Ok((DiscreteGaussian::new(scale)?, digit))
        };
        digits.iter().map(sample).collect()
    }

    /// Draws one party's noise on `cells` integers.
    ///
    /// # Errors
    /// [`Error::Scale`] for a variance beyond the samplers' range.
    pub fn draw<R: RngCore + ?Sized>(
        &self,
        cells: usize,
        rng: &mut R,
    ) -> Result<Zeroizing<Vec<i64>>, Error> {
        let mut noise = Zeroizing::new(vec![0i64; cells]);
        for (gaussian, digit) in self.samples()? {
            for sum in noise.iter_mut() {
                for _ in 0..digit {
                    // The sum fits: scales are at most 2^27, and there are at most 3 samples at
                    // each level.
                    *sum += gaussian.sample(rng);
                }
            }
        }
        Ok(noise)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's own values")]
mod tests {
    use super::*;
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    #[test]
    fn honest_parties_make_the_requested_variance() {
        for units in [1u64, 3, 16, 100, 281] {
            for parties in 1..=40u32 {
                let shares = NoiseShares::new(units, parties).unwrap();
                let honest = u64::from(parties - shares.colluders());
                assert!(shares.colluders() * 3 < parties && honest >= 1);
                assert!(shares.share_units() * honest >= units);
                assert!((shares.share_units() - 1) * honest < units);
                assert_eq!(
                    shares.sum_units(),
                    shares.share_units() * u64::from(parties)
                );
            }
        }
        let colluders = |parties| NoiseShares::new(1, parties).unwrap().colluders();
        assert_eq!([1, 2, 3, 4, 6, 7, 10].map(colluders), [0, 0, 0, 1, 1, 2, 3]);
    }

    #[test]
    fn sum_of_shares_has_the_stated_variance() {
        let shares = NoiseShares::new(37, 5).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(9);
        let cells = 40_000;
        let mut sum = vec![0i64; cells];
        for _ in 0..5 {
            let noise = shares.draw(cells, &mut rng).unwrap();
            sum.iter_mut().zip(noise.iter()).for_each(|(s, n)| *s += n);
        }
        let mean = sum.iter().sum::<i64>() as f64 / cells as f64;
        let variance = sum.iter().map(|&s| (s * s) as f64).sum::<f64>() / cells as f64;
        let expected = 4.0 * shares.sum_units() as f64;
        // Five standard deviations of each estimate.
        assert!(mean.abs() < 5.0 * (expected / cells as f64).sqrt());
        assert!((variance / expected - 1.0).abs() < 5.0 * (2.0 / cells as f64).sqrt());
    }

    #[test]
    fn sums_of_samples_are_charged_a_gap_but_single_samples_are_not() {
        let price = |units, parties| NoiseShares::new(units, parties).unwrap().price(1, 1000);
        assert_eq!(price(16, 1), Rho::ratio_up(1, 128));
        assert!(price(16, 2).unwrap() > Rho::ratio_up(1, 128).unwrap());
        assert!(price(16, 10).unwrap().to_f64() < 1.0 / 128.0 + 1e-12);
        assert_eq!(NoiseShares::new(0, 1), Err(Error::NoNoise(0)));
        assert_eq!(NoiseShares::new(1, 0), Err(Error::NoNoise(0)));
    }
}
