//! What an executor has: the blob store, the keys it read last, and the account of what it moved.

use crate::order::{Order, Packing};
use datafusion::error::{DataFusionError, Result};
use fhaim_api::Digest;
use fhaim_he::{
    Backend, Chunks, Columns, EvaluationContext, EvaluationKeys, Layout, Parameters, Partial,
    Place, Threads, TileSums, TileTask,
};
use fhaim_platform::blobs::{BlobError, Blobs};
use fhaim_protocol::upload::decode_ciphertexts;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;

/// Objects read at a time.
const READS: usize = 16;

/// Evaluation keys that are kept.
const KEYS: usize = 2;

/// Seconds that an executor holds back at most, after it lacked memory for a task: the task waits with it.
const LONGEST_PAUSE: u32 = 4;

/// What every task of an executor shares.
#[derive(Debug)]
pub struct Site {
    blobs: Blobs,
    /// Where blobs are read; the threads that compute have no reactor.
    runtime: Handle,
    keys: Mutex<Vec<(Place, Arc<EvaluationKeys>)>>,
    /// Bytes read from the blob store.
    read: AtomicU64,
    /// Tasks in a row that memory was lacking for.
    lacked: AtomicU32,
}

/// An error that Ballista tries again, on this executor or another.
pub(crate) fn passing(reason: impl Into<String>) -> DataFusionError {
    DataFusionError::IoError(io::Error::other(reason.into()))
}

/// What came of an operation, for Ballista: only what may pass is tried again.
pub(crate) fn failed(error: fhaim_he::Error) -> DataFusionError {
    match error {
        fhaim_he::Error::Unavailable(reason) => passing(reason),
        other => DataFusionError::External(Box::new(other)),
    }
}

impl Site {
    /// A site over a blob store; must be made where a reactor runs.
    pub fn new(blobs: Blobs) -> Self {
        Self {
            blobs,
            runtime: Handle::current(),
            keys: Mutex::default(),
            read: AtomicU64::new(0),
            lacked: AtomicU32::new(0),
        }
    }

    /// Bytes read from the blob store so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// A blob, if it is what its digest says.
    async fn get(&self, place: &Place) -> fhaim_he::Result<bytes::Bytes> {
        let read = self.blobs.get(&place.name).await;
        let read = read.map_err(|error| {
            let reason = format!("{}: {error}", place.name);
            match error {
                BlobError::Absent => {
                    fhaim_he::Error::Mismatch("a blob that a task names is absent")
                }
                _ => fhaim_he::Error::Unavailable(reason),
            }
        })?;
        self.read.fetch_add(read.len() as u64, Ordering::Relaxed);
        if Digest::of(&read).0 == place.digest {
            Ok(read)
        } else {
            Err(fhaim_he::Error::Mismatch(
                "a blob is not what its digest says",
            ))
        }
    }

    /// The evaluation keys, read once.
    fn keys(&self, packing: &Packing) -> fhaim_he::Result<Arc<EvaluationKeys>> {
        let mut kept = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, keys)) = kept.iter().find(|(place, _)| *place == packing.keys) {
            return Ok(keys.clone());
        }
        let bytes = self.runtime.block_on(self.get(&packing.keys))?;
        let keys = Arc::new(EvaluationKeys::from_bytes(&packing.params, &bytes)?);
        if kept.len() >= KEYS {
            kept.remove(0);
        }
        kept.push((packing.keys.clone(), keys.clone()));
        Ok(keys)
    }

    /// Holds back where memory is lacking, longer each time, so that others take the work over; and
    /// says so.
    pub(crate) async fn lacks_memory(
        &self,
        what: &str,
        cause: &DataFusionError,
    ) -> DataFusionError {
        let times = self.lacked.fetch_add(1, Ordering::Relaxed);
        let seconds = 1u32.checked_shl(times).unwrap_or(LONGEST_PAUSE);
        let seconds = seconds.clamp(1, LONGEST_PAUSE);
        tracing::warn!(seconds, "too little memory for {what}: held back; {cause}");
        tokio::time::sleep(Duration::from_secs(seconds.into())).await;
        passing(format!("too little memory for {what}"))
    }

    /// Notes that memory was enough.
    pub(crate) fn has_memory(&self) {
        self.lacked.store(0, Ordering::Relaxed);
    }

    /// Runs an order: what becomes of each tile of its task. Blocks.
    ///
    /// # Errors
    /// What reading refuses, and what [`Threads`] refuse.
    pub(crate) fn multiply(self: &Arc<Self>, order: &Arc<Order>) -> fhaim_he::Result<Vec<Partial>> {
        let keys = self.keys(&order.packing())?;
        let context = EvaluationContext::new(&keys, order.task.layout());
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
        let tasks: &[TileTask] = std::slice::from_ref(&order.task);
        Threads::with_memory(order.memory).run(&context, &table, tasks, &take)?;
        Ok(out.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Packs a tile's whole sums. Blocks.
    ///
    /// # Errors
    /// [`fhaim_he::Error::Mismatch`] for sums that lack record chunks.
    pub(crate) fn pack(&self, packing: &Packing, sums: TileSums) -> fhaim_he::Result<Partial> {
        let keys = self.keys(packing)?;
        let context = EvaluationContext::new(&keys, packing.layout);
        Ok(Partial::Root(context.pack(sums)?.0))
    }
}

/// The columns that an order names, in the blob store.
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

    fn read(
        &self,
        residue: usize,
        columns: &[usize],
        chunks: Range<usize>,
    ) -> fhaim_he::Result<Vec<Chunks>> {
        let absent = || fhaim_he::Error::OutOfRange("a column or a record chunk");
        let places: BTreeMap<usize, &[Place]> = self.order.by_column().collect();
        let band = self.order.task.band();
        let start = chunks.start.checked_sub(band.start).ok_or_else(absent)?;
        let wanted = start..start + chunks.len();
        let mut named = Vec::new();
        for column in columns {
            let column = places.get(column).and_then(|all| all.get(wanted.clone()));
            named.extend(column.ok_or_else(absent)?);
        }
        let read = stream::iter(named).map(|place| async move {
            let bytes = self.site.get(place).await?;
            let decoded = decode_ciphertexts(&self.order.params, &bytes);
            let decoded = decoded.map_err(|_| fhaim_he::Error::Mismatch("a blob is no object"))?;
            decoded
                .into_iter()
                .nth(residue)
                .map(Arc::new)
                .ok_or_else(absent)
        });
        let read = read.buffered(READS).try_collect::<Vec<_>>();
        let read = self.site.runtime.block_on(read)?;
        Ok(read
            .chunks(chunks.len().max(1))
            .map(|column| column.iter().cloned().collect())
            .collect())
    }
}

/// Runs what blocks on a thread for that.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| DataFusionError::External(Box::new(error)))?
}
