//! Shared state of an executor: the blob store, the most recently used keys, and counters.

use crate::order::{Order, Packing};
use datafusion::error::{DataFusionError, Result};
use fhaim_api::Digest;
use fhaim_he::{
    Backend, BlobPlace, Chunks, Columns, EvaluationContext, EvaluationKeys, Layout, Parameters,
    Partial, Section, Threads, TileSums, UploadSwitchKeys,
};
use fhaim_platform::blobs::{BlobError, Blobs};
use fhaim_protocol::encryption::{Encryption, Form};
use fhaim_protocol::upload::record_chunks;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// Number of objects that are read concurrently.
const READS: usize = 16;

/// Number of cached evaluation keys, and of cached switching keys of sole holders.
const KEYS: usize = 2;

/// A cache of decoded blobs of one type, with their places.
type Kept<T> = Mutex<Vec<(BlobPlace, Arc<T>)>>;

/// Longest pause in seconds after a task for which there was too little memory. The task waits for the same time.
const LONGEST_PAUSE: u32 = 4;

/// State that all tasks of an executor share.
#[derive(Debug)]
pub struct Site {
    blobs: Blobs,
    /// Runtime that reads blobs, because the threads that compute have none.
    runtime: Handle,
    keys: Kept<EvaluationKeys>,
    /// Switching keys of sole holders.
    holders: Kept<UploadSwitchKeys>,
    /// Bytes read from the blob store.
    read: AtomicU64,
    /// Number of tasks in a row for which there was too little memory.
    lacked: AtomicU32,
}

/// Returns an error after which Ballista tries the task again, on this executor or another.
pub(crate) fn passing(reason: impl Into<String>) -> DataFusionError {
    DataFusionError::IoError(io::Error::other(reason.into()))
}

/// Converts an error for Ballista, which retries only transient errors.
pub(crate) fn failed(error: fhaim_he::Error) -> DataFusionError {
    match error {
        fhaim_he::Error::Unavailable(reason) => passing(reason),
        other => DataFusionError::External(Box::new(other)),
    }
}

impl Site {
    /// Creates the state of an executor with a blob store.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn new(blobs: Blobs) -> Self {
        Self {
            blobs,
            runtime: Handle::current(),
            keys: Mutex::default(),
            holders: Mutex::default(),
            read: AtomicU64::new(0),
            lacked: AtomicU32::new(0),
        }
    }

    /// Returns the number of bytes read from the blob store so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Reads a blob, and checks its digest.
    async fn get(&self, place: &BlobPlace) -> fhaim_he::Result<bytes::Bytes> {
        let read = self.blobs.get(&place.name).await;
        let read = read.map_err(|error| {
            let reason = format!("{}: {error}", place.name);
            match error {
                BlobError::Absent => {
                    fhaim_he::Error::Mismatch("a blob that a task names does not exist")
                }
                _ => fhaim_he::Error::Unavailable(reason),
            }
        })?;
        self.read.fetch_add(read.len() as u64, Ordering::Relaxed);
        if Digest::of(&read).0 == place.digest {
            Ok(read)
        } else {
            Err(fhaim_he::Error::Mismatch(
                "a blob does not match its digest",
            ))
        }
    }

    /// Reads and decodes a blob, or returns it from the cache.
    fn once<T>(
        &self,
        kept: &Kept<T>,
        place: &BlobPlace,
        decode: impl FnOnce(&[u8]) -> fhaim_he::Result<T>,
    ) -> fhaim_he::Result<Arc<T>> {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = kept.iter().find(|(at, _)| at == place) {
            return Ok(found.clone());
        }
        let bytes = self.runtime.block_on(self.get(place))?;
        let found = Arc::new(decode(&bytes)?);
        if kept.len() >= KEYS {
            kept.remove(0);
        }
        kept.push((place.clone(), found.clone()));
        Ok(found)
    }

    /// Returns the evaluation keys, and a sole holder's switching keys.
    fn keys(
        &self,
        packing: &Packing,
    ) -> fhaim_he::Result<(Arc<EvaluationKeys>, Option<Arc<UploadSwitchKeys>>)> {
        let params = &packing.params;
        let decode = |bytes: &[u8]| EvaluationKeys::from_bytes(params, bytes);
        let keys = self.once(&self.keys, &packing.keys, decode)?;
        let decode =
            |bytes: &[u8]| UploadSwitchKeys::from_bytes(params, Some(packing.layout), bytes);
        let holder = packing.holder.as_ref();
        let holder = holder.map(|place| self.once(&self.holders, place, decode));
        Ok((keys, holder.transpose()?))
    }

    /// Logs that there is too little memory, and pauses, so that other executors take the task. The pause grows with
    /// the number of such tasks in a row. Returns the error for the task.
    pub(crate) async fn lacks_memory(
        &self,
        what: &str,
        cause: &DataFusionError,
    ) -> DataFusionError {
        let times = self.lacked.fetch_add(1, Ordering::Relaxed);
        let seconds = 1u32.checked_shl(times).unwrap_or(LONGEST_PAUSE);
        let seconds = seconds.clamp(1, LONGEST_PAUSE);
        tracing::warn!(
            seconds,
            "too little memory for {what}; pausing, so that another executor can take the task: {cause}"
        );
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
        passing(format!("too little memory for {what}"))
    }

    /// Resets the pause, because there was enough memory.
    pub(crate) fn has_memory(&self) {
        self.lacked.store(0, Ordering::Relaxed);
    }

    /// Runs an order, and returns the partial results of its task's tiles. Blocks the thread.
    ///
    /// # Errors
    /// Those of reading blobs and of [`Threads`].
    pub(crate) fn multiply(self: &Arc<Self>, order: &Arc<Order>) -> fhaim_he::Result<Vec<Partial>> {
        let packing = order.packing();
        let (keys, holder) = self.keys(&packing)?;
        let context = context(&keys, holder.as_deref(), packing.layout)?;
        let table = Fetched {
            site: self.clone(),
            order: order.clone(),
        };
        let out = Mutex::new(Vec::new());
        let take = |partial: Partial| {
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            out.push(partial);
            Ok(())
        };
        // The other half of the memory is for sums.
        let bands = order.task.bands(&packing.params, order.memory / 2);
        Threads::with_memory(order.memory).run(&context, &table, &bands, &take)?;
        Ok(out.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Packs a tile's complete sums. Blocks the thread.
    ///
    /// # Errors
    /// [`fhaim_he::Error::Mismatch`] for sums that lack record chunks.
    pub(crate) fn pack(&self, packing: &Packing, sums: TileSums) -> fhaim_he::Result<Partial> {
        let (keys, holder) = self.keys(packing)?;
        let context = context(&keys, holder.as_deref(), packing.layout)?;
        Ok(Partial::Root(context.pack(sums)?.0))
    }
}

/// Creates the evaluation context for the columns of a sole holder, or of a roster.
fn context<'a>(
    keys: &'a EvaluationKeys,
    holder: Option<&'a UploadSwitchKeys>,
    layout: Layout,
) -> fhaim_he::Result<EvaluationContext<'a>> {
    let context = EvaluationContext::new(keys, layout);
    match holder {
        None => Ok(context),
        Some(holder) => context.with_switch_keys(holder),
    }
}

