//! The error type of this crate.

use fhaim_dp::number;

/// An error of Renyi accounting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An epsilon or a delta is out of range.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// No amount of noise reaches an epsilon this small.
    #[error(
        "no noise keeps epsilon {}: the least at this delta is {floor:.4}; raise epsilon or delta",
        number(*epsilon)
    )]
    NoNoiseKeeps {
        /// The requested epsilon.
        epsilon: f64,
        /// The epsilon at the largest noise that is tried.
        floor: f64,
    },
    /// A standard deviation of noise or a sampling probability is out of range.
    #[error(
        "the noise must be positive, and the sampling probability above 0 and at most 1; they are {} and {}",
        number(*noise),
        number(*rate)
    )]
    Sampled {
        /// The sampling probability.
        rate: f64,
        /// The standard deviation of the noise.
        noise: f64,
    },
}
