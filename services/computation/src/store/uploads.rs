//! Uploads: what holders registered, the objects that arrived, what complete ones need.

use fhaim_api::Digest;
use fhaim_api::keys::Receipt;
use fhaim_api::upload::{UploadState, WireLayout};
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use sqlx::Row as _;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Digests of a dataset's keys, as they came from the crypto service.
#[derive(Clone, Copy, Debug)]
pub struct KeyDigests {
    /// Of the public key.
    pub public: Digest,
    /// Of the evaluation keys.
    pub evaluation: Digest,
}

/// What is stored of an object: which blob has it, and what that must be.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Of its bytes.
    pub digest: Digest,
    /// Tells the blob from those of other puts of the object. Releases before this was kept had
    /// one blob an object.
    pub version: Option<Uuid>,
}

impl Kept {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            digest: rows::parsed(row, "digest")?,
            version: rows::some_parsed(row, "version")?,
        })
    }
}

/// An upload as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The dataset.
    pub dataset: Uuid,
    /// Its owner.
    pub owner: Uuid,
    /// Its terms.
    pub terms: Terms,
    /// What is told of the number of records, of the first part that was registered.
    pub layout: Option<WireLayout>,
    /// Where its objects and keys are.
    pub folder: String,
    /// Digests of its keys; releases before this was kept had none.
    pub keys: Option<KeyDigests>,
}

/// How records lie in a part; nothing where it has counts.
fn layout(chunks: usize, stride: usize) -> Option<WireLayout> {
    (chunks > 0).then_some(WireLayout { chunks, stride })
}

/// A layout's chunks and stride as they are stored.
fn numbers(layout: Option<WireLayout>) -> (usize, usize) {
    layout.map_or((0, 0), |layout| (layout.chunks, layout.stride))
}

impl Stored {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        let digest = |column| rows::some_parsed(row, column);
        Ok(Self {
            dataset: rows::parsed(row, "dataset")?,
            owner: rows::parsed(row, "owner")?,
            terms: rows::json(row, "terms")?,
            layout: layout(rows::number(row, "chunks")?, rows::number(row, "stride")?),
            folder: row.try_get("folder")?,
            keys: match (digest("public_key")?, digest("evaluation_keys")?) {
                (Some(public), Some(evaluation)) => Some(KeyDigests { public, evaluation }),
                _ => None,
            },
        })
    }

    /// The blob that holds an object. Every put has one of its own, so that none changes what
    /// another stored: the object's row says which it is.
    pub fn blob(&self, contribution: u32, object: Object, version: Option<Uuid>) -> String {
        let name = format!("{}/{contribution}/{object}", self.folder);
        match version {
            Some(version) => format!("{name}.{version}"),
            None => name,
        }
    }
}

/// An upload, if there is one that is not being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, dataset: Uuid) -> Result<Option<Stored>, StoreError> {
    let row = sqlx::query("SELECT * FROM uploads WHERE dataset = $1 AND deleting = 0")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.as_ref().map(Stored::from_row).transpose()
}

/// Where the blobs of an owner's upload are, also while it is being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn folder(
    store: &Store,
    dataset: Uuid,
    owner: Uuid,
) -> Result<Option<String>, StoreError> {
    let row = sqlx::query("SELECT folder FROM uploads WHERE dataset = $1 AND owner = $2")
        .bind(dataset.to_string())
        .bind(owner.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| row.try_get("folder")).transpose()
}

