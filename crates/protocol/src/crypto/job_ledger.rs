//! The ledger of one job: its debits, its released integers, and its positions in the noise.
//!
//! A key service [judges](JobLedger::judge) a request, [debits](JobLedger::debit) it in the dataset's chain, and
//! only then decrypts.

use crate::Error;
use crate::crypto::chain::{Act, answers_digest};
use crate::crypto::history::{ChainLink, ChainState};
use crate::crypto::judge::{Decision, Grant, Rules, assess};
use crate::request::{DecryptRequest, JobId};
use crate::window::{Placed, Window};
use fhaim_dp::{Entry, Ledger};

/// A run as the key service keeps it: its window, its debits, and its released integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLedger {
    window: Window,
    ledger: Ledger,
    answers: Vec<Vec<i64>>,
    /// Digest of a request that was debited but is not released yet. Its debits are in the ledger.
    /// Its releases are not in the window or the answers.
    debited: Option<[u8; 32]>,
}

impl JobLedger {
    /// Creates the ledger of a run that has released nothing.
    pub fn new(rules: &Rules, job: JobId, run: u32) -> Self {
        Self {
            window: Window::new(rules.dataset, job, run, rules.plan.run_ladder),
            ledger: Ledger::new(rules.plan.run_budget),
            answers: Vec::new(),
            debited: None,
        }
    }

    /// Adds a stored batch. Its entries are debited again, so that a stored ledger cannot be looser
    /// than its rules.
    ///
    /// # Errors
    /// Entries and answers that do not fit each other or the run.
    pub(super) fn restore(
        &mut self,
        entries: Vec<Entry>,
        answers: Vec<Vec<i64>>,
    ) -> Result<(), Error> {
        if entries.len() != answers.len() {
            return Err(Error::Request(
                "the numbers of stored debits and answers differ",
            ));
        }
        let mut placed = self.window.placed().to_vec();
        for (entry, answer) in entries.into_iter().zip(&answers) {
            if entry.debit.number as usize != placed.len()
                || entry.debit.cells != answer.len() as u64
            {
                return Err(Error::Request("a stored debit is not the next of its run"));
            }
            placed.push(Placed {
                cells: answer.len(),
                statement: entry.debit.digest,
            });
            self.ledger.debit(entry.debit)?;
        }
        self.window.catch_up(&placed)?;
        self.answers.extend(answers);
        Ok(())
    }

    /// Adds the last stored debit. A batch that was released since then is already in the ledger.
    ///
    /// # Errors
    /// Debits that do not fit the run.
    pub(super) fn restore_debited(
        &mut self,
        entries: Vec<Entry>,
        request: [u8; 32],
    ) -> Result<(), Error> {
        let placed = self.window.placed().len();
        let first = entries.first().map(|entry| entry.debit.number as usize);
        match first {
            Some(first) if first == placed => {}
            Some(first) if first < placed => return Ok(()),
            _ => return Err(Error::Request("a stored debit is not the next of its run")),
        }
        for entry in entries {
            self.ledger.debit(entry.debit)?;
        }
        self.debited = Some(request);
        Ok(())
    }

    /// Whether a request was debited and is not released yet.
    pub(super) fn is_debited(&self) -> bool {
        self.debited.is_some()
    }

    pub(super) fn take_debit(&mut self, grant: &Grant, request: [u8; 32]) {
        self.ledger = grant.ledger().clone();
        self.debited = Some(request);
    }

    /// Returns the run's window, with all released batches placed.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the debits, including those of a batch that is not released yet.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the integers of each release, by number.
    pub fn answers(&self) -> &[Vec<i64>] {
        &self.answers
    }

    /// Judges a request: whether it is a repetition, or may be decrypted, and at which cost.
    /// `digest` is the digest of the request's bytes.
    ///
    /// # Errors
    /// The reason of a refusal, for the service's own log. The client must receive only
    /// [`Error::Refused`].
    pub fn judge<C>(
        &self,
        rules: &Rules,
        request: &DecryptRequest<C>,
        digest: &[u8; 32],
    ) -> Result<Decision, Error> {
        let Some(grant) = assess(&self.window, &self.ledger, rules, request)? else {
            let numbers = request.releases.iter().map(|r| r.number as usize);
            let answers = numbers.map(|number| self.answers.get(number).cloned());
            let answers = answers.collect::<Option<_>>();
            return Ok(Decision::Repeated(
                answers.ok_or(Error::Request("a placed release has no answer"))?,
            ));
        };
        // The integers of another request would have the same noise, but their cells would be paid
        // for only once.
        if self.debited.is_some_and(|debited| debited != *digest) {
            return Err(Error::Request(
                "another request of these releases was debited",
            ));
        }
        Ok(Decision::Granted(grant))
    }

    /// Returns the ledger with a granted batch and its integers added.
    #[must_use]
    pub fn with(mut self, grant: Grant, answers: Vec<Vec<i64>>) -> Self {
        self.debited = None;
        grant.take(&mut self.window, &mut self.ledger);
        self.answers.extend(answers);
        self
    }

    /// Reads the ledger of a job's run from its store: each release's act with its integers, in
    /// order, and the act of the job's last debit, if there is one.
    ///
    /// # Errors
    /// [`Error::Stored`] for acts of another kind, for integers that do not match their act, and
    /// for debits that the rules refuse.
    pub fn read(
        rules: &Rules,
        job: JobId,
        run: u32,
        releases: impl IntoIterator<Item = (Act, Vec<Vec<i64>>)>,
        debited: Option<Act>,
    ) -> Result<Self, Error> {
        let mut job_ledger = Self::new(rules, job, run);
        for (act, answers) in releases {
            let Act::Released {
                entries,
                answers: digest,
                ..
            } = act
            else {
                return Err(Error::stored(&"an act that is not a release"));
            };
            if answers_digest(&answers) != digest {
                let what = "released integers that do not match their act";
                return Err(Error::stored(&what));
            }
            let restored = job_ledger.restore(entries, answers);
            restored.map_err(|error| Error::stored(&error))?;
        }
        match debited {
            Some(Act::Debited {
                entries, request, ..
            }) => {
                let restored = job_ledger.restore_debited(entries, request);
                restored.map_err(|error| Error::stored(&error))?;
            }
            Some(_) => return Err(Error::stored(&"an act that is not a debit")),
            None => {}
        }
        Ok(job_ledger)
    }

    /// Debits a granted batch. The returned link must be appended before anything of the batch is
    /// decrypted. Nothing is appended if this request was debited before.
    ///
    /// # Errors
    /// Those of [`ChainState::append`].
    pub fn debit(
        &mut self,
        chain_state: &mut ChainState,
        grant: &Grant,
        request: [u8; 32],
    ) -> Result<Option<ChainLink>, Error> {
        if self.is_debited() {
            return Ok(None);
        }
        let link = chain_state.append(Act::Debited {
            job: self.window().job(),
            entries: grant.entries().to_vec(),
            request,
        })?;
        self.take_debit(grant, request);
        Ok(Some(link))
    }
}
