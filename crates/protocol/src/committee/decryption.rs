//! Decryption by all services of a committee, and reading what their shares add up to.
//!
//! The same sealed request is shown to every key service, and what [`Opened::of`] takes of it to who reads:
//! the first of them, where services run. For a batch each key service
//!
//! 1. judges it and promises it to all ([`InMemoryKeyService::judge`]),
//! 2. once all have promised it debits it, and sends its share to who reads
//!    ([`InMemoryKeyService::hear`], [`InMemoryKeyService::share`]).
//!
//! The [`ShareReader`] adds up all shares, measures the noise, and rounds. The first page that is noisier
//! than a sealed one can be ends reading for good: its refusal would answer a question about the key.
//! The key services, which see no noise, are told and freeze the dataset ([`InMemoryKeyService::freeze`]).
//!
//! **What this does not withstand** is a computation service that deviates: for a second half of
//! q / 64 a share shows the service's key (`a_chosen_second_half_shows_the_share` in `fhaim-he`). No key
//! service can tell such a page from one that was computed, but for the digest of a second computation
//! service, which every key service waits for where the terms have one.

use super::KeyCommittee;
use super::keygen::SplitKey;
pub use super::member::request_digest;
use super::member::{Assignment, CommitteeMember, Promised, positions, read};
use super::message::Step;
use super::state::SharedDatasetState;
use crate::Error;
use crate::crypto::chain::Freeze;
use crate::crypto::judge::Rules;
use crate::request::{DecryptRequest, JobId, PageSpan, SealedPage};
use fhaim_he::Parameters;
use fhaim_he::key_sharing::{DecryptionShare, Opening, combine};
use fhaim_release::ReleaseRequest;
use fhaim_release::codec::ByteReader as Bytes;

/// One key service, in memory. What changes [`InMemoryKeyService::record`] has it stored before what is returned
/// leaves.
#[derive(Debug)]
pub struct InMemoryKeyService {
    key: SplitKey,
    record: SharedDatasetState,
}

impl InMemoryKeyService {
    /// The service of a key that was made, under a dataset's rules.
    ///
    /// # Errors
    /// [`Error::Committee`] for rules of another dataset or parameter set.
    pub fn new(key: SplitKey, rules: Rules) -> Result<Self, Error> {
        let params = key.member.key_share().params();
        let committee = key.member.committee();
        if rules.dataset != committee.dataset() || rules.plan.set != *params.set() {
            return Err(Error::Committee(
                "rules of another dataset or parameter set",
            ));
        }
        let record = SharedDatasetState::new(rules, committee.services().len());
        Ok(Self { key, record })
    }

    /// What must not be lost.
    pub fn record(&self) -> &SharedDatasetState {
        &self.record
    }

    /// Goes on from a record that was stored.
    pub fn restore(&mut self, record: SharedDatasetState) {
        self.record = record;
    }

    /// The key, of which this service has a share.
    pub fn key(&self) -> &SplitKey {
        &self.key
    }

    fn member(&self) -> &CommitteeMember {
        &self.key.member
    }

    fn digest(&self, request: &DecryptRequest) -> [u8; 32] {
        request_digest(self.member().key_share().params(), request)
    }

    /// The first service's word on which run a job has, for the others; the same however often it is
    /// asked for.
    ///
    /// # Errors
    /// [`Error::Committee`] for another service; what [`SharedDatasetState::assign`] refuses.
    pub fn assign(&mut self, job: JobId, upload: [u8; 32]) -> Result<Vec<u8>, Error> {
        if self.member().number() != 0 {
            return Err(Error::Committee("the first service assigns runs"));
        }
        let run = self.record.assign(job, upload)?.run;
        self.member().assignment(&Assignment { job, run, upload })
    }

    /// Takes the first service's word, where it is what this service would have said.
    ///
    /// # Errors
    /// [`Error::Committee`] for another's message; what [`SharedDatasetState::follow`] refuses.
    pub fn follow(&mut self, assignment: &[u8]) -> Result<(), Error> {
        let assignment = self.member().read_assignment(assignment)?;
        self.record.follow(&assignment).map(|_| ())
    }

    /// Judges a batch: this service's promise, for all others. The same however often it is asked for.
    /// `witness` is the [digest](request_digest) of the request that the second computation service computed.
    ///
    /// # Errors
    /// What [`SharedDatasetState::judge`] refuses, for the service's own log.
    pub fn judge(
        &mut self,
        request: &DecryptRequest,
        witness: Option<[u8; 32]>,
    ) -> Result<Vec<u8>, Error> {
        let digest = self.digest(request);
        self.record.judge(request, &digest, witness)?;
        let (service, job) = (self.member().number(), request.job);
        self.record.hear(&Promised {
            service,
            job,
            request: digest,
        })?;
        Ok(self.member().verdict(job, &digest))
    }

    /// Takes a service's promise.
    ///
    /// # Errors
    /// [`Error::Committee`] for bytes that are none; what [`SharedDatasetState::hear`] refuses.
    pub fn hear(&mut self, verdict: &[u8]) -> Result<(), Error> {
        let promised = self.member().read_verdict(verdict)?;
        self.record.hear(&promised)
    }

    /// Debits a batch that all have promised, and has this service's share of it, for who reads. The
    /// same however often it is asked for, and debited once.
    ///
    /// # Errors
    /// [`Error::Early`] while a promise is missing; [`Error::Encryption`] for pages of other parameters,
    /// which cost nothing.
    pub fn share(&mut self, request: &DecryptRequest) -> Result<Vec<u8>, Error> {
        let digest = self.digest(request);
        self.record.check_promised(request.job, &digest)?;
        let share = self.member().share(request)?;
        self.record.debit(request, &digest)?;
        Ok(share)
    }

