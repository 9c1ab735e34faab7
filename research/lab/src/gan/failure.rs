//! What the program refuses, in words for who called it.

/// A failure of the program.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Arguments that do not fit together.
    #[error("{0} (see --help)")]
    Usage(String),
    /// A file that cannot be read or written, should not be, or holds something else; what is remembered of records.
    #[error(transparent)]
    Files(#[from] fhaim_files::Error),
    /// A variable of the environment that is not set.
    #[error(
        "set FHAIM_DATA_DIR to the folder of mnist-images.idx3 and mnist-labels.idx1, or of the table (research/bench/tables.sh fetches some)"
    )]
    NoData,
    /// Tables and schemas.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// Partitions.
    #[error(transparent)]
    Partition(#[from] fhaim_federated::Error),
    /// Networks, training, attacks.
    #[error(transparent)]
    Gan(#[from] fhaim_gan::Error),
    /// The operating system's generator.
    #[error("the operating system gives no randomness")]
    NoRandomness,
}

impl Failure {
    /// 2 for what cannot be carried out as it stands, 1 for all else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::NoData | Self::Table(_) | Self::Partition(_) | Self::Gan(_) => 2,
            Self::Files(error) => error.exit_code(),
            Self::NoRandomness => 1,
        }
    }
}
