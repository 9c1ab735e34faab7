//! Errors of the program, with a message of one line each, and their exit codes.

use std::{borrow::Cow, io, path::PathBuf};

use fhaim_files::shown_path;

use crate::gan;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error of the libraries of `fhaim`.
    #[error(transparent)]
    Product(Box<fhaim_cli::Error>),
    /// The arguments are invalid, or do not fit together.
    #[error("{0}")]
    Usage(String),
    /// A file cannot be read.
    #[error("{}: {source}", shown_path(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}: {problem}", shown_path(.path))]
    Content {
        /// The file.
        path: PathBuf,
        /// The problem with the content.
        problem: String,
    },
    /// A result cannot be written.
    #[error("{}: {source}", shown_path(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A federated run failed.
    #[error(transparent)]
    Federated(#[from] fhaim_federated::Error),
    /// Records cannot be mixed.
    #[error(transparent)]
    Mix(#[from] fhaim_mix::Error),
    /// A command of `gan` failed.
    #[error(transparent)]
    Gan(Box<gan::Failure>),
    /// The input of a measure is invalid.
    #[error(transparent)]
    Measure(#[from] fhaim_lab_eval::Error),
    /// A job failed.
    #[error("{0}")]
    Job(String),
    /// A service cannot run.
    #[error("{0}")]
    Service(String),
    /// Ciphertexts do not fit into memory.
    #[error("{reason}: {advice}")]
    TooLarge {
        /// The part that is too large.
        reason: String,
        /// What the user can do.
        advice: String,
    },
    /// A required environment variable is not set.
    #[error("{0} is not set: it must name the folder {1}")]
    Environment(&'static str, &'static str),
}

impl Error {
    /// Returns advice for the user, if the message does not contain it already.
    pub fn way_out(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Product(error) => error.way_out(),
            Self::Federated(fhaim_federated::Error::TooFewParties { .. }) => {
                Some(Cow::Borrowed("--most-rounds, or --rounds"))
            }
            Self::Federated(fhaim_federated::Error::Job(error)) => {
                job_way_out(error).map(Cow::Borrowed)
            }
            _ => None,
        }
    }

    /// Whether a mechanism rejected a run because a release needs more noise than can be drawn.
    pub fn is_refusal_of_noise(&self) -> bool {
        use fhaim_synth::Error::Noise;
        let Self::Product(error) = self else {
            return false;
        };
        matches!(**error, fhaim_cli::Error::Mechanism(Noise { .. }))
    }

    /// Returns 2 if the request cannot be carried out as given, and 1 if it failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Product(error) => error.exit_code(),
            Self::Gan(failure) => failure.exit_code(),
            Self::Federated(error) => federated_exit_code(error),
            Self::Mix(fhaim_mix::Error::Encryption(fhaim_he::Error::NoParameters { .. })) => 2,
            Self::Mix(fhaim_mix::Error::Encryption(_)) => 1,
            Self::Usage(_)
            | Self::Read { .. }
            | Self::Content { .. }
            | Self::TooLarge { .. }
            | Self::Mix(_)
            | Self::Measure(_)
            | Self::Environment(..) => 2,
            Self::Write { .. } | Self::Job(_) | Self::Service(_) => 1,
        }
    }
}

fn federated_exit_code(error: &fhaim_federated::Error) -> u8 {
    use fhaim_federated::Error as E;
    use fhaim_release::Error as R;
    match error {
        E::Setting { .. }
        | E::TooFewRecords { .. }
        | E::TooFewParties { .. }
        | E::NoTarget
        | E::OneColumn
        | E::Digits
        | E::Privacy(_)
        | E::Job(R::BudgetTooSmall(_) | R::ModelCap { .. } | R::EmptyWorkload) => 2,
        _ => 1,
    }
}

fn job_way_out(error: &fhaim_release::Error) -> Option<&'static str> {
    use fhaim_release::Error as R;
    match error {
        R::BudgetTooSmall(_) => Some("raise epsilon"),
        R::ModelCap { .. } => Some("raise --model-mb, or coarsen columns"),
        _ => None,
    }
}

impl From<fhaim_cli::Error> for Error {
    fn from(error: fhaim_cli::Error) -> Self {
        Self::Product(Box::new(error))
    }
}

impl From<gan::Failure> for Error {
    fn from(failure: gan::Failure) -> Self {
        Self::Gan(Box::new(failure))
    }
}

/// Converts errors of the product's libraries through the product's error type.
macro_rules! product {
    ($($error:ty),+ $(,)?) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                fhaim_cli::Error::from(error).into()
            }
        })+
    };
}

product!(
    fhaim_domain::Error,
    fhaim_dp::Error,
    fhaim_eval::Error,
    fhaim_files::Error,
    fhaim_he::Error,
    fhaim_pgm::Error,
    fhaim_protocol::Error,
    fhaim_sdk::Error,
    fhaim_synth::Error,
);
