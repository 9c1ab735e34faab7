//! Complete uploads, loaded to compute on. The columns of large ones are not kept in memory but read
//! while a batch runs, a few record chunks at a time. Noise is read when a page needs it.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_he::{
    BlobPlace, Chunks, Columns, EncryptedTable, EvaluationKeys, Layout, Parameters, ProductKey,
    PublicKey, Section, UploadKeyId,
};
use fhaim_platform::Failure;
use fhaim_platform::blobs::{BlobError, Blobs};
use fhaim_platform::threads::blocking;
use fhaim_protocol::computation::{Computation, SealedBatch};
use fhaim_protocol::counts::upload::CountsUpload;
use fhaim_protocol::encryption::Payload;
use fhaim_protocol::joint::{SwitchKeys, UploadedPart, join};
use fhaim_protocol::noise::NoiseObjects;
use fhaim_protocol::part::PartPlan;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::upload::{Object, UploadPlan, record_chunks, table};
use fhaim_protocol::window::Window;
use fhaim_release::ReleaseRequest;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::uploads as store;
use crate::uploads::{self, Kept, StoredUpload};

/// A loaded dataset. Any number of batches can use it at the same time.
#[derive(Debug)]
pub struct Loaded {
    computation: Computation,
    reads: Arc<Reads>,
}

impl Loaded {
    /// Computes and seals a batch. Takes long, and reads objects on the calling thread.
    ///
    /// # Errors
    /// The failure of the blob store; [`Refusal::Damaged`] for an object that is missing or damaged;
    /// [`Refusal::Batch`] for a batch that cannot be computed.
    pub fn answer(
        &self,
        window: &Window,
        requests: &[ReleaseRequest],
        key: &SealingKey,
    ) -> Result<SealedBatch, Failure> {
        let answer = self.computation.answer(window, requests, key);
        answer.map_err(|error| match is_read(&error) {
            true => self.reads.failure(error),
            false => Refusal::Batch(error.to_string()).into(),
        })
    }
}

/// Returns whether an object could not be read.
fn is_read(error: &fhaim_protocol::Error) -> bool {
    use fhaim_protocol::Error::{Away, Encryption};
    matches!(error, Encryption(fhaim_he::Error::Unavailable(_)) | Away(_))
}

/// The last failure to read an object of a dataset. The protocol's errors have only its text, and the kind decides
/// whether a batch is tried again.
#[derive(Debug, Default)]
struct Reads(Mutex<Option<Failure>>);

impl Reads {
    /// Stores a failure, and converts it for the protocol.
    fn keep(&self, failure: Failure) -> fhaim_he::Error {
        let text = failure.to_string();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        fhaim_he::Error::Unavailable(text)
    }

    /// Converts an error back. An error that was not stored needs an operator.
    fn failure(&self, error: fhaim_protocol::Error) -> Failure {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match kept {
            Some(failure) if is_read(&error) => failure,
            _ => Failure::internal(error),
        }
    }
}

/// Number of objects read at the same time.
const READS: usize = 16;

/// A cache of the most recently used datasets.
#[derive(Debug)]
pub struct Cache {
    /// Most recently used last.
    loaded: Mutex<Vec<(Uuid, Arc<Loaded>)>>,
    most: usize,
    /// Loads one dataset at a time, so that two batches do not load the same one.
    loading: tokio::sync::Mutex<()>,
}

impl Cache {
    /// Returns a cache of at most `most` datasets, at least one.
    pub fn new(most: usize) -> Self {
        Self {
            loaded: Mutex::default(),
            most: most.max(1),
            loading: tokio::sync::Mutex::default(),
        }
    }

    /// Returns a dataset, and loads it if necessary.
    ///
    /// # Errors
    /// Objects or keys that cannot be read.
    pub async fn get(&self, state: &State, stored: &StoredUpload) -> Result<Arc<Loaded>, Failure> {
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

    fn touch(&self, dataset: Uuid) -> Option<Arc<Loaded>> {
        let mut list = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let index = list.iter().position(|(id, _)| *id == dataset)?;
        let entry = list.remove(index);
        let loaded = entry.1.clone();
        list.push(entry);
        Some(loaded)
    }

    /// Removes a dataset from the cache.
    pub fn forget(&self, dataset: Uuid) {
        let mut list = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|(id, _)| *id != dataset);
    }
}

