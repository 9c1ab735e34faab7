//! The error type of this crate.

use crate::number;

/// An error of the privacy arithmetic, the ledger or the noise ladder.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The privacy parameter epsilon is not a positive number within the supported range.
    #[error("epsilon must be a positive number from 1e-9 to 1e9, not {}", number(*.0))]
    Epsilon(f64),
    /// The privacy parameter delta is not strictly between 0 and 1.
    #[error("delta must lie strictly between 0 and 1, not {}", number(*.0))]
    Delta(f64),
    /// The privacy parameter rho is negative, infinite or not a number.
    #[error("rho must be a finite number of at least 0 and below 2^48, not {}", number(*.0))]
    Rho(f64),
    /// A rational has denominator zero, or its value does not fit [`crate::Rho`].
    #[error("{0}/{1} is not a privacy cost below 2^48")]
    Ratio(u128, u128),
    /// A stored rho does not parse.
    #[error("a stored rho must be an integer count of 2^-80")]
    ParseRho,
    /// A release has noise of variance zero.
    #[error("release {0} has noise of variance zero: every release needs noise")]
    NoNoise(u32),
    /// A stored ledger is inconsistent.
    #[error("the stored ledger spends more than its budget or repeats a release")]
    BrokenLedger,
    /// A debit would exceed the ledger's budget.
    #[error("release {number} costs rho = {cost}, but only {left} is left of the budget")]
    OverBudget {
        /// Number of the refused release.
        number: u32,
        /// Total cost of the release: Gaussian mechanism, leak and gap.
        cost: crate::Rho,
        /// Remaining budget of the ledger.
        left: crate::Rho,
    },
    /// A release number was already debited or allocated with other content.
    #[error("release {0} was made before with other content")]
    Conflict(u32),
    /// A release number is below one that was already used.
    #[error("release {number} comes after release {last}: numbers must ascend")]
    Order {
        /// The refused number.
        number: u32,
        /// Highest number used so far.
        last: u32,
    },
    /// The ladder has too few positions left.
    #[error("release {number} needs noise at {cells} positions, but the ladder has {left} left")]
    LadderExhausted {
        /// Number of the refused release.
        number: u32,
        /// Positions that it needs.
        cells: usize,
        /// Unused positions.
        left: usize,
    },
    /// Ladders cannot be added: the list is empty, or they differ in size.
    #[error("noise ladders can be added only if there is at least one and all have the same size")]
    LadderSum,
    /// A ladder has no levels, too many levels, or too many positions.
    #[error("a noise ladder of {levels} levels and {positions} positions is not supported")]
    LadderSize {
        /// Requested number of levels.
        levels: usize,
        /// Requested number of positions.
        positions: usize,
    },
    /// A variance is larger than the ladder's levels can add up to.
    #[error("a variance of {units} units is beyond a noise ladder of {levels} levels")]
    VarianceTooLarge {
        /// Requested variance, in units of sigma_b^2.
        units: u64,
        /// Number of levels of the ladder.
        levels: usize,
    },
    /// A page or position is outside the ladder.
    #[error("page {page} has no noise at positions up to {end}")]
    OutsideLadder {
        /// Requested page.
        page: usize,
        /// One past the last requested position.
        end: usize,
    },
    /// The operating system's random generator failed.
    #[error("the operating system's random generator failed")]
    NoRandomness,
    /// The sampler does not support the scale.
    #[error("a discrete Gaussian needs a scale from 1 to 2^27, not {0}")]
    Scale(u64),
}