    /// See [`SharedDatasetState::freeze`].
    ///
    /// # Errors
    /// As there.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.record.freeze()
    }
}

/// What the computation service sends who reads: the first halves of a request's ciphertexts at
/// released positions, whose masks it knows anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    request: [u8; 32],
    pages: Vec<OpenedPage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenedPage {
    parts: Vec<PageSpan>,
    ciphertexts: Vec<Opening>,
}

impl Opened {
    /// Of a sealed request.
    ///
    /// # Errors
    /// [`Error::Encryption`] for ciphertexts of other parameters.
    pub fn of(params: &Parameters, request: &DecryptRequest) -> Result<Self, Error> {
        let page = |page: &SealedPage| {
            let positions = positions(&page.parts);
            let ciphertexts = page.ciphertexts.iter();
            let opened = ciphertexts.map(|c| Opening::new(params, c, &positions));
            Ok(OpenedPage {
                parts: page.parts.clone(),
                ciphertexts: opened.collect::<Result<_, fhaim_he::Error>>()?,
            })
        };
        Ok(Self {
            request: request_digest(params, request),
            pages: request
                .pages
                .iter()
                .map(page)
                .collect::<Result<_, Error>>()?,
        })
    }
}

/// Who reads: the generation entity, or whoever the terms name.
#[derive(Debug)]
pub struct ShareReader {
    committee: KeyCommittee,
    params: Parameters,
    key: [u8; 32],
    frozen: bool,
}

impl ShareReader {
    /// Of the key that was made with these messages ([`CommitteeMember::transcript`]).
    ///
    /// # Errors
    /// [`Error::Committee`] for parameters of another number of shares.
    pub fn new(
        committee: KeyCommittee,
        params: Parameters,
        transcript: [u8; 32],
    ) -> Result<Self, Error> {
        committee.check_params(&params)?;
        Ok(Self {
            committee,
            params,
            key: transcript,
            frozen: false,
        })
    }

    /// Whether a page could not be decrypted: to be stored before anyone is told.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// The cells of each release, from what was opened and the shares of all services, in any order.
    ///
    /// # Errors
    /// [`Error::Early`] while a share is missing; [`Error::Committee`] and [`Error::Encryption`] for shares
    /// of something else; [`Error::Frozen`] from the first page on that cannot be decrypted.
    pub fn read(
        &mut self,
        releases: &[ReleaseRequest],
        opened: &Opened,
        shares: &[Vec<u8>],
    ) -> Result<Vec<Vec<i64>>, Error> {
        if self.frozen {
            return Err(Error::Frozen(Freeze::Noise));
        }
        let services = self.shares(opened, shares)?;
        let first = releases.first().map_or(0, |release| release.number);
        let mut answers = vec![Vec::new(); releases.len()];
        for (number, page) in opened.pages.iter().enumerate() {
            let of_page = services.iter().map(|pages| pages.get(number).cloned());
            let of_page: Option<Vec<_>> = of_page.collect();
            let of_page = of_page.ok_or(Error::Committee("a share for other pages"))?;
            let combined = combine(&self.params, &page.ciphertexts, &of_page);
            if matches!(combined, Err(fhaim_he::Error::NoiseBudget)) {
                self.frozen = true;
                return Err(Error::Frozen(Freeze::Noise));
            }
            let (values, _) = combined?;
            let mut values = values.iter().copied();
            for part in &page.parts {
                let index = part.number.checked_sub(first).map(|index| index as usize);
                let answer = index.and_then(|index| answers.get_mut(index));
                let answer = answer.ok_or(Error::Request("a part of no release"))?;
                for value in values.by_ref().take(part.span.len) {
                    let value = i64::try_from(value);
                    answer.push(value.map_err(|_| Error::Request("a value beyond 64 bits"))?);
                }
            }
        }
        let mut whole = releases.iter().zip(&answers);
        match whole.all(|(release, answer)| release.statistic.cells() == answer.len()) {
            true => Ok(answers),
            false => Err(Error::Request("pages that are not those of the releases")),
        }
    }

    /// The shares of every service, by page.
    fn shares(
        &self,
        opened: &Opened,
        messages: &[Vec<u8>],
    ) -> Result<Vec<Vec<Vec<DecryptionShare>>>, Error> {
        let mut services = vec![None; self.committee.services().len()];
        for bytes in messages {
            let message = read(&self.committee, &self.key, Step::Share, bytes)?;
            let mut body = Bytes(message.body);
            if body.take::<32>()? != opened.request {
                return Err(Error::Committee("a share for another request"));
            }
            let pages = body.list(8, |body| body.list(8, |body| self.share(body)))?;
            body.end()?;
            if pages.len() != opened.pages.len() {
                return Err(Error::Committee("a share for other pages"));
            }
            // The number is one of the committee's.
            if let Some(service) = services.get_mut(message.sender) {
                *service = Some(pages);
            }
        }
        services
            .into_iter()
            .collect::<Option<_>>()
            .ok_or(Error::Early)
    }

    fn share(&self, body: &mut Bytes<'_>) -> Result<DecryptionShare, Error> {
        let length = body.number()?;
        let (bytes, rest) = body
            .0
            .split_at_checked(length)
            .ok_or(Error::Committee("a share is longer than its bytes"))?;
        body.0 = rest;
        Ok(DecryptionShare::from_bytes(&self.params, bytes)?)
    }
}
