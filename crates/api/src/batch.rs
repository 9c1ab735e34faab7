//! Releases: the generation service's requests to the computation service.

use fhaim_release::ReleaseRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::keys::Receipt;

/// A batch of releases of one job. A repeated batch gets the same answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// The requested releases, numbered in ascending order.
    #[schema(value_type = Vec<ReleaseRequestDocument>, min_items = 1)]
    pub requests: Vec<ReleaseRequest>,
    /// Receipts of the dataset's ledger that the calling service has. They are passed on to the
    /// crypto service.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub receipts: Vec<Receipt>,
    /// Whether to restart a batch that was refused.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub again: bool,
}

/// The JSON form of a [`ReleaseRequest`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReleaseRequest)]
pub struct ReleaseRequestDocument {
    /// Number of the release in the job, counted across batches.
    pub number: u32,
    /// The released statistic.
    pub statistic: StatisticDocument,
    /// The noise variance is 4 times this.
    #[schema(minimum = 1)]
    pub variance_units: u64,
}

/// The JSON form of a [`fhaim_release::Statistic`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Statistic)]
pub enum StatisticDocument {
    /// The number of records, as one cell.
    Total,
    /// One cell for each function u: the sum over records of u(x).
    OneWay(AxisDocument),
    /// Exactly two axes. Cells are row-major over their functions (u, v): the sum over records of
    /// u(x) v(y).
    Product(Vec<AxisDocument>),
    /// One cell for each term: weight * (||M||^2 - 2 <M, target> + ||target||^2), where M is the
    /// clique's marginal.
    SquaredScores(Vec<SquaredTermDocument>),
}

/// The JSON form of a [`fhaim_release::Axis`]: integer functions of one attribute.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Axis)]
pub struct AxisDocument {
    /// Number of the attribute.
    pub attribute: usize,
    /// The values of each function for every category.
    pub functions: Vec<Vec<i64>>,
}

/// The JSON form of a [`fhaim_release::SquaredTerm`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SquaredTerm)]
pub struct SquaredTermDocument {
    /// Two attributes.
    pub clique: Vec<usize>,
    /// Weight of the pair in the workload.
    pub weight: i64,
    /// Integers that the marginal is compared with.
    pub target: Vec<i64>,
}

/// The state of a batch.
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
    /// Waiting for another service, which does not answer or has a temporary fault.
    Waiting {
        /// The service and its trouble.
        reason: String,
    },
    /// Released.
    Released {
        /// The integers of each release, in the order of the request.
        answers: Vec<Vec<i64>>,
        /// Seconds spent on ciphertexts.
        compute_seconds: f64,
        /// Receipt of the dataset's ledger including this batch.
        receipt: Receipt,
    },
    /// Refused permanently.
    Refused {
        /// Reason, as far as it may be disclosed.
        reason: String,
        /// Whether the crypto service gave the job no run because none was left. The job then has
        /// no run.
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
    fn release_requests_match_their_documented_schema() {
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
