//! Generation of a split key in seven steps. In each step every service sends one message to all
//! others.
//!
//! | step | body |
//! |---|---|
//! | commitment to a seed | a digest of step, sender and the next body |
//! | seed | the service's contribution to the common polynomials |
//! | commitment to the first round | a digest |
//! | first round | [`fhaim_he::key_sharing::FirstRound`] |
//! | commitment to the second round | a digest |
//! | second round | [`fhaim_he::key_sharing::SecondRound`] |
//! | confirmation | digests of the public key and of the evaluation keys |
//!
//! No service sends its message of a step before it has the messages of all earlier steps from all
//! services. Each message carries a digest of all those. So no service can choose its message after
//! it has seen another's. A service that sends different messages to two others is detected by the
//! next message between these two.
//!
//! **Storage.** There are two options.
//!
//! - Store the share and the signing key first, and then every message: own messages before they
//!   are sent, and others' once [`KeyGeneration::take`] has accepted them, in that order. Taking
//!   the stored messages again, in any order that [`Error::Early`] allows, leads to the same state.
//!   A service that was set back to an older copy of its store must not continue, because its peers
//!   know messages that it should have committed to first. It cannot detect this by itself.
//! - Store nothing before [`KeyGeneration::made`], as the key services do. A service that stops
//!   then starts another attempt with another share, and no restored store has a part of one.

use super::member::CommitteeMember;
use super::message::{Message, Step, write};
use super::{KeyCommittee, ServiceSigningKey};
use crate::Error;
use fhaim_he::key_sharing::{CommonRandomness, FirstRound, KeyShare, RoundSums, SecondRound};
use fhaim_he::{EvaluationKeys, Parameters, PublicKey, RosterShape};
use sha2::{Digest, Sha256};

/// One service's state of a key generation.
pub struct KeyGeneration {
    committee: KeyCommittee,
    /// Shape of the roster whose upload keys are made with the dataset's keys.
    shape: Option<RosterShape>,
    number: usize,
    share: KeyShare,
    key: ServiceSigningKey,
    step: Step,
    /// Digest of all messages of earlier steps.
    seen: [u8; 32],
    /// Messages of this step, by sender.
    received: Vec<Option<Received>>,
    /// Digests of the messages of all earlier steps, and the commitments of the last step.
    taken: Vec<[u8; 32]>,
    commitments: Vec<[u8; 32]>,
    /// The body that this service commits to or reveals now.
    reveals: Vec<u8>,
    common: Option<CommonRandomness>,
    sums: Option<RoundSums>,
    keys: Option<Keys>,
    done: bool,
}

impl std::fmt::Debug for KeyGeneration {
    /// Omits everything that is not revealed yet.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyGeneration")
            .field("number", &self.number)
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
struct Received {
    digest: [u8; 32],
    content: Content,
}

/// Decoded body of a message.
#[derive(Clone, Debug)]
enum Content {
    Commitment([u8; 32]),
    Seed([u8; 32]),
    First(Box<FirstRound>),
    Second(Box<SecondRound>),
    Confirmation,
}

#[derive(Debug)]
struct Keys {
    public: PublicKey,
    evaluation: EvaluationKeys,
    digests: [u8; 64],
}

/// The effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The message is new and must be stored.
    New,
    /// The message was taken before.
    Repeated,
}

/// One service's part of a finished key.
#[derive(Debug)]
pub struct SplitKey {
    pub(super) member: CommitteeMember,
    public: PublicKey,
    evaluation: EvaluationKeys,
}

impl SplitKey {
    /// Returns the public key, for encryption.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the evaluation keys.
    pub fn evaluation_keys(&self) -> &EvaluationKeys {
        &self.evaluation
    }

    /// Returns the part that decryption needs.
    pub fn member(&self) -> &CommitteeMember {
        &self.member
    }
}

impl KeyGeneration {
    /// Starts a key generation for the service of the committee that signs with `key`. The share
    /// must be new: a share that took part in another attempt must be discarded. `shape` is that of
    /// the terms' roster, if they have one.
    ///
    /// # Errors
    /// [`Error::Committee`] for a key that the committee does not have, and for a share with
    /// another number of services.
    pub fn new(
        committee: KeyCommittee,
        shape: Option<RosterShape>,
        share: KeyShare,
        key: ServiceSigningKey,
    ) -> Result<Self, Error> {
        committee.check_params(share.params())?;
        let number = committee.number_of(&key.public())?;
        Ok(Self {
            shape,
            received: vec![None; committee.services().len()],
            seen: *committee.context(),
            committee,
            number,
            reveals: share.contribution().to_vec(),
            share,
            key,
            step: Step::SeedCommitment,
            taken: Vec::new(),
            commitments: Vec::new(),
            common: None,
            sums: None,
            keys: None,
            done: false,
        })
    }

