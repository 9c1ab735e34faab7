//! Copies of an upload for a second computation service: what the first shows it, and how it takes them
//! in.

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

/// Objects that are copied at a time.
const AT_ONCE: usize = 4;

/// One call copies for so long.
const FOR: Duration = Duration::from_secs(10);

/// Objects of a complete contribution with their digests. Before it is complete, its holder could replace objects that
/// the second computation service has copied.
///
/// # Errors
/// A failure of the store; [`ProblemKind::Forbidden`] where the terms have no second computation service;
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

/// The bytes of an object.
///
/// # Errors
/// As [`listing`]; [`ProblemKind::NotFound`] for one that is not there.
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

/// Nobody but a second computation service that the terms name is shown anything.
pub(crate) fn must_be_witnessed(stored: &StoredUpload) -> Result<(), Failure> {
    match stored.terms.witness {
        true => Ok(()),
        false => Err(Failure::forbidden()),
    }
}

/// Copies what is missing of a contribution, if the first has what its holder says: for a while, and
/// whether it is all there then.
///
/// # Errors
/// [`Refusal::Manifest`] where the first has other objects; what it refuses; objects that are not what
/// they are listed as.
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

/// What the first seals pages of a dataset with, once all of its parts are complete there.
///
/// # Errors
/// What the first refuses; bytes that are no key.
pub(super) async fn sealing_key(
    first: &PeerClient,
    dataset: Uuid,
) -> Result<Option<SealingKey>, Failure> {
    let path = format!("/v1/datasets/{dataset}/sealing-key");
    let bytes = match first.bytes(Method::GET, &path, Body::Empty).await {
        Err(PeerError::Problem { problem, .. }) if problem.kind == ProblemKind::NotFound => {
            return Ok(None);
        }
        // The buffer itself, which nobody else has.
        bytes => Zeroizing::new(Vec::from(bytes.map_err(of_first)?)),
    };
    let damaged = || Failure::internal("the first computation service's sealing key is none");
    SealingKey::from_bytes(&bytes).map(Some).ok_or_else(damaged)
}

fn of_first(error: PeerError) -> Failure {
    Failure::from(error).because("the first computation service")
}
