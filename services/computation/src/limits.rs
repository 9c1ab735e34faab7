//! What an account may have here, and what it has.

use fhaim_api::usage::{Usage, Used};
use fhaim_platform::Failure;
use fhaim_platform::store::{Tx, lock_owner};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::uploads as store;
use crate::uploads;

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

/// Says of every upload of an earlier release what it takes. One whose terms have no plan cannot
/// be added to, and counts as nothing.
///
/// # Errors
/// A failure of the store.
pub async fn prepare_landed(state: &State) -> Result<(), Failure> {
    for dataset in store::unmeasured(&state.base.store).await? {
        let stored = uploads::find(state, dataset).await?;
        let terms = &stored.terms;
        let planned = uploads::outline(terms).and_then(|outline| {
            let plan = uploads::part_plan(terms, uploads::WHOLE, stored.layout)?;
            let params = outline.parameters();
            let params = params.map_err(|error| Refusal::Terms(error.to_string()))?;
            Ok(plan.bytes(&params))
        });
        let taken = match planned {
            Ok(bytes) => bytes,
            Err(refusal) => {
                tracing::warn!(%dataset, %refusal, "an upload of an earlier release has no plan");
                0
            }
        };
        store::set_bytes(&state.base.store, dataset, taken).await?;
    }
    Ok(())
}
