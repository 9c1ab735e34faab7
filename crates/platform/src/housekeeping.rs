//! Regular work of a service: it continues interrupted deletions, and deletes blobs that no row names.
//!
//! A row is deleted after the blobs that it names, so an interrupted deletion is found again. A blob is written
//! before the row that names it. If the service is killed in between, the blob belongs to no row and disturbs
//! nothing. It is deleted when it is old enough.

use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

use crate::Failure;
use crate::blobs::Listed;
use crate::lease::Tasks;
use crate::memory;
use crate::program::Program;
use crate::security;
use crate::shutdown::Shutdown;
use crate::telemetry;
use crate::threads::blocking;

/// Time between two rounds that continue interrupted deletions, and rotate signing keys if due.
const EVERY: Duration = Duration::from_secs(60);

/// Time between two updates of the gauges.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// A counter's name and labels.
pub type Counter = (&'static str, &'static [(&'static str, &'static str)]);

/// The objects that a service stores in its blobs, and their maintenance.
pub trait Housekeeping: Program {
    /// The folder of all of the service's blobs.
    const FOLDER: &'static str;

    /// The service's own counters, which are shown before there is anything to count.
    const COUNTERS: &'static [Counter] = &[];

    /// Returns the folders below [`Self::FOLDER`] that the database names.
    fn folders(&self) -> impl Future<Output = Result<BTreeSet<String>, Failure>> + Send;

    /// Returns the blobs in one of these folders that the database does not name. The default is none, for folders
    /// whose name stands for everything in them.
    fn unnamed(
        &self,
        _folder: &str,
        _blobs: &[String],
    ) -> impl Future<Output = Result<BTreeSet<String>, Failure>> + Send {
        std::future::ready(Ok(BTreeSet::new()))
    }

    /// Continues interrupted deletions, and deletes expired rows.
    fn tidy(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns the service's tasks, if it has any, with the name of one.
    fn queue(&self) -> Option<(&'static str, &Tasks)> {
        None
    }

    /// Frees memory that the service keeps only to be faster. It is called every few seconds.
    fn release_memory(&self) {}

    /// Sets the service's own gauges.
    fn measure(&self) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }
}

/// A dataset as one service holds it, as far as other services can compare it with theirs.
#[derive(Clone, Debug)]
pub struct Held {
    /// The dataset.
    pub dataset: Uuid,
    /// Whether the dataset is complete.
    pub complete: bool,
    /// Receipts of the crypto service's ledger.
    pub receipts: Vec<Receipt>,
}

/// Lists blobs of a service that no row names and that have at least a given age.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn orphans<S: Housekeeping>(state: &S, age: Duration) -> Result<Vec<Listed>, Failure> {
    let mut found = state.base().blobs.list(S::FOLDER, age).await?;
    // Read after the listing, so that blobs that have been named in the meantime are kept.
    let named = state.folders().await?;
    let mut below: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for blob in &found {
        if let Some(folder) = folder_of(&blob.name, &named) {
            below.entry(folder).or_default().push(blob.name.clone());
        }
    }
    let mut unnamed = BTreeSet::new();
    for (folder, blobs) in below {
        match state.unnamed(folder, &blobs).await {
            Ok(mut blobs) => unnamed.append(&mut blobs),
            // Nothing is known of this folder's blobs, so all of them stay.
            Err(failure) if failure.kind() == ProblemKind::Internal => {
                tracing::error!(folder, %failure, "the blobs of a folder cannot be compared");
            }
            Err(failure) => return Err(failure),
        }
    }
    found.retain(|blob| folder_of(&blob.name, &named).is_none() || unnamed.contains(&blob.name));
    Ok(found)
}

/// Returns which of these folders a blob is in, directly or in a folder below it.
fn folder_of<'a>(blob: &str, folders: &'a BTreeSet<String>) -> Option<&'a str> {
    let mut ends = blob.match_indices('/').map(|(end, _)| end);
    ends.find_map(|end| folders.get(blob.get(..end)?).map(String::as_str))
}

/// The end of the same work on several datasets. A failure of one does not stop the work on the others.
#[derive(Debug, Default)]
pub struct Each(Option<Failure>);

impl Each {
    /// Adds the end of the work on one dataset, and logs a failure.
    pub fn add(&mut self, dataset: Uuid, done: Result<(), Failure>) {
        if let Err(failure) = done {
            tracing::error!(%dataset, %failure, "cleaning up failed");
            self.0 = Some(failure);
        }
    }

