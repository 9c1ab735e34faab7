//! Links that give other accounts read-only access to a finished job's result.

use fhaim_domain::Schema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Cost;
use crate::account::Secret;

/// The header with a link's secret. The secret is never part of an address, because addresses are
/// logged.
pub const LINK_HEADER: &str = "fhaim-link";

/// A new link. The caller chooses its identifier.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLink {
    /// Recipient or purpose of the link. Only the dataset's holders see it.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Days after which the link expires, counted from its creation. If absent, the link is valid
    /// until it is revoked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(minimum = 1, maximum = 3650)]
    pub days: Option<u16>,
}

/// Default number of days of a link in commands, page and clients.
pub const DEFAULT_DAYS: u16 = 90;

/// Most days of a link that expires.
pub const MAX_DAYS: u16 = 3650;

/// A link, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Identifier of the link.
    pub id: Uuid,
    /// Recipient or purpose of the link.
    pub name: String,
    /// Time of creation.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Time of the last access.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub last_opened_at: Option<OffsetDateTime>,
    /// Time at which the link expires. If absent, the link is valid until it is revoked.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub expires_at: Option<OffsetDateTime>,
}

/// A new link. This is the only time that its secret is shown. Until the link is opened, creating
/// it again replaces its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkMade {
    /// The link, without its secret.
    pub link: Link,
    /// The secret, which opens the link together with its identifier. In an address it belongs
    /// after the `#`, since that part is not sent to servers.
    pub secret: Secret,
}

/// The data card of a result: everything that a link shows, in addition to the tables drawn through
/// it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkedResult {
    /// The job that made the result.
    pub job: Uuid,
    /// Name of the dataset.
    pub name: String,
    /// Public schema of the table.
    #[schema(value_type = Object)]
    pub schema: Schema,
    /// The labels of each attribute's values, as used in conditions on the records.
    pub attributes: Vec<LinkedAttribute>,
    /// Number of records, as estimated by the model.
    pub total: f64,
    /// Epsilon of the privacy budget of all of the dataset's jobs together.
    pub epsilon: f64,
    /// Delta of this budget.
    pub delta: f64,
    /// Number of jobs that share the budget.
    pub runs: u32,
    /// Name of the mechanism.
    pub mechanism: String,
    /// Cost of the job.
    pub spent: Cost,
    /// Time at which the job ended.
    #[serde(with = "time::serde::rfc3339")]
    pub made_at: OffsetDateTime,
    /// Caveats to know before using the table.
    pub caveats: Vec<String>,
}

/// An attribute of a [`LinkedResult`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkedAttribute {
    /// Name of the attribute.
    pub name: String,
    /// Labels of its categories or bins.
    pub labels: Vec<String>,
}