/// Adds an upload. One of a single holder takes so many bytes; what several holders' parts take is
/// counted with each. Whether it was added: not where there is one of the dataset, and then the
/// transaction is of no more use.
///
/// # Errors
/// A failure of the store.
pub async fn insert(tx: &mut Tx, stored: &Stored, bytes: u64) -> Result<bool, StoreError> {
    let dataset = stored.dataset.to_string();
    let (chunks, stride) = numbers(stored.layout);
    let inserted = sqlx::query(
        "INSERT INTO uploads (dataset, owner, terms, chunks, stride, folder, created_at, \
         public_key, evaluation_keys, bytes, parts) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
    )
    .bind(&dataset)
    .bind(stored.owner.to_string())
    .bind(rows::to_json(&stored.terms)?)
    .bind(rows::stored(chunks)?)
    .bind(rows::stored(stride)?)
    .bind(&stored.folder)
    .bind(clock::now())
    .bind(stored.keys.map(|keys| keys.public.to_string()))
    .bind(stored.keys.map(|keys| keys.evaluation.to_string()))
    .bind(rows::stored(bytes)?)
    .bind(rows::stored(stored.terms.part_count())?)
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// A contribution before anything of it is there.
#[derive(Clone, Copy, Debug)]
pub struct NewPart {
    /// Its number within the dataset.
    pub number: u32,
    /// Whose it is, where the dataset has several holders.
    pub owner: Option<Uuid>,
    /// How its records lie; nothing where it has counts.
    pub layout: Option<WireLayout>,
    /// Its one-hot columns.
    pub columns: usize,
    /// What it takes of its holder's share of the store.
    pub bytes: u64,
}

/// Adds a contribution to an upload. Whether it was added: not where there is one of its number, and
/// then the transaction is of no more use.
///
/// # Errors
/// A failure of the store.
pub async fn insert_part(tx: &mut Tx, dataset: Uuid, part: &NewPart) -> Result<bool, StoreError> {
    let (chunks, stride) = numbers(part.layout);
    let inserted = sqlx::query(
        "INSERT INTO contributions (dataset, number, first_chunk, chunks, first_column, columns, \
         state, owner, stride, bytes) VALUES ($1, $2, 0, $3, 0, $4, 'open', $5, $6, $7)",
    )
    .bind(dataset.to_string())
    .bind(i64::from(part.number))
    .bind(rows::stored(chunks)?)
    .bind(rows::stored(part.columns)?)
    .bind(part.owner.map(|owner| owner.to_string()))
    .bind(rows::stored(stride)?)
    .bind(rows::stored(part.bytes)?)
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => Ok(false),
        other => other.map(|_| true),
    }
}

/// Bytes that an owner's uploads take, or will when they are complete.
///
/// # Errors
/// A failure of the store.
pub async fn bytes(tx: &mut Tx, owner: Uuid) -> Result<u64, StoreError> {
    // A sum is of another type on Postgres than what it adds up.
    let sum = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM \
         (SELECT bytes FROM uploads WHERE owner = $1 \
         UNION ALL SELECT bytes FROM contributions WHERE owner = $1) AS held";
    let row = sqlx::query(sum)
        .bind(owner.to_string())
        .fetch_one(&mut **tx)
        .await?;
    rows::number(&row, "bytes")
}

/// Datasets of whose uploads it is not known what they take.
///
/// # Errors
/// A failure of the store.
pub async fn unmeasured(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT dataset FROM uploads WHERE bytes IS NULL")
        .fetch_all(store.pool())
        .await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// Stores what an upload takes.
///
/// # Errors
/// A failure of the store.
pub async fn set_bytes(store: &Store, dataset: Uuid, bytes: u64) -> Result<(), StoreError> {
    sqlx::query("UPDATE uploads SET bytes = $1 WHERE dataset = $2")
        .bind(rows::stored(bytes)?)
        .bind(dataset.to_string())
        .execute(store.pool())
        .await?;
    Ok(())
}

/// A contribution as it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its number within the dataset.
    pub number: u32,
    /// Whose it is, where the dataset has several holders.
    pub owner: Option<Uuid>,
    /// How its records lie; nothing where it has counts.
    pub layout: Option<WireLayout>,
    /// Its one-hot columns.
    pub columns: usize,
    /// How far it is.
    pub state: UploadState,
    /// Objects that are there.
    pub present: u64,
}

