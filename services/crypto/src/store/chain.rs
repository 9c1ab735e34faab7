//! Chains of acts. Rows are only ever added; a chain's key is dataset and height, so of two that
//! append at one height one fails.

use fhaim_api::Digest;
use fhaim_api::keys::LedgerEntry;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::crypto::chain::{Act, Tip};
use fhaim_protocol::crypto::history::ChainLink;
use fhaim_release::ReleaseRequest;
use sqlx::Row as _;
use uuid::Uuid;

/// The end of a dataset's chain, if it has one.
///
/// # Errors
/// A failure of the store.
pub async fn tip(tx: &mut Tx, dataset: Uuid) -> Result<Option<Tip>, StoreError> {
    let last = "SELECT height, head FROM chain WHERE dataset = $1 ORDER BY height DESC LIMIT 1";
    let row = sqlx::query(last)
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    let tip = |row: Row| {
        Ok(Tip {
            height: rows::number(&row, "height")?,
            head: head_of(&row)?,
        })
    };
    row.map(tip).transpose()
}

fn head_of(row: &Row) -> Result<[u8; 32], StoreError> {
    Ok(rows::parsed::<Digest>(row, "head")?.0)
}

/// The head of a dataset's chain at a height, if it is as high.
///
/// # Errors
/// A failure of the store.
pub async fn head(
    store: &Store,
    dataset: Uuid,
    height: i64,
) -> Result<Option<[u8; 32]>, StoreError> {
    let row = sqlx::query("SELECT head FROM chain WHERE dataset = $1 AND height = $2")
        .bind(dataset.to_string())
        .bind(height)
        .fetch_optional(store.pool())
        .await?;
    row.as_ref().map(head_of).transpose()
}

/// A link as it is stored: its height, the text of its act, and the head after it.
#[derive(Clone, Debug)]
pub struct StoredLink {
    /// From 1.
    pub height: u64,
    /// The act.
    pub act: String,
    /// The hash over all acts until this one.
    pub head: [u8; 32],
}

/// All links of a dataset's chain, in order.
///
/// # Errors
/// A failure of the store.
pub async fn links(store: &Store, dataset: Uuid) -> Result<Vec<StoredLink>, StoreError> {
    let select = "SELECT height, act, head FROM chain WHERE dataset = $1 ORDER BY height";
    let found = sqlx::query(select).bind(dataset.to_string());
    let found = found.fetch_all(store.pool()).await?;
    let link = |row: &Row| {
        Ok(StoredLink {
            height: rows::number(row, "height")?,
            act: row.try_get("act")?,
            head: head_of(row)?,
        })
    };
    found.iter().map(link).collect()
}

/// The links of a dataset's chain above a height, in order.
///
/// # Errors
/// A failure of the store.
pub async fn links_after(
    store: &Store,
    dataset: Uuid,
    after: i64,
    most: i64,
) -> Result<Vec<LedgerEntry>, StoreError> {
    let found = sqlx::query(
        "SELECT height, act FROM chain WHERE dataset = $1 AND height > $2 ORDER BY height LIMIT $3",
    )
    .bind(dataset.to_string())
    .bind(after)
    .bind(most)
    .fetch_all(store.pool())
    .await?;
    let entry = |row: &Row| {
        Ok(LedgerEntry {
            height: rows::number(row, "height")?,
            act: row.try_get("act")?,
        })
    };
    found.iter().map(entry).collect()
}

