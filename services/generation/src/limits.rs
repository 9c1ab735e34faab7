//! Limits on the number of objects of an account.

use fhaim_api::usage::{Usage, Used};
use fhaim_platform::Failure;
use fhaim_platform::store::{Tx, lock_owner};
use uuid::Uuid;

use crate::State;
use crate::problem::Refusal;
use crate::store::limits as store;

/// Checks that an account may have one more dataset. Locks the account's limits until the
/// transaction ends, so that concurrent calls cannot exceed them.
///
/// # Errors
/// [`Refusal::TooManyDatasets`].
pub async fn check_dataset(state: &State, tx: &mut Tx, owner: Uuid) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let most = state.config.limits.datasets;
    match store::count(tx, owner).await?.datasets {
        held if held >= most => Err(Refusal::TooManyDatasets(most).into()),
        _ => Ok(()),
    }
}

/// Checks that an account may queue one more job. `fresh` is true for a new job and false for a job
/// that is queued again. Locks the account's limits until the transaction ends.
///
/// # Errors
/// [`Refusal::TooManyJobs`], [`Refusal::TooManyUnderWay`].
pub async fn check_job(
    state: &State,
    tx: &mut Tx,
    owner: Uuid,
    fresh: bool,
) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let (counted, limits) = (store::count(tx, owner).await?, &state.config.limits);
    if counted.jobs_under_way >= limits.jobs_under_way {
        return Err(Refusal::TooManyUnderWay(limits.jobs_under_way).into());
    }
    if fresh && counted.jobs >= limits.jobs {
        return Err(Refusal::TooManyJobs(limits.jobs).into());
    }
    Ok(())
}

/// Checks that an account may have one more API key. Locks the account's limits until the
/// transaction ends.
///
/// # Errors
/// [`Refusal::TooManyKeys`].
pub async fn check_key(state: &State, tx: &mut Tx, owner: Uuid) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let most = state.config.limits.api_keys;
    match store::count(tx, owner).await?.api_keys {
        held if held >= most => Err(Refusal::TooManyKeys(most).into()),
        _ => Ok(()),
    }
}

/// Checks that an account may have one more link. Locks the account's limits until the transaction
/// ends.
///
/// # Errors
/// [`Refusal::TooManyLinks`].
pub async fn check_link(state: &State, tx: &mut Tx, owner: Uuid) -> Result<(), Failure> {
    lock_owner(tx, owner).await?;
    let most = state.config.limits.links;
    match store::count(tx, owner).await?.links {
        held if held >= most => Err(Refusal::TooManyLinks(most).into()),
        _ => Ok(()),
    }
}

/// Returns the number of objects that an account has, with its limits.
///
/// # Errors
/// A failure of the store.
pub async fn usage(state: &State, owner: Uuid) -> Result<Usage, Failure> {
    let mut tx = state.base.store.begin().await?;
    let (counted, limits) = (store::count(&mut tx, owner).await?, &state.config.limits);
    Ok(Usage {
        limits: vec![
            Used::new("datasets", counted.datasets, limits.datasets),
            Used::new("jobs", counted.jobs, limits.jobs),
            Used::new(
                "jobs_under_way",
                counted.jobs_under_way,
                limits.jobs_under_way,
            ),
            Used::new("api_keys", counted.api_keys, limits.api_keys),
            Used::new("links", counted.links, limits.links),
        ],
    })
}
