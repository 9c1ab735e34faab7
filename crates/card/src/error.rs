//! Errors of this crate.

/// Why a card cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The card cannot be converted to JSON.
    #[error("the card cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The data dictionary cannot be converted to CSV.
    #[error("the data dictionary cannot be written as CSV: {0}")]
    Csv(#[from] csv::Error),
}
