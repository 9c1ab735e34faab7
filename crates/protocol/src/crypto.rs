//! The crypto-service entity: makes keys, keeps the ledger, decrypts releases it has debited.
//!
//! [`decrypt`] is the whole judgement, a function of the secret key, the dataset's terms and the
//! job's ledger. A service with a database loads the ledger, calls it, commits the ledger's new
//! entries and only then answers; [`CryptoService`] does the same in memory.

use crate::Error;
use crate::codec::encode_release;
use crate::request::{DatasetId, DecryptRequest, JobId, SealedPage};
use fhaim_domain::{Domain, counted};
use fhaim_dp::{Debit, Ledger, Rho, Span};
use fhaim_he::{EvaluationKeys, LEAK_BITS, PAGE, Parameters, PublicKey, SecretKey, coefficient};
use fhaim_synth::{ReleaseRequest, Statistic};
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use zeroize::Zeroizing;

/// Sealed ciphertexts that one release may take part in, plaintext moduli counted apart.
const LEAKS: u64 = 4;

/// What every release is charged for the residual noise of its ciphertexts: 2^-28.
///
/// # Errors
/// Never: the ratio is a constant within range.
pub fn leak() -> Result<Rho, Error> {
    Ok(Rho::ratio_up(u128::from(LEAKS), 1 << LEAK_BITS)?)
}

/// What was fixed when the dataset's keys were made, and every request is held against.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The dataset.
    pub id: DatasetId,
    /// Its attributes' sizes.
    pub domain: Domain,
    /// The table has at most so many records.
    pub record_bound: u64,
}

/// A request granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decrypted {
    /// The cells of each release, in the order of the request.
    pub answers: Vec<Vec<i64>>,
    /// The job's ledger after the request: the entries before, and one for every release that is
    /// new. Must be durable before the answers are sent.
    pub ledger: Ledger,
}

/// Judges and decrypts a batch of a job whose ledger is `ledger`.
///
/// Decryption comes first, in memory, so that a ciphertext that cannot be decrypted debits
/// nothing. A repeated request is answered again with an unchanged ledger.
///
/// # Errors
/// The reason of a refusal, for the service's own log: whoever asked must be told nothing but
/// [`Error::Refused`].
pub fn decrypt(
    secret: &SecretKey,
    dataset: &Dataset,
    ledger: &Ledger,
    request: &DecryptRequest,
) -> Result<Decrypted, Error> {
    if request.dataset != dataset.id {
        return Err(Error::Request("another dataset"));
    }
    check_shape(request)?;
    let mut pages = Vec::with_capacity(request.pages.len());
    for page in &request.pages {
        pages.push((secret.decrypt(&page.ciphertexts)?.0, page.digest()));
    }
    let mut ledger = ledger.clone();
    let mut answers = Vec::with_capacity(request.releases.len());
    for release in &request.releases {
        let (cells, digest) = collect(request, release, &pages)?;
        ledger.debit(debit(dataset, release, digest)?)?;
        answers.push(cells);
    }
    Ok(Decrypted { answers, ledger })
}

/// Checks that releases and parts of pages match, that no position is used twice, and that none
/// lies outside its page.
fn check_shape(request: &DecryptRequest) -> Result<(), Error> {
    let mut variances = BTreeMap::new();
    for release in &request.releases {
        let before = variances.insert(release.number, release.variance_units);
        if before.is_some() {
            return Err(Error::Request("a release number repeats"));
        }
    }
    let mut answered = BTreeSet::new();
    for page in &request.pages {
        check_page(page, &variances)?;
        answered.extend(page.parts.iter().map(|part| part.number));
    }
    if answered.len() != variances.len() {
        return Err(Error::Request("a release without a page"));
    }
    let parts = request.pages.iter().flat_map(|page| &page.parts);
    let mut spans: Vec<Span> = parts.map(|part| part.span).collect();
    spans.sort_unstable_by_key(|span| (span.page, span.start));
    let overlap =
        |pair: &[Span]| pair[0].page == pair[1].page && pair[1].start < pair[0].start + pair[0].len;
    if spans.windows(2).any(overlap) {
        return Err(Error::Request("two parts share a position"));
    }
    Ok(())
}

/// Checks one page's parts; `variances` are those of the request's releases, by number.
fn check_page(page: &SealedPage, variances: &BTreeMap<u32, u64>) -> Result<(), Error> {
    let Some(first) = page.parts.first() else {
        return Err(Error::Request("a page that answers nothing"));
    };
    for part in &page.parts {
        match variances.get(&part.number) {
            None => return Err(Error::Request("a part of no release")),
            Some(&units) if units != page.variance_units => {
                return Err(Error::Request("a page's noise is not the release's"));
            }
            Some(_) => {}
        }
        let Span {
            page: number,
            start,
            len,
        } = part.span;
        if number != first.span.page || len == 0 || start >= PAGE || len > PAGE - start {
            return Err(Error::Request("a part outside its page"));
        }
    }
    Ok(())
}

/// A decrypted page's coefficients, and its digest.
type Page = (Zeroizing<Vec<i128>>, [u8; 32]);

