//! The privacy budget of a draft, and mechanisms at a given price.

use fhaim_dp::{DiscreteGaussian, Rho, Selection, accounting};
use rand_core::RngCore;

use crate::Error;

/// Largest rho for which [`enough`] suggests an epsilon.
const MOST_RHO: f64 = 50.0;

/// A privacy budget that pays for every look at the records.
#[derive(Clone, Debug)]
pub struct DraftBudget {
    epsilon: f64,
    budget: Rho,
    spent: Rho,
}

impl DraftBudget {
    /// Returns the budget whose rho is worth (`epsilon`, `delta`).
    ///
    /// # Errors
    /// [`Error::Privacy`] if `epsilon` or `delta` is out of range.
    pub fn new(epsilon: f64, delta: f64) -> Result<Self, Error> {
        Ok(Self {
            epsilon,
            budget: accounting::rho(epsilon, delta)?,
            spent: Rho::ZERO,
        })
    }

    /// Returns one of `shares` equal parts of the budget, rounded down.
    ///
    /// # Errors
    /// [`Error::TooLittle`] if the part is too small for any mechanism.
    pub fn share(&self, shares: u64) -> Result<Rho, Error> {
        let too_little = Error::TooLittle {
            epsilon: self.epsilon,
            shares,
        };
        let divisor = u32::try_from(shares).unwrap_or(u32::MAX).max(1);
        let share = self.budget.share(divisor);
        // The largest scale of the discrete Gaussian, 2^27, costs 2^-55. Columns spend quarters of
        // their share.
        (share.to_f64() > 2f64.powi(-50))
            .then_some(share)
            .ok_or(too_little)
    }

    /// Takes `cost` from the budget.
    ///
    /// # Errors
    /// [`Error::Overspent`] if less than `cost` is left.
    pub fn pay(&mut self, cost: Rho) -> Result<(), Error> {
        let spent = self.spent.checked_add(cost).ok_or(Error::Overspent)?;
        if spent > self.budget {
            return Err(Error::Overspent);
        }
        self.spent = spent;
        Ok(())
    }

    /// Returns the rho spent so far.
    pub fn spent(&self) -> Rho {
        self.spent
    }

    /// Returns the rho of the whole budget.
    pub fn budget(&self) -> Rho {
        self.budget
    }
}

/// Discrete Gaussian noise for counts, of which one record changes a single one, by 1.
#[derive(Clone, Copy, Debug)]
pub struct CountNoise {
    scale: u64,
    gaussian: DiscreteGaussian,
}

impl CountNoise {
    /// Returns the noise with the least integer scale whose cost is at most `share`.
    ///
    /// # Errors
    /// [`Error::Privacy`] if no scale is large enough.
    pub fn of(share: Rho) -> Result<Self, Error> {
        // The estimate is close to the root; the loop corrects its rounding.
        let mut scale = ((0.5 / share.to_f64()).sqrt() as u64).max(1);
        while cost(scale)? > share {
            scale += 1;
        }
        Ok(Self {
            scale,
            gaussian: DiscreteGaussian::new(scale)?,
        })
    }

    /// Returns the cost of counts with this noise: 1 / (2 scale^2) (CKS20, Theorem 4), rounded up.
    ///
    /// # Errors
    /// Never: the scale is at least 1.
    pub fn rho(&self) -> Result<Rho, Error> {
        cost(self.scale)
    }

    /// Returns the standard deviation.
    pub fn scale(&self) -> u64 {
        self.scale
    }

    /// Draws a sample.
    pub fn sample(&self, rng: &mut (impl RngCore + ?Sized)) -> i64 {
        self.gaussian.sample(rng)
    }
}

fn cost(scale: u64) -> Result<Rho, Error> {
    let scale = u128::from(scale);
    Ok(Rho::ratio_up(1, 2 * scale * scale)?)
}

/// Returns the exponential mechanism that costs `share`, for scores that one record changes by at
/// most 1.
///
/// # Errors
/// [`Error::Privacy`] if the share is too small for a selection.
pub(crate) fn selection(share: Rho) -> Result<Selection, Error> {
    // Epsilon is rounded down so that its cost, which is rounded up, does not exceed the share.
    let epsilon = (8.0 * share.to_f64()).sqrt() * (1.0 - 1e-9);
    Ok(Selection::new(epsilon, 1)?)
}

/// Returns the number of records by which a candidate must beat the one before it to be preferred.
///
/// Among equal candidates, the first is then chosen e^3 times as often as the next. The number is
/// limited so that half of the records, by their released number, outweigh the preference of the
/// first of `places` over the last.
pub(crate) fn preference(selection: &Selection, places: i64, records: i64) -> i64 {
    let wanted = (6.0 / selection.epsilon()).ceil() as i64;
    wanted.min(records / (2 * places.max(1))).max(1)
}

/// Returns the least product of a selection's epsilon and the number of records at which a choice
/// is not a guess.
///
/// At this product, half of the records make the right one of some dozens of candidates a thousand
/// times as likely as each other candidate.
fn certain() -> f64 {
    4.0 * 1000f64.ln()
}

/// Checks whether a choice is little more than a guess, given the released number of records.
pub(crate) fn is_guess(selection: &Selection, records: i64) -> bool {
    selection.epsilon() * (records.max(0) as f64) < certain()
}

/// Estimates, for a message, the epsilon at which choices that cost an eighth of one of `shares`
/// shares are not guesses. Returns infinity if there seem to be no records.
///
/// # Errors
/// [`Error::Privacy`] if `delta` is out of range.
pub(crate) fn enough(shares: u64, records: i64, delta: f64) -> Result<f64, Error> {
    let one = certain() / records.max(0) as f64;
    let rho = shares as f64 * one * one;
    if rho > MOST_RHO {
        return Ok(f64::INFINITY);
    }
    // In millionths, rounded up.
    let rho = Rho::ratio_up((rho * 1e6).ceil() as u128, 1_000_000)?;
    Ok(accounting::epsilon(rho, delta)?)
}
