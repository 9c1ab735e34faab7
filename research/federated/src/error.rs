//! What can go wrong between parties and their server.

use fhaim_domain::counted;
use fhaim_dp::{Rho, number};

/// Why a partition, a party or a server could not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting out of its range.
    #[error("{name} must be {range}, not {}", number(*value))]
    Setting {
        /// What was set.
        name: &'static str,
        /// What is allowed.
        range: &'static str,
        /// What was given.
        value: f64,
    },
    /// More parties than records.
    #[error("{parties} parties cannot each have one of {}: take {records} at most", counted(*records, "record"))]
    TooFewRecords {
        /// Parties asked for.
        parties: usize,
        /// Records there are.
        records: usize,
    },
    /// A partition by classes of a table that has none.
    #[error("this rule divides a table by its classes, and the schema names no target column")]
    NoTarget,
    /// A schema whose columns have digits.
    #[error(
        "the schema has columns with `digits`, which the methods for several parties do not know \
         yet: leave `digits` out of them"
    )]
    Digits,
    /// A schema of one column.
    #[error(
        "the schema has one column: the methods for several parties measure what goes with what, and need two"
    )]
    OneColumn,
    /// Parties whose rounds together are fewer than a run has.
    #[error(
        "{parties} parties that take part in at most {most_rounds} rounds each cannot fill {rounds} rounds: let each take \
         part in {needed}, or run {possible}"
    )]
    TooFewParties {
        /// Parties there are.
        parties: usize,
        /// The most rounds that one takes part in.
        most_rounds: u32,
        /// Rounds of the run.
        rounds: u32,
        /// The least that each would have to take part in.
        needed: u32,
        /// The most rounds that they can fill.
        possible: u64,
    },
    /// A table over another domain than the setting's.
    #[error("a party's table is over another domain than the run's")]
    OtherDomain,
    /// A party that would pay more than it has.
    #[error("round {round}: {what} costs rho = {cost}, and the party has {left} left")]
    OverBudget {
        /// The round.
        round: u32,
        /// What was about to leave.
        what: &'static str,
        /// Its price.
        cost: Rho,
        /// What is left.
        left: Rho,
    },
    /// A party that is asked to take part more often than the setting allows.
    #[error("a party is asked to take part a {0}th time, which its budget was not planned for")]
    TooOften(u32),
    /// Nobody is left who may take part.
    #[error("round {0}: every party has taken part as often as it may")]
    NobodyLeft(u32),
    /// A message that does not fit the state.
    #[error("a message out of turn: {0}")]
    OutOfTurn(&'static str),
    /// A message of another shape than was asked for.
    #[error("{what}: {expected} were asked for, {found} came")]
    Shape {
        /// What came.
        what: &'static str,
        /// How many were wanted.
        expected: usize,
        /// How many came.
        found: usize,
    },
    /// A count too large for the masks' modulus.
    #[error("a marginal of {0} records does not fit the masks' modulus")]
    TooManyRecords(usize),
    /// A candidate of the model is too large even for the whole cap.
    #[error("no candidate fits the model cap of {0} bytes: raise it, or coarsen columns")]
    NoCandidate(usize),
    /// A job that cannot run.
    #[error(transparent)]
    Job(#[from] fhaim_release::Error),
    /// Accounting refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// The model could not be fitted or asked.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// The table could not be counted or divided.
    #[error(transparent)]
    Table(#[from] fhaim_domain::CodesProblem),
}
