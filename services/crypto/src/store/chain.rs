//! Chains of acts. Rows are only ever added. A chain's key is dataset and height, so only one of two
//! concurrent appends at a height succeeds.

use fhaim_api::Digest;
use fhaim_api::keys::LedgerEntry;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::crypto::chain::{Act, Tip};
use fhaim_protocol::crypto::history::ChainLink;
use fhaim_protocol::request::DatasetId;
use fhaim_release::ReleaseRequest;
use sqlx::Row as _;
use uuid::Uuid;

fn head_of(row: &Row) -> Result<[u8; 32], StoreError> {
    Ok(rows::parsed::<Digest>(row, "head")?.0)
}

/// Returns the head of a dataset's chain at a height, or `None` if the chain is shorter.
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

/// Returns the acts of a dataset's chain in order, and its end, after checking each link against the links before it.
///
/// # Errors
/// A failure of the store, or a link that is missing or damaged, with its height.
pub async fn acts(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    dataset: Uuid,
) -> Result<(Vec<Act>, Tip), StoreError> {
    let select =
        "SELECT height, kind, job, act, head FROM chain WHERE dataset = $1 ORDER BY height";
    let found = sqlx::query(select).bind(dataset.to_string());
    let found = found.fetch_all(executor).await?;
    let (mut acts, mut tip) = (Vec::with_capacity(found.len()), Tip::default());
    for row in &found {
        let act = checked_act(row, dataset, &mut tip)?;
        acts.push(act);
    }
    Ok((acts, tip))
}

/// Returns the act of a link, if the link continues a chain that ends at `tip`, and advances `tip` to it.
fn checked_act(row: &Row, dataset: Uuid, tip: &mut Tip) -> Result<Act, StoreError> {
    let damaged = |height| StoreError::Decode(format!("act {height} of the ledger").into());
    let height = tip.height + 1;
    if rows::number::<u64>(row, "height")? != height {
        return Err(damaged(height));
    }
    let text: String = row.try_get("act")?;
    *tip = tip.append(DatasetId(dataset.into_bytes()), &text);
    let act: Act = rows::json(row, "act")?;
    let (kind, job) = labels(&act);
    let is_labelled = row.try_get::<String, _>("kind")? == kind
        && row.try_get::<Option<String>, _>("job")? == job;
    if !is_labelled || head_of(row)? != tip.head {
        return Err(damaged(height));
    }
    Ok(act)
}

/// Returns the links of a dataset's chain above a height in order.
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

/// Lists all datasets that have a chain.
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

/// Counts of key sets, datasets and acts.
#[derive(Clone, Copy, Debug)]
pub struct Ledgers {
    /// Key sets that are not destroyed.
    pub key_sets: i64,
    /// Datasets that are frozen for any reason until an operator examines them.
    pub frozen: i64,
    /// Acts of all chains.
    pub acts: i64,
    /// Datasets with at least one debit.
    pub debited: i64,
}

/// Counts key sets, datasets and acts.
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

/// Returns a dataset's debits and releases in order.
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

/// Returns a job's last debit. The chain may or may not have its release.
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

/// Returns a job's releases in order.
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

/// Returns the signatures and withdrawals of a dataset's holders in order.
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

/// Returns a job's releases with their integers in order.
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

/// A stored batch of releases.
#[derive(Clone, Debug)]
pub struct BatchRow {
    /// Height of its act.
    pub height: u64,
    /// Its act.
    pub act: Act,
    /// The requests, one for each release.
    pub requests: Vec<ReleaseRequest>,
    /// The integers of each release.
    pub answers: Vec<Vec<i64>>,
}

/// Returns at most `most` batches of releases above a height in order.
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

/// The requests and integers of a link that releases something.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The requests in the order of the batch.
    pub requests: &'a [ReleaseRequest],
    /// The integers of each request.
    pub answers: &'a [Vec<i64>],
}

/// Adds a link, with its requests and integers, at its height. Returns `false` if the chain already has this
/// height; the transaction can then not be used any more.
///
/// # Errors
/// A failure of the store.
pub async fn append(
    tx: &mut Tx,
    dataset: Uuid,
    link: &ChainLink,
    answered: Option<Answered<'_>>,
) -> Result<bool, StoreError> {
    let (kind, job) = labels(&link.act);
    let inserted = sqlx::query(
        "INSERT INTO chain (dataset, height, kind, job, act, requests, answers, head, at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(dataset.to_string())
    .bind(rows::stored(link.tip.height)?)
    .bind(kind)
    .bind(job)
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

/// Returns an act's kind and job, which are also columns of its row.
fn labels(act: &Act) -> (&'static str, Option<String>) {
    let (kind, job) = match act {
        Act::KeysMade { .. } => ("keys-made", None),
        Act::Signed { .. } => ("signed", None),
        Act::Withdrawn { .. } => ("withdrawn", None),
        Act::RunBegun { job, .. } => ("run-begun", Some(job)),
        Act::Debited { job, .. } => ("debited", Some(job)),
        Act::Released { job, .. } => ("released", Some(job)),
        Act::Frozen { .. } => ("frozen", None),
        Act::Thawed => ("thawed", None),
        Act::KeysDestroyed => ("keys-destroyed", None),
    };
    (kind, job.map(|job| Uuid::from_bytes(job.0).to_string()))
}
