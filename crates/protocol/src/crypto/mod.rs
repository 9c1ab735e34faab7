//! The crypto-service entity: makes keys, keeps the ledger, decrypts releases it has debited.
//!
//! | module | for |
//! |---|---|
//! | [`judge`] | what may be released, and at what cost: pure, without a key |
//! | [`chain`] | a dataset's history as a hash chain, and receipts for it |
//! | [`history`] | what the chain says, and what may be appended to it next |
//!
//! [`decrypt`] puts a judgement and a decryption together. A service with a database loads the
//! job's [`Book`], calls it, appends what the [`Ruling`] says to the dataset's chain by compare and
//! set, and only then answers; [`CryptoService`] does the same in memory.

pub mod chain;
pub mod history;
pub mod judge;

use crate::Error;
use crate::request::{DecryptRequest, JobId};
use fhaim_dp::{Ledger, Rho};
use fhaim_he::{
    Ciphertext, EvaluationKeys, LEAK_BITS, Parameters, PublicKey, SecretKey, coefficient,
};
use history::{Begun, Released, Ruling, Standing};
use judge::{Book, Rules, Verdict};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// What the residual noise of one sealed ciphertext may tell: 2^-30 (`he::noise::check_page`).
///
/// # Errors
/// Never: the ratio is a constant within range.
pub fn ciphertext_leak() -> Result<Rho, Error> {
    Ok(Rho::ratio_up(1, 1 << LEAK_BITS)?)
}

/// What turns a sealed page into its coefficients.
pub trait Decryptor<C> {
    /// The coefficients of a page, wiped from memory when they are dropped.
    ///
    /// # Errors
    /// A page that is not one: too noisy, or of other parameters.
    fn coefficients(&self, sealed: &C) -> Result<Zeroizing<Vec<i128>>, Error>;
}

impl Decryptor<Vec<Ciphertext>> for SecretKey {
    fn coefficients(&self, sealed: &Vec<Ciphertext>) -> Result<Zeroizing<Vec<i128>>, Error> {
        Ok(self.decrypt(sealed)?.0)
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The integers that were released for it before.
    Repeated(Vec<Vec<i64>>),
    /// What is to be appended to the dataset's chain, before anyone is told of it.
    Ruled(Ruling),
}

/// Judges and decrypts a batch of the job whose run is `book`.
///
/// Decryption comes before the debit, in memory, so that pages that cannot be decrypted cost
/// nothing.
///
/// # Errors
/// The reason of a refusal: see [`Book::judge`].
pub fn decrypt<C>(
    decryptor: &impl Decryptor<C>,
    rules: &Rules,
    book: &Book,
    request: &DecryptRequest<C>,
) -> Result<Outcome, Error> {
    let grant = match book.judge(rules, request)? {
        Verdict::Repeated(answers) => return Ok(Outcome::Repeated(answers)),
        Verdict::Granted(grant) => grant,
    };
    let before = book.clone();
    let Ok(answers) = read(decryptor, request) else {
        return Ok(Outcome::Ruled(Ruling::freeze(before)));
    };
    let entries = grant.entries().to_vec();
    let book = book.clone().with(grant, answers.clone());
    let released = Released { answers, book };
    Ok(Outcome::Ruled(Ruling::release(before, entries, released)))
}

/// The cells of each release, from the pages that carry them.
fn read<C>(
    decryptor: &impl Decryptor<C>,
    request: &DecryptRequest<C>,
) -> Result<Vec<Vec<i64>>, Error> {
    let first = request.releases.first().map_or(0, |release| release.number);
    let mut answers = vec![Vec::new(); request.releases.len()];
    for page in &request.pages {
        let values = decryptor.coefficients(&page.ciphertexts)?;
        for part in &page.parts {
            let answer = answers.get_mut((part.number - first) as usize);
            let answer = answer.ok_or(Error::Request("a part of no release"))?;
            for position in part.span.range() {
                let value = values.get(coefficient(position)).copied();
                let value = value.and_then(|value| i64::try_from(value).ok());
                answer.push(value.ok_or(Error::Request("a value beyond 64 bits"))?);
            }
        }
    }
    Ok(answers)
}

/// The service's state for one dataset, in memory.
#[derive(Debug)]
pub struct CryptoService<D = SecretKey> {
    decryptor: D,
    record: Record,
}

/// What a key service must not lose of a dataset, as a value: what a service with a database
/// keeps in rows.
#[derive(Clone, Debug)]
pub struct Record {
    rules: Rules,
    standing: Standing,
    books: Vec<Book>,
}

impl Record {
    /// The record of a dataset without a run.
    pub fn new(rules: Rules) -> Self {
        Self {
            standing: Standing::new(rules.dataset),
            rules,
            books: Vec::new(),
        }
    }

