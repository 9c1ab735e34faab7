//! What can go wrong, in words for the page.

use serde::Serialize;

/// An error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request that is none.
    #[error("not a request: {0}")]
    Request(#[from] serde_json::Error),
    /// A schema or table is refused.
    #[error(transparent)]
    Domain(#[from] fhaim_domain::Error),
    /// Terms, keys or objects are refused.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// The mechanism refuses.
    #[error(transparent)]
    Mechanism(#[from] fhaim_synth::Error),
    /// The tables cannot be compared.
    #[error(transparent)]
    Report(#[from] fhaim_eval::Error),
    /// The stream of bytes that belongs to the request broke.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// A request that needs another one before it.
    #[error("{0}")]
    Order(&'static str),
}

/// An error as the page is told of it.
#[derive(Debug, Serialize)]
pub struct Told {
    /// What went wrong.
    pub detail: String,
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Self {
        Self {
            detail: error.to_string(),
        }
    }
}
