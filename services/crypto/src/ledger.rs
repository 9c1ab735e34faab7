//! The stored ledger: a chain of acts for each dataset.
//!
//! Rows are only ever added. A chain's key is dataset and height, so of two that append at one
//! height one fails, which is the compare and set that [`append`] rests on.

use fhaim_api::keys::{DatasetLedger, Receipt, RunLedger};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_dp::{Entry, Ledger, Rho};
use fhaim_platform::Failure;
use fhaim_platform::store::Tx;
use fhaim_platform::token::Caller;
use fhaim_protocol::crypto::chain::{self, Act, Freeze, ReceiptKey, Tip};
use fhaim_protocol::crypto::history::{ChainLink, ChainState};
use fhaim_protocol::crypto::judge::{Book, Rules};
use fhaim_protocol::request::{DatasetId, JobId};
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::audit::Asked;
use crate::keys::{self, StoredKeySet};
use crate::problem::Refusal;
use crate::store::chain::{self as store, Answered};
use crate::store::witnessed;
use crate::{State, decryption};

/// A job's share of the budget, and what it has spent.
#[derive(Debug)]
pub struct RunAccount {
    /// The job.
    pub job: Uuid,
    /// Its debits.
    pub ledger: Ledger,
}

/// What the protocol's refusal or fault is for whoever asked.
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
        fault => return Failure::internal(fault),
    };
    refusal.into()
}

/// A dataset's standing.
///
/// # Errors
/// A failure of the store, or acts that cannot be read.
pub async fn standing(tx: &mut Tx, dataset: Uuid) -> Result<ChainState, Failure> {
    let id = DatasetId(dataset.into_bytes());
    let Some(tip) = store::tip(tx, dataset).await? else {
        return Ok(ChainState::new(id));
    };
    let acts = store::standing_acts(tx, dataset).await?;
    ChainState::read(id, tip, acts).map_err(failure)
}

/// Appends a link to a dataset's chain, with what it releases: compare and set.
///
/// # Errors
/// [`ProblemKind::Unavailable`] where someone else appended at its height: read again, try again.
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

/// Writes what this service did by itself, or for its operator, into the audit log.
async fn audit(tx: &mut Tx, dataset: Uuid, act: &Act) -> Result<(), Failure> {
    let action = match act {
        Act::Frozen { reason } => match reason {
            Freeze::Noise => "freeze the dataset: a page cannot be decrypted",
            Freeze::Witness => "freeze the dataset: the computation services do not agree",
            Freeze::Restored => "freeze the dataset: a receipt is not of the ledger",
            Freeze::UnknownReceipt => "freeze the dataset: another key signed a receipt",
        },
        Act::Thawed => "let the dataset go on, for the operator",
        _ => return Ok(()),
    };
    let asked = Asked {
        dataset,
        actor: Caller::Service(Service::Crypto),
        action,
    };
    Ok(asked.write(tx, true).await?)
}

/// A job's releases, in order, and its last debit.
///
/// # Errors
/// A stored ledger that breaks its own rules.
pub async fn book(tx: &mut Tx, rules: &Rules, job: JobId, run: u32) -> Result<Book, Failure> {
    let dataset = Uuid::from_bytes(rules.dataset.0);
    let id = Uuid::from_bytes(job.0);
    let releases = store::releases_of(tx, dataset, id).await?;
    let debited = store::last_debit(tx, dataset, id).await?;
    Book::read(rules, job, run, releases, debited).map_err(failure)
}

/// The height at which a dataset's stored chain is not what its acts come to, if there is one.
///
/// # Errors
/// A failure of the store.
pub async fn break_of_chain(state: &State, dataset: Uuid) -> Result<Option<u64>, Failure> {
    let id = DatasetId(dataset.into_bytes());
    let mut tip = Tip::default();
    for link in store::links(&state.base.store, dataset).await? {
        tip = tip.append(id, &link.act);
        if (tip.height, tip.head) != (link.height, link.head) {
            return Ok(Some(tip.height));
        }
    }
    Ok(None)
}

fn broken(reason: impl std::fmt::Display) -> Failure {
    Failure::internal(format!("the stored ledger: {reason}"))
}