/// The columns of an order, read from the blob store.
#[derive(Debug)]
struct Fetched {
    site: Arc<Site>,
    order: Arc<Order>,
}

impl Columns for Fetched {
    fn params(&self) -> &Parameters {
        &self.order.params
    }

    fn layout(&self) -> Layout {
        self.order.task.layout()
    }

    fn count(&self) -> usize {
        self.order.task.columns().last().map_or(0, |last| last + 1)
    }

    fn sections(&self) -> Vec<Section> {
        self.order.sections.clone()
    }

    fn read(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: Range<usize>,
    ) -> fhaim_he::Result<Vec<Chunks>> {
        let absent = || fhaim_he::Error::OutOfRange("a column or a record chunk");
        let places: BTreeMap<usize, &[BlobPlace]> = self.order.by_column().collect();
        let band = self.order.task.band();
        let start = chunks.start.checked_sub(band.start).ok_or_else(absent)?;
        let wanted = start..start + chunks.len();
        let mut named = Vec::new();
        for column in columns {
            let column = places.get(column).and_then(|all| all.get(wanted.clone()));
            named.extend(column.ok_or_else(absent)?);
        }
        // Columns have the same form under every upload key.
        let form = Form {
            encryption: Encryption::OwnKey,
            layout: Some(self.layout()),
        };
        let params = &self.order.params;
        let read = stream::iter(named).map(|place| async move {
            let bytes = self.site.get(place).await?;
            let decoded = form.decode_polynomial(params, &bytes);
            decoded.map_err(|_| fhaim_he::Error::Mismatch("a blob is not a valid object"))
        });
        let read = read.buffered(READS).try_collect::<Vec<_>>();
        let mut read = self.site.runtime.block_on(read)?.into_iter();
        let mut column = |_| {
            let objects = read.by_ref().take(chunks.len()).collect();
            let made = record_chunks(params, objects, residue);
            made.map_err(|_| fhaim_he::Error::Mismatch("a blob is not a valid object"))
        };
        columns.iter().map(&mut column).collect()
    }
}

/// Runs blocking work on a thread for blocking tasks.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| DataFusionError::External(Box::new(error)))?
}
