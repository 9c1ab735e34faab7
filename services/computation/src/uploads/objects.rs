//! Objects: each checked when it arrives, all of a contribution sealed by their manifest.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{Complete, Missing, Upload, UploadState};
use fhaim_he::{Parameters, UploadKeyId};
use fhaim_platform::Failure;
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::upload::Object;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use tracing::{Instrument, Span};
use uuid::Uuid;

use super::{Kept, StoredUpload, copies, outline, registered, show, store};
use crate::problem::Refusal;
use crate::{Role, State, runs};

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
    stored: &StoredUpload,
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
    stored: &StoredUpload,
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
    stored: &StoredUpload,
    contribution: u32,
    name: &str,
    digest: Digest,
    body: Bytes,
) -> Result<(), Failure> {
    let object: Object = name.parse().map_err(|_| Failure::not_found())?;
    let params = outline(&stored.terms)?.parameters();
    let params = params.map_err(Failure::internal)?;
    let plan = registered(state, stored, contribution).await?;
    let key = match &stored.terms.roster {
        None => None,
        Some(_) => Some(upload_key(stored, contribution)?),
    };
    let bytes = check(params, plan, object, digest, body, key).await?;
    let mut tx = state.base.store.begin().await?;
    lock_open(state, &mut tx, stored.dataset, contribution).await?;
    drop(tx);
    // A caller who hangs up drops this future, and must not leave a blob that no row names: what
    // is begun here goes on to its end without it.
    let (state, stored) = (state.clone(), stored.clone());
    let keeping = async move { keep(&state, &stored, contribution, object, digest, bytes).await };
    let kept = tokio::spawn(keeping.instrument(Span::current())).await;
    kept.map_err(Failure::internal)?
}

/// Stores an object's bytes, and makes them the object of a contribution that is not complete.
async fn keep(
    state: &State,
    stored: &StoredUpload,
    contribution: u32,
    object: Object,
    digest: Digest,
    bytes: Bytes,
) -> Result<(), Failure> {
    let version = Uuid::new_v4();
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

/// Deletes a blob that no row names. One that stays is swept, or goes with the upload.
pub async fn discard(state: &State, blob: &str) {
    if let Err(error) = state.base.blobs.delete(blob).await {
        tracing::warn!(%error, blob, "a blob that nothing needs stays");
    }
}

/// Makes a stored blob an object of an upload that is not complete; what it had before.
async fn enter(
    state: &State,
    stored: &StoredUpload,
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

/// The upload key that the key services made for a holder of a roster.
pub fn upload_key(stored: &StoredUpload, contribution: u32) -> Result<UploadKeyId, Failure> {
    let name = stored.keys.uploads.get(contribution as usize);
    let name = name.ok_or_else(|| Failure::internal("a holder without an upload key"))?;
    Ok(*name)
}

/// Refuses bytes that are not an object of the plan. An object of a roster's holder must be under `key`.
async fn check(
    params: Parameters,
    plan: PartPlan,
    object: Object,
    digest: Digest,
    body: Bytes,
    key: Option<UploadKeyId>,
) -> Result<Bytes, Failure> {
    if !plan.contains(object) {
        return Err(Failure::not_found());
    }
    let work = move || {
        if Digest::of(&body) != digest {
            return Err(Refusal::ObjectDigest);
        }
        let decoded = plan.decode(&params, object, &body);
        let decoded = decoded.map_err(|error| Refusal::Object(error.to_string()))?;
        match key {
            Some(key) if !decoded.is_under(key) => Err(Refusal::OtherKey),
            _ => Ok(body),
        }
    };
    Ok(blocking(work).await??)
}

/// Seals an upload whose manifest is what its holder says. The second computation service copies the
/// objects from the first, for a while: where it has not all of them by then, the upload stays open.
///
/// # Errors
/// [`ProblemKind::Conflict`] where objects are missing, [`ProblemKind::DigestMismatch`] where
/// the manifest is another.
pub async fn complete(
    state: &State,
    stored: &StoredUpload,
    contribution: u32,
    complete: &Complete,
) -> Result<Upload, Failure> {
    let key = match &state.role {
        Role::First => Some(runs::new_key()?),
        Role::Second { first, .. } => {
            if !copies::copy(state, first, stored, contribution, complete.manifest).await? {
                return show(state, stored).await; // open: it is gone on with by the same call
            }
            copies::sealing_key(first, stored.dataset).await?
        }
    };
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
    let manifest = manifest(present.iter().map(|(name, kept)| (name, kept.digest)));
    if manifest != complete.manifest {
        return Err(Refusal::Manifest.into());
    }
    store::complete(&mut tx, stored.dataset, contribution).await?;
    if store::is_complete_in(&mut tx, stored.dataset).await? {
        let manifest = whole_manifest(&mut tx, stored).await?;
        // The first has one as soon as all parts are complete there, as they are before they are here.
        let key = key.ok_or_else(|| Failure::overtaken("the first has no sealing key yet"))?;
        runs::prepare(state, &mut tx, (stored.dataset, manifest), &key).await?;
    }
    tx.commit().await?;
    show(state, stored).await
}

/// Digest that a dataset's runs are bound to: of one holder's manifest, or of all holders' in the order
/// of the roster.
async fn whole_manifest(tx: &mut Tx, stored: &StoredUpload) -> Result<Digest, Failure> {
    let mut hash = Sha256::new();
    for number in (0..).take(stored.terms.part_count()) {
        let present = store::objects_in(tx, stored.dataset, number).await?;
        let manifest = manifest(present.iter().map(|(name, kept)| (name, kept.digest)));
        if stored.terms.roster.is_none() {
            return Ok(manifest);
        }
        hash.update(format!("{number} {manifest}\n"));
    }
    Ok(Digest(hash.finalize().into()))
}

/// Digest over all objects' names and digests: what a holder and this service agree on.
pub(super) fn manifest<'a>(objects: impl IntoIterator<Item = (&'a String, Digest)>) -> Digest {
    let mut hash = Sha256::new();
    for (name, digest) in objects {
        hash.update(format!("{name} {digest}\n"));
    }
    Digest(hash.finalize().into())
}
