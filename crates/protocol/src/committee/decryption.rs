//! Decryption by all services of a committee, and reading the sum of their shares.
//!
//! Every key service sees the same sealed request. The reader of the shares sees the part of it in
//! [`Opened::of`]. In services the first key service is the reader. For a batch each key service
//!
//! 1. judges it and promises it to all ([`InMemoryKeyService::judge`]),
//! 2. debits it once all have promised it, and sends its share to the reader
//!    ([`InMemoryKeyService::hear`], [`InMemoryKeyService::share`]).
//!
//! The [`ShareReader`] adds up all shares, measures the noise, and rounds. The first page with more
//! noise than a sealed page can have ends all reading permanently, since its refusal answers a
//! question about the key. The key services see no noise, so they are informed, and freeze the
//! dataset ([`InMemoryKeyService::freeze`]).
//!
//! **This does not protect against** a computation service that deviates: for a second half of q /
//! 64 a share reveals the service's key (`chosen_second_half_reveals_the_share` in `fhaim-he`). A
//! key service cannot tell such a page from a computed one, except by the digest of a second
//! computation service. Every key service waits for that digest if the terms have such a service.

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

/// One key service in memory. Its owner must store every change of [`InMemoryKeyService::record`]
/// before the returned value is sent.
#[derive(Debug)]
pub struct InMemoryKeyService {
    key: SplitKey,
    record: SharedDatasetState,
}

impl InMemoryKeyService {
    /// Creates the service for a finished key, under a dataset's rules.
    ///
    /// # Errors
    /// [`Error::Committee`] for rules of another dataset or parameter set.
    pub fn new(key: SplitKey, rules: Rules) -> Result<Self, Error> {
        let params = key.member.key_share().params();
        let committee = key.member.committee();
        if rules.dataset != committee.dataset() || rules.plan.set != *params.set() {
            return Err(Error::Committee(
                "the rules are for another dataset or parameter set",
            ));
        }
        let record = SharedDatasetState::new(rules, committee.services().len());
        Ok(Self { key, record })
    }

    /// Returns the state that must not be lost.
    pub fn record(&self) -> &SharedDatasetState {
        &self.record
    }

    /// Continues from a stored state.
    pub fn restore(&mut self, record: SharedDatasetState) {
        self.record = record;
    }

    /// Returns the key of which this service has a share.
    pub fn key(&self) -> &SplitKey {
        &self.key
    }

    fn member(&self) -> &CommitteeMember {
        &self.key.member
    }

    fn digest(&self, request: &DecryptRequest) -> [u8; 32] {
        request_digest(self.member().key_share().params(), request)
    }

    /// Assigns a run to a job. Returns the first service's message for the others. Repeated calls
    /// return the same message.
    ///
    /// # Errors
    /// [`Error::Committee`] for any other service; errors of [`SharedDatasetState::assign`].
    pub fn assign(&mut self, job: JobId, upload: [u8; 32]) -> Result<Vec<u8>, Error> {
        if self.member().number() != 0 {
            return Err(Error::Committee("only the first service assigns runs"));
        }
        let run = self.record.assign(job, upload)?.run;
        self.member().assignment(&Assignment { job, run, upload })
    }

    /// Accepts the first service's assignment if this service would have made the same.
    ///
    /// # Errors
    /// [`Error::Committee`] for another service's message; errors of
    /// [`SharedDatasetState::follow`].
    pub fn follow(&mut self, assignment: &[u8]) -> Result<(), Error> {
        let assignment = self.member().read_assignment(assignment)?;
        self.record.follow(&assignment).map(|_| ())
    }

    /// Judges a batch, and returns this service's promise for all others. Repeated calls return the
    /// same promise. `witness` is the [digest](request_digest) of the request that the second
    /// computation service computed.
    ///
    /// # Errors
    /// Errors of [`SharedDatasetState::judge`], for the service's own log.
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

    /// Accepts another service's promise.
    ///
    /// # Errors
    /// [`Error::Committee`] for invalid bytes; errors of [`SharedDatasetState::hear`].
    pub fn hear(&mut self, verdict: &[u8]) -> Result<(), Error> {
        let promised = self.member().read_verdict(verdict)?;
        self.record.hear(&promised)
    }

    /// Debits a batch that all services have promised, and returns this service's share for the
    /// reader. Repeated calls return the same share, and the batch is debited once.
    ///
    /// # Errors
    /// [`Error::Early`] while a promise is missing; [`Error::Encryption`] for pages of other
    /// parameters, which cost nothing.
    pub fn share(&mut self, request: &DecryptRequest) -> Result<Vec<u8>, Error> {
        let digest = self.digest(request);
        self.record.check_promised(request.job, &digest)?;
        let share = self.member().share(request)?;
        self.record.debit(request, &digest)?;
        Ok(share)
    }

    /// Freezes the dataset: see [`SharedDatasetState::freeze`].
    ///
    /// # Errors
    /// Those of [`SharedDatasetState::freeze`].
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.record.freeze()
    }
}

/// The part of a request for the reader of the shares: the first halves of its ciphertexts at the
/// released positions. The computation service knows their masks anyway.
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
    /// Takes this part of a sealed request.
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

/// The reader of the shares: the generation service, or the service that the terms name.
#[derive(Debug)]
pub struct ShareReader {
    committee: KeyCommittee,
    params: Parameters,
    key: [u8; 32],
    frozen: bool,
}

impl ShareReader {
    /// Creates the reader for the key with this transcript ([`CommitteeMember::transcript`]).
    ///
    /// # Errors
    /// [`Error::Committee`] for parameters with another number of shares.
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

    /// Whether a page could not be decrypted. It must be stored before the result is sent.
    pub fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Computes the cells of each release from the opened request and the shares of all services,
    /// in any order.
    ///
    /// # Errors
    /// [`Error::Early`] while a share is missing; [`Error::Committee`] and [`Error::Encryption`]
    /// for shares that do not belong to the request; [`Error::Frozen`] after the first page that
    /// cannot be decrypted.
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
            let of_page = of_page.ok_or(Error::Committee("a share belongs to other pages"))?;
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
                let answer =
                    answer.ok_or(Error::Request("a page has a part of an unknown release"))?;
                for value in values.by_ref().take(part.span.len) {
                    let value = i64::try_from(value);
                    answer
                        .push(value.map_err(|_| Error::Request("a value has more than 64 bits"))?);
                }
            }
        }
        let mut whole = releases.iter().zip(&answers);
        match whole.all(|(release, answer)| release.statistic.cells() == answer.len()) {
            true => Ok(answers),
            false => Err(Error::Request("its pages do not follow from its releases")),
        }
    }

    /// Reads the shares of every service, by page.
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
                return Err(Error::Committee("a share belongs to another request"));
            }
            let pages = body.list(8, |body| body.list(8, |body| self.share(body)))?;
            body.end()?;
            if pages.len() != opened.pages.len() {
                return Err(Error::Committee("a share belongs to other pages"));
            }
            // The sender's number is below that of the committee's services.
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
            .ok_or(Error::Committee("a share is truncated"))?;
        body.0 = rest;
        Ok(DecryptionShare::from_bytes(&self.params, bytes)?)
    }
}
