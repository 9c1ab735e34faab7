//! Decryption by all services of a panel, and reading what their shares add up to.
//!
//! The computation service sends the same sealed request to every key service, and what
//! [`Opened::of`] takes of it to the generation entity. For a batch each key service
//!
//! 1. judges it and promises it to all ([`Service::judge`]),
//! 2. once all have promised it debits it, and sends its share to the generation entity
//!    ([`Service::hear`], [`Service::share`]).
//!
//! The [`Reader`] adds up all shares, measures the noise, and rounds. The first page that is noisier
//! than a sealed one can be ends reading for good: its refusal would answer a question about the key.
//! The key services, which see no noise, are told and freeze the dataset ([`Service::freeze`]).
//!
//! **What this does not withstand** is a computation service that deviates: for a second half of
//! q / 64 a share shows the service's key (`a_chosen_second_half_shows_the_share` in `fhaim-he`). No key
//! service can tell such a page from one that was computed. A second computation service, whose digest
//! every key service waits for, would; there is none yet.

use super::Panel;
use super::docket::Record;
use super::generation::SplitKey;
use super::message::{Message, Step, write};
use crate::Error;
use crate::crypto::chain::Freeze;
use crate::crypto::judge::Rules;
use crate::request::{DecryptRequest, JobId, Part, SealedPage};
use fhaim_he::Parameters;
use fhaim_he::shares::{DecryptionShare, Opening, combine};
use fhaim_release::ReleaseRequest;
use fhaim_release::codec::{Reader as Bytes, Writer};
use sha2::{Digest, Sha256};

/// What names a request: the SHA-256 of its bytes.
pub fn request_digest(params: &Parameters, request: &DecryptRequest) -> [u8; 32] {
    Sha256::digest(request.to_bytes(params)).into()
}

/// Where a page's releases lie, in the order of their cells.
fn positions(parts: &[Part]) -> Vec<usize> {
    parts.iter().flat_map(|part| part.span.range()).collect()
}

/// One key service, in memory. What changes [`Service::record`] has it stored before what is returned
/// leaves.
#[derive(Debug)]
pub struct Service {
    key: SplitKey,
    record: Record,
}

impl Service {
    /// The service of a key that was made, under a dataset's rules.
    ///
    /// # Errors
    /// [`Error::Panel`] for rules of another dataset or parameter set.
    pub fn new(key: SplitKey, rules: Rules) -> Result<Self, Error> {
        let params = key.share.params();
        if rules.dataset != key.panel.dataset() || rules.residues != params.residues() {
            return Err(Error::Panel("rules of another dataset or parameter set"));
        }
        let record = Record::new(rules, key.panel.services().len());
        Ok(Self { key, record })
    }

    /// What must not be lost.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Goes on from a record that was stored.
    pub fn restore(&mut self, record: Record) {
        self.record = record;
    }

    /// The key, of which this service has a share.
    pub fn key(&self) -> &SplitKey {
        &self.key
    }

    fn write(&self, step: Step, body: &[u8]) -> Vec<u8> {
        let SplitKey {
            panel,
            number,
            key,
            seen,
            ..
        } = &self.key;
        write(panel, key, (step, *number), seen, body)
    }

