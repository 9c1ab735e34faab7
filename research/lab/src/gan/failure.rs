//! Errors of `fhaim-lab gan`.

/// The reason why a command of `gan` failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments are invalid, or do not fit together.
    #[error("{0} (see --help)")]
    Usage(String),
    /// A file cannot be read or written, or has invalid content; or the usage history cannot be used.
    #[error(transparent)]
    Files(#[from] fhaim_files::Error),
    /// A required environment variable is not set.
    #[error(
        "set FHAIM_DATA_DIR to the folder of mnist-images.idx3 and mnist-labels.idx1, or of the table (research/bench/tables.sh fetches some)"
    )]
    NoData,
    /// A table or a schema is invalid.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// The records cannot be split among parties.
    #[error(transparent)]
    Partition(#[from] fhaim_federated::Error),
    /// Networks cannot be trained, sampled or attacked.
    #[error(transparent)]
    Gan(#[from] fhaim_gan::Error),
    /// The operating system's random generator failed.
    #[error("the operating system provides no randomness")]
    NoRandomness,
}

impl Failure {
    /// Returns 2 if the request cannot be carried out as given, and 1 if it failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::NoData | Self::Table(_) | Self::Partition(_) | Self::Gan(_) => 2,
            Self::Files(error) => error.exit_code(),
            Self::NoRandomness => 1,
        }
    }
}
