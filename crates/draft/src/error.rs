//! The one error type of this crate.

use fhaim_dp::Rho;

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
    /// Kinds and bounds of so few records would be guesses. The number of records was paid for.
    #[error(
        "epsilon {epsilon} tells too little of about {records} records in {columns} columns: every kind and bound \
         would be a guess; {}, leave columns out, or draft openly (without an epsilon) and confirm what it says. \
         Counting the records cost rho {:.6}", with(*enough), spent.to_f64()
    )]
    Guess {
        /// Epsilon of the draft.
        epsilon: f64,
        /// About how many records there are, as was released.
        records: i64,
        /// How many columns.
        columns: usize,
        /// About the epsilon that is enough.
        enough: f64,
        /// What was spent.
        spent: Rho,
    },
    /// More would have been spent than there is: a fault of this program.
    #[error("the draft would have cost more than its epsilon: nothing was drafted")]
    Overspent,
}

/// What to spend, in words.
fn with(enough: f64) -> String {
    if enough.is_finite() {
        format!("spend about {enough:.1}")
    } else {
        "take a table of more records".to_owned()
    }
}
