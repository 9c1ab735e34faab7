//! The stored ledger: a chain of acts for each dataset.
//!
//! Rows are only ever added. A chain's key is dataset and height, so only one of two concurrent appends at
//! a height succeeds. [`append`] relies on this compare-and-set.

use fhaim_api::keys::{DatasetLedger, Receipt, RunLedger};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_dp::{Entry, Ledger, Rho};
use fhaim_platform::Failure;
use fhaim_platform::rows;
use fhaim_platform::store::Tx;
use fhaim_platform::token::Caller;
use fhaim_protocol::crypto::chain::{self, Act, Freeze, ReceiptKey, Tip};
use fhaim_protocol::crypto::history::{ChainLink, ChainState};
use fhaim_protocol::crypto::job_ledger::JobLedger;
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::request::{DatasetId, JobId};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::audit::Asked;
use crate::keys::{self, StoredKeySet};
use crate::problem::Refusal;
use crate::store::chain::{self as store, Answered};
use crate::store::witnessed;
use crate::{State, decryption};

/// A job's share of the budget and its debits.
#[derive(Debug)]
pub struct RunAccount {
    /// The job.
    pub job: Uuid,
    /// Its debits.
    pub ledger: Ledger,
}

/// Converts a refusal or fault of the protocol for the caller.
pub fn failure(error: fhaim_protocol::Error) -> Failure {
    use fhaim_protocol::Error;
    let refusal = match error {
        Error::Frozen(reason) => Refusal::Frozen(reason),
        Error::FrozenForGood(reason) => Refusal::FrozenForGood(reason),
        Error::NotFrozen => Refusal::NotFrozen,
        Error::OtherUpload => Refusal::OtherUpload,
        Error::Unsigned(_) | Error::Withdrawn(_) => Refusal::Consent(error.to_string()),
        Error::Signature(_) => Refusal::Signature(error.to_string()),
        Error::NoRunLeft(_) => Refusal::Spent(error.to_string()),
        Error::Overtaken => return Failure::overtaken(error),
        Error::Unwitnessed => return Failure::not_yet(error.to_string()),
        Error::Stored(_) => return Failure::damaged(error),
        fault => return Failure::internal(fault),
    };
    refusal.into()
}

/// Returns the state of a dataset's chain.
///
/// # Errors
/// A failure of the store, or acts that are missing or cannot be read.
pub async fn chain_state(tx: &mut Tx, dataset: Uuid) -> Result<ChainState, Failure> {
    let acts = store::acts(&mut **tx, dataset).await;
    let (acts, tip) = rows::of_dataset(dataset, acts)?;
    ChainState::read(DatasetId(dataset.into_bytes()), tip, acts).map_err(failure)
}

/// Appends a link to a dataset's chain, with its released integers, unless the chain has grown.
///
/// # Errors
/// [`ProblemKind::Unavailable`] if another request was appended at this height; read the chain and try again.
pub async fn append(
    tx: &mut Tx,
    dataset: Uuid,
    link: &ChainLink,
    answered: Option<Answered<'_>>,
) -> Result<(), Failure> {
    if store::append(tx, dataset, link, answered).await? {
        return audit(tx, dataset, &link.act).await;
    }
    let cause = "another request of the dataset was stored meanwhile";
    Err(Failure::overtaken(cause))
}

/// Logs the acts of this service and its operator in the audit log.
async fn audit(tx: &mut Tx, dataset: Uuid, act: &Act) -> Result<(), Failure> {
    let action = match act {
        Act::Frozen { reason } => match reason {
            Freeze::Noise => "freeze the dataset: a page cannot be decrypted",
            Freeze::Upload => "freeze the dataset: an uploaded object cannot be decrypted",
            Freeze::Witness => "freeze the dataset: the computation services do not agree",
            Freeze::Restored => "freeze the dataset: the ledger does not contain a receipt",
            Freeze::UnknownReceipt => "freeze the dataset: another key signed a receipt",
        },
        Act::Thawed => "thaw the dataset, for the operator",
        _ => return Ok(()),
    };
    let asked = Asked {
        dataset,
        actor: Caller::Service(Service::Crypto),
        action,
    };
    Ok(asked.write(tx, true).await?)
}