/// The contributions of a dataset, in order.
///
/// # Errors
/// A failure of the store.
pub async fn parts(store: &Store, dataset: Uuid) -> Result<Vec<Part>, StoreError> {
    let select = "SELECT contributions.*, \
         COALESCE(contributions.stride, uploads.stride) AS record_stride, (SELECT COUNT(*) FROM objects \
         WHERE objects.dataset = contributions.dataset \
         AND objects.contribution = contributions.number) AS present \
         FROM contributions JOIN uploads ON uploads.dataset = contributions.dataset \
         WHERE contributions.dataset = $1 ORDER BY number";
    let found = sqlx::query(select)
        .bind(dataset.to_string())
        .fetch_all(store.pool())
        .await?;
    let part = |row: &Row| {
        let size = |column| rows::number(row, column);
        Ok(Part {
            number: rows::number(row, "number")?,
            owner: rows::some_parsed(row, "owner")?,
            layout: layout(size("chunks")?, size("record_stride")?),
            columns: size("columns")?,
            state: rows::named(row, "state")?,
            present: rows::number(row, "present")?,
        })
    };
    found.iter().map(part).collect()
}

/// The state of a contribution, its row locked; none if there is no such contribution.
///
/// # Errors
/// A failure of the store.
pub async fn lock(
    store: &Store,
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<Option<UploadState>, StoreError> {
    let select = store.locking(
        "SELECT state FROM contributions WHERE dataset = $1 AND number = $2 \
             AND EXISTS (SELECT 1 FROM uploads WHERE dataset = $1 AND deleting = 0)",
    );
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::named(&row, "state")).transpose()
}

const COMPLETE: &str = "SELECT COUNT(*) AS whole FROM uploads WHERE dataset = $1 AND parts = \
     (SELECT COUNT(*) FROM contributions WHERE dataset = $1 AND state = 'complete')";

/// Whether every contribution of a dataset is complete.
///
/// # Errors
/// A failure of the store.
pub async fn is_complete(store: &Store, dataset: Uuid) -> Result<bool, StoreError> {
    complete_in(store.pool(), dataset).await
}

/// The same within a transaction.
///
/// # Errors
/// A failure of the store.
pub async fn is_complete_in(tx: &mut Tx, dataset: Uuid) -> Result<bool, StoreError> {
    complete_in(&mut **tx, dataset).await
}

async fn complete_in(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    dataset: Uuid,
) -> Result<bool, StoreError> {
    let row = sqlx::query(COMPLETE)
        .bind(dataset.to_string())
        .fetch_one(executor)
        .await?;
    Ok(row.try_get::<i64, _>("whole")? == 1)
}

/// Locks an upload, so that no two of its contributions are completed or taken back at a time.
///
/// # Errors
/// A failure of the store.
pub async fn lock_upload(store: &Store, tx: &mut Tx, dataset: Uuid) -> Result<(), StoreError> {
    sqlx::query(store.locking("SELECT dataset FROM uploads WHERE dataset = $1"))
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    Ok(())
}

/// Whether anything was sealed, or is about to be, of a dataset.
///
/// # Errors
/// A failure of the store.
pub async fn is_used(tx: &mut Tx, dataset: Uuid) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM windows WHERE dataset = $1) \
         + (SELECT COUNT(*) FROM batches WHERE dataset = $1) AS used",
    )
    .bind(dataset.to_string())
    .fetch_one(&mut **tx)
    .await?;
    Ok(row.try_get::<i64, _>("used")? > 0)
}

