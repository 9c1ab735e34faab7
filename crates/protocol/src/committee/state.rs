//! The state of a dataset that a key service of a committee must not lose: runs, promises and
//! debits.
//!
//! **All judge, then all debit.** A service that would release a batch promises it to all others.
//! From then on it accepts the batch's releases under no other request. It debits the batch once
//! every service has promised the same request, by digest, and only then sends its share. If one
//! service refuses, no service debits. A promise that is not kept because another service refuses
//! blocks its run permanently. Services that follow the protocol judge alike, so in that case one
//! of them deviates or was set back to an older copy.
//!
//! No service sees the result of its share, so pages that cannot be decrypted are paid for.

use crate::Error;
use crate::committee::member::{Assignment, Promised};
use crate::crypto::chain::{Act, Freeze};
use crate::crypto::history::{Begun, ChainLink, ChainState};
use crate::crypto::judge::{Replay, Rules, assess};
use crate::request::{DecryptRequest, JobId};
use crate::window::Window;
use fhaim_dp::Ledger;

/// A key service's state for one dataset. It must be stored after every change, before anything
/// that follows from the change is sent.
#[derive(Clone, Debug)]
pub struct SharedDatasetState {
    rules: Rules,
    services: usize,
    chain_state: ChainState,
    run_records: Vec<RunRecord>,
}

/// The record of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    window: Window,
    ledger: Ledger,
    promise: Option<Promise>,
    /// Digests of the requests that were debited.
    shared: Vec<[u8; 32]>,
}

/// A request that this service would release.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Promise {
    request: [u8; 32],
    /// Whether each service has promised the same request.
    by: Vec<bool>,
}

impl RunRecord {
    /// Returns the run's window, with all debited batches placed.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Returns the run's debits.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn new(rules: &Rules, job: JobId, run: u32) -> Self {
        Self {
            window: Window::new(rules.dataset, job, run, rules.plan.run_ladder),
            ledger: Ledger::new(rules.plan.run_budget),
            promise: None,
            shared: Vec::new(),
        }
    }

    /// Reads a stored run from its acts of release, in order, which are debited again, and the
    /// digest of the request that this service has promised and not yet debited. Other services'
    /// promises are not stored: they are sent again.
    ///
    /// # Errors
    /// [`Error::Stored`] for acts that are not releases of the run, or do not fit it.
    pub fn read(
        record: &SharedDatasetState,
        job: JobId,
        acts: impl IntoIterator<Item = Act>,
        promised: Option<[u8; 32]>,
    ) -> Result<Self, Error> {
        let rules = &record.rules;
        let run = record.chain_state.run(job);
        let run = run.ok_or_else(|| Error::stored(&"a job without a run"))?;
        let mut replay = Replay::new(rules, job, run);
        let mut shared = Vec::new();
        for act in acts {
            match act {
                Act::Released {
                    job: of,
                    entries,
                    answers,
                } if of == job => {
                    let claimed = replay.claimed(&entries);
                    claimed.map_err(|error| Error::stored(&error))?;
                    shared.push(answers);
                }
                _ => return Err(Error::stored(&"an act that is not a release of the run")),
            }
        }
        let (window, ledger) = replay.into_parts();
        let by = vec![false; record.services];
        let promise = promised.map(|request| Promise { request, by });
        Ok(Self {
            window,
            ledger,
            promise,
            shared,
        })
    }

    /// Returns the digest of the request that was promised and is not debited yet.
    pub fn promised(&self) -> Option<[u8; 32]> {
        self.promise.as_ref().map(|promise| promise.request)
    }

    fn is_shared(&self, request: &[u8; 32]) -> bool {
        self.shared.contains(request)
    }
}

impl SharedDatasetState {
    /// Creates the state of a dataset without a run, whose key is shared by this number of
    /// services.
    pub fn new(rules: Rules, services: usize) -> Self {
        Self {
            chain_state: ChainState::new(rules.dataset),
            rules,
            services,
            run_records: Vec::new(),
        }
    }

    /// Creates the state of a stored dataset without its runs. Add each run with
    /// [`SharedDatasetState::restore`].
    pub fn read(rules: Rules, services: usize, chain_state: ChainState) -> Self {
        Self {
            rules,
            services,
            chain_state,
            run_records: Vec::new(),
        }
    }

    /// Adds a run that was [read](RunRecord::read) from the store.
    pub fn restore(&mut self, run_record: RunRecord) {
        self.run_records.push(run_record);
    }

    /// Returns the state of the dataset's chain.
    pub fn chain_state(&self) -> &ChainState {
        &self.chain_state
    }

    /// Returns the state of the dataset's chain, to add keys, signatures and withdrawals.
    pub fn standing_mut(&mut self) -> &mut ChainState {
        &mut self.chain_state
    }

    /// Returns the run of a job.
    pub fn run_record(&self, job: JobId) -> Option<&RunRecord> {
        self.run_records.iter().find(|d| d.window.job() == job)
    }

    fn run_record_mut(&mut self, job: JobId) -> Result<&mut RunRecord, Error> {
        let run_record = self.run_records.iter_mut().find(|d| d.window.job() == job);
        run_record.ok_or(Error::Early)
    }

    /// Returns the run of a job. A job without one is given the next run. For the first service.
    ///
    /// # Errors
    /// Those of [`ChainState::begin`].
    pub fn assign(&mut self, job: JobId, upload: [u8; 32]) -> Result<Begun, Error> {
        let begun = self.chain_state.begin(&self.rules, job, upload)?;
        if begun.link.is_some() {
            let run_record = RunRecord::new(&self.rules, job, begun.run);
            self.run_records.push(run_record);
        }
        Ok(begun)
    }

