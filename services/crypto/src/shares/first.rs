//! The part of the first service that shares a key: it has the others make the key and share releases.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::dataset::WireTerms;
use fhaim_api::keys::{
    Confirmation, DebitedByServices, DebitedRelease, DebitedReleases, KeyServiceDocument,
    KeyServices, NewShare, UploadKeyRequest, UploadKeySeeds, UploadSeedCall,
};
use fhaim_api::problem::{Problem, ProblemKind};
use fhaim_api::token::Service;
use fhaim_dp::generator;
use fhaim_he::key_sharing::KeyShare;
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerClient, PeerError};
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_protocol::Error;
use fhaim_protocol::committee::KeyService;
use fhaim_protocol::committee::call::{self, CommitteeAnswer};
use fhaim_protocol::committee::decryption::{Opened, ShareReader};
use fhaim_protocol::committee::keygen::KeyGeneration;
use fhaim_protocol::committee::member::{Assignment, CommitteeMember};
use fhaim_protocol::crypto::chain::{Act, ReceiptKey};
use fhaim_protocol::crypto::job_ledger::JobLedger;
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::terms::{Plan, PlanCore, Terms};
use fhaim_protocol::upload_key::SeedRequest;
use reqwest::Method;
use std::collections::HashSet;
use std::sync::Arc;
use uuid::Uuid;

use crate::State;
use crate::decryption::{self, DecryptionCall, Sent};
use crate::keys::{self, Fresh, StoredKeySet};
use crate::problem::Refusal;
use crate::shares;
use crate::store::chain;
use crate::store::shares as store;

/// Number of attempts of a call for which a holder waits. The holder gets the error and tries again itself.
const TRIES_OF_WHO_WAITS: u32 = 2;

/// Another service that shares a key, with its name in the terms.
struct Member<'a> {
    name: &'a str,
    client: &'a PeerClient,
}

