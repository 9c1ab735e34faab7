//! The one error type of this crate.

/// What training, and what comes of it, refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Numbers that do not fit together.
    #[error("{0}")]
    Shape(String),
    /// A setting outside its range.
    #[error("{what}: {problem}")]
    Setting {
        /// Which one.
        what: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Training that ended in weights which are no finite numbers.
    #[error(
        "training diverged: after {steps} steps weights are no finite numbers (take a smaller rate)"
    )]
    Diverged {
        /// Steps, or rounds, that were taken.
        steps: u32,
    },
    /// Bytes that are no saved model.
    #[error("not a model of fhaim-gan: {0}")]
    Saved(&'static str),
    /// Budgets and noise.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// Attacks and learners.
    #[error(transparent)]
    Evaluation(#[from] fhaim_eval::Error),
    /// Accounting.
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
