//! What a key service of a panel must not lose of a dataset: runs, promises and debits.
//!
//! **All judge, then all debit.** A service that would release a batch promises it: it says so to all,
//! and from then on will not have the batch's releases under any other request. It debits once every
//! service has promised the same request, by digest, and only then sends its share. Where one refuses
//! nobody debits. A promise that is not kept, for another service refuses, holds up its run for good:
//! services that follow the protocol judge alike, so that one of them does not, or was set back.
//!
//! Under a whole key, pages that cannot be decrypted cost nothing. Here no service sees what comes of
//! its share, so they are paid for.

use crate::Error;
use crate::crypto::chain::{Act, Freeze};
use crate::crypto::history::Standing;
use crate::crypto::judge::{Rules, assess};
use crate::request::{DecryptRequest, JobId};
use crate::window::Window;
use fhaim_dp::Ledger;

/// A key service's state for one dataset: to be stored as soon as it has changed, before anything
/// that follows from it is sent.
#[derive(Clone, Debug)]
pub struct Record {
    rules: Rules,
    services: usize,
    standing: Standing,
    dockets: Vec<Docket>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Docket {
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
    /// Which services have promised the same.
    by: Vec<bool>,
}

impl Docket {
    /// The run's window, with all that was debited placed.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Its debits.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn is_shared(&self, request: &[u8; 32]) -> bool {
        self.shared.contains(request)
    }
}

impl Record {
    /// Of a dataset without a run, whose key so many services share.
    pub fn new(rules: Rules, services: usize) -> Self {
        Self {
            standing: Standing::new(rules.dataset),
            rules,
            services,
            dockets: Vec::new(),
        }
    }

    /// Where the dataset's chain is.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The same, to note keys, signatures and withdrawals in.
    pub fn standing_mut(&mut self) -> &mut Standing {
        &mut self.standing
    }

    /// The run of a job.
    pub fn docket(&self, job: JobId) -> Option<&Docket> {
        self.dockets.iter().find(|d| d.window.job() == job)
    }

    fn docket_mut(&mut self, job: JobId) -> Result<&mut Docket, Error> {
        let docket = self.dockets.iter_mut().find(|d| d.window.job() == job);
        docket.ok_or(Error::Early)
    }

    /// The run of a job; a job that has none is given the next one. For the first service.
    ///
    /// # Errors
    /// As [`Standing::begin`].
    pub fn assign(&mut self, job: JobId, upload: [u8; 32]) -> Result<u32, Error> {
        let begun = self.standing.begin(&self.rules, job, upload)?;
        if begun.link.is_some() {
            let rules = &self.rules;
            self.dockets.push(Docket {
                window: Window::new(rules.dataset, job, begun.run, rules.run_ladder),
                ledger: Ledger::new(rules.run_budget),
                promise: None,
                shared: Vec::new(),
            });
        }
        Ok(begun.run)
    }

    /// Takes a run that the first service assigned. For the others.
    ///
    /// # Errors
    /// [`Error::Early`] where runs before it are missing; [`Error::Panel`] for another run than the job
    /// has, or one that another job has; what [`Record::assign`] refuses.
    pub fn follow(&mut self, job: JobId, run: u32, upload: [u8; 32]) -> Result<(), Error> {
        let next = self.standing.jobs().len();
        match self.standing.run(job) {
            Some(known) if known != run => return Err(Error::Panel("the job has another run")),
            None if run as usize > next => return Err(Error::Early),
            None if next > run as usize => return Err(Error::Panel("another job has the run")),
            _ => {}
        }
        self.assign(job, upload).map(|_| ())
    }

