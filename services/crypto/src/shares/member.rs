//! The part of the other key services: they make keys and share releases for the first service.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::keys::{
    Confirmation, DebitedRelease, DebitedReleases, NewShare, UploadKeySeeds, UploadSeedCall,
    read_attempt,
};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_dp::generator;
use fhaim_he::key_sharing::KeyShare;
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_platform::token::Caller;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::Error;
use fhaim_protocol::committee::call::{self, CommitteeAnswer, CommitteeCall};
use fhaim_protocol::committee::keygen::KeyGeneration;
use fhaim_protocol::committee::member::{Assignment, CommitteeMember, Promised};
use fhaim_protocol::committee::state::{RunRecord, SharedDatasetState};
use fhaim_protocol::crypto::chain::{Act, Freeze, ReceiptKey};
use fhaim_protocol::crypto::history::{ChainLink, ChainState};
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::terms::Terms;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

use crate::audit::Asked;
use crate::decryption::{self, Sent};
use crate::keys::{self, StoredKeySet};
use crate::problem::Refusal;
use crate::store::shares::{self as store, SharedKey};
use crate::store::{chain, keys as key_sets};
use crate::{State, ledger, limits, shares, upload_keys};

/// Maximum number of key generations in memory, each of tens of megabytes. A new one replaces the oldest.
const ATTEMPTS_AT_ONCE: usize = 4;

/// Key generations in memory by dataset, the newest last.
#[derive(Debug, Default)]
pub struct Attempts(Mutex<Vec<(Uuid, Attempt)>>);

/// A key generation in progress.
#[derive(Debug)]
struct Attempt {
    new: NewShare,
    generation: KeyGeneration,
    /// Whether the share and digests of the keys are stored.
    kept: bool,
    /// Digest of the last messages with the answer, so that a lost answer can be requested again.
    last: Option<([u8; 32], Vec<u8>)>,
}

impl Attempts {
    fn put(&self, dataset: Uuid, attempt: Attempt) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(other, _)| *other != dataset);
        if all.len() >= ATTEMPTS_AT_ONCE {
            all.remove(0);
        }
        all.push((dataset, attempt));
    }

    fn take(&self, dataset: Uuid) -> Option<Attempt> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|(other, _)| *other == dataset)?;
        Some(all.remove(at).1)
    }
}

/// Begins an attempt to make a key with a new share, and discards an earlier attempt.
///
/// # Errors
/// [`Refusal::Terms`] for terms without a plan, or with services with which this one does not share keys;
/// [`ProblemKind::Conflict`] if the key is already made and confirmed; [`ProblemKind::Quota`].
pub async fn begin(state: &State, dataset: Uuid, new: NewShare) -> Result<(), Failure> {
    let terms = &new.terms.0;
    let number = Service::KEYSHARES.iter().position(|s| *s == state.service);
    let number = 1 + number.ok_or_else(Failure::forbidden)?;
    let checked = state.sharing.check(number, &terms.key_services);
    checked.map_err(|reason| Refusal::Terms(format!("key_services: {reason}")))?;
    let mut tx = state.base.store.begin().await?;
    must_not_be_made(state, &mut tx, dataset).await?;
    limits::check(state, &mut tx, new.owner, limits::counted_as(terms)?).await?;
    drop(tx); // both are checked again when the share is stored
    let attempt = read_attempt(&new.attempt).map_err(|reason| Refusal::Terms(reason.to_owned()))?;
    let committee = shares::committee(dataset, &digest_of(terms)?, &terms.key_services, &attempt)?;
    let params = keys::plan_core(terms)?.parameters();
    let params = params.map_err(|error| Refusal::Terms(error.to_string()))?;
    let key = state.sharing.key()?.clone();
    let shape = terms.roster_shape();
    let making = move || {
        let share = KeyShare::random(&params, &mut generator()?)?;
        KeyGeneration::new(committee, shape, share, key)
    };
    let generation = state.making.blocking(new.owner, making).await?;
    let attempt = Attempt {
        new,
        generation: generation.map_err(Failure::internal)?,
        kept: false,
        last: None,
    };
    state.sharing.attempts.put(dataset, attempt);
    Ok(())
}

/// Returns the digest of terms as they are stored.
fn digest_of(terms: &Terms) -> Result<[u8; 32], Failure> {
    Ok(Digest::of(&serde_json::to_vec(terms)?).0)
}