/// Opens a contribution again and forgets its objects, and what was made when all were complete.
///
/// # Errors
/// A failure of the store.
pub async fn reopen(tx: &mut Tx, dataset: Uuid, contribution: u32) -> Result<(), StoreError> {
    let dataset = dataset.to_string();
    for statement in [
        "DELETE FROM objects WHERE dataset = $1 AND contribution = $2",
        "UPDATE contributions SET state = 'open' WHERE dataset = $1 AND number = $2",
    ] {
        let statement = sqlx::query(statement).bind(&dataset);
        let statement = statement.bind(i64::from(contribution));
        statement.execute(&mut **tx).await?;
    }
    sqlx::query("UPDATE uploads SET sealing_key = NULL, manifest = NULL WHERE dataset = $1")
        .bind(&dataset)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Seals a contribution.
///
/// # Errors
/// A failure of the store.
pub async fn complete(tx: &mut Tx, dataset: Uuid, contribution: u32) -> Result<(), StoreError> {
    sqlx::query("UPDATE contributions SET state = 'complete' WHERE dataset = $1 AND number = $2")
        .bind(dataset.to_string())
        .bind(i64::from(contribution))
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The objects of a contribution that are there, by name.
///
/// # Errors
/// A failure of the store.
pub async fn objects(
    store: &Store,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Kept>, StoreError> {
    present(store.pool(), dataset, contribution).await
}

/// The same within a transaction.
///
/// # Errors
/// A failure of the store.
pub async fn objects_in(
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Kept>, StoreError> {
    present(&mut **tx, dataset, contribution).await
}

async fn present(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
    dataset: Uuid,
    contribution: u32,
) -> Result<BTreeMap<String, Kept>, StoreError> {
    let found = sqlx::query(
        "SELECT name, digest, version FROM objects WHERE dataset = $1 AND contribution = $2",
    )
    .bind(dataset.to_string())
    .bind(i64::from(contribution))
    .fetch_all(executor)
    .await?;
    let entry = |row: &Row| Ok((row.try_get("name")?, Kept::from_row(row)?));
    found.iter().map(entry).collect()
}

/// Makes a stored blob an object of a contribution; what it had before.
///
/// # Errors
/// A failure of the store.
pub async fn put_object(
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
    object: Object,
    new: Kept,
) -> Result<Option<Kept>, StoreError> {
    let (dataset, name) = (dataset.to_string(), object.name());
    let before = sqlx::query(
        "SELECT digest, version FROM objects \
         WHERE dataset = $1 AND contribution = $2 AND name = $3",
    )
    .bind(&dataset)
    .bind(i64::from(contribution))
    .bind(&name)
    .fetch_optional(&mut **tx)
    .await?;
    sqlx::query(
        "INSERT INTO objects (dataset, contribution, name, digest, version) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (dataset, contribution, name) \
         DO UPDATE SET digest = excluded.digest, version = excluded.version",
    )
    .bind(&dataset)
    .bind(i64::from(contribution))
    .bind(&name)
    .bind(new.digest.to_string())
    .bind(new.version.map(|version| version.to_string()))
    .execute(&mut **tx)
    .await?;
    before.as_ref().map(Kept::from_row).transpose()
}

/// Gives an upload its sealing key (itself sealed) and its manifest's digest, unless it has them.
///
/// # Errors
/// A failure of the store.
pub async fn prepare(
    tx: &mut Tx,
    dataset: Uuid,
    sealing_key: Vec<u8>,
    manifest: Digest,
) -> Result<(), StoreError> {
    sqlx::query(
        "UPDATE uploads SET sealing_key = $1, manifest = $2 \
         WHERE dataset = $3 AND sealing_key IS NULL",
    )
    .bind(sealing_key)
    .bind(manifest.to_string())
    .bind(dataset.to_string())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Datasets whose upload has no sealing key.
///
/// # Errors
/// A failure of the store.
pub async fn unprepared(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT dataset FROM uploads WHERE sealing_key IS NULL")
        .fetch_all(store.pool())
        .await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// What runs over an upload need.
#[derive(Debug)]
pub struct Prepared {
    /// What its pages are sealed with, itself sealed.
    pub sealing_key: Option<Vec<u8>>,
    /// Digest of its manifest.
    pub manifest: Option<Digest>,
}

/// What runs over an upload need, if there is one.
///
/// # Errors
/// A failure of the store.
pub async fn prepared(store: &Store, dataset: Uuid) -> Result<Option<Prepared>, StoreError> {
    let row = sqlx::query("SELECT sealing_key, manifest FROM uploads WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    let prepared = |row: Row| {
        Ok(Prepared {
            sealing_key: row.try_get("sealing_key")?,
            manifest: rows::some_parsed(&row, "manifest")?,
        })
    };
    row.map(prepared).transpose()
}

/// Receipts of the crypto service's ledger that no later one is known to contain; none if there is
/// no upload.
///
/// # Errors
/// A failure of the store.
pub async fn receipts(store: &Store, dataset: Uuid) -> Result<Option<Vec<Receipt>>, StoreError> {
    let row = sqlx::query("SELECT receipts FROM uploads WHERE dataset = $1")
        .bind(dataset.to_string())
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| listed(&row)).transpose()
}

/// The same, the upload's row locked.
///
/// # Errors
/// A failure of the store.
pub async fn lock_receipts(
    store: &Store,
    tx: &mut Tx,
    dataset: Uuid,
) -> Result<Option<Vec<Receipt>>, StoreError> {
    let select = store.locking("SELECT receipts FROM uploads WHERE dataset = $1");
    let row = sqlx::query(select)
        .bind(dataset.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| listed(&row)).transpose()
}

fn listed(row: &Row) -> Result<Vec<Receipt>, StoreError> {
    Ok(rows::some_json(row, "receipts")?.unwrap_or_default())
}

/// Stores an upload's receipts.
///
/// # Errors
/// A failure of the store.
pub async fn set_receipts(
    tx: &mut Tx,
    dataset: Uuid,
    receipts: &[Receipt],
) -> Result<(), StoreError> {
    sqlx::query("UPDATE uploads SET receipts = $1 WHERE dataset = $2")
        .bind(rows::to_json(receipts)?)
        .bind(dataset.to_string())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Forgets a dataset's batches and windows, and what its pages are sealed with: whoever works on a
/// batch finds that it is no longer theirs. The upload is gone for its owner; its row stays, so that
/// whoever deletes its blobs finds them.
///
/// # Errors
/// A failure of the store.
pub async fn begin_deletion(store: &Store, dataset: Uuid) -> Result<(), StoreError> {
    let statements = [
        "UPDATE uploads SET deleting = 1, sealing_key = NULL WHERE dataset = $1",
        "DELETE FROM batches WHERE dataset = $1",
        "DELETE FROM jobs WHERE dataset = $1",
        "DELETE FROM windows WHERE dataset = $1",
    ];
    each(store, dataset, &statements).await
}

/// Deletes what is left of a dataset whose blobs are gone.
///
/// # Errors
/// A failure of the store.
pub async fn finish_deletion(store: &Store, dataset: Uuid) -> Result<(), StoreError> {
    let statements = [
        "DELETE FROM objects WHERE dataset = $1",
        "DELETE FROM contributions WHERE dataset = $1",
        "DELETE FROM uploads WHERE dataset = $1 AND deleting <> 0",
    ];
    each(store, dataset, &statements).await
}

async fn each(store: &Store, dataset: Uuid, statements: &[&'static str]) -> Result<(), StoreError> {
    let dataset = dataset.to_string();
    let mut tx = store.begin().await?;
    for &statement in statements {
        let statement = sqlx::query(statement).bind(&dataset);
        statement.execute(&mut *tx).await?;
    }
    tx.commit().await
}

/// Datasets whose deletion was begun, with their folders.
///
/// # Errors
/// A failure of the store.
pub async fn deleting(store: &Store) -> Result<Vec<(Uuid, String)>, StoreError> {
    let found = sqlx::query("SELECT dataset, folder FROM uploads WHERE deleting <> 0")
        .fetch_all(store.pool())
        .await?;
    let pair = |row: &Row| Ok((rows::parsed(row, "dataset")?, row.try_get("folder")?));
    found.iter().map(pair).collect()
}

/// All datasets whose uploads are not being deleted.
///
/// # Errors
/// A failure of the store.
pub async fn all(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let select = "SELECT dataset FROM uploads WHERE deleting = 0 ORDER BY created_at, dataset";
    let found = sqlx::query(select).fetch_all(store.pool()).await?;
    found
        .iter()
        .map(|row| rows::parsed(row, "dataset"))
        .collect()
}

/// Where the blobs of all uploads are.
///
/// # Errors
/// A failure of the store.
pub async fn folders(store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let found = sqlx::query("SELECT folder FROM uploads");
    let found = found.fetch_all(store.pool()).await?;
    found.iter().map(|row| row.try_get("folder")).collect()
}
