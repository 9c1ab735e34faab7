//! Objects of a contribution: each is checked on arrival, and the manifest completes them.

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

use super::{Kept, StoredUpload, copies, plan_core, registered, show, store};
use crate::problem::Refusal;
use crate::{Role, State, runs};

/// Locks a contribution's row and returns its state.
async fn lock(
    state: &State,
    tx: &mut Tx,
    dataset: Uuid,
    contribution: u32,
) -> Result<UploadState, Failure> {
    let locked = store::lock(&state.base.store, tx, dataset, contribution).await?;
    locked.ok_or_else(Failure::not_found)
}

/// Locks a contribution and checks that it is not complete.
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

/// Returns the stored objects of a contribution.
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

/// Returns the names of the missing objects.
///
/// # Errors
/// [`ProblemKind::NotFound`] if the contribution does not exist.
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

/// Stores an object. Its bytes must match their digest and decode as ciphertexts of the dataset's
/// parameters. Until the upload is complete, an object may be sent again with the same or other bytes,
/// because nothing has been computed from it.
///
/// # Errors
/// [`ProblemKind::DigestMismatch`]; [`ProblemKind::Invalid`] with the rule that the bytes break;
/// [`ProblemKind::NotFound`] for a name that the upload does not have; [`ProblemKind::Conflict`] once
/// the upload is complete.
pub async fn put(
    state: &State,
    stored: &StoredUpload,
    contribution: u32,
    name: &str,
    digest: Digest,
    body: Bytes,
) -> Result<(), Failure> {
    let object: Object = name.parse().map_err(|_| Failure::not_found())?;
    let params = plan_core(&stored.terms)?.parameters();
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
    // A client that disconnects drops this future, which must not leave a blob that no row names.
    // The spawned task runs to its end without the client.
    let (state, stored) = (state.clone(), stored.clone());
    let keeping = async move { keep(&state, &stored, contribution, object, digest, bytes).await };
    let kept = tokio::spawn(keeping.instrument(Span::current())).await;
    kept.map_err(Failure::internal)?
}

/// Stores an object's bytes and enters them as the object of an open contribution.
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
        // After these failures no row names the blob. After others, this is not known.
        Err(failure)
            if [ProblemKind::Conflict, ProblemKind::NotFound].contains(&failure.kind()) =>
        {
            discard(state, &blob).await;
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// Deletes a blob that no row names. If this fails, housekeeping or the deletion of the upload removes it.
pub async fn discard(state: &State, blob: &str) {
    if let Err(error) = state.base.blobs.delete(blob).await {
        tracing::warn!(%error, blob, "deleting an unused blob failed; housekeeping will retry");
    }
}

/// Enters a stored blob as an object of an open upload, and returns the replaced one.
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

/// Returns the upload key that the key services made for a holder of a roster.
pub fn upload_key(stored: &StoredUpload, contribution: u32) -> Result<UploadKeyId, Failure> {
    let name = stored.keys.uploads.get(contribution as usize);
    let name = name.ok_or_else(|| Failure::internal("a holder has no upload key"))?;
    Ok(*name)
}

/// Checks that bytes are an object of the plan. An object of a roster's holder must be under `key`.
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

/// Completes an upload if its manifest matches the holder's. The second computation service first copies objects
/// from the first for a limited time; if some are still missing then, the upload stays open.
///
/// # Errors
/// [`ProblemKind::Conflict`] if objects are missing; [`ProblemKind::DigestMismatch`] if the manifest does
/// not match.
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
                return show(state, stored).await; // still open: the client repeats the call
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
        // The first service has a key as soon as all contributions are complete there, which precedes this.
        let key =
            key.ok_or_else(|| Failure::overtaken("the first service has no sealing key yet"))?;
        runs::prepare(state, &mut tx, (stored.dataset, manifest), &key).await?;
    }
    tx.commit().await?;
    show(state, stored).await
}

/// Returns the digest to which a dataset's runs are bound: a single holder's manifest, or the digest of all
/// holders' manifests in the order of the roster.
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

/// Returns the digest over all objects' names and digests, on which a holder and this service agree.
pub(super) fn manifest<'a>(objects: impl IntoIterator<Item = (&'a String, Digest)>) -> Digest {
    let mut hash = Sha256::new();
    for (name, digest) in objects {
        hash.update(format!("{name} {digest}\n"));
    }
    Digest(hash.finalize().into())
}