async fn load(state: &State, stored: &StoredUpload) -> Result<Loaded, Failure> {
    let plan_core = uploads::plan_core(&stored.terms)?;
    let params = plan_core.parameters().map_err(Failure::internal)?;
    let parts = PartReader::open_all(state, stored, &params).await?;
    let reads = parts
        .first()
        .map(|part| part.reads.clone())
        .unwrap_or_default();
    let bytes = parts
        .iter()
        .map(PartReader::column_bytes)
        .fold(0, u64::saturating_add);
    let kept = bytes <= state.memory.dataset_bytes;
    let mut tables = Vec::with_capacity(parts.len());
    for part in &parts {
        tables.extend(part.columns(kept).await?);
    }
    let public = key(state, stored, "public", stored.keys.public).await?;
    let evaluation = key(state, stored, "evaluation", stored.keys.evaluation).await?;
    let dataset = DatasetId(stored.dataset.into_bytes());
    let backend = state.engine.backend(BlobPlace {
        name: format!("{}/evaluation", stored.folder),
        digest: stored.keys.evaluation.0,
    });
    let shape = stored.terms.roster_shape();
    let build = move || {
        let public = PublicKey::from_bytes(&params, &public)?;
        let keys = EvaluationKeys::from_bytes(&params, &evaluation)?;
        let (holders, domain) = (&plan_core.holders, plan_core.domain.clone());
        let mut ahead = ReadAhead::new(&parts);
        let mut get = |holder, object| ahead.get(holder, object);
        let noise = Arc::new(StoredNoise(parts.clone()));
        let switch_keys = match shape {
            None => SwitchKeys::own(|object| get(0, object))?,
            Some(shape) => SwitchKeys::of_roster(&keys, shape)?,
        };
        let computation = match parts.first().map(|part| &part.plan) {
            Some(PartPlan::Counts(plan)) => {
                let joined = CountsUpload::join(&params, plan, holders, &switch_keys, get, noise)?;
                Computation::of_counts(dataset, public, keys, joined)?
            }
            _ => {
                let joined = join(&domain, holders, tables, switch_keys, noise)?;
                Computation::new(dataset, domain, public, keys, joined)
            }
        };
        Ok(computation.with_backend(backend))
    };
    match blocking(build).await? {
        Ok(computation) => Ok(Loaded { computation, reads }),
        Err(error) => Err(reads.failure(error)),
    }
}

/// Reads one of a dataset's keys and checks its digest.
async fn key(
    state: &State,
    stored: &StoredUpload,
    name: &'static str,
    digest: Digest,
) -> Result<Bytes, Failure> {
    let blob = format!("{}/{name}", stored.folder);
    let bytes = state.base.blobs.get(&blob).await;
    let what = format!("{name} key");
    let bytes = bytes.map_err(|error| not_read(error, stored.dataset, &what, &blob))?;
    let dataset = stored.dataset;
    let check = move || match Digest::of(&bytes) == digest {
        true => Ok(bytes),
        false => Err(damaged(dataset, what).because(blob)),
    };
    blocking(check).await?
}

/// Converts an error of reading a blob. It is temporary unless the blob is missing.
fn not_read(error: BlobError, dataset: Uuid, what: &str, blob: &str) -> Failure {
    let cause = format!("{blob}: {error}");
    match error {
        BlobError::Absent => damaged(dataset, what.to_owned()).because(cause),
        other => Failure::from(other).because(cause),
    }
}

/// Makes the failure for stored data that is missing or damaged. Only the dataset's own batches fail, and they are not
/// tried again.
fn damaged(dataset: Uuid, what: String) -> Failure {
    Refusal::Damaged { dataset, what }.into()
}

/// Returns the memory of an upload's columns in bytes.
fn column_bytes(plan: &UploadPlan, params: &Parameters) -> u64 {
    let objects = plan.columns.saturating_mul(plan.layout.chunks()) as u64;
    objects.saturating_mul((plan.residues * params.set().memory_bytes()) as u64)
}

/// Reads the stored objects of a contribution.
#[derive(Clone, Debug)]
pub struct PartReader {
    blobs: Blobs,
    stored: StoredUpload,
    number: u32,
    objects: Arc<HashMap<Object, Kept>>,
    params: Parameters,
    plan: PartPlan,
    /// The last failure to read an object of any contribution of the upload.
    reads: Arc<Reads>,
    /// Runtime of the reads; a batch waits for them on its own thread.
    runtime: Handle,
}

