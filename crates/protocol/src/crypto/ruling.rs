//! The result of a decrypted batch: its release, or a freeze of its dataset.

use crate::Error;
use crate::crypto::chain::{Act, Freeze, answers_digest};
use crate::crypto::history::{ChainLink, ChainState};
use crate::crypto::job_ledger::JobLedger;
use fhaim_dp::Entry;

/// A batch that was judged and decrypted. Its act must be appended before any result leaves the
/// service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// The job's ledger when the batch was judged.
    before: JobLedger,
    act: Act,
    released: Option<Released>,
}

/// The results that a ruling releases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// The cells of each release, in the order of the request.
    pub answers: Vec<Vec<i64>>,
    /// The run's ledger including the batch.
    pub job_ledger: JobLedger,
}

impl Ruling {
    /// Creates a ruling that releases the batch for these debits. `released` has the ledger including
    /// the batch.
    pub fn release(before: JobLedger, entries: Vec<Entry>, released: Released) -> Self {
        let act = Act::Released {
            job: before.window().job(),
            entries,
            answers: answers_digest(&released.answers),
        };
        Self {
            before,
            act,
            released: Some(released),
        }
    }

    /// Creates a ruling that releases nothing of the batch and freezes the dataset.
    pub fn freeze(before: JobLedger, reason: Freeze) -> Self {
        Self {
            before,
            act: Act::Frozen { reason },
            released: None,
        }
    }

    /// Returns the act to append: a release or a freeze.
    pub fn act(&self) -> &Act {
        &self.act
    }

    /// Returns the integers that the act releases, or `None` if it freezes the dataset.
    pub fn answers(&self) -> Option<&[Vec<i64>]> {
        self.released.as_ref().map(|r| r.answers.as_slice())
    }

    /// Returns the link to append, for a state and a ledger that were read after the decryption.
    ///
    /// # Errors
    /// [`Error::Overtaken`] if another batch of the job was released in the meantime. A freeze is
    /// appended even then.
    pub fn append_to(
        &self,
        chain_state: &mut ChainState,
        now: &JobLedger,
    ) -> Result<ChainLink, Error> {
        if self.released.is_some() && *now != self.before {
            return Err(Error::Overtaken);
        }
        chain_state.append(self.act.clone())
    }

    /// Returns the results that may leave the service once the act is appended.
    ///
    /// # Errors
    /// [`Error::Refused`] if the ruling freezes the dataset.
    pub fn into_released(self) -> Result<Released, Error> {
        self.released.ok_or(Error::Refused)
    }
}
