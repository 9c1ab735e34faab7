//! Datasets as the generation service lists them.

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

/// What the holder fixes for a dataset: see [`Terms`]. Sent to all three services, each of which
/// works out the plan for itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = TermsDocument)]
pub struct WireTerms(pub Terms);

/// The fields of [`WireTerms`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Terms)]
pub struct TermsDocument {
    /// The table's public schema.
    #[schema(value_type = Object)]
    pub schema: Schema,
    /// The whole privacy budget of the dataset.
    #[schema(exclusive_minimum = 0.0, example = 1.0)]
    pub epsilon: f64,
    /// Its delta.
    #[schema(exclusive_minimum = 0.0, exclusive_maximum = 1.0, example = 1e-9)]
    pub delta: f64,
    /// Name of a mechanism that runs under encryption, such as `staged`.
    #[schema(example = "staged")]
    pub mechanism: String,
    /// No table of the dataset has more records. Public.
    #[schema(minimum = 1)]
    pub record_bound: u64,
    /// Runs the budget is shared by, equally.
    #[schema(minimum = 1, maximum = 64)]
    pub runs: u32,
    /// Most bytes a model may take.
    #[schema(minimum = 1)]
    pub model_bytes: usize,
    /// Weight of the pairs with the schema's target.
    #[schema(minimum = 1)]
    pub target_weight: u32,
    /// What a run of the mechanism needs. The generation service fills it in where it is left out,
    /// and refuses another; the holder's program works it out too.
    #[schema(value_type = Option<NeedDocument>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub need: Option<Need>,
    /// Options of the mechanism, where they are not all to be the default. The generation service
    /// fills in those that are left out, and refuses by name one that the mechanism does not have.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub options: Option<Options>,
    /// The holders, where there are several. The first made the dataset; each names its account by
    /// its identifier.
    #[schema(value_type = Option<RosterDocument>)]
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub roster: Option<Roster>,
    /// What each holder uploads beside its noise: `records` where it is left out, or `counts`.
    #[schema(value_type = Option<ContributionDocument>)]
    #[serde(default)]
    pub contribution: ContributionKind,
    /// Whether a second computation service computes every batch as well, and nothing is decrypted that
    /// the two do not agree on.
    #[serde(default)]
    pub witness: bool,
    /// Number of the parameter set. The generation service fills it in where it is left out.
    #[serde(default)]
    pub parameter_set: Option<u8>,
    /// The version of this format.
    #[schema(value_type = u8, minimum = 1, maximum = 1)]
    #[serde(default)]
    pub version: Version<TERMS_VERSION>,
}

/// How a [`Need`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Need)]
pub struct NeedDocument {
    /// Of the noise.
    pub ladder: LadderNeedDocument,
    /// The largest absolute value of a released integer before its noise, as decimal text.
    #[schema(pattern = "^[0-9]+$")]
    pub largest_cell: String,
    /// Whether squared scores are released.
    pub squares: bool,
}

/// How a [`fhaim_release::LadderNeed`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LadderNeed)]
pub struct LadderNeedDocument {
    /// Integers released over the whole run.
    pub cells: usize,
    /// The largest variance of a release, in units of 4.
    pub largest_variance_units: u64,
}

/// What a holder uploads beside its noise.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = ContributionKind)]
pub enum ContributionDocument {
    /// One-hot records.
    Records,
    /// Counts of all pairs of columns.
    Counts,
}

/// How a [`Roster`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Roster)]
pub struct RosterDocument {
    /// How the table is divided.
    pub partition: PartitionDocument,
    /// On how many holders' noise everyone relies.
    #[schema(minimum = 1)]
    pub honest: u32,
    /// The holders, in the order in which their parts are put together.
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

/// How a holder of a [`Roster`] is written.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Member)]
pub struct MemberDocument {
    /// Identifier of its account.
    pub account: String,
    /// The names of its columns, where holders have columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// It has at most so many records.
    #[schema(minimum = 1)]
    pub record_bound: u64,
    /// The Ed25519 public key that it signs with: 64 hexadecimal digits.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub key: String,
}

/// A new dataset, under an identifier of the caller's choice.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDataset {
    /// A name for people.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
    /// What is fixed for good.
    pub terms: WireTerms,
}

/// Another name for a dataset.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    /// A name for people.
    #[schema(min_length = 1, max_length = 200)]
    pub name: String,
}

/// What the crypto service wants to see before it makes a dataset's keys.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Voucher {
    /// Says, signed by the generation service, that the dataset is there and the account's.
    pub voucher: Secret,
    /// Seconds until it is of no more use.
    pub expires_in: u64,
}

/// How far a dataset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DatasetState {
    /// Waiting for its encrypted records.
    Uploading,
    /// Complete: jobs can run.
    Ready,
}

/// A dataset.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Dataset {
    /// Its identifier, the same at all services.
    pub id: Uuid,
    /// A name for people.
    pub name: String,
    /// What is fixed for good.
    pub terms: WireTerms,
    /// How far it is.
    pub state: DatasetState,
    /// The budget that epsilon and delta come to.
    pub budget: Cost,
    /// Runs that no job takes: a job does that is under way or has asked for a release.
    pub runs_left: u32,
    /// The addresses that the roster's holders sign in with, in its order; none where one holder has
    /// the whole table.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub holders: Vec<String>,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
}