impl PartReader {
    /// Opens all contributions of an upload in order.
    ///
    /// # Errors
    /// A failure of the store; missing contributions of the roster.
    pub async fn open_all(
        state: &State,
        stored: &StoredUpload,
        params: &Parameters,
    ) -> Result<Vec<Self>, Failure> {
        let mut parts = Vec::new();
        let reads = Arc::<Reads>::default();
        for part in store::parts(&state.base.store, stored.dataset).await? {
            parts.push(Self {
                blobs: state.base.blobs.clone(),
                stored: stored.clone(),
                number: part.number,
                objects: Arc::new(uploads::objects(state, stored, part.number).await?),
                params: params.clone(),
                plan: uploads::part_plan(&stored.terms, part.number, part.layout)?,
                reads: reads.clone(),
                runtime: Handle::current(),
            });
        }
        let numbers = parts.iter().map(|part| part.number);
        if !numbers.eq((0..).take(stored.terms.part_count())) {
            return Err(Failure::internal(
                "the upload does not have all contributions of its terms",
            ));
        }
        Ok(parts)
    }

    /// Returns the memory of the columns of a contribution of records, and 0 for counts.
    pub fn column_bytes(&self) -> u64 {
        match &self.plan {
            PartPlan::Records(plan) => column_bytes(plan, &self.params),
            PartPlan::Counts(_) => 0,
        }
    }

    /// Returns the columns of a contribution of records, loaded into memory if `kept`. Returns `None`
    /// for counts.
    ///
    /// # Errors
    /// Objects that cannot be read.
    pub async fn columns(&self, kept: bool) -> Result<Option<UploadedPart>, Failure> {
        let PartPlan::Records(plan) = self.plan else {
            return Ok(None);
        };
        let table = StoredColumns {
            key: self.upload_key().await?,
            kept: match kept {
                true => Some(self.table(plan).await?),
                false => None,
            },
            part: self.clone(),
            plan,
        };
        let table: Arc<dyn Columns> = Arc::new(table);
        Ok(Some(UploadedPart { plan, table }))
    }

    /// Reads all columns of a contribution of records into memory.
    async fn table(&self, plan: UploadPlan) -> Result<EncryptedTable, Failure> {
        let mut read = self.read(plan.column_objects().collect()).await?;
        let params = self.params.clone();
        let build = move || {
            let absent = || fhaim_protocol::Error::Object("an object is missing");
            let object = |object: Object| read.remove(&object).ok_or_else(absent);
            let objects = plan.column_objects().map(object);
            table(&params, plan, objects.collect::<Result<_, _>>()?)
        };
        let built = blocking(build).await?;
        built.map_err(|error: fhaim_protocol::Error| Failure::internal(error))
    }

    /// Returns the upload key of the contribution's objects.
    async fn upload_key(&self) -> Result<UploadKeyId, Failure> {
        if !self.plan.contains(Object::Keys) {
            return uploads::upload_key(&self.stored, self.number);
        }
        let (_, keys) = self.read_one(Object::Keys).await?;
        let keys = keys.keys().map_err(Failure::internal)?;
        Ok(keys.id())
    }

    async fn read(&self, objects: Vec<Object>) -> Result<HashMap<Object, Payload>, Failure> {
        let objects = stream::iter(objects).map(|object| self.read_one(object));
        objects.buffer_unordered(READS).try_collect().await
    }

    /// Returns the place of an object's blob.
    fn place(&self, object: Object) -> Option<BlobPlace> {
        let kept = self.objects.get(&object)?;
        Some(BlobPlace {
            name: self.stored.blob(self.number, object, kept.version),
            digest: kept.digest.0,
        })
    }

    /// Reads an object, and checks that its bytes are those that were stored.
    async fn read_one(&self, object: Object) -> Result<(Object, Payload), Failure> {
        let kept = self.objects.get(&object).copied();
        let kept = kept.ok_or_else(|| Failure::internal(format!("{object} is missing")))?;
        let (blob, dataset) = (
            self.stored.blob(self.number, object, kept.version),
            self.stored.dataset,
        );
        let bytes = self.blobs.get(&blob).await;
        let what = format!("object {object} of part {}", self.number + 1);
        let bytes = bytes.map_err(|error| not_read(error, dataset, &what, &blob))?;
        let (params, plan) = (self.params.clone(), self.plan.clone());
        let decode = move || {
            if Digest::of(&bytes) != kept.digest {
                return Err(damaged(dataset, what).because(blob));
            }
            let decoded = plan.decode(&params, object, &bytes);
            decoded.map_err(|error| damaged(dataset, what).because(format!("{blob}: {error}")))
        };
        Ok((object, blocking(decode).await??))
    }
}

/// Reads the counts of all contributions and the keys before them, a few objects ahead of their use. Each object is
/// read for all holders before the next one.
struct ReadAhead<'a> {
    parts: &'a [PartReader],
    /// Objects not read yet, in the order of their use.
    waiting: std::vec::IntoIter<(usize, Object)>,
    read: HashMap<(usize, Object), Payload>,
}

