//! A release: a statistic with noise of a variance, and its price.

use fhaim_dp::{Price, Rho};
use serde::{Deserialize, Serialize};

use crate::{Error, MechanismJob, Statistic, Tariff};

/// Variance of one unit of noise: level 0 of the ladder has sigma_b = 2.
pub const UNIT_VARIANCE: u64 = 4;

/// One release a mechanism asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReleaseRequest {
    /// Position of the release in the job: 0, 1, 2, ... without gaps, across batches.
    pub number: u32,
    /// What is released.
    pub statistic: Statistic,
    /// The variance of the noise is exactly `UNIT_VARIANCE * variance_units`, of each holder's
    /// where there are several; at least 1.
    pub variance_units: u64,
}

impl ReleaseRequest {
    /// The standard deviation of one holder's noise.
    pub fn sigma(&self) -> f64 {
        (UNIT_VARIANCE as f64 * self.variance_units as f64).sqrt()
    }

    /// The variance of one holder's noise, exactly.
    pub fn variance(&self) -> u128 {
        u128::from(UNIT_VARIANCE) * u128::from(self.variance_units)
    }

    /// What the release costs: [`Statistic::price`] at its variance.
    ///
    /// # Errors
    /// As [`Statistic::price`].
    pub fn price(&self, tariff: &Tariff) -> Result<Price, Error> {
        self.statistic.price(self.variance_units, tariff)
    }

    /// All that the release costs within a job: the Gaussian mechanism, the ladder's gap, the leak.
    ///
    /// # Errors
    /// As [`Statistic::price`]; [`Error::Overflow`].
    pub fn cost(&self, job: &MechanismJob) -> Result<Rho, Error> {
        let price = self.price(&job.tariff())?;
        price.total().ok_or(Error::Overflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    #[test]
    fn the_price_of_noise_is_sensitivity_over_twice_the_variance() {
        let request = ReleaseRequest {
            number: 0,
            statistic: Statistic::OneWay(Axis::identity(0, 4)),
            variance_units: 25,
        };
        let price = request.price(&Tariff::new(100)).unwrap();
        assert_eq!(price.gaussian, Rho::ratio_up(1, 200).unwrap());
        assert_eq!(price.leak, Rho::ZERO);
        assert!((request.sigma() - 10.0).abs() < 1e-12);
        let none = ReleaseRequest {
            variance_units: 0,
            ..request
        };
        assert_eq!(none.price(&Tariff::new(100)), Err(Error::NoNoise));
    }
}
