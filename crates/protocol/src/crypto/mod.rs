//! The crypto-service entity: makes keys, keeps the ledger, and decrypts releases that it has
//! debited.
//!
//! | module | purpose |
//! |---|---|
//! | [`mod@judge`] | decides which releases are allowed, and at which cost: pure, without a key |
//! | [`chain`] | a dataset's history as a hash chain, and receipts for it |
//! | [`history`] | the state of the chain, and the acts that may be appended next |
//! | [`job_ledger`] | the debits and the released integers of one job |
//! | [`ruling`] | the result of a decrypted batch: its release, or a freeze |
//! | [`debited`] | a key service's signed list of debits, for holders that check them |
//!
//! A service with a database loads the job's [`JobLedger`] and [judges](judge()) the request. It
//! [debits](JobLedger::debit) a granted batch in the dataset's chain, and only then [reads](open) it, or
//! adds up the shares if the key is split. It appends the [ruling](rule), and only then answers.
//! Each act is appended by compare and set. A service that was stopped after the debit does the
//! rest when the same request is repeated. [`CryptoService`] does the same in memory.

pub mod chain;
pub mod debited;
mod freeze;
pub mod history;
pub mod job_ledger;
pub mod judge;
pub mod ruling;

use crate::Error;
pub use crate::leak::ciphertext_leak;
use crate::request::{DecryptRequest, JobId, asked};
use crate::roster::{Agreement, MemberSignature};
use chain::{Act, Freeze};
use fhaim_dp::Ledger;
use fhaim_he::{
    Ciphertext, EvaluationKeys, Parameters, PublicKey, RosterShape, SecretKey, coefficient,
};
use history::{Begun, ChainState};
use job_ledger::JobLedger;
use judge::{Decision, Grant, Rules};
use rand::{CryptoRng, RngCore};
use ruling::{Released, Ruling};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The sealed page that is decrypted. The flood that the key service adds depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePlace {
    /// A digest of the dataset, the job and the number of the request's first release.
    pub request: [u8; 32],
    /// Number of the page in the request.
    pub number: u32,
}

/// Decrypts sealed pages to their coefficients.
pub trait Decryptor<C> {
    /// Returns the coefficients of a page. They are wiped from memory when they are dropped.
    /// Repeated calls return the same.
    ///
    /// # Errors
    /// An invalid page: too noisy, or of other parameters.
    fn coefficients(&self, sealed: &C, place: PagePlace) -> Result<Zeroizing<Vec<i128>>, Error>;
}

impl Decryptor<Vec<Ciphertext>> for SecretKey {
    fn coefficients(
        &self,
        sealed: &Vec<Ciphertext>,
        place: PagePlace,
    ) -> Result<Zeroizing<Vec<i128>>, Error> {
        Ok(self.decrypt_sealed(sealed, &place.request, place.number)?.0)
    }
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The integers that were released for it before.
    Repeated(Vec<Vec<i64>>),
    /// The ruling to append to the dataset's chain before its result leaves the service.
    Ruled(Box<Ruling>),
}

/// SHA-256 of a batch's request, as the first computation service sent it and as the second one
/// computed it. They are equal if both computed from the same upload, since evaluation and
/// [sealing](crate::sealing) are deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests {
    /// Digest of the request that arrived.
    pub sent: [u8; 32],
    /// Digest of the second computation service's own request, once it has computed it.
    pub witness: Option<[u8; 32]>,
}

/// The decision on a request before anything is decrypted.
#[derive(Clone, Debug)]
pub enum Judged {
    /// Done: the batch was released before, or freezes the dataset.
    Done(RequestOutcome),
    /// The batch may be decrypted once it is [debited](JobLedger::debit). Then [`rule`] decides on the
    /// integers.
    Granted(Box<Grant>),
}

/// Judges a batch of the job whose run has the ledger `job_ledger`. If the rules demand a second computation service,
/// a batch is granted only if that service computed the same request.
///
/// # Errors
/// The reason of a refusal: see [`JobLedger::judge`]; [`Error::Unwitnessed`].
pub fn judge<C>(
    rules: &Rules,
    job_ledger: &JobLedger,
    request: &DecryptRequest<C>,
    digests: Digests,
) -> Result<Judged, Error> {
    let Digests { sent, witness } = digests;
    let grant = match job_ledger.judge(rules, request, &sent)? {
        Decision::Repeated(answers) => return Ok(Judged::Done(RequestOutcome::Repeated(answers))),
        Decision::Granted(grant) => grant,
    };
    if rules.plan.witness && sent != witness.ok_or(Error::Unwitnessed)? {
        let ruling = Ruling::freeze(job_ledger.clone(), Freeze::Witness);
        return Ok(Judged::Done(RequestOutcome::Ruled(Box::new(ruling))));
    }
    Ok(Judged::Granted(Box::new(grant)))
}

