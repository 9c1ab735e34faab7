//! The one error type of this crate.

use std::{io, path::PathBuf};

/// What cannot be written, or should not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refuses.
    #[error("{}: {source}", .path.display())]
    Write {
        /// The file, as it was named.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The folder of a result is not there.
    #[error("{}: there is no folder {}: make it first", .path.display(), .folder.display())]
    NoFolder {
        /// The file, as it was named.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// An output is an input, or another output.
    #[error("{} is named for two purposes", .0.display())]
    TwoPurposes(PathBuf),
}

impl Error {
    /// 2 if the request cannot be carried out as it stands, 1 if carrying it out failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NoFolder { .. } | Self::TwoPurposes(_) => 2,
            Self::Write { .. } => 1,
        }
    }
}
