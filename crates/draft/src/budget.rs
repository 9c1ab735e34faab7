//! What a draft may spend, and noise at a price.

use fhaim_dp::{DiscreteGaussian, Rho, Selection, accounting};
use rand_core::RngCore;

use crate::Error;

/// No draft is worth more.
const MOST_RHO: f64 = 50.0;

/// A budget: nothing is looked at that it has not paid for.
#[derive(Clone, Debug)]
pub struct DraftBudget {
    epsilon: f64,
    budget: Rho,
    spent: Rho,
}

impl DraftBudget {
    /// A draft_budget of the rho that (epsilon, delta) is worth.
    ///
    /// # Errors
    /// [`Error::Privacy`] where either is out of range.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, Error> {
        Ok(Self {
            epsilon,
            budget: accounting::rho(epsilon, delta)?,
            spent: Rho::ZERO,
        })
    }

    /// One of `shares` equal parts of the budget, rounded down.
    ///
    /// # Errors
    /// [`Error::TooLittle`] where that is nothing.
    pub fn share(&self, shares: u64) -> Result<Rho, Error> {
        let too_little = Error::TooLittle {
            epsilon: self.epsilon,
            shares,
        };
        let divisor = u32::try_from(shares).unwrap_or(u32::MAX).max(1);
        let share = self.budget.share(divisor);
        // Below 2^-60 no sampler here has the scale.
        (share.to_f64() > 2f64.powi(-50))
            .then_some(share)
            .ok_or(too_little)
    }

    /// Takes `cost` off the budget.
    ///
    /// # Errors
    /// [`Error::Overspent`] where it has less left.
    pub fn pay(&mut self, cost: Rho) -> Result<(), Error> {
        let spent = self.spent.checked_add(cost).ok_or(Error::Overspent)?;
        if spent > self.budget {
            return Err(Error::Overspent);
        }
        self.spent = spent;
        Ok(())
    }

    /// What was spent.
    pub fn spent(&self) -> Rho {
        self.spent
    }

    /// What there was.
    pub fn budget(&self) -> Rho {
        self.budget
    }
}

/// Discrete Gaussian noise for counts of which one record moves one, by one.
#[derive(Clone, Copy, Debug)]
pub struct CountNoise {
    scale: u64,
    gaussian: DiscreteGaussian,
}

impl CountNoise {
    /// The least integer scale at which such counts cost at most `share`.
    ///
    /// # Errors
    /// [`Error::Privacy`] where no scale is large enough.
    pub fn of(share: Rho) -> Result<Self, Error> {
        // Next to the root; the loop makes up for what rounding took.
        let mut scale = ((0.5 / share.to_f64()).sqrt() as u64).max(1);
        while cost(scale)? > share {
            scale += 1;
        }
        Ok(Self {
            scale,
            gaussian: DiscreteGaussian::new(scale)?,
        })
    }

    /// What counts under this noise cost: 1 / (2 scale^2) (CKS20, Theorem 4), rounded up.
    ///
    /// # Errors
    /// Never: the scale is at least 1.
    pub fn rho(&self) -> Result<Rho, Error> {
        cost(self.scale)
    }

    /// The standard deviation.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// A sample.
    pub fn sample(&self, rng: &mut (impl RngCore + ?Sized)) -> i64 {
        self.gaussian.sample(rng)
    }
}

fn cost(scale: u64) -> Result<Rho, Error> {
    let scale = u128::from(scale);
    Ok(Rho::ratio_up(1, 2 * scale * scale)?)
}

/// The exponential mechanism over scores that one record moves by one at most, for `share`.
///
/// # Errors
/// [`Error::Privacy`] where the share is too little for one.
pub(crate) fn selection(share: Rho) -> Result<Selection, Error> {
    // It is rounded down, so that its cost, rounded up, is no more than the share.
    let epsilon = (8.0 * share.to_f64()).sqrt() * (1.0 - 1e-9);
    Ok(Selection::new(epsilon, 1)?)
}

/// By how many records a candidate has to be better than one before it to be preferred to it: so many
/// that among equals the one before is chosen e^3 times as often, but no more than leave half of the
/// records, by their released number, to tell the last of `places` from the first.
pub(crate) fn preference(selection: &Selection, places: i64, records: i64) -> i64 {
    let wanted = (6.0 / selection.epsilon()).ceil() as i64;
    wanted.min(records / (2 * places.max(1))).max(1)
}

/// Half of the records make the right one of some dozens of candidates a thousand times as likely as each
/// other, at an epsilon for a choice of this over the number of records.
fn certain() -> f64 {
    4.0 * 1000f64.ln()
}

/// Whether a choice is little more than a guess, by the released number of records.
pub(crate) fn is_guess(selection: &Selection, records: i64) -> bool {
    selection.epsilon() * (records.max(0) as f64) < certain()
}

/// About the epsilon at which choices for an eighth of one of `shares` shares are no guesses, for a message;
/// infinite where there seem to be no records.
///
/// # Errors
/// [`Error::Privacy`] where delta is out of range.
pub(crate) fn enough(shares: u64, records: i64, delta: f64) -> Result<f64, Error> {
    let one = certain() / records.max(0) as f64;
    let rho = shares as f64 * one * one;
    if rho > MOST_RHO {
        return Ok(f64::INFINITY);
    }
    // In parts of a million, rounded up.
    let rho = Rho::ratio_up((rho * 1e6).ceil() as u128, 1_000_000)?;
    Ok(accounting::epsilon(rho, delta)?)
}
