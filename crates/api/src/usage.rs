//! An account's usage of a service, and its limits.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An account's usage of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// One entry for each limit.
    pub limits: Vec<Used>,
}

/// An account's usage under one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    /// Name of the limit, as in the service's configuration.
    #[schema(example = "stored_bytes")]
    pub limit: String,
    /// The account's current usage.
    pub used: u64,
    /// The largest allowed usage.
    pub most: u64,
}

impl Used {
    /// Creates an entry for a limit.
    pub fn new(limit: &str, used: u64, most: u64) -> Self {
        Self {
            limit: limit.to_owned(),
            used,
            most,
        }
    }
}
