//! Runs and releases: assigned or judged, appended to the dataset's chain, and only then answered.

use axum::body::Bytes;
use fhaim_api::Digest;
use fhaim_api::keys::{Decrypted, NewRun, Receipt, RunStanding};
use fhaim_api::problem::ProblemKind;
use fhaim_platform::Failure;
use fhaim_platform::housekeeping::Counter;
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_platform::token::{Caller, Peer};
use fhaim_protocol::Error;
use fhaim_protocol::crypto::history::{Begun, ChainState};
use fhaim_protocol::crypto::job_ledger::JobLedger;
use fhaim_protocol::crypto::judge::{Grant, Rules};
use fhaim_protocol::crypto::ruling::Released;
use fhaim_protocol::crypto::{self, Digests, Judged, RequestOutcome};
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::terms::{MAX_GENERATION_BYTES, PlanCore};
use std::sync::Arc;
use uuid::Uuid;

use crate::State;
use crate::audit::Asked;
use crate::keys::{self, StoredKeySet};
use crate::ledger;
use crate::problem::Refusal;
use crate::shares::first;
use crate::store::chain::Answered;
use crate::store::shares;
use crate::witness;

/// Limit on a request: a few hundred ciphertexts, or the messages of all services that make a key.
pub const BODY_LIMIT: usize = MAX_GENERATION_BYTES + (1 << 20);

/// Counters of debits and of refused decryptions by outcome.
pub const COUNTERS: &[Counter] = &[
    ("releases_debited_total", &[]),
    ("decryptions_refused_total", &[("end", "refused")]),
    ("decryptions_refused_total", &[("end", "frozen")]),
    ("decryptions_refused_total", &[("end", "restored")]),
    ("decryptions_refused_total", &[("end", "deleted")]),
];

/// Cause of an overflow in a sum of costs.
pub const OVERFLOW: &str = "the sum of costs overflows";

/// A call for a run or a release of a job, with the receipts that the caller shows.
#[derive(Clone, Debug)]
pub struct DecryptionCall {
    /// The caller.
    pub peer: Peer,
    /// The dataset.
    pub dataset: Uuid,
    /// The job.
    pub job: Uuid,
    /// Receipts of the caller and of those for whom it calls.
    pub receipts: Vec<Receipt>,
}

impl DecryptionCall {
    fn job(&self) -> JobId {
        JobId(self.job.into_bytes())
    }
}

pub(crate) fn rules(dataset: Uuid, plan: &PlanCore) -> Rules {
    Rules::new(DatasetId(dataset.into_bytes()), plan)
}

/// Assigns a run to a job. If it already has one, returns that run and its releases.
///
/// # Errors
/// [`ProblemKind::BudgetSpent`] if no run is left; [`ProblemKind::Conflict`] if the dataset's runs are bound to
/// another upload; [`ProblemKind::Frozen`]; [`ProblemKind::Restored`], also if another key service was set back;
/// [`ProblemKind::NotFound`].
pub async fn begin(
    state: &State,
    call: &DecryptionCall,
    new: &NewRun,
) -> Result<RunStanding, Failure> {
    let stored = keys::find(state, call.dataset).await?;
    stored.must_be_computed_by(call.peer.0)?;
    ledger::check_passed_on(state, &stored, &call.receipts).await?;
    let plan = keys::plan_core(&stored.terms)?;
    let rules = rules(call.dataset, &plan);
    let mut tx = state.base.store.begin().await?;
    let mut chain_state = open(state, &mut tx, call.dataset).await?;
    if chain_state.run(call.job()).is_none() {
        // The other services answer while the dataset's row is not locked.
        tx.commit().await?;
        first::check_others(state, &stored).await?;
        tx = state.base.store.begin().await?;
        chain_state = open(state, &mut tx, call.dataset).await?;
    }
    let (job, begun) = (
        call.job(),
        chain_state.begin(&rules, call.job(), new.upload.0),
    );
    let Begun { run, link } = match begun {
        Err(none @ Error::NoRunLeft(_)) => {
            return Err(spent(&mut tx, &rules, &chain_state, none.to_string())
                .await?
                .into());
        }
        begun => begun.map_err(ledger::failure)?,
    };
    let job_ledger = match link {
        None => ledger::job_ledger(&mut tx, &rules, job, run).await?,
        Some(link) => {
            ledger::append(&mut tx, call.dataset, &link, None).await?;
            let action = format!("begin a run for job {}", call.job);
            asked(call, &action).write(&mut tx, true).await?;
            JobLedger::new(&rules, job, run)
        }
    };
    tx.commit().await?;
    Ok(RunStanding {
        run: job_ledger.window().run(),
        releases: job_ledger
            .window()
            .placed()
            .iter()
            .map(Into::into)
            .collect(),
        receipt: ledger::receipt(state, &stored, chain_state.tip())?,
    })
}