/// Returns a job's releases in order, and its last debit.
///
/// # Errors
/// A stored ledger that breaks its own rules.
pub async fn job_ledger(
    tx: &mut Tx,
    rules: &Rules,
    job: JobId,
    run: u32,
) -> Result<JobLedger, Failure> {
    let dataset = Uuid::from_bytes(rules.dataset.0);
    let id = Uuid::from_bytes(job.0);
    let releases = rows::of_dataset(dataset, store::releases_of(tx, dataset, id).await)?;
    let debited = rows::of_dataset(dataset, store::last_debit(tx, dataset, id).await)?;
    JobLedger::read(rules, job, run, releases, debited).map_err(failure)
}

/// Returns the damage of a dataset's stored chain.
///
/// # Errors
/// A failure of the store.
pub async fn damage_of_chain(state: &State, dataset: Uuid) -> Result<Option<String>, Failure> {
    match store::acts(state.base.store.pool(), dataset).await {
        Ok(_) => Ok(None),
        Err(error) => match rows::damage(&error) {
            Some(damage) => Ok(Some(damage.what)),
            None => Err(error.into()),
        },
    }
}

fn broken(reason: impl std::fmt::Display) -> Failure {
    Failure::damaged(format!("the stored ledger: {reason}"))
}

/// Like [`check_receipts`], for receipts that a service passes on. A receipt that is malformed or for another
/// dataset is ignored: a holder may have forged it to stop the job.
///
/// # Errors
/// [`ProblemKind::Restored`].
pub async fn check_passed_on(
    state: &State,
    stored: &StoredKeySet,
    receipts: &[Receipt],
) -> Result<(), Failure> {
    for receipt in receipts {
        match check_receipts(state, stored, std::slice::from_ref(receipt)).await {
            Err(failure) if failure.kind() == ProblemKind::Invalid => {
                tracing::warn!(dataset = %stored.dataset, %failure, "an invalid receipt is ignored");
            }
            checked => checked?,
        }
    }
    Ok(())
}

/// Compares a caller's receipts with the chain.
///
/// A receipt that the chain does not contain freezes the dataset permanently: the store was set back, and this
/// service cannot know which releases are missing. A receipt that another key signed does the same: the store may
/// have been set back to a copy from before the dataset's keys.
///
/// # Errors
/// [`ProblemKind::Invalid`] for a receipt that is malformed or for another dataset;
/// [`ProblemKind::Restored`].
pub async fn check_receipts(
    state: &State,
    stored: &StoredKeySet,
    receipts: &[Receipt],
) -> Result<(), Failure> {
    if receipts.is_empty() {
        return Ok(());
    }
    let public = stored.receipt_key(state)?.public();
    for receipt in receipts {
        let invalid = || Failure::from(Refusal::Receipt);
        let shown = chain::ChainReceipt::try_from(receipt).map_err(|_| invalid())?;
        if receipt.dataset != stored.dataset {
            return Err(invalid());
        }
        let height = i64::try_from(receipt.height).map_err(|_| invalid())?;
        if shown.verify(&public).is_err() {
            return Err(freeze(state, stored.dataset, Freeze::UnknownReceipt).await);
        }
        let known = store::head(&state.base.store, stored.dataset, height).await?;
        if !shown.is_of(|_| known) {
            return Err(freeze(state, stored.dataset, Freeze::Restored).await);
        }
    }
    Ok(())
}

/// Freezes a dataset. Returns the failure for the caller: the reason, or why the dataset could not be frozen.
pub(crate) async fn freeze(state: &State, dataset: Uuid, reason: Freeze) -> Failure {
    tracing::error!(%dataset, ?reason, "the dataset is frozen");
    let freezing = async {
        let mut tx = state.base.store.begin().await?;
        keys::lock(state, &mut tx, dataset).await?;
        let mut chain_state = chain_state(&mut tx, dataset).await?;
        if let Some(link) = chain_state.freeze(reason).map_err(failure)? {
            append(&mut tx, dataset, &link, None).await?;
            tx.commit().await?;
        }
        Ok::<_, Failure>(())
    };
    match freezing.await {
        Ok(()) => Refusal::Frozen(reason).into(),
        Err(failure) => failure,
    }
}

/// Thaws a frozen dataset after an operator has examined it.
///
/// # Errors
/// [`ProblemKind::Conflict`] if it is not frozen, or frozen permanently.
pub async fn thaw(state: &State, dataset: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let stored = keys::lock(state, &mut tx, dataset).await?;
    let rules = decryption::rules(dataset, &keys::plan_core(&stored.terms)?);
    let mut chain_state = chain_state(&mut tx, dataset).await?;
    let link = chain_state.thaw(&rules).map_err(failure)?;
    append(&mut tx, dataset, &link, None).await?;
    // A computation service that reported a wrong digest reports again after it is fixed.
    witnessed::forget(&mut tx, dataset).await?;
    Ok(tx.commit().await?)
}

