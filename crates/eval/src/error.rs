//! What can go wrong while a table is evaluated.

use fhaim_domain::CodesProblem;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two tables whose codes do not mean the same.
    #[error("the {0} table was not read with the real table's schema")]
    Schema(&'static str),
    /// A marginal that does not fit the domain.
    #[error(
        "the model's marginal over attributes {attributes:?} has {found} cells, not {expected}"
    )]
    Marginal {
        /// The attributes.
        attributes: Vec<usize>,
        /// Cells given.
        found: usize,
        /// Cells of the domain.
        expected: usize,
    },
    /// A total that nothing can be divided by.
    #[error("the model's total must be positive, not {0}")]
    Total(f64),
    /// Not one marginal for each set of the workload.
    #[error("{found} marginals for a workload of {expected}")]
    Workload {
        /// Marginals given.
        found: usize,
        /// Sets of the workload.
        expected: usize,
    },
    /// A marginal or record that the table does not have.
    #[error(transparent)]
    Codes(#[from] CodesProblem),
    /// An attack that lacks what it goes by.
    #[error("the attack cannot be made: {0}")]
    Attack(&'static str),
    /// The optimiser of the logistic regression gave up.
    #[error("logistic regression: {0}")]
    Optimiser(String),
}
