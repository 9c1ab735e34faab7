//! Datasets of the generation service.

use fhaim_domain::{Schema, Version};
use fhaim_protocol::roster::{ContributionKind, Roster};
use fhaim_protocol::terms::{TERMS_VERSION, Terms};
use fhaim_release::{Need, Options};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Cost;
use crate::account::Secret;

/// The terms that the holder fixes for a dataset: see [`Terms`]. They are sent to all three
/// services, and each of them computes the plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = TermsDocument)]
pub struct WireTerms(pub Terms);

/// The fields of [`WireTerms`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Terms)]
pub struct TermsDocument {
    /// Public schema of the table.
    #[schema(value_type = Object)]
    pub schema: Schema,
    /// Epsilon of the dataset's whole privacy budget.
    #[schema(exclusive_minimum = 0.0, example = 1.0)]
    pub epsilon: f64,
    /// Delta of the dataset's whole privacy budget.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0, example = 1e-9)]
    pub delta: f64,
    /// Name of a mechanism that runs under encryption, such as `staged`.
    #[schema(example = "staged")]
    pub mechanism: String,
    /// Most records that a table of the dataset may have. Public.
    #[schema(minimum = 1)]
    pub record_bound: u64,
    /// Number of runs that share the budget equally.
    #[schema(minimum = 1, maximum = 64)]
    pub runs: u32,
    /// Most bytes that a model may take.
    #[schema(minimum = 1)]
    pub model_bytes: usize,
    /// Weight of the pairs with the schema's target.
    #[schema(minimum = 1)]
    pub target_weight: u32,
    /// The noise and encryption that a run of the mechanism needs. If absent, the generation
    /// service fills it in. A wrong need is rejected. The holder's program computes it too.
    #[schema(value_type = Option<NeedDocument>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub need: Option<Need>,
    /// Options of the mechanism. Absent if all have their defaults. The generation service fills in
    /// the options that are left out, and rejects unknown options by name.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub options: Option<Options>,
    /// The holders, if there are several. The first one created the dataset. Each holder's account
    /// is given by its identifier.
    #[schema(value_type = Option<RosterDocument>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub roster: Option<Roster>,
    /// Data that each holder uploads in addition to its noise: `records` (the default) or `counts`.
    #[schema(value_type = Option<ContributionDocument>)]
    #[serde(default)]
    pub contribution: ContributionKind,
    /// Whether a second computation service computes every batch too. Only batches on which the two
    /// agree are decrypted.
    #[serde(default)]
    pub witness: bool,
    /// Number of the parameter set. If absent, the generation service fills it in.
    #[serde(default)]
    pub parameter_set: Option<u8>,
    /// Version of this format.
    #[schema(value_type = u8, minimum = 1, maximum = 1)]
    #[serde(default)]
    pub version: Version<TERMS_VERSION>,
}

/// The JSON form of a [`Need`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Need)]
pub struct NeedDocument {
    /// Need of noise.
    pub ladder: LadderNeedDocument,
    /// Largest absolute value of a released integer before its noise, as decimal text.
    #[schema(pattern = "^[0-9]+$")]
    pub largest_cell: String,
    /// Whether squared scores are released.
    pub squares: bool,
}

/// The JSON form of a [`fhaim_release::LadderNeed`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LadderNeed)]
pub struct LadderNeedDocument {
    /// Number of integers released in the whole run.
    pub cells: usize,
    /// Largest variance of a release, in units of 4.
    pub largest_variance_units: u64,
}

/// Data that a holder uploads in addition to its noise.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ContributionKind)]
pub enum ContributionDocument {
    /// One-hot records.
    Records,
    /// Counts of all pairs of columns.
    Counts,
}

/// The JSON form of a [`Roster`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Roster)]
pub struct RosterDocument {
    /// How the table is divided.
    pub partition: PartitionDocument,
    /// Number of holders whose noise everyone relies on.
    #[schema(minimum = 1)]
    pub honest: u32,
    /// The holders, in the order in which their parts are joined.
    pub holders: Vec<MemberDocument>,
}

/// How a table is divided.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = Partition)]
pub enum PartitionDocument {
    /// Each holder has all columns of some records.
    Records,
    /// Each holder has some columns of all records.
    Columns,
}

/// The JSON form of a holder in a [`Roster`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Member)]
pub struct MemberDocument {
    /// Identifier of its account.
    pub account: String,
    /// Names of its columns, if holders have columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Most records that it may have.
    #[schema(minimum = 1)]
    pub record_bound: u64,
    /// The Ed25519 public key of its signatures: 64 hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
}

/// A new dataset. The caller chooses its identifier.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDataset {
    /// Name of the dataset, for people.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// The terms, which cannot change afterwards.
    pub terms: WireTerms,
}

/// A new name for a dataset.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    /// Name of the dataset, for people.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
}

/// A voucher that the crypto service requires before it makes a dataset's keys.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Voucher {
    /// The generation service's signed statement that the dataset exists and belongs to the
    /// account.
    pub voucher: Secret,
    /// Seconds until it expires.
    pub expires_in: u64,
}

/// The state of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetState {
    /// Waiting for its encrypted records.
    Uploading,
    /// Complete: jobs can run.
    Ready,
    /// Its owner deletes it: no job can run, and a part of the data may be deleted already. The deletion can be
    /// repeated, and a service that was stopped meanwhile continues it.
    Deleting,
}

/// A dataset.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Dataset {
    /// Identifier of the dataset, the same at all services.
    pub id: Uuid,
    /// Name of the dataset, for people.
    pub name: String,
    /// The terms, which cannot change.
    pub terms: WireTerms,
    /// State of the dataset.
    pub state: DatasetState,
    /// The budget that epsilon and delta amount to.
    pub budget: Cost,
    /// Number of runs that no job has taken. A job takes a run while it is active or once it has
    /// requested a release.
    pub runs_left: u32,
    /// The addresses with which the roster's holders sign in, in the order of the roster. Empty if
    /// one holder has the whole table.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holders: Vec<String>,
    /// Time of creation.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}
