//! Errors of parties, their server, and partitions.

use fhaim_domain::counted;
use fhaim_dp::{Rho, number};

/// An error of a partition, a party or a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is out of its range.
    #[error("{name} must be {range}, not {}", number(*value))]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The allowed range.
        range: &'static str,
        /// The given value.
        value: f64,
    },
    /// The number of parties is zero, or larger than the number of records.
    #[error("cannot split {} among {parties} parties: use from 1 to {records}", counted(*records, "record"))]
    TooFewRecords {
        /// The requested number of parties.
        parties: usize,
        /// The number of records.
        records: usize,
    },
    /// A rule splits a table by its classes, and the table has no class column.
    #[error("this rule splits a table by its classes, but the schema names no target column")]
    NoTarget,
    /// The schema has columns with digits.
    #[error(
        "the schema has columns with `digits`, which the methods for several parties do not \
         support: remove `digits` from these columns"
    )]
    Digits,
    /// The schema has only one column.
    #[error(
        "the schema has one column, but the methods for several parties measure dependencies: use at least two columns"
    )]
    OneColumn,
    /// The parties' allowed rounds add up to fewer rounds than the run has.
    #[error(
        "{parties} parties that take part in at most {most_rounds} rounds each cannot fill {rounds} rounds: allow \
         {needed} rounds per party, or run {possible} rounds"
    )]
    TooFewParties {
        /// The number of parties.
        parties: usize,
        /// The most rounds that one party takes part in.
        most_rounds: u32,
        /// The number of rounds of the run.
        rounds: u32,
        /// The least number of rounds that would be needed per party.
        needed: u32,
        /// The most rounds that the parties can fill.
        possible: u64,
    },
    /// A table and the setting have different domains.
    #[error("the domain of a party's table differs from the domain of the run")]
    OtherDomain,
    /// A party would have to pay more than it has left.
    #[error("round {round}: {what} costs rho = {cost}, but the party has only {left} left")]
    OverBudget {
        /// The round.
        round: u32,
        /// The release that the party would have to pay for.
        what: &'static str,
        /// The price of the release.
        cost: Rho,
        /// The party's remaining budget.
        left: Rho,
    },
    /// The server asks a party to take part more often than the setting allows.
    #[error(
        "the server asks a party to take part in {0} rounds, more than its budget was planned for"
    )]
    TooOften(u32),
    /// Every party has taken part in all the rounds that it may.
    #[error("round {0}: no party is left that may take part")]
    NobodyLeft(u32),
    /// A message does not fit the receiver's state.
    #[error("unexpected message: {0}")]
    OutOfTurn(&'static str),
    /// A message has another number of items than requested.
    #[error("{what}: expected {expected}, got {found}")]
    Shape {
        /// The items.
        what: &'static str,
        /// The requested number.
        expected: usize,
        /// The received number.
        found: usize,
    },
    /// A party has more records than masked sums have room for.
    #[error("a party's table of {0} records is too large for masked sums: use smaller tables")]
    TooManyRecords(usize),
    /// Even the smallest candidate exceeds the model cap.
    #[error("no candidate fits the model cap of {0} bytes: raise the cap, or make columns coarser")]
    NoCandidate(usize),
    /// The job is invalid.
    #[error(transparent)]
    Job(#[from] fhaim_release::Error),
    /// An error of privacy accounting.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// The model could not be fitted or queried.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// The table could not be counted or split.
    #[error(transparent)]
    Table(#[from] fhaim_domain::CodesProblem),
}