    /// Where the dataset's chain is.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The book of a job's run.
    pub fn book(&self, job: JobId) -> Option<&Book> {
        self.books.iter().find(|book| book.window().job() == job)
    }

    /// What was fixed with the keys.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The book of a job; a job that has none is given the next run.
    ///
    /// # Errors
    /// As [`Standing::begin`].
    pub fn begin(&mut self, job: JobId, upload: [u8; 32]) -> Result<&Book, Error> {
        let Begun { run, link } = self.standing.begin(&self.rules, job, upload)?;
        if link.is_some() {
            self.books.push(Book::new(&self.rules, job, run));
        }
        self.book(job).ok_or(Error::Refused)
    }

    /// Debits and decrypts a batch: the cells of each of its releases, in order. A repeated
    /// request is answered from store.
    ///
    /// # Errors
    /// [`Error::Refused`], whatever the reason, the books then being unchanged; [`Error::Frozen`]
    /// from the first page on that cannot be decrypted.
    pub fn decrypt<C>(
        &mut self,
        decryptor: &impl Decryptor<C>,
        request: &DecryptRequest<C>,
    ) -> Result<Vec<Vec<i64>>, Error> {
        self.standing.check_open()?;
        let of_job = |book: &&mut Book| book.window().job() == request.job;
        let book = self.books.iter_mut().find(of_job).ok_or(Error::Refused)?;
        let outcome = decrypt(decryptor, &self.rules, book, request);
        let ruling = match outcome.map_err(|_| Error::Refused)? {
            Outcome::Repeated(answers) => return Ok(answers),
            Outcome::Ruled(ruling) => ruling,
        };
        ruling.append_to(&mut self.standing, book)?;
        let released = ruling.into_released()?;
        *book = released.book;
        Ok(released.answers)
    }
}

impl CryptoService {
    /// Makes a dataset's key set.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn new<R: RngCore + CryptoRng>(
        rules: Rules,
        params: &Parameters,
        rng: &mut R,
    ) -> Result<Self, Error> {
        Ok(Self {
            decryptor: SecretKey::random(params, rng)?,
            record: Record::new(rules),
        })
    }

    /// The key to encrypt under.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn public_key<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<PublicKey, Error> {
        Ok(self.decryptor.public_key(rng)?)
    }

    /// The keys to evaluate with.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        rng: &mut R,
    ) -> Result<EvaluationKeys, Error> {
        Ok(self.decryptor.evaluation_keys(rng)?)
    }

    /// What it keeps.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The ledger of a job.
    ///
    /// # Errors
    /// [`Error::Refused`] for a job without a run.
    pub fn ledger(&self, job: JobId) -> Result<Ledger, Error> {
        let book = self.record.book(job).ok_or(Error::Refused)?;
        Ok(book.ledger().clone())
    }

    /// See [`Record::begin`].
    ///
    /// # Errors
    /// As there.
    pub fn begin(&mut self, job: JobId, upload: [u8; 32]) -> Result<&Book, Error> {
        self.record.begin(job, upload)
    }

    /// See [`Record::decrypt`].
    ///
    /// # Errors
    /// As there.
    pub fn decrypt(&mut self, request: &DecryptRequest) -> Result<Vec<Vec<i64>>, Error> {
        self.record.decrypt(&self.decryptor, request)
    }
}
