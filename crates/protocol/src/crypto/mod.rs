//! The crypto-service entity: makes keys, keeps the ledger, decrypts releases it has debited.
//!
//! | module | for |
//! |---|---|
//! | [`judge`] | what may be released, and at what cost: pure, without a key |
//! | [`chain`] | a dataset's history as a hash chain, and receipts for it |
//!
//! [`decrypt`] puts a judgement and a decryption together. A service with a database loads the
//! job's [`Book`], calls it, appends the [`Act`] to the dataset's chain by compare and set, and
//! only then answers; [`CryptoService`] does the same in memory.

pub mod chain;
pub mod judge;

use crate::Error;
use crate::request::{DecryptRequest, JobId};
use chain::{Act, Freeze, Tip, answers_digest};
use fhaim_dp::{Ledger, Rho};
use fhaim_he::{
    Ciphertext, EvaluationKeys, LEAK_BITS, Parameters, PublicKey, SecretKey, coefficient,
};
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
    /// Its integers, which may leave once the act is durable.
    Released {
        /// The cells of each release, in the order of the request.
        answers: Vec<Vec<i64>>,
        /// The run's book with the batch in it.
        book: Book,
        /// What is to be appended to the dataset's chain first.
        act: Act,
    },
    /// The pages cannot be decrypted: the dataset is to be frozen, with this act, before anyone
    /// is told that they were refused.
    Frozen(Act),
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
    let Ok(answers) = read(decryptor, request) else {
        let reason = Freeze::Noise;
        return Ok(Outcome::Frozen(Act::Frozen { reason }));
    };
    let act = Act::Released {
        job: request.job,
        entries: grant.entries().to_vec(),
        answers: answers_digest(&answers),
    };
    Ok(Outcome::Released {
        book: book.clone().with(grant, answers.clone()),
        answers,
        act,
    })
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
    books: Vec<Book>,
    tip: Tip,
    upload: Option<[u8; 32]>,
    frozen: Option<Freeze>,
}

impl Record {
    /// The record of a dataset without a run.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            books: Vec::new(),
            tip: Tip::default(),
            upload: None,
            frozen: None,
        }
    }

    /// Why the dataset is frozen, if it is.
    pub fn frozen(&self) -> Option<Freeze> {
        self.frozen
    }

    /// The end of the dataset's chain.
    pub fn tip(&self) -> Tip {
        self.tip
    }

    /// The book of a job's run.
    pub fn book(&self, job: JobId) -> Option<&Book> {
        self.books.iter().find(|book| book.window().job() == job)
    }

    /// What was fixed with the keys.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    fn append(&mut self, act: &Act) -> Result<(), Error> {
        let text = serde_json::to_string(act).map_err(|_| Error::Request("an act is text"))?;
        self.tip = self.tip.append(self.rules.dataset, &text);
        if let Act::Frozen { reason } = act {
            self.frozen = Some(*reason);
        }
        Ok(())
    }

    /// The book of a job; a job that has none is given the next run.
    ///
    /// # Errors
    /// [`Error::NoRunLeft`]; [`Error::Frozen`]; [`Error::Refused`] for another upload than the
    /// first run was begun with.
    pub fn begin(&mut self, job: JobId, upload: [u8; 32]) -> Result<&Book, Error> {
        if let Some(reason) = self.frozen {
            return Err(Error::Frozen(reason));
        }
        if self.upload.is_some_and(|known| known != upload) {
            return Err(Error::Refused);
        }
        let known = |book: &Book| book.window().job() == job;
        let index = match self.books.iter().position(known) {
            Some(index) => index,
            None => {
                let run = self.rules.next_run(self.books.len() as u32)?;
                self.append(&Act::RunBegun { job, run, upload })?;
                self.upload = Some(upload);
                self.books.push(Book::new(&self.rules, job, run));
                self.books.len() - 1
            }
        };
        self.books.get(index).ok_or(Error::Refused)
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
        if let Some(reason) = self.frozen {
            return Err(Error::Frozen(reason));
        }
        let known = |book: &Book| book.window().job() == request.job;
        let book = self.books.iter().find(|&book| known(book));
        let book = book.ok_or(Error::Refused)?;
        let outcome = decrypt(decryptor, &self.rules, book, request);
        match outcome.map_err(|_| Error::Refused)? {
            Outcome::Repeated(answers) => Ok(answers),
            Outcome::Released { answers, book, act } => {
                self.append(&act)?;
                if let Some(kept) = self.books.iter_mut().find(|kept| known(kept)) {
                    *kept = book;
                }
                Ok(answers)
            }
            Outcome::Frozen(act) => {
                self.append(&act)?;
                Err(Error::Refused)
            }
        }
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
