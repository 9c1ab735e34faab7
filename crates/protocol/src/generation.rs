//! The generation entity: a dataset's terms, and what is stored of a job, to a [`MechanismRun`] of it.
//!
//! Whoever drives the run stores what it wants stored, has its batches released, and hands it the
//! integers: a service with [`MechanismRun::decrypted`], what asks a [`fhaim_release::ReleaseSource`] with
//! [`MechanismRun::answered`].

use crate::Error;
use crate::terms::Terms;
use fhaim_release::{Generator, MechanismRun, RunError, StoredBatch};

/// A job of the mechanism that the terms name, with what is stored of it, in order.
///
/// # Errors
/// Terms without a plan; a mechanism that the program does not know or that refuses the job;
/// [`Error::Run`] for stored batches that contradict each other.
pub fn start<G: Generator>(
    generator: &G,
    terms: &Terms,
    stored: Vec<StoredBatch>,
) -> Result<MechanismRun<G::Machine>, Error> {
    let job = terms.plan()?.job;
    let machine = generator.start(terms.choice(), job.clone());
    let machine = machine.map_err(Error::Mechanism)?;
    let run = MechanismRun::new(machine, job, stored);
    run.map_err(|error: RunError<_>| Error::Run(error.into()))
}
