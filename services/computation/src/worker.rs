//! Computes a batch, stores the sealed result, and only then sends it for decryption.
//!
//! The worker may be killed at any point, or its store set back to an older copy; the batch still has
//! the same result. The crypto service knows which positions a job has used, sealing again gives the
//! same bytes, and a repeated release is answered without another debit.

use bytes::Bytes;
use fhaim_api::Digest;
use fhaim_api::keys::{Decrypted, Receipt, Witnessed};
use fhaim_api::problem::ProblemKind;
use fhaim_platform::Failure;
use fhaim_platform::blobs::BlobError;
use fhaim_platform::lease::{Lease, Lost, Tasks};
use fhaim_platform::peer::Body;
use fhaim_platform::runner::{Policy, Stop, Turn, Work};
use fhaim_platform::store::Tx;
use fhaim_platform::threads::blocking;
use fhaim_protocol::request::asked;
use reqwest::Method;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::store::batches::{self as store, Task};
use crate::{Role, State, runs, uploads};

impl Work for State {
    const TASK: &'static str = "batch";
    const POLICY: Policy = Policy {
        first_pause: Duration::from_millis(500),
        max_faults: 10,
    };

    fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    fn queued(&self) -> &Notify {
        &self.queued
    }

    async fn attempt(&self, lease: &Lease, turn: &Turn) -> Result<(), Stop> {
        match release(self, lease, turn).await {
            Ok(released) => Ok(released?),
            Err(failure) if failure.kind() == ProblemKind::BudgetSpent => {
                Ok(without_run(self, lease, &failure).await??)
            }
            Err(failure) => Err(stop_of(failure)),
        }
    }

    async fn fail(&self, tx: &mut Tx, lease: &Lease, reason: &str) -> Result<(), Failure> {
        Ok(store::refuse(tx, lease, reason).await?)
    }

    async fn tell_outage(
        &self,
        tx: &mut Tx,
        lease: &Lease,
        reason: &str,
        _: Duration,
    ) -> Result<(), Failure> {
        Ok(store::postpone(tx, lease, reason).await?)
    }

    fn given_up(_: u32) -> String {
        "the computation service failed repeatedly; its log has the cause. Resume with \
         `fhaim job retry` when its operator has fixed it"
            .to_owned()
    }

    fn failed(&self) {
        self.ended.notify_waiters();
    }
}

/// Ends a batch whose job holds no run because the crypto service had none left.
async fn without_run(
    state: &State,
    lease: &Lease,
    failure: &Failure,
) -> Result<Result<(), Lost>, Failure> {
    tracing::warn!(batch = lease.id, %failure, "batch failed: no run is left for its job");
    let mut tx = state.base.store.begin().await?;
    if let Err(lost) = state.tasks.hold(&mut tx, lease).await? {
        return Ok(Err(lost));
    }
    store::refuse_run(&mut tx, lease, &failure.problem.to_string()).await?;
    tx.commit().await?;
    state.ended.notify_waiters();
    Ok(Ok(()))
}

/// Converts a failure of a batch. The batch ends if another attempt would fail in the same way;
/// otherwise it is tried again after a pause.
fn stop_of(failure: Failure) -> Stop {
    match failure.kind() {
        kind if is_final(kind) => Stop::Failed(failure.problem.to_string()),
        ProblemKind::Internal => Stop::Fault(failure),
        _ => Stop::Outage(failure.problem.to_string()),
    }
}

/// Returns whether the same batch would fail again: the crypto service refused it for a permanent
/// reason, or it cannot be computed. Everything else is temporary, such as a full disk, a service
/// that cannot be reached, or one that does not know this service's key yet.
fn is_final(kind: ProblemKind) -> bool {
    match kind {
        ProblemKind::Refused
        | ProblemKind::BudgetSpent
        | ProblemKind::Frozen
        | ProblemKind::Restored
        | ProblemKind::NotFound
        | ProblemKind::Conflict
        | ProblemKind::Damaged
        | ProblemKind::Invalid => true,
        ProblemKind::Malformed
        | ProblemKind::Unauthenticated
        | ProblemKind::Forbidden
        | ProblemKind::MethodNotAllowed
        | ProblemKind::TooLarge
        | ProblemKind::UnsupportedMediaType
        | ProblemKind::DigestMismatch
        | ProblemKind::Quota
        | ProblemKind::TooManyRequests
        | ProblemKind::Full
        | ProblemKind::Unavailable
        | ProblemKind::Internal => false,
    }
}

/// Makes one attempt at a batch.
async fn release(state: &State, lease: &Lease, turn: &Turn) -> Result<Result<(), Lost>, Failure> {
    let task = store::task(&state.base.store, lease).await?;
    let sealed = match &task.sealed {
        Some(blob) => match state.base.blobs.get(blob).await {
            // The blobs were set back behind the database: sealing again gives the same bytes.
            Err(BlobError::Absent) => compute(state, lease, &task).await?,
            kept => Ok(kept?),
        },
        None => compute(state, lease, &task).await?,
    };
    let sealed = match sealed {
        Ok(sealed) => sealed,
        Err(lost) => return Ok(Err(lost)),
    };
    let sending = async {
        match state.role {
            Role::First => decrypt(state, &task, sealed).await,
            Role::Second { .. } => Ok((Vec::new(), attest(state, &task, &sealed).await?)),
        }
    };
    let (answers, receipt) = turn.wait(sending).await?;
    let mut tx = state.base.store.begin().await?;
    if let Err(lost) = state.tasks.step(&mut tx, lease).await? {
        return Ok(Err(lost));
    }
    store::release(&mut tx, lease, &answers, &receipt).await?;
    tx.commit().await?;
    state.ended.notify_waiters();
    Ok(Ok(()))
}

