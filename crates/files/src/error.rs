//! The one error type of this crate.

use std::{io, path::PathBuf};

use crate::shown_path;

/// What cannot be read or written, or should not be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file that was named cannot be read.
    #[error("{}: {source}", shown_path(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that was named is not what it should be.
    #[error("{}: {problem}", shown_path(.path))]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// What is read twice comes through a pipe.
    #[error("{} gives its records once and not again: name a file, not a pipe", shown_path(.0))]
    Pipe(PathBuf),
    /// The system refuses.
    #[error("{}: {source}", shown_path(.path))]
    Write {
        /// The file, as it was named.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A result is to take the place of a folder.
    #[error("{} is a folder: name a file in it", shown_path(.0))]
    Folder(PathBuf),
    /// The folder of a result is not there.
    #[error("{}: there is no folder {}: make it first", shown_path(.path), shown_path(.folder))]
    NoFolder {
        /// The file, as it was named.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// An output is an input, or another output.
    #[error("{} is named for two purposes", shown_path(.0))]
    TwoPurposes(PathBuf),
    /// An output would take the place of what is remembered of spending.
    #[error("{}: what is remembered of earlier runs is there: name a file in another folder", shown_path(.0))]
    Remembered(PathBuf),
    /// An output would be an input of the next run.
    #[error(
        "{}: in {} the next run would take it for a party's table: name a file in another folder",
        shown_path(.path),
        shown_path(.parts)
    )]
    AmongParties {
        /// The output, as it was named.
        path: PathBuf,
        /// The folder of the parties' tables.
        parts: PathBuf,
    },
    /// There is no folder for what is remembered.
    #[error("set FHAIM_CONFIG_DIR: there is no home folder")]
    NoHome,
    /// Whoever was asked said no.
    #[error("nothing was done")]
    Declined,
    /// The operating system has no randomness to give.
    #[error("the operating system's random generator failed")]
    NoRandomness,
}

impl Error {
    /// 2 if the request cannot be carried out as it stands, 1 if carrying it out failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. }
            | Self::Content { .. }
            | Self::Pipe(_)
            | Self::Folder(_)
            | Self::NoFolder { .. }
            | Self::TwoPurposes(_)
            | Self::Remembered(_)
            | Self::AmongParties { .. }
            | Self::NoHome
            | Self::Declined => 2,
            Self::Write { .. } | Self::NoRandomness => 1,
        }
    }
}