/// Makes the ruling for a granted batch from the integers of its releases. If they could not be
/// read, the ruling freezes the dataset.
pub fn rule(job_ledger: &JobLedger, grant: Grant, answers: Option<Vec<Vec<i64>>>) -> Ruling {
    let before = job_ledger.clone();
    let Some(answers) = answers else {
        return Ruling::freeze(before, grant.undecryptable());
    };
    let entries = grant.entries().to_vec();
    let job_ledger = job_ledger.clone().with(grant, answers.clone());
    Ruling::release(
        before,
        entries,
        Released {
            answers,
            job_ledger,
        },
    )
}

/// Decrypts a debited batch to the integers of its releases. Returns `None` if a page cannot be
/// decrypted.
pub fn open<C>(
    decryptor: &impl Decryptor<C>,
    request: &DecryptRequest<C>,
) -> Option<Vec<Vec<i64>>> {
    read(decryptor, request).ok()
}

/// Reads the cells of each release from the pages that carry them.
fn read<C>(
    decryptor: &impl Decryptor<C>,
    request: &DecryptRequest<C>,
) -> Result<Vec<Vec<i64>>, Error> {
    let first = request.releases.first().map_or(0, |release| release.number);
    let mut answers = vec![Vec::new(); request.releases.len()];
    let place = request_place(request, first);
    for (number, page) in (0..).zip(&request.pages) {
        let place = PagePlace {
            request: place,
            number,
        };
        let values = decryptor.coefficients(&page.ciphertexts, place)?;
        for part in &page.parts {
            let answer = answers.get_mut((part.number - first) as usize);
            let answer = answer.ok_or(Error::Request("a page has a part of an unknown release"))?;
            for position in part.span.range() {
                let value = values.get(coefficient(position)).copied();
                let value = value.and_then(|value| i64::try_from(value).ok());
                answer.push(value.ok_or(Error::Request("a value has more than 64 bits"))?);
            }
        }
    }
    Ok(answers)
}

/// Returns a digest that distinguishes the request from all others of the dataset.
fn request_place<C>(request: &DecryptRequest<C>, first: u32) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"fhaim request place 1");
    hash.update(request.dataset.0);
    hash.update(request.job.0);
    hash.update(first.to_le_bytes());
    hash.finalize().into()
}

/// The service's state for one dataset, in memory.
#[derive(Debug)]
pub struct CryptoService<D = SecretKey> {
    decryptor: D,
    record: KeyServiceState,
}

/// The data of a dataset that a key service must not lose. A service with a database keeps it in
/// rows.
#[derive(Clone, Debug)]
pub struct KeyServiceState {
    rules: Rules,
    chain_state: ChainState,
    job_ledgers: Vec<JobLedger>,
}

impl KeyServiceState {
    /// Creates the state of a dataset without a run.
    pub fn new(rules: Rules) -> Self {
        Self {
            chain_state: ChainState::new(rules.dataset),
            rules,
            job_ledgers: Vec::new(),
        }
    }

    /// Returns the state of the dataset's chain.
    pub fn chain_state(&self) -> &ChainState {
        &self.chain_state
    }

    /// Returns the ledger of a job's run.
    pub fn job_ledger(&self, job: JobId) -> Option<&JobLedger> {
        self.job_ledgers
            .iter()
            .find(|job_ledger| job_ledger.window().job() == job)
    }

    /// Returns the rules that were fixed with the keys.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Records that the keys were made under these terms, by digests of all three. Returns the
    /// agreement that the roster's holders sign.
    ///
    /// # Errors
    /// Never: an act is text.
    pub fn keys_made(
        &mut self,
        terms: [u8; 32],
        public_key: [u8; 32],
        evaluation_keys: [u8; 32],
    ) -> Result<Agreement, Error> {
        self.chain_state.append(Act::KeysMade {
            terms,
            public_key,
            evaluation_keys,
        })?;
        let agreement = self.chain_state.agreement();
        agreement.copied().ok_or(Error::Refused)
    }

    /// Adds a holder's signature: see [`ChainState::sign`].
    ///
    /// # Errors
    /// Those of [`ChainState::sign`].
    pub fn sign(&mut self, member: u32, signature: MemberSignature) -> Result<(), Error> {
        self.chain_state
            .sign(&self.rules, member, signature)
            .map(|_| ())
    }

    /// Returns the ledger of a job. A job without one is given the next run.
    ///
    /// # Errors
    /// Those of [`ChainState::begin`].
    pub fn begin(&mut self, job: JobId, upload: [u8; 32]) -> Result<&JobLedger, Error> {
        let Begun { run, link } = self.chain_state.begin(&self.rules, job, upload)?;
        if link.is_some() {
            self.job_ledgers.push(JobLedger::new(&self.rules, job, run));
        }
        self.job_ledger(job).ok_or(Error::Refused)
    }

