//! The error type of this crate.

/// An input that a measure rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The values are not whole vectors of one width, or a label is not a known class.
    #[error("labelled vectors must be complete, have the same width, and have a known class each")]
    Labelled,
}
