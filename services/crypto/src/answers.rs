//! A dataset's ledger and released integers, with which its holders can check every release.

use fhaim_api::Page;
use fhaim_api::keys::{LedgerEntry, ReleasedBatch};
use fhaim_platform::Failure;
use fhaim_protocol::crypto::chain::Act;
use uuid::Uuid;

use crate::store::chain::{self as store, BatchRow};
use crate::{State, keys, ledger};

/// Number of batches on one page. Each may have hundreds of thousands of integers.
const PAGE: usize = 16;

/// Number of ledger entries on one page. Each has at most the debits of one batch.
const ENTRIES: usize = 100;

/// Returns the stored entries above a height of the dataset's ledger. A holder hashes them to compare the ledger with
/// its receipts.
///
/// # Errors
/// [`fhaim_api::problem::ProblemKind::NotFound`] for an account that is not a holder.
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
    Ok(Page {
        items,
        next,
        damaged: Vec::new(),
    })
}

/// Returns the stored batches above a height of the dataset's ledger. The holder itself checks that they are
/// the debited ones.
///
/// # Errors
/// [`fhaim_api::problem::ProblemKind::NotFound`] for an account that is not a holder.
pub async fn show(
    state: &State,
    dataset: Uuid,
    holder: Uuid,
    after: u32,
) -> Result<Page<ReleasedBatch>, Failure> {
    keys::find_held(state, dataset, holder).await?;
    let batches = store::batches(&state.base.store, dataset, after.into(), PAGE as i64).await?;
    // Read after the batches, so that the run of every batch is known.
    let mut tx = state.base.store.begin().await?;
    let chain_state = ledger::chain_state(&mut tx, dataset).await?;
    tx.commit().await?;
    let full = batches.len() == PAGE;
    let next = batches.last().filter(|_| full);
    let next = next.map(|batch| batch.height.to_string());
    let shown = |batch: BatchRow| {
        let none = || Failure::damaged("a stored release belongs to no run");
        let Act::Released { job, entries, .. } = batch.act else {
            return Err(none());
        };
        Ok(ReleasedBatch {
            height: batch.height,
            job: Uuid::from_bytes(job.0),
            run: chain_state.run(job).ok_or_else(none)?,
            entries,
            requests: batch.requests,
            answers: batch.answers,
        })
    };
    let items = batches.into_iter().map(shown).collect::<Result<_, _>>()?;
    Ok(Page {
        items,
        next,
        damaged: Vec::new(),
    })
}
