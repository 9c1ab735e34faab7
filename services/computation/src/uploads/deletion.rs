//! Deleting an upload, also where that was broken off, and taking one contribution back.

use fhaim_platform::Failure;
use uuid::Uuid;

use super::{StoredUpload, store};
use crate::State;
use crate::problem::Refusal;
use crate::store::uploads::TakenBack;

/// Takes a contribution back: deletes its objects, and then the contribution. Broken off at any
/// point, it is gone on with within a minute, or by the next call.
///
/// # Errors
/// [`Refusal::Used`] where a run has begun: what was released stays released, and the key
/// service lets no further run begin once the holder withdraws there. A failure of the store or of
/// the blobs.
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

/// Blobs before the row that names their folder.
///
/// Another may be at the same, and be done: the part can then be registered anew, with blobs in the
/// same folder. What was listed while the row still had the mark is none of these.
async fn finish_taking_back(state: &State, taken: &TakenBack) -> Result<(), Failure> {
    let (store, blobs) = (&state.base.store, &state.base.blobs);
    let contents = blobs.contents(&taken.folder).await?;
    if !store::is_taken_back(store, taken).await? {
        return Ok(());
    }
    blobs.delete_contents(contents).await?;
    Ok(store::finish_taking_back(store, taken).await?)
}

/// Deletes an upload: batches under way are stopped, then objects and keys are deleted, and then
/// rows. Broken off at any point, it is gone on with when the service starts, or by the next call.
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

/// Blobs before rows, so that nothing is left that no row names.
async fn finish_deletion(state: &State, dataset: Uuid, folder: &str) -> Result<(), Failure> {
    state.base.blobs.delete_folder(folder).await?;
    state.base.store.owe_forgetting();
    store::finish_deletion(&state.base.store, dataset).await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// Goes on with deletions, and with parts being taken back, that were broken off.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    for (dataset, folder) in store::deleting(&state.base.store).await? {
        finish_deletion(state, dataset, &folder).await?;
    }
    for taken in store::taken_back(&state.base.store).await? {
        finish_taking_back(state, &taken).await?;
    }
    Ok(())
}
