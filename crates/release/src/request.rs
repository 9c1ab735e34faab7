//! A release: a statistic with noise of a given variance, and its price.

use fhaim_dp::{Price, Rho};
use serde::{Deserialize, Serialize};

use crate::{Error, MechanismJob, Statistic, Tariff};

/// Variance of one unit of noise. Level 0 of the ladder has sigma_b = 2.
pub const UNIT_VARIANCE: u64 = 4;

/// One release that a mechanism requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReleaseRequest {
    /// Number of the release in the job: 0, 1, 2, ... without gaps, across batches.
    pub number: u32,
    /// The released statistic.
    pub statistic: Statistic,
    /// The variance of the noise is exactly `UNIT_VARIANCE * variance_units`, for each holder if
    /// there are several. At least 1.
    pub variance_units: u64,
}

impl ReleaseRequest {
    /// Returns the standard deviation of one holder's noise.
    pub fn sigma(&self) -> f64 {
        (UNIT_VARIANCE as f64 * self.variance_units as f64).sqrt()
    }

    /// Returns the exact variance of one holder's noise.
    pub fn variance(&self) -> u128 {
        u128::from(UNIT_VARIANCE) * u128::from(self.variance_units)
    }

    /// Returns the price of the release: [`Statistic::price`] at its variance.
    ///
    /// # Errors
    /// Those of [`Statistic::price`].
    pub fn price(&self, tariff: &Tariff) -> Result<Price, Error> {
        self.statistic.price(self.variance_units, tariff)
    }

    /// Returns the total cost of the release within a job: Gaussian mechanism, the ladder's gap,
    /// and leak.
    ///
    /// # Errors
    /// Those of [`Statistic::price`]; [`Error::Overflow`].
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
    fn price_is_sensitivity_over_twice_the_variance() {
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
