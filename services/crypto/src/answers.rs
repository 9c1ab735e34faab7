//! What was released of a dataset, for its holders: by it they can check every integer.

use fhaim_api::Page;
use fhaim_api::keys::{LedgerEntry, ReleasedBatch};
use fhaim_platform::Failure;
use fhaim_protocol::crypto::chain::Act;
use uuid::Uuid;

use crate::store::chain::{self as store, BatchRow};
use crate::{State, keys, ledger};

/// Batches of one page: each may have hundreds of thousands of integers.
const PAGE: usize = 16;

/// Entries of one page of the ledger: each has the debits of a batch at most.
const ENTRIES: usize = 100;

/// The entries above a height of the dataset's ledger, as they are stored: by their hashes a holder compares the
/// ledger with the receipts that it has.
///
/// # Errors
/// [`fhaim_api::problem::ProblemKind::NotFound`] for an account that holds no part of the dataset.
pub async fn show_chain(
    state: &State,
    dataset: Uuid,
    holder: Uuid,
    after: u32,
) -> Result<Page<LedgerEntry>, Failure> {
    keys::find_held(state, dataset, holder).await?;
    let most = ENTRIES as i64;
    let items = store::links_after(&state.base.store, dataset, after.into(), most).await?;
    let last = items.last().filter(|_| items.len() == ENTRIES);
    let next = last.map(|entry| entry.height.to_string());
    Ok(Page { items, next })
}

/// The batches above a height of the dataset's ledger, as they are stored: whether they are what was
/// debited is for the holder to find out.
///
/// # Errors
/// [`fhaim_api::problem::ProblemKind::NotFound`] for whoever holds no part of the dataset.
pub async fn show(
    state: &State,
    dataset: Uuid,
    holder: Uuid,
    after: u32,
) -> Result<Page<ReleasedBatch>, Failure> {
    keys::find_held(state, dataset, holder).await?;
    let batches = store::batches(&state.base.store, dataset, after.into(), PAGE as i64).await?;
    // Behind the batches: whatever they are of has begun by then.
    let mut tx = state.base.store.begin().await?;
    let standing = ledger::standing(&mut tx, dataset).await?;
    tx.commit().await?;
    let full = batches.len() == PAGE;
    let next = batches.last().filter(|_| full);
    let next = next.map(|batch| batch.height.to_string());
    let shown = |batch: BatchRow| {
        let none = || Failure::internal("a stored release of no run");
        let Act::Released { job, entries, .. } = batch.act else {
            return Err(none());
        };
        Ok(ReleasedBatch {
            height: batch.height,
            job: Uuid::from_bytes(job.0),
            run: standing.run(job).ok_or_else(none)?,
            entries,
            requests: batch.requests,
            answers: batch.answers,
        })
    };
    let items = batches.into_iter().map(shown).collect::<Result<_, _>>()?;
    Ok(Page { items, next })
}
