//! What the second computation service computed: kept until the first one's request comes, and held
//! against it.
//!
//! No word of it is lost with a store that was set back: it says so again whenever the generation
//! service asks it for the batch, which that does until the batch is released.

use fhaim_api::Digest;
use fhaim_api::keys::{Receipt, Witnessed};
use fhaim_platform::Failure;
use fhaim_protocol::crypto::Digests;
use fhaim_protocol::crypto::chain::Freeze;
use fhaim_protocol::request::asked;
use uuid::Uuid;

use crate::decryption::{self, DecryptionCall, Sent};
use crate::store::witnessed as store;
use crate::{State, keys, ledger};

/// Keeps what a batch was computed to. Two different words on one batch freeze the dataset: sealing is
/// a function.
///
/// # Errors
/// Frozen, restored, not found, as for a decryption; forbidden where the terms have no second computation service.
pub async fn take(
    state: &State,
    call: &DecryptionCall,
    new: &Witnessed,
) -> Result<Receipt, Failure> {
    let stored = keys::find(state, call.dataset).await?;
    if !stored.terms.witness {
        return Err(Failure::forbidden());
    }
    ledger::check_passed_on(state, &stored, &call.receipts).await?;
    let mut tx = state.base.store.begin().await?;
    let standing = decryption::open(state, &mut tx, call.dataset).await?;
    match store::find(&mut tx, call.dataset, call.job, new.asked).await? {
        None => {
            store::insert(&mut tx, call.dataset, call.job, new).await?;
            tx.commit().await?;
        }
        Some(known) if known == new.request => {}
        Some(_) => {
            drop(tx);
            return Err(ledger::freeze(state, call.dataset, Freeze::Witness).await);
        }
    }
    ledger::receipt(state, &stored, standing.tip())
}

/// Digests of a request and of what the second computation service computed, where it has.
///
/// # Errors
/// A failure of the store.
pub(crate) async fn digests(
    state: &State,
    call: &DecryptionCall,
    sent: &Sent,
) -> Result<Digests, Failure> {
    let witness = word(state, (call.dataset, call.job), sent).await?;
    let sent = sent.digest.0;
    Ok(Digests { sent, witness })
}

/// Digest of what the second computation service computed instead of a request of this dataset and job, where it has.
///
/// # Errors
/// A failure of the store.
pub(crate) async fn word(
    state: &State,
    (dataset, job): (Uuid, Uuid),
    sent: &Sent,
) -> Result<Option<[u8; 32]>, Failure> {
    let asked = Digest(asked(&sent.request.releases));
    let mut tx = state.base.store.begin().await?;
    let witness = store::find(&mut tx, dataset, job, asked).await?;
    tx.commit().await?;
    Ok(witness.map(|witness| witness.0))
}