/// All datasets that have a chain.
///
/// # Errors
/// A failure of the store.
pub async fn datasets(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT DISTINCT dataset FROM chain ORDER BY dataset");
    let found = found.fetch_all(store.pool()).await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// How much there is of ledgers.
#[derive(Clone, Copy, Debug)]
pub struct Ledgers {
    /// Key sets that were not destroyed.
    pub key_sets: i64,
    /// Datasets of which nothing is released, for whatever reason, until an operator has looked.
    pub frozen: i64,
    /// Acts of all chains.
    pub acts: i64,
    /// Datasets of whose budgets something is spent.
    pub debited: i64,
}

/// Counts what there is of ledgers.
///
/// # Errors
/// A failure of the store.
pub async fn ledgers(store: &Store) -> Result<Ledgers, StoreError> {
    let count = "SELECT (SELECT COUNT(secret) FROM key_sets) AS key_sets, \
         (SELECT COUNT(*) FROM chain) AS acts, \
         (SELECT COUNT(DISTINCT dataset) FROM chain WHERE kind IN ('debited', 'released')) AS debited, \
         (SELECT COUNT(DISTINCT dataset) FROM chain WHERE kind = 'frozen' AND NOT EXISTS \
         (SELECT 1 FROM chain AS later WHERE later.dataset = chain.dataset \
         AND later.kind = 'thawed' AND later.height > chain.height)) AS frozen";
    let row = sqlx::query(count).fetch_one(store.pool()).await?;
    Ok(Ledgers {
        key_sets: row.try_get("key_sets")?,
        frozen: row.try_get("frozen")?,
        acts: row.try_get("acts")?,
        debited: row.try_get("debited")?,
    })
}

/// Acts that make keys, sign, withdraw, begin runs, freeze or thaw, in order.
///
/// # Errors
/// A failure of the store.
pub async fn standing_acts(tx: &mut Tx, dataset: Uuid) -> Result<Vec<Act>, StoreError> {
    let acts = sqlx::query(
        "SELECT act FROM chain WHERE dataset = $1 \
         AND kind IN ('keys-made', 'signed', 'withdrawn', 'run-begun', 'frozen', 'thawed') \
         ORDER BY height",
    )
    .bind(dataset.to_string())
    .fetch_all(&mut **tx)
    .await?;
    acts.iter().map(|row| rows::json(row, "act")).collect()
}

/// A dataset's debits and releases, in order.
///
/// # Errors
/// A failure of the store.
pub async fn debits(tx: &mut Tx, dataset: Uuid) -> Result<Vec<Act>, StoreError> {
    let acts = sqlx::query(
        "SELECT act FROM chain WHERE dataset = $1 AND kind IN ('debited', 'released') \
         ORDER BY height",
    )
    .bind(dataset.to_string())
    .fetch_all(&mut **tx)
    .await?;
    acts.iter().map(|row| rows::json(row, "act")).collect()
}

/// A job's last debit before a decryption, if it has one. The release of it may be in the chain or not.
///
/// # Errors
/// A failure of the store.
pub async fn last_debit(tx: &mut Tx, dataset: Uuid, job: Uuid) -> Result<Option<Act>, StoreError> {
    let row = sqlx::query(
        "SELECT act FROM chain WHERE dataset = $1 AND job = $2 AND kind = 'debited' \
         ORDER BY height DESC LIMIT 1",
    )
    .bind(dataset.to_string())
    .bind(job.to_string())
    .fetch_optional(&mut **tx)
    .await?;
    row.map(|row| rows::json(&row, "act")).transpose()
}

/// A job's releases, in order.
///
/// # Errors
/// A failure of the store.
pub async fn releases_of_job(
    tx: &mut Tx,
    dataset: Uuid,
    job: Uuid,
) -> Result<Vec<Act>, StoreError> {
    let released = sqlx::query(
        "SELECT act FROM chain WHERE dataset = $1 AND job = $2 AND kind = 'released' \
         ORDER BY height",
    )
    .bind(dataset.to_string())
    .bind(job.to_string())
    .fetch_all(&mut **tx)
    .await?;
    released.iter().map(|row| rows::json(row, "act")).collect()
}

/// Signatures and withdrawals of a dataset's holders, in order.
///
/// # Errors
/// A failure of the store.
pub async fn consents(tx: &mut Tx, dataset: Uuid) -> Result<Vec<Act>, StoreError> {
    let acts = sqlx::query(
        "SELECT act FROM chain WHERE dataset = $1 AND kind IN ('signed', 'withdrawn') \
         ORDER BY height",
    )
    .bind(dataset.to_string())
    .fetch_all(&mut **tx)
    .await?;
    acts.iter().map(|row| rows::json(row, "act")).collect()
}

/// A job's releases with their integers, in order.
///
/// # Errors
/// A failure of the store.
pub async fn releases_of(
    tx: &mut Tx,
    dataset: Uuid,
    job: Uuid,
) -> Result<Vec<(Act, Vec<Vec<i64>>)>, StoreError> {
    let released = sqlx::query(
        "SELECT act, answers FROM chain WHERE dataset = $1 AND job = $2 AND kind = 'released' \
         ORDER BY height",
    )
    .bind(dataset.to_string())
    .bind(job.to_string())
    .fetch_all(&mut **tx)
    .await?;
    let pair = |row: &Row| Ok((rows::json(row, "act")?, rows::json(row, "answers")?));
    released.iter().map(pair).collect()
}

/// A batch of releases, as it is stored.
#[derive(Clone, Debug)]
pub struct BatchRow {
    /// Its act's height.
    pub height: u64,
    /// Its act.
    pub act: Act,
    /// What was asked, one request per release.
    pub requests: Vec<ReleaseRequest>,
    /// The integers of each release.
    pub answers: Vec<Vec<i64>>,
}

/// The first batches of releases above a height, at most so many, in order.
///
/// # Errors
/// A failure of the store.
pub async fn batches(
    store: &Store,
    dataset: Uuid,
    after: i64,
    most: i64,
) -> Result<Vec<BatchRow>, StoreError> {
    let found = sqlx::query(
        "SELECT height, act, requests, answers FROM chain \
         WHERE dataset = $1 AND kind = 'released' AND height > $2 ORDER BY height LIMIT $3",
    )
    .bind(dataset.to_string())
    .bind(after)
    .bind(most)
    .fetch_all(store.pool())
    .await?;
    let batch = |row: &Row| {
        Ok(BatchRow {
            height: rows::number(row, "height")?,
            act: rows::json(row, "act")?,
            requests: rows::json(row, "requests")?,
            answers: rows::json(row, "answers")?,
        })
    };
    found.iter().map(batch).collect()
}

/// What a link releases: what was asked, and the integers of each release.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// In the order of the batch.
    pub requests: &'a [ReleaseRequest],
    /// As many.
    pub answers: &'a [Vec<i64>],
}

