//! Limits of an account.

use fhaim_api::usage::{Usage, Used};
use fhaim_platform::Failure;
use fhaim_platform::store::{Tx, lock_owner};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::uploads as store;

/// Checks that an account may store `bytes` more bytes. Locks the account's limits until the
/// transaction ends, so that concurrent registrations cannot exceed them.
///
/// # Errors
/// [`Refusal::Stored`].
pub async fn check(state: &State, tx: &mut Tx, owner: Uuid, bytes: u64) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let (used, most) = (store::bytes(tx, owner).await?, state.stored_bytes);
    if used.saturating_add(bytes) <= most {
        return Ok(());
    }
    Err(Refusal::Stored {
        megabytes: bytes / 1_000_000,
        used: used / 1_000_000,
        most: most / 1_000_000,
    }
    .into())
}

/// Returns an account's usage and limits.
///
/// # Errors
/// A failure of the store.
pub async fn usage(state: &State, owner: Uuid) -> Result<Usage, Failure> {
    let mut tx = state.base.store.begin().await?;
    let used = store::bytes(&mut tx, owner).await?;
    Ok(Usage {
        limits: vec![Used::new("stored_bytes", used, state.stored_bytes)],
    })
}