    /// Returns the last failure.
    ///
    /// # Errors
    /// The last failure.
    pub fn end(self) -> Result<(), Failure> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Keeps a service's blobs clean and its gauges current, until `shutdown`.
pub async fn keep<S: Housekeeping>(state: &S, shutdown: &Shutdown) {
    security::announce(state.base().service);
    for (counter, labels) in S::COUNTERS {
        telemetry::announce(counter, labels);
    }
    tokio::join!(clean(state, shutdown), gauges(state, shutdown));
}

/// Sets gauges regularly, so that collecting them does not need the database.
async fn gauges<S: Housekeeping>(state: &S, shutdown: &Shutdown) {
    let peers = state.base().peers_readiness();
    loop {
        if let Err(failure) = measure(state).await {
            tracing::warn!(service = %state.base().service, %failure, "the gauges could not be set");
        }
        // The gauge shows which peer does not answer. An absent peer is not this service's fault.
        let _ = peers().await;
        state.release_memory();
        if let Err(failure) = blocking(memory::release).await {
            tracing::warn!(service = %state.base().service, %failure, "freed memory could not be returned");
        }
        tokio::select! {
            () = shutdown.raised() => return,
            () = tokio::time::sleep(MEASURE_EVERY) => {}
        }
    }
}

async fn measure<S: Housekeeping>(state: &S) -> Result<(), Failure> {
    let (base, service) = (state.base(), state.base().service.as_str());
    let (connections, idle) = base.store.connections();
    metrics::gauge!("database_connections", "service" => service).set(f64::from(connections));
    metrics::gauge!("database_connections_idle", "service" => service).set(idle as f64);
    let reserve = base.reserve.clone();
    let reserved = blocking(move || reserve.fill()).await?;
    metrics::gauge!("disk_reserved", "service" => service).set(f64::from(u8::from(reserved)));
    if let Some((free, all)) = base.blobs.room() {
        metrics::gauge!("disk_free_bytes", "service" => service).set(free as f64);
        metrics::gauge!("disk_bytes", "service" => service).set(all as f64);
    }
    if let Some((task, tasks)) = state.queue() {
        let depth = tasks.depth().await?;
        metrics::gauge!("tasks_queued", "task" => task).set(depth.queued as f64);
        metrics::gauge!("tasks_running", "task" => task).set(depth.running as f64);
        metrics::gauge!("task_oldest_seconds", "task" => task).set(depth.oldest_seconds as f64);
    }
    state.measure().await
}

async fn clean<S: Housekeeping>(state: &S, shutdown: &Shutdown) {
    let age = state.base().orphan_age;
    let mut swept: Option<tokio::time::Instant> = None;
    loop {
        if let Err(failure) = tidy(state).await {
            tracing::error!(service = %state.base().service, %failure, "cleaning up failed");
        }
        if swept.is_none_or(|at| at.elapsed() >= age) {
            swept = Some(tokio::time::Instant::now());
            if let Err(failure) = sweep(state, age).await {
                tracing::error!(service = %state.base().service, %failure, "deleting unnamed blobs failed");
            }
        }
        tokio::select! {
            () = shutdown.raised() => return,
            () = tokio::time::sleep(EVERY.min(age.max(Duration::from_secs(1)))) => {}
        }
    }
}

async fn tidy<S: Housekeeping>(state: &S) -> Result<(), Failure> {
    let base = state.base();
    let rotated = base.signer.rotate().await;
    let tidied = state.tidy().await;
    base.store.forget_deleted_if_due().await?;
    rotated.and(tidied)
}

/// Deletes blobs that no row names.
async fn sweep<S: Housekeeping>(state: &S, age: Duration) -> Result<(), Failure> {
    let blobs = &state.base().blobs;
    let unfinished = blobs.sweep(age).await?;
    let orphans = orphans(state, age).await?;
    for orphan in &orphans {
        blobs.delete(&orphan.name).await?;
    }
    if unfinished + orphans.len() > 0 {
        let (service, orphans) = (state.base().service, orphans.len());
        tracing::info!(%service, unfinished, orphans, "deleted blobs that no row names");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_belong_to_their_folder_and_to_folders_above_it() {
        let named = BTreeSet::from(["keys/a/1".to_owned()]);
        for (blob, there) in [
            ("keys/a/1/public", true),
            ("keys/a/1/deeper/public", true),
            ("keys/a/10/public", false),
            ("keys/a/1", false),
            ("keys/b/1/public", false),
            ("", false),
        ] {
            assert_eq!(folder_of(blob, &named).is_some(), there, "{blob}");
        }
    }
}
