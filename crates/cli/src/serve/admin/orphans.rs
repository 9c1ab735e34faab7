//! `fhaim admin orphans`: lists and deletes blobs that a service's database does not refer to.

use std::time::Duration;

use fhaim_platform::Failure;
use fhaim_platform::blobs::Listed;
use fhaim_platform::config::Common;
use fhaim_platform::housekeeping::{self, Housekeeping};
use serde::de::DeserializeOwned;

use super::{
    args::{Named, OrphansArguments},
    open,
};
use crate::{error::Error, output};

/// Runs `fhaim admin orphans`.
pub async fn run(arguments: &OrphansArguments) -> Result<(), Error> {
    let found = match arguments.service {
        Named::Generation => of::<fhaim_generation::State>(arguments).await?,
        Named::Computation => of::<fhaim_computation::State>(arguments).await?,
        Named::Crypto => of::<fhaim_crypto::State>(arguments).await?,
    };
    let line = |blob: &Listed| format!("{:>12} {}\n", blob.bytes, blob.name);
    output::print(&found.iter().map(line).collect::<String>())?;
    let bytes: u64 = found.iter().map(|blob| blob.bytes).sum();
    let done = if arguments.delete { "deleted" } else { "found" };
    fhaim_files::tell_line(format_args!(
        "{done}: {}, {:.1} MB",
        found.len(),
        bytes as f64 / 1e6
    ));
    Ok(())
}

async fn of<P>(arguments: &OrphansArguments) -> Result<Vec<Listed>, Error>
where
    P: Housekeeping,
    P::Config: From<Common> + DeserializeOwned,
{
    let state: P = open(&arguments.place).await?;
    let age = Duration::from_secs(arguments.age);
    if arguments.delete {
        check_age(age, state.base().orphan_age)?;
    }
    let found = housekeeping::orphans(&state, age).await?;
    if arguments.delete {
        for blob in &found {
            let deleted = state.base().blobs.delete(&blob.name).await;
            deleted.map_err(Failure::from)?;
        }
    }
    Ok(found)
}

/// Rejects the deletion of blobs that may belong to a request that is under way: a blob is written before the row that
/// refers to it.
fn check_age(age: Duration, least: Duration) -> Result<(), Error> {
    if age >= least {
        return Ok(());
    }
    let least = least.as_secs();
    Err(Error::Usage(format!(
        "--age: younger blobs may belong to an upload that is under way; with --delete, the age must be at least \
         {least} s, as the service's setting orphan_seconds"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletion_of_blobs_of_an_upload_under_way_is_rejected() {
        let hour = Duration::from_secs(3600);
        for seconds in [0, 1, 3599] {
            let refused = check_age(Duration::from_secs(seconds), hour).unwrap_err();
            let told = refused.to_string();
            assert!(told.contains("at least 3600 s"), "{told}");
        }
        check_age(hour, hour).unwrap();
    }
}