impl Member<'_> {
    /// Converts an error of a call. A refusal stays a refusal here, with the service's name for the log, or for the
    /// caller if the service's ledger is the reason. Other errors are temporary.
    fn failure(&self, error: &PeerError) -> Failure {
        let cause = format!("key service {}: {error}", self.name);
        match error.refusal() {
            Some(problem) if problem.kind == ProblemKind::Frozen => {
                Failure::passed_on(Box::new(problem.clone())).because(cause)
            }
            // A state of the dataset, which depends on no ciphertext.
            Some(Problem {
                kind: ProblemKind::Conflict,
                detail: Some(detail),
                ..
            }) => Refusal::OtherLedger(self.name.to_owned(), detail.clone()).into(),
            Some(_) => Failure::refused().because(cause),
            None => Failure::not_yet(format!(
                "key service {} does not answer or is not ready yet; nothing is decrypted without it",
                self.name
            ))
            .because(cause),
        }
    }

    /// Like [`Self::failure`], for a call with a batch. Names the service if it was set back.
    async fn batch_failure(&self, state: &State, dataset: Uuid, error: &PeerError) -> Failure {
        let failure = self.failure(error);
        if matches!(failure.kind(), ProblemKind::Frozen | ProblemKind::Restored) {
            return failure;
        }
        match self.known_loss(state, dataset).await {
            Some(refusal) => Failure::from(refusal).because(error),
            None => failure,
        }
    }

    /// Like [`Self::loss`]. A service that does not answer is not refused.
    async fn known_loss(&self, state: &State, dataset: Uuid) -> Option<Refusal> {
        self.loss(state, dataset).await.unwrap_or_else(|unknown| {
            tracing::warn!(%dataset, service = self.name, %unknown, "a ledger was not compared");
            None
        })
    }

    /// Compares the service's ledger with that of this service, which debits a batch after all others have. Returns the
    /// refusal if the service was set back.
    async fn loss(&self, state: &State, dataset: Uuid) -> Result<Option<Refusal>, Failure> {
        let path = format!("/v1/shares/{dataset}/debited");
        let client = self.client.with_tries(TRIES_OF_WHO_WAITS);
        let listed = client.json(Method::GET, &path, Body::Empty).await;
        let listed: DebitedReleases = match listed {
            Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
                return Ok(Some(Refusal::NoSeed(self.name.to_owned())));
            }
            listed => listed?,
        };
        let named = |release: &DebitedRelease| (release.job, release.number);
        let known: HashSet<(Uuid, u32)> = listed.releases.iter().map(named).collect();
        let mut tx = state.base.store.begin().await?;
        let own = chain::debits(&mut tx, dataset).await?;
        tx.commit().await?;
        let is_unknown = |act: &Act| match act {
            Act::Debited { job, entries, .. } | Act::Released { job, entries, .. } => entries
                .iter()
                .any(|entry| !known.contains(&(Uuid::from_bytes(job.0), entry.debit.number))),
            _ => false,
        };
        let is_set_back = own.iter().any(is_unknown);
        Ok(is_set_back.then(|| Refusal::OtherSetBack(self.name.to_owned())))
    }

    /// Like [`Self::failure`], for a holder that fetches its upload key.
    fn no_seed(&self, error: &PeerError) -> Failure {
        match error.refusal() {
            Some(problem) if problem.kind == ProblemKind::Quota => {
                Failure::passed_on(Box::new(problem.clone())).because(error)
            }
            // The service has no keys of the dataset, or other keys than the holder signed for.
            Some(problem)
                if matches!(
                    problem.kind,
                    ProblemKind::NotFound | ProblemKind::Invalid | ProblemKind::Refused
                ) =>
            {
                Failure::from(Refusal::NoSeed(self.name.to_owned())).because(error)
            }
            _ => self.failure(error),
        }
    }

    /// Like [`Self::failure`], for making a key. The refusal includes the reason.
    fn refusal(&self, error: &PeerError) -> Failure {
        let problem = error.refusal().filter(|p| p.kind == ProblemKind::Invalid);
        match problem.and_then(|problem| problem.detail.clone()) {
            Some(detail) => Refusal::Terms(format!("key service {}: {detail}", self.name)).into(),
            None => Failure::unavailable(format!(
                "key service {} cannot make a key at the moment; try again",
                self.name
            ))
            .because(error),
        }
    }
}

/// Lists the services that can share a key, this one first.
///
/// # Errors
/// [`ProblemKind::Unavailable`] if one does not answer.
pub async fn services(state: &State) -> Result<KeyServices, Failure> {
    let mut services = vec![KeyServiceDocument::from(state.sharing.me()?)];
    for (service, client) in &state.sharing.peers {
        let client = client.with_tries(TRIES_OF_WHO_WAITS);
        let asked = client
            .json(Method::GET, "/v1/key-service", Body::Empty)
            .await;
        services.push(asked.map_err(|error: PeerError| {
            Failure::unavailable(format!("the {service} service does not answer; try again"))
                .because(error)
        })?);
    }
    Ok(KeyServices { services })
}

/// Checks that no other key service of a dataset was set back, after which no job can release anything. A service that
/// does not answer is compared later, with the first batch.
///
/// # Errors
/// [`Refusal::OtherSetBack`]; [`Refusal::NoSeed`].
pub(crate) async fn check_others(state: &State, stored: &StoredKeySet) -> Result<(), Failure> {
    for member in members(state, &stored.terms.key_services)? {
        if let Some(refusal) = member.known_loss(state, stored.dataset).await {
            return Err(refusal.into());
        }
    }
    Ok(())
}

/// Lists the debits of the other services of a dataset, signed by each.
///
/// # Errors
/// [`ProblemKind::Unavailable`] if one does not answer.
pub(crate) async fn debited(
    state: &State,
    stored: &StoredKeySet,
) -> Result<DebitedByServices, Failure> {
    let path = format!("/v1/shares/{}/debited", stored.dataset);
    let mut services = Vec::new();
    for member in members(state, &stored.terms.key_services)? {
        let client = member.client.with_tries(TRIES_OF_WHO_WAITS);
        let asked = client.json(Method::GET, &path, Body::Empty).await;
        let debited: DebitedReleases = asked.map_err(|error: PeerError| {
            Failure::unavailable(format!(
                "key service {} does not report its debits; try again",
                member.name
            ))
            .because(error)
        })?;
        services.push(debited);
    }
    Ok(DebitedByServices { services })
}

