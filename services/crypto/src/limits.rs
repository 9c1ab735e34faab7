//! Limits of an account.

use fhaim_api::usage::{Usage, Used};
use fhaim_he::EvaluationKeys;
use fhaim_platform::store::{Tx, lock_owner};
use fhaim_platform::{Failure, clock};
use fhaim_protocol::terms::Terms;
use uuid::Uuid;

use crate::State;
use crate::keys::plan_core;
use crate::problem::Refusal;
use crate::store::keys as store;

/// A day in milliseconds.
pub(crate) const DAY: clock::Millis = 24 * 3600 * 1000;

/// Bytes of evaluation keys that count as one key set. The keys of a roster can be larger.
const KEY_SET_BYTES: usize = 16 << 20;

/// Returns the number of key sets as which a dataset's keys count.
///
/// # Errors
/// [`Refusal::Terms`].
pub fn counted_as(terms: &Terms) -> Result<u64, Refusal> {
    let params = plan_core(terms)?.parameters();
    let params = params.map_err(|error| Refusal::Terms(error.to_string()))?;
    let bytes = EvaluationKeys::encoded_bytes(&params, terms.roster_shape());
    Ok(bytes.div_ceil(KEY_SET_BYTES).max(1) as u64)
}

/// Checks that an account may have more keys. Locks the account's limits until the transaction ends.
///
/// # Errors
/// [`Refusal::KeySets`], [`Refusal::KeySetsToday`].
pub async fn check(
    state: &State,
    tx: &mut Tx,
    owner: Uuid,
    counted_as: u64,
) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let counted = store::count(tx, owner, clock::now() - DAY).await?;
    let limits = state.limits;
    if counted.kept + counted_as > limits.key_sets {
        return Err(Refusal::KeySets(limits.key_sets).into());
    }
    if counted.recent + counted_as > limits.key_sets_a_day {
        return Err(Refusal::KeySetsToday(limits.key_sets_a_day).into());
    }
    Ok(())
}

/// Returns an account's usage and limits.
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
