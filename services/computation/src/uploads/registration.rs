//! Registration of a contribution: checks of its terms, size and layout, and its keys.

use fhaim_api::Digest;
use fhaim_api::keys::KeySet;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::{NewUpload, Upload, WireLayout};
use fhaim_he::{EvaluationKeys, Layout, ParameterSet, PublicKey, RosterKeys, RosterShape};
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::threads::blocking;
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::roster::Partition;
use fhaim_protocol::terms::Terms;
use reqwest::Method;
use uuid::Uuid;

use super::{
    Keys, StoredPart, StoredUpload, find, foreign, number_of, part_plan, plan_core, show, store,
};
use crate::problem::Refusal;
use crate::store::uploads::NewPart;
use crate::{Role, State, limits};

/// Checks that terms have a plan.
async fn check_terms(terms: &Terms) -> Result<(), Failure> {
    let terms = terms.clone();
    let plan = blocking(move || terms.plan().map(drop)).await?;
    Ok(plan.map_err(|error| Refusal::Terms(error.to_string()))?)
}

/// Registers a user's contribution, and the upload if it does not exist yet. Repeating the call changes
/// nothing. Returns whether the contribution is new.
///
/// # Errors
/// [`ProblemKind::Conflict`] if it is registered with other terms or another layout;
/// [`ProblemKind::NotFound`] for another account's dataset or one without keys;
/// [`ProblemKind::Invalid`] for invalid terms and for a roster without the account;
/// [`ProblemKind::Quota`] beyond the account's limit.
pub async fn register(
    state: &State,
    dataset: Uuid,
    user: Uuid,
    new: NewUpload,
) -> Result<(Upload, bool), Failure> {
    let terms = new.terms.0;
    if matches!(state.role, Role::Second { .. }) && !terms.witness {
        return Err(Refusal::Unwitnessed.into());
    }
    let (owner, number) = match place(state, dataset, user, &terms, new.layout).await? {
        Place::Taken(stored, layout) => {
            return existing(state, &stored, layout, new.layout).await;
        }
        Place::Free { owner, number } => (owner, number),
    };
    check_terms(&terms).await?;
    let plan = part_plan(&terms, number, new.layout)?;
    let params = plan_core(&terms)?.parameters().map_err(Failure::internal)?;
    let bytes = plan.bytes(&params);
    check_size(&plan, bytes, state.upload_bytes)?;
    check_counts(&plan, params.set(), state.memory.counts_bytes)?;
    let several = terms.roster.is_some();
    let part = NewPart {
        number,
        owner: several.then_some(user),
        layout: new.layout,
        columns: columns(&terms, number)?,
        bytes: if several { bytes } else { 0 },
    };
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, user, part.bytes).await?;
    drop(tx); // summed up again when the contribution is stored
    let stored = upload(state, dataset, owner, terms, new.layout, bytes).await?;
    if insert_part(state, &stored, user, &part).await? {
        return Ok((show(state, &stored).await?, true));
    }
    // The same call was made twice at the same moment, or while the contribution is being taken back.
    let parts = store::parts(&state.base.store, dataset).await?;
    let part = parts.iter().find(|part| part.number == number);
    let part = part.ok_or_else(|| Failure::overtaken("the contribution is being deleted"))?;
    existing(state, &stored, part.layout, new.layout).await
}

/// The place of a user's contribution.
enum Place {
    /// It is registered in this upload with this layout.
    Taken(Box<StoredUpload>, Option<WireLayout>),
    /// It is not registered yet. The upload of this owner may not exist yet either.
    Free { owner: Uuid, number: u32 },
}

/// Returns the place of a user's contribution to a dataset with these terms.
async fn place(
    state: &State,
    dataset: Uuid,
    user: Uuid,
    terms: &Terms,
    layout: Option<WireLayout>,
) -> Result<Place, Failure> {
    let Some(stored) = store::find(&state.base.store, dataset).await? else {
        let owner = maker(terms, user)?;
        let number = number_of(terms, user, user).ok_or(Refusal::Outsider)?;
        return Ok(Place::Free { owner, number });
    };
    // An account that is not a holder must not learn the terms.
    let number = number_of(&stored.terms, stored.owner, user);
    let number = number.ok_or_else(|| foreign(state, user, dataset))?;
    let stored = same_terms(stored, terms)?;
    let parts = store::parts(&state.base.store, dataset).await?;
    Ok(match parts.iter().find(|part| part.number == number) {
        Some(part) => Place::Taken(Box::new(stored), part.layout),
        // The size of a single holder's upload was counted for its first layout.
        None if terms.roster.is_none() && stored.layout != layout => {
            return Err(Refusal::OtherUpload.into());
        }
        None => Place::Free {
            owner: stored.owner,
            number,
        },
    })
}

