//! Datasets, and the jobs that take their runs.

use fhaim_api::dataset::{Dataset, DatasetState};
use fhaim_api::keys::Receipt;
use fhaim_dp::Rho;
use fhaim_platform::store::{Row, Store, StoreError, Tx, is_duplicate};
use fhaim_platform::{clock, rows};
use fhaim_protocol::terms::Terms;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use crate::paging::Cut;
use crate::store::lists::{Entries, List};

/// Condition: a job takes a run of its dataset because it is under way or has asked for a batch. The
/// crypto service assigns a run when a job begins, so a failed or cancelled job keeps its run.
const TAKES_RUN: &str = "(jobs.state IN ('queued', 'running') \
     OR EXISTS (SELECT 1 FROM batches WHERE batches.job = jobs.id))";

/// A state known only to this service: hidden from the owner while the blobs are deleted. The other services have
/// deleted their parts.
const ERASING: &str = "erasing";

/// Condition: the account bound as `$2` is a sole or joint holder of the dataset.
const HELD: &str = "(datasets.owner = $2 OR EXISTS (SELECT 1 FROM holders \
     WHERE holders.dataset = datasets.id AND holders.account = $2))";

/// The columns of a dataset. `begun` is the number of jobs that take a run.
fn columns() -> String {
    format!(
        "id, owner, name, terms, runs, budget, state, created_at, \
         (SELECT COUNT(*) FROM jobs WHERE jobs.dataset = datasets.id AND {TAKES_RUN}) AS begun"
    )
}

fn dataset(row: &Row) -> Result<Dataset, StoreError> {
    rows::of_dataset(rows::parsed(row, "id")?, whole_dataset(row))
}

fn whole_dataset(row: &Row) -> Result<Dataset, StoreError> {
    let (runs, begun): (i64, i64) = (row.try_get("runs")?, row.try_get("begun")?);
    Ok(Dataset {
        id: rows::parsed(row, "id")?,
        name: row.try_get("name")?,
        terms: rows::json(row, "terms")?,
        state: rows::named(row, "state")?,
        budget: rows::named::<Rho>(row, "budget")?.into(),
        runs_left: u32::try_from(runs.saturating_sub(begun)).unwrap_or(0),
        holders: Vec::new(),
        created_at: clock::date(row.try_get("created_at")?),
    })
}

