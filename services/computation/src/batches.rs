//! Batches of releases: asked for once, then looked at until they end.

use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_platform::Failure;
use std::time::Duration;

use crate::problem::Refusal;
use crate::store::batches::{self as store, Found, Name};
use crate::store::uploads as rows;
use crate::{Role, State, uploads};

/// A look at a batch waits so long for its end before it answers that the batch is under way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks for a batch, and says where it is. The same batch again changes nothing, but that one that
/// was refused begins anew where whoever asks wants it to.
///
/// # Errors
/// [`ProblemKind::Conflict`](fhaim_api::problem::ProblemKind::Conflict) where another batch has this number, or the upload is incomplete;
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) for a dataset that is not there.
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
    let said = matches!(
        (&state.role, &found.status),
        (Role::Second { .. }, BatchStatus::Released { .. })
    );
    if batch.again && said {
        // The crypto service may have been set back to before it was told.
        store::repeat(&state.base.store, name).await?;
        state.queued.notify_one();
        return Ok(BatchStatus::Queued);
    }
    if reopen {
        // Whatever it was refused for may be over, and the crypto service has the last word. It is
        // sealed again, to the same bytes: what was sealed may have been damaged where it was
        // kept.
        store::reopen(&state.base.store, name).await?;
        state.queued.notify_one();
        return Ok(BatchStatus::Queued);
    }
    Ok(found.status)
}

/// Looks at a batch that was asked for, and waits a little for its end.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) for one that was not, or no longer is: this service may have been set
/// back.
pub async fn look(state: &State, name: Name, receipts: &[Receipt]) -> Result<BatchStatus, Failure> {
    let ended = state.ended.notified();
    let found = find(state, name).await?;
    if has_ended(&found.status) {
        return Ok(found.status);
    }
    show(state, name, &found, receipts).await?;
    // Whichever comes first; a wake-up for another batch only makes the answer early.
    let _ = tokio::time::timeout(PATIENCE, ended).await;
    Ok(find(state, name).await?.status)
}

/// Queues a refused batch again, for an operator who has mended what it was refused for. It is
/// sealed again, to the same bytes.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) for a batch that is not there, or was not refused.
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

/// Takes in what whoever asks has seen of the crypto service's ledger, beside what it showed when
/// it asked before: it may have been set back since.
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
    // No part is taken back at the same moment.
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