/// Adds a link, with what it releases, at its height. Whether it was added: not where
/// the chain is as high, and then the transaction is of no more use.
///
/// # Errors
/// A failure of the store.
pub async fn append(
    tx: &mut Tx,
    dataset: Uuid,
    link: &ChainLink,
    answered: Option<Answered<'_>>,
) -> Result<bool, StoreError> {
    let (kind, job) = match &link.act {
        Act::KeysMade { .. } => ("keys-made", None),
        Act::Signed { .. } => ("signed", None),
        Act::Withdrawn { .. } => ("withdrawn", None),
        Act::RunBegun { job, .. } => ("run-begun", Some(*job)),
        Act::Debited { job, .. } => ("debited", Some(*job)),
        Act::Released { job, .. } => ("released", Some(*job)),
        Act::Frozen { .. } => ("frozen", None),
        Act::Thawed => ("thawed", None),
        Act::KeysDestroyed => ("keys-destroyed", None),
    };
    let inserted = sqlx::query(
        "INSERT INTO chain (dataset, height, kind, job, act, requests, answers, head, at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(dataset.to_string())
    .bind(rows::stored(link.tip.height)?)
    .bind(kind)
    .bind(job.map(|job| Uuid::from_bytes(job.0).to_string()))
    .bind(&link.text)
    .bind(answered.map(|a| rows::to_json(a.requests)).transpose()?)
    .bind(answered.map(|a| rows::to_json(a.answers)).transpose()?)
    .bind(Digest(link.tip.head).to_string())
    .bind(clock::now())
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}
