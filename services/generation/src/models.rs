//! Models of finished jobs: stored as blobs, with the most recently used in memory.

use bytes::Bytes;
use fhaim_api::problem::ProblemKind;
use fhaim_platform::Failure;
use fhaim_platform::blobs::BlobError;
use fhaim_platform::threads::blocking;
use fhaim_synth::{FittedModel, load_model};
use futures_util::stream::BoxStream;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

use crate::problem::Refusal;
use crate::store::{datasets as parents, jobs};
use crate::{State, datasets};

/// Memory limit of a query in bytes for each byte of the terms' model limit; equal to the limit of a fit.
const QUERY_BYTES_PER_MODEL_BYTE: usize = 64;

struct Kept {
    dataset: Uuid,
    job: Uuid,
    model: Arc<dyn FittedModel>,
}

/// A cache of models up to a number of bytes, the most recently used first.
pub struct Models {
    kept: Mutex<VecDeque<Kept>>,
    bytes: usize,
}

impl Models {
    /// Returns an empty cache that holds at most `bytes` bytes of models.
    pub fn new(bytes: usize) -> Self {
        Self {
            kept: Mutex::default(),
            bytes,
        }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, job: Uuid) -> Option<Arc<dyn FittedModel>> {
        let mut kept = self.kept();
        let place = kept.iter().position(|other| other.job == job)?;
        let found = kept.remove(place)?;
        let model = found.model.clone();
        kept.push_front(found);
        Some(model)
    }

    fn keep(&self, dataset: Uuid, job: Uuid, model: &Arc<dyn FittedModel>) {
        let mut kept = self.kept();
        kept.retain(|other| other.job != job);
        kept.push_front(Kept {
            dataset,
            job,
            model: model.clone(),
        });
        let mut bytes = 0;
        kept.retain(|other| {
            bytes += other.model.bytes();
            bytes <= self.bytes
        });
    }

    /// Removes the models of a dataset.
    pub fn forget(&self, dataset: Uuid) {
        self.kept().retain(|other| other.dataset != dataset);
    }
}

fn name(dataset: Uuid, job: Uuid) -> String {
    format!("{}/jobs/{job}/model", datasets::folder(dataset))
}

/// Stores a job's model.
///
/// # Errors
/// A failure of the blobs.
pub async fn put(state: &State, dataset: Uuid, job: Uuid, model: Vec<u8>) -> Result<(), Failure> {
    let blob = name(dataset, job);
    Ok(state.base.blobs.put(&blob, Bytes::from(model)).await?)
}

/// Returns a job's model as a stream, with its size in bytes.
///
/// # Errors
/// A failure of the blobs.
pub async fn stream(
    state: &State,
    dataset: Uuid,
    job: Uuid,
) -> Result<(u64, BoxStream<'static, io::Result<Bytes>>), Failure> {
    Ok(state.base.blobs.stream(&name(dataset, job)).await?)
}

/// Deletes the model of a job that no longer exists.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn discard_unnamed(state: &State, dataset: Uuid, job: Uuid) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    if jobs::find(&mut tx, job).await?.is_none() {
        state.base.blobs.delete(&name(dataset, job)).await?;
    }
    Ok(())
}

fn damaged(dataset: Uuid, job: Uuid) -> Failure {
    Refusal::DamagedModel { job, dataset }.into()
}

/// Returns whether a job's stored model can be read.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn is_whole(state: &State, dataset: Uuid, job: Uuid) -> Result<bool, Failure> {
    let terms = parents::terms(&state.base.store, dataset).await?;
    let terms = terms.ok_or_else(Failure::not_found)?;
    match get(state, dataset, job, terms.model_bytes).await {
        Ok(_) => Ok(true),
        Err(failure) if failure.kind() == ProblemKind::Damaged => Ok(false),
        Err(failure) => Err(failure),
    }
}

/// Returns a job's model, from memory if possible.
///
/// # Errors
/// A failure of the blobs, or a model that is missing or damaged, with the job and its dataset.
pub async fn get(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    model_bytes: usize,
) -> Result<Arc<dyn FittedModel>, Failure> {
    if let Some(model) = state.models.find(job) {
        return Ok(model);
    }
    let saved = match state.base.blobs.get(&name(dataset, job)).await {
        Err(error @ BlobError::Absent) => return Err(damaged(dataset, job).because(error)),
        saved => saved?,
    };
    let cap = model_bytes.saturating_mul(QUERY_BYTES_PER_MODEL_BYTE);
    let model = blocking(move || load_model(&saved, cap)).await?;
    let model = model.map_err(|error| damaged(dataset, job).because(error))?;
    state.models.keep(dataset, job, &model);
    Ok(model)
}
