//! A release: decoded, decrypted, debited durably, and only then answered.

use axum::body::Bytes;
use fhaim_api::problem::ProblemKind;
use fhaim_dp::Ledger;
use fhaim_platform::Failure;
use fhaim_platform::token::{Caller, Peer};
use fhaim_protocol::crypto::{self, Dataset, Decrypted};
use fhaim_protocol::request::{DatasetId, DecryptRequest, JobId};
use fhaim_protocol::terms::Plan;
use uuid::Uuid;

use crate::audit::Act;
use crate::keys::{self, Stored};
use crate::{State, ledger};

/// The largest request: a few hundred ciphertexts.
pub const BODY_LIMIT: usize = 256 << 20;

/// A sum of costs past what can be counted.
pub const OVERFLOW: &str = "a sum of costs is past what can be counted";

/// Answers a request, or refuses it: the same refusal whatever the reason, which goes to the log
/// and, with the fact of the refusal, to the audit log.
///
/// # Errors
/// [`ProblemKind::Refused`]; [`ProblemKind::BudgetSpent`] where no run is left for a new job;
/// faults of the service itself, after which the same request can be made again.
pub async fn decrypt(
    state: &State,
    peer: Peer,
    dataset: Uuid,
    job: Uuid,
    body: Bytes,
) -> Result<Vec<Vec<i64>>, Failure> {
    let action = format!("decrypt for job {job}");
    let act = Act {
        dataset,
        actor: Caller::Service(peer.0),
        action: &action,
    };
    let outcome = attempt(state, act, job, body).await;
    let failure = match outcome {
        Ok(answers) => return Ok(answers),
        Err(failure) => failure,
    };
    match failure.kind() {
        ProblemKind::Internal | ProblemKind::Unavailable => Err(failure),
        kind => {
            tracing::warn!(%dataset, %job, %failure, "a decryption was refused");
            act.refused(state).await?;
            Err(match kind {
                ProblemKind::BudgetSpent => failure,
                _ => Failure::bare(ProblemKind::Refused),
            })
        }
    }
}

async fn attempt(
    state: &State,
    act: Act<'_>,
    job: Uuid,
    body: Bytes,
) -> Result<Vec<Vec<i64>>, Failure> {
    let stored = keys::find(state, act.dataset).await?;
    let plan = keys::plan(stored.terms.clone()).await?;
    let before = {
        let mut tx = state.base.store.begin().await?;
        ledger::read(&mut tx, act.dataset, job, plan.job.rho).await?
    };
    // Decrypted before the dataset's row is locked, so that long work holds up no one.
    let decrypted = decode(state, &stored, &plan, job, before.clone(), body).await?;
    let mut tx = state.base.store.begin().await?;
    if keys::lock(state, &mut tx, act.dataset)
        .await?
        .is_destroyed()
    {
        return Err(Failure::not_found());
    }
    ledger::claim(&mut tx, &stored, &plan, job).await?;
    if ledger::read(&mut tx, act.dataset, job, plan.job.rho).await? != before {
        let cause = "another request of the job was debited meanwhile";
        return Err(Failure::bare(ProblemKind::Unavailable).because(cause));
    }
    ledger::write(&mut tx, act.dataset, job, &before, &decrypted.ledger).await?;
    act.write(&mut tx, true).await?;
    tx.commit().await?;
    let debited = decrypted.ledger.entries().len() - before.entries().len();
    metrics::counter!("releases_debited_total").increment(debited as u64);
    Ok(decrypted.answers)
}

/// Decodes, judges and decrypts, on a thread for long work.
async fn decode(
    state: &State,
    stored: &Stored,
    plan: &Plan,
    job: Uuid,
    ledger: Ledger,
    body: Bytes,
) -> Result<Decrypted, Failure> {
    let params = plan.parameters().map_err(Failure::internal)?;
    let secret = stored.secret(state, &params)?;
    let dataset = Dataset {
        id: DatasetId(stored.dataset.into_bytes()),
        domain: plan.job.domain.clone(),
        record_bound: plan.job.record_bound,
    };
    let job = JobId(job.into_bytes());
    let judging = move || {
        let request = DecryptRequest::from_bytes(&params, &body)?;
        if request.job != job {
            return Err(fhaim_protocol::Error::Refused);
        }
        crypto::decrypt(&secret, &dataset, &ledger, &request)
    };
    tokio::task::spawn_blocking(judging)
        .await
        .map_err(Failure::internal)?
        .map_err(|error| Failure::bare(ProblemKind::Refused).because(error))
}