/// Checks that no other service may already use a key of the dataset.
async fn must_not_be_made(state: &State, tx: &mut Tx, dataset: Uuid) -> Result<(), Failure> {
    let Some(stored) = key_sets::lock(&state.base.store, tx, dataset).await? else {
        return Ok(());
    };
    if stored.is_destroyed() {
        return Err(Failure::not_found());
    }
    match store::find(tx, dataset).await? {
        Some(SharedKey {
            confirmation: None, ..
        }) => Ok(()),
        _ => Err(Refusal::OtherTerms.into()),
    }
}

/// Returns this service's seed of a holder's upload key, encrypted for the holder. Requires that all services have
/// confirmed the keys: a service that knew the seed before could make keys that reveal those of others.
///
/// # Errors
/// [`ProblemKind::NotFound`] for a holder that is not in the roster; [`Refusal::Signature`] for a request that is not
/// signed with the holder's key.
pub async fn upload_seed(
    state: &State,
    dataset: Uuid,
    call: &UploadSeedCall,
) -> Result<UploadKeySeeds, Failure> {
    let stored = keys::find(state, dataset).await?;
    let request = upload_keys::signed(&stored, call.holder, &call.request)?;
    confirm(state, &stored, &call.confirmation).await?;
    let params = keys::plan_core(&stored.terms)?.parameters();
    let params = params.map_err(Failure::internal)?;
    let own_member = shares::own_member(state, &stored, &params, &call.confirmation)?;
    let action = format!("fetch the upload key of holder {}", call.holder + 1);
    upload_keys::record(state, &asked(dataset, &action)).await?;
    let sealed = shares::upload_seed(&own_member, &request)?;
    Ok(UploadKeySeeds {
        seeds: vec![URL_SAFE_NO_PAD.encode(sealed)],
    })
}

/// Takes messages of a key generation and returns this service's next one.
///
/// # Errors
/// [`ProblemKind::NotFound`] if there is no attempt, in which case the caller begins another.
pub async fn step(state: &State, dataset: Uuid, body: Bytes) -> Result<Vec<u8>, Failure> {
    let attempt = state.sharing.attempts.take(dataset);
    let mut attempt = attempt.ok_or_else(Failure::not_found)?;
    let digest = Digest::of(&body).0;
    if let Some((last, answer)) = &attempt.last
        && *last == digest
    {
        let answer = answer.clone();
        state.sharing.attempts.put(dataset, attempt);
        return Ok(answer);
    }
    let working = move || {
        let answer = advance(&mut attempt.generation, &body)?;
        Ok::<_, Error>((attempt, answer))
    };
    let worked = blocking(working).await?;
    let (mut attempt, answer) = worked.map_err(|error| Failure::refused().because(error))?;
    if !attempt.kept && attempt.generation.made().is_some() {
        keep(state, dataset, &attempt).await?;
        attempt.kept = true;
    }
    attempt.last = Some((digest, answer.clone()));
    state.sharing.attempts.put(dataset, attempt);
    Ok(answer)
}

/// Takes messages and makes the next one.
fn advance(generation: &mut KeyGeneration, body: &[u8]) -> Result<Vec<u8>, Error> {
    for message in call::read_messages(body)? {
        generation.take(&message)?;
    }
    let own = generation.message()?.ok_or(Error::Early)?;
    generation.take(&own)?;
    Ok(call::messages(&[own]))
}

