//! Complete uploads, ready to compute on: in memory, or, the columns of large ones, read a few
//! record chunks at a time while a batch runs.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_he::{
    Chunks, Ciphertext, Columns, EvaluationKeys, Layout, Parameters, PublicKey, Threads,
};
use fhaim_platform::Failure;
use fhaim_platform::blobs::{BlobError, Blobs};
use fhaim_platform::threads::blocking;
use fhaim_protocol::computation::Computation;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::terms::Outline;
use fhaim_protocol::upload::{EncryptedLadder, Object, Upload, UploadPlan, decode_object};
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::State;
use crate::uploads::{self, Kept, Stored, WHOLE};

/// A dataset in memory, which any number of batches compute on at the same time.
pub type Loaded = Arc<Computation>;

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
        let loaded = Arc::new(load(state, stored).await?);
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
    let (plan, reader) = Reader::open(state, stored).await?;
    let (params, upload_plan) = (reader.params.clone(), reader.plan);
    let streamed = column_bytes(&upload_plan, &params) > state.memory.dataset_bytes;
    let objects: Box<dyn Iterator<Item = Object> + Send> = if streamed {
        Box::new(upload_plan.noise_objects())
    } else {
        Box::new(upload_plan.objects())
    };
    let mut objects = reader.read(objects.collect()).await?;
    let public = key(state, stored, "public", stored.keys.map(|k| k.public)).await?;
    let digest = stored.keys.map(|k| k.evaluation);
    let evaluation = key(state, stored, "evaluation", digest).await?;
    let dataset = DatasetId(stored.dataset.into_bytes());
    let memory = usize::try_from(state.memory.working_bytes).unwrap_or(usize::MAX);
    let build = move || {
        let absent = || fhaim_protocol::Error::Object("an object is missing");
        let get = |object: Object| objects.remove(&object).ok_or_else(absent);
        let upload = if streamed {
            Upload {
                plan: upload_plan,
                ladder: EncryptedLadder::from_objects(&params, upload_plan, get)?,
                table: Arc::new(reader),
            }
        } else {
            Upload::from_objects(&params, upload_plan, get)?
        };
        let public = PublicKey::from_bytes(&params, &public)?;
        let keys = EvaluationKeys::from_bytes(&params, &evaluation)?;
        let domain = plan.domain.clone();
        let computation = Computation::new(dataset, domain, public, keys, upload);
        Ok(computation.with_backend(Arc::new(Threads::with_memory(memory))))
    };
    let built = blocking(build).await?;
    built.map_err(|error: fhaim_protocol::Error| Failure::internal(error))
}

/// One of a dataset's keys: the bytes that the crypto service sent, if their digest was kept.
async fn key(
    state: &State,
    stored: &Stored,
    name: &'static str,
    digest: Option<Digest>,
) -> Result<Bytes, Failure> {
    let blob = format!("{}/{name}", stored.folder);
    let bytes = state.base.blobs.get(&blob).await;
    let bytes = bytes.map_err(|error| not_read(error, &blob))?;
    let check = move || match digest {
        Some(digest) if Digest::of(&bytes) != digest => Err(damaged(&blob)),
        _ => Ok(bytes),
    };
    blocking(check).await?
}

/// A blob that cannot be read: worth another try, unless it is not there.
fn not_read(error: BlobError, what: &str) -> Failure {
    let cause = format!("{what}: {error}");
    Failure::from(error).because(cause)
}

fn damaged(what: impl std::fmt::Display) -> Failure {
    Failure::internal(format!(
        "{what}: what is stored is not what its digest says"
    ))
}

/// What an upload's columns take in memory.
fn column_bytes(plan: &UploadPlan, params: &Parameters) -> u64 {
    let objects = plan.columns.saturating_mul(plan.layout.chunks()) as u64;
    objects.saturating_mul((plan.residues * params.set().memory_bytes()) as u64)
}

/// Reads an upload's objects from where they are kept; also a table whose columns stay there.
#[derive(Clone, Debug)]
pub struct Reader {
    blobs: Blobs,
    stored: Stored,
    objects: Arc<HashMap<Object, Kept>>,
    params: Parameters,
    plan: UploadPlan,
    /// Where reads run while a batch, on a thread of its own, waits for them.
    runtime: Handle,
}

impl Reader {
    /// The reader of an upload, and the plan that it follows.
    ///
    /// # Errors
    /// A failure of the store.
    pub async fn open(state: &State, stored: &Stored) -> Result<(Outline, Self), Failure> {
        let (plan, upload_plan) = uploads::plans(stored)?;
        let reader = Self {
            blobs: state.base.blobs.clone(),
            stored: stored.clone(),
            objects: Arc::new(uploads::objects(state, stored, WHOLE).await?),
            params: plan.parameters().map_err(Failure::internal)?,
            plan: upload_plan,
            runtime: Handle::current(),
        };
        Ok((plan, reader))
    }

    async fn read(
        &self,
        objects: Vec<Object>,
    ) -> Result<HashMap<Object, Vec<Ciphertext>>, Failure> {
        let objects = stream::iter(objects).map(|object| self.read_one(object));
        objects.buffer_unordered(READS).try_collect().await
    }

    /// Reads an object: what was put, or nothing.
    async fn read_one(&self, object: Object) -> Result<(Object, Vec<Ciphertext>), Failure> {
        let kept = self.objects.get(&object).copied();
        let kept = kept.ok_or_else(|| Failure::internal(format!("{object} is missing")))?;
        let blob = self.stored.blob(WHOLE, object, kept.version);
        let bytes = self.blobs.get(&blob).await;
        let bytes = bytes.map_err(|error| not_read(error, &blob))?;
        let (params, plan) = (self.params.clone(), self.plan);
        let decode = move || {
            if Digest::of(&bytes) != kept.digest {
                return Err(damaged(blob));
            }
            let decoded = decode_object(&params, &plan, object, &bytes);
            decoded.map_err(|error| Failure::internal(format!("{blob}: {error}")))
        };
        Ok((object, blocking(decode).await??))
    }
}

impl Columns for Reader {
    fn params(&self) -> &Parameters {
        &self.params
    }

    fn layout(&self) -> Layout {
        self.plan.layout
    }

    fn count(&self) -> usize {
        self.plan.columns
    }

    fn read(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: Range<usize>,
    ) -> fhaim_he::Result<Vec<Chunks>> {
        let object = |column: usize| move |chunk: usize| Object::Column { column, chunk };
        let objects = columns.iter().flat_map(|&c| chunks.clone().map(object(c)));
        let unavailable = |reason: String| fhaim_he::Error::Unavailable(reason);
        let mut read = self
            .runtime
            .block_on(Self::read(self, objects.collect()))
            .map_err(|failure| unavailable(failure.to_string()))?;
        let mut take = |object: Object| {
            let ciphertexts = read.remove(&object).unwrap_or_default();
            let ciphertext = ciphertexts.into_iter().nth(residue);
            let absent = || unavailable(format!("{object} is missing"));
            ciphertext.map(Arc::new).ok_or_else(absent)
        };
        let column = |&c: &usize| chunks.clone().map(object(c)).map(&mut take).collect();
        columns.iter().map(column).collect()
    }
}
