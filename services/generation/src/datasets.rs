//! Datasets: their terms, and the progress of their uploads.

use fhaim_api::account::Secret;
use fhaim_api::dataset::{Dataset, DatasetState, NewDataset, NewName, Voucher};
use fhaim_api::problem::ProblemKind;
use fhaim_api::token::Service;
use fhaim_api::upload::{Upload, UploadState};
use fhaim_api::{Page, Paging};
use fhaim_domain::Domain;
use fhaim_dp::Rho;
use fhaim_platform::Failure;
use fhaim_platform::housekeeping::Each;
use fhaim_platform::peer::{Body, PeerClient, PeerError};
use fhaim_platform::server::BODY_LIMIT;
use fhaim_protocol::terms::Terms;
use fhaim_release::MAX_HOLDERS;
use fhaim_synth::Mechanisms;
use reqwest::Method;
use std::time::Duration;
use uuid::Uuid;

use crate::accounts::checked_name;
use crate::paging::Cut;
use crate::problem::Refusal;
use crate::put::Put;
use crate::store::{accounts, datasets as store};
use crate::{State, limits};

const MAX_NAME: usize = 200;

/// Number of tries of a call that continues a deletion. The next round tries again.
const DELETION_TRIES: u32 = 2;

/// Service named in entries of the security log.
const SERVICE: Service = Service::Generation;

/// Creates a dataset under the identifier that its holder chose. Repeating the call changes nothing.
///
/// # Errors
/// An invalid name or terms; a dataset with this identifier that is different or belongs to another
/// account; too many datasets.
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
    if terms.witness && state.witness.is_none() {
        return Err(Refusal::NoWitness.into());
    }
    let mut tx = state.base.store.begin().await?;
    limits::check_dataset(state, &mut tx, owner).await?;
    drop(tx); // counted again when the dataset is stored
    check_roster(state, owner, &terms).await?;
    let (terms, budget) = planned(state, terms).await?;
    let mut tx = state.base.store.begin().await?;
    limits::check_dataset(state, &mut tx, owner).await?;
    if store::insert(&mut tx, (owner, id), &name, &terms, budget).await? {
        tx.commit().await?;
        return Ok(Put::Made(show(state, owner, id).await?));
    }
    drop(tx);
    // The same call was made twice at the same moment.
    let found = alike(state, owner, id, &name, &terms).await?;
    found.map(Put::Found).ok_or_else(Failure::not_found)
}

/// Returns the dataset with an identifier, if it exists and equals the one that the caller creates.
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

/// Checks that a roster begins with the account that creates the dataset, and that every holder has
/// an account.
async fn check_roster(state: &State, owner: Uuid, terms: &Terms) -> Result<(), Failure> {
    let Some(roster) = &terms.roster else {
        return Ok(());
    };
    let own = owner.to_string();
    if roster
        .holders
        .first()
        .is_none_or(|first| first.account != own)
    {
        return Err(Refusal::First(owner).into());
    }
    let most = MAX_HOLDERS as usize;
    if roster.holders.len() > most {
        return Err(Refusal::Holders(most).into());
    }
    for (number, member) in (1..).zip(&roster.holders) {
        let unknown = || Refusal::Holder(number);
        let account: Uuid = member.account.parse().map_err(|_| unknown())?;
        // Holders are found by the text of their identifier, so only one spelling is accepted.
        if account.to_string() != member.account {
            return Err(unknown().into());
        }
        let found = accounts::find(&state.base.store, account).await?;
        found.ok_or_else(unknown)?;
    }
    Ok(())
}

/// Bytes of a number in the JSON of a one-way's functions, most of which are -1 or 0.
const FUNCTION_BYTES: usize = 3;

/// Most numbers in the functions of all one-ways, which a job requests in one batch.
const MAX_FUNCTION_VALUES: usize = BODY_LIMIT / FUNCTION_BYTES;

/// Checks, before anything is planned, that the one-ways of all attributes fit into one request. Each has a function
/// of all categories for every category.
fn check_width(domain: &Domain) -> Result<(), Refusal> {
    let attributes = (0..domain.len()).filter(|&attribute| !domain.is_digit(attribute));
    let squares = attributes.map(|attribute| domain.size(attribute).saturating_pow(2));
    let values = squares.fold(0, usize::saturating_add);
    if values <= MAX_FUNCTION_VALUES {
        return Ok(());
    }
    Err(Refusal::Wide {
        values,
        most: MAX_FUNCTION_VALUES,
        categories: MAX_FUNCTION_VALUES.isqrt(),
    })
}