/// Returns the other services of a dataset.
fn members<'a>(state: &'a State, services: &'a [KeyService]) -> Result<Vec<Member<'a>>, Failure> {
    let others = services.get(1..).unwrap_or_default();
    if others.len() > state.sharing.peers.len() {
        return Err(Failure::internal("peers: a key service is missing"));
    }
    let with = others.iter().zip(&state.sharing.peers);
    Ok(with
        .map(|(service, (_, client))| Member {
            name: &service.name,
            client,
        })
        .collect())
}

/// Makes a key together with the services that the terms name.
///
/// # Errors
/// [`Refusal::Terms`] if the services of the terms are not those of this one; [`ProblemKind::Unavailable`] if one does
/// not answer, in which case the caller can make another attempt.
pub(crate) async fn make(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    terms: &Terms,
    plan: &Plan,
) -> Result<Fresh, Failure> {
    let services = &terms.key_services;
    check(state, services).await?;
    let members = members(state, services)?;
    let attempt = Uuid::new_v4().into_bytes();
    let digest = Digest::of(&serde_json::to_vec(terms)?).0;
    let committee = shares::committee(dataset, &digest, services, &attempt)?;
    let new = serde_json::to_vec(&NewShare {
        owner,
        terms: WireTerms(terms.clone()),
        attempt: Confirmation::new(&attempt, &[]).attempt,
    })?;
    let path = format!("/v1/shares/{dataset}");
    for member in &members {
        let begun = member
            .client
            .bytes(Method::PUT, &path, Body::Json(new.clone()));
        begun.await.map_err(|error| member.refusal(&error))?;
    }
    let params = plan.parameters().map_err(Failure::internal)?;
    let key = state.sharing.key()?.clone();
    let shape = terms.roster_shape();
    let beginning = move || {
        let share = KeyShare::random(&params, &mut generator()?)?;
        KeyGeneration::new(committee, shape, share, key)
    };
    let generation = state.making.blocking(owner, beginning).await?;
    let generation = generation.map_err(Failure::internal)?;
    let (generation, messages) = exchange(state, (dataset, owner), &members, generation).await?;
    let finishing = move || {
        let made = generation.finish()?;
        Ok::<_, Error>(Fresh {
            secret: made.member().key_share().to_bytes(),
            receipt_key: ReceiptKey::random(&mut generator()?),
            public_key: made.public_key().to_bytes()?,
            evaluation_keys: made.evaluation_keys().to_bytes(),
            shared: Some(Confirmation::new(&attempt, &messages)),
        })
    };
    blocking(finishing).await?.map_err(Failure::internal)
}

/// Returns the seeds of a holder's upload key from all services, encrypted for the holder.
///
/// # Errors
/// [`ProblemKind::Unavailable`] while another service does not answer; a seed that cannot be encrypted.
pub(crate) async fn upload_seeds(
    state: &State,
    stored: &StoredKeySet,
    request: SeedRequest,
    asked: &UploadKeyRequest,
) -> Result<Vec<Vec<u8>>, Failure> {
    let params = keys::plan_core(&stored.terms)?.parameters();
    let params = params.map_err(Failure::internal)?;
    let mut tx = state.base.store.begin().await?;
    let shared = store::find(&mut tx, stored.dataset).await?;
    tx.commit().await?;
    let confirmation = shared.and_then(|shared| shared.confirmation);
    let confirmation =
        confirmation.ok_or_else(|| Failure::internal("the shared key has no confirmation"))?;
    let own_member = shares::own_member(state, stored, &params, &confirmation)?;
    let own = shares::upload_seed(&own_member, &request)?;
    let body = serde_json::to_vec(&UploadSeedCall {
        holder: request.holder,
        request: asked.clone(),
        confirmation,
    })?;
    let path = format!("/v1/shares/{}/upload-key", stored.dataset);
    let mut seeds = vec![own];
    for member in members(state, &stored.terms.key_services)? {
        let sent = member
            .client
            .json(Method::POST, &path, Body::Json(body.clone()));
        let answer: UploadKeySeeds = sent.await.map_err(|error| member.no_seed(&error))?;
        seeds.extend(answer.bytes().map_err(Failure::internal)?);
    }
    Ok(seeds)
}