    /// Promises a batch, or says that it was promised or released before. `witness` is the digest of
    /// what the second computation service computed, where the rules have one and it has.
    ///
    /// # Errors
    /// The reason of a refusal, for the service's own log; [`Error::Early`] for a job without a run;
    /// [`Error::Unwitnessed`]; [`Error::Frozen`] from the first batch on that the computation services do
    /// not agree on.
    pub fn judge<C>(
        &mut self,
        request: &DecryptRequest<C>,
        digest: &[u8; 32],
        witness: Option<[u8; 32]>,
    ) -> Result<(), Error> {
        self.standing.check_open()?;
        let (rules, services) = (self.rules.clone(), self.services);
        let docket = self.docket_mut(request.job)?;
        if docket.is_shared(digest) {
            return Ok(());
        }
        if let Some(promise) = &docket.promise {
            return match promise.request == *digest {
                true => Ok(()),
                false => Err(Error::Request(
                    "another request of these releases was promised",
                )),
            };
        }
        let grant = assess(&docket.window, &docket.ledger, &rules, request)?;
        if grant.is_none() {
            return Err(Error::Request("another request had these releases"));
        }
        if rules.witness && witness.ok_or(Error::Unwitnessed)? != *digest {
            self.standing.freeze(Freeze::Witness)?;
            return Err(Error::Frozen(Freeze::Witness));
        }
        let docket = self.docket_mut(request.job)?;
        docket.promise = Some(Promise {
            request: *digest,
            by: vec![false; services],
        });
        Ok(())
    }

    /// Notes that a service has promised a request.
    ///
    /// # Errors
    /// [`Error::Early`] before this service has; [`Error::Panel`] where it has promised another.
    pub fn hear(&mut self, service: usize, job: JobId, digest: &[u8; 32]) -> Result<(), Error> {
        let docket = self.docket_mut(job)?;
        if docket.is_shared(digest) {
            return Ok(());
        }
        let promise = docket.promise.as_mut().ok_or(Error::Early)?;
        if promise.request != *digest {
            return Err(Error::Panel("another service promised another request"));
        }
        let by = promise.by.get_mut(service);
        *by.ok_or(Error::Panel("a sender that the panel does not have"))? = true;
        Ok(())
    }

    /// Refuses what [`Record::debit`] would refuse for a promise that is missing: to be asked before a
    /// share is worked out.
    ///
    /// # Errors
    /// [`Error::Early`] while a promise is missing; [`Error::Frozen`].
    pub fn check_promised(&self, job: JobId, digest: &[u8; 32]) -> Result<(), Error> {
        self.standing.check_open()?;
        let docket = self.docket(job).ok_or(Error::Early)?;
        let promise = docket.promise.as_ref().filter(|p| p.request == *digest);
        let by_all = promise.is_some_and(|promise| promise.by.iter().all(|&by| by));
        match by_all || docket.is_shared(digest) {
            true => Ok(()),
            false => Err(Error::Early),
        }
    }

    /// Debits a batch that all have promised; nothing where it was debited before.
    ///
    /// # Errors
    /// As [`Record::check_promised`]; what [`Record::judge`] refuses.
    pub fn debit<C>(
        &mut self,
        request: &DecryptRequest<C>,
        digest: &[u8; 32],
    ) -> Result<(), Error> {
        self.check_promised(request.job, digest)?;
        let rules = self.rules.clone();
        let docket = self.docket_mut(request.job)?;
        if docket.is_shared(digest) {
            return Ok(());
        }
        let grant = assess(&docket.window, &docket.ledger, &rules, request)?;
        let grant = grant.ok_or(Error::Request("another request had these releases"))?;
        let act = Act::Released {
            job: request.job,
            entries: grant.entries().to_vec(),
            answers: *digest,
        };
        self.standing.append(act)?;
        let docket = self.docket_mut(request.job)?;
        grant.take(&mut docket.window, &mut docket.ledger);
        docket.promise = None;
        docket.shared.push(*digest);
        Ok(())
    }

    /// Lets nothing more be judged or shared: for who reads was shown a page that could not be
    /// decrypted.
    ///
    /// # Errors
    /// As [`Standing::append`].
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.standing.freeze(Freeze::Noise).map(|_| ())
    }
}
