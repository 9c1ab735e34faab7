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
    eprintln!("{done}: {}, {:.1} MB", found.len(), bytes as f64 / 1e6);
    Ok(())
}

async fn of<P>(arguments: &OrphansArguments) -> Result<Vec<Listed>, Error>
where
    P: Housekeeping,
    P::Config: From<Common> + DeserializeOwned,
{
    let state: P = open(&arguments.place).await?;
    let age = Duration::from_secs(arguments.age);
    let found = housekeeping::orphans(&state, age).await?;
    if arguments.delete {
        for blob in &found {
            let deleted = state.base().blobs.delete(&blob.name).await;
            deleted.map_err(Failure::from)?;
        }
    }
    Ok(found)
}
