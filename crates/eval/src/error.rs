//! The crate's error type.

use fhaim_domain::CodesProblem;

/// An error of an evaluation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two tables have different schemas, so their codes cannot be compared.
    #[error("the {0} table was not read with the real table's schema")]
    Schema(&'static str),
    /// A marginal's size does not match the domain.
    #[error(
        "the model's marginal over attributes {attributes:?} has {found} cells, not {expected}"
    )]
    Marginal {
        /// The marginal's attributes.
        attributes: Vec<usize>,
        /// Number of cells given.
        found: usize,
        /// Number of cells in the domain.
        expected: usize,
    },
    /// A model's total is not a positive number.
    #[error("the model's total must be positive, not {0}")]
    Total(f64),
    /// The number of marginals differs from the number of sets in the workload.
    #[error("the workload has {expected} sets of columns, but the model has {found} marginals")]
    Workload {
        /// Number of marginals given.
        found: usize,
        /// Number of sets in the workload.
        expected: usize,
    },
    /// The table does not have the attributes or records.
    #[error(transparent)]
    Codes(#[from] CodesProblem),
    /// An attack lacks its inputs.
    #[error("the attack cannot run: {0}")]
    Attack(&'static str),
    /// The optimiser of the logistic regression failed.
    #[error("the logistic regression cannot be fitted: {0}")]
    Optimiser(String),
}
