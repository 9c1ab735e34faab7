//! The errors of this crate.

/// An error of the encryption layer. No variant carries a secret or a table value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter set breaks one of its own rules.
    #[error("parameter set {id}: {reason}")]
    Parameters {
        /// Identifier of the set.
        id: u8,
        /// The broken rule.
        reason: &'static str,
    },
    /// No parameter set is large enough for the workload.
    #[error("no parameter set for {records} records and statistics up to {largest}: {way_out}")]
    NoParameters {
        /// Bound on the number of records.
        records: u64,
        /// Largest absolute value a release may take.
        largest: u128,
        /// What the caller can change.
        way_out: &'static str,
    },
    /// Bytes that the decoder cannot read.
    #[error("malformed {what}: {reason}")]
    Malformed {
        /// The kind of object being decoded.
        what: &'static str,
        /// The first rule that the bytes break.
        reason: &'static str,
    },
    /// Two objects that do not belong together.
    #[error("mismatch: {0}")]
    Mismatch(&'static str),
    /// A statistic, position or size outside what the layout allows.
    #[error("out of range: {0}")]
    OutOfRange(&'static str),
    /// A stored object could not be read, or differs from the one that was stored. A retry may succeed.
    #[error("a stored object could not be read, try again: {0}")]
    Unavailable(String),
    /// The residual noise leaves too little room for exact decryption, or is larger than a flood can hide.
    #[error(
        "too little noise budget left: the table's columns are too wide for its encryption parameters; merge rare \
         categories, or create the dataset again with other parameters"
    )]
    NoiseBudget,
    /// The underlying scheme refused an operation.
    #[error("encryption scheme: {0}")]
    Scheme(String),
}

impl From<fhe::Error> for Error {
    fn from(error: fhe::Error) -> Self {
        Self::Scheme(error.to_string())
    }
}

impl From<fhe_math::Error> for Error {
    fn from(error: fhe_math::Error) -> Self {
        Self::Scheme(error.to_string())
    }
}

/// Result of this crate's operations.
pub type Result<T> = std::result::Result<T, Error>;
