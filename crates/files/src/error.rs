//! The crate's error type.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::shown_path;

/// An input that cannot be read, or an output that cannot or must not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{}: {source}", shown_path(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file's content is invalid.
    #[error("{}: {problem}", shown_path(.path))]
    Content {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        problem: String,
    },
    /// An input that is read twice is a pipe.
    #[error("{} is a pipe, but this command reads it twice: name a file", shown_path(.0))]
    Pipe(PathBuf),
    /// A file cannot be written.
    #[error("{}: {source}", shown_path(.path))]
    Write {
        /// The file, as the user named it.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An output file exists already.
    #[error("{} exists: choose another name, or replace it with --force", shown_path(.0))]
    Exists(PathBuf),
    /// An output path is a folder.
    #[error("{} is a folder: name a file in it", shown_path(.0))]
    Folder(PathBuf),
    /// The folder of an output does not exist.
    #[error("{}: the folder {} does not exist: create it first", shown_path(.path), shown_path(.folder))]
    NoFolder {
        /// The file, as the user named it.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// The extension of an output table is that of a format that is not written.
    #[error(
        "{}: {format} are not written: name a file with the extension .csv, which spreadsheets open, or .parquet",
        shown_path(.path)
    )]
    Format {
        /// The file, as the user named it.
        path: PathBuf,
        /// Name of the format.
        format: &'static str,
    },
    /// An output path is also an input or another output.
    #[error("{} is named both as an output and as another file: choose a different output", shown_path(.0))]
    TwoPurposes(PathBuf),
    /// An output would overwrite the usage history.
    #[error("{}: this name is reserved for the history of earlier runs: name a file in another folder", shown_path(.0))]
    Remembered(PathBuf),
    /// An output would become an input of the next run.
    #[error(
        "{}: in the folder {}, the next run would read it as a party's table: name a file in another folder",
        shown_path(.path),
        shown_path(.parts)
    )]
    AmongParties {
        /// The output, as the user named it.
        path: PathBuf,
        /// The folder of the parties' tables.
        parts: PathBuf,
    },
    /// No folder for logins and the usage history can be determined.
    #[error("there is no home folder: set FHAIM_CONFIG_DIR to a folder for fhaim's own files")]
    NoHome,
    /// The user answered no to a question.
    #[error("cancelled: nothing was done")]
    Declined,
    /// Records were used before, and there is no terminal to ask whether to use them again.
    #[error("these records were used before: to use them again without a question, add --yes")]
    UsedBefore,
    /// The usage history cannot be read, and there is no terminal to ask whether to continue without it.
    #[error(
        "the history of used records cannot be read, so that earlier uses of these records are unknown, and this use \
         would not be recorded: to use them without the history, add --yes"
    )]
    UnknownUses,
    /// The history has another state of a run than the one from which it continues.
    #[error(
        "another program continued this run from a copy of its files: its releases so far are on disk and in the \
         history, and no more are made. Choose another --out for a new run"
    )]
    RunElsewhere,
    /// A run is expected to give only noise, and there is no terminal to ask whether to start it.
    #[error("{0}. To run it anyway, add --yes")]
    Worthless(String),
    /// A table cannot be split into records.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// The operating system cannot provide randomness.
    #[error("the operating system's random generator failed")]
    NoRandomness,
}

impl Error {
    /// Returns the kind of the error, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Declined => "declined",
            Self::UsedBefore => "used-before",
            Self::UnknownUses => "unknown-uses",
            Self::Worthless(_) => "only-noise",
            Self::Table(_) => "table",
            Self::NoHome => "environment",
            Self::NoRandomness => "system",
            _ => "file",
        }
    }

    /// Returns the file of the error, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. }
            | Self::Content { path, .. }
            | Self::Write { path, .. }
            | Self::NoFolder { path, .. }
            | Self::AmongParties { path, .. }
            | Self::Format { path, .. }
            | Self::Pipe(path)
            | Self::Exists(path)
            | Self::Folder(path)
            | Self::TwoPurposes(path)
            | Self::Remembered(path) => Some(path),
            Self::NoHome
            | Self::Declined
            | Self::UsedBefore
            | Self::UnknownUses
            | Self::RunElsewhere
            | Self::Worthless(_)
            | Self::Table(_)
            | Self::NoRandomness => None,
        }
    }

    /// Returns 2 for an invalid request, and 1 if carrying out a valid request failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. }
            | Self::Content { .. }
            | Self::Pipe(_)
            | Self::Exists(_)
            | Self::Folder(_)
            | Self::NoFolder { .. }
            | Self::TwoPurposes(_)
            | Self::Remembered(_)
            | Self::AmongParties { .. }
            | Self::Format { .. }
            | Self::NoHome
            | Self::Declined
            | Self::UsedBefore
            | Self::UnknownUses
            | Self::RunElsewhere
            | Self::Worthless(_)
            | Self::Table(_) => 2,
            Self::Write { .. } | Self::NoRandomness => 1,
        }
    }
}
