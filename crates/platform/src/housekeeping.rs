//! What a service does now and then: it goes on with deletions that were broken off, and deletes
//! what nobody names.
//!
//! A row goes after the blobs that it names, so that a deletion that was broken off is found again.
//! A blob comes before the row that names it, so that one whose service was killed in between is in
//! nobody's way, and nobody's: when it is old enough, it goes.

use fhaim_api::keys::Receipt;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

use crate::Failure;
use crate::blobs::Listed;
use crate::lease::Tasks;
use crate::program::Program;
use crate::security;
use crate::shutdown::Shutdown;
use crate::telemetry;

/// Deletions that were broken off are gone on with, and signing keys rotated if due, so often.
const EVERY: Duration = Duration::from_secs(60);

/// Gauges are set so often.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// A counter's name and labels.
pub type Counter = (&'static str, &'static [(&'static str, &'static str)]);

/// What a service keeps in its blobs.
pub trait Housekeeping: Program {
    /// The folder that all of its blobs are in.
    const FOLDER: &'static str;

    /// Counters of its own, shown before there is anything to count.
    const COUNTERS: &'static [Counter] = &[];

    /// The folders below it that the database names.
    fn folders(&self) -> impl Future<Output = Result<BTreeSet<String>, Failure>> + Send;

    /// Of blobs that are in one of these folders, those that the database does not name; none where
    /// a folder's name stands for all that is in it.
    fn unnamed(
        &self,
        _folder: &str,
        _blobs: &[String],
    ) -> impl Future<Output = Result<BTreeSet<String>, Failure>> + Send {
        std::future::ready(Ok(BTreeSet::new()))
    }

    /// Goes on with deletions that were broken off, and forgets what has expired.
    fn tidy(&self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Its tasks, where it has any, and what one is called.
    fn queue(&self) -> Option<(&'static str, &Tasks)> {
        None
    }

    /// Sets gauges of its own.
    fn measure(&self) -> impl Future<Output = Result<(), Failure>> + Send {
        std::future::ready(Ok(()))
    }
}

/// What a service keeps of a dataset, as far as it can be compared with what others keep.
#[derive(Clone, Debug)]
pub struct Held {
    /// The dataset.
    pub dataset: Uuid,
    /// Whether all of it is there.
    pub complete: bool,
    /// Receipts of the crypto service's ledger.
    pub receipts: Vec<Receipt>,
}

/// Blobs of a service that nothing names, of a certain age.
///
/// # Errors
/// A failure of the store or of the blobs.
pub async fn orphans<S: Housekeeping>(state: &S, age: Duration) -> Result<Vec<Listed>, Failure> {
    let mut found = state.base().blobs.list(S::FOLDER, age).await?;
    // Asked afterwards, so that what is named by now is spared.
    let named = state.folders().await?;
    let mut below: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for blob in &found {
        if let Some(folder) = folder_of(&blob.name, &named) {
            below.entry(folder).or_default().push(blob.name.clone());
        }
    }
    let mut unnamed = BTreeSet::new();
    for (folder, blobs) in below {
        unnamed.append(&mut state.unnamed(folder, &blobs).await?);
    }
    found.retain(|blob| folder_of(&blob.name, &named).is_none() || unnamed.contains(&blob.name));
    Ok(found)
}

/// Which of these folders a blob is in, or in a folder below.
fn folder_of<'a>(blob: &str, folders: &'a BTreeSet<String>) -> Option<&'a str> {
    let mut ends = blob.match_indices('/').map(|(end, _)| end);
    ends.find_map(|end| folders.get(blob.get(..end)?).map(String::as_str))
}

/// Keeps a service clean, and its gauges true, until `shutdown`.
pub async fn keep<S: Housekeeping>(state: &S, shutdown: &Shutdown) {
    security::announce(S::SERVICE);
    for (counter, labels) in S::COUNTERS {
        telemetry::announce(counter, labels);
    }
    tokio::join!(clean(state, shutdown), gauges(state, shutdown));
}

/// Sets gauges now and then: whoever collects them asks for them without a database's help.
async fn gauges<S: Housekeeping>(state: &S, shutdown: &Shutdown) {
    let peers = state.base().peers_readiness();
    loop {
        if let Err(failure) = measure(state).await {
            tracing::warn!(service = %S::SERVICE, %failure, "gauges are not set");
        }
        // Which does not answer is in the gauge; a peer that is away is no fault of this service.
        let _ = peers().await;
        tokio::select! {
            () = shutdown.raised() => return,
            () = tokio::time::sleep(MEASURE_EVERY) => {}
        }
    }
}

async fn measure<S: Housekeeping>(state: &S) -> Result<(), Failure> {
    let (base, service) = (state.base(), S::SERVICE.as_str());
    let (connections, idle) = base.store.connections();
    metrics::gauge!("database_connections", "service" => service).set(f64::from(connections));
    metrics::gauge!("database_connections_idle", "service" => service).set(idle as f64);
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
            tracing::error!(service = %S::SERVICE, %failure, "tidying failed");
        }
        if swept.is_none_or(|at| at.elapsed() >= age) {
            swept = Some(tokio::time::Instant::now());
            if let Err(failure) = sweep(state, age).await {
                tracing::error!(service = %S::SERVICE, %failure, "sweeping failed");
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
    base.signer.rotate().await?;
    state.tidy().await?;
    Ok(base.store.forget_deleted_if_due().await?)
}

/// Deletes what nobody names.
async fn sweep<S: Housekeeping>(state: &S, age: Duration) -> Result<(), Failure> {
    let blobs = &state.base().blobs;
    let unfinished = blobs.sweep(age).await?;
    let orphans = orphans(state, age).await?;
    for orphan in &orphans {
        blobs.delete(&orphan.name).await?;
    }
    if unfinished + orphans.len() > 0 {
        let (service, orphans) = (S::SERVICE, orphans.len());
        tracing::info!(%service, unfinished, orphans, "deleted blobs that nothing names");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_in_a_folder_and_those_above_it() {
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
