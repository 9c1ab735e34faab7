//! Runs. The crypto service keeps the ledger, and with it the positions of the noise, so it assigns
//! each run before anything is sealed.
//!
//! The window of a run that is stored here is a copy. A copy that was set back catches up with the
//! crypto service. A release about which the two services disagree is never sealed.

use fhaim_api::Digest;
use fhaim_api::keys::{KeySet, NewRun, RECEIPT_HEADER, Receipt, RunStanding};
use fhaim_api::problem::ProblemKind;
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

/// A run's window with its stored text.
#[derive(Debug)]
pub struct StoredWindow {
    /// The window after catching up with the crypto service.
    pub window: Window,
    /// The key that seals the dataset's pages.
    pub key: SealingKey,
    text: Option<String>,
}

/// Asks the crypto service for a job's run, and adds its released positions to the window.
///
/// # Errors
/// Refusals of the crypto service; [`ProblemKind::Conflict`]
/// if the two services disagree about the run.
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

/// Replaces the window that was read, unless another worker has changed it.
///
/// # Errors
/// [`ProblemKind::Unavailable`]
/// if another worker has stored a window meanwhile.
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
    let cause = "another worker has stored the run's window meanwhile";
    Err(Failure::overtaken(cause))
}

/// Stores the sealing key of an upload's pages and the digest to which its runs are bound. It does so
/// once, in the transaction that completes the upload. Every copy of the store with a complete
/// upload therefore has its key, so that pages sealed after a restore equal those sealed before.
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

/// Draws a fresh sealing key.
///
/// # Errors
/// The system has no randomness.
pub fn new_key() -> Result<SealingKey, Failure> {
    let mut rng = generator().map_err(Failure::internal)?;
    Ok(SealingKey::random(&mut rng))
}

/// Returns the sealing key of a complete upload, for the second computation service.
///
/// # Errors
/// [`ProblemKind::NotFound`] until the upload is complete;
/// [`ProblemKind::Forbidden`] if the terms name no second
/// computation service; a key that cannot be unsealed.
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

/// Returns the sealing key of a dataset's pages and the digest of its upload.
///
/// # Errors
/// A failure of the store, or a key that cannot be unsealed.
async fn prepared(state: &State, dataset: Uuid) -> Result<(SealingKey, Digest), Failure> {
    let prepared = rows::prepared(&state.base.store, dataset).await?;
    let prepared = prepared.ok_or_else(Failure::not_found)?;
    let (Some(sealed), Some(manifest)) = (prepared.sealing_key, prepared.manifest) else {
        return Err(Failure::internal("a complete upload without a sealing key"));
    };
    let bytes = (state.base.sealer).open(&sealing_context(dataset), &sealed)?;
    let damaged = || Failure::damaged("the sealing key");
    let key = SealingKey::from_bytes(&bytes).ok_or_else(damaged)?;
    Ok((key, manifest))
}

/// Returns a client of the crypto service that shows all known receipts: those of this service and
/// those of the service that asked for the batch. Also returns these receipts.
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

/// Converts an error of a key service about a dataset whose upload is complete. A problem in its response keeps its
/// kind, which tells final refusals from temporary errors.
pub fn failure(error: PeerError) -> Failure {
    match error {
        PeerError::Problem { problem, service } if problem.kind == ProblemKind::NotFound => {
            Refusal::KeysLost(service).into()
        }
        PeerError::Problem { problem, .. } => {
            Failure::passed_on(problem).because("the crypto service's answer")
        }
        other => other.into(),
    }
}

/// Fetches and stores the present receipt of a dataset's ledger, such as after a holder withdrew. A crypto service that
/// is later set back to before this moment is then noticed at the next batch. A failure is logged: it must not keep a
/// holder from taking its part back.
pub async fn learn_receipt(state: &State, dataset: Uuid) {
    let path = format!("/v1/datasets/{dataset}");
    let crypto = state.crypto.with_tries(2);
    let set: Result<KeySet, _> = crypto.json(Method::GET, &path, Body::Empty).await;
    let kept = match set {
        Ok(set) => keep_receipt(state, dataset, &[], &set.receipt).await,
        Err(error) => Err(failure(error)),
    };
    if let Err(failure) = kept {
        tracing::warn!(%dataset, %failure, "the receipt after a withdrawal is not stored");
    }
}

/// Stores the receipt of a response in place of those that the request showed.
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