impl<'a> ReadAhead<'a> {
    fn new(parts: &'a [PartReader]) -> Self {
        let objects = parts
            .first()
            .map_or_else(Vec::new, |part| part.plan.objects());
        let added = |object: &Object| matches!(object, Object::Keys | Object::Counts { .. });
        let each = |object| (0..parts.len()).map(move |holder| (holder, object));
        let waiting: Vec<_> = objects.into_iter().filter(added).flat_map(each).collect();
        Self {
            parts,
            waiting: waiting.into_iter(),
            read: HashMap::new(),
        }
    }

    /// Returns an object of a contribution. The thread waits until it is read.
    fn get(&mut self, holder: usize, object: Object) -> Result<Payload, fhaim_protocol::Error> {
        let absent = || fhaim_protocol::Error::Object("an object is missing");
        if !self.read.contains_key(&(holder, object)) {
            let next: Vec<_> = self.waiting.by_ref().take(READS).collect();
            let first = self.parts.first().ok_or_else(absent)?;
            let reads = next.into_iter().filter_map(|(holder, object)| {
                let part = self.parts.get(holder)?;
                Some(async move {
                    let (object, payload) = part.read_one(object).await?;
                    Ok::<_, Failure>(((holder, object), payload))
                })
            });
            let read = futures_util::future::try_join_all(reads);
            let read = first.runtime.block_on(read);
            self.read
                .extend(read.map_err(|failure| first.reads.keep(failure))?);
        }
        self.read.remove(&(holder, object)).ok_or_else(absent)
    }
}

/// The stored noise of all contributions.
#[derive(Debug)]
struct StoredNoise(Vec<PartReader>);

impl NoiseObjects for StoredNoise {
    fn read(
        &self,
        holder: usize,
        objects: &[Object],
    ) -> Result<Vec<Payload>, fhaim_protocol::Error> {
        let absent = || fhaim_protocol::Error::Object("an object is missing");
        let part = self.0.get(holder).ok_or_else(absent)?;
        let read = part.runtime.block_on(part.read(objects.to_vec()));
        let mut read = read.map_err(|failure| part.reads.keep(failure))?;
        let one = |object| read.remove(object).ok_or_else(absent);
        objects.iter().map(one).collect()
    }
}

/// A contribution's columns. They are in storage, where backends on other machines read them, and optionally in
/// memory.
#[derive(Clone, Debug)]
struct StoredColumns {
    part: PartReader,
    plan: UploadPlan,
    key: UploadKeyId,
    kept: Option<EncryptedTable>,
}

impl Columns for StoredColumns {
    fn params(&self) -> &Parameters {
        &self.part.params
    }

    fn layout(&self) -> Layout {
        self.plan.layout
    }

    fn count(&self) -> usize {
        self.plan.columns
    }

    fn sections(&self) -> Vec<Section> {
        let chunks = 0..self.plan.layout.chunks();
        let key = ProductKey::Upload(self.key);
        vec![Section { chunks, key }]
    }

    fn switch_keys_place(&self) -> Option<BlobPlace> {
        self.part.place(Object::Keys)
    }

    fn read(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: Range<usize>,
    ) -> fhaim_he::Result<Vec<Chunks>> {
        if let Some(kept) = &self.kept {
            return kept.read(residue, columns, chunks);
        }
        let object = |column: usize| move |chunk: usize| Object::Column { column, chunk };
        let objects = columns.iter().flat_map(|&c| chunks.clone().map(object(c)));
        let unavailable = |reason: String| fhaim_he::Error::Unavailable(reason);
        let mut read = self
            .part
            .runtime
            .block_on(self.part.read(objects.collect()))
            .map_err(|failure| self.part.reads.keep(failure))?;
        let mut take = |object: Object| {
            let absent = || unavailable(format!("{object} is missing"));
            read.remove(&object).ok_or_else(absent)
        };
        let mut column = |&c: &usize| {
            let objects = chunks.clone().map(object(c)).map(&mut take);
            let objects = objects.collect::<fhaim_he::Result<Vec<_>>>()?;
            let made = record_chunks(&self.part.params, objects, residue);
            made.map_err(|error| unavailable(error.to_string()))
        };
        columns.iter().map(&mut column).collect()
    }

    fn place(&self, column: usize, chunk: usize) -> Option<BlobPlace> {
        self.part.place(Object::Column { column, chunk })
    }
}
