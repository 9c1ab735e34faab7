//! Releases: what the generation service asks the computation service for.

use fhaim_synth::ReleaseRequest;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A batch of releases of one job. The same batch asked for again is answered the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// What to release, numbered in ascending order.
    #[schema(value_type = Vec<Object>, min_items = 1)]
    pub requests: Vec<ReleaseRequest>,
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
    },
    /// Never to be released.
    Refused {
        /// What may be said about it.
        reason: String,
    },
}
