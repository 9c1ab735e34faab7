//! The interface between mechanisms and the sources that answer them.
//!
//! A mechanism requests releases: statistics of the records plus discrete Gaussian noise of a
//! variance that it names. A [`ReleaseSource`] answers with integers. It may count in the clear or
//! compute on ciphertexts; with the same noise both give the same integers (docs/DESIGN.md section
//! 5).

use crate::ReleaseRequest;

/// Answers release requests, in the clear or by computing on ciphertexts.
pub trait ReleaseSource {
    /// Releases a batch, and returns for each request, in the given order, its cells with noise.
    ///
    /// Requests of one job must arrive in the order of their numbers. A number that was already
    /// answered must get the same integers or a refusal, and never new noise.
    ///
    /// # Errors
    /// [`SourceError`]. After an error the state of the batch is unknown.
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError>;
}

/// The reason for which a source did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The statistic does not fit the table.
    #[error("release {number}: {error}")]
    Statistic {
        /// Number of the request.
        number: u32,
        /// Reason why it does not fit.
        error: crate::Error,
    },
    /// A request is out of order or repeated.
    #[error("release {number} is out of order: release {expected} comes next")]
    OutOfOrder {
        /// Number of the request.
        number: u32,
        /// The expected number.
        expected: u32,
    },
    /// The source failed: its noise is used up, or computation or decryption was refused.
    #[error("the source failed: {0}")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SourceError {
    /// Wraps a source's own error.
    pub fn backend(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Backend(error.into())
    }
}
