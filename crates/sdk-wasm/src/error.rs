//! What can go wrong, in words for the page.

use fhaim_domain::InferProblem;
use serde::Serialize;

/// An error of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request that is none.
    #[error("not a request: {0}")]
    Request(#[from] serde_json::Error),
    /// A schema or table is refused.
    #[error(transparent)]
    Domain(#[from] fhaim_domain::Error),
    /// Terms, keys or objects are refused.
    #[error(transparent)]
    Protocol(#[from] fhaim_protocol::Error),
    /// The mechanism refuses.
    #[error(transparent)]
    Mechanism(#[from] fhaim_synth::Error),
    /// The stream of bytes that belongs to the request broke.
    #[error("the file cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// A request that needs another one before it.
    #[error("{0}")]
    Order(&'static str),
}

/// An error as the page is told of it.
#[derive(Debug, Serialize)]
pub struct Told {
    /// What went wrong.
    pub detail: String,
    /// Columns that cannot be drafted and may be left out.
    pub columns: Vec<String>,
}

impl From<&Error> for Told {
    fn from(error: &Error) -> Self {
        let columns = match error {
            Error::Domain(fhaim_domain::Error::Infer { problems, .. }) => {
                problems.iter().filter_map(column).collect()
            }
            _ => Vec::new(),
        };
        Self {
            detail: error.to_string(),
            columns,
        }
    }
}

fn column(problem: &InferProblem) -> Option<String> {
    match problem {
        InferProblem::NoValues(column)
        | InferProblem::TooManyTexts { column, .. }
        | InferProblem::Binning { column, .. } => Some(column.clone()),
        _ => None,
    }
}