/// As [`check_receipts`], for receipts that a service shows, its own and others'. A receipt that is
/// malformed or for another dataset is left out: a holder may have made it up to stop the job.
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
                tracing::warn!(dataset = %stored.dataset, %failure, "a receipt is left out");
            }
            checked => checked?,
        }
    }
    Ok(())
}

/// Compares the receipts that a caller shows with the chain. A receipt that the chain does not contain
/// freezes the dataset permanently: the store was set back, and nobody here knows behind which release. So
/// does a receipt that another key signed: the store may have been set back to before the dataset's keys.
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

/// Freezes a dataset: what whoever asked is told, the reason or why it was not frozen.
pub(crate) async fn freeze(state: &State, dataset: Uuid, reason: Freeze) -> Failure {
    tracing::error!(%dataset, ?reason, "the dataset is frozen");
    let freezing = async {
        let mut tx = state.base.store.begin().await?;
        keys::lock(state, &mut tx, dataset).await?;
        let mut standing = standing(&mut tx, dataset).await?;
        if let Some(link) = standing.freeze(reason).map_err(failure)? {
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

/// Lets a frozen dataset go on, after an operator has looked into it.
///
/// # Errors
/// [`ProblemKind::Conflict`] if it is not frozen, or frozen for a reason that no operator can lift.
pub async fn thaw(state: &State, dataset: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let stored = keys::lock(state, &mut tx, dataset).await?;
    let rules = decryption::rules(dataset, &keys::outline(&stored.terms)?);
    let mut standing = standing(&mut tx, dataset).await?;
    let link = standing.thaw(&rules).map_err(failure)?;
    append(&mut tx, dataset, &link, None).await?;
    // What a computation service had wrong, and has mended, it says again otherwise.
    witnessed::forget(&mut tx, dataset).await?;
    Ok(tx.commit().await?)
}

/// A receipt for a dataset's chain.
///
/// # Errors
/// A receipt key that cannot be opened.
pub fn receipt(state: &State, stored: &StoredKeySet, tip: Tip) -> Result<Receipt, Failure> {
    let key: ReceiptKey = stored.receipt_key(state)?;
    let dataset = DatasetId(stored.dataset.into_bytes());
    Ok(key.sign(dataset, tip).into())
}

/// A receipt for a dataset's chain, after holding those that are shown against it.
///
/// # Errors
/// As [`check_receipts`].
pub async fn show_receipt(
    state: &State,
    stored: &StoredKeySet,
    receipts: &[Receipt],
) -> Result<Receipt, Failure> {
    check_receipts(state, stored, receipts).await?;
    let mut tx = state.base.store.begin().await?;
    let standing = standing(&mut tx, stored.dataset).await?;
    tx.commit().await?;
    receipt(state, stored, standing.tip())
}

/// All runs of a dataset, oldest first.
///
/// # Errors
/// A failure of the store, or a stored ledger that breaks its own rules.
pub async fn runs(tx: &mut Tx, dataset: Uuid, run_budget: Rho) -> Result<Vec<RunAccount>, Failure> {
    let standing = standing(tx, dataset).await?;
    let mut ledgers: BTreeMap<Uuid, Ledger> = BTreeMap::new();
    for act in store::debits(tx, dataset).await? {
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
    Ok(standing.jobs().iter().map(run).collect())
}

/// Debits a stored entry again, so that a stored ledger cannot be looser than its rules. The act of a release repeats
/// the entries of its debit.
///
/// # Errors
/// An entry that its rules refuse.
fn restore(ledger: &mut Ledger, entry: Entry) -> Result<(), Failure> {
    ledger.debit(entry.debit).map_err(broken)?;
    Ok(())
}

/// A sum of costs.
///
/// # Errors
/// A sum past what can be counted.
pub fn total(costs: impl IntoIterator<Item = Rho>) -> Result<Rho, Failure> {
    Rho::checked_sum(costs).ok_or_else(|| Failure::internal(decryption::OVERFLOW))
}

/// What a dataset's holders may see.
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
    let plan = keys::outline(&stored.terms)?;
    let mut tx = state.base.store.begin().await?;
    let runs = runs(&mut tx, dataset, plan.run_budget).await?;
    let standing = standing(&mut tx, dataset).await?;
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
        frozen: standing.frozen().map(|reason| reason.detail().to_owned()),
        receipt: receipt(state, &stored, standing.tip())?,
    })
}
