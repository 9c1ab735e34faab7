//! Copies of an upload for a second computation service: the first service's answers, and the second
//! service's requests.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::problem::ProblemKind;
use fhaim_api::upload::Listing;
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerClient, PeerError};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::upload::Object;
use futures_util::{StreamExt, stream};
use reqwest::Method;
use std::time::{Duration, Instant};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::objects::manifest;
use super::{StoredUpload, objects, store};
use crate::State;
use crate::problem::Refusal;

/// Number of objects copied at the same time.
const AT_ONCE: usize = 4;

/// Time for which one call copies.
const FOR: Duration = Duration::from_secs(10);

/// Lists the objects of a complete contribution with their digests. Before completion, its holder could still replace
/// objects that the second computation service has copied.
///
/// # Errors
/// A failure of the store; [`ProblemKind::Forbidden`] if the terms name no second computation service;
/// [`Refusal::Incomplete`].
pub async fn listing(
    state: &State,
    stored: &StoredUpload,
    contribution: u32,
) -> Result<Listing, Failure> {
    must_be_witnessed(stored)?;
    if !store::is_part_complete(&state.base.store, stored.dataset, contribution).await? {
        return Err(Refusal::Incomplete.into());
    }
    let present = store::objects(&state.base.store, stored.dataset, contribution).await?;
    let entries = present.into_iter().map(|(name, kept)| (name, kept.digest));
    Ok(Listing {
        objects: entries.collect(),
    })
}

/// Returns the bytes of an object.
///
/// # Errors
/// Those of [`listing`]; [`ProblemKind::NotFound`] for an object that does not exist.
pub async fn object(
    state: &State,
    stored: &StoredUpload,
    contribution: u32,
    name: &str,
) -> Result<Bytes, Failure> {
    must_be_witnessed(stored)?;
    let object: Object = name.parse().map_err(|_| Failure::not_found())?;
    let found = store::object(&state.base.store, stored.dataset, contribution, name);
    let kept = found.await?.ok_or_else(Failure::not_found)?;
    let blob = stored.blob(contribution, object, kept.version);
    Ok(state.base.blobs.get(&blob).await?)
}

/// Checks that the terms name a second computation service, the only service that may see objects.
pub(crate) fn must_be_witnessed(stored: &StoredUpload) -> Result<(), Failure> {
    match stored.terms.witness {
        true => Ok(()),
        false => Err(Failure::forbidden()),
    }
}

/// Copies missing objects of a contribution for a limited time if the first service has the holder's manifest.
/// Returns whether all objects are now present.
///
/// # Errors
/// [`Refusal::Manifest`] if the first service has other objects; its refusals; objects that do not match
/// their digests.
pub(super) async fn copy(
    state: &State,
    first: &PeerClient,
    stored: &StoredUpload,
    contribution: u32,
    of: Digest,
) -> Result<bool, Failure> {
    must_be_witnessed(stored)?;
    let dataset = stored.dataset;
    let folder = format!("/v1/datasets/{dataset}/contributions/{contribution}/objects");
    let listed = first.json(Method::GET, &folder, Body::Empty).await;
    let Listing { objects: listed } = listed.map_err(of_first)?;
    if manifest(listed.iter().map(|(name, digest)| (name, *digest))) != of {
        return Err(Refusal::Manifest.into());
    }
    let present = store::objects(&state.base.store, dataset, contribution).await?;
    let is_there = |name: &str, digest: Digest| {
        let kept = present.get(name);
        kept.is_some_and(|kept| kept.digest == digest)
    };
    let mut missing: Vec<(String, Digest)> = listed.into_iter().collect();
    missing.retain(|(name, digest)| !is_there(name, *digest));
    let until = Instant::now() + FOR;
    let folder = &folder;
    let one = |(name, digest): (String, Digest)| async move {
        if Instant::now() > until {
            return Ok(false);
        }
        let path = format!("{folder}/{}", name.replace('/', "%2F"));
        let bytes = first.bytes(Method::GET, &path, Body::Empty).await;
        let bytes = bytes.map_err(of_first)?;
        objects::put(state, stored, contribution, &name, digest, bytes).await?;
        Ok::<_, Failure>(true)
    };
    let mut copying = std::pin::pin!(stream::iter(missing).map(one).buffer_unordered(AT_ONCE));
    let mut all = true;
    while let Some(copied) = copying.next().await {
        all &= copied?;
    }
    Ok(all)
}

/// Fetches the first service's sealing key of a dataset once all of its contributions are complete there.
///
/// # Errors
/// Refusals of the first service; bytes that are not a key.
pub(super) async fn sealing_key(
    first: &PeerClient,
    dataset: Uuid,
) -> Result<Option<SealingKey>, Failure> {
    let path = format!("/v1/datasets/{dataset}/sealing-key");
    let bytes = match first.bytes(Method::GET, &path, Body::Empty).await {
        Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
            return Ok(None);
        }
        // Takes over the response's buffer, so that no other copy remains.
        bytes => Zeroizing::new(Vec::from(bytes.map_err(of_first)?)),
    };
    let damaged = || Failure::internal("the first computation service's sealing key is invalid");
    SealingKey::from_bytes(&bytes).map(Some).ok_or_else(damaged)
}

fn of_first(error: PeerError) -> Failure {
    Failure::from(error).because("the first computation service")
}
