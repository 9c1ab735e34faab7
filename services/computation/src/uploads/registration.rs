//! Registering an upload: what it may be, and the keys that it is under.

use fhaim_api::Digest;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{NewUpload, Upload, WireLayout};
use fhaim_he::{EvaluationKeys, PublicKey};
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::threads::blocking;
use fhaim_protocol::terms::{Outline, Terms};
use fhaim_protocol::upload::UploadPlan;
use reqwest::Method;
use uuid::Uuid;

use super::{KeyDigests, Stored, find_owned, outline, show, store};
use crate::problem::Refusal;
use crate::{State, limits};

/// Refuses terms that cannot be met.
async fn check_terms(terms: &Terms) -> Result<(), Failure> {
    let terms = terms.clone();
    let plan = blocking(move || terms.plan().map(drop)).await?;
    Ok(plan.map_err(|error| Refusal::Terms(error.to_string()))?)
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
