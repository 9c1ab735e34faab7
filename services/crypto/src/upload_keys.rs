//! Upload keys of a roster. Each holder fetches the seeds of its key, one from each key service.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::keys::{UploadKeyRequest, UploadKeySeeds};
use fhaim_platform::threads::blocking;
use fhaim_platform::token::Caller;
use fhaim_platform::{Failure, clock};
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::upload_key::SeedRequest;
use uuid::Uuid;

use crate::State;
use crate::audit::Asked;
use crate::keys::{self, StoredKeySet};
use crate::limits::DAY;
use crate::problem::Refusal;
use crate::shares;

/// Maximum number of requests of one holder for the upload key of one dataset within 24 hours. The audit log has each.
pub const UPLOAD_KEYS_A_DAY: u64 = 200;

/// Returns the seeds of the caller's upload key, each encrypted to the request's one-time key, in the order of the
/// terms' key services.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) for callers that are not in the roster, and
/// if the keys are destroyed; [`Refusal::Signature`] for a request that is not signed with the holder's key;
/// [`Refusal::UploadKeysToday`] beyond [`UPLOAD_KEYS_A_DAY`] requests;
/// [`ProblemKind::Unavailable`](fhaim_api::problem::ProblemKind::Unavailable) if another key service does not answer.
pub async fn fetch(
    state: &State,
    dataset: Uuid,
    holder: Uuid,
    asked: &UploadKeyRequest,
) -> Result<UploadKeySeeds, Failure> {
    let stored = keys::find(state, dataset).await?;
    let number = stored.terms.part_of(&holder.to_string());
    let number = number.filter(|_| !stored.is_destroyed());
    let number = number.ok_or_else(|| keys::foreign(state, holder, dataset))?;
    let request = signed(&stored, number, asked)?;
    let entry = Asked {
        dataset,
        actor: Caller::User(holder),
        action: "fetch an upload key",
    };
    record(state, &entry).await?;
    let seeds = if stored.terms.key_services.is_empty() {
        let params = keys::plan_core(&stored.terms)?.parameters();
        let secret = stored.secret(state, &params.map_err(Failure::internal)?)?;
        let sealing = move || request.seal(0, &secret.upload_seed(number as usize));
        let sealed = blocking(sealing).await?;
        vec![sealed.map_err(|error| Refusal::Terms(error.to_string()))?]
    } else {
        shares::first::upload_seeds(state, &stored, request, asked).await?
    };
    let text = |seed: &Vec<u8>| URL_SAFE_NO_PAD.encode(seed);
    Ok(UploadKeySeeds {
        seeds: seeds.iter().map(text).collect(),
    })
}

/// Records a request for an upload key in the audit log, before a seed is sent.
///
/// # Errors
/// [`Refusal::UploadKeysToday`]; [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) if the keys are
/// destroyed.
pub(crate) async fn record(state: &State, entry: &Asked<'_>) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    if keys::lock(state, &mut tx, entry.dataset)
        .await?
        .is_destroyed()
    {
        return Err(Failure::not_found());
    }
    if entry.count(&mut tx, clock::now() - DAY).await? >= UPLOAD_KEYS_A_DAY {
        return Err(Refusal::UploadKeysToday.into());
    }
    entry.write(&mut tx, true).await?;
    Ok(tx.commit().await?)
}

/// Returns a holder's request for its upload key, after verifying its signature.
///
/// # Errors
/// [`Refusal::Signature`].
pub fn signed(
    stored: &StoredKeySet,
    holder: u32,
    asked: &UploadKeyRequest,
) -> Result<SeedRequest, Failure> {
    let roster = stored.terms.roster.as_ref();
    let member = roster.and_then(|roster| roster.holders.get(holder as usize));
    let member = member.ok_or_else(Failure::not_found)?;
    let request = SeedRequest {
        dataset: DatasetId(stored.dataset.into_bytes()),
        holder,
        evaluation_keys: stored.evaluation_keys.0,
        one_time_key: asked.one_time_key,
    };
    let verified = request.verify(member, &asked.signature);
    verified.map_err(|error| Refusal::Signature(error.to_string()))?;
    Ok(request)
}
