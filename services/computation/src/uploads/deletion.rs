//! Deletion of an upload or of one contribution, which can be interrupted and resumed.

use fhaim_platform::Failure;
use fhaim_platform::housekeeping::Each;
use uuid::Uuid;

use super::{StoredUpload, store};
use crate::State;
use crate::problem::Refusal;
use crate::store::uploads::TakenBack;

/// Takes a contribution back: deletes its objects and then the contribution. If interrupted, it is
/// resumed within a minute, or by the next call.
///
/// # Errors
/// [`Refusal::Used`] if a run has begun: released answers stay released, and the holder can withdraw
/// at the key service to prevent further runs. A failure of the store or of the blobs.
pub async fn take_back(
    state: &State,
    stored: &StoredUpload,
    contribution: u32,
) -> Result<(), Failure> {
    let dataset = stored.dataset;
    let mut tx = state.base.store.begin().await?;
    store::lock_upload(&state.base.store, &mut tx, dataset).await?;
    if !store::is_there(&mut tx, dataset, contribution).await? {
        return Err(Failure::not_found());
    }
    if store::is_used(&mut tx, dataset).await? {
        return Err(Refusal::Used.into());
    }
    let mark = store::begin_taking_back(&mut tx, dataset, contribution).await?;
    tx.commit().await?;
    state.datasets.forget(dataset);
    let taken = TakenBack {
        dataset,
        contribution,
        mark,
        folder: stored.part_folder(contribution),
    };
    finish_taking_back(state, &taken).await
}

/// Deletes the blobs before the row that names their folder.
///
/// Another worker may have finished the same deletion. The contribution can then be registered again,
/// with blobs in the same folder. The blobs listed while the row still had the mark are not among them.
async fn finish_taking_back(state: &State, taken: &TakenBack) -> Result<(), Failure> {
    let (store, blobs) = (&state.base.store, &state.base.blobs);
    let contents = blobs.contents(&taken.folder).await?;
    if !store::is_taken_back(store, taken).await? {
        return Ok(());
    }
    blobs.delete_contents(contents).await?;
    Ok(store::finish_taking_back(store, taken).await?)
}

/// Deletes an upload: stops its batches, then deletes objects and keys, and then rows. If interrupted,
/// it is resumed within a minute, or by the next call.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn delete(state: &State, dataset: Uuid, owner: Uuid) -> Result<(), Failure> {
    let folder = store::folder(&state.base.store, dataset, owner).await?;
    let folder = folder.ok_or_else(Failure::not_found)?;
    store::begin_deletion(&state.base.store, dataset).await?;
    state.ended.notify_waiters();
    state.datasets.forget(dataset);
    finish_deletion(state, dataset, &folder).await
}

/// Deletes blobs before rows, so that every remaining blob is named by a row.
async fn finish_deletion(state: &State, dataset: Uuid, folder: &str) -> Result<(), Failure> {
    state.base.blobs.delete_folder(folder).await?;
    state.base.store.owe_forgetting();
    store::finish_deletion(&state.base.store, dataset).await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// Resumes interrupted deletions of uploads and contributions.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    let mut each = Each::default();
    for (dataset, folder) in store::deleting(&state.base.store).await? {
        each.add(dataset, finish_deletion(state, dataset, &folder).await);
    }
    for taken in store::taken_back(&state.base.store).await? {
        each.add(taken.dataset, finish_taking_back(state, &taken).await);
    }
    each.end()
}
