//! The one error type of this crate.

use crate::number;

/// What privacy arithmetic, the ledger or the noise ladder refuse.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The privacy parameter epsilon is not a positive number of supported size.
    #[error("epsilon must be a positive number from 1e-9 to 1e9, not {}", number(*.0))]
    Epsilon(f64),
    /// The privacy parameter delta is not strictly between 0 and 1.
    #[error("delta must lie strictly between 0 and 1, not {}", number(*.0))]
    Delta(f64),
    /// The privacy parameter rho is negative, infinite or not a number.
    #[error("rho must be a finite number of at least 0 and below 2^48, not {}", number(*.0))]
    Rho(f64),
    /// A rational has denominator zero, or its value does not fit [`crate::Rho`].
    #[error("{0}/{1} is no privacy cost below 2^48")]
    Ratio(u128, u128),
    /// A stored rho does not parse.
    #[error("a stored rho must be an integer count of 2^-80")]
    ParseRho,
    /// A release asks for noise of variance zero.
    #[error("release {0} asks for no noise at all")]
    NoNoise(u32),
    /// A stored ledger does not hold together.
    #[error("the stored ledger spends more than its budget or repeats a release")]
    BrokenLedger,
    /// A debit would take the ledger past its budget.
    #[error("release {number} costs rho = {cost}, but only {left} is left of the budget")]
    OverBudget {
        /// The release refused.
        number: u32,
        /// What it costs in all (release, leak and gap).
        cost: crate::Rho,
        /// What the ledger has left.
        left: crate::Rho,
    },
    /// A release number was debited or allocated before, with other content.
    #[error("release {0} was made before with other content")]
    Conflict(u32),
    /// A release number is below one already used.
    #[error("release {number} comes after release {last}: numbers must ascend")]
    Order {
        /// The release refused.
        number: u32,
        /// The highest number used so far.
        last: u32,
    },
    /// The ladder has too few positions left.
    #[error("release {number} needs noise at {cells} positions, but the ladder has {left} left")]
    LadderExhausted {
        /// The release refused.
        number: u32,
        /// Positions it asks for.
        cells: usize,
        /// Positions not used so far.
        left: usize,
    },
    /// Ladders that cannot be added: none at all, or of different sizes.
    #[error("holders' noise ladders are added if they are of one size, and there is at least one")]
    LadderSum,
    /// A ladder of no level, of too many, or of too many positions.
    #[error("a noise ladder of {levels} levels and {positions} positions is not supported")]
    LadderSize {
        /// Levels asked for.
        levels: usize,
        /// Positions asked for.
        positions: usize,
    },
    /// A variance is larger than the ladder's levels can sum to.
    #[error("a variance of {units} units is beyond a noise ladder of {levels} levels")]
    VarianceTooLarge {
        /// The variance asked for, in units of sigma_b^2.
        units: u64,
        /// The ladder's number of levels.
        levels: usize,
    },
    /// A page or position is outside the ladder.
    #[error("page {page} has no noise at positions up to {end}")]
    OutsideLadder {
        /// The page asked for.
        page: usize,
        /// One past the last position asked for.
        end: usize,
    },
    /// The operating system has no randomness to give.
    #[error("the operating system's random generator failed")]
    NoRandomness,
    /// A scale the sampler does not support.
    #[error("a discrete Gaussian needs a scale from 1 to 2^27, not {0}")]
    Scale(u64),
}
