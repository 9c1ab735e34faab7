//! What can go wrong in a mechanism.

use thiserror::Error;

use crate::account::Release;
use crate::model::ModelError;
use fhaim_domain::Schema;
use fhaim_dp::Rho;
use fhaim_release::{RunError, SourceError};

/// Why a mechanism could not go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
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
    /// Options of a mechanism that it does not have, or of another kind.
    #[error("the options of {0}: {1}")]
    Options(&'static str, String),
    /// A mechanism name that does not exist.
    #[error("unknown mechanism {name:?}: choose {known}")]
    UnknownMechanism {
        /// The name given.
        name: String,
        /// Those that there are.
        known: String,
    },
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
    /// A model that gives next to no mass to what the schema's constraints allow.
    #[error(
        "of {drawn} records that the model drew, the schema's constraints allow {kept}: it has learnt too little \
         of what they say"
    )]
    Disallowed {
        /// Records that are allowed.
        kept: usize,
        /// Records that were drawn.
        drawn: usize,
    },
    /// A model that is too far from its measurements.
    #[error(transparent)]
    Unfitted(Box<Unfitted>),
    /// A step after the outcome was given.
    #[error("the mechanism is done")]
    Done,
    /// Bookkeeping that contradicts itself: a bug, reported instead of a panic.
    #[error("internal error: {0}")]
    Internal(&'static str),
    /// A job that cannot run, or a statistic that cannot be released.
    #[error(transparent)]
    Release(#[from] fhaim_release::Error),
    /// Accounting refused.
    #[error(transparent)]
    Privacy(#[from] fhaim_dp::Error),
    /// The model could not be fitted.
    #[error(transparent)]
    Model(#[from] fhaim_pgm::Error),
    /// The fitted model could not be asked.
    #[error(transparent)]
    Fitted(#[from] ModelError),
    /// The table could not be counted or split.
    #[error(transparent)]
    Table(#[from] fhaim_domain::CodesProblem),
    /// The source did not answer.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The run could not go on, for a reason that is not the mechanism's.
    #[error(transparent)]
    Run(Box<RunError<Self>>),
}

/// A run whose model is too far from its measurements. The releases are paid for, so the error keeps them: a later
/// program can fit a model to them.
#[derive(Debug, Error)]
#[error(
    "the model does not fit the measurements: its loss is {loss:.0}, and noise accounts for about {:.0}; attributes \
     {attributes:?} are the furthest",
    0.5 * *.values as f64
)]
pub struct Unfitted {
    /// The loss of the last fit.
    pub loss: f64,
    /// Number of measured values.
    pub values: usize,
    /// Attributes whose tables differ more from the model than noise accounts for, those that differ most first.
    pub attributes: Vec<usize>,
    /// All releases of the run so far, in order.
    pub releases: Vec<Release>,
    /// Cost of the releases and of the selections between them.
    pub spent: Rho,
}

impl Unfitted {
    /// The error as a sentence that names the columns of `schema`.
    pub fn describe(&self, schema: &Schema) -> String {
        let mut columns: Vec<&str> = Vec::new();
        for field in self.attributes.iter().filter_map(|&a| schema.field_of(a)) {
            if !columns.contains(&field.name()) {
                columns.push(field.name());
            }
        }
        columns.truncate(MAX_NAMED_COLUMNS);
        let furthest = match columns.as_slice() {
            [] => "the number of records is the furthest".to_owned(),
            names => format!("the furthest columns are {}", names.join(", ")),
        };
        format!(
            "the model does not fit the measurements: its loss is {:.0}, and noise accounts for about {:.0}; {furthest}",
            self.loss,
            0.5 * self.values as f64
        )
    }
}

/// Most columns that [`Unfitted::describe`] names.
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
    /// The budget does not pay for one release of every column.
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
            text.ends_with("about 10; the furthest columns are c6, c1, c0, c2, c3"),
            "{text}"
        );
        let text = unfitted(Vec::new()).describe(&schema);
        assert!(
            text.ends_with("the number of records is the furthest"),
            "{text}"
        );
    }
}