    /// Adds a run that the first service assigned. For the other services.
    ///
    /// # Errors
    /// [`Error::Early`] if earlier runs are missing; [`Error::Committee`] for a run that differs
    /// from the job's, or that belongs to another job; errors of [`SharedDatasetState::assign`].
    pub fn follow(&mut self, assignment: &Assignment) -> Result<Begun, Error> {
        let &Assignment { job, run, upload } = assignment;
        let next = self.chain_state.jobs().len();
        match self.chain_state.run(job) {
            Some(known) if known != run => return Err(Error::Committee("the job has another run")),
            None if run as usize > next => return Err(Error::Early),
            None if next > run as usize => return Err(Error::Committee("another job has the run")),
            _ => {}
        }
        self.assign(job, upload)
    }

    /// Promises a batch, or confirms that it was promised or released before. `witness` is the
    /// digest of the second computation service's request, if the rules demand one and it has
    /// computed it.
    ///
    /// # Errors
    /// The reason of a refusal, for the service's own log; [`Error::Early`] for a job without a
    /// run; [`Error::Unwitnessed`]; [`Error::Frozen`] after the first batch on which the
    /// computation services do not agree.
    pub fn judge<C>(
        &mut self,
        request: &DecryptRequest<C>,
        digest: &[u8; 32],
        witness: Option<[u8; 32]>,
    ) -> Result<(), Error> {
        self.chain_state.check_open()?;
        let (rules, services) = (self.rules.clone(), self.services);
        let run_record = self.run_record_mut(request.job)?;
        if run_record.is_shared(digest) {
            return Ok(());
        }
        if let Some(promise) = &run_record.promise {
            return match promise.request == *digest {
                true => Ok(()),
                false => Err(Error::Request(
                    "another request of these releases was promised",
                )),
            };
        }
        let grant = assess(&run_record.window, &run_record.ledger, &rules, request)?;
        if grant.is_none() {
            return Err(Error::Request(
                "these releases were debited for another request",
            ));
        }
        if rules.plan.witness && witness.ok_or(Error::Unwitnessed)? != *digest {
            self.chain_state.freeze(Freeze::Witness)?;
            return Err(Error::Frozen(Freeze::Witness));
        }
        let run_record = self.run_record_mut(request.job)?;
        run_record.promise = Some(Promise {
            request: *digest,
            by: vec![false; services],
        });
        Ok(())
    }

    /// Records that a service has promised a request.
    ///
    /// # Errors
    /// [`Error::Early`] before this service has promised; [`Error::Committee`] if it has promised
    /// another request.
    pub fn hear(&mut self, promised: &Promised) -> Result<(), Error> {
        let run_record = self.run_record_mut(promised.job)?;
        if run_record.is_shared(&promised.request) {
            return Ok(());
        }
        let promise = run_record.promise.as_mut().ok_or(Error::Early)?;
        if promise.request != promised.request {
            return Err(Error::Committee("another service promised another request"));
        }
        let by = promise.by.get_mut(promised.service);
        *by.ok_or(Error::Committee("the sender is not in the committee"))? = true;
        Ok(())
    }

    /// Checks that no promise for [`SharedDatasetState::debit`] is missing. Call it before
    /// computing a share.
    ///
    /// # Errors
    /// [`Error::Early`] while a promise is missing; [`Error::Frozen`].
    pub fn check_promised(&self, job: JobId, digest: &[u8; 32]) -> Result<(), Error> {
        self.chain_state.check_open()?;
        let run_record = self.run_record(job).ok_or(Error::Early)?;
        let promise = run_record.promise.as_ref().filter(|p| p.request == *digest);
        let by_all = promise.is_some_and(|promise| promise.by.iter().all(|&by| by));
        match by_all || run_record.is_shared(digest) {
            true => Ok(()),
            false => Err(Error::Early),
        }
    }

    /// Debits a batch that all services have promised. Returns the appended link, or `None` if the
    /// batch was debited before.
    ///
    /// # Errors
    /// Those of [`SharedDatasetState::check_promised`] and of [`SharedDatasetState::judge`].
    pub fn debit<C>(
        &mut self,
        request: &DecryptRequest<C>,
        digest: &[u8; 32],
    ) -> Result<Option<ChainLink>, Error> {
        self.check_promised(request.job, digest)?;
        let rules = self.rules.clone();
        let run_record = self.run_record_mut(request.job)?;
        if run_record.is_shared(digest) {
            return Ok(None);
        }
        let grant = assess(&run_record.window, &run_record.ledger, &rules, request)?;
        let grant = grant.ok_or(Error::Request(
            "these releases were debited for another request",
        ))?;
        let act = Act::Released {
            job: request.job,
            entries: grant.entries().to_vec(),
            answers: *digest,
        };
        let link = self.chain_state.append(act)?;
        let run_record = self.run_record_mut(request.job)?;
        grant.take(&mut run_record.window, &mut run_record.ledger);
        run_record.promise = None;
        run_record.shared.push(*digest);
        Ok(Some(link))
    }

    /// Freezes the dataset after the reader of the shares has met a page that could not be
    /// decrypted. Nothing more is judged or shared.
    ///
    /// # Errors
    /// Those of [`ChainState::append`].
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.chain_state.freeze(Freeze::Noise).map(|_| ())
    }
}
