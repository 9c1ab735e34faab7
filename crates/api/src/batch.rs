//! Releases: what the generation service asks the computation service for.

use fhaim_release::ReleaseRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::keys::Receipt;

/// A batch of releases of one job. The same batch asked for again is answered the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// What to release, numbered in ascending order.
    #[schema(value_type = Vec<ReleaseRequestDocument>, min_items = 1)]
    pub requests: Vec<ReleaseRequest>,
    /// Receipts of the dataset's ledger that the asking service has: passed on to the crypto
    /// service.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub receipts: Vec<Receipt>,
    /// Begin again with a batch that was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub again: bool,
}

/// How a [`ReleaseRequest`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReleaseRequest)]
pub struct ReleaseRequestDocument {
    /// Position of the release in the job, across batches.
    pub number: u32,
    /// What is released.
    pub statistic: StatisticDocument,
    /// The noise variance is 4 times this.
    #[schema(minimum = 1)]
    pub variance_units: u64,
}

/// How a [`fhaim_release::Statistic`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Statistic)]
pub enum StatisticDocument {
    /// The number of records: one cell.
    Total,
    /// A cell for each function u: the sum over records of u(x).
    OneWay(AxisDocument),
    /// Exactly two axes; cells row-major over their functions (u, v): the sum over records of u(x) v(y).
    Product(Vec<AxisDocument>),
    /// A cell for each term: weight * (||M||^2 - 2 <M, target> + ||target||^2) of the clique's
    /// marginal M.
    SquaredScores(Vec<SquaredTermDocument>),
}

/// How a [`fhaim_release::Axis`] is written: integer functions of one attribute.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Axis)]
pub struct AxisDocument {
    /// The attribute's number.
    pub attribute: usize,
    /// Each function's value for every category.
    pub functions: Vec<Vec<i64>>,
}

/// How a [`fhaim_release::SquaredTerm`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SquaredTerm)]
pub struct SquaredTermDocument {
    /// Two attributes.
    pub clique: Vec<usize>,
    /// The workload's weight.
    pub weight: i64,
    /// What the marginal is compared with.
    pub target: Vec<i64>,
}

/// Where a batch is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum BatchStatus {
    /// Waiting for a worker.
    Queued,
    /// Being computed.
    Running {
        /// Seconds since a worker took it.
        seconds: f64,
    },
    /// Released.
    Released {
        /// The integers of each release, in the order asked.
        answers: Vec<Vec<i64>>,
        /// Seconds spent on ciphertexts.
        compute_seconds: f64,
        /// The dataset's ledger with them in it.
        receipt: Receipt,
    },
    /// Never to be released.
    Refused {
        /// What may be said about it.
        reason: String,
        /// The crypto service gave the job no run, because none was left: it holds none.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        without_run: bool,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::Clique;
    use fhaim_release::{Axis, SquaredTerm, Statistic};

    #[test]
    fn requests_are_written_as_documented() {
        let axis = |attribute| Axis {
            attribute,
            functions: vec![vec![1, -1], vec![0, 2]],
        };
        let term = SquaredTerm {
            clique: Clique::new([0, 1]),
            weight: 3,
            target: vec![0, 5],
        };
        let statistics = [
            Statistic::Total,
            Statistic::OneWay(axis(1)),
            Statistic::Product(axis(0), axis(1)),
            Statistic::SquaredScores(vec![term]),
        ];
        for (number, statistic) in (0..).zip(statistics) {
            let request = ReleaseRequest {
                number,
                statistic,
                variance_units: 7,
            };
            let written = serde_json::to_value(&request).unwrap();
            let read: ReleaseRequestDocument = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), written);
        }
    }
}