/// Adds a dataset. Returns `false` if the identifier is taken; the transaction can then not be used
/// any more.
///
/// # Errors
/// A failure of the store.
pub async fn insert(
    tx: &mut Tx,
    (owner, id): (Uuid, Uuid),
    name: &str,
    terms: &Terms,
    budget: Rho,
) -> Result<bool, StoreError> {
    let inserted = sqlx::query(
        "INSERT INTO datasets (id, owner, name, terms, runs, budget, state, created_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(id.to_string())
    .bind(owner.to_string())
    .bind(name)
    .bind(rows::to_json(terms)?)
    .bind(i64::from(terms.runs))
    .bind(budget.count().to_string())
    .bind(rows::name(DatasetState::Uploading)?)
    .bind(clock::now())
    .execute(&mut **tx)
    .await;
    match inserted {
        Err(error) if is_duplicate(&error) => return Ok(false),
        other => other?,
    };
    let holders = terms.roster.iter().flat_map(|roster| &roster.holders);
    for (number, member) in (0i64..).zip(holders) {
        sqlx::query("INSERT INTO holders (dataset, number, account) VALUES ($1, $2, $3)")
            .bind(id.to_string())
            .bind(number)
            .bind(&member.account)
            .execute(&mut **tx)
            .await?;
    }
    Ok(true)
}

/// Returns the email addresses of a dataset's holders in the order of its roster. The address of a
/// deleted account is empty.
///
/// # Errors
/// A failure of the store.
pub async fn holders(store: &Store, id: Uuid) -> Result<Vec<String>, StoreError> {
    let found = sqlx::query(
        "SELECT COALESCE(accounts.email, '') AS email FROM holders \
         LEFT JOIN accounts ON accounts.id = holders.account \
         WHERE holders.dataset = $1 ORDER BY holders.number",
    )
    .bind(id.to_string())
    .fetch_all(store.pool())
    .await?;
    found.iter().map(|row| row.try_get("email")).collect()
}

/// Returns whether an account is a sole or joint holder of a dataset.
///
/// # Errors
/// A failure of the store.
pub async fn is_held(store: &Store, id: Uuid, user: Uuid) -> Result<bool, StoreError> {
    // Safe: both parts are constants of this crate.
    let select = format!("SELECT COUNT(*) AS held FROM datasets WHERE id = $1 AND {HELD}");
    let row = sqlx::query(AssertSqlSafe(select))
        .bind(id.to_string())
        .bind(user.to_string())
        .fetch_one(store.pool())
        .await?;
    Ok(row.try_get::<i64, _>("held")? > 0)
}

/// A dataset with its owner.
#[derive(Clone, Debug)]
pub struct Found {
    /// The account that created it.
    pub owner: Uuid,
    /// The dataset, unless its data is being erased.
    pub dataset: Option<Dataset>,
}

/// Returns the dataset with an identifier, for any owner.
///
/// # Errors
/// A failure of the store.
pub async fn find(store: &Store, id: Uuid) -> Result<Option<Found>, StoreError> {
    // Safe: all parts are constants of this crate.
    let select = format!("SELECT {} FROM datasets WHERE id = $1", columns());
    let row = sqlx::query(AssertSqlSafe(select))
        .bind(id.to_string())
        .fetch_optional(store.pool())
        .await;
    let row = rows::of_dataset(id, row)?;
    let found = |row: Row| {
        let deleting = row.try_get::<String, _>("state")? == ERASING;
        Ok(Found {
            owner: rows::parsed(&row, "owner")?,
            dataset: (!deleting).then(|| dataset(&row)).transpose()?,
        })
    };
    row.map(found).transpose()
}

/// Returns the owner of a dataset whose data is not being erased. The dataset may be damaged.
///
/// # Errors
/// A failure of the store.
pub async fn owner(store: &Store, id: Uuid) -> Result<Option<Uuid>, StoreError> {
    let row = sqlx::query("SELECT owner FROM datasets WHERE id = $1 AND state <> $2")
        .bind(id.to_string())
        .bind(ERASING)
        .fetch_optional(store.pool())
        .await?;
    row.map(|row| rows::parsed(&row, "owner")).transpose()
}

/// Lists the datasets of which an account is a sole or joint holder, from a cut on.
///
/// # Errors
/// A failure of the store.
pub async fn list(store: &Store, user: Uuid, cut: &Cut) -> Result<Entries<Dataset>, StoreError> {
    let list = List {
        table: "datasets",
        columns: &columns(),
        condition: &format!("state <> $1 AND {HELD}"),
        bound: &[ERASING, &user.to_string()],
    };
    list.fetch(store, cut, dataset).await
}

/// Returns a dataset's terms.
///
/// # Errors
/// A failure of the store.
pub async fn terms(store: &Store, id: Uuid) -> Result<Option<Terms>, StoreError> {
    let row = sqlx::query("SELECT terms FROM datasets WHERE id = $1")
        .bind(id.to_string())
        .fetch_optional(store.pool())
        .await;
    let row = rows::of_dataset(id, row)?;
    let terms = row.map(|row| rows::json(&row, "terms")).transpose();
    rows::of_dataset(id, terms)
}

/// Renames a dataset.
///
/// # Errors
/// A failure of the store.
pub async fn rename(store: &Store, id: Uuid, name: &str) -> Result<(), StoreError> {
    sqlx::query("UPDATE datasets SET name = $1 WHERE id = $2 AND state <> $3")
        .bind(name)
        .bind(id.to_string())
        .bind(ERASING)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Changes the state of a dataset from uploading to ready.
///
/// # Errors
/// A failure of the store.
pub async fn make_ready(store: &Store, id: Uuid) -> Result<(), StoreError> {
    sqlx::query("UPDATE datasets SET state = $1 WHERE id = $2 AND state = $3")
        .bind(rows::name(DatasetState::Ready)?)
        .bind(id.to_string())
        .bind(rows::name(DatasetState::Uploading)?)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// State of a dataset that is locked until the transaction ends.
#[derive(Clone, Copy, Debug)]
pub struct Locked {
    /// Its state.
    pub state: DatasetState,
    /// Number of runs in its budget.
    pub runs: usize,
}

/// Locks a dataset whose data is not being erased. The caller checks access before.
///
/// # Errors
/// A failure of the store.
pub async fn lock(store: &Store, tx: &mut Tx, id: Uuid) -> Result<Option<Locked>, StoreError> {
    let lock = store.locking("SELECT state, runs FROM datasets WHERE id = $1 AND state <> $2");
    let row = sqlx::query(lock)
        .bind(id.to_string())
        .bind(ERASING)
        .fetch_optional(&mut **tx)
        .await?;
    let locked = |row: Row| {
        Ok(Locked {
            state: rows::named(&row, "state")?,
            runs: rows::number(&row, "runs")?,
        })
    };
    row.map(locked).transpose()
}

/// Returns the number of a dataset's jobs that take a run.
///
/// # Errors
/// A failure of the store.
pub async fn runs_taken(tx: &mut Tx, id: Uuid) -> Result<usize, StoreError> {
    let query = format!("SELECT COUNT(*) AS jobs FROM jobs WHERE dataset = $1 AND {TAKES_RUN}");
    let row = sqlx::query(AssertSqlSafe(query))
        .bind(id.to_string())
        .fetch_one(&mut **tx)
        .await?;
    rows::number(&row, "jobs")
}

/// Returns the oldest failed or cancelled job of a dataset that holds a run.
///
/// # Errors
/// A failure of the store.
pub async fn stranded(tx: &mut Tx, id: Uuid) -> Result<Option<Uuid>, StoreError> {
    let query = format!(
        "SELECT id FROM jobs WHERE dataset = $1 AND state IN ('failed', 'cancelled') \
         AND {TAKES_RUN} ORDER BY created_at, id LIMIT 1"
    );
    let row = sqlx::query(AssertSqlSafe(query))
        .bind(id.to_string())
        .fetch_optional(&mut **tx)
        .await?;
    row.map(|row| rows::parsed(&row, "id")).transpose()
}

/// Returns whether this service knows that a dataset has had keys: a holder has shown a receipt for
/// them, or a job has released something.
///
/// # Errors
/// A failure of the store.
pub async fn had_keys(store: &Store, id: Uuid) -> Result<bool, StoreError> {
    let row = sqlx::query(
        "SELECT (SELECT COUNT(*) FROM datasets WHERE id = $1 AND receipt IS NOT NULL) \
         + (SELECT COUNT(*) FROM holders WHERE dataset = $1 AND receipt IS NOT NULL) \
         + (SELECT COUNT(*) FROM jobs WHERE dataset = $1 AND (receipt IS NOT NULL OR releases > 0)) \
         AS signs",
    )
    .bind(id.to_string())
    .fetch_one(store.pool())
    .await?;
    Ok(row.try_get::<i64, _>("signs")? > 0)
}

/// Maximum number of holders' receipts that are shown with a batch, in addition to one of each job.
const MAX_HOLDERS_SHOWN: i64 = 12;

/// Returns the receipts of a dataset: those shown by its holders, with that of `user` first, and those
/// of all jobs' last answers.
///
/// # Errors
/// A failure of the store.
pub async fn receipts(store: &Store, id: Uuid, user: &str) -> Result<Vec<Receipt>, StoreError> {
    let of_holders = "SELECT receipt FROM holders WHERE dataset = $1 AND receipt IS NOT NULL \
         ORDER BY CASE WHEN account = $2 THEN 0 ELSE 1 END, number LIMIT $3";
    let holders = sqlx::query(of_holders)
        .bind(id.to_string())
        .bind(user)
        .bind(MAX_HOLDERS_SHOWN)
        .fetch_all(store.pool())
        .await?;
    let others = sqlx::query(
        "SELECT receipt FROM datasets WHERE id = $1 AND receipt IS NOT NULL \
         UNION SELECT receipt FROM jobs WHERE dataset = $1 AND receipt IS NOT NULL",
    )
    .bind(id.to_string())
    .fetch_all(store.pool())
    .await?;
    let mut receipts: Vec<Receipt> = Vec::new();
    for row in holders.iter().chain(&others) {
        let receipt = rows::json(row, "receipt")?;
        if !receipts.contains(&receipt) {
            receipts.push(receipt);
        }
    }
    Ok(receipts)
}

/// The statements that store a user's receipt. One of several holders has a place for its own
/// receipt, so that no other holder can replace it. A single owner's receipt is stored with the
/// dataset.
#[derive(Clone, Copy)]
struct Shelf {
    select: &'static str,
    update: &'static str,
}

const OF_HOLDER: Shelf = Shelf {
    select: "SELECT receipt FROM holders WHERE dataset = $1 AND account = $2",
    update: "UPDATE holders SET receipt = $3 WHERE dataset = $1 AND account = $2",
};

const OF_OWNER: Shelf = Shelf {
    select: "SELECT receipt FROM datasets WHERE id = $1 AND owner = $2",
    update: "UPDATE datasets SET receipt = $3 WHERE id = $1 AND owner = $2",
};

/// Stores a receipt that a holder shows, unless the holder has shown a later one.
///
/// # Errors
/// A failure of the store.
pub async fn keep_receipt(
    store: &Store,
    tx: &mut Tx,
    user: Uuid,
    receipt: &Receipt,
) -> Result<(), StoreError> {
    for shelf in [OF_HOLDER, OF_OWNER] {
        let row = sqlx::query(store.locking(shelf.select))
            .bind(receipt.dataset.to_string())
            .bind(user.to_string())
            .fetch_optional(&mut **tx)
            .await?;
        let Some(row) = row else {
            continue;
        };
        let known: Option<Receipt> = rows::some_json(&row, "receipt")?;
        if known.is_none_or(|known| known.height < receipt.height) {
            sqlx::query(shelf.update)
                .bind(receipt.dataset.to_string())
                .bind(user.to_string())
                .bind(rows::to_json(receipt)?)
                .execute(&mut **tx)
                .await?;
        }
        return Ok(());
    }
    Ok(()) // deleted meanwhile
}

/// Marks a dataset as being deleted by its owner at all services.
///
/// # Errors
/// A failure of the store.
pub async fn mark_deleting(store: &Store, id: Uuid) -> Result<(), StoreError> {
    sqlx::query("UPDATE datasets SET state = $1 WHERE id = $2 AND state <> $3")
        .bind(rows::name(DatasetState::Deleting)?)
        .bind(id.to_string())
        .bind(ERASING)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Lists the datasets that their owners are deleting at all services, with the owners.
///
/// # Errors
/// A failure of the store.
pub async fn deleting(store: &Store) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
    let found = sqlx::query("SELECT id, owner FROM datasets WHERE state = $1")
        .bind(rows::name(DatasetState::Deleting)?)
        .fetch_all(store.pool())
        .await?;
    let pair = |row: &Row| Ok((rows::parsed(row, "id")?, rows::parsed(row, "owner")?));
    let pairs = found.iter().map(|row| rows::undamaged(pair(row)));
    pairs.filter_map(Result::transpose).collect()
}

/// Deletes a dataset's jobs and their data, and hides the dataset from its owner. The row stays, so
/// that an interrupted deletion is found and resumed. Returns `false` if the dataset is hidden already.
///
/// # Errors
/// A failure of the store.
pub async fn begin_deletion(tx: &mut Tx, id: Uuid) -> Result<bool, StoreError> {
    let id = id.to_string();
    // Locks the dataset's row first, so that no job is added meanwhile.
    let hidden = sqlx::query("UPDATE datasets SET state = $1 WHERE id = $2 AND state <> $1")
        .bind(ERASING)
        .bind(&id)
        .execute(&mut **tx)
        .await?;
    if hidden.rows_affected() == 0 {
        return Ok(false);
    }
    for statement in [
        // Locks the jobs' rows before their events and batches, in the order of the workers.
        // Postgres would abort one of two transactions that lock them in different orders.
        "UPDATE jobs SET dataset = dataset WHERE dataset = $1",
        "DELETE FROM job_events WHERE job IN (SELECT id FROM jobs WHERE dataset = $1)",
        "DELETE FROM batches WHERE job IN (SELECT id FROM jobs WHERE dataset = $1)",
        "DELETE FROM jobs WHERE dataset = $1",
        "DELETE FROM holders WHERE dataset = $1",
    ] {
        sqlx::query(statement).bind(&id).execute(&mut **tx).await?;
    }
    Ok(true)
}

/// Deletes the row of a dataset whose data is being erased.
///
/// # Errors
/// A failure of the store.
pub async fn finish_deletion(store: &Store, id: Uuid) -> Result<(), StoreError> {
    sqlx::query("DELETE FROM datasets WHERE id = $1 AND state = $2")
        .bind(id.to_string())
        .bind(ERASING)
        .execute(store.pool())
        .await?;
    Ok(())
}

/// Lists all datasets whose data is not being erased, with whether their uploads are complete.
///
/// # Errors
/// A failure of the store.
pub async fn all_states(store: &Store) -> Result<Vec<(Uuid, bool)>, StoreError> {
    let select = "SELECT id, state FROM datasets WHERE state <> $1 ORDER BY created_at, id";
    let found = sqlx::query(select)
        .bind(ERASING)
        .fetch_all(store.pool())
        .await?;
    let pair = |row: &Row| {
        let state: DatasetState = rows::named(row, "state")?;
        Ok((rows::parsed(row, "id")?, state == DatasetState::Ready))
    };
    found.iter().map(pair).collect()
}

/// Lists all datasets.
///
/// # Errors
/// A failure of the store.
pub async fn all(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT id FROM datasets");
    let found = found.fetch_all(store.pool()).await?;
    found.iter().map(|row| rows::parsed(row, "id")).collect()
}

/// Lists the datasets whose data is being erased.
///
/// # Errors
/// A failure of the store.
pub async fn erasing(store: &Store) -> Result<Vec<Uuid>, StoreError> {
    let found = sqlx::query("SELECT id FROM datasets WHERE state = $1")
        .bind(ERASING)
        .fetch_all(store.pool())
        .await?;
    let erasing = found
        .iter()
        .map(|row| rows::undamaged(rows::parsed(row, "id")));
    erasing.filter_map(Result::transpose).collect()
}