/// Returns a receipt for a dataset's chain.
///
/// # Errors
/// A receipt key that cannot be unsealed.
pub fn receipt(state: &State, stored: &StoredKeySet, tip: Tip) -> Result<Receipt, Failure> {
    let key: ReceiptKey = stored.receipt_key(state)?;
    let dataset = DatasetId(stored.dataset.into_bytes());
    Ok(key.sign(dataset, tip).into())
}

/// Returns a receipt for a dataset's chain, after comparing the caller's receipts with the chain.
///
/// # Errors
/// Those of [`check_receipts`].
pub async fn show_receipt(
    state: &State,
    stored: &StoredKeySet,
    receipts: &[Receipt],
) -> Result<Receipt, Failure> {
    check_receipts(state, stored, receipts).await?;
    let mut tx = state.base.store.begin().await?;
    let chain_state = chain_state(&mut tx, stored.dataset).await?;
    tx.commit().await?;
    receipt(state, stored, chain_state.tip())
}

/// Returns all runs of a dataset, oldest first.
///
/// # Errors
/// A failure of the store, or a stored ledger that breaks its own rules.
pub async fn runs(tx: &mut Tx, dataset: Uuid, run_budget: Rho) -> Result<Vec<RunAccount>, Failure> {
    let chain_state = chain_state(tx, dataset).await?;
    let mut ledgers: BTreeMap<Uuid, Ledger> = BTreeMap::new();
    for act in rows::of_dataset(dataset, store::debits(tx, dataset).await)? {
        let (Act::Debited { job, entries, .. } | Act::Released { job, entries, .. }) = act else {
            return Err(broken("an act that is not a debit"));
        };
        let ledger = ledgers
            .entry(Uuid::from_bytes(job.0))
            .or_insert_with(|| Ledger::new(run_budget));
        for entry in entries {
            restore(ledger, entry)?;
        }
    }
    let run = |job: &JobId| {
        let job = Uuid::from_bytes(job.0);
        let ledger = ledgers.remove(&job);
        RunAccount {
            ledger: ledger.unwrap_or_else(|| Ledger::new(run_budget)),
            job,
        }
    };
    Ok(chain_state.jobs().iter().map(run).collect())
}

/// Debits a stored entry again, so that a stored ledger must obey the same rules as a new one. The act of a release
/// repeats the entries of its debit.
///
/// # Errors
/// An entry that breaks the rules.
fn restore(ledger: &mut Ledger, entry: Entry) -> Result<(), Failure> {
    ledger.debit(entry.debit).map_err(broken)?;
    Ok(())
}

/// Returns the sum of costs.
///
/// # Errors
/// An overflow.
pub fn total(costs: impl IntoIterator<Item = Rho>) -> Result<Rho, Failure> {
    Rho::checked_sum(costs).ok_or_else(|| Failure::internal(decryption::OVERFLOW))
}

/// Returns a dataset's ledger for one of its holders.
///
/// # Errors
/// [`ProblemKind::NotFound`]; [`ProblemKind::Restored`].
pub async fn show(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    receipts: &[Receipt],
) -> Result<DatasetLedger, Failure> {
    let stored = keys::find_held(state, dataset, owner).await?;
    check_receipts(state, &stored, receipts).await?;
    let plan = keys::plan_core(&stored.terms)?;
    let mut tx = state.base.store.begin().await?;
    let runs = runs(&mut tx, dataset, plan.run_budget).await?;
    let chain_state = chain_state(&mut tx, dataset).await?;
    tx.commit().await?;
    let spent = total(runs.iter().map(|run| run.ledger.spent()))?;
    let promised = total(runs.iter().map(|_| plan.run_budget))?;
    let run = |run: RunAccount| RunLedger {
        job: run.job,
        budget: run.ledger.budget().into(),
        spent: run.ledger.spent().into(),
        entries: run.ledger.entries().to_vec(),
    };
    Ok(DatasetLedger {
        dataset,
        budget: plan.budget.into(),
        spent: spent.into(),
        unclaimed: plan
            .budget
            .checked_sub(promised)
            .unwrap_or(Rho::ZERO)
            .into(),
        runs: runs.into_iter().map(run).collect(),
        frozen: chain_state
            .frozen()
            .map(|reason| reason.detail().to_owned()),
        receipt: receipt(state, &stored, chain_state.tip())?,
    })
}