/// Stores the share of a new key before this service confirms it.
async fn keep(state: &State, dataset: Uuid, attempt: &Attempt) -> Result<(), Failure> {
    let Attempt {
        new, generation, ..
    } = attempt;
    let absent = || Failure::internal("no key was made");
    let (share, public, evaluation) = generation.made().ok_or_else(absent)?;
    let mut rng = generator().map_err(Failure::internal)?;
    let receipt_key = ReceiptKey::random(&mut rng);
    let public = public.to_bytes().map_err(Failure::internal)?;
    let stored = StoredKeySet {
        dataset,
        owner: new.owner,
        terms: new.terms.0.clone(),
        folder: format!("keys/{dataset}"),
        secret: Some(keys::seal_secret(state, dataset, &share.to_bytes())?),
        public_key: Digest::of(&public),
        evaluation_keys: Digest::of(&evaluation.to_bytes()),
        receipt_key: keys::seal_receipt_key(state, dataset, &receipt_key)?,
        created_at: clock::now(),
        counted_as: limits::counted_as(&new.terms.0)?,
    };
    let mut tx = state.base.store.begin().await?;
    must_not_be_made(state, &mut tx, dataset).await?;
    store::forget_attempt(&mut tx, dataset).await?;
    limits::check(state, &mut tx, new.owner, stored.counted_as).await?;
    if !key_sets::insert(&mut tx, &stored).await? {
        return Err(Failure::overtaken("another attempt was stored meanwhile"));
    }
    let shared = SharedKey {
        attempt: new.attempt.clone(),
        confirmation: None,
    };
    store::insert(&mut tx, dataset, &shared).await?;
    asked(dataset, "make a share of the key")
        .write(&mut tx, true)
        .await?;
    Ok(tx.commit().await?)
}

fn asked(dataset: Uuid, action: &str) -> Asked<'_> {
    Asked {
        dataset,
        actor: Caller::Service(Service::Crypto),
        action,
    }
}

/// A received batch.
struct Batch {
    stored: StoredKeySet,
    rules: Rules,
    job: Uuid,
    own_member: Arc<CommitteeMember>,
    assignment: Assignment,
    /// The promises of the other services, and the one that this service would make.
    promised: Vec<Promised>,
    consents: Vec<Act>,
    sent: Sent,
    witness: Option<[u8; 32]>,
}

/// Judges a batch and promises it. Once all services have promised it, debits it and returns a share.
///
/// # Errors
/// [`ProblemKind::Refused`] for all reasons that depend on the pages, which go only to the log;
/// [`ProblemKind::Conflict`] for a run that the ledger excludes; [`ProblemKind::Unavailable`] until a second
/// computation service has reported the batch; frozen; destroyed.
pub async fn share(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    body: Bytes,
) -> Result<Vec<u8>, Failure> {
    let action = format!("share a decryption for job {job}");
    match attempt(state, dataset, job, body).await {
        Ok(answer) => Ok(answer.to_bytes()),
        Err(failure) => {
            if !matches!(
                failure.kind(),
                ProblemKind::Internal | ProblemKind::Damaged | ProblemKind::Unavailable
            ) {
                tracing::warn!(%dataset, %job, %failure, "a share was refused");
                asked(dataset, &action).refused(state).await?;
            }
            Err(failure)
        }
    }
}

async fn attempt(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    body: Bytes,
) -> Result<CommitteeAnswer, Failure> {
    let batch = read(state, dataset, job, &body).await?;
    let by_all = promise(state, &batch).await?;
    let digest = batch.sent.digest.0;
    let verdict = batch.own_member.verdict(batch.assignment.job, &digest);
    if !by_all {
        let share = None;
        return Ok(CommitteeAnswer { verdict, share });
    }
    let batch = Arc::new(batch);
    let working = batch.clone();
    let share = blocking(move || working.own_member.share(&working.sent.request)).await?;
    let share = Some(share.map_err(refused)?);
    debit(state, &batch).await?;
    Ok(CommitteeAnswer { verdict, share })
}

/// Converts a refusal of the protocol. The reason goes only to the log.
fn refused(error: Error) -> Failure {
    match error {
        Error::Unwitnessed
        | Error::Frozen(_)
        | Error::FrozenForGood(_)
        | Error::OtherUpload
        | Error::Overtaken => ledger::failure(error),
        // If two jobs begin at the same time, the request of the second may arrive first.
        Error::Early => {
            let reason = "an earlier run of the dataset has not begun here yet; try again";
            Failure::not_yet(reason.to_owned()).because(error)
        }
        error => Failure::refused().because(error),
    }
}

/// Converts a refusal of the first service's assignment of a run. Assignments contain no ciphertext, so that their
/// reasons are public.
fn unassigned(error: Error) -> Failure {
    match error {
        Error::Committee(_) => Failure::from(Refusal::OtherRun).because(error),
        error => refused(error),
    }
}

