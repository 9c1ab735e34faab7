//! The one error type of this crate.

/// Why nothing was drafted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table cannot be read, or makes no schema.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// A parameter of privacy is refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// So little for each column that no mechanism has a scale for it.
    #[error(
        "epsilon {epsilon} is too little for {shares} shares: leave columns out, or spend more"
    )]
    TooLittle {
        /// Epsilon of the draft.
        epsilon: f64,
        /// Into how many parts it was to be divided.
        shares: u64,
    },
    /// More would have been spent than there is: a fault of this program.
    #[error("the draft would have cost more than its epsilon: nothing was drafted")]
    Overspent,
}
