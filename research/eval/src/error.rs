//! The one error type of this crate.

/// What a measure refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Labelled vectors of different widths, or of unknown classes.
    #[error("labelled vectors must be whole, of the same width, and of classes that there are")]
    Labelled,
}