/// Reads a call and checks all signatures.
async fn read(state: &State, dataset: Uuid, job: Uuid, body: &[u8]) -> Result<Batch, Failure> {
    let CommitteeCall {
        consents,
        attempt,
        confirmations,
        assignment,
        verdicts,
        request,
    } = CommitteeCall::from_bytes(body).map_err(refused)?;
    let stored = keys::find(state, dataset).await?;
    let plan = keys::plan_core(&stored.terms)?;
    let confirmation = Confirmation::new(&attempt, &confirmations);
    confirm(state, &stored, &confirmation).await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let own_member = shares::own_member(state, &stored, &params, &confirmation)?;
    let sent = decryption::read(&plan, request.into()).await?;
    let assignment = own_member.read_assignment(&assignment).map_err(refused)?;
    if assignment.job.0 != job.into_bytes() || sent.request.job != assignment.job {
        return Err(Failure::refused().because("the assignment is for another job"));
    }
    let read = verdicts
        .iter()
        .map(|verdict| own_member.read_verdict(verdict));
    let mut promised = read.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    promised.push(Promised {
        service: own_member.number(),
        job: assignment.job,
        request: sent.digest.0,
    });
    let witness = crate::witness::word(state, (dataset, job), &sent).await?;
    Ok(Batch {
        rules: decryption::rules(dataset, &plan),
        stored,
        job,
        own_member: Arc::new(own_member),
        assignment,
        promised,
        consents,
        sent,
        witness,
    })
}

/// Stores the confirmations of all services for the key, if they are new. No other key can be made from then on.
async fn confirm(
    state: &State,
    stored: &StoredKeySet,
    confirmation: &Confirmation,
) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let locked = keys::lock(state, &mut tx, stored.dataset).await?;
    if locked.is_destroyed() {
        return Err(Failure::not_found());
    }
    let shared = store::find(&mut tx, stored.dataset).await?;
    let shared = shared.ok_or_else(|| Failure::internal("the key is not a shared key"))?;
    match shared.confirmation {
        Some(known) if known == *confirmation => return Ok(()),
        Some(_) => return Err(Failure::refused().because("another key was confirmed")),
        None if shared.attempt != confirmation.attempt => {
            return Err(Failure::refused().because("the confirmation is for another attempt"));
        }
        None => {}
    }
    shares::confirmed(stored, confirmation)
        .map_err(|failure| Failure::refused().because(failure))?;
    store::confirm(&mut tx, stored.dataset, confirmation).await?;
    let made = ChainState::new(DatasetId(stored.dataset.into_bytes())).append(stored.made()?);
    append(
        &mut tx,
        stored.dataset,
        Some(&made.map_err(ledger::failure)?),
    )
    .await?;
    Ok(tx.commit().await?)
}

async fn append(tx: &mut Tx, dataset: Uuid, link: Option<&ChainLink>) -> Result<(), Failure> {
    match link {
        Some(link) => ledger::append(tx, dataset, link, None).await,
        None => Ok(()),
    }
}

/// Locks the dataset's row and returns the stored state of the dataset and the job.
async fn record(state: &State, tx: &mut Tx, batch: &Batch) -> Result<SharedDatasetState, Failure> {
    let dataset = batch.stored.dataset;
    let mut chain_state = decryption::open(state, tx, dataset).await?;
    for consent in &batch.consents {
        let link = match consent {
            Act::Signed { member, signature } => {
                chain_state.sign(&batch.rules, *member, *signature)
            }
            Act::Withdrawn { member } => chain_state.withdraw(&batch.rules, *member),
            _ => Err(Error::Request("an act that is not a holder's")),
        };
        append(tx, dataset, link.map_err(refused)?.as_ref()).await?;
    }
    let job = batch.assignment.job;
    let has_run = chain_state.run(job).is_some();
    let services = batch.own_member.committee().services().len();
    let mut record = SharedDatasetState::read(batch.rules.clone(), services, chain_state);
    if has_run {
        let released = chain::releases_of_job(tx, dataset, batch.job).await?;
        let promised = store::promised(tx, dataset, batch.job).await?;
        let run_record = RunRecord::read(&record, job, released, promised.map(|digest| digest.0));
        record.restore(run_record.map_err(ledger::failure)?);
    }
    Ok(record)
}

