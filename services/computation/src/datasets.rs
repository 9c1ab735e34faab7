//! Complete uploads in memory, ready to compute on.

use fhaim_he::{EvaluationKeys, PublicKey};
use fhaim_platform::Failure;
use fhaim_protocol::computation::Computation;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::upload::{Object, Upload, decode_object};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

use crate::State;
use crate::uploads::{Stored, WHOLE};

/// A dataset in memory; a batch locks it while it computes.
pub type Loaded = Arc<Mutex<Computation>>;

/// Objects read at a time.
const READS: usize = 16;

/// The datasets used last.
#[derive(Debug)]
pub struct Cache {
    /// Most recently used last.
    loaded: Mutex<Vec<(Uuid, Loaded)>>,
    most: usize,
    /// One dataset is loaded at a time, so that two batches of one do not load it twice.
    loading: tokio::sync::Mutex<()>,
}

impl Cache {
    /// A cache of so many datasets, at least one.
    pub fn new(most: usize) -> Self {
        Self {
            loaded: Mutex::default(),
            most: most.max(1),
            loading: tokio::sync::Mutex::default(),
        }
    }

    /// A dataset, loaded if need be.
    ///
    /// # Errors
    /// Objects or keys that cannot be read.
    pub async fn get(&self, state: &State, stored: &Stored) -> Result<Loaded, Failure> {
        if let Some(loaded) = self.touch(stored.dataset) {
            return Ok(loaded);
        }
        let _one = self.loading.lock().await;
        if let Some(loaded) = self.touch(stored.dataset) {
            return Ok(loaded);
        }
        let loaded = Arc::new(Mutex::new(load(state, stored).await?));
        let mut list = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        list.push((stored.dataset, loaded.clone()));
        if list.len() > self.most {
            list.remove(0);
        }
        Ok(loaded)
    }

    fn touch(&self, dataset: Uuid) -> Option<Loaded> {
        let mut list = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let index = list.iter().position(|(id, _)| *id == dataset)?;
        let entry = list.remove(index);
        let loaded = entry.1.clone();
        list.push(entry);
        Some(loaded)
    }

    /// Lets a dataset go.
    pub fn forget(&self, dataset: Uuid) {
        let mut list = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(id, _)| *id != dataset);
    }
}

async fn load(state: &State, stored: &Stored) -> Result<Computation, Failure> {
    let (plan, upload_plan) = stored.plans().await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let read = |object: Object| {
        let params = params.clone();
        async move {
            let bytes = state.blobs.get(&stored.blob(WHOLE, object)).await?;
            let decode = move || decode_object(&params, &upload_plan, object, &bytes);
            let decoded = tokio::task::spawn_blocking(decode).await;
            let decoded = decoded.map_err(Failure::internal)?;
            Ok::<_, Failure>((object, decoded.map_err(Failure::internal)?))
        }
    };
    let objects = stream::iter(upload_plan.objects()).map(read);
    let mut objects: HashMap<Object, _> = objects.buffer_unordered(READS).try_collect().await?;
    let public = state
        .blobs
        .get(&format!("{}/public", stored.folder))
        .await?;
    let name = format!("{}/evaluation", stored.folder);
    let evaluation = state.blobs.get(&name).await?;
    let dataset = DatasetId(stored.dataset.into_bytes());
    let build = move || {
        let absent = fhaim_protocol::Error::Object("an object is missing");
        let mut absent = Some(absent);
        let upload = Upload::from_objects(&params, upload_plan, |object| {
            objects
                .remove(&object)
                .ok_or_else(|| absent.take().unwrap_or(fhaim_protocol::Error::Refused))
        })?;
        let public = PublicKey::from_bytes(&params, &public)?;
        let keys = EvaluationKeys::from_bytes(&params, &evaluation)?;
        let domain = plan.job.domain.clone();
        Ok(Computation::new(dataset, domain, public, keys, upload))
    };
    tokio::task::spawn_blocking(build)
        .await
        .map_err(Failure::internal)?
        .map_err(|error: fhaim_protocol::Error| Failure::internal(error))
}
