//! Datasets: what their holders fixed, and how far they are.

use fhaim_api::account::Secret;
use fhaim_api::dataset::{Dataset, DatasetState, NewDataset, Voucher};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_api::upload::{Upload, UploadState};
use fhaim_api::{Page, Paging};
use fhaim_dp::Rho;
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerError};
use fhaim_protocol::terms::Terms;
use fhaim_synth::Mechanisms;
use reqwest::Method;
use std::time::Duration;
use uuid::Uuid;

use crate::accounts::checked_name;
use crate::paging::Cut;
use crate::problem::Refusal;
use crate::put::Put;
use crate::store::datasets as store;
use crate::{State, limits};

const MAX_NAME: usize = 200;

/// Whose security log it is.
const SERVICE: Service = Service::Generation;

/// Makes a dataset under the identifier that its holder chose. The same again changes nothing.
///
/// # Errors
/// A name that cannot be used, terms that cannot be met; a dataset of this identifier that is
/// another, or someone else's; one more than the account may have.
pub async fn create(
    state: &State,
    owner: Uuid,
    id: Uuid,
    new: NewDataset,
) -> Result<Put<Dataset>, Failure> {
    let name = checked_name("name", new.name, MAX_NAME)?;
    let terms = new.terms.0.resolve(&Mechanisms);
    let terms = terms.map_err(|error| Refusal::Terms(error.to_string()))?;
    if let Some(found) = alike(state, owner, id, &name, &terms).await? {
        return Ok(Put::Found(found));
    }
    let mut tx = state.base.store.begin().await?;
    limits::check_dataset(state, &mut tx, owner).await?;
    drop(tx); // counted again where the dataset is stored
    let (terms, budget) = planned(state, terms).await?;
    let mut tx = state.base.store.begin().await?;
    limits::check_dataset(state, &mut tx, owner).await?;
    if store::insert(&mut tx, (owner, id), &name, &terms, budget).await? {
        tx.commit().await?;
        return Ok(Put::Made(show(state, owner, id).await?));
    }
    drop(tx);
    // The same call, made twice at the same moment.
    let found = alike(state, owner, id, &name, &terms).await?;
    found.map(Put::Found).ok_or_else(Failure::not_found)
}

/// The dataset of an identifier, if there is one and it is what the caller would make.
async fn alike(
    state: &State,
    owner: Uuid,
    id: Uuid,
    name: &str,
    terms: &Terms,
) -> Result<Option<Dataset>, Failure> {
    let Some(found) = store::find(&state.base.store, id).await? else {
        return Ok(None);
    };
    if found.owner != owner {
        return Err(Failure::foreign(SERVICE, owner, "dataset", id));
    }
    let dataset = found.dataset.ok_or(Refusal::Deleting)?;
    if dataset.name != name || dataset.terms.0.choices() != terms.choices() {
        return Err(Refusal::OtherDataset.into());
    }
    Ok(Some(dataset))
}

/// Completes a dataset's terms, and works its plan out as the other services will, for the budget.
async fn planned(state: &State, terms: Terms) -> Result<(Terms, Rho), Failure> {
    let (most, asked) = (state.config.limits.model_bytes, terms.model_bytes);
    if asked > most {
        return Err(Refusal::ModelBytes { most, asked }.into());
    }
    let work = move || {
        terms.check_served()?;
        let terms = terms.complete(&Mechanisms)?;
        let budget = terms.plan()?.budget;
        Ok((terms, budget))
    };
    let planned = state.plans.blocking(work).await?;
    Ok(planned.map_err(|error: fhaim_protocol::Error| Refusal::Terms(error.to_string()))?)
}

/// An owner's dataset.
///
/// # Errors
/// There is none.
pub async fn show(state: &State, owner: Uuid, id: Uuid) -> Result<Dataset, Failure> {
    match store::find(&state.base.store, id).await? {
        Some(found) if found.owner != owner => Err(Failure::foreign(SERVICE, owner, "dataset", id)),
        found => found
            .and_then(|found| found.dataset)
            .ok_or_else(Failure::not_found),
    }
}

/// An owner's datasets.
///
/// # Errors
/// A page that cannot be.
pub async fn list(state: &State, owner: Uuid, paging: &Paging) -> Result<Page<Dataset>, Failure> {
    let cut = Cut::new(paging)?;
    let datasets = store::list(&state.base.store, owner, &cut).await?;
    Ok(cut.page(datasets, |dataset| (dataset.created_at, dataset.id)))
}

/// A voucher is of use for so long: it is shown as soon as it is there.
const VOUCHER_LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Vouches for an owner's dataset to the crypto service.
///
/// # Errors
/// There is no such dataset.
pub async fn vouch(state: &State, owner: Uuid, id: Uuid) -> Result<Voucher, Failure> {
    show(state, owner, id).await?;
    let voucher = state.base.signer.voucher(owner, id, VOUCHER_LIFETIME)?;
    Ok(Voucher {
        voucher: Secret(voucher),
        expires_in: VOUCHER_LIFETIME.as_secs(),
    })
}

/// Marks a dataset as ready, if the computation service has all of its objects.
///
/// # Errors
/// There is no such dataset, its upload is not complete, the computation service is out of reach.
pub async fn make_ready(state: &State, owner: Uuid, id: Uuid) -> Result<Dataset, Failure> {
    let dataset = show(state, owner, id).await?;
    if dataset.state == DatasetState::Ready {
        return Ok(dataset);
    }
    check_upload(state, id).await?;
    store::make_ready(&state.base.store, id).await?;
    show(state, owner, id).await
}

async fn check_upload(state: &State, id: Uuid) -> Result<(), Failure> {
    let path = format!("/v1/datasets/{id}");
    let upload = state
        .computation
        .json(Method::GET, &path, Body::Empty)
        .await;
    let upload: Upload = match upload {
        Ok(upload) => upload,
        Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
            return Err(Refusal::NotUploaded.into());
        }
        Err(error) => return Err(error.into()),
    };
    let parts = &upload.contributions;
    if !parts.is_empty() && parts.iter().all(|part| part.state == UploadState::Complete) {
        return Ok(());
    }
    let missing: u64 = (parts.iter())
        .map(|part| part.objects.saturating_sub(part.objects_present))
        .sum();
    Err(Refusal::Incomplete(missing).into())
}

/// Deletes this service's part of a dataset: jobs, releases, models. Jobs under way are stopped:
/// their workers find nothing to write to.
///
/// # Errors
/// There is no such dataset.
pub async fn delete(state: &State, owner: Uuid, id: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let locked = store::lock(&state.base.store, &mut tx, owner, id).await?;
    locked.ok_or_else(Failure::not_found)?;
    store::begin_deletion(&mut tx, id).await?;
    tx.commit().await?;
    state.models.forget(id);
    finish_deletion(state, id).await
}

/// The row goes last, after the blobs: if this is broken off, another finds it.
async fn finish_deletion(state: &State, id: Uuid) -> Result<(), Failure> {
    state.base.blobs.delete_folder(&folder(id)).await?;
    store::finish_deletion(&state.base.store, id).await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// Goes on with deletions that were broken off.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    for id in store::deleting(&state.base.store).await? {
        finish_deletion(state, id).await?;
    }
    Ok(())
}

/// Where all datasets' blobs are.
pub const FOLDER: &str = "datasets";

/// Where a dataset's blobs are.
pub fn folder(dataset: Uuid) -> String {
    format!("{FOLDER}/{dataset}")
}
