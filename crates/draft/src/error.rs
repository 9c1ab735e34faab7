//! The error type of this crate.

use fhaim_dp::Rho;

/// The reason why a draft failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table cannot be read, or does not result in a valid schema.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// A privacy parameter is invalid.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// Each column's share is too small for any mechanism.
    #[error(
        "epsilon {epsilon} is too small for {shares} shares (one for each column and one for the number of \
         records): leave columns out or use a larger epsilon"
    )]
    TooLittle {
        /// Epsilon of the whole draft.
        epsilon: f64,
        /// The number of parts that the budget was to be divided into.
        shares: u64,
    },
    /// Kinds and bounds would be guesses because there are too few records. The released number of
    /// records was paid for.
    #[error(
        "epsilon {epsilon} is too small for {columns} columns of about {records} records: every kind and bound \
         would be a guess. {}, leave columns out, or draft openly (without an epsilon) and confirm the result. \
         Counting the records cost rho {:.6}", with(*enough), spent.to_f64()
    )]
    Guess {
        /// Epsilon of the whole draft.
        epsilon: f64,
        /// The released number of records, which is approximate.
        records: i64,
        /// Number of columns.
        columns: usize,
        /// An epsilon that is about large enough; infinite if there seem to be no records.
        enough: f64,
        /// The rho spent so far.
        spent: Rho,
    },
    /// The draft would have exceeded its budget, which is a bug in this program.
    #[error(
        "the draft was stopped because it would have exceeded its budget: this is a bug, please report it"
    )]
    Overspent,
}

/// Returns the first advice of [`Error::Guess`].
fn with(enough: f64) -> String {
    if enough.is_finite() {
        format!("Use an epsilon of about {enough:.1}")
    } else {
        "Use a table with more records".to_owned()
    }
}
