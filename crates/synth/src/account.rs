//! The account of a mechanism's run: release numbers, the hard cap of the budget, and the itemised
//! list of releases.

use fhaim_dp::{Rho, least_variance_units};
use serde::Serialize;

use crate::Error;
use fhaim_release::{Holders, MechanismJob, Phase, ReleaseRequest, Statistic, Tariff};

/// One line of the itemised ledger: a request, its cost and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Release {
    /// The request.
    pub request: ReleaseRequest,
    /// The phase that requested it.
    pub phase: Phase,
    /// Its cost, rounded up: Delta_2^2 / (2 sigma^2), the ladder's gap and the leak.
    pub rho: Rho,
    /// The released integers.
    pub values: Vec<i64>,
}

impl Release {
    /// Describes the release in one line: attributes, shape and one holder's noise.
    pub fn description(&self) -> String {
        let clique = self.request.statistic.clique();
        let attributes = clique.attributes();
        let what = match &self.request.statistic {
            Statistic::Total => "number of records".to_owned(),
            Statistic::OneWay(axis) => format!("1-way of {attributes:?}, {} cells", axis.len()),
            Statistic::Product(a, b) => {
                format!("block of {attributes:?}, {} x {} cells", a.len(), b.len())
            }
            Statistic::SquaredScores(terms) => format!("squared scores of {} pairs", terms.len()),
        };
        format!("{what}, sigma {:.2}", self.request.sigma())
    }
}

/// A statistic with its price, which a mechanism may request.
#[derive(Clone, Debug)]
pub struct Offer {
    statistic: Statistic,
    variance_units: u64,
    cost: Rho,
}

impl Offer {
    /// Returns the variance of each holder's noise, in units of [`fhaim_release::UNIT_VARIANCE`].
    pub fn variance_units(&self) -> u64 {
        self.variance_units
    }
}

/// Requests, costs and answers of one run.
#[derive(Clone, Debug)]
pub struct ReleaseAccount {
    budget: Rho,
    tariff: Tariff,
    spent: Rho,
    next: u32,
    pending: Vec<Release>,
    settled: Vec<Release>,
}

/// Number of times that [`ReleaseAccount::offer`] raises a variance before it gives up.
const OFFER_TRIES: u32 = 64;

impl ReleaseAccount {
    /// Returns an account with the job's whole budget.
    pub fn new(job: &MechanismJob) -> Self {
        Self {
            budget: job.rho,
            tariff: job.tariff(),
            spent: Rho::ZERO,
            next: 0,
            pending: Vec::new(),
            settled: Vec::new(),
        }
    }

    /// Returns the rest of the budget.
    pub fn left(&self) -> Rho {
        self.budget.checked_sub(self.spent).unwrap_or(Rho::ZERO)
    }

    /// Returns the rho spent so far, including pending requests.
    pub fn spent(&self) -> Rho {
        self.spent
    }

    /// Returns the holders of the table. Answers have the noise of all of them; prices count the
    /// noise of some.
    pub fn holders(&self) -> &Holders {
        &self.tariff.holders
    }

    /// Returns the answered releases, in order.
    pub fn settled(&self) -> &[Release] {
        &self.settled
    }

    /// Returns the statistic with the least noise at which it costs at most `share`, including gap
    /// and leak. Returns `None` if this takes a variance above `largest_units`.
    ///
    /// # Errors
    /// The statistic's sensitivity or cost does not fit its type.
    pub fn offer(
        &self,
        statistic: Statistic,
        share: f64,
        largest_units: u64,
    ) -> Result<Option<Offer>, Error> {
        let share = Rho::from_f64_down(share.max(0.0))?;
        let Some(usable) = share.checked_sub(self.tariff.leak.of(statistic.cells())?) else {
            return Ok(None);
        };
        let sensitivity = statistic.squared_sensitivity_under(&self.tariff)?;
        let honest = self.tariff.holders.honest();
        let Ok(mut units) = least_variance_units(sensitivity, usable, honest) else {
            return Ok(None);
        };
        // The ladder's gap is about 10^-16 of the noise, so a step or two make room for it.
        for _ in 0..OFFER_TRIES {
            if units > largest_units {
                return Ok(None);
            }
            let cost = self.cost(&statistic, units)?;
            if cost <= share {
                return Ok(Some(Offer {
                    statistic,
                    variance_units: units,
                    cost,
                }));
            }
            units = units.saturating_add(units >> 32).saturating_add(1);
        }
        Ok(None)
    }

    /// Returns a statistic with a fixed variance, at any cost.
    ///
    /// # Errors
    /// As [`ReleaseAccount::offer`], and a variance of zero.
    pub fn offer_at(&self, statistic: Statistic, variance_units: u64) -> Result<Offer, Error> {
        let cost = self.cost(&statistic, variance_units)?;
        Ok(Offer {
            statistic,
            variance_units,
            cost,
        })
    }

    /// Takes a cost that does not belong to a release from the budget. Returns `false`, and takes
    /// nothing, if the cost exceeds the rest of the budget.
    pub fn spend(&mut self, cost: Rho) -> bool {
        match self.spent.checked_add(cost) {
            Some(spent) if spent <= self.budget => {
                self.spent = spent;
                true
            }
            _ => false,
        }
    }

    fn cost(&self, statistic: &Statistic, units: u64) -> Result<Rho, Error> {
        let price = statistic.price(units, &self.tariff)?;
        price
            .total()
            .ok_or_else(|| Error::budget_too_small(self.budget))
    }

    /// Checks whether the rest of the budget pays for all of `offers` together.
    pub fn affords(&self, offers: &[Offer]) -> bool {
        Rho::checked_sum(offers.iter().map(|offer| offer.cost)).is_some_and(|c| c <= self.left())
    }

