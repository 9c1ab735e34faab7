//! Jobs, as seen by the holders of their datasets.

use fhaim_api::dataset::DatasetState;
use fhaim_api::job::{Job, JobState, NewJob, NewNote};
use fhaim_api::token::Service;
use fhaim_api::{Page, Paging};
use fhaim_platform::Failure;
use fhaim_platform::store::Tx;
use fhaim_protocol::crypto::chain;
use uuid::Uuid;

use crate::accounts::checked_name;
use crate::paging::Cut;
use crate::problem::Refusal;
use crate::put::Put;
use crate::store::datasets::Locked;
use crate::store::{batches, datasets as parents, jobs as store};
use crate::{State, datasets, limits, models};

/// Maximum number of characters of a note.
const MAX_NOTE: usize = 200;

/// Queues a job under the identifier that its owner chose. Repeating the call changes nothing.
///
/// # Errors
/// No such dataset, or it is not ready; no free run; a job with this identifier on another dataset or
/// of another account; too many jobs.
pub async fn create(
    state: &State,
    owner: Uuid,
    dataset: Uuid,
    id: Uuid,
    new: NewJob,
) -> Result<Put<Job>, Failure> {
    datasets::show(state, owner, dataset).await?;
    let mut tx = state.base.store.begin().await?;
    let locked = lock_dataset(state, &mut tx, dataset).await?;
    if let Some(receipt) = &new.receipt {
        let readable = chain::ChainReceipt::try_from(receipt).is_ok();
        if receipt.dataset != dataset || !readable || i64::try_from(receipt.height).is_err() {
            return Err(Refusal::Receipt.into());
        }
        // The owner's program showed its previous receipt when it got this one.
        parents::keep_receipt(&state.base.store, &mut tx, owner, receipt).await?;
    }
    if let Some(found) = alike(&mut tx, (owner, dataset), id).await? {
        tx.commit().await?;
        return Ok(Put::Found(found));
    }
    claim_run(&mut tx, dataset, locked).await?;
    limits::check_job(state, &mut tx, owner, true).await?;
    if !store::insert(&mut tx, owner, dataset, id).await? {
        // A job of another dataset was created at the same moment: only this dataset is locked.
        return Err(Refusal::OtherJob.into());
    }
    tx.commit().await?;
    state.wake.notify_one();
    Ok(Put::Made(show(state, owner, id).await?))
}

/// Returns the job with an identifier if it belongs to this dataset. Any holder of the dataset may
/// have started it.
async fn alike(
    tx: &mut Tx,
    (user, dataset): (Uuid, Uuid),
    id: Uuid,
) -> Result<Option<Job>, Failure> {
    match store::find(tx, id).await? {
        None => Ok(None),
        Some((other, job)) if other != user && job.dataset != dataset => Err(foreign(user, id)),
        Some((_, job)) if job.dataset != dataset => Err(Refusal::OtherJob.into()),
        Some((_, job)) => Ok(Some(job)),
    }
}

async fn lock_dataset(state: &State, tx: &mut Tx, dataset: Uuid) -> Result<Locked, Failure> {
    let locked = parents::lock(&state.base.store, tx, dataset).await?;
    locked.ok_or_else(Failure::not_found)
}

/// Checks that a locked dataset is ready and has a free run. The crypto service makes the final
/// decision; this check avoids jobs that could only fail.
async fn claim_run(tx: &mut Tx, dataset: Uuid, locked: Locked) -> Result<(), Failure> {
    match locked.state {
        DatasetState::Ready => {}
        DatasetState::Uploading => return Err(Refusal::NotReady.into()),
        DatasetState::Deleting => return Err(Refusal::BeingDeleted.into()),
    }
    let runs = locked.runs;
    if parents::runs_taken(tx, dataset).await? < runs {
        return Ok(());
    }
    let stranded = parents::stranded(tx, dataset).await?;
    Err(Refusal::Spent { runs, stranded }.into())
}

