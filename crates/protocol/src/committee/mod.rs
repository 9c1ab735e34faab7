//! Several key services that each have a share of the secret key, which no one holds as a whole
//! (docs/DESIGN.md, section 10).
//!
//! | module | purpose |
//! |---|---|
//! | this | the [`KeyCommittee`]: the key services of a dataset |
//! | `message` | their messages to each other: signed bytes |
//! | [`keygen`] | generates the keys in seven steps; every round is committed to before it is revealed |
//! | [`confirmation`] | checks all services' confirmations of the keys, for parties that use them |
//! | [`call`] | the first service's calls to the others for a batch |
//! | [`member`] | one service's part of a finished key, and the messages that it makes with it |
//! | [`state`] | a key service's state of a dataset: runs, promises, debits |
//! | [`decryption`] | judging, debiting and sharing by each service, in memory; reading the sum of all shares |
//!
//! As everywhere in this crate there is no I/O. The owner of these values transports the messages.
//! It stores everything that has to survive a crash before it sends anything that follows from it.

pub mod call;
pub mod confirmation;
pub mod decryption;
pub mod keygen;
pub mod member;
mod message;
pub mod state;
#[cfg(test)]
mod tests;

use crate::Error;
use crate::request::DatasetId;
use crate::signing::{ServiceRole, SigningKeyOf, fingerprint};
use ed25519_dalek::{Signature, VerifyingKey};
use fhaim_dp::hex_digest;
use fhaim_he::{MAX_SHARES, Parameters};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Most bytes of a key service's name.
const MAX_NAME_BYTES: usize = 320;

/// A key service of a committee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyService {
    /// Name of the service, for people.
    pub name: String,
    /// Ed25519 public key of its signatures.
    #[serde(with = "hex_digest")]
    pub key: [u8; 32],
}

impl KeyService {
    /// Returns the fingerprint of its key, for people to compare.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key)
    }
}

/// Checks that the key services can form a committee.
///
/// # Errors
/// [`Error::Committee`] for fewer than two services or more than [`MAX_SHARES`], for names that are
/// empty, too long or repeated, and for keys that are invalid or repeated.
pub fn check_services(services: &[KeyService]) -> Result<(), Error> {
    if !(2..=MAX_SHARES).contains(&services.len()) {
        return Err(Error::Committee("a split key needs two or three services"));
    }
    for (number, service) in services.iter().enumerate() {
        let name = &service.name;
        if name.is_empty() || name.len() > MAX_NAME_BYTES || name.trim() != name {
            return Err(Error::Committee(
                "a name is empty, too long or has space at its ends",
            ));
        }
        let mut others = services.iter().take(number);
        if others.any(|other| other.name == *name || other.key == service.key) {
            return Err(Error::Committee(
                "two services have the same name or the same key",
            ));
        }
        let key = VerifyingKey::from_bytes(&service.key);
        if !key.is_ok_and(|key| !key.is_weak()) {
            return Err(Error::Committee("a key is not an Ed25519 public key"));
        }
    }
    Ok(())
}

/// The key services of one dataset, in the order of their numbers. The first one assigns runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCommittee {
    dataset: DatasetId,
    services: Vec<KeyService>,
    context: [u8; 32],
}

impl KeyCommittee {
    /// Creates the committee of these services, where `terms` is the digest of the terms. The
    /// service that starts a key generation draws a new `attempt` for it. Messages of one attempt
    /// are invalid in another.
    ///
    /// # Errors
    /// Those of [`check_services`].
    pub fn new(
        dataset: DatasetId,
        terms: &[u8; 32],
        attempt: &[u8; 16],
        services: Vec<KeyService>,
    ) -> Result<Self, Error> {
        check_services(&services)?;
        let context = context(dataset, terms, attempt, &services);
        Ok(Self {
            dataset,
            services,
            context,
        })
    }

    /// Returns the dataset.
    pub fn dataset(&self) -> DatasetId {
        self.dataset
    }

    /// Returns the services, by number.
    pub fn services(&self) -> &[KeyService] {
        &self.services
    }

    /// Returns a digest of dataset, terms, attempt, names and keys, which every message is bound
    /// to.
    pub fn context(&self) -> &[u8; 32] {
        &self.context
    }

    /// Returns the number of the service that signs with a key.
    ///
    /// # Errors
    /// [`Error::Committee`] if no service has the key.
    pub fn number_of(&self, key: &[u8; 32]) -> Result<usize, Error> {
        let number = self.services.iter().position(|s| s.key == *key);
        number.ok_or(Error::Committee(
            "the committee does not have this service's key",
        ))
    }

    fn check_params(&self, params: &Parameters) -> Result<(), Error> {
        if params.shares() == self.services.len() {
            Ok(())
        } else {
            Err(Error::Committee(
                "the parameters are for another number of shares",
            ))
        }
    }

    fn deviation(&self, number: usize, what: &'static str) -> Error {
        let service = self.services.get(number);
        Error::Deviation {
            name: service.map_or_else(String::new, |service| service.name.clone()),
            what,
        }
    }

    /// Whether every service has an entry, by their numbers.
    fn all<T>(&self, done: &[Option<T>]) -> bool {
        done.len() == self.services.len() && done.iter().all(Option::is_some)
    }
}

fn context(
    dataset: DatasetId,
    terms: &[u8; 32],
    attempt: &[u8; 16],
    services: &[KeyService],
) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"fhaim panel 1");
    hash.update(dataset.0);
    hash.update(terms);
    hash.update(attempt);
    hash.update((services.len() as u64).to_le_bytes());
    for service in services {
        hash.update((service.name.len() as u64).to_le_bytes());
        hash.update(&service.name);
        hash.update(service.key);
    }
    hash.finalize().into()
}

/// The key that a key service signs its messages with.
pub type ServiceSigningKey = SigningKeyOf<ServiceRole>;

fn verify(key: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> Result<(), Error> {
    let refused = || Error::Committee("a signature is not the service's");
    let key = VerifyingKey::from_bytes(key).map_err(|_| refused())?;
    let signature = Signature::from_bytes(signature);
    let verified = key.verify_strict(message, &signature);
    verified.map_err(|_| refused())
}
