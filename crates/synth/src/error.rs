//! The errors of mechanisms.

use thiserror::Error;

use crate::account::Release;
use crate::model::ModelError;
use fhaim_domain::Schema;
use fhaim_dp::Rho;
use fhaim_release::{RunError, SourceError};

/// The reason why a mechanism stopped.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The value of an option is out of its range.
    #[error("option {name} must be {range}, not {value}")]
    Option {
        /// The option's name.
        name: &'static str,
        /// The allowed range.
        range: &'static str,
        /// The given value.
        value: f64,
    },
    /// An option does not exist or has the wrong type.
    #[error("invalid options of mechanism {0}: {1}")]
    Options(&'static str, String),
    /// There is no mechanism with this name.
    #[error("unknown mechanism {name:?}: choose {known}")]
    UnknownMechanism {
        /// The given name.
        name: String,
        /// The known names.
        known: String,
    },
    /// The mechanism reads exact marginals, so it cannot run over a source.
    #[error("{0} reads exact marginals and runs in the clear only")]
    PlaintextOnly(&'static str),
    /// A release needs more noise than can be drawn: a standard deviation above 2^28.
    #[error(
        "{release} need noise with a standard deviation of 2^{bits}, and 2^28 is the largest that can be drawn; a larger \
         epsilon, fewer rounds or the mechanism staged needs less"
    )]
    Noise {
        /// The release.
        release: &'static str,
        /// Logarithm of the standard deviation.
        bits: u32,
    },
    /// The domain of the job differs from the table's.
    #[error("the job's domain differs from the table's")]
    OtherDomain,
    /// The number of answers differs from the number of requests.
    #[error("the batch has {expected} requests, but {found} answers were given")]
    AnswerCount {
        /// Requests in the batch.
        expected: usize,
        /// Answers given.
        found: usize,
    },
    /// An answer has the wrong number of cells.
    #[error("the answer to release {number} must have {expected} cells, and has {found}")]
    AnswerCells {
        /// The request's number.
        number: u32,
        /// Cells requested.
        expected: usize,
        /// Cells given.
        found: usize,
    },
    /// Almost no record that the model draws satisfies the schema's constraints.
    #[error(
        "the schema's constraints allow {kept} of {drawn} records that the model drew: it has learned too little \
         of the constraints; use a larger epsilon or relax the constraints"
    )]
    Disallowed {
        /// Records that are allowed.
        kept: usize,
        /// Records that were drawn.
        drawn: usize,
    },
    /// The model is too far from its measurements.
    #[error(transparent)]
    Unfitted(Box<Unfitted>),
    /// The mechanism was stepped after it returned its outcome.
    #[error("the mechanism has already finished")]
    Done,
    /// Inconsistent bookkeeping. This is a bug, reported instead of a panic.
    #[error("internal error: {0}")]
    Internal(&'static str),
    /// The job cannot run, or a statistic cannot be released.
    #[error(transparent)]
    Release(#[from] fhaim_release::Error),
    /// A privacy parameter or cost is invalid.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// The model could not be fitted.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// The fitted model cannot answer a query.
    #[error(transparent)]
    Fitted(#[from] ModelError),
    /// The table cannot be counted or split.
    #[error(transparent)]
    Table(#[from] fhaim_domain::CodesProblem),
    /// The source did not answer.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The run failed for a reason outside the mechanism.
    #[error(transparent)]
    Run(Box<RunError<Self>>),
}

/// A run whose model is too far from its measurements. The releases are paid for, so the error
/// keeps them: a later program can fit a model to them.
#[derive(Debug, Error)]
#[error(
    "the model does not fit the measurements: its loss is {loss:.0}, but noise accounts for about {:.0}; attributes \
     {attributes:?} differ most",
    0.5 * *.values as f64
)]
pub struct Unfitted {
    /// The loss of the last fit.
    pub loss: f64,
    /// Number of measured values.
    pub values: usize,
    /// Attributes whose tables differ more from the model than noise accounts for, largest
    /// difference first.
    pub attributes: Vec<usize>,
    /// All releases of the run so far, in order.
    pub releases: Vec<Release>,
    /// Total cost of the releases and of the selections between them.
    pub spent: Rho,
}

impl Unfitted {
    /// Describes the error in a sentence that names columns of `schema`.
    pub fn describe(&self, schema: &Schema) -> String {
        let mut columns: Vec<&str> = Vec::new();
        for field in self.attributes.iter().filter_map(|&a| schema.field_of(a)) {
            if !columns.contains(&field.name()) {
                columns.push(field.name());
            }
        }
        columns.truncate(MAX_NAMED_COLUMNS);
        let furthest = match columns.as_slice() {
            [] => "the number of records differs most".to_owned(),
            names => format!("the columns that differ most are {}", names.join(", ")),
        };
        format!(
            "the model does not fit the measurements: its loss is {:.0}, but noise accounts for about {:.0}; {furthest}",
            self.loss,
            0.5 * self.values as f64
        )
    }
}

/// Largest number of columns that [`Unfitted::describe`] names.
const MAX_NAMED_COLUMNS: usize = 5;

impl From<RunError<Self>> for Error {
    fn from(error: RunError<Self>) -> Self {
        match error {
            RunError::Mechanism(error) => error,
            RunError::Release(error) => Self::Release(error),
            other => Self::Run(Box::new(other)),
        }
    }
}

impl Error {
    /// Returns the error for a budget that does not pay for one release of every column.
    pub fn budget_too_small(rho: Rho) -> Self {
        fhaim_release::Error::BudgetTooSmall(rho).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unfitted(attributes: Vec<usize>) -> Unfitted {
        Unfitted {
            loss: 90.0,
            values: 20,
            attributes,
            releases: Vec::new(),
            spent: Rho::ZERO,
        }
    }

    #[test]
    fn description_names_at_most_five_columns_or_the_number_of_records() {
        let column =
            |i| format!(r#"{{"name": "c{i}", "kind": "categorical", "categories": ["a", "b"]}}"#);
        let columns: Vec<String> = (0..7).map(column).collect();
        let schema = format!(r#"{{"name": "t", "columns": [{}]}}"#, columns.join(","));
        let schema = Schema::from_json("t", schema.as_bytes()).unwrap();
        let text = unfitted(vec![6, 1, 0, 2, 3, 4]).describe(&schema);
        assert!(
            text.ends_with("about 10; the columns that differ most are c6, c1, c0, c2, c3"),
            "{text}"
        );
        let text = unfitted(Vec::new()).describe(&schema);
        assert!(
            text.ends_with("the number of records differs most"),
            "{text}"
        );
    }
}