/// Completes a dataset's terms and computes its budget, with the same plan as the other services.
async fn planned(state: &State, terms: Terms) -> Result<(Terms, Rho), Failure> {
    let (most, asked) = (state.config.limits.model_bytes, terms.model_bytes);
    if asked > most {
        return Err(Refusal::ModelBytes { most, asked }.into());
    }
    check_width(terms.schema.domain())?;
    let work = move || {
        let terms = terms.complete(&Mechanisms)?;
        let budget = terms.plan()?.core.budget;
        Ok((terms, budget))
    };
    let planned = state.plans.blocking(work).await?;
    Ok(planned.map_err(|error: fhaim_protocol::Error| Refusal::Terms(error.to_string()))?)
}

/// Returns a dataset of which a user is a sole or joint holder.
///
/// # Errors
/// The user holds no such dataset.
pub async fn show(state: &State, user: Uuid, id: Uuid) -> Result<Dataset, Failure> {
    // Before the dataset is read, which may be damaged: others must not learn that it exists.
    let owner = store::owner(&state.base.store, id).await?;
    let owner = owner.ok_or_else(Failure::not_found)?;
    if owner != user && !store::is_held(&state.base.store, id, user).await? {
        return Err(Failure::foreign(SERVICE, user, "dataset", id));
    }
    let found = store::find(&state.base.store, id).await?;
    let found = found.ok_or_else(Failure::not_found)?;
    let dataset = found.dataset.ok_or_else(Failure::not_found)?;
    let holders = store::holders(&state.base.store, id).await?;
    Ok(Dataset { holders, ..dataset })
}

/// Checks that an account created the dataset.
async fn must_own(state: &State, owner: Uuid, id: Uuid) -> Result<(), Failure> {
    match store::owner(&state.base.store, id).await? {
        Some(found) if found == owner => Ok(()),
        Some(_) => Err(Failure::foreign(SERVICE, owner, "dataset", id)),
        None => Err(Failure::not_found()),
    }
}

/// Renames an owner's dataset. The name is only for people: terms, keys and links stay the same.
///
/// # Errors
/// No such dataset, or another holder created it; an invalid name.
pub async fn rename(
    state: &State,
    owner: Uuid,
    id: Uuid,
    new: NewName,
) -> Result<Dataset, Failure> {
    let name = checked_name("name", new.name, MAX_NAME)?;
    must_own(state, owner, id).await?;
    store::rename(&state.base.store, id, &name).await?;
    show(state, owner, id).await
}

/// Lists the datasets of which a user is a sole or joint holder.
///
/// # Errors
/// Invalid paging parameters.
pub async fn list(state: &State, user: Uuid, paging: &Paging) -> Result<Page<Dataset>, Failure> {
    let cut = Cut::new(paging)?;
    let mut datasets = store::list(&state.base.store, user, &cut).await?;
    for dataset in (datasets.list.iter_mut()).filter_map(|entry| entry.item.as_mut()) {
        if dataset.terms.0.roster.is_some() {
            dataset.holders = store::holders(&state.base.store, dataset.id).await?;
        }
    }
    Ok(datasets.page(&cut))
}

/// Lifetime of a voucher. Clients show it to the crypto service as soon as they get it.
const VOUCHER_LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Vouches for an owner's dataset to the crypto service, unless this service knows that it has keys.
///
/// # Errors
/// No such dataset; [`Refusal::HasKeys`].
pub async fn vouch(state: &State, owner: Uuid, id: Uuid) -> Result<Voucher, Failure> {
    must_own(state, owner, id).await?;
    show(state, owner, id).await?;
    if store::had_keys(&state.base.store, id).await? {
        return Err(Refusal::HasKeys.into());
    }
    let voucher = state.base.signer.voucher(owner, id, VOUCHER_LIFETIME)?;
    Ok(Voucher {
        voucher: Secret(voucher),
        expires_in: VOUCHER_LIFETIME.as_secs(),
    })
}