/// Stores a contribution if it is within its holder's limit and its rows match those of the others.
/// Returns whether it was stored.
async fn insert_part(
    state: &State,
    stored: &StoredUpload,
    user: Uuid,
    part: &NewPart,
) -> Result<bool, Failure> {
    let dataset = stored.dataset;
    let mut tx = state.base.store.begin().await?;
    // Always locked before an owner's row: two transactions that lock both could otherwise deadlock.
    store::lock_upload(&state.base.store, &mut tx, dataset).await?;
    limits::check(state, &mut tx, user, part.bytes).await?;
    check_rows(
        &stored.terms,
        part,
        &store::parts_in(&mut tx, dataset).await?,
    )?;
    let inserted = store::insert_part(&mut tx, dataset, part).await?;
    if inserted {
        tx.commit().await?;
    }
    Ok(inserted)
}

/// Checks that holders of columns have the same number of rows. If the first run found a difference, it
/// would use up the run, and no contribution could be taken back any more.
fn check_rows(terms: &Terms, own: &NewPart, parts: &[StoredPart]) -> Result<(), Refusal> {
    let partition = terms.roster.as_ref().map(|roster| roster.partition);
    if partition != Some(Partition::Columns) {
        return Ok(());
    }
    let mut others = parts.iter().filter(|part| part.number != own.number);
    match others.find(|part| part.layout != own.layout) {
        Some(other) => Err(Refusal::OtherRows {
            own: row_range(own.layout),
            holder: other.number + 1,
            other: row_range(other.layout),
        }),
        None => Ok(()),
    }
}

/// Returns the minimum and maximum number of rows of a layout, or zeros for counts.
fn row_range(layout: Option<WireLayout>) -> [usize; 2] {
    let layout = layout.map(|layout| Layout::from_parts(layout.chunks, layout.stride));
    let Some(Ok(layout)) = layout else {
        return [0, 0];
    };
    [layout.min_records(), layout.max_records()]
}

/// Returns the owner of the upload: the first holder of the roster, who created the dataset.
fn maker(terms: &Terms, user: Uuid) -> Result<Uuid, Refusal> {
    let first = terms.roster.as_ref().map(|roster| roster.holders.first());
    match first {
        None => Ok(user),
        Some(first) => first
            .and_then(|member| member.account.parse().ok())
            .ok_or(Refusal::Outsider),
    }
}

/// Returns the number of one-hot columns of a part.
fn columns(terms: &Terms, number: u32) -> Result<usize, Refusal> {
    let part = terms.part_schema(number);
    let (schema, _) = part.map_err(|error| Refusal::Terms(error.to_string()))?;
    Ok(schema.domain().columns())
}

/// Returns the upload with these terms, and creates it if necessary.
async fn upload(
    state: &State,
    dataset: Uuid,
    owner: Uuid,
    terms: Terms,
    layout: Option<WireLayout>,
    bytes: u64,
) -> Result<StoredUpload, Failure> {
    if let Some(stored) = store::find(&state.base.store, dataset).await? {
        return same_terms(stored, &terms);
    }
    // For several holders, the size is counted with each contribution.
    let bytes = if terms.roster.is_some() { 0 } else { bytes };
    let mut tx = state.base.store.begin().await?;
    limits::check(state, &mut tx, owner, bytes).await?;
    drop(tx); // summed up again when the upload is stored
    let folder = format!("uploads/{dataset}/{}", Uuid::new_v4());
    let keys = fetch_keys(state, dataset, &folder, &terms).await?;
    let stored = StoredUpload {
        dataset,
        owner,
        terms,
        layout,
        folder,
        keys,
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
        return Err(foreign(state, owner, dataset));
    }
    same_terms(other, &stored.terms)
}

fn same_terms(stored: StoredUpload, terms: &Terms) -> Result<StoredUpload, Failure> {
    if stored.terms == *terms {
        Ok(stored)
    } else {
        Err(Refusal::OtherUpload.into())
    }
}

