//! The error type of this crate.

/// An error of training, or of using trained networks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Records, networks or numbers that do not fit together.
    #[error("{0}")]
    Shape(String),
    /// A setting is out of its range.
    #[error("{what}: {problem}")]
    Setting {
        /// Name of the setting.
        what: &'static str,
        /// The problem, and the allowed range.
        problem: String,
    },
    /// Training ended with weights that are not finite numbers.
    #[error(
        "training diverged: after {steps} steps some weights are not finite; use a smaller learning rate"
    )]
    Diverged {
        /// Number of steps, or rounds, so far.
        steps: u32,
    },
    /// The bytes are not a saved model.
    #[error("not a model of fhaim-gan: {0}")]
    Saved(&'static str),
    /// An error of budgets or noise.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// An error of attacks or classifiers.
    #[error(transparent)]
    Evaluation(#[from] fhaim_eval::Error),
    /// An error of Renyi accounting.
    #[error(transparent)]
    Accounting(#[from] fhaim_rdp::Error),
}

impl Error {
    pub(crate) fn setting(what: &'static str, problem: impl Into<String>) -> Self {
        Self::Setting {
            what,
            problem: problem.into(),
        }
    }
}
