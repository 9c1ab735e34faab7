//! What can go wrong in a mechanism.

use thiserror::Error;

use crate::source::{SourceError, StatisticError};

/// Why a mechanism could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The domain has no attribute, or an attribute without values.
    #[error("the domain has no attributes, or attribute {0:?} has no values")]
    EmptyDomain(Option<usize>),
    /// A workload pair that is not two different attributes of the domain.
    #[error("({0}, {1}) is not a pair of attributes of the domain")]
    WorkloadPair(usize, usize),
    /// A workload without pairs of positive weight.
    #[error("the workload has no pair of positive weight")]
    EmptyWorkload,
    /// A pair that is in the workload twice.
    #[error("the pair ({0}, {1}) is in the workload twice")]
    RepeatedPair(usize, usize),
    /// An option out of its range.
    #[error("option {name} must be {range}, not {value}")]
    Option {
        /// The option's name.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        value: f64,
    },
    /// No budget, or one too small to pay for a single release.
    #[error("the privacy budget rho = {0} is too small for one release of every column")]
    BudgetTooSmall(fhaim_dp::Rho),
    /// The model does not fit its cap even without a single pair.
    #[error("{cells} cells of one-way tables alone do not fit the model cap of {cap} bytes")]
    ModelCap {
        /// Cells needed.
        cells: usize,
        /// The cap in bytes.
        cap: usize,
    },
    /// A mechanism name that does not exist.
    #[error("unknown mechanism {0:?}: choose staged, fhaim-l2, aim or one-ways")]
    UnknownMechanism(String),
    /// A mechanism that reads exact marginals, asked to run over a source.
    #[error("{0} reads exact marginals: it runs in the clear only")]
    PlaintextOnly(&'static str),
    /// A job over another domain than the table's.
    #[error("the job is over another domain than the table's")]
    OtherDomain,
    /// Answers that are not the ones asked for.
    #[error("{expected} answers were asked for, {found} came")]
    AnswerCount {
        /// Requests in the batch.
        expected: usize,
        /// Answers given.
        found: usize,
    },
    /// An answer with the wrong number of cells.
    #[error("release {number} has {expected} cells, its answer {found}")]
    AnswerCells {
        /// The request's number.
        number: u32,
        /// Cells asked for.
        expected: usize,
        /// Cells given.
        found: usize,
    },
    /// A step after the outcome was given.
    #[error("the mechanism is done")]
    Done,
    /// Bookkeeping that contradicts itself: a bug, reported instead of a panic.
    #[error("internal error: {0}")]
    Internal(&'static str),
    /// A statistic the mechanism built is not valid.
    #[error(transparent)]
    Statistic(#[from] StatisticError),
    /// Accounting refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// The model could not be fitted.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// The table could not be counted or split.
    #[error(transparent)]
    Table(#[from] fhaim_domain::CodesProblem),
    /// The source did not answer.
    #[error(transparent)]
    Source(#[from] SourceError),
}
