//! Models of finished jobs: blobs, and the last few in memory.

use bytes::Bytes;
use fhaim_platform::Failure;
use fhaim_platform::threads::blocking;
use fhaim_synth::{FittedModel, load_model};
use futures_util::stream::BoxStream;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

use crate::store::jobs;
use crate::{State, datasets};

/// Bytes that a query of a model may take for each byte its terms allow: what a fit may take.
const QUERY_BYTES_PER_MODEL_BYTE: usize = 64;

struct Kept {
    dataset: Uuid,
    job: Uuid,
    model: Arc<dyn FittedModel>,
}

/// Models in memory, the last used first, up to a number of bytes.
pub struct Models {
    kept: Mutex<VecDeque<Kept>>,
    bytes: usize,
}

impl Models {
    /// None yet, and at most so many bytes of them.
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

    /// Forgets the models of a dataset.
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

/// How many bytes a job's model has as a file, and these as they are read.
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

/// Deletes the model of a job that is there no more.
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

/// A job's model.
///
/// # Errors
/// A failure of the blobs, or a blob that is no model.
pub async fn get(
    state: &State,
    dataset: Uuid,
    job: Uuid,
    model_bytes: usize,
) -> Result<Arc<dyn FittedModel>, Failure> {
    if let Some(model) = state.models.find(job) {
        return Ok(model);
    }
    let saved = state.base.blobs.get(&name(dataset, job)).await?;
    let cap = model_bytes.saturating_mul(QUERY_BYTES_PER_MODEL_BYTE);
    let model = blocking(move || load_model(&saved, cap)).await?;
    let model = model.map_err(Failure::internal)?;
    state.models.keep(dataset, job, &model);
    Ok(model)
}
