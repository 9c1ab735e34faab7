//! Datasets whose keys were made by the release before, which had runs and debits in tables of
//! their own, no chain, and left positions to the computation service.
//!
//! Each is given a chain when this release first opens the store. One without a run goes on like
//! any other. One with runs is frozen: which windows of its ladder those took, only the other side
//! knows, and what it says cannot be checked here.

use fhaim_api::Digest;
use fhaim_dp::{Ledger, Rho, generator};
use fhaim_platform::Failure;
use fhaim_platform::store::Tx;
use fhaim_protocol::crypto::chain::{Act, Freeze, ReceiptKey};
use fhaim_protocol::crypto::history::Standing;
use fhaim_protocol::request::DatasetId;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::ledger::{self, Run};
use crate::store::{keys as key_sets, landed as store};
use crate::{State, keys};

/// Gives every dataset that has none a chain and a key for receipts.
///
/// # Errors
/// A failure of the store.
pub async fn adopt(state: &State) -> Result<(), Failure> {
    for dataset in key_sets::without_receipts(&state.base.store).await? {
        adopt_one(state, dataset).await?;
    }
    Ok(())
}

async fn adopt_one(state: &State, dataset: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let stored = keys::lock(state, &mut tx, dataset).await?;
    if stored.has_receipt_key() {
        return Ok(()); // another replica was faster
    }
    // From the secret key: an older copy of the store that is opened again gives the same, and so
    // knows the receipts that it gave before.
    let key = match stored.secret_bytes(state)? {
        Some(secret) => ReceiptKey::derived(&secret),
        None => ReceiptKey::random(&mut generator().map_err(Failure::internal)?),
    };
    let sealed = keys::seal_receipt_key(state, dataset, &key)?;
    key_sets::set_receipt_key(&mut tx, dataset, sealed).await?;
    let mut standing = Standing::new(DatasetId(dataset.into_bytes()));
    let (runs, debits) = digest(&mut tx, dataset).await?;
    let mut acts = vec![stored.made()?];
    if runs > 0 {
        acts.push(Act::Adopted { runs, debits });
        acts.push(Act::Frozen {
            reason: Freeze::Adopted,
        });
    }
    if stored.is_destroyed() {
        acts.push(Act::KeysDestroyed);
    }
    for act in acts {
        let link = standing.append(act).map_err(ledger::failure)?;
        ledger::append(&mut tx, dataset, &link, None).await?;
    }
    tx.commit().await?;
    tracing::info!(%dataset, runs, "the ledger was given a chain");
    Ok(())
}

/// How many runs had begun, and a digest of their stored debits.
async fn digest(tx: &mut Tx, dataset: Uuid) -> Result<(u32, [u8; 32]), Failure> {
    let runs = store::jobs(tx, dataset).await?.len();
    let mut hash = Sha256::new();
    for debit in store::written_debits(tx, dataset).await? {
        for text in debit {
            hash.update(Digest::of(text.as_bytes()).0);
        }
    }
    let runs = u32::try_from(runs).map_err(Failure::internal)?;
    Ok((runs, hash.finalize().into()))
}

/// Runs that had begun, oldest first.
///
/// # Errors
/// A failure of the store, or a stored ledger that breaks its own rules.
pub async fn runs(tx: &mut Tx, dataset: Uuid, run_budget: Rho) -> Result<Vec<Run>, Failure> {
    let mut ledgers: BTreeMap<Uuid, Ledger> = BTreeMap::new();
    for (job, entry) in store::debits(tx, dataset).await? {
        let ledger = ledgers.entry(job);
        ledger::restore(ledger.or_insert_with(|| Ledger::new(run_budget)), entry)?;
    }
    let run = |job| Run {
        ledger: ledgers
            .remove(&job)
            .unwrap_or_else(|| Ledger::new(run_budget)),
        job,
    };
    Ok(store::jobs(tx, dataset)
        .await?
        .into_iter()
        .map(run)
        .collect())
}