    /// Turns offers into requests and takes their cost from the budget, which is a hard cap.
    ///
    /// # Errors
    /// The offers cost more than the rest of the budget, or the previous batch is unanswered.
    pub fn ask(&mut self, phase: Phase, offers: Vec<Offer>) -> Result<Vec<ReleaseRequest>, Error> {
        if !self.pending.is_empty() {
            return Err(Error::Internal("the previous batch has no answers yet"));
        }
        if !self.affords(&offers) {
            return Err(Error::Internal(
                "the batch costs more than the rest of the budget",
            ));
        }
        for offer in offers {
            self.spent = self
                .spent
                .checked_add(offer.cost)
                .ok_or(Error::Internal("costs exceed 2^48"))?;
            let request = ReleaseRequest {
                number: self.next,
                statistic: offer.statistic,
                variance_units: offer.variance_units,
            };
            self.next += 1;
            self.pending.push(Release {
                request,
                phase,
                rho: offer.cost,
                values: Vec::new(),
            });
        }
        Ok(self.pending.iter().map(|r| r.request.clone()).collect())
    }

    /// Stores the answers to the requests of the last [`ReleaseAccount::ask`], in the same order.
    /// Returns the index in [`ReleaseAccount::settled`] of the first.
    ///
    /// # Errors
    /// The number of answers or of an answer's cells is wrong.
    pub fn settle(&mut self, answers: &[Vec<i64>]) -> Result<usize, Error> {
        if answers.len() != self.pending.len() {
            return Err(Error::AnswerCount {
                expected: self.pending.len(),
                found: answers.len(),
            });
        }
        for (release, answer) in self.pending.iter().zip(answers) {
            let expected = release.request.statistic.cells();
            if answer.len() != expected {
                return Err(Error::AnswerCells {
                    number: release.request.number,
                    expected,
                    found: answer.len(),
                });
            }
        }
        let first = self.settled.len();
        for (mut release, answer) in self.pending.drain(..).zip(answers) {
            release.values.clone_from(answer);
            self.settled.push(release);
        }
        Ok(first)
    }
}

/// Divides `budget` in proportion to `weights`. The shares add up to a little less than the budget,
/// so that rounding cannot exceed it.
pub(crate) fn shares(budget: f64, weights: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let scale = if sum > 0.0 {
        budget * (1.0 - SLACK) / sum
    } else {
        0.0
    };
    weights.iter().map(|weight| weight * scale).collect()
}

/// Relative slack of shares: far above the rounding of a sum of a million doubles.
pub(crate) const SLACK: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Domain;
    use fhaim_release::Axis;

    fn account(rho: f64, leak: f64) -> ReleaseAccount {
        let mut job = MechanismJob::new(
            Domain::new(vec![3, 4]),
            Rho::from_f64_down(rho).unwrap(),
            100,
        );
        // A release is charged for four ciphertexts.
        job.leak.ciphertext = Rho::from_f64_up(leak / 4.0).unwrap();
        ReleaseAccount::new(&job)
    }

    fn one_way() -> Statistic {
        Statistic::OneWay(Axis::identity(0, 3))
    }

    #[test]
    fn offer_has_the_least_variance_that_its_share_pays_for() {
        let account = account(1.0, 1e-9);
        for share in [1e-6, 3.7e-5, 0.001, 0.02, 0.125] {
            let offer = account.offer(one_way(), share, u64::MAX).unwrap().unwrap();
            let cost = offer.cost.to_f64();
            assert!(cost <= share);
            let coarser = 1.0 / (8.0 * (offer.variance_units as f64 - 1.0)) + 1e-9;
            assert!(coarser > share, "{share}: one unit less would be enough");
        }
    }

    #[test]
    fn statistic_that_the_share_cannot_pay_is_not_offered() {
        let account = account(1.0, 1e-3);
        assert!(account.offer(one_way(), 0.0, u64::MAX).unwrap().is_none());
        assert!(account.offer(one_way(), 1e-3, u64::MAX).unwrap().is_none());
        assert!(account.offer(one_way(), 0.01, 10).unwrap().is_none());
        assert!(account.offer(one_way(), 0.01, 14).unwrap().is_some());
    }

    #[test]
    fn account_enforces_its_budget_and_the_shape_of_answers() {
        let mut account = account(0.25, 0.0);
        let offer = account.offer(one_way(), 0.125, u64::MAX).unwrap().unwrap();
        assert_eq!(offer.variance_units(), 1);
        let asked = account
            .ask(Phase::ONE_WAYS, vec![offer.clone(); 2])
            .unwrap();
        assert_eq!(asked.iter().map(|r| r.number).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(account.left(), Rho::ZERO);
        assert!(matches!(
            account.settle(&[vec![1, 2, 3]]),
            Err(Error::AnswerCount {
                expected: 2,
                found: 1
            })
        ));
        assert!(matches!(
            account.settle(&[vec![1, 2, 3], vec![4]]),
            Err(Error::AnswerCells {
                number: 1,
                expected: 3,
                found: 1
            })
        ));
        assert_eq!(account.settle(&[vec![1, 2, 3], vec![4, 5, 6]]).unwrap(), 0);
        assert_eq!(account.settled()[1].values, [4, 5, 6]);
        assert!(matches!(
            account.ask(Phase::MEASURE, vec![offer]),
            Err(Error::Internal(..))
        ));
    }

    #[test]
    fn shares_sum_below_the_budget() {
        let weights: Vec<f64> = (1..1000).map(|i| (f64::from(i)).powf(2.0 / 3.0)).collect();
        let total: f64 = shares(0.3, &weights).iter().sum();
        assert!(total < 0.3 && total > 0.3 * (1.0 - 1e-8));
    }
}
