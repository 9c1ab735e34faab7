//! Runs: assigned by the crypto service, which keeps the ledger and so the noise's positions, and
//! asked for before anything is sealed.
//!
//! What is kept here of a run, its window, is a copy: one that was set back catches up with what
//! the crypto service says, and a release that the two know differently is never sealed.

use fhaim_api::Digest;
use fhaim_api::keys::{NewRun, RECEIPT_HEADER, Receipt, RunStanding};
use fhaim_dp::generator;
use fhaim_platform::Failure;
use fhaim_platform::peer::{Body, PeerClient, PeerError};
use fhaim_platform::store::Tx;
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::window::{Placed, Window};
use reqwest::Method;
use uuid::Uuid;

use crate::problem::Refusal;
use crate::store::batches::Task;
use crate::store::{runs, uploads as rows};
use crate::{State, uploads};

/// A run's window, and the text it is stored as, if it is.
#[derive(Debug)]
pub struct StoredWindow {
    /// The window, caught up with the crypto service.
    pub window: Window,
    /// What the dataset's pages are sealed with.
    pub key: SealingKey,
    text: Option<String>,
}

/// Asks the crypto service for a job's run, and catches up with what it has released.
///
/// # Errors
/// What the crypto service refuses; [`ProblemKind::Conflict`](fhaim_api::problem::ProblemKind::Conflict) where it knows the run otherwise
/// than this service.
pub async fn window(state: &State, task: &Task, plan: &PlanCore) -> Result<StoredWindow, Failure> {
    let (key, upload) = prepared(state, task.dataset).await?;
    let standing = begin(state, task, &key, upload).await?;
    let text = runs::window(&state.base.store, task.dataset, task.job).await?;
    let mut window = match &text {
        Some(text) => serde_json::from_str(text)?,
        None => Window::new(
            DatasetId(task.dataset.into_bytes()),
            JobId(task.job.into_bytes()),
            standing.run,
            plan.run_ladder,
        ),
    };
    let released: Vec<Placed> = standing.releases.iter().map(Placed::from).collect();
    if window.run() != standing.run || window.catch_up(&released).is_err() {
        return Err(Refusal::OtherRun.into());
    }
    Ok(StoredWindow { window, key, text })
}

async fn begin(
    state: &State,
    task: &Task,
    key: &SealingKey,
    upload: Digest,
) -> Result<RunStanding, Failure> {
    let new = NewRun {
        upload: Digest(key.commitment(&upload.0)),
    };
    let path = format!("/v1/datasets/{}/jobs/{}", task.dataset, task.job);
    let body = Body::Json(serde_json::to_vec(&new)?);
    let (crypto, shown) = crypto(state, task).await?;
    let standing: RunStanding = (crypto.json(Method::PUT, &path, body).await).map_err(failure)?;
    keep_receipt(state, task.dataset, &shown, &standing.receipt).await?;
    Ok(standing)
}

/// Stores a window in place of the one that was read: compare and set.
///
/// # Errors
/// [`ProblemKind::Unavailable`](fhaim_api::problem::ProblemKind::Unavailable) where another worker stored one meanwhile.
pub async fn store(
    tx: &mut Tx,
    task: &Task,
    read: &StoredWindow,
    after: &Window,
) -> Result<(), Failure> {
    let (before, after) = (read.text.as_deref(), serde_json::to_string(after)?);
    let job = (task.dataset, task.job);
    if runs::replace_window(tx, job, before, &after).await? {
        return Ok(());
    }
    let cause = "another worker stored the run's window meanwhile";
    Err(Failure::overtaken(cause))
}

/// What an upload needs beside its objects, made once, in the transaction that completes it: what
/// its pages are sealed with, and the digest that its runs are bound to. A copy of the store that
/// has a complete upload has its key, so that what is sealed after a restore is what was sealed
/// before.
///
/// # Errors
/// A failure of the store.
pub async fn prepare(
    state: &State,
    tx: &mut Tx,
    (dataset, manifest): (Uuid, Digest),
    key: &SealingKey,
) -> Result<(), Failure> {
    let sealed = (state.base.sealer).seal(&sealing_context(dataset), key.as_bytes())?;
    Ok(rows::prepare(tx, dataset, sealed, manifest).await?)
}

