//! The total, the 1-ways and the tables of digits, which are the first releases of mechanisms that
//! measure residual contrasts.

use fhaim_domain::{Clique, Domain};
use fhaim_dp::Rho;
use fhaim_pgm::Measurement;

use super::block::Block;
use super::digits;
use super::prior::expected_counts;
use crate::Error;
use crate::account::{Offer, Release, ReleaseAccount, shares};
use fhaim_release::{Holders, MechanismJob};

/// Weight of the total's noise in the workload error, for each unit of workload weight.
const TOTAL_COST: f64 = 0.7;

/// A statistic that is measured once or more. Its table is the inverse-variance mean of the
/// measured tables.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) block: Block,
    table: Vec<f64>,
    /// 1 / s^2, summed over the measurements.
    precision: f64,
    /// The rho spent on it.
    pub(crate) rho: f64,
}

impl Measured {
    pub(crate) fn new(block: Block) -> Self {
        Self {
            block,
            table: Vec::new(),
            precision: 0.0,
            rho: 0.0,
        }
    }

    /// Adds one answer, with the noise of all `holders`.
    pub(crate) fn add(&mut self, release: &Release, holders: &Holders) {
        let units = holders.fit_units(release.request.variance_units);
        self.learn(&release.values, units, release.rho);
    }

    pub(crate) fn learn(&mut self, values: &[i64], fit_units: u64, rho: Rho) {
        let scale = self.block.scale(fit_units);
        let precision = 1.0 / (scale * scale);
        let table = self.block.table(values);
        let weight = precision / (self.precision + precision);
        if self.table.is_empty() {
            self.table = table;
        } else {
            for (mean, value) in self.table.iter_mut().zip(&table) {
                *mean += weight * (value - *mean);
            }
        }
        self.precision += precision;
        self.rho += rho.to_f64();
    }

    /// Returns whether there was an answer.
    pub(crate) fn is_measured(&self) -> bool {
        self.precision > 0.0
    }

    /// Returns the mean of the tables.
    pub(crate) fn table(&self) -> &[f64] {
        &self.table
    }

    /// Returns the scale s of the mean.
    pub(crate) fn scale(&self) -> f64 {
        self.precision.sqrt().recip()
    }

    /// Returns the measurement for the fit, or `None` before the first answer.
    pub(crate) fn measurement(&self) -> Option<Measurement> {
        self.is_measured()
            .then(|| self.block.measurement(self.table.clone(), self.scale()))
    }
}

/// The total, the 1-ways and the tables of digits of a job, with their costs.
#[derive(Clone, Debug)]
pub(crate) struct OneWays {
    domain: Domain,
    /// The total, then one block for each attribute with more than one value that is not a digit,
    /// then one table for each digit.
    pub(crate) items: Vec<Measured>,
    /// c^(2/3) of each item.
    pub(crate) weights: Vec<f64>,
    /// The measurements for the fit, as of the last [`OneWays::learn`].
    estimates: Vec<Measurement>,
}

impl OneWays {
    /// Returns the unmeasured statistics of a job. `digit_weight` is the weight of a digit's noise
    /// relative to that of a pair of the workload.
    pub(crate) fn new(job: &MechanismJob, digit_weight: f64) -> Self {
        let mut items = vec![Measured::new(Block::total())];
        let mut costs = vec![TOTAL_COST * job.workload.weight().max(1.0)];
        for (attribute, &size) in job.domain.sizes().iter().enumerate() {
            if size > 1 && !job.domain.is_digit(attribute) {
                items.push(Measured::new(Block::one_way(attribute, size)));
                // Records have values of attributes outside the workload, too.
                let weight = job.workload.weight_of(attribute).max(1.0);
                costs.push(weight * (size as f64 - 1.0));
            }
        }
        for digit in job.domain.digits() {
            items.push(Measured::new(digits::block(&job.domain, digit)));
            costs.push(digit_weight * digits::cost(digit));
        }
        Self {
            domain: job.domain.clone(),
            items,
            weights: costs.iter().map(|cost| cost.powf(2.0 / 3.0)).collect(),
            estimates: Vec::new(),
        }
    }

    /// Returns all statistics with their shares of `budget`.
    pub(crate) fn offers(
        &self,
        account: &ReleaseAccount,
        budget: f64,
    ) -> Result<Vec<Offer>, Error> {
        self.items
            .iter()
            .zip(shares(budget, &self.weights))
            .map(|(item, share)| {
                account
                    .offer(item.block.statistic(), share, u64::MAX)?
                    .ok_or(Error::budget_too_small(account.left()))
            })
            .collect()
    }

