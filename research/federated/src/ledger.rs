//! The privacy ledger of one party: its payments, which count for each of its records.

use fhaim_dp::Rho;
use serde::Serialize;

use crate::Error;

/// What a payment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spending {
    /// The party's number of records, released once.
    Total,
    /// A choice of a marginal to measure.
    Selection,
    /// A marginal with the party's own noise, which steers its later choices in the round.
    LocalMeasurement,
    /// The party's part of a sum over parties.
    Sum,
}

impl Spending {
    fn what(self) -> &'static str {
        match self {
            Self::Total => "the number of records",
            Self::Selection => "a selection",
            Self::LocalMeasurement => "a local measurement",
            Self::Sum => "a part of a sum",
        }
    }
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartyEntry {
    /// The round; 0 for the first sums.
    pub round: u32,
    /// What the payment is for.
    pub spending: Spending,
    /// The attributes of the measurement; empty for other payments.
    pub attributes: Vec<usize>,
    /// The price.
    pub rho: Rho,
}

/// The budget and the payments of a party. The party debits every release here before it sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartyLedger {
    budget: Rho,
    entries: Vec<PartyEntry>,
}

impl PartyLedger {
    /// Creates a ledger without payments.
    pub fn new(budget: Rho) -> Self {
        Self {
            budget,
            entries: Vec::new(),
        }
    }

    /// Returns the whole budget.
    pub fn budget(&self) -> Rho {
        self.budget
    }

    /// Returns all payments, in order.
    pub fn entries(&self) -> &[PartyEntry] {
        &self.entries
    }

    /// Returns the sum of all payments, which is at most the budget.
    pub fn spent(&self) -> Rho {
        let costs = self.entries.iter().map(|entry| entry.rho);
        // `debit` has checked each payment against the remaining budget.
        Rho::checked_sum(costs).unwrap_or(self.budget)
    }

    /// Returns the remaining budget.
    pub fn left(&self) -> Rho {
        self.budget.checked_sub(self.spent()).unwrap_or(Rho::ZERO)
    }

    /// Debits a payment.
    ///
    /// # Errors
    /// [`Error::OverBudget`] if the price exceeds the remaining budget. The ledger is then unchanged.
    pub fn debit(
        &mut self,
        round: u32,
        spending: Spending,
        attributes: &[usize],
        rho: Rho,
    ) -> Result<(), Error> {
        let left = self.left();
        if rho > left {
            return Err(Error::OverBudget {
                round,
                what: spending.what(),
                cost: rho,
                left,
            });
        }
        self.entries.push(PartyEntry {
            round,
            spending,
            attributes: attributes.to_vec(),
            rho,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debit_beyond_the_budget_is_rejected() {
        let rho = |n, d| Rho::ratio_up(n, d).unwrap();
        let mut ledger = PartyLedger::new(rho(1, 4));
        ledger.debit(0, Spending::Total, &[], rho(1, 8)).unwrap();
        let before = ledger.clone();
        let refused = ledger.debit(1, Spending::Sum, &[2], rho(3, 16));
        assert!(matches!(refused, Err(Error::OverBudget { round: 1, .. })));
        assert_eq!(ledger, before);
        ledger.debit(1, Spending::Sum, &[2], rho(1, 8)).unwrap();
        assert_eq!((ledger.spent(), ledger.left()), (rho(1, 4), Rho::ZERO));
    }
}
