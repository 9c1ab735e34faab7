//! Deleting an upload, also where that was broken off.

use fhaim_platform::Failure;
use uuid::Uuid;

use super::store;
use crate::State;

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
    store::finish_deletion(&state.base.store, dataset).await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// Goes on with deletions that were broken off.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    for (dataset, folder) in store::deleting(&state.base.store).await? {
        finish_deletion(state, dataset, &folder).await?;
    }
    Ok(())
}
