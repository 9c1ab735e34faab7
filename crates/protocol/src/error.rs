//! What can go wrong between the entities.

/// An error of the protocol layer. None carries a secret or a table value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The encryption layer failed.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
    /// The noise ladder or the ledger refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// The mechanism refuses the terms.
    #[error(transparent)]
    Mechanism(#[from] fhaim_synth::Error),
    /// Terms that cannot be met.
    #[error("{0}")]
    Terms(String),
    /// The table does not have what its schema promises.
    #[error("table: {0}")]
    Table(String),
    /// An object that is not of an upload.
    #[error("upload: {0}")]
    Object(&'static str),
    /// A request for decryption that does not hold together.
    #[error("request: {0}")]
    Request(&'static str),
    /// A statistic that is not of the dataset's domain.
    #[error("release {number}: {reason}")]
    Statistic {
        /// The release.
        number: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// The crypto service's only refusal, whatever the reason: details go to its log alone.
    #[error("the crypto service refused the release")]
    Refused,
}
