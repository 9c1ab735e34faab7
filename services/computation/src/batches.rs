//! Batches of releases. The generation service asks for a batch once and then polls it.

use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_platform::Failure;
use std::time::Duration;

use crate::problem::Refusal;
use crate::store::batches::{self as store, Found, Name};
use crate::store::uploads as rows;
use crate::{Role, State, uploads};

/// Time for which a look at a batch waits for its end before it reports that the batch is under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks for a batch and returns its status. Asking for the same batch again changes nothing, except that
/// `again` queues a refused batch again.
///
/// # Errors
/// [`ProblemKind::Conflict`](fhaim_api::problem::ProblemKind::Conflict)
/// if another batch has this number or the upload is not complete;
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) if the dataset does not exist.
pub async fn ask(state: &State, name: Name, batch: &Batch) -> Result<BatchStatus, Failure> {
    if batch.requests.first().map(|request| request.number) != Some(name.first) {
        return Err(Refusal::Address.into());
    }
    let Some(found) = store::find(&state.base.store, name).await? else {
        return enqueue(state, name, batch).await;
    };
    if found.requests != batch.requests {
        return Err(Refusal::OtherBatch(name.first).into());
    }
    let reopen = batch.again && matches!(found.status, BatchStatus::Refused { .. });
    if reopen || !has_ended(&found.status) {
        show(state, name, &found, &batch.receipts).await?;
    }
    let was_reported = matches!(
        (&state.role, &found.status),
        (Role::Second { .. }, BatchStatus::Released { .. })
    );
    if batch.again && was_reported {
        // The crypto service may have been set back to a copy without the reported digest.
        store::repeat(&state.base.store, name).await?;
        state.queued.notify_one();
        return Ok(BatchStatus::Queued);
    }
    if reopen {
        // The reason for the refusal may have passed; the crypto service makes the final decision.
        // The batch is sealed again, to the same bytes, because the stored ones may be damaged.
        store::reopen(&state.base.store, name).await?;
        state.queued.notify_one();
        return Ok(BatchStatus::Queued);
    }
    Ok(found.status)
}

/// Returns the status of a batch, after a short wait for its end.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound)
/// for an unknown batch. The service may have been set back to a copy
/// without it.
pub async fn look(state: &State, name: Name, receipts: &[Receipt]) -> Result<BatchStatus, Failure> {
    let ended = state.ended.notified();
    let found = find(state, name).await?;
    if has_ended(&found.status) {
        return Ok(found.status);
    }
    show(state, name, &found, receipts).await?;
    // A wake-up for another batch only makes the response early.
    let _ = tokio::time::timeout(PATIENCE, ended).await;
    Ok(find(state, name).await?.status)
}

/// Queues a refused batch again after an operator has fixed the cause. It is sealed again, to the
/// same bytes.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound)
/// for a batch that does not exist or was not refused.
pub async fn reopen(state: &State, name: Name) -> Result<(), Failure> {
    match find(state, name).await?.status {
        BatchStatus::Refused { .. } => Ok(store::reopen(&state.base.store, name).await?),
        _ => Err(Failure::not_found()),
    }
}

async fn find(state: &State, name: Name) -> Result<Found, Failure> {
    let found = store::find(&state.base.store, name).await?;
    found.ok_or_else(Failure::not_found)
}

fn has_ended(status: &BatchStatus) -> bool {
    matches!(
        status,
        BatchStatus::Released { .. } | BatchStatus::Refused { .. }
    )
}

/// Stores the caller's receipts of the crypto service's ledger in addition to those that it showed
/// before, because the crypto service may have been set back since.
async fn show(
    state: &State,
    name: Name,
    found: &Found,
    receipts: &[Receipt],
) -> Result<(), Failure> {
    if receipts.iter().all(|receipt| found.shown.contains(receipt)) {
        return Ok(());
    }
    let mut tx = state.base.store.begin().await?;
    let shown = store::lock_shown(&state.base.store, &mut tx, name).await?;
    let mut shown = shown.ok_or_else(Failure::not_found)?;
    for receipt in receipts {
        if !shown.contains(receipt) {
            shown.push(receipt.clone());
        }
    }
    store::set_shown(&mut tx, name, &shown).await?;
    Ok(tx.commit().await?)
}

async fn enqueue(state: &State, name: Name, batch: &Batch) -> Result<BatchStatus, Failure> {
    let stored = uploads::find(state, name.dataset).await?;
    let mut tx = state.base.store.begin().await?;
    // The lock prevents that a contribution is taken back at the same moment.
    rows::lock_upload(&state.base.store, &mut tx, stored.dataset).await?;
    if !rows::is_complete_in(&mut tx, stored.dataset).await? {
        return Err(Refusal::Incomplete.into());
    }
    if store::insert(&mut tx, &stored, name, batch).await? {
        tx.commit().await?;
    }
    state.queued.notify_one();
    Ok(BatchStatus::Queued)
}