/// A fresh key to seal pages with.
///
/// # Errors
/// A system without randomness.
pub fn new_key() -> Result<SealingKey, Failure> {
    let mut rng = generator().map_err(Failure::internal)?;
    Ok(SealingKey::random(&mut rng))
}

/// What a complete upload's pages are sealed with, for the second computation service.
///
/// # Errors
/// [`ProblemKind::NotFound`](fhaim_api::problem::ProblemKind::NotFound) until it is complete;
/// [`ProblemKind::Forbidden`](fhaim_api::problem::ProblemKind::Forbidden) where the terms have no second
/// computation service; a key that cannot be opened.
pub async fn shared_key(state: &State, dataset: Uuid) -> Result<SealingKey, Failure> {
    uploads::must_be_witnessed(&uploads::find(state, dataset).await?)?;
    if !rows::is_complete(&state.base.store, dataset).await? {
        return Err(Failure::not_found());
    }
    Ok(prepared(state, dataset).await?.0)
}

fn sealing_context(dataset: Uuid) -> String {
    format!("sealing key of {dataset}")
}

/// What a dataset's pages are sealed with, and the digest of its upload.
///
/// # Errors
/// A failure of the store, or a key that cannot be opened.
async fn prepared(state: &State, dataset: Uuid) -> Result<(SealingKey, Digest), Failure> {
    let prepared = rows::prepared(&state.base.store, dataset).await?;
    let prepared = prepared.ok_or_else(Failure::not_found)?;
    let (Some(sealed), Some(manifest)) = (prepared.sealing_key, prepared.manifest) else {
        return Err(Failure::internal("a complete upload without a sealing key"));
    };
    let bytes = (state.base.sealer).open(&sealing_context(dataset), &sealed)?;
    let damaged = || Failure::internal("a sealing key is damaged");
    let key = SealingKey::from_bytes(&bytes).ok_or_else(damaged)?;
    Ok((key, manifest))
}

/// A client of the crypto service that shows the receipts which this service and the one it works
/// for have, and those receipts.
///
/// # Errors
/// A failure of the store.
pub async fn crypto(state: &State, task: &Task) -> Result<(PeerClient, Vec<Receipt>), Failure> {
    let shown = rows::receipts(&state.base.store, task.dataset).await?;
    let mut shown = shown.ok_or_else(Failure::not_found)?;
    for receipt in &task.receipts {
        if !shown.contains(receipt) {
            shown.push(receipt.clone());
        }
    }
    let headers = shown.iter().map(|r| (RECEIPT_HEADER, r.to_header()));
    let client = state.crypto.with_headers(headers.collect());
    Ok((client, shown))
}

/// The crypto service's own problem where it answered with one, so that its last word is told
/// from what may pass.
pub fn failure(error: PeerError) -> Failure {
    match error {
        PeerError::Problem { problem, .. } => {
            Failure::passed_on(problem).because("the crypto service's answer")
        }
        other => other.into(),
    }
}

/// Keeps the receipt of an answer in place of those that the call showed.
///
/// # Errors
/// A failure of the store.
pub async fn keep_receipt(
    state: &State,
    dataset: Uuid,
    shown: &[Receipt],
    receipt: &Receipt,
) -> Result<(), Failure> {
    let mut tx = state.base.store.begin().await?;
    let before = rows::lock_receipts(&state.base.store, &mut tx, dataset).await?;
    let before = before.ok_or_else(Failure::not_found)?;
    let mut kept = before.clone();
    Receipt::keep(&mut kept, shown, receipt);
    if kept != before {
        rows::set_receipts(&mut tx, dataset, &kept).await?;
    }
    Ok(tx.commit().await?)
}
