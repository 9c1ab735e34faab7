//! Several key services, each with a share of the secret key, which nobody holds (docs/DESIGN.md,
//! section 10).
//!
//! | module | for |
//! |---|---|
//! | this | the [`KeyCommittee`]: who the key services of a dataset are |
//! | `message` | what they send each other: signed bytes |
//! | [`keygen`] | making the keys: seven steps, every round committed to before any of it is revealed |
//! | [`confirmation`] | what all say of the keys that were made, for whoever uses them |
//! | [`call`] | what the first service asks of the others for a batch |
//! | [`member`] | what a service has of a key that was made, and says and shares with it |
//! | [`state`] | what a key service keeps of a dataset: runs, promises, debits |
//! | [`decryption`] | judging, debiting and sharing by each service, in memory; reading what all shares add up to |
//!
//! As everywhere in this crate there is no I/O: whoever owns the values moves the messages, and stores
//! what has to outlive a crash before anything that follows from it is sent.

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

/// The most bytes of a key service's name.
const MAX_NAME_BYTES: usize = 320;

/// One key service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyService {
    /// What people call it.
    pub name: String,
    /// The public half of the key that it signs with: Ed25519.
    #[serde(with = "hex_digest")]
    pub key: [u8; 32],
}

impl KeyService {
    /// What people compare of its key.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key)
    }
}

/// Refuses key services that no committee can have.
///
/// # Errors
/// [`Error::Committee`] for fewer than two services or more than [`MAX_SHARES`], for names that are
/// empty, too long or taken, and for keys that are none or taken.
pub fn check_services(services: &[KeyService]) -> Result<(), Error> {
    if !(2..=MAX_SHARES).contains(&services.len()) {
        return Err(Error::Committee("a split key has two or three services"));
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
            return Err(Error::Committee("two services have one name or one key"));
        }
        let key = VerifyingKey::from_bytes(&service.key);
        if !key.is_ok_and(|key| !key.is_weak()) {
            return Err(Error::Committee("a key is no public key of Ed25519"));
        }
    }
    Ok(())
}

/// The key services of one dataset, in the order of their numbers; the first assigns runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyCommittee {
    dataset: DatasetId,
    services: Vec<KeyService>,
    context: [u8; 32],
}

impl KeyCommittee {
    /// The services under terms of which `terms` is the digest. `attempt` is drawn anew for every key
    /// generation, by whoever begins it: messages of one are nothing to another.
    ///
    /// # Errors
    /// As [`check_services`].
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

    /// The dataset.
    pub fn dataset(&self) -> DatasetId {
        self.dataset
    }

    /// The services, by number.
    pub fn services(&self) -> &[KeyService] {
        &self.services
    }

    /// A digest of dataset, terms, attempt, names and keys, which every message is bound to.
    pub fn context(&self) -> &[u8; 32] {
        &self.context
    }

    /// The number of the service that signs with a key.
    ///
    /// # Errors
    /// [`Error::Committee`] where there is none.
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

    /// Whether all have done something, by their numbers.
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