/// Returns the crypto service's description of the dataset's keys.
///
/// For terms with a roster or shared keys, refuses keys that were made under other terms: anyone who knows a dataset's
/// identifier could otherwise keep its holders out, and the first key service could show terms that name no others. For
/// shared keys, requires the confirmation of all services: the first service could otherwise have made the keys without
/// the others.
async fn key_set(state: &State, dataset: Uuid, terms: &Terms) -> Result<KeySet, Failure> {
    let path = format!("/v1/datasets/{dataset}");
    let made: Result<KeySet, PeerError> = state.crypto.json(Method::GET, &path, Body::Empty).await;
    let made = made.map_err(no_keys)?;
    let agreed = terms.roster.is_some() || !terms.key_services.is_empty();
    if agreed && made.terms.0 != *terms {
        return Err(Refusal::OtherUpload.into());
    }
    made.check_confirmed().map_err(Refusal::Unconfirmed)?;
    // The second service copies an upload again after it was set back. The first cannot get the same objects again.
    if matches!(state.role, Role::First) && made.runs_begun > 0 {
        return Err(Refusal::RunsBegun.into());
    }
    Ok(made)
}

fn no_keys(error: PeerError) -> Failure {
    match error {
        PeerError::Problem { problem, .. } if problem.kind == ProblemKind::NotFound => {
            Refusal::NoKeys.into()
        }
        other => other.into(),
    }
}

/// Stores a new upload if it is within its owner's limit. Returns whether it was stored.
async fn insert(state: &State, stored: &StoredUpload, bytes: u64) -> Result<bool, Failure> {
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
    stored: &StoredUpload,
    known: Option<WireLayout>,
    layout: Option<WireLayout>,
) -> Result<(Upload, bool), Failure> {
    if known != layout {
        return Err(Refusal::OtherUpload.into());
    }
    Ok((show(state, stored).await?, false))
}

/// Checks the size of an upload against the service's limit.
fn check_size(plan: &PartPlan, bytes: u64, most: u64) -> Result<(), Refusal> {
    if bytes <= most {
        return Ok(());
    }
    let vectors = plan.ladder().vectors();
    Err(Refusal::Large {
        megabytes: bytes / 1_000_000,
        most: most / 1_000_000,
        objects: plan.object_count().saturating_sub(vectors),
        vectors,
    })
}

/// Checks the memory of counts, all of which are kept in memory.
fn check_counts(plan: &PartPlan, set: &ParameterSet, most: u64) -> Result<(), Refusal> {
    let PartPlan::Counts(plan) = plan else {
        return Ok(());
    };
    let tables = plan.tables.layout().ciphertexts() as u64;
    let each = set
        .plaintext_moduli
        .len()
        .saturating_mul(set.memory_bytes());
    let bytes = tables.saturating_mul(each as u64);
    if bytes <= most {
        return Ok(());
    }
    Err(Refusal::Counts {
        megabytes: bytes / 1_000_000,
        most: most / 1_000_000,
    })
}

/// Fetches the dataset's public and evaluation keys into a folder. Checks that they are the announced keys and have the
/// upload keys that the terms require.
async fn fetch_keys(
    state: &State,
    dataset: Uuid,
    folder: &str,
    terms: &Terms,
) -> Result<Keys, Failure> {
    let made = key_set(state, dataset, terms).await?;
    let fetch = async |name: &str| {
        let path = format!("/v1/datasets/{dataset}/{name}");
        let keys = state.crypto.bytes(Method::GET, &path, Body::Empty).await;
        keys.map_err(no_keys)
    };
    let public = fetch("public-key").await?;
    let evaluation = fetch("evaluation-keys").await?;
    let params = plan_core(terms)?.parameters().map_err(Failure::internal)?;
    let (public_bytes, evaluation_bytes) = (public.clone(), evaluation.clone());
    let shape = terms.roster_shape();
    let check = move || {
        if Digest::of(&public_bytes) != made.public_key
            || Digest::of(&evaluation_bytes) != made.evaluation_keys
        {
            return Err(Failure::internal(
                "the keys are not those that the crypto service announced",
            ));
        }
        PublicKey::from_bytes(&params, &public_bytes).map_err(Failure::internal)?;
        let keys = EvaluationKeys::from_bytes(&params, &evaluation_bytes);
        let keys = keys.map_err(Failure::internal)?;
        if keys.roster().map(RosterKeys::shape) != shape {
            return Err(Failure::internal(
                "the evaluation keys are for another roster",
            ));
        }
        let holders = 0..shape.map_or(0, RosterShape::holders);
        let uploads = holders.filter_map(|holder| Some(keys.roster()?.upload(holder)?.id()));
        Ok(Keys {
            public: made.public_key,
            evaluation: made.evaluation_keys,
            uploads: uploads.collect(),
        })
    };
    let keys = blocking(check).await??;
    let blobs = &state.base.blobs;
    blobs.put(&format!("{folder}/public"), public).await?;
    blobs
        .put(&format!("{folder}/evaluation"), evaluation)
        .await?;
    Ok(keys)
}
