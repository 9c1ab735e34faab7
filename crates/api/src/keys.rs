//! Key sets, decryption and the ledger: routes of the crypto service.

use fhaim_dp::Entry;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::dataset::WireTerms;
use crate::{Cost, Digest};

/// Makes a dataset's key set and fixes its plan and budget for good.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKeySet {
    /// The dataset's terms.
    pub terms: WireTerms,
}

/// A dataset's key set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct KeySet {
    /// The dataset.
    pub dataset: Uuid,
    /// What is fixed for good.
    pub terms: WireTerms,
    /// Number of the encryption parameter set.
    pub parameter_set: u8,
    /// Digest of the public key.
    pub public_key: Digest,
    /// Digest of the evaluation keys.
    pub evaluation_keys: Digest,
    /// The budget.
    pub budget: Cost,
    /// What has been spent.
    pub spent: Cost,
    /// Runs begun.
    pub runs_begun: u32,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}

/// Released integers: the answer to a decryption request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decrypted {
    /// The integers of each release, in the order of the request.
    pub answers: Vec<Vec<i64>>,
}

/// The ledger of a dataset: every debit taken, and what is left.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DatasetLedger {
    /// The dataset.
    pub dataset: Uuid,
    /// The budget.
    pub budget: Cost,
    /// What has been spent.
    pub spent: Cost,
    /// What no run has been promised yet.
    pub unclaimed: Cost,
    /// The runs begun, oldest first.
    pub runs: Vec<RunLedger>,
}

/// The ledger of one run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunLedger {
    /// The job.
    pub job: Uuid,
    /// Its share of the budget.
    pub budget: Cost,
    /// What it has spent.
    pub spent: Cost,
    /// Its debits.
    #[schema(value_type = Vec<Object>)]
    pub entries: Vec<Entry>,
}

/// What the crypto service did at someone's request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number within the dataset.
    pub number: u64,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
    /// Who asked: a user's identifier or a service's name.
    pub actor: String,
    /// What for.
    pub action: String,
    /// Whether it was done.
    pub granted: bool,
}