/// Maximum number of jobs that a refusal names when no run is left.
const MAX_NAMED: usize = 4;

/// Returns the refusal when no run is left. It names a job that holds a run and has released nothing, or otherwise the
/// last jobs that got runs, because the caller may have forgotten them.
async fn spent(
    tx: &mut Tx,
    rules: &Rules,
    chain_state: &ChainState,
    reason: String,
) -> Result<Refusal, Failure> {
    for (run, &job) in (0..).zip(chain_state.jobs()) {
        let job_ledger = ledger::job_ledger(tx, rules, job, run).await?;
        if job_ledger.answers().is_empty() {
            let job = Uuid::from_bytes(job.0);
            return Ok(Refusal::Stranded { reason, job });
        }
    }
    let last = chain_state.jobs().iter().rev().take(MAX_NAMED);
    let last: Vec<String> = last
        .map(|job| Uuid::from_bytes(job.0).to_string())
        .collect();
    Ok(Refusal::Spent(format!(
        "{reason}; the last runs belong to {}: if one of these jobs was forgotten before its end, resume it \
         with `fhaim job run DATASET --job ID`, and nothing is paid for twice",
        last.join(" and ")
    )))
}

/// Locks a dataset's row and returns the state of its chain. The keys must exist and the dataset must not be frozen.
pub(crate) async fn open(state: &State, tx: &mut Tx, dataset: Uuid) -> Result<ChainState, Failure> {
    if keys::lock(state, tx, dataset).await?.is_destroyed() {
        return Err(Failure::not_found());
    }
    let chain_state = ledger::chain_state(tx, dataset).await?;
    chain_state.check_open().map_err(ledger::failure)?;
    Ok(chain_state)
}

fn asked<'a>(call: &DecryptionCall, action: &'a str) -> Asked<'a> {
    Asked {
        dataset: call.dataset,
        actor: Caller::Service(call.peer.0),
        action,
    }
}

/// Answers or refuses a request. All refusals that depend on its pages read alike. The reason goes to the log, and the
/// fact of the refusal to the audit log.
///
/// # Errors
/// [`ProblemKind::Refused`]; [`ProblemKind::Frozen`] and [`ProblemKind::Restored`];
/// [`ProblemKind::NotFound`] if the keys are destroyed; faults of the service itself, after
/// which the same request can be repeated.
pub async fn decrypt(
    state: &State,
    call: &DecryptionCall,
    body: Bytes,
) -> Result<Decrypted, Failure> {
    let action = format!("decrypt for job {}", call.job);
    let asked = asked(call, &action);
    let failure = match attempt(state, call, asked, body).await {
        Ok(decrypted) => return Ok(decrypted),
        Err(failure) => failure,
    };
    match failure.kind() {
        ProblemKind::Internal | ProblemKind::Damaged | ProblemKind::Unavailable => Err(failure),
        kind => {
            let (dataset, job) = (call.dataset, call.job);
            tracing::warn!(%dataset, %job, %failure, "a decryption was refused");
            let end = match kind {
                ProblemKind::Frozen => "frozen",
                ProblemKind::Restored => "restored",
                ProblemKind::NotFound => "deleted",
                _ => "refused",
            };
            metrics::counter!("decryptions_refused_total", "end" => end).increment(1);
            asked.refused(state).await?;
            Err(match kind {
                ProblemKind::Frozen | ProblemKind::Restored | ProblemKind::NotFound => failure,
                _ => Failure::refused(),
            })
        }
    }
}

