//! What an account may have here, and what it has.

use fhaim_api::usage::{Usage, Used};
use fhaim_platform::store::{Tx, lock_owner};
use fhaim_platform::{Failure, clock};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::keys as store;

/// A day, in milliseconds.
const DAY: clock::Millis = 24 * 3600 * 1000;

/// Refuses a key set beyond what an account may have. No other of the account is made until the
/// transaction ends.
///
/// # Errors
/// [`Refusal::KeySets`], [`Refusal::KeySetsToday`].
pub async fn check(state: &State, tx: &mut Tx, owner: Uuid) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let counted = store::count(tx, owner, clock::now() - DAY).await?;
    let limits = state.limits;
    if counted.kept >= limits.key_sets {
        return Err(Refusal::KeySets(limits.key_sets).into());
    }
    if counted.recent >= limits.key_sets_a_day {
        return Err(Refusal::KeySetsToday(limits.key_sets_a_day).into());
    }
    Ok(())
}

/// What an account has.
///
/// # Errors
/// A failure of the store.
pub async fn usage(state: &State, owner: Uuid) -> Result<Usage, Failure> {
    let mut tx = state.base.store.begin().await?;
    let counted = store::count(&mut tx, owner, clock::now() - DAY).await?;
    let limits = state.limits;
    Ok(Usage {
        limits: vec![
            Used::new("key_sets", counted.kept, limits.key_sets),
            Used::new("key_sets_a_day", counted.recent, limits.key_sets_a_day),
        ],
    })
}
