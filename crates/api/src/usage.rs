//! What an account uses of a service, and how much it may.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An account's use of one service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// One entry a limit.
    pub limits: Vec<Used>,
}

/// How far an account is from one limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Used {
    /// Name of the limit, as the service's configuration has it.
    #[schema(example = "stored_bytes")]
    pub limit: String,
    /// What the account uses.
    pub used: u64,
    /// What it may use.
    pub most: u64,
}

impl Used {
    /// So much of so much.
    pub fn new(limit: &str, used: u64, most: u64) -> Self {
        Self {
            limit: limit.to_owned(),
            used,
            most,
        }
    }
}
