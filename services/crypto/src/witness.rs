//! Digests that the second computation service reports. Each is stored until the request of the first
//! one arrives, and compared with it.
//!
//! A report may be lost when the store is set back. The second service repeats it whenever the
//! generation service asks for the batch, which happens until the batch is released.

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

/// Stores the reported digest of a batch. Sealing is deterministic, so two different reports on one batch
/// freeze the dataset.
///
/// # Errors
/// Frozen, restored or not found, as for a decryption; forbidden if the terms name no second computation service.
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
    let chain_state = decryption::open(state, &mut tx, call.dataset).await?;
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
    ledger::receipt(state, &stored, chain_state.tip())
}

/// Returns the digests of a request and of the second computation service's report, if there is one.
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

/// Returns the digest that the second computation service reported for a request of this dataset and job.
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