/// Computes and seals a batch, and stores the result durably.
async fn compute(
    state: &State,
    lease: &Lease,
    task: &Task,
) -> Result<Result<Bytes, Lost>, Failure> {
    let stored = uploads::find(state, task.dataset).await?;
    let plan = uploads::plan_core(&stored.terms)?;
    // Loaded before the job gets its run, so that an unreadable dataset does not use a run up.
    let loaded = state.datasets.get(state, &stored).await?;
    let read = runs::window(state, task, &plan).await?;
    // The crypto service answers again, if the batch waited for it.
    store::resume(&state.base.store, lease).await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let (window, key) = (read.window.clone(), read.key.clone());
    let requests = task.requests.clone();
    let started = Instant::now();
    let sealing = move || {
        let answer = loaded.answer(&window, &requests, &key)?;
        Ok::<_, Failure>((Bytes::from(answer.request.to_bytes(&params)), answer.window))
    };
    let (bytes, after) = blocking(sealing).await??;
    let seconds = started.elapsed().as_secs_f64();
    metrics::histogram!("batch_compute_seconds").record(seconds);
    // A new name each time, so that a worker that has lost its lease overwrites nothing.
    let blob = format!("{}/sealed/{}", stored.folder, Uuid::new_v4());
    state.base.blobs.put(&blob, bytes.clone()).await?;
    // Stores the batch together with its positions. This does not count as progress: a batch whose
    // blob is lost each time would be sealed again forever.
    let mut tx = state.base.store.begin().await?;
    if let Err(lost) = state.tasks.hold(&mut tx, lease).await? {
        drop(tx);
        uploads::discard(state, &blob).await;
        // The dataset may have been deleted while it was loaded.
        state.datasets.forget(task.dataset);
        return Ok(Err(lost));
    }
    runs::store(&mut tx, task, &read, &after).await?;
    store::seal(&mut tx, lease, &blob, seconds).await?;
    tx.commit().await?;
    Ok(Ok(bytes))
}

/// Sends a sealed batch for debit and decryption.
async fn decrypt(
    state: &State,
    task: &Task,
    sealed: Bytes,
) -> Result<(Vec<Vec<i64>>, Receipt), Failure> {
    let Task { dataset, job, .. } = task;
    let path = format!("/v1/datasets/{dataset}/jobs/{job}/decryptions");
    let (crypto, shown) = runs::crypto(state, task).await?;
    let answer = crypto
        .json::<Decrypted>(Method::POST, &path, Body::Bytes(sealed))
        .await
        .map_err(runs::failure);
    let Decrypted { answers, receipt } = answer?;
    runs::keep_receipt(state, *dataset, &shown, &receipt).await?;
    Ok((answers, receipt))
}

/// Reports the digest of a batch as the second computation service. The crypto service compares it with
/// the request of the first.
async fn attest(state: &State, task: &Task, sealed: &[u8]) -> Result<Receipt, Failure> {
    let Task { dataset, job, .. } = task;
    let witnessed = Witnessed {
        asked: Digest(asked(&task.requests)),
        request: Digest::of(sealed),
    };
    let path = format!("/v1/datasets/{dataset}/jobs/{job}/witnessed");
    let (crypto, shown) = runs::crypto(state, task).await?;
    let body = Body::Json(serde_json::to_vec(&witnessed)?);
    attest_to_others(state, *dataset, (&path, &body)).await?;
    let receipt: Result<Receipt, _> = crypto.json(Method::PUT, &path, body).await;
    let receipt = receipt.map_err(runs::failure)?;
    runs::keep_receipt(state, *dataset, &shown, &receipt).await?;
    Ok(receipt)
}

/// Reports the digest to the services that share the dataset's key. Each accepts it only from this service.
async fn attest_to_others(
    state: &State,
    dataset: Uuid,
    (path, body): (&str, &Body),
) -> Result<(), Failure> {
    let Role::Second { keyshares, .. } = &state.role else {
        return Ok(());
    };
    let terms = uploads::find(state, dataset).await?.terms;
    let others = terms.key_services.len().saturating_sub(1);
    if others > keyshares.len() {
        return Err(Failure::internal("peers: a key-share service is missing"));
    }
    for keyshare in keyshares.iter().take(others) {
        let receipt: Result<Receipt, _> = keyshare.json(Method::PUT, path, body.clone()).await;
        receipt.map_err(runs::failure)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_api::problem::Problem;
    use fhaim_api::token::Service;
    use fhaim_platform::peer::PeerError;

    /// Covers failures that once ended runs permanently: a full disk, a key service that restarted while
    /// its keys could not be fetched, clocks that differ.
    #[test]
    fn temporary_failures_do_not_end_a_batch() {
        let answer = |kind| {
            let problem = Box::new(Problem::new(kind));
            let service = Service::Crypto;
            runs::failure(PeerError::Problem { service, problem }).kind()
        };
        for kind in [
            ProblemKind::Unauthenticated,
            ProblemKind::Forbidden,
            ProblemKind::TooManyRequests,
            ProblemKind::Unavailable,
            ProblemKind::Internal,
        ] {
            assert!(!is_final(answer(kind)), "{kind:?}");
        }
        let away = PeerError::Unreachable {
            service: Service::Crypto,
            reason: "refused".to_owned(),
        };
        let folder = BlobError::Folder(std::io::Error::from(std::io::ErrorKind::StorageFull));
        for failure in [runs::failure(away), Failure::from(folder)] {
            assert!(!is_final(failure.kind()), "{failure}");
        }
        for kind in [
            ProblemKind::Refused,
            ProblemKind::BudgetSpent,
            ProblemKind::Frozen,
            ProblemKind::Restored,
            ProblemKind::Damaged,
        ] {
            assert!(is_final(answer(kind)), "{kind:?}");
        }
    }
}
