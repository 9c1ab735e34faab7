//! Errors of the program: one line each, and what they say to a calling script.

use std::{io, path::PathBuf};

use fhaim_files::shown_path;

use crate::gan;

/// Why a command did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What `fhaim` refuses as well.
    #[error(transparent)]
    Product(Box<fhaim_cli::Error>),
    /// Arguments that do not go together.
    #[error("{0}")]
    Usage(String),
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
    /// A result cannot be written.
    #[error("{}: {source}", shown_path(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Parties or their server did not come to an end.
    #[error(transparent)]
    Federated(#[from] fhaim_federated::Error),
    /// Records cannot be mixed.
    #[error(transparent)]
    Mix(#[from] fhaim_mix::Error),
    /// Networks cannot be trained, or drawn from.
    #[error(transparent)]
    Gan(Box<gan::Failure>),
    /// An attack or a learner lacks what it needs.
    #[error(transparent)]
    Measure(#[from] fhaim_lab_eval::Error),
    /// A job did not end well.
    #[error("{0}")]
    Job(String),
    /// A service cannot run.
    #[error("{0}")]
    Service(String),
    /// Ciphertexts that memory has no room for.
    #[error("{reason}: {advice}")]
    TooLarge {
        /// What is too large.
        reason: String,
        /// What to do about it.
        advice: String,
    },
    /// An environment variable that the command needs is not set.
    #[error("{0} is not set: it must name the folder {1}")]
    Environment(&'static str, &'static str),
}

impl Error {
    /// What the caller can do about it, where that is not plain from the error.
    pub fn way_out(&self) -> Option<&'static str> {
        match self {
            Self::Product(error) => error.way_out(),
            Self::Federated(fhaim_federated::Error::TooFewParties { .. }) => {
                Some("--most-rounds, or --rounds")
            }
            Self::Federated(fhaim_federated::Error::Job(error)) => job_way_out(error),
            _ => None,
        }
    }

    /// 2 if the request cannot be carried out as it stands, 1 if carrying it out failed.
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

/// Errors of the product's libraries are the product's errors.
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