/// Returns a job of a dataset of which a user is a sole or joint holder.
///
/// # Errors
/// The user has no such job.
pub async fn show(state: &State, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    if let Some(job) = store::held(&state.base.store, owner, id).await? {
        return Ok(job);
    }
    let mut tx = state.base.store.begin().await?;
    Err(match store::find(&mut tx, id).await? {
        Some(_) => foreign(owner, id),
        None => Failure::not_found(),
    })
}

/// Sets the note of a job. The note is for the dataset's holders and changes nothing else.
///
/// # Errors
/// No such job; an invalid note.
pub async fn annotate(state: &State, user: Uuid, id: Uuid, new: NewNote) -> Result<Job, Failure> {
    let note = match new.note.is_empty() {
        true => new.note,
        false => checked_name("note", new.note, MAX_NOTE)?,
    };
    show(state, user, id).await?;
    store::set_note(&state.base.store, id, &note).await?;
    show(state, user, id).await
}

fn foreign(owner: Uuid, id: Uuid) -> Failure {
    Failure::foreign(Service::Generation, owner, "job", id)
}

/// Lists a dataset's jobs.
///
/// # Errors
/// No such dataset; invalid paging parameters.
pub async fn list(
    state: &State,
    owner: Uuid,
    dataset: Uuid,
    paging: &Paging,
) -> Result<Page<Job>, Failure> {
    let cut = Cut::new(paging)?;
    datasets::show(state, owner, dataset).await?;
    let jobs = store::list(&state.base.store, dataset, &cut).await?;
    Ok(jobs.page(&cut))
}

/// Returns a job's state and locks the job until the transaction ends.
async fn lock(state: &State, tx: &mut Tx, id: Uuid) -> Result<JobState, Failure> {
    let locked = store::lock(&state.base.store, tx, id).await?;
    locked.ok_or_else(Failure::not_found)
}

/// Cancels a job. Its worker stops at its next write; released answers stay released.
///
/// # Errors
/// No such job, or it is done or failed.
pub async fn cancel(state: &State, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    show(state, owner, id).await?;
    let mut tx = state.base.store.begin().await?;
    match lock(state, &mut tx, id).await? {
        JobState::Queued | JobState::Running => {}
        JobState::Cancelled => return show_after(state, tx, owner, id).await,
        JobState::Done | JobState::Failed => return Err(Refusal::Ended.into()),
    }
    store::set_state(&mut tx, &id.to_string(), JobState::Cancelled, None).await?;
    show_after(state, tx, owner, id).await
}

/// Queues a failed or cancelled job again, or a finished one whose model is damaged. It resumes where it stopped.
///
/// # Errors
/// No such job, or it is done and its model is whole. If the job has not asked for a batch yet, it needs a free run of the
/// dataset.
pub async fn retry(state: &State, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    let Job {
        dataset,
        state: shown,
        ..
    } = show(state, owner, id).await?;
    let whole = shown == JobState::Done && models::is_whole(state, dataset, id).await?;
    let mut tx = state.base.store.begin().await?;
    // Locks the dataset before the job, as deletion does.
    let locked = lock_dataset(state, &mut tx, dataset).await?;
    match lock(state, &mut tx, id).await? {
        JobState::Done if whole => return Err(Refusal::Done.into()),
        // All releases of a finished job are stored, so its model is fitted again at no cost.
        JobState::Failed | JobState::Cancelled | JobState::Done => {}
        JobState::Queued | JobState::Running => return show_after(state, tx, owner, id).await,
    }
    if !batches::has_asked(&mut tx, id).await? {
        claim_run(&mut tx, dataset, locked).await?;
    }
    limits::check_job(state, &mut tx, owner, false).await?;
    store::queue_again(&mut tx, id).await?;
    let job = show_after(state, tx, owner, id).await;
    state.wake.notify_one();
    job
}

async fn show_after(state: &State, tx: Tx, owner: Uuid, id: Uuid) -> Result<Job, Failure> {
    tx.commit().await?;
    show(state, owner, id).await
}
