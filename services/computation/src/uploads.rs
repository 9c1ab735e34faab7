//! What holders send: registered, checked object by object on arrival, then sealed.

use bytes::Bytes;
use fhaim_api::Digest;
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
use fhaim_protocol::terms::{Outline, Terms};
use fhaim_protocol::upload::{Object, UploadPlan, decode_object, object_bytes};
use reqwest::Method;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

use crate::problem::Refusal;
use crate::store::uploads as store;
pub use crate::store::uploads::{Kept, KeyDigests, Stored};
use crate::{State, limits, runs};

/// The one contribution that a dataset has today.
pub const WHOLE: u32 = 0;

/// What follows from an upload's terms, and the objects that it has.
///
/// # Errors
/// [`Refusal::Terms`].
pub fn plans(stored: &Stored) -> Result<(Outline, UploadPlan), Refusal> {
    outline(&stored.terms, stored.layout)
}

fn outline(terms: &Terms, layout: WireLayout) -> Result<(Outline, UploadPlan), Refusal> {
    let plans = || {
        let outline = terms.outline()?;
        let upload = UploadPlan {
            columns: outline.domain.columns(),
            layout: Layout::from_parts(layout.chunks, layout.stride)?,
            ladder: outline.ladder()?,
            residues: outline.set.plaintext_moduli.len(),
        };
        Ok((outline, upload))
    };
    plans().map_err(|error: fhaim_protocol::Error| Refusal::Terms(error.to_string()))
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

/// Registers an upload; the same again changes nothing. Whether it was registered now.
///
/// # Errors
/// [`ProblemKind::Conflict`] where it was registered otherwise, [`ProblemKind::NotFound`] where
/// it is someone else's or has no keys, [`ProblemKind::Invalid`] for terms that cannot be met,
/// [`ProblemKind::Quota`] beyond what the account may store.
pub async fn register(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    new: NewUpload,
) -> Result<(Upload, bool), Failure> {
    let terms = new.terms.0;
    match find_owned(state, dataset, owner).await {
        Ok(stored) => return existing(state, &stored, &terms, new.layout).await,
        Err(failure) if failure.kind() == ProblemKind::NotFound => {}
        Err(failure) => return Err(failure),
    }
    check_terms(&terms).await?;
    let (plan, upload_plan) = outline(&terms, new.layout)?;
    check_layout(&plan, &upload_plan)?;
    check_size(&plan, &upload_plan, state.upload_bytes)?;
    let bytes = limits::bytes(&plan.set, &upload_plan);
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, owner, bytes).await?;
    drop(tx); // summed up again where the upload is stored
    let folder = format!("uploads/{dataset}/{}", Uuid::new_v4());
    let keys = fetch_keys(state, dataset, &folder, &plan).await?;
    let stored = Stored {
        dataset,
        owner,
        terms,
        layout: new.layout,
        folder,
        keys: Some(keys),
    };
    match insert(state, &stored, upload_plan.columns, bytes).await {
        Ok(true) => return Ok((show(state, &stored).await?, true)),
        Ok(false) => state.base.blobs.delete_folder(&stored.folder).await?,
        Err(failure) => {
            if failure.kind() == ProblemKind::Quota {
                state.base.blobs.delete_folder(&stored.folder).await?;
            }
            return Err(failure);
        }
    }
    let other = find_owned(state, dataset, owner).await?;
    existing(state, &other, &stored.terms, stored.layout).await
}

/// Stores a new upload, if it is within what its owner may have. Whether it was stored.
async fn insert(
    state: &State,
    stored: &Stored,
    columns: usize,
    bytes: u64,
) -> Result<bool, Failure> {
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, stored.owner, bytes).await?;
    let inserted = store::insert(&mut tx, stored, columns, bytes).await?;
    if inserted {
        tx.commit().await?;
    }
    Ok(inserted)
}

async fn existing(
    state: &State,
    stored: &Stored,
    terms: &Terms,
    layout: WireLayout,
) -> Result<(Upload, bool), Failure> {
    if stored.terms != *terms || stored.layout != layout {
        return Err(Refusal::OtherUpload.into());
    }
    Ok((show(state, stored).await?, false))
}

/// Refuses a layout that no table within the record bound has: more records than that would be
/// more sensitive than what they are charged for.
///
/// # Errors
/// [`Refusal::Records`].
pub fn check_layout(plan: &Outline, upload: &UploadPlan) -> Result<(), Refusal> {
    let (layout, bound) = (upload.layout, plan.record_bound);
    if layout.min_records() as u64 <= bound {
        return Ok(());
    }
    Err(Refusal::Records {
        chunks: layout.chunks(),
        stride: layout.stride(),
        records: layout.min_records(),
        bound,
    })
}

/// Refuses an upload that would not fit into memory when it is computed on.
fn check_size(plan: &Outline, upload: &UploadPlan, most: u64) -> Result<(), Refusal> {
    let bytes = limits::bytes(&plan.set, upload);
    if bytes <= most {
        return Ok(());
    }
    Err(Refusal::Large {
        megabytes: bytes >> 20,
        most: most >> 20,
        columns: upload.columns,
        chunks: upload.layout.chunks(),
        vectors: upload.ladder.vectors(),
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
    let (plan, upload_plan) = plans(stored)?;
    let object_bytes = object_bytes(&plan.set) as u64;
    let contribution = |part: store::Part| Contribution {
        number: part.number,
        chunks: part.chunks,
        columns: part.columns,
        state: part.state,
        objects_present: part.present,
        objects: upload_plan.object_count() as u64,
        bytes_present: part.present.saturating_mul(object_bytes),
        object_bytes,
    };
    let parts = store::parts(&state.base.store, stored.dataset).await?;
    Ok(Upload {
        dataset: stored.dataset,
        layout: stored.layout,
        contributions: parts.into_iter().map(contribution).collect(),
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
    must_be_whole(contribution)?;
    let (_, plan) = plans(stored)?;
    let present = store::objects(&state.base.store, stored.dataset, contribution).await?;
    Ok(Missing {
        objects: lacking(&plan, &present),
    })
}

fn lacking(plan: &UploadPlan, present: &BTreeMap<String, Kept>) -> Vec<String> {
    let names = plan.objects().map(|object| object.name());
    names.filter(|name| !present.contains_key(name)).collect()
}

fn must_be_whole(contribution: u32) -> Result<(), Failure> {
    if contribution == WHOLE {
        Ok(())
    } else {
        Err(Failure::not_found())
    }
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
    must_be_whole(contribution)?;
    let object: Object = name.parse().map_err(|_| Failure::not_found())?;
    let (plan, upload_plan) = plans(stored)?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let bytes = check(params, upload_plan, object, digest, body).await?;
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
    plan: UploadPlan,
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
        match decode_object(&params, &plan, object, &body) {
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
    must_be_whole(contribution)?;
    let (_, plan) = plans(stored)?;
    let mut tx = state.base.store.begin().await?;
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
    runs::prepare(state, &mut tx, stored.dataset, manifest).await?;
    tx.commit().await?;
    show(state, stored).await
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
    Ok(manifest(&store::objects(store, dataset, WHOLE).await?))
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
