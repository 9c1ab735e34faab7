//! Errors, with messages for the page.

use serde::Serialize;

/// An error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request is invalid.
    #[error("invalid request: {0}")]
    Request(#[from] serde_json::Error),
    /// A schema or table is rejected.
    #[error(transparent)]
    Domain(#[from] fhaim_domain::Error),
    /// Terms, keys or objects are rejected.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// The mechanism returned an error.
    #[error(transparent)]
    Mechanism(#[from] fhaim_synth::Error),
    /// The tables cannot be compared.
    #[error(transparent)]
    Report(#[from] fhaim_eval::Error),
    /// The stream of bytes that belongs to the request broke.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// The file is of a type that is not read here.
    #[error("{file}: {problem}{hint}")]
    Type {
        /// Name of the file.
        file: String,
        /// The type of the file, and how to get a table in text.
        problem: String,
        /// Another way, or nothing.
        hint: &'static str,
    },
    /// The stated encoding is unknown.
    #[error("{0}")]
    Encoding(String),
    /// A request needs an earlier one.
    #[error("{0}")]
    Order(&'static str),
}

/// An error in the form that the page receives.
#[derive(Debug, Serialize)]
pub struct Told {
    /// The error message.
    pub detail: String,
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Self {
        Self {
            detail: error.to_string(),
        }
    }
}