    /// Debits and decrypts a batch, and returns the cells of each release, in order. A repeated
    /// request is answered from the stored integers.
    ///
    /// # Errors
    /// [`Error::Refused`] for any reason; [`Error::Unwitnessed`]; [`Error::Frozen`] after the first
    /// page that cannot be decrypted, which is paid for, and after the first batch that the second
    /// computation service computed differently. Other refused requests do not change a ledger.
    pub fn decrypt<C>(
        &mut self,
        decryptor: &impl Decryptor<C>,
        request: &DecryptRequest<C>,
        digests: Digests,
    ) -> Result<Vec<Vec<i64>>, Error> {
        self.chain_state.check_open()?;
        let of_job = |job_ledger: &&mut JobLedger| job_ledger.window().job() == request.job;
        let job_ledger = self
            .job_ledgers
            .iter_mut()
            .find(of_job)
            .ok_or(Error::Refused)?;
        let refused = |error| match error {
            Error::Unwitnessed => Error::Unwitnessed,
            _ => Error::Refused,
        };
        let judged = judge(&self.rules, job_ledger, request, digests);
        let ruling = match judged.map_err(refused)? {
            Judged::Done(RequestOutcome::Repeated(answers)) => return Ok(answers),
            Judged::Done(RequestOutcome::Ruled(ruling)) => *ruling,
            Judged::Granted(grant) => {
                job_ledger.debit(&mut self.chain_state, &grant, digests.sent)?;
                rule(job_ledger, *grant, open(decryptor, request))
            }
        };
        ruling.append_to(&mut self.chain_state, job_ledger)?;
        let released = ruling.into_released()?;
        *job_ledger = released.job_ledger;
        Ok(released.answers)
    }
}

impl CryptoService {
    /// Makes a dataset's key set.
    ///
    /// # Errors
    /// Errors of key generation.
    pub fn new<R: RngCore + CryptoRng>(
        rules: Rules,
        params: &Parameters,
        rng: &mut R,
    ) -> Result<Self, Error> {
        Ok(Self {
            decryptor: SecretKey::random(params, rng)?,
            record: KeyServiceState::new(rules),
        })
    }

    /// Makes the dataset's public key, for encryption.
    ///
    /// # Errors
    /// Errors of key generation.
    pub fn public_key<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<PublicKey, Error> {
        Ok(self.decryptor.public_key(rng)?)
    }

    /// Makes the evaluation keys, including the switching keys of a roster's upload keys if there
    /// is one.
    ///
    /// # Errors
    /// Errors of key generation.
    pub fn evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        shape: Option<RosterShape>,
        rng: &mut R,
    ) -> Result<EvaluationKeys, Error> {
        Ok(match shape {
            None => self.decryptor.evaluation_keys(rng)?,
            Some(shape) => self.decryptor.roster_evaluation_keys(shape, rng)?,
        })
    }

    /// Returns the seed of a holder's upload key, by the holder's number. Only that holder may see
    /// it.
    pub fn upload_seed(&self, holder: usize) -> Zeroizing<[u8; 32]> {
        self.decryptor.upload_seed(holder)
    }

    /// Returns the service's records.
    pub fn record(&self) -> &KeyServiceState {
        &self.record
    }

    /// Returns the service's records, to add keys and signatures.
    pub fn record_mut(&mut self) -> &mut KeyServiceState {
        &mut self.record
    }

    /// Returns the ledger of a job.
    ///
    /// # Errors
    /// [`Error::Refused`] for a job without a run.
    pub fn ledger(&self, job: JobId) -> Result<Ledger, Error> {
        let job_ledger = self.record.job_ledger(job).ok_or(Error::Refused)?;
        Ok(job_ledger.ledger().clone())
    }

    /// Gives a job a run: see [`KeyServiceState::begin`].
    ///
    /// # Errors
    /// Those of [`KeyServiceState::begin`].
    pub fn begin(&mut self, job: JobId, upload: [u8; 32]) -> Result<&JobLedger, Error> {
        self.record.begin(job, upload)
    }

    /// Decrypts a batch: see [`KeyServiceState::decrypt`].
    ///
    /// # Errors
    /// Those of [`KeyServiceState::decrypt`].
    pub fn decrypt(&mut self, request: &DecryptRequest) -> Result<Vec<Vec<i64>>, Error> {
        // Not a digest of the request's bytes: ciphertexts of other parameters cannot be encoded
        // under this key's parameters.
        let mut hash = Sha256::new();
        hash.update(asked(&request.releases));
        let ciphertexts = request.pages.iter().flat_map(|page| &page.ciphertexts);
        ciphertexts.for_each(|ciphertext| ciphertext.digest_into(|bytes| hash.update(bytes)));
        let digests = Digests {
            sent: hash.finalize().into(),
            witness: None,
        };
        self.decrypt_witnessed(request, digests)
    }

    /// Decrypts a batch with known digests: see [`judge`](judge()).
    ///
    /// # Errors
    /// Those of [`KeyServiceState::decrypt`].
    pub fn decrypt_witnessed(
        &mut self,
        request: &DecryptRequest,
        digests: Digests,
    ) -> Result<Vec<Vec<i64>>, Error> {
        self.record.decrypt(&self.decryptor, request, digests)
    }
}
