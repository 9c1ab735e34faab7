//! What can go wrong in this crate.

/// An error of the encryption layer. None of them carries a secret or a table value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter set broke one of its own rules.
    #[error("parameter set {id}: {reason}")]
    Parameters {
        /// Identifier of the set.
        id: u8,
        /// The rule that does not hold.
        reason: &'static str,
    },
    /// No parameter set is large enough for the workload.
    #[error("no parameter set for {records} records and statistics up to {largest}: {way_out}")]
    NoParameters {
        /// Bound on the number of records.
        records: u64,
        /// Largest absolute value a release may take.
        largest: u128,
        /// What would help.
        way_out: &'static str,
    },
    /// Bytes that are not what the decoder expects.
    #[error("malformed {what}: {reason}")]
    Malformed {
        /// The kind of object being decoded.
        what: &'static str,
        /// The first rule the bytes break.
        reason: &'static str,
    },
    /// Two objects that do not belong together.
    #[error("mismatch: {0}")]
    Mismatch(&'static str),
    /// A statistic, position or size outside what the layout allows.
    #[error("out of range: {0}")]
    OutOfRange(&'static str),
    /// What is kept elsewhere could not be read, or is not what was put there: worth another try.
    #[error("what is kept elsewhere could not be read: {0}")]
    Unavailable(String),
    /// The residual noise leaves too little room for exact decryption, or more of it than a flood hides.
    #[error(
        "too little noise budget left: the table's columns are too wide for its encryption parameters; make the dataset \
         anew, or merge rare categories"
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