/// Follows the first service's assignment, judges the batch and promises it. Returns whether all services have promised
/// it.
async fn promise(state: &State, batch: &Batch) -> Result<bool, Failure> {
    let (dataset, digest) = (batch.stored.dataset, batch.sent.digest);
    let mut tx = state.base.store.begin().await?;
    let mut record = record(state, &mut tx, batch).await?;
    let begun = record.follow(&batch.assignment).map_err(unassigned)?;
    append(&mut tx, dataset, begun.link.as_ref()).await?;
    let job = batch.assignment.job;
    let before = record.run_record(job).and_then(RunRecord::promised);
    match record.judge(&batch.sent.request, &digest.0, batch.witness) {
        Err(Error::Frozen(reason @ Freeze::Witness)) => {
            drop(tx);
            return Err(ledger::freeze(state, dataset, reason).await);
        }
        judged => judged.map_err(refused)?,
    }
    for promised in &batch.promised {
        record.hear(promised).map_err(refused)?;
    }
    let after = record.run_record(job).and_then(RunRecord::promised);
    if let (None, Some(request)) = (before, after) {
        store::promise(&mut tx, dataset, batch.job, Digest(request)).await?;
    }
    tx.commit().await?;
    match record.check_promised(job, &digest.0) {
        Ok(()) => Ok(true),
        Err(Error::Early) => Ok(false),
        Err(error) => Err(refused(error)),
    }
}

/// Debits a batch that all services have promised.
async fn debit(state: &State, batch: &Batch) -> Result<(), Failure> {
    let dataset = batch.stored.dataset;
    let mut tx = state.base.store.begin().await?;
    let mut record = record(state, &mut tx, batch).await?;
    for promised in &batch.promised {
        record.hear(promised).map_err(refused)?;
    }
    let link = record.debit(&batch.sent.request, &batch.sent.digest.0);
    let Some(link) = link.map_err(refused)? else {
        return Ok(()); // a repetition
    };
    append(&mut tx, dataset, Some(&link)).await?;
    store::forget_promise(&mut tx, dataset, batch.job).await?;
    let action = format!("share a decryption for job {}", batch.job);
    asked(dataset, &action).write(&mut tx, true).await?;
    tx.commit().await?;
    let debited = batch.sent.request.releases.len();
    metrics::counter!("releases_debited_total").increment(debited as u64);
    Ok(())
}

/// Returns the signed list of this service's debits of a dataset. Holders compare it with the first service's.
///
/// # Errors
/// [`ProblemKind::NotFound`]; a failure of the store.
pub async fn debited(state: &State, dataset: Uuid) -> Result<DebitedReleases, Failure> {
    keys::find(state, dataset).await?;
    let mut tx = state.base.store.begin().await?;
    let acts = chain::debits(&mut tx, dataset).await?;
    tx.commit().await?;
    let mut releases = Vec::new();
    for act in acts {
        let Act::Released { job, entries, .. } = act else {
            return Err(Failure::damaged("a stored release is malformed"));
        };
        releases.extend(entries.into_iter().map(|entry| DebitedRelease {
            job: Uuid::from_bytes(job.0),
            number: entry.debit.number,
            statement: Digest(entry.debit.digest),
        }));
    }
    Ok(DebitedReleases::sign(
        dataset,
        releases,
        state.sharing.key()?,
    ))
}

/// Freezes a dataset after the first service was shown a page that cannot be decrypted.
///
/// # Errors
/// [`ProblemKind::NotFound`]; a failure of the store.
pub async fn freeze(state: &State, dataset: Uuid) -> Result<(), Failure> {
    let failure = ledger::freeze(state, dataset, Freeze::Noise).await;
    match failure.kind() {
        ProblemKind::Frozen => Ok(()),
        _ => Err(failure),
    }
}

/// Destroys a share. The ledger and audit log remain. Without an owner, a share that does not exist counts as destroyed.
///
/// # Errors
/// [`ProblemKind::NotFound`] for a share that does not exist or has another owner, if the owner is given; a failure of
/// the store.
pub async fn destroy(state: &State, dataset: Uuid, owner: Option<Uuid>) -> Result<(), Failure> {
    state.sharing.attempts.take(dataset);
    let actor = owner.map_or(Caller::Service(Service::Crypto), Caller::User);
    match keys::forget(state, dataset, actor).await {
        Err(failure) if failure.kind() == ProblemKind::NotFound && owner.is_none() => Ok(()),
        destroyed => destroyed,
    }
}