/// Marks a dataset as ready if the computation services have all of its objects.
///
/// # Errors
/// No such dataset; an incomplete upload; a computation service that cannot be reached.
pub async fn make_ready(state: &State, owner: Uuid, id: Uuid) -> Result<Dataset, Failure> {
    let dataset = show(state, owner, id).await?;
    if dataset.state == DatasetState::Ready {
        return Ok(dataset);
    }
    let terms = &dataset.terms.0;
    check_upload(&state.computation, id, terms.part_count()).await?;
    if terms.witness {
        let second = state.witness.as_ref().ok_or(Refusal::NoWitness)?;
        check_upload(second, id, terms.part_count()).await?;
    }
    store::make_ready(&state.base.store, id).await?;
    show(state, owner, id).await
}

async fn check_upload(computation: &PeerClient, id: Uuid, of: usize) -> Result<(), Failure> {
    let path = format!("/v1/datasets/{id}");
    let upload = computation.json(Method::GET, &path, Body::Empty).await;
    let upload: Upload = match upload {
        Ok(upload) => upload,
        Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
            return Err(Refusal::NotUploaded.into());
        }
        Err(error) => return Err(error.into()),
    };
    let parts = &upload.contributions;
    if parts.len() < of {
        let there = parts.len();
        return Err(Refusal::Absent { there, of }.into());
    }
    if !parts.is_empty() && parts.iter().all(|part| part.state == UploadState::Complete) {
        return Ok(());
    }
    let missing: u64 = (parts.iter())
        .map(|part| part.objects.saturating_sub(part.objects_present))
        .sum();
    Err(Refusal::Incomplete(missing).into())
}

/// Marks a dataset as being deleted, so that no job begins, and the deletion is continued if its caller stops.
///
/// # Errors
/// No such dataset.
pub async fn begin_deletion(state: &State, owner: Uuid, id: Uuid) -> Result<(), Failure> {
    must_own(state, owner, id).await?;
    Ok(store::mark_deleting(&state.base.store, id).await?)
}

/// Deletes this service's part of a dataset: jobs, releases, models. The workers of running jobs
/// stop at their next write, which finds no row.
///
/// # Errors
/// No such dataset.
pub async fn delete(state: &State, owner: Uuid, id: Uuid) -> Result<(), Failure> {
    must_own(state, owner, id).await?;
    let mut tx = state.base.store.begin().await?;
    if !store::begin_deletion(&mut tx, id).await? {
        return Err(Failure::not_found());
    }
    tx.commit().await?;
    state.models.forget(id);
    finish_deletion(state, id).await
}

/// Deletes blobs first and the row last, so that an interrupted deletion is found and resumed.
async fn finish_deletion(state: &State, id: Uuid) -> Result<(), Failure> {
    state.base.blobs.delete_folder(&folder(id)).await?;
    state.base.store.owe_forgetting();
    store::finish_deletion(&state.base.store, id).await?;
    state.base.store.forget_deleted().await?;
    Ok(())
}

/// Resumes interrupted deletions: those of this service's part, and those that an owner's program began and did not
/// finish at the other services.
///
/// # Errors
/// A failure of the store or of the blobs. Services that do not answer are logged, and asked again later.
pub async fn finish_deletions(state: &State) -> Result<(), Failure> {
    let mut each = Each::default();
    for id in store::erasing(&state.base.store).await? {
        each.add(id, finish_deletion(state, id).await);
    }
    for (id, owner) in store::deleting(&state.base.store).await? {
        match delete_elsewhere(state, owner, id).await {
            Ok(()) => each.add(id, delete(state, owner, id).await),
            Err(error) => tracing::warn!(dataset = %id, %error, "a deletion is not finished yet"),
        }
    }
    each.end()
}

/// Deletes a dataset at the other services for its owner, in the order of the owner's program: the keys first.
async fn delete_elsewhere(state: &State, owner: Uuid, id: Uuid) -> Result<(), PeerError> {
    let path = format!("/v1/datasets/{id}");
    let peers = [
        Some(&state.crypto),
        Some(&state.computation),
        state.witness.as_ref(),
    ];
    for peer in peers.into_iter().flatten() {
        let peer = peer.for_user(owner).with_tries(DELETION_TRIES);
        match peer.bytes(Method::DELETE, &path, Body::Empty).await {
            Ok(_) => {}
            // The dataset never reached this service, or it is deleted there.
            Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Folder of all datasets' blobs.
pub const FOLDER: &str = "datasets";

/// Returns the folder of a dataset's blobs.
pub fn folder(dataset: Uuid) -> String {
    format!("{FOLDER}/{dataset}")
}
