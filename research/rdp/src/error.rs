//! The one error type of this crate.

use fhaim_dp::number;

/// What Renyi accounting refuses.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An epsilon or a delta out of range.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// No noise keeps an epsilon this small.
    #[error(
        "no noise keeps epsilon {}: at this delta Renyi accounting shows {floor:.4} or more (raise epsilon, or delta)",
        number(*epsilon)
    )]
    NoNoiseKeeps {
        /// The epsilon asked for.
        epsilon: f64,
        /// The epsilon at the most noise that is looked at.
        floor: f64,
    },
    /// A deviation of noise, or a probability, out of range.
    #[error(
        "noise must be a positive number, and a chance to be drawn above 0 and at most 1, not {} and {}",
        number(*noise),
        number(*rate)
    )]
    Sampled {
        /// The probability.
        rate: f64,
        /// The deviation.
        noise: f64,
    },
}