async fn attempt(
    state: &State,
    call: &DecryptionCall,
    asked: Asked<'_>,
    body: Bytes,
) -> Result<Decrypted, Failure> {
    let stored = keys::find(state, call.dataset).await?;
    ledger::check_passed_on(state, &stored, &call.receipts).await?;
    let plan = keys::plan_core(&stored.terms)?;
    let rules = rules(call.dataset, &plan);
    let mut tx = state.base.store.begin().await?;
    let (chain_state, before) = job_ledger(state, &mut tx, call, &rules).await?;
    tx.commit().await?;
    // Judges and decrypts while the dataset's row is not locked, so that long work does not block others.
    let sent = Arc::new(read(&plan, body).await?);
    let digests = witness::digests(state, call, &sent).await?;
    let judged = judge(rules.clone(), before.clone(), sent.clone(), digests);
    let ruling = match judged.await? {
        Judged::Done(RequestOutcome::Repeated(answers)) => {
            let receipt = ledger::receipt(state, &stored, chain_state.tip())?;
            return Ok(Decrypted { answers, receipt });
        }
        Judged::Done(RequestOutcome::Ruled(ruling)) => *ruling,
        Judged::Granted(grant) => {
            let shared = match stored.terms.key_services.is_empty() {
                true => None,
                false => {
                    Some(first::ask(state, call, &stored, &plan, &rules, &before, &sent).await?)
                }
            };
            let debited = debit(state, call, &rules, before, &grant, &sent).await?;
            let answers = match shared {
                Some(shared) => {
                    first::open(state, call, &stored, &plan, shared, sent.clone()).await?
                }
                None => open_with_key(state, &stored, &plan, sent.clone()).await?,
            };
            crypto::rule(&debited, *grant, answers)
        }
    };
    let mut tx = state.base.store.begin().await?;
    let (mut chain_state, now) = job_ledger(state, &mut tx, call, &rules).await?;
    let link = ruling.append_to(&mut chain_state, &now);
    let link = link.map_err(ledger::failure)?;
    let answered = ruling.answers().map(|answers| Answered {
        requests: &sent.request.releases,
        answers,
    });
    ledger::append(&mut tx, call.dataset, &link, answered).await?;
    asked.write(&mut tx, ruling.answers().is_some()).await?;
    shares::forget_promise(&mut tx, call.dataset, call.job).await?;
    tx.commit().await?;
    let act = ruling.act().clone();
    let Ok(Released { answers, .. }) = ruling.into_released() else {
        tracing::error!(dataset = %call.dataset, ?act, "the dataset is frozen");
        return Err(Failure::refused());
    };
    let receipt = ledger::receipt(state, &stored, link.tip)?;
    Ok(Decrypted { answers, receipt })
}

/// Debits a granted batch before anything of it is decrypted, and returns the ledger with the debit. If the service stops
/// after the debit, a repetition of the request completes the release.
async fn debit(
    state: &State,
    call: &DecryptionCall,
    rules: &Rules,
    judged: JobLedger,
    grant: &Grant,
    sent: &Sent,
) -> Result<JobLedger, Failure> {
    let mut tx = state.base.store.begin().await?;
    let (mut chain_state, mut now) = job_ledger(state, &mut tx, call, rules).await?;
    if now != judged {
        return Err(ledger::failure(Error::Overtaken));
    }
    let link = now.debit(&mut chain_state, grant, sent.digest.0);
    if let Some(link) = link.map_err(ledger::failure)? {
        ledger::append(&mut tx, call.dataset, &link, None).await?;
        tx.commit().await?;
        let debited = grant.entries().len();
        metrics::counter!("releases_debited_total").increment(debited as u64);
    }
    Ok(now)
}

/// Locks the dataset's row and returns the state of its chain with the job's ledger.
pub(crate) async fn job_ledger(
    state: &State,
    tx: &mut Tx,
    call: &DecryptionCall,
    rules: &Rules,
) -> Result<(ChainState, JobLedger), Failure> {
    let chain_state = open(state, tx, call.dataset).await?;
    let no_run = || Failure::refused().because("the job has no run");
    let run = chain_state.run(call.job()).ok_or_else(no_run)?;
    let job_ledger = ledger::job_ledger(tx, rules, call.job(), run).await?;
    Ok((chain_state, job_ledger))
}

/// A received request.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) request: DecryptRequest,
    /// The request's bytes, which are shown to other key services.
    pub(crate) bytes: Bytes,
    /// Digest of the bytes.
    pub(crate) digest: Digest,
}

/// Decodes a request on a blocking thread.
pub(crate) async fn read(plan: &PlanCore, body: Bytes) -> Result<Sent, Failure> {
    let params = plan.parameters().map_err(Failure::internal)?;
    let reading = move || {
        Ok::<_, Error>(Sent {
            request: DecryptRequest::from_bytes(&params, &body)?,
            digest: Digest::of(&body),
            bytes: body,
        })
    };
    let read = blocking(reading).await?;
    read.map_err(|error| Failure::refused().because(error))
}

/// Judges a request on a blocking thread.
async fn judge(
    rules: Rules,
    job_ledger: JobLedger,
    sent: Arc<Sent>,
    digests: Digests,
) -> Result<Judged, Failure> {
    let judging = move || crypto::judge(&rules, &job_ledger, &sent.request, digests);
    blocking(judging).await?.map_err(refused)
}

/// Decrypts a debited batch on a blocking thread. Returns `None` if a page cannot be decrypted.
async fn open_with_key(
    state: &State,
    stored: &StoredKeySet,
    plan: &PlanCore,
    sent: Arc<Sent>,
) -> Result<Option<Vec<Vec<i64>>>, Failure> {
    let params = plan.parameters().map_err(Failure::internal)?;
    let secret = stored.secret(state, &params)?;
    blocking(move || crypto::open(&secret, &sent.request)).await
}

/// Converts a refusal of the protocol. The reason goes only to the log.
pub(crate) fn refused(error: Error) -> Failure {
    match error {
        // The report of the second computation service will arrive: the caller tries again.
        Error::Unwitnessed => ledger::failure(error),
        error => Failure::refused().because(error),
    }
}
