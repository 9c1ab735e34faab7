//! Errors of the command: one line each, and what they say to a calling script.

use std::{io, path::PathBuf};

/// Why a command did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A schema or a table is refused, or cannot be read or written.
    #[error(transparent)]
    Table(#[from] fhaim_domain::Error),
    /// A privacy parameter is refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// A model cannot be fitted.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
    /// A file that was named cannot be read.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file that was named is not what it should be.
    #[error("{}: {problem}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A result cannot be written.
    #[error("{}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A mechanism or its source failed.
    #[error(transparent)]
    Mechanism(#[from] fhaim_synth::Error),
    /// No parameter set fits, or a ciphertext is refused.
    #[error(transparent)]
    Encryption(#[from] fhaim_he::Error),
    /// The entities did not come to an agreement.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// Two tables cannot be compared.
    #[error(transparent)]
    Evaluation(#[from] fhaim_eval::Error),
    /// The operating system has no randomness to give.
    #[error("the operating system's random generator failed")]
    NoRandomness,
    /// More memory than there is.
    #[error("this needs about {needed} MB of memory where {limit} MB may be used: {advice}")]
    TooLarge {
        /// MB needed.
        needed: u64,
        /// MB allowed.
        limit: u64,
        /// What to do about it.
        advice: String,
    },
    /// An environment variable that the command needs is not set.
    #[error("{0} is not set: it must name the folder {1}")]
    Environment(&'static str, &'static str),
}

impl Error {
    /// 2 if the request cannot be carried out as it stands, 1 if carrying it out failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Table(_)
            | Self::Privacy(_)
            | Self::Usage(_)
            | Self::Read { .. }
            | Self::Content { .. }
            | Self::TooLarge { .. }
            | Self::Encryption(fhaim_he::Error::NoParameters { .. })
            | Self::Evaluation(_)
            | Self::Environment(..) => 2,
            Self::Mechanism(error) => mechanism_exit_code(error),
            Self::Model(_)
            | Self::Write { .. }
            | Self::Encryption(_)
            | Self::Protocol(_)
            | Self::NoRandomness => 1,
        }
    }
}

/// What a mechanism refuses before its first release is the request's fault.
fn mechanism_exit_code(error: &fhaim_synth::Error) -> u8 {
    use fhaim_synth::Error as E;
    match error {
        E::BudgetTooSmall(_) | E::ModelCap { .. } | E::PlaintextOnly(_) | E::EmptyWorkload => 2,
        _ => 1,
    }
}
