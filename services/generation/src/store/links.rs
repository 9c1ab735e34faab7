//! Links to results, by the digest of their secret.

use fhaim_api::link::Link;
use fhaim_platform::clock::Millis;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use sqlx::Row as _;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::paging::Cut;

/// From when until when a link is good.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    /// When it was made.
    pub created_at: Millis,
    /// From when on it opens nothing; 0: it is good until it is revoked.
    expires_at: Millis,
}

const MILLIS_A_DAY: Millis = 24 * 60 * 60 * 1000;

/// So long after its end a link is still listed, if its account makes others.
const SHOWN_DAYS: Millis = 90;

impl Term {
    /// From now on for so many days, or until it is revoked.
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

    /// Whether it was made for so many days.
    pub fn is_of(&self, days: Option<u16>) -> bool {
        self.expires_at == Self::new(self.created_at, days).expires_at
    }

    /// From when on the link opens nothing, for the wire.
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

/// A link of an identifier.
#[derive(Clone, Debug)]
pub struct Found {
    /// The job that it is to.
    pub job: Uuid,
    /// Its name.
    pub name: String,
    /// When it was made, and until when it is good.
    pub term: Term,
}

/// The link of an identifier, if there is one.
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

/// Gives a link that was never opened another secret. Whether it was given.
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

/// Adds a link of an account to a job, and takes away those of the account that are long past their end. Not
/// where the identifier is taken.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    (account, job, id): (Uuid, Uuid, Uuid),
    name: &str,
    digest: &str,
    term: Term,
) -> Result<bool, StoreError> {
    sqlx::query("DELETE FROM links WHERE account = $1 AND expires_at > 0 AND expires_at < $2")
        .bind(account.to_string())
        .bind(term.created_at - SHOWN_DAYS * MILLIS_A_DAY)
        .execute(&mut **tx)
        .await?;
    let added = sqlx::query(
        "INSERT INTO links (id, job, account, name, digest, created_at, expires_at, last_opened_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0)",
    )
    .bind(id.to_string())
    .bind(job.to_string())
    .bind(account.to_string())
    .bind(name)
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

/// A job's links, from a cut on.
///
/// # Errors
/// A failure of the store.
pub async fn list(store: &Store, job: Uuid, cut: &Cut) -> Result<Vec<Link>, StoreError> {
    let found = sqlx::query(
        "SELECT id, name, created_at, expires_at, last_opened_at FROM links WHERE job = $1 \
         AND (created_at < $2 OR (created_at = $2 AND id < $3)) \
         ORDER BY created_at DESC, id DESC LIMIT $4",
    )
    .bind(job.to_string())
    .bind(cut.before)
    .bind(&cut.id)
    .bind(cut.rows())
    .fetch_all(store.pool())
    .await?;
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
    found.iter().map(link).collect()
}

/// Deletes a link to a job. Whether there was one.
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

/// Notes that a link is opened; the job that it is to, if there is one of this secret that is not past
/// its end, and the account that made it is not disabled.
///
/// # Errors
/// A failure of the store.
pub async fn opened(store: &Store, id: Uuid, digest: &str) -> Result<Option<Uuid>, StoreError> {
    let opened = "UPDATE links SET last_opened_at = $1 WHERE id = $2 AND digest = $3 \
         AND (expires_at = 0 OR expires_at > $1) \
         AND account IN (SELECT id FROM accounts WHERE disabled = 0) RETURNING job";
    let row = sqlx::query(opened)
        .bind(clock::now())
        .bind(id.to_string())
        .bind(digest)
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| rows::parsed(&row, "job")).transpose()
}