/// Checks that the named services are this one and its peers.
async fn check(state: &State, named: &[KeyService]) -> Result<(), Failure> {
    let refuse = |reason: String| Refusal::Terms(format!("key_services: {reason}"));
    state.sharing.check(0, named).map_err(refuse)?;
    let here: Vec<KeyService> = services(state)
        .await?
        .services
        .into_iter()
        .map(Into::into)
        .collect();
    match here.get(..named.len()) {
        Some(first) if first == named => Ok(()),
        _ => {
            let names: Vec<&str> = here.iter().map(|service| &*service.name).collect();
            Err(refuse(format!(
                "must be {}, in this order and with the keys of `GET /v1/key-services`",
                names.join(", ")
            ))
            .into())
        }
    }
}

/// Exchanges the messages of all steps. Returns the finished key generation and the confirmations.
async fn exchange(
    state: &State,
    (dataset, owner): (Uuid, Uuid),
    members: &[Member<'_>],
    mut generation: KeyGeneration,
) -> Result<(KeyGeneration, Vec<Vec<u8>>), Failure> {
    let path = format!("/v1/shares/{dataset}/generation");
    let mut messages: Vec<Vec<u8>> = Vec::new();
    loop {
        let making = move || {
            let own = generation.message()?;
            if let Some(own) = &own {
                generation.take(own)?;
            }
            Ok::<_, Error>((generation, own))
        };
        let (at, own) = state
            .making
            .blocking(owner, making)
            .await?
            .map_err(Failure::internal)?;
        generation = at;
        let Some(own) = own else {
            return Ok((generation, messages));
        };
        messages.push(own.clone());
        let send = Bytes::from(call::messages(&messages));
        let mut step = vec![own];
        for member in members {
            let sent = member
                .client
                .bytes(Method::POST, &path, Body::Bytes(send.clone()));
            let answer = sent.await.map_err(|error| member.refusal(&error))?;
            step.extend(call::read_messages(&answer).map_err(Failure::internal)?);
        }
        let taken = step.clone();
        let taking = move || {
            for message in &taken {
                generation.take(message)?;
            }
            Ok::<_, Error>(generation)
        };
        generation = state
            .making
            .blocking(owner, taking)
            .await?
            .map_err(Failure::internal)?;
        messages = step;
    }
}

/// The other services' shares of a batch. Each of them has debited it.
pub(crate) struct Shared {
    own_member: Arc<CommitteeMember>,
    shares: Vec<Vec<u8>>,
}

/// Promises a batch that this service would grant, and asks the other services for their shares.
///
/// # Errors
/// Those of `decryption::decrypt`; [`ProblemKind::Unavailable`] while another service does not answer.
pub(crate) async fn ask(
    state: &State,
    call: &DecryptionCall,
    stored: &StoredKeySet,
    plan: &PlanCore,
    rules: &Rules,
    judged: &JobLedger,
    sent: &Sent,
) -> Result<Shared, Failure> {
    let (own_member, shown, verdict) =
        promise(state, call, stored, plan, rules, judged, sent).await?;
    let members = members(state, &stored.terms.key_services)?;
    let shares = ask_each(state, &members, call, &own_member, shown, verdict, sent).await?;
    Ok(Shared { own_member, shares })
}

/// Adds up all services' shares of a batch that this service has debited. Returns `None` if a page cannot be decrypted,
/// after asking the others to freeze the dataset.
///
/// # Errors
/// A share that cannot be made or read.
pub(crate) async fn open(
    state: &State,
    call: &DecryptionCall,
    stored: &StoredKeySet,
    plan: &PlanCore,
    Shared { own_member, shares }: Shared,
    sent: Arc<Sent>,
) -> Result<Option<Vec<Vec<i64>>>, Failure> {
    let params = plan.parameters().map_err(Failure::internal)?;
    let reading = move || {
        let mut reader = ShareReader::new(
            own_member.committee().clone(),
            params.clone(),
            *own_member.transcript(),
        )?;
        let opened = Opened::of(&params, &sent.request)?;
        let own = own_member.share(&sent.request)?;
        let all: Vec<Vec<u8>> = shares.into_iter().chain([own]).collect();
        reader.read(&sent.request.releases, &opened, &all)
    };
    match blocking(reading).await? {
        Ok(answers) => Ok(Some(answers)),
        Err(Error::Frozen(_) | Error::Request(_)) => {
            let members = members(state, &stored.terms.key_services)?;
            freeze(&members, call.dataset).await;
            Ok(None)
        }
        Err(error) => Err(Failure::internal(error)),
    }
}

/// Proofs that every other service is shown with a batch, in addition to its request and the promises so far.
struct Shown {
    consents: Vec<Act>,
    attempt: [u8; 16],
    confirmations: Vec<Vec<u8>>,
    assignment: Vec<u8>,
}

/// Promises a batch permanently. Returns this service's membership, the proofs for the others, and the promise.
async fn promise(
    state: &State,
    call: &DecryptionCall,
    stored: &StoredKeySet,
    plan: &PlanCore,
    rules: &Rules,
    judged: &JobLedger,
    sent: &Sent,
) -> Result<(Arc<CommitteeMember>, Shown, Vec<u8>), Failure> {
    let dataset = call.dataset;
    let mut tx = state.base.store.begin().await?;
    let (chain_state, now) = decryption::job_ledger(state, &mut tx, call, rules).await?;
    // The same request came twice and was released meanwhile: its promise was kept, and another would be for nothing.
    if now != *judged {
        return Err(Failure::overtaken(
            "the job has released something meanwhile",
        ));
    }
    match store::promised(&mut tx, dataset, call.job).await? {
        None => store::promise(&mut tx, dataset, call.job, sent.digest).await?,
        Some(known) if known == sent.digest => {}
        Some(_) => {
            let cause = "another request of these releases was promised";
            return Err(Failure::refused().because(cause));
        }
    }
    let consents = chain::consents(&mut tx, dataset).await?;
    let shared = store::find(&mut tx, dataset).await?;
    tx.commit().await?;
    let confirmation = shared.and_then(|shared| shared.confirmation);
    let confirmation =
        confirmation.ok_or_else(|| Failure::internal("the shared key has no confirmation"))?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let own_member = shares::own_member(state, stored, &params, &confirmation)?;
    let job = sent.request.job;
    let (run, upload) = (chain_state.run(job), chain_state.upload());
    let (Some(run), Some(upload)) = (run, upload) else {
        return Err(Failure::refused().because("the job has no run"));
    };
    let assignment = own_member.assignment(&Assignment { job, run, upload });
    let shown = Shown {
        consents,
        attempt: confirmation.attempt().map_err(Failure::internal)?,
        confirmations: confirmation.messages().map_err(Failure::internal)?,
        assignment: assignment.map_err(Failure::internal)?,
    };
    let verdict = own_member.verdict(job, &sent.digest.0);
    Ok((Arc::new(own_member), shown, verdict))
}

/// Shows a batch to all others until each has shared it. None shares it before all have promised.
async fn ask_each(
    state: &State,
    members: &[Member<'_>],
    call: &DecryptionCall,
    own_member: &CommitteeMember,
    shown: Shown,
    verdict: Vec<u8>,
    sent: &Sent,
) -> Result<Vec<Vec<u8>>, Failure> {
    let path = format!("/v1/shares/{}/jobs/{}", call.dataset, call.job);
    let mut verdicts = vec![verdict];
    let mut shares = vec![None; members.len()];
    // In the first round, only the last service sees all promises; in the second round, all services do.
    for _ in 0..2 {
        for (member, share) in members.iter().zip(&mut shares) {
            if share.is_some() {
                continue;
            }
            let body = call::CommitteeCall {
                consents: shown.consents.clone(),
                attempt: shown.attempt,
                confirmations: shown.confirmations.clone(),
                assignment: shown.assignment.clone(),
                verdicts: verdicts.clone(),
                request: sent.bytes.to_vec(),
            };
            let body = Body::Bytes(body.to_bytes().map_err(Failure::internal)?.into());
            let answer = match member.client.bytes(Method::POST, &path, body).await {
                Ok(answer) => answer,
                Err(error) => return Err(member.batch_failure(state, call.dataset, &error).await),
            };
            let answer = CommitteeAnswer::from_bytes(&answer).map_err(Failure::internal)?;
            let promised = own_member
                .read_verdict(&answer.verdict)
                .map_err(Failure::internal)?;
            if promised.request != sent.digest.0 {
                let cause = format!("key service {} promised another request", member.name);
                return Err(Failure::refused().because(cause));
            }
            if !verdicts.contains(&answer.verdict) {
                verdicts.push(answer.verdict);
            }
            *share = answer.share;
        }
    }
    let all: Option<Vec<_>> = shares.into_iter().collect();
    all.ok_or_else(|| Failure::internal("a key service has all promises but sends no share"))
}

/// Asks the others to freeze a dataset after a page could not be decrypted. A service that does not answer is shown
/// nothing more, because the dataset is frozen here.
async fn freeze(members: &[Member<'_>], dataset: Uuid) {
    let path = format!("/v1/shares/{dataset}/freeze");
    for member in members {
        if let Err(error) = member.client.bytes(Method::PUT, &path, Body::Empty).await {
            tracing::warn!(%dataset, service = member.name, %error, "a key service has not frozen the dataset");
        }
    }
}

/// Records that the others must destroy their shares, if the dataset's key is shared. Some of them may have none.
pub(crate) async fn orphan(state: &State, tx: &mut Tx, dataset: Uuid) -> Result<(), Failure> {
    if store::is_shared(tx, dataset).await? {
        for (service, _) in &state.sharing.peers {
            store::orphan(tx, dataset, *service).await?;
        }
    }
    Ok(())
}

/// Asks the others to destroy their shares of keys that are destroyed here. Services that do not answer are called again
/// later; their shares are useless without this service's share.
pub(crate) async fn tell(state: &State) {
    if let Err(failure) = try_to_tell(state).await {
        tracing::warn!(%failure, "asking other key services to destroy their shares failed");
    }
}

/// Asks the others to destroy their shares of an owner's keys that this service does not know. Returns whether one of
/// them had a share.
pub(crate) async fn destroy_forgotten(state: &State, dataset: Uuid, owner: Uuid) -> bool {
    let path = format!("/v1/shares/{dataset}?owner={owner}");
    let mut is_known = false;
    for (service, client) in &state.sharing.peers {
        let client = client.with_tries(1);
        match client.bytes(Method::DELETE, &path, Body::Empty).await {
            Ok(_) => is_known = true,
            Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {}
            Err(error) => {
                tracing::warn!(%dataset, %service, %error, "a key service may keep its share of deleted keys");
            }
        }
    }
    is_known
}

async fn try_to_tell(state: &State) -> Result<(), Failure> {
    let store = &state.base.store;
    for (dataset, service) in store::orphaned(store).await? {
        let Some(client) = client(state, service) else {
            continue;
        };
        let path = format!("/v1/shares/{dataset}");
        match client.bytes(Method::DELETE, &path, Body::Empty).await {
            Ok(_) => store::told(store, dataset, service).await?,
            Err(error) => {
                tracing::warn!(%dataset, %service, %error, "a key service has not destroyed its share yet");
            }
        }
    }
    Ok(())
}

fn client(state: &State, service: Service) -> Option<&PeerClient> {
    let mut peers = state.sharing.peers.iter();
    peers
        .find(|(peer, _)| *peer == service)
        .map(|(_, client)| client)
}
