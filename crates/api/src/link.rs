//! Links: a finished job's result for another account, to look at and nothing more.

use fhaim_domain::Schema;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Cost;
use crate::account::Secret;

/// The header that shows a link's secret. It is part of no address: those are logged on the way.
pub const LINK_HEADER: &str = "fhaim-link";

/// A new link, under an identifier of the caller's choice.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLink {
    /// Whom it is for, or what: shown to the dataset's holders alone.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Days after which it opens nothing, from when it was first made; absent: it is good until it is
    /// revoked.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(minimum = 1, maximum = 3650)]
    pub days: Option<u16>,
}

/// The days of a link whose maker names none: what commands, page and clients ask for.
pub const DEFAULT_DAYS: u16 = 90;

/// Most days of a link that ends.
pub const MAX_DAYS: u16 = 3650;

/// A link, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Link {
    /// Its identifier.
    pub id: Uuid,
    /// Whom it is for, or what.
    pub name: String,
    /// When it was made.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When it was last opened.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub last_opened_at: Option<OffsetDateTime>,
    /// From when on it opens nothing; absent: it is good until it is revoked.
    #[serde(
        with = "time::serde::rfc3339::option",
        skip_serializing_if = "Option::is_none",
        default
    )]
    pub expires_at: Option<OffsetDateTime>,
}

/// A link just made: the only time its secret is shown. Until it is opened, making it again gives
/// another secret in its place.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkMade {
    /// The link's entry.
    pub link: Link,
    /// What opens it, together with its identifier. In an address it belongs behind the `#`, which
    /// is sent to no server.
    pub secret: Secret,
}

/// What a link shows of a result, beside the tables that are drawn by it: its data card.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkedResult {
    /// The job that made it.
    pub job: Uuid,
    /// The dataset's name.
    pub name: String,
    /// The table's public schema.
    #[schema(value_type = Object)]
    pub schema: Schema,
    /// The labels of each attribute's values, as conditions on the records name them.
    pub attributes: Vec<LinkedAttribute>,
    /// Records, by the model's estimate.
    pub total: f64,
    /// The privacy budget of all of the dataset's jobs together.
    pub epsilon: f64,
    /// Its delta.
    pub delta: f64,
    /// The jobs that share it.
    pub runs: u32,
    /// The mechanism.
    pub mechanism: String,
    /// What the job spent.
    pub spent: Cost,
    /// When the job ended.
    #[serde(with = "time::serde::rfc3339")]
    pub made_at: OffsetDateTime,
    /// What to know before the table is used.
    pub caveats: Vec<String>,
}

/// An attribute of a [`LinkedResult`].
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LinkedAttribute {
    /// Its name.
    pub name: String,
    /// Its categories' or bins' labels.
    pub labels: Vec<String>,
}
