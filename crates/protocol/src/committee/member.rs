//! One key service's part of a finished key: its place in the committee, its share, and the
//! messages that it makes with them. The decisions are made by the [run record](super::state).

use super::message::{Message, Step, write};
use super::{KeyCommittee, ServiceSigningKey};
use crate::Error;
use crate::request::{DecryptRequest, JobId, PageSpan, SealedPage};
use fhaim_he::Parameters;
use fhaim_he::key_sharing::KeyShare;
use fhaim_release::codec::{ByteReader as Bytes, Writer};
use sha2::{Digest, Sha256};

/// Returns the digest that identifies a request: the SHA-256 of its bytes.
pub fn request_digest(params: &Parameters, request: &DecryptRequest) -> [u8; 32] {
    Sha256::digest(request.to_bytes(params)).into()
}

/// A service's place in a committee, with its share.
#[derive(Debug)]
pub struct CommitteeMember {
    committee: KeyCommittee,
    number: usize,
    share: KeyShare,
    key: ServiceSigningKey,
    /// Digest of all messages of the key generation.
    transcript: [u8; 32],
}

/// The first service's assignment of a run to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// Number of its run.
    pub run: u32,
    /// Digest of the upload that the run uses.
    pub upload: [u8; 32],
}

/// A service's promise to release a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promised {
    /// Number of the service.
    pub service: usize,
    /// The job.
    pub job: JobId,
    /// Digest of the request.
    pub request: [u8; 32],
}

/// Returns the positions of a page's releases, in the order of their cells.
pub(super) fn positions(parts: &[PageSpan]) -> Vec<usize> {
    parts.iter().flat_map(|part| part.span.range()).collect()
}

impl CommitteeMember {
    /// Creates the place of the service that signs with `key`. `transcript` is the digest of the
    /// messages that made the committee's key.
    ///
    /// # Errors
    /// [`Error::Committee`] for a key that the committee does not have, and for a share with
    /// another number of services.
    pub fn new(
        committee: KeyCommittee,
        share: KeyShare,
        key: ServiceSigningKey,
        transcript: [u8; 32],
    ) -> Result<Self, Error> {
        committee.check_params(share.params())?;
        Ok(Self {
            number: committee.number_of(&key.public())?,
            committee,
            share,
            key,
            transcript,
        })
    }

    /// Returns the committee.
    pub fn committee(&self) -> &KeyCommittee {
        &self.committee
    }

    /// Returns this service's number. The first service assigns runs.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns its share. It must be sealed before it is stored.
    pub fn key_share(&self) -> &KeyShare {
        &self.share
    }

    /// Returns the digest of all messages of the key generation, which identifies the key.
    pub fn transcript(&self) -> &[u8; 32] {
        &self.transcript
    }

    fn write(&self, step: Step, body: &[u8]) -> Vec<u8> {
        let place = (step, self.number);
        write(&self.committee, &self.key, place, &self.transcript, body)
    }

    fn read<'a>(&self, step: Step, bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        read(&self.committee, &self.transcript, step, bytes)
    }

    /// Makes the message that tells the other services the run of a job. Only the first service
    /// sends it.
    ///
    /// # Errors
    /// [`Error::Committee`] for any other service.
    pub fn assignment(&self, assignment: &Assignment) -> Result<Vec<u8>, Error> {
        if self.number != 0 {
            return Err(Error::Committee("only the first service assigns runs"));
        }
        let Assignment { job, run, upload } = assignment;
        let body = [&job.0[..], &run.to_le_bytes(), upload].concat();
        Ok(self.write(Step::Assignment, &body))
    }

    /// Reads an assignment of the first service.
    ///
    /// # Errors
    /// [`Error::Committee`] for another service's message.
    pub fn read_assignment(&self, bytes: &[u8]) -> Result<Assignment, Error> {
        let message = self.read(Step::Assignment, bytes)?;
        if message.sender != 0 {
            return Err(Error::Committee("only the first service assigns runs"));
        }
        let body: [u8; 16 + 4 + 32] = message.fixed()?;
        let mut body = Bytes(&body);
        Ok(Assignment {
            job: JobId(body.take()?),
            run: u32::from_le_bytes(body.take()?),
            upload: body.take()?,
        })
    }

    /// Makes this service's promise, for all others. It must be stored before it is sent.
    pub fn verdict(&self, job: JobId, request: &[u8; 32]) -> Vec<u8> {
        self.write(Step::Verdict, &[&job.0[..], request].concat())
    }

    /// Reads a service's promise.
    ///
    /// # Errors
    /// [`Error::Committee`] for bytes that are not a promise.
    pub fn read_verdict(&self, bytes: &[u8]) -> Result<Promised, Error> {
        let message = self.read(Step::Verdict, bytes)?;
        let body: [u8; 16 + 32] = message.fixed()?;
        let mut body = Bytes(&body);
        Ok(Promised {
            service: message.sender,
            job: JobId(body.take()?),
            request: body.take()?,
        })
    }

    /// Computes this service's share of a request, for the reader of the shares. Repeated calls
    /// return the same share. It may be sent once the request is debited.
    ///
    /// # Errors
    /// [`Error::Encryption`] for pages of other parameters.
    pub fn share(&self, request: &DecryptRequest) -> Result<Vec<u8>, Error> {
        let params = self.share.params();
        let digest = request_digest(params, request);
        let mut pages = Vec::with_capacity(request.pages.len());
        for (number, page) in (0..).zip(&request.pages) {
            let SealedPage {
                ciphertexts, parts, ..
            } = page;
            if ciphertexts.len() != params.residues() {
                return Err(Error::Request(
                    "a page must have one ciphertext for each plaintext modulus",
                ));
            }
            let positions = positions(parts);
            let of = |c| self.share.decryption_share(c, &positions, &digest, number);
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
        Ok(self.write(Step::Share, &body.0))
    }
}

/// Reads a message of one step by a service with a share of this key.
pub(super) fn read<'a>(
    committee: &KeyCommittee,
    key: &[u8; 32],
    step: Step,
    bytes: &'a [u8],
) -> Result<Message<'a>, Error> {
    let message = Message::read(committee, bytes)?;
    if message.step != step {
        return Err(Error::Committee("a message belongs to another step"));
    }
    if message.seen != *key {
        return Err(committee.deviation(message.sender, "has a share of another key"));
    }
    Ok(message)
}
