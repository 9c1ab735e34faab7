//! What holders send: registered, checked object by object on arrival, then sealed.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::keys::KeySet;
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_api::upload::{
    Complete, Contribution, Missing, NewUpload, Upload, UploadState, WireLayout,
};
use fhaim_he::{EvaluationKeys, Layout, Parameters, PublicKey};
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::terms::{Outline, Terms};
use fhaim_protocol::upload::{Object, object_bytes};
use reqwest::Method;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

use crate::problem::Refusal;
use crate::store::uploads as store;
use crate::store::uploads::NewPart;
pub use crate::store::uploads::{Kept, KeyDigests, Part, Stored};
use crate::{State, limits, runs};

/// The contribution of a dataset of one holder.
pub const WHOLE: u32 = 0;

/// What follows from an upload's terms.
///
/// # Errors
/// [`Refusal::Terms`].
pub fn outline(terms: &Terms) -> Result<Outline, Refusal> {
    let outline = terms.outline();
    outline.map_err(|error| Refusal::Terms(error.to_string()))
}

/// The objects of a contribution.
///
/// # Errors
/// [`Refusal::Terms`], also for a layout that no table within the holder's record bound has.
pub fn part_plan(
    terms: &Terms,
    number: u32,
    layout: Option<WireLayout>,
) -> Result<PartPlan, Refusal> {
    let plan = || {
        let layout = layout.map(|layout| Layout::from_parts(layout.chunks, layout.stride));
        terms.part_plan(number, layout.transpose()?)
    };
    plan().map_err(|error: fhaim_protocol::Error| Refusal::Terms(error.to_string()))
}

/// The objects of a contribution that is registered.
async fn registered(state: &State, stored: &Stored, number: u32) -> Result<PartPlan, Failure> {
    let parts = store::parts(&state.base.store, stored.dataset).await?;
    let part = parts.iter().find(|part| part.number == number);
    let part = part.ok_or_else(Failure::not_found)?;
    Ok(part_plan(&stored.terms, number, part.layout)?)
}

/// Refuses terms that cannot be met.
async fn check_terms(terms: &Terms) -> Result<(), Failure> {
    let terms = terms.clone();
    let plan = blocking(move || terms.plan().map(drop)).await?;
    Ok(plan.map_err(|error| Refusal::Terms(error.to_string()))?)
}

/// An upload, whoever it belongs to.
///
/// # Errors
/// [`ProblemKind::NotFound`].
pub async fn find(state: &State, dataset: Uuid) -> Result<Stored, Failure> {
    let stored = store::find(&state.base.store, dataset).await?;
    stored.ok_or_else(Failure::not_found)
}

/// A user's upload.
///
/// # Errors
/// [`ProblemKind::NotFound`], also where it is someone else's.
pub async fn find_owned(state: &State, dataset: Uuid, owner: Uuid) -> Result<Stored, Failure> {
    let stored = find(state, dataset).await?;
    if stored.owner == owner {
        Ok(stored)
    } else {
        Err(Failure::foreign(
            Service::Computation,
            owner,
            "upload",
            dataset,
        ))
    }
}

/// An upload that a user is a holder of, and the number of what it contributes.
///
/// # Errors
/// [`ProblemKind::NotFound`], also where it is others'.
pub async fn find_held(state: &State, dataset: Uuid, user: Uuid) -> Result<(Stored, u32), Failure> {
    let stored = find(state, dataset).await?;
    match number_of(&stored.terms, stored.owner, user) {
        Some(number) => Ok((stored, number)),
        None => Err(foreign(user, dataset)),
    }
}

fn foreign(user: Uuid, dataset: Uuid) -> Failure {
    Failure::foreign(Service::Computation, user, "upload", dataset)
}

/// The number of what a user contributes to a dataset of these terms.
fn number_of(terms: &Terms, owner: Uuid, user: Uuid) -> Option<u32> {
    match &terms.roster {
        Some(_) => terms.part_of(&user.to_string()),
        None => (owner == user).then_some(WHOLE),
    }
}