    fn read<'a>(&self, step: Step, bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        read(&self.key.panel, &self.key.seen, step, bytes)
    }

    /// The first service's word on which run a job has, for the others; the same however often it is
    /// asked for.
    ///
    /// # Errors
    /// [`Error::Panel`] for another service; what [`Record::assign`] refuses.
    pub fn assign(&mut self, job: JobId, upload: [u8; 32]) -> Result<Vec<u8>, Error> {
        if self.key.number != 0 {
            return Err(Error::Panel("the first service assigns runs"));
        }
        let run = self.record.assign(job, upload)?;
        let body = [&job.0[..], &run.to_le_bytes(), &upload].concat();
        Ok(self.write(Step::Assignment, &body))
    }

    /// Takes the first service's word, where it is what this service would have said.
    ///
    /// # Errors
    /// [`Error::Panel`] for another's message; what [`Record::follow`] refuses.
    pub fn follow(&mut self, assignment: &[u8]) -> Result<(), Error> {
        let message = self.read(Step::Assignment, assignment)?;
        if message.sender != 0 {
            return Err(Error::Panel("the first service assigns runs"));
        }
        let body: [u8; 16 + 4 + 32] = message.fixed()?;
        let mut body = Bytes(&body);
        let (job, run) = (JobId(body.take()?), u32::from_le_bytes(body.take()?));
        self.record.follow(job, run, body.take()?)
    }

    /// Judges a batch: this service's promise, for all others. The same however often it is asked for.
    /// `witness` is the [digest](request_digest) of the request that the second computation service computed.
    ///
    /// # Errors
    /// What [`Record::judge`] refuses, for the service's own log.
    pub fn judge(
        &mut self,
        request: &DecryptRequest,
        witness: Option<[u8; 32]>,
    ) -> Result<Vec<u8>, Error> {
        let digest = request_digest(self.key.share.params(), request);
        self.record.judge(request, &digest, witness)?;
        self.record.hear(self.key.number, request.job, &digest)?;
        let body = [&request.job.0[..], &digest].concat();
        Ok(self.write(Step::Verdict, &body))
    }

    /// Takes a service's promise.
    ///
    /// # Errors
    /// [`Error::Panel`] for bytes that are none; what [`Record::hear`] refuses.
    pub fn hear(&mut self, verdict: &[u8]) -> Result<(), Error> {
        let message = self.read(Step::Verdict, verdict)?;
        let body: [u8; 16 + 32] = message.fixed()?;
        let mut body = Bytes(&body);
        let job = JobId(body.take()?);
        self.record.hear(message.sender, job, &body.take()?)
    }

    /// Debits a batch that all have promised, and has this service's share of it, for who reads. The
    /// same however often it is asked for, and debited once.
    ///
    /// # Errors
    /// [`Error::Early`] while a promise is missing; [`Error::Encryption`] for pages of other parameters,
    /// which cost nothing.
    pub fn share(&mut self, request: &DecryptRequest) -> Result<Vec<u8>, Error> {
        let share = &self.key.share;
        let params = share.params();
        let digest = request_digest(params, request);
        self.record.check_promised(request.job, &digest)?;
        let mut pages = Vec::with_capacity(request.pages.len());
        for (number, page) in (0..).zip(&request.pages) {
            let SealedPage {
                ciphertexts, parts, ..
            } = page;
            if ciphertexts.len() != params.residues() {
                return Err(Error::Request(
                    "a page has a ciphertext a plaintext modulus",
                ));
            }
            let positions = positions(parts);
            let of = |c| share.decryption_share(c, &positions, &digest, number);
            pages.push(ciphertexts.iter().map(of).collect::<Result<Vec<_>, _>>()?);
        }
        let mut body = Writer(digest.to_vec());
        body.list(&pages, |out, page| {
            out.list(page, |out, share| {
                let bytes = share.to_bytes(params);
                out.number(bytes.len());
                out.0.extend_from_slice(&bytes);
            });
        });
        self.record.debit(request, &digest)?;
        Ok(self.write(Step::Share, &body.0))
    }

    /// See [`Record::freeze`].
    ///
    /// # Errors
    /// As there.
    pub fn freeze(&mut self) -> Result<(), Error> {
        self.record.freeze()
    }
}

/// A message of one step, by who holds shares of the key that was made.
fn read<'a>(
    panel: &Panel,
    key: &[u8; 32],
    step: Step,
    bytes: &'a [u8],
) -> Result<Message<'a>, Error> {
    let message = Message::read(panel, bytes)?;
    if message.step != step {
        return Err(Error::Panel("a message of another step"));
    }
    if message.seen != *key {
        return Err(panel.deviation(message.sender, "has a share of another key"));
    }
    Ok(message)
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
    parts: Vec<Part>,
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
pub struct Reader {
    panel: Panel,
    params: Parameters,
    key: [u8; 32],
    frozen: bool,
}

impl Reader {
    /// Of the key that was made with these messages ([`SplitKey::transcript`]).
    ///
    /// # Errors
    /// [`Error::Panel`] for parameters of another number of shares.
    pub fn new(panel: Panel, params: Parameters, transcript: [u8; 32]) -> Result<Self, Error> {
        panel.check_params(&params)?;
        Ok(Self {
            panel,
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
    /// [`Error::Early`] while a share is missing; [`Error::Panel`] and [`Error::Encryption`] for shares
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
            let of_page = of_page.ok_or(Error::Panel("a share for other pages"))?;
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
        let mut services = vec![None; self.panel.services().len()];
        for bytes in messages {
            let message = read(&self.panel, &self.key, Step::Share, bytes)?;
            let mut body = Bytes(message.body);
            if body.take::<32>()? != opened.request {
                return Err(Error::Panel("a share for another request"));
            }
            let pages = body.list(8, |body| body.list(8, |body| self.share(body)))?;
            body.end()?;
            if pages.len() != opened.pages.len() {
                return Err(Error::Panel("a share for other pages"));
            }
            // The number is one of the panel's.
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
            .ok_or(Error::Panel("a share is longer than its bytes"))?;
        body.0 = rest;
        Ok(DecryptionShare::from_bytes(&self.params, bytes)?)
    }
}
