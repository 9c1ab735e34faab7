//! The seam between mechanisms and what answers them.
//!
//! A mechanism asks for releases: statistics of the records plus discrete Gaussian noise of a
//! variance that it names. A [`ReleaseSource`] answers with integers; whether it counts in the clear or
//! computes on ciphertexts is its own affair, and with the same noise both answer alike, bit for
//! bit (docs/DESIGN.md section 5).

use crate::ReleaseRequest;

/// Answers releases: in the clear, or by computing on ciphertexts.
pub trait ReleaseSource {
    /// Releases a batch: for each request, in the order given, its cells with noise.
    ///
    /// Requests of one job come in the order of their numbers; a number already answered must
    /// be answered with the same integers or refused, never with fresh noise.
    ///
    /// # Errors
    /// [`SourceError`]; after one nothing may be assumed about the batch.
    fn release(&mut self, requests: &[ReleaseRequest]) -> Result<Vec<Vec<i64>>, SourceError>;
}

/// Why a source did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The statistic does not fit the table.
    #[error("release {number}: {error}")]
    Statistic {
        /// The request's number.
        number: u32,
        /// What is wrong with it.
        error: crate::Error,
    },
    /// A request out of order, or asked twice.
    #[error("release {number} is out of order: release {expected} comes next")]
    OutOfOrder {
        /// The request's number.
        number: u32,
        /// The number that would have been right.
        expected: u32,
    },
    /// The source's own failure: noise used up, computation or decryption refused.
    #[error("the source failed: {0}")]
    Backend(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl SourceError {
    /// Wraps a source's own error.
    pub fn backend(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Backend(error.into())
    }
}