/// A user's contribution of this number.
///
/// # Errors
/// [`ProblemKind::NotFound`], also where the dataset or the contribution is another's.
pub async fn find_part(
    state: &State,
    dataset: Uuid,
    user: Uuid,
    contribution: u32,
) -> Result<Stored, Failure> {
    match find_held(state, dataset, user).await? {
        (stored, number) if number == contribution => Ok(stored),
        _ => Err(foreign(user, dataset)),
    }
}

/// Registers what a user contributes, and the upload where there is none yet; the same again
/// changes nothing. Whether it was registered now.
///
/// # Errors
/// [`ProblemKind::Conflict`] where it was registered otherwise, [`ProblemKind::NotFound`] where
/// it is someone else's or has no keys, [`ProblemKind::Invalid`] for terms that cannot be met, and
/// for a roster that does not have the account, [`ProblemKind::Quota`] beyond what the account may
/// store.
pub async fn register(
    state: &State,
    dataset: Uuid,
    user: Uuid,
    new: NewUpload,
) -> Result<(Upload, bool), Failure> {
    let terms = new.terms.0;
    let (owner, number) = match store::find(&state.base.store, dataset).await? {
        Some(stored) => match number_of(&stored.terms, stored.owner, user) {
            Some(_) if stored.terms != terms => return Err(Refusal::OtherUpload.into()),
            Some(number) => {
                let parts = store::parts(&state.base.store, dataset).await?;
                if let Some(part) = parts.iter().find(|part| part.number == number) {
                    return existing(state, &stored, part.layout, new.layout).await;
                }
                (stored.owner, number)
            }
            None => return Err(foreign(user, dataset)),
        },
        None => (
            maker(&terms, user)?,
            number_of(&terms, user, user).ok_or(Refusal::Outsider)?,
        ),
    };
    check_terms(&terms).await?;
    let plan = part_plan(&terms, number, new.layout)?;
    let bytes = limits::bytes(&outline(&terms)?.set, &plan);
    check_size(&plan, bytes, state.upload_bytes)?;
    let part = NewPart {
        number,
        owner: terms.roster.is_some().then_some(user),
        layout: new.layout,
        columns: columns(&terms, number)?,
        bytes: if terms.roster.is_some() { bytes } else { 0 },
    };
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, user, part.bytes).await?;
    drop(tx); // summed up again where the contribution is stored
    let stored = upload(state, dataset, owner, (terms, new.layout), bytes).await?;
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, user, part.bytes).await?;
    if store::insert_part(&mut tx, dataset, &part).await? {
        tx.commit().await?;
        return Ok((show(state, &stored).await?, true));
    }
    drop(tx);
    // The same call, made twice at the same moment.
    let parts = store::parts(&state.base.store, dataset).await?;
    let part = parts.iter().find(|part| part.number == number);
    let part = part.ok_or_else(Failure::not_found)?;
    existing(state, &stored, part.layout, new.layout).await
}

/// Whose upload it is: the first holder of the roster made the dataset.
fn maker(terms: &Terms, user: Uuid) -> Result<Uuid, Refusal> {
    let first = terms.roster.as_ref().map(|roster| roster.holders.first());
    match first {
        None => Ok(user),
        Some(first) => first
            .and_then(|member| member.account.parse().ok())
            .ok_or(Refusal::Outsider),
    }
}

/// The one-hot columns of a part.
fn columns(terms: &Terms, number: u32) -> Result<usize, Refusal> {
    let part = terms.part_schema(number);
    let (schema, _) = part.map_err(|error| Refusal::Terms(error.to_string()))?;
    Ok(schema.domain().columns())
}

