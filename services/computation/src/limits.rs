//! What an account may have here, and what it has.

use fhaim_api::usage::{Usage, Used};
use fhaim_platform::Failure;
use fhaim_platform::store::{Tx, lock_owner};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::uploads as store;

/// Refuses an upload of so many bytes beyond what an account may have. No other of the account is
/// registered until the transaction ends.
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
        megabytes: bytes >> 20,
        used: used >> 20,
        most: most >> 20,
    }
    .into())
}

/// What an account has.
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