    /// Whether the key is finished and [`KeyGeneration::finish`] returns it.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Returns this service's share and the keys once they are made, before any service has
    /// confirmed them. They must be stored before this service confirms them. Nothing else of the
    /// key generation then has to be stored: a service with the
    /// [confirmations](super::confirmation) can continue.
    pub fn made(&self) -> Option<(&KeyShare, &PublicKey, &EvaluationKeys)> {
        let keys = self.keys.as_ref()?;
        Some((&self.share, &keys.public, &keys.evaluation))
    }

    /// Returns the services whose message of this step is missing.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let services = self.committee.services().iter().zip(&self.received);
        let missing = services.filter(|(_, received)| received.is_none() && !self.done);
        missing.map(|(service, _)| service.name.as_str())
    }

    /// Returns this service's message of the current step. It must be stored, then passed to
    /// [`KeyGeneration::take`], then sent to all. Repeated calls return the same message. Returns
    /// `None` once the key is finished.
    ///
    /// # Errors
    /// Errors of key generation.
    pub fn message(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.done {
            return Ok(None);
        }
        let committed = |step| commitment(&self.committee, step, self.number, &self.reveals);
        let body = match self.step {
            Step::SeedCommitment => committed(Step::Seed).to_vec(),
            Step::FirstCommitment => committed(Step::First).to_vec(),
            Step::SecondCommitment => committed(Step::Second).to_vec(),
            Step::Seed | Step::First | Step::Second => self.reveals.clone(),
            Step::Confirmation => self.keys.as_ref().ok_or(Error::Early)?.digests.to_vec(),
            Step::Assignment | Step::Verdict | Step::Share => return Ok(None),
        };
        let place = (self.step, self.number);
        Ok(Some(write(
            &self.committee,
            &self.key,
            place,
            &self.seen,
            &body,
        )))
    }

    fn params(&self) -> &Parameters {
        self.share.params()
    }

    /// Takes a message of any service, including this one.
    ///
    /// # Errors
    /// [`Error::Early`] for a message of a later step, which can be taken later;
    /// [`Error::Committee`] for bytes that are not a message of this key generation;
    /// [`Error::Deviation`] with the sender of a message that breaks the protocol. Such a message
    /// is not taken, and no key is made unless the right one arrives.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        let message = Message::read(&self.committee, bytes)?;
        if !Step::GENERATION.contains(&message.step) {
            return Err(Error::Committee("a message belongs to a decryption"));
        }
        if message.step < self.step || self.done {
            let at = message.step as usize * self.committee.services().len() + message.sender;
            return self.repeated(&message, self.taken.get(at).copied());
        }
        if message.step > self.step {
            return Err(Error::Early);
        }
        let before = self.received.get(message.sender).and_then(Option::as_ref);
        if let Some(before) = before.map(|received| received.digest) {
            return self.repeated(&message, Some(before));
        }
        if message.seen != self.seen {
            let what = "has other messages of the earlier steps";
            return Err(self.committee.deviation(message.sender, what));
        }
        if message.sender == self.number && self.message()?.as_deref() != Some(bytes) {
            return Err(Error::Committee(
                "a message has this service as sender, but this service did not send it",
            ));
        }
        let content = self.read(&message)?;
        if let Some(place) = self.received.get_mut(message.sender) {
            *place = Some(Received {
                digest: message.digest,
                content,
            });
        }
        if self.committee.all(&self.received) {
            self.advance()?;
        }
        Ok(Taken::New)
    }

    fn repeated(&self, message: &Message<'_>, before: Option<[u8; 32]>) -> Result<Taken, Error> {
        if before == Some(message.digest) {
            return Ok(Taken::Repeated);
        }
        let what = "sent two different messages in one step";
        Err(self.committee.deviation(message.sender, what))
    }

    /// Checks a message of the current step against its sender's commitment.
    fn read(&self, message: &Message<'_>) -> Result<Content, Error> {
        let Message {
            step, sender, body, ..
        } = *message;
        let deviates = |what| self.committee.deviation(sender, what);
        if matches!(step, Step::Seed | Step::First | Step::Second) {
            let now = commitment(&self.committee, step, sender, body);
            if self.commitments.get(sender) != Some(&now) {
                return Err(deviates("revealed data that does not match its commitment"));
            }
        }
        let malformed = |_| deviates("sent bytes that are not a message of this step");
        Ok(match step {
            Step::Seed => Content::Seed(message.fixed().map_err(malformed)?),
            Step::First => {
                let round =
                    FirstRound::from_bytes(self.params(), self.shape, body).map_err(Error::from);
                Content::First(Box::new(round.map_err(malformed)?))
            }
            Step::Second => {
                let round =
                    SecondRound::from_bytes(self.params(), self.shape, body).map_err(Error::from);
                Content::Second(Box::new(round.map_err(malformed)?))
            }
            Step::Confirmation => {
                let digests: [u8; 64] = message.fixed().map_err(malformed)?;
                if self
                    .keys
                    .as_ref()
                    .is_none_or(|keys| keys.digests != digests)
                {
                    return Err(deviates("confirmed other keys"));
                }
                Content::Confirmation
            }
            _ => Content::Commitment(message.fixed().map_err(malformed)?),
        })
    }

    /// Moves to the next step once all messages of this one have arrived.
    fn advance(&mut self) -> Result<(), Error> {
        let services = self.committee.services().len();
        let received = std::mem::replace(&mut self.received, vec![None; services]);
        let (mut commitments, mut seeds) = (Vec::new(), Vec::new());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut digests = Vec::with_capacity(services);
        for Received { digest, content } in received.into_iter().flatten() {
            digests.push(digest);
            match content {
                Content::Commitment(commitment) => commitments.push(commitment),
                Content::Seed(seed) => seeds.push(seed),
                Content::First(round) => first.push(*round),
                Content::Second(round) => second.push(*round),
                Content::Confirmation => {}
            }
        }
        self.seen = step_digest(&self.seen, &digests);
        self.taken.extend(digests);
        self.commitments = commitments;
        match self.step {
            Step::Seed => {
                let common = CommonRandomness::new(
                    self.params(),
                    self.committee.context(),
                    self.shape,
                    &seeds,
                )?;
                self.reveals = self.share.first_round(&common)?.to_bytes(self.params());
                self.common = Some(common);
            }
            Step::First => {
                let common = self.common.as_ref().ok_or(Error::Early)?;
                let sums = RoundSums::new(self.params(), common, &first)?;
                self.reveals = self.share.second_round(&sums)?.to_bytes(self.params());
                self.sums = Some(sums);
            }
            Step::Second => {
                self.make_keys(&second)?;
                self.reveals = Vec::new();
            }
            Step::Confirmation => self.done = true,
            _ => {}
        }
        let next = Step::GENERATION.into_iter().find(|&step| step > self.step);
        self.step = next.unwrap_or(self.step);
        Ok(())
    }

    fn make_keys(&mut self, second: &[SecondRound]) -> Result<(), Error> {
        let sums = self.sums.as_ref().ok_or(Error::Early)?;
        let (public, evaluation) = (sums.public_key()?, sums.evaluation_keys(second)?);
        let mut digests = [0; 64];
        let (of_public, of_evaluation) = digests.split_at_mut(32);
        of_public.copy_from_slice(&Sha256::digest(public.to_bytes()?));
        of_evaluation.copy_from_slice(&Sha256::digest(evaluation.to_bytes()));
        self.keys = Some(Keys {
            public,
            evaluation,
            digests,
        });
        Ok(())
    }

    /// Returns the key once all services have confirmed it.
    ///
    /// # Errors
    /// [`Error::Early`] before that.
    pub fn finish(self) -> Result<SplitKey, Error> {
        let keys = self.keys.filter(|_| self.done).ok_or(Error::Early)?;
        Ok(SplitKey {
            member: CommitteeMember::new(self.committee, self.share, self.key, self.seen)?,
            public: keys.public,
            evaluation: keys.evaluation,
        })
    }
}

/// Returns the digest of a step that later messages carry: of `seen` before the step, and of the
/// digests of the step's messages in the order of their senders.
pub(super) fn step_digest(seen: &[u8; 32], messages: &[[u8; 32]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"fhaim panel step 1");
    hash.update(seen);
    messages.iter().for_each(|digest| hash.update(digest));
    hash.finalize().into()
}

/// Returns a service's commitment to the `body` that it sends in a later step. Bodies have at least
/// 32 bytes of randomness, so a commitment hides its body. The sender's number prevents a copy of
/// another service's commitment.
fn commitment(committee: &KeyCommittee, step: Step, sender: usize, body: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"fhaim panel commitment 1");
    hash.update(committee.context());
    hash.update([step as u8, sender as u8]);
    hash.update(body);
    hash.finalize().into()
}