/// The upload of these terms: the one that there is, or a new one.
async fn upload(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    (terms, layout): (Terms, Option<WireLayout>),
    bytes: u64,
) -> Result<Stored, Failure> {
    if let Some(stored) = store::find(&state.base.store, dataset).await? {
        return same_terms(stored, &terms);
    }
    // What several holders' parts take is counted with each.
    let bytes = if terms.roster.is_some() {
        check_agreed(state, dataset, &terms).await?;
        0
    } else {
        bytes
    };
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, owner, bytes).await?;
    drop(tx); // summed up again where the upload is stored
    let folder = format!("uploads/{dataset}/{}", Uuid::new_v4());
    let keys = fetch_keys(state, dataset, &folder, &outline(&terms)?).await?;
    let stored = Stored {
        dataset,
        owner,
        terms,
        layout,
        folder,
        keys: Some(keys),
    };
    match insert(state, &stored, bytes).await {
        Ok(true) => return Ok(stored),
        Ok(false) => state.base.blobs.delete_folder(&stored.folder).await?,
        Err(failure) => {
            if failure.kind() == ProblemKind::Quota {
                state.base.blobs.delete_folder(&stored.folder).await?;
            }
            return Err(failure);
        }
    }
    let other = find(state, dataset).await?;
    if number_of(&other.terms, other.owner, owner).is_none() {
        return Err(foreign(owner, dataset));
    }
    same_terms(other, &stored.terms)
}

fn same_terms(stored: Stored, terms: &Terms) -> Result<Stored, Failure> {
    if stored.terms == *terms {
        Ok(stored)
    } else {
        Err(Refusal::OtherUpload.into())
    }
}