    /// Returns the number of integers in one release of all statistics.
    pub(crate) fn cells(&self) -> usize {
        let cells = |item: &Measured| item.block.statistic().cells();
        self.items.iter().map(cells).sum()
    }

    /// Updates the measurements for the fit from the answers so far. Noisy 1-ways are estimated
    /// with the prior.
    pub(crate) fn learn(&mut self) {
        let total = self.items[0].table().first().copied().unwrap_or(0.0);
        let estimate = |item: &Measured| {
            let mut measurement = item.measurement()?;
            let mean = total / measurement.values.len() as f64;
            if measurement.clique.len() == 1 {
                let counts: Vec<f64> = measurement.values.iter().map(|y| y + mean).collect();
                if let Some(expected) = expected_counts(&counts, total, measurement.sigma) {
                    measurement.values = expected.iter().map(|count| count - mean).collect();
                }
            }
            Some(measurement)
        };
        let (singles, tables): (Vec<_>, Vec<_>) =
            (self.items.iter().filter_map(estimate)).partition(|m| m.clique.len() < 2);
        self.estimates = singles;
        for table in tables {
            let digits = self.domain.digits().iter();
            let Some(digit) = digits
                .into_iter()
                .find(|digit| digit.clique() == table.clique)
            else {
                continue;
            };
            let coarse = self.estimated(digit.coarse(), total);
            let expected = digits::expected_table(&table.values, digit, &coarse, table.sigma);
            self.estimates.push(Measurement {
                values: expected,
                ..table
            });
        }
    }

    /// Returns the estimated counts of an attribute. An attribute with a single category has all
    /// records in it.
    fn estimated(&self, attribute: usize, total: f64) -> Vec<f64> {
        let clique = Clique::new([attribute]);
        let found = self.estimates.iter().find(|m| m.clique == clique);
        match found {
            Some(m) => {
                let mean = total / m.values.len() as f64;
                m.values.iter().map(|value| value + mean).collect()
            }
            None => vec![total; self.domain.size(attribute)],
        }
    }

    /// Returns the measurements for the fit.
    pub(crate) fn measurements(&self) -> Vec<Measurement> {
        self.estimates.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Digit;
    use fhaim_release::Statistic;

    #[test]
    fn repeated_answers_combine_by_inverse_variance() {
        let mut item = Measured::new(Block::one_way(0, 2));
        assert!(item.measurement().is_none());
        item.learn(&[100], 1, Rho::ZERO);
        item.learn(&[160], 2, Rho::ZERO);
        // Precisions 2 : 1.
        assert_eq!(item.table(), [60.0, -60.0]);
        assert!((item.scale() - (4.0f64 / 2.0 / 1.5).sqrt()).abs() < 1e-12);
    }

    /// A smaller share for digits leaves more for all other statistics.
    #[test]
    fn digits_get_the_share_of_their_weight() {
        let rho = Rho::from_f64_down(1e-4).unwrap();
        let digit = Digit::new(0, 1, vec![4; 8]);
        let job = MechanismJob::new(Domain::with_digits(vec![8, 4], vec![digit]), rho, 10);
        let costs = |weight| {
            let one_ways = OneWays::new(&job, weight);
            let offers = one_ways.offers(&ReleaseAccount::new(&job), 5e-5).unwrap();
            let units = offers.iter().map(Offer::variance_units);
            units.map(|units| units as f64).collect::<Vec<f64>>()
        };
        let (whole, tenth) = (costs(1.0), costs(0.1));
        assert_eq!(whole.len(), 3);
        assert!(
            tenth[0] < whole[0] && tenth[1] < whole[1],
            "{whole:?} {tenth:?}"
        );
        // The variances of a table and of another item are in proportion to the weights to the
        // power of 2/3.
        let apart = (tenth[2] / tenth[1]) / (whole[2] / whole[1]);
        assert!(
            (apart / 10f64.powf(2.0 / 3.0) - 1.0).abs() < 0.01,
            "{apart}"
        );
    }

    #[test]
    fn attributes_with_one_value_are_not_measured() {
        let rho = Rho::from_f64_down(0.1).unwrap();
        let job = MechanismJob::new(Domain::new(vec![1, 2, 5]), rho, 10);
        let one_ways = OneWays::new(&job, 1.0);
        assert_eq!(one_ways.cells(), 1 + 1 + 5);
        assert_eq!(one_ways.items.len(), 3);
        let account = ReleaseAccount::new(&job);
        let offers = one_ways.offers(&account, 0.1).unwrap();
        assert!(account.affords(&offers));
        assert!(matches!(
            one_ways.items[0].block.statistic(),
            Statistic::Total
        ));
    }
}