/// The cells of one release from all pages that carry it, and the digest that binds it to
/// dataset, job, number, ciphertexts and positions.
fn collect(
    request: &DecryptRequest,
    release: &ReleaseRequest,
    pages: &[Page],
) -> Result<(Vec<i64>, [u8; 32]), Error> {
    let mut hash = Sha256::new();
    hash.update(b"fhaim release 1");
    hash.update(request.dataset.0);
    hash.update(request.job.0);
    hash.update(encode_release(release));
    let expected = release.statistic.cells();
    let mut cells = Vec::new();
    let mut sealed = 0;
    for (page, (values, digest)) in request.pages.iter().zip(pages) {
        let mut parts = page
            .parts
            .iter()
            .filter(|part| part.number == release.number)
            .peekable();
        if parts.peek().is_some() {
            sealed += page.ciphertexts.len() as u64;
            hash.update(digest);
        }
        for part in parts {
            let Span { page, start, len } = part.span;
            for number in [page, start, len] {
                hash.update((number as u64).to_le_bytes());
            }
            if len > expected - cells.len() {
                return Err(Error::Request("more positions than cells"));
            }
            for position in part.span.range() {
                let value = i64::try_from(values[coefficient(position)]);
                cells.push(value.map_err(|_| Error::Request("a value beyond 64 bits"))?);
            }
        }
    }
    if cells.len() != expected {
        return Err(Error::Request("fewer positions than cells"));
    }
    if sealed > LEAKS {
        return Err(Error::Request("a release spread over too many pages"));
    }
    Ok((cells, hash.finalize().into()))
}

fn debit(dataset: &Dataset, release: &ReleaseRequest, digest: [u8; 32]) -> Result<Debit, Error> {
    let refuse = |error: &dyn std::fmt::Display| Error::Statistic {
        number: release.number,
        reason: error.to_string(),
    };
    let statistic = &release.statistic;
    statistic.check(&dataset.domain).map_err(|e| refuse(&e))?;
    Ok(Debit {
        number: release.number,
        description: description(statistic),
        digest,
        delta2_squared: statistic
            .squared_sensitivity(dataset.record_bound)
            .map_err(|e| refuse(&e))?,
        variance_units: release.variance_units,
        cells: statistic.cells() as u64,
        leak: leak()?,
    })
}

/// What is released, for people: attributes are counted from 0.
fn description(statistic: &Statistic) -> String {
    match statistic {
        Statistic::Total => "number of records".to_owned(),
        Statistic::OneWay(axis) => format!("attribute {}", axis.attribute),
        Statistic::Product(a, b) => format!("attributes {} and {}", a.attribute, b.attribute),
        Statistic::SquaredScores(terms) => format!("scores of {}", counted(terms.len(), "pair")),
    }
}

/// The service's state for one dataset, in memory.
#[derive(Debug)]
pub struct CryptoService {
    secret: SecretKey,
    dataset: Dataset,
    budget: Rho,
    ledgers: BTreeMap<JobId, Ledger>,
}

impl CryptoService {
    /// Makes a dataset's key set and fixes its domain, record bound and budget.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn new<R: RngCore + CryptoRng>(
        dataset: Dataset,
        params: &Parameters,
        budget: Rho,
        rng: &mut R,
    ) -> Result<Self, Error> {
        Ok(Self {
            secret: SecretKey::random(params, rng)?,
            dataset,
            budget,
            ledgers: BTreeMap::new(),
        })
    }

    /// The key to encrypt under.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn public_key<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<PublicKey, Error> {
        Ok(self.secret.public_key(rng)?)
    }

    /// The keys to evaluate with.
    ///
    /// # Errors
    /// What key generation refuses.
    pub fn evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        rng: &mut R,
    ) -> Result<EvaluationKeys, Error> {
        Ok(self.secret.evaluation_keys(rng)?)
    }

    /// The ledger of a job: its entries, under the budget that the other jobs leave it.
    ///
    /// # Errors
    /// Never for a ledger that this service debited.
    pub fn ledger(&self, job: JobId) -> Result<Ledger, Error> {
        let others = self.ledgers.iter().filter(|&(&other, _)| other != job);
        let spent = Rho::checked_sum(others.map(|(_, ledger)| ledger.spent()));
        let left = spent.and_then(|spent| self.budget.checked_sub(spent));
        let mut ledger = Ledger::new(left.unwrap_or(Rho::ZERO));
        for entry in self.ledgers.get(&job).map_or(&[][..], Ledger::entries) {
            ledger.debit(entry.debit.clone())?;
        }
        Ok(ledger)
    }

    /// Debits and decrypts a batch: the cells of each of its releases, in order. A repeated
    /// request is answered again without a debit.
    ///
    /// # Errors
    /// [`Error::Refused`], whatever the reason; the ledgers are then unchanged.
    pub fn decrypt(&mut self, request: &DecryptRequest) -> Result<Vec<Vec<i64>>, Error> {
        let granted = self
            .ledger(request.job)
            .and_then(|ledger| decrypt(&self.secret, &self.dataset, &ledger, request));
        let Decrypted { answers, ledger } = granted.map_err(|_| Error::Refused)?;
        self.ledgers.insert(request.job, ledger);
        Ok(answers)
    }
}