/// Refuses terms with a roster other than those that the dataset's keys were made with: whoever
/// knows its identifier could otherwise keep its holders out.
async fn check_agreed(state: &State, dataset: Uuid, terms: &Terms) -> Result<(), Failure> {
    let path = format!("/v1/datasets/{dataset}");
    let made: Result<KeySet, PeerError> = state.crypto.json(Method::GET, &path, Body::Empty).await;
    match made {
        Ok(made) if made.terms.0 == *terms => Ok(()),
        Ok(_) => Err(Refusal::OtherUpload.into()),
        Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
            Err(Refusal::NoKeys.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Stores a new upload, if it is within what its owner may have. Whether it was stored.
async fn insert(state: &State, stored: &Stored, bytes: u64) -> Result<bool, Failure> {
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, stored.owner, bytes).await?;
    let inserted = store::insert(&mut tx, stored, bytes).await?;
    if inserted {
        tx.commit().await?;
    }
    Ok(inserted)
}

async fn existing(
    state: &State,
    stored: &Stored,
    known: Option<WireLayout>,
    layout: Option<WireLayout>,
) -> Result<(Upload, bool), Failure> {
    if known != layout {
        return Err(Refusal::OtherUpload.into());
    }
    Ok((show(state, stored).await?, false))
}

/// Refuses an upload that would not fit into memory when it is computed on.
fn check_size(plan: &PartPlan, bytes: u64, most: u64) -> Result<(), Refusal> {
    if bytes <= most {
        return Ok(());
    }
    let vectors = plan.ladder().vectors();
    Err(Refusal::Large {
        megabytes: bytes >> 20,
        most: most >> 20,
        objects: plan.object_count().saturating_sub(vectors),
        vectors,
    })
}

/// Fetches the dataset's public and evaluation keys into a folder, and checks that they are what
/// they say.
async fn fetch_keys(
    state: &State,
    dataset: Uuid,
    folder: &str,
    plan: &Outline,
) -> Result<KeyDigests, Failure> {
    let fetch = async |name: &str| {
        let path = format!("/v1/datasets/{dataset}/{name}");
        let keys = state.crypto.bytes(Method::GET, &path, Body::Empty).await;
        keys.map_err(|error| match error {
            PeerError::Problem { problem, .. } if problem.kind == ProblemKind::NotFound => {
                Failure::from(Refusal::NoKeys)
            }
            other => other.into(),
        })
    };
    let public = fetch("public-key").await?;
    let evaluation = fetch("evaluation-keys").await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let (public_bytes, evaluation_bytes) = (public.clone(), evaluation.clone());
    let check = move || {
        PublicKey::from_bytes(&params, &public_bytes)?;
        EvaluationKeys::from_bytes(&params, &evaluation_bytes)?;
        Ok(KeyDigests {
            public: Digest::of(&public_bytes),
            evaluation: Digest::of(&evaluation_bytes),
        })
    };
    let digests = blocking(check).await?;
    let digests = digests.map_err(|error: fhaim_he::Error| Failure::internal(error))?;
    let blobs = &state.base.blobs;
    blobs.put(&format!("{folder}/public"), public).await?;
    blobs
        .put(&format!("{folder}/evaluation"), evaluation)
        .await?;
    Ok(digests)
}

/// What may be seen of an upload.
///
/// # Errors
/// A failure of the store.
pub async fn show(state: &State, stored: &Stored) -> Result<Upload, Failure> {
    let object_bytes = object_bytes(&outline(&stored.terms)?.set) as u64;
    let contribution = |part: Part| {
        let plan = part_plan(&stored.terms, part.number, part.layout)?;
        Ok(Contribution {
            number: part.number,
            chunks: [0, part.layout.map_or(0, |layout| layout.chunks)],
            columns: [0, part.columns],
            state: part.state,
            objects_present: part.present,
            objects: plan.object_count() as u64,
            bytes_present: part.present.saturating_mul(object_bytes),
            object_bytes,
        })
    };
    let parts = store::parts(&state.base.store, stored.dataset).await?;
    let contributions: Result<Vec<_>, Refusal> = parts.into_iter().map(contribution).collect();
    Ok(Upload {
        dataset: stored.dataset,
        layout: stored.layout,
        contributions: contributions?,
    })
}

/// The state of a contribution, its row locked.
async fn lock(
    state: &State,
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<UploadState, Failure> {
    let locked = store::lock(&state.base.store, tx, dataset, contribution).await?;
    locked.ok_or_else(Failure::not_found)
}

/// Locks a contribution that is not complete.
async fn lock_open(
    state: &State,
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<(), Failure> {
    match lock(state, tx, dataset, contribution).await? {
        UploadState::Open => Ok(()),
        UploadState::Complete => Err(Refusal::Complete.into()),
    }
}

/// What is stored of every object that is there.
///
/// # Errors
/// A failure of the store.
pub async fn objects(
    state: &State,
    stored: &Stored,
    contribution: u32,
) -> Result<HashMap<Object, Kept>, Failure> {
    let present = store::objects(&state.base.store, stored.dataset, contribution).await?;
    let entry = |(name, kept): (String, Kept)| {
        let object: Object = name.parse().map_err(Failure::internal)?;
        Ok((object, kept))
    };
    present.into_iter().map(entry).collect()
}

/// The objects that are still missing.
///
/// # Errors
/// [`ProblemKind::NotFound`] for a contribution that is not there.
pub async fn missing(
    state: &State,
    stored: &Stored,
    contribution: u32,
) -> Result<Missing, Failure> {
    let plan = registered(state, stored, contribution).await?;
    let present = store::objects(&state.base.store, stored.dataset, contribution).await?;
    Ok(Missing {
        objects: lacking(&plan, &present),
    })
}

fn lacking(plan: &PartPlan, present: &BTreeMap<String, Kept>) -> Vec<String> {
    let names = plan.objects().into_iter().map(|object| object.name());
    names.filter(|name| !present.contains_key(name)).collect()
}

/// Takes an object in: its bytes must be what their digest says and decode as ciphertexts of the
/// dataset's parameters. Before the upload is complete an object may be sent again, also with
/// other bytes: nothing has been computed from it.
///
/// # Errors
/// [`ProblemKind::DigestMismatch`], [`ProblemKind::Invalid`] with the rule that the bytes break,
/// [`ProblemKind::NotFound`] for a name that is none of the upload's, [`ProblemKind::Conflict`]
/// once it is complete.
pub async fn put(
    state: &State,
    stored: &Stored,
    contribution: u32,
    name: &str,
    digest: Digest,
    body: Bytes,
) -> Result<(), Failure> {
    let object: Object = name.parse().map_err(|_| Failure::not_found())?;
    let params = outline(&stored.terms)?.parameters();
    let params = params.map_err(Failure::internal)?;
    let plan = registered(state, stored, contribution).await?;
    let bytes = check(params, plan, object, digest, body).await?;
    let mut tx = state.base.store.begin().await?;
    lock_open(state, &mut tx, stored.dataset, contribution).await?;
    drop(tx);
    let version = Some(Uuid::new_v4());
    let blob = stored.blob(contribution, object, version);
    state.base.blobs.put(&blob, bytes).await?;
    let kept = Kept { digest, version };
    match enter(state, stored, contribution, object, kept).await {
        Ok(before) => {
            if let Some(before) = before {
                let blob = stored.blob(contribution, object, before.version);
                discard(state, &blob).await;
            }
            metrics::counter!("objects_received_total").increment(1);
            Ok(())
        }
        // Where these are the reason, no row names the blob. Any other leaves that unknown.
        Err(failure)
            if [ProblemKind::Conflict, ProblemKind::NotFound].contains(&failure.kind()) =>
        {
            discard(state, &blob).await;
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Deletes a blob that no row names. One that stays goes with the upload, or is swept.
pub async fn discard(state: &State, blob: &str) {
    if let Err(error) = state.base.blobs.delete(blob).await {
        tracing::warn!(%error, blob, "a blob that nothing needs stays");
    }
}

/// Makes a stored blob an object of an upload that is not complete; what it had before.
async fn enter(
    state: &State,
    stored: &Stored,
    contribution: u32,
    object: Object,
    new: Kept,
) -> Result<Option<Kept>, Failure> {
    let mut tx = state.base.store.begin().await?;
    lock_open(state, &mut tx, stored.dataset, contribution).await?;
    let before = store::put_object(&mut tx, stored.dataset, contribution, object, new).await?;
    tx.commit().await?;
    Ok(before)
}

async fn check(
    params: Parameters,
    plan: PartPlan,
    object: Object,
    digest: Digest,
    body: Bytes,
) -> Result<Bytes, Failure> {
    if !plan.contains(object) {
        return Err(Failure::not_found());
    }
    let work = move || {
        if Digest::of(&body) != digest {
            return Err(Refusal::ObjectDigest);
        }
        match plan.decode(&params, object, &body) {
            Ok(_) => Ok(body),
            Err(error) => Err(Refusal::Object(error.to_string())),
        }
    };
    Ok(blocking(work).await??)
}

/// Seals an upload whose manifest is what its holder says.
///
/// # Errors
/// [`ProblemKind::Conflict`] where objects are missing, [`ProblemKind::DigestMismatch`] where
/// the manifest is another.
pub async fn complete(
    state: &State,
    stored: &Stored,
    contribution: u32,
    complete: &Complete,
) -> Result<Upload, Failure> {
    let plan = registered(state, stored, contribution).await?;
    let mut tx = state.base.store.begin().await?;
    store::lock_upload(&state.base.store, &mut tx, stored.dataset).await?;
    lock(state, &mut tx, stored.dataset, contribution).await?;
    let present = store::objects_in(&mut tx, stored.dataset, contribution).await?;
    let missing = lacking(&plan, &present);
    if let Some(first) = missing.first() {
        let (objects, first) = (missing.len(), first.clone());
        return Err(Refusal::Lacking { objects, first }.into());
    }
    let manifest = manifest(&present);
    if manifest != complete.manifest {
        return Err(Refusal::Manifest.into());
    }
    store::complete(&mut tx, stored.dataset, contribution).await?;
    if store::is_complete_in(&mut tx, stored.dataset).await? {
        let manifest = whole_manifest(&mut tx, stored).await?;
        runs::prepare(state, &mut tx, stored.dataset, manifest).await?;
    }
    tx.commit().await?;
    show(state, stored).await
}

/// Digest that a dataset's runs are bound to: of one holder's manifest, or of all holders' in the order
/// of the roster.
async fn whole_manifest(tx: &mut Tx, stored: &Stored) -> Result<Digest, Failure> {
    let mut hash = Sha256::new();
    for number in (0..).take(stored.terms.part_count()) {
        let manifest = manifest(&store::objects_in(tx, stored.dataset, number).await?);
        if stored.terms.roster.is_none() {
            return Ok(manifest);
        }
        hash.update(format!("{number} {manifest}\n"));
    }
    Ok(Digest(hash.finalize().into()))
}

/// Takes a contribution back: deletes its objects, so that nothing can be computed of the dataset
/// until they are there again.
///
/// # Errors
/// [`Refusal::Used`] where a run has begun: what was released stays released, and the key
/// service lets no further run begin once the holder withdraws there.
pub async fn take_back(state: &State, stored: &Stored, contribution: u32) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    store::lock_upload(&state.base.store, &mut tx, stored.dataset).await?;
    lock(state, &mut tx, stored.dataset, contribution).await?;
    if store::is_used(&mut tx, stored.dataset).await? {
        return Err(Refusal::Used.into());
    }
    let objects = store::objects_in(&mut tx, stored.dataset, contribution).await?;
    store::reopen(&mut tx, stored.dataset, contribution).await?;
    tx.commit().await?;
    state.datasets.forget(stored.dataset);
    for (name, kept) in objects {
        let object: Object = name.parse().map_err(Failure::internal)?;
        discard(state, &stored.blob(contribution, object, kept.version)).await;
    }
    Ok(())
}

/// Digest of a complete upload's manifest.
///
/// # Errors
/// A failure of the store, or an upload that is not complete.
pub async fn complete_manifest(state: &State, dataset: Uuid) -> Result<Digest, Failure> {
    let store = &state.base.store;
    if !store::is_complete(store, dataset).await? {
        let cause = "a batch of an upload that is not complete";
        return Err(Failure::internal(cause));
    }
    let mut tx = store.begin().await?;
    whole_manifest(&mut tx, &find(state, dataset).await?).await
}

/// Digest over all objects' names and digests: what a holder and this service agree on.
fn manifest(objects: &BTreeMap<String, Kept>) -> Digest {
    let mut hash = Sha256::new();
    for (name, kept) in objects {
        hash.update(format!("{name} {}\n", kept.digest));
    }
    Digest(hash.finalize().into())
}

/// Deletes an upload: batches under way are stopped, then objects and keys are deleted, and then
/// rows. Broken off at any point, it is gone on with when the service starts, or by the next call.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn delete(state: &State, dataset: Uuid, owner: Uuid) -> Result<(), Failure> {
    let folder = store::folder(&state.base.store, dataset, owner).await?;
    let folder = folder.ok_or_else(Failure::not_found)?;
    store::begin_deletion(&state.base.store, dataset).await?;
    state.ended.notify_waiters();
    state.datasets.forget(dataset);
    finish_deletion(state, dataset, &folder).await
}

/// Blobs before rows, so that nothing is left that no row names.
async fn finish_deletion(state: &State, dataset: Uuid, folder: &str) -> Result<(), Failure> {
    state.base.blobs.delete_folder(folder).await?;
    store::finish_deletion(&state.base.store, dataset).await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// Goes on with deletions that were broken off.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    for (dataset, folder) in store::deleting(&state.base.store).await? {
        finish_deletion(state, dataset, &folder).await?;
    }
    Ok(())
}
