//! A batch: computed, sealed durably, and only then sent to be decrypted.
//!
//! Killed at any point, it goes on as if nothing had happened: before the sealed request is
//! stored nothing has left, and computing again uses the same noise; after, the stored request is
//! sent again, and the crypto service answers it again without a debit.

use bytes::Bytes;
use fhaim_api::keys::Decrypted;
use fhaim_api::problem::ProblemKind;
use fhaim_platform::Failure;
use fhaim_platform::lease::Lease;
use fhaim_platform::peer::{Body, PeerError};
use fhaim_platform::server::with_request_id;
use fhaim_platform::shutdown::Shutdown;
use rand::TryRngCore;
use rand::rngs::OsRng;
use reqwest::Method;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use uuid::Uuid;

use crate::State;
use crate::batches::{self, End, Task};
use crate::uploads;

/// A batch that failed so often through no one else's fault is given up.
const ATTEMPTS: u32 = 5;

/// How long an idle worker waits before it looks again.
const IDLE: Duration = Duration::from_millis(500);

/// Takes batches until `shutdown`.
pub async fn run(state: State, shutdown: Shutdown) {
    while !shutdown.is_raised() {
        match state.tasks.take().await {
            Ok(Some(lease)) => {
                tokio::select! {
                    () = with_request_id(work(&state, &lease)) => {}
                    () = shutdown.raised() => give_back(&state, &lease).await,
                }
            }
            Ok(None) => {
                tokio::select! {
                    () = shutdown.raised() => return,
                    () = state.queued.notified() => {}
                    () = tokio::time::sleep(IDLE) => {}
                }
            }
            Err(error) => {
                tracing::error!(%error, "no batch could be taken");
                tokio::time::sleep(IDLE).await;
            }
        }
    }
}

async fn give_back(state: &State, lease: &Lease) {
    if let Err(error) = state.tasks.give_back(lease).await {
        tracing::warn!(%error, batch = lease.id, "a batch was not given back: its lease will end");
    }
}

/// Works on a batch while renewing its lease.
async fn work(state: &State, lease: &Lease) {
    let renewing = async {
        loop {
            tokio::time::sleep(state.tasks.renewal()).await;
            match state.tasks.renew(lease).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return,
                Err(error) => tracing::warn!(%error, batch = lease.id, "a lease was not renewed"),
            }
        }
    };
    let outcome = tokio::select! {
        () = renewing => return, // the lease was lost: whoever has it goes on
        outcome = attempt(state, lease) => outcome,
    };
    let ended = match outcome {
        Ok(None) => return,
        Ok(Some(end)) => batches::end(state, lease, end).await,
        Err(failure) => after_failure(state, lease, failure).await,
    };
    if let Err(failure) = ended {
        tracing::error!(%failure, batch = lease.id, "a batch could not be ended");
        give_back(state, lease).await;
    }
}

/// What becomes of a batch that failed: refused for good where that is its own fault or it failed
/// too often, else tried again.
async fn after_failure(state: &State, lease: &Lease, failure: Failure) -> Result<(), Failure> {
    tracing::warn!(%failure, batch = lease.id, attempt = lease.attempt, "a batch failed");
    let reason = match failure.kind() {
        ProblemKind::Unavailable => None,
        ProblemKind::Internal if lease.attempt < ATTEMPTS => None,
        ProblemKind::Internal => Some(format!("the computation service failed {ATTEMPTS} times")),
        _ => Some(failure.problem.to_string()),
    };
    match reason {
        Some(reason) => batches::end(state, lease, End::Refused(reason)).await,
        None => {
            tokio::time::sleep(IDLE).await;
            state.tasks.give_back(lease).await?.ok();
            Ok(())
        }
    }
}

/// One attempt: how the batch ends, or nothing if its lease was lost.
async fn attempt(state: &State, lease: &Lease) -> Result<Option<End>, Failure> {
    let task = batches::task(state, lease).await?;
    let sealed = match &task.sealed {
        Some(blob) => state.base.blobs.get(blob).await?,
        None => match compute(state, lease, &task).await? {
            Some(sealed) => sealed,
            None => return Ok(None),
        },
    };
    let end = decrypt(state, &task, sealed).await?;
    Ok(Some(end))
}

/// Computes and seals a batch, and makes that durable.
async fn compute(state: &State, lease: &Lease, task: &Task) -> Result<Option<Bytes>, Failure> {
    let stored = uploads::find(state, task.dataset).await?;
    let (plan, _) = stored.plans().await?;
    let before = batches::job_state(state, task.dataset, task.job, &plan).await?;
    let loaded = state.datasets.get(state, &stored).await?;
    let params = plan.parameters().map_err(Failure::internal)?;
    let requests = task.requests.clone();
    let started = Instant::now();
    let sealing = move || {
        let mut computation = loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = computation.answer(&before, &requests, &mut OsRng.unwrap_err())?;
        Ok((Bytes::from(answer.request.to_bytes(&params)), answer.state))
    };
    let sealed = tokio::task::spawn_blocking(sealing).await;
    let sealed = sealed.map_err(Failure::internal)?;
    let (bytes, after) = sealed.map_err(|error: fhaim_protocol::Error| {
        use fhaim_protocol::Error::Encryption;
        match error {
            Encryption(fhaim_he::Error::Unavailable(_)) => Failure::internal(error),
            _ => Failure::new(ProblemKind::Invalid, error.to_string()),
        }
    })?;
    let seconds = started.elapsed().as_secs_f64();
    metrics::histogram!("batch_compute_seconds").record(seconds);
    // Another name each time, so that a worker that lost its lease overwrites nothing.
    let blob = format!("{}/sealed/{}", stored.folder, Uuid::new_v4());
    state.base.blobs.put(&blob, bytes.clone()).await?;
    let durable = batches::seal(state, lease, task, &blob, &after, seconds).await?;
    Ok(durable.ok().map(|()| bytes))
}

/// Has a sealed batch debited and decrypted.
async fn decrypt(state: &State, task: &Task, sealed: Bytes) -> Result<End, Failure> {
    let Task { dataset, job, .. } = task;
    let path = format!("/v1/datasets/{dataset}/jobs/{job}/decryptions");
    let answer = state
        .crypto
        .json::<Decrypted>(Method::POST, &path, Body::Bytes(sealed))
        .await;
    match answer {
        Ok(Decrypted { answers }) => Ok(End::Released(answers)),
        Err(PeerError::Problem { problem, .. }) if problem.status < 500 => {
            Ok(End::Refused(format!("the crypto service: {problem}")))
        }
        Err(error) => Err(error.into()),
    }
}
