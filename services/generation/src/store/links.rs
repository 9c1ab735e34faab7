//! Links to results, stored by the digest of their secret.

use fhaim_api::link::Link;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use sqlx::Row as _;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::paging::Cut;
use crate::store::lists::{Entries, List};

/// Creation time and expiry of a link.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// Creation time.
    pub created_at: Millis,
    /// Time from which the link cannot be opened; 0 if it is valid until it is revoked.
    expires_at: Millis,
}

const MILLIS_A_DAY: Millis = 24 * 60 * 60 * 1000;

/// Days for which an expired link stays listed. It is deleted when its account makes another link.
const SHOWN_DAYS: Millis = 90;

impl Term {
    /// Returns a term that begins now and lasts `days` days, or until the link is revoked.
    pub fn from_now(days: Option<u16>) -> Self {
        Self::new(clock::now(), days)
    }

    fn new(created_at: Millis, days: Option<u16>) -> Self {
        let end = |days| created_at.saturating_add(Millis::from(days) * MILLIS_A_DAY);
        Self {
            created_at,
            expires_at: days.map_or(0, end),
        }
    }

    /// Returns whether the term was made with this number of days.
    pub fn is_of(&self, days: Option<u16>) -> bool {
        self.expires_at == Self::new(self.created_at, days).expires_at
    }

    /// Returns the expiry as a date for the API.
    pub fn end(&self) -> Option<OffsetDateTime> {
        (self.expires_at != 0).then(|| clock::date(self.expires_at))
    }

    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            created_at: row.try_get("created_at")?,
            expires_at: row.try_get("expires_at")?,
        })
    }
}

/// A link.
#[derive(Clone, Debug)]
pub struct Found {
    /// The job whose result it opens.
    pub job: Uuid,
    /// Its name.
    pub name: String,
    /// Its creation time and expiry.
    pub term: Term,
}

/// Returns the link with an identifier.
///
/// # Errors
/// A failure of the store.
pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<Found>, StoreError> {
    let row = sqlx::query("SELECT job, name, created_at, expires_at FROM links WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let found = |row: Row| {
        Ok(Found {
            job: rows::parsed(&row, "job")?,
            name: row.try_get("name")?,
            term: Term::read(&row)?,
        })
    };
    row.map(found).transpose()
}

/// Replaces the digest of a link that was never opened. Returns `false` if it was opened.
///
/// # Errors
/// A failure of the store.
pub async fn renew(tx: &mut Tx, id: Uuid, digest: &str) -> Result<bool, StoreError> {
    let renewed = sqlx::query("UPDATE links SET digest = $1 WHERE id = $2 AND last_opened_at = 0")
        .bind(digest)
        .bind(id.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(renewed.rows_affected() > 0)
}

/// Adds a link to a job, and deletes the account's links that expired more than `SHOWN_DAYS` ago.
/// Returns `false` if the identifier is taken.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    (account, job, id): (Uuid, Uuid, Uuid),
    (name, dataset_name): (&str, &str),
    digest: &str,
    term: Term,
) -> Result<bool, StoreError> {
    sqlx::query("DELETE FROM links WHERE account = $1 AND expires_at > 0 AND expires_at < $2")
        .bind(account.to_string())
        .bind(term.created_at - SHOWN_DAYS * MILLIS_A_DAY)
        .execute(&mut **tx)
        .await?;
    let added = sqlx::query(
        "INSERT INTO links \
         (id, job, account, name, dataset_name, digest, created_at, expires_at, last_opened_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)",
    )
    .bind(id.to_string())
    .bind(job.to_string())
    .bind(account.to_string())
    .bind(name)
    .bind(dataset_name)
    .bind(digest)
    .bind(term.created_at)
    .bind(term.expires_at)
    .execute(&mut **tx)
    .await;
    match added {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// Lists a job's links from a cut on.
///
/// # Errors
/// A failure of the store.
pub async fn list(store: &Store, job: Uuid, cut: &Cut) -> Result<Entries<Link>, StoreError> {
    let link = |row: &Row| {
        let opened: Millis = row.try_get("last_opened_at")?;
        Ok(Link {
            id: rows::parsed(row, "id")?,
            name: row.try_get("name")?,
            created_at: clock::date(row.try_get("created_at")?),
            last_opened_at: (opened != 0).then(|| clock::date(opened)),
            expires_at: Term::read(row)?.end(),
        })
    };
    let list = List {
        table: "links",
        columns: "id, name, created_at, expires_at, last_opened_at",
        condition: "job = $1",
        bound: &[&job.to_string()],
    };
    list.fetch(store, cut, link).await
}

/// Deletes a link to a job. Returns whether it existed.
///
/// # Errors
/// A failure of the store.
pub async fn delete(store: &Store, job: Uuid, id: Uuid) -> Result<bool, StoreError> {
    let deleted = sqlx::query("DELETE FROM links WHERE id = $1 AND job = $2")
        .bind(id.to_string())
        .bind(job.to_string())
        .execute(store.pool())
        .await?;
    Ok(deleted.rows_affected() > 0)
}

/// Records that a link is opened, and returns its job and the dataset's name when the link was made.
/// Returns `None` if the secret is wrong, the link has expired, or the account that made it is
/// disabled.
///
/// # Errors
/// A failure of the store.
pub async fn opened(
    store: &Store,
    id: Uuid,
    digest: &str,
) -> Result<Option<(Uuid, String)>, StoreError> {
    let opened = "UPDATE links SET last_opened_at = $1 WHERE id = $2 AND digest = $3 \
         AND (expires_at = 0 OR expires_at > $1) \
         AND account IN (SELECT id FROM accounts WHERE disabled = 0) RETURNING job, dataset_name";
    let row = sqlx::query(opened)
        .bind(clock::now())
        .bind(id.to_string())
        .bind(digest)
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| Ok((rows::parsed(&row, "job")?, row.try_get("dataset_name")?)))
        .transpose()
}
