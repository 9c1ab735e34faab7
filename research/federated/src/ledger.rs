//! What one party has paid, for each record that it holds.

use fhaim_dp::Rho;
use serde::Serialize;

use crate::Error;

/// What a party paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spending {
    /// Its number of records, released once.
    Total,
    /// A choice of what to measure.
    Selection,
    /// A marginal with noise of its own, which steers its later choices in the round.
    LocalMeasurement,
    /// Its part of a sum over parties.
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
    /// The round, 0 for the first sums.
    pub round: u32,
    /// What for.
    pub spending: Spending,
    /// The attributes of a measurement.
    pub attributes: Vec<usize>,
    /// What it cost.
    pub rho: Rho,
}

/// A party's budget and payments. Nothing leaves the party that was not debited here before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartyLedger {
    budget: Rho,
    entries: Vec<PartyEntry>,
}

impl PartyLedger {
    /// Nothing paid yet.
    pub fn new(budget: Rho) -> Self {
        Self {
            budget,
            entries: Vec::new(),
        }
    }

    /// The whole budget.
    pub fn budget(&self) -> Rho {
        self.budget
    }

    /// All payments, in their order.
    pub fn entries(&self) -> &[PartyEntry] {
        &self.entries
    }

    /// Their sum: at most the budget.
    pub fn spent(&self) -> Rho {
        let costs = self.entries.iter().map(|entry| entry.rho);
        // Each payment was held against what was left.
        Rho::checked_sum(costs).unwrap_or(self.budget)
    }

    /// What is left.
    pub fn left(&self) -> Rho {
        self.budget.checked_sub(self.spent()).unwrap_or(Rho::ZERO)
    }

    /// Pays.
    ///
    /// # Errors
    /// [`Error::OverBudget`]; the ledger is then unchanged.
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
    fn a_party_cannot_pay_more_than_it_has() {
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
