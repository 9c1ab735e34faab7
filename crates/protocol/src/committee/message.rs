//! The messages between key services, as signed bytes.
//!
//! The magic `FHAIMK`, a format version, the step, the sender's number, the committee's context, a
//! digest of all messages of earlier steps, the body, and an Ed25519 signature of the SHA-256 of
//! all that. Every message has one encoding, and signatures are deterministic: a repeated message
//! has the same bytes.

use super::{KeyCommittee, ServiceSigningKey, verify};
use crate::Error;
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 6] = b"FHAIMK";
const VERSION: u8 = 1;
/// Magic, version, step, sender; context; digest of earlier messages.
const HEADER: usize = 6 + 3 + 2 * 32;
const SIGNATURE: usize = 64;

/// The step that a message belongs to, in the order of a key generation. The last three belong to
/// decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    SeedCommitment,
    Seed,
    FirstCommitment,
    First,
    SecondCommitment,
    Second,
    Confirmation,
    Assignment,
    Verdict,
    Share,
}

impl Step {
    pub(super) const GENERATION: [Self; 7] = [
        Self::SeedCommitment,
        Self::Seed,
        Self::FirstCommitment,
        Self::First,
        Self::SecondCommitment,
        Self::Second,
        Self::Confirmation,
    ];
    const DECRYPTION: [Self; 3] = [Self::Assignment, Self::Verdict, Self::Share];

    fn read(byte: u8) -> Option<Self> {
        let mut all = Self::GENERATION.into_iter().chain(Self::DECRYPTION);
        all.find(|&step| step as u8 == byte)
    }
}

/// A message whose signature was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) step: Step,
    pub(super) sender: usize,
    /// Digest of all messages of earlier steps.
    pub(super) seen: [u8; 32],
    pub(super) body: &'a [u8],
    /// SHA-256 of everything except the signature.
    pub(super) digest: [u8; 32],
}

/// Writes and signs a message.
pub(super) fn write(
    committee: &KeyCommittee,
    key: &ServiceSigningKey,
    (step, sender): (Step, usize),
    seen: &[u8; 32],
    body: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body.len() + SIGNATURE);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, step as u8, sender as u8]);
    out.extend_from_slice(committee.context());
    out.extend_from_slice(seen);
    out.extend_from_slice(body);
    let signature = key.sign_bytes(&Sha256::digest(&out));
    out.extend_from_slice(&signature);
    out
}

impl<'a> Message<'a> {
    /// Reads a message of this committee and checks its signature. The step determines the format
    /// of the body.
    ///
    /// # Errors
    /// [`Error::Committee`] with the first rule that the bytes break.
    pub(super) fn read(committee: &KeyCommittee, bytes: &'a [u8]) -> Result<Self, Error> {
        let refused = |what| Err(Error::Committee(what));
        let parts = bytes.split_last_chunk::<SIGNATURE>();
        let split = parts.and_then(|(signed, signature)| {
            let (header, body) = signed.split_first_chunk::<HEADER>()?;
            Some((signed, header, body, signature))
        });
        let Some((signed, header, body, signature)) = split else {
            return refused("a message is shorter than its header");
        };
        let mut header = fhaim_release::codec::ByteReader(header);
        if header.take::<6>()? != *MAGIC || header.take::<1>()? != [VERSION] {
            return refused("a message has another format version");
        }
        let [step, sender] = header.take()?;
        let Some(step) = Step::read(step) else {
            return refused("a message has an unknown step");
        };
        let sender = usize::from(sender);
        let Some(service) = committee.services().get(sender) else {
            return refused("the sender is not in the committee");
        };
        if header.take::<32>()? != *committee.context() {
            return refused("a message belongs to another key, or to another attempt to make it");
        }
        let seen = header.take()?;
        let digest: [u8; 32] = Sha256::digest(signed).into();
        verify(&service.key, &digest, signature)?;
        Ok(Self {
            step,
            sender,
            seen,
            body,
            digest,
        })
    }

    /// Returns a body of exactly `N` bytes.
    ///
    /// # Errors
    /// [`Error::Committee`] for another length.
    pub(super) fn fixed<const N: usize>(&self) -> Result<[u8; N], Error> {
        let body = <[u8; N]>::try_from(self.body);
        body.map_err(|_| Error::Committee("a message's body has the wrong length"))
    }
}
