//! The generation entity: makes a [`MechanismRun`] from a dataset's terms and the stored batches of
//! a job.
//!
//! The driver of the run stores its batches, has them released, and hands it the integers. A
//! service does so with [`MechanismRun::decrypted`], a caller of a [`fhaim_release::ReleaseSource`]
//! with [`MechanismRun::answered`].

use crate::Error;
use crate::terms::Terms;
use fhaim_release::{Generator, MechanismRun, RunError, StoredBatch};

/// Starts or resumes a job of the mechanism that the terms name, from the batches stored for it, in
/// order.
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
