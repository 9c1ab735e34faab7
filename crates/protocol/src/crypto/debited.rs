//! A key service's signed list of its debits of a dataset, for holders that check the releases.
//!
//! If several services share a key, a holder reads releases only from the first of them. Before it
//! shares anything that depends on them, its program compares them with the signed list of every
//! other service.

use crate::Error;
use crate::committee::ServiceSigningKey;
use crate::request::{DatasetId, JobId};
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// A release that a key service has debited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebitRecord {
    /// The job.
    pub job: JobId,
    /// The release's number within the job.
    pub number: u32,
    /// Digest of the release and of its positions: see
    /// [`Window::place`](crate::window::Window::place).
    pub statement: [u8; 32],
}

/// Signs everything that a service has debited of a dataset.
pub fn sign(key: &ServiceSigningKey, dataset: DatasetId, releases: &[DebitRecord]) -> [u8; 64] {
    let key = SigningKey::from_bytes(&key.to_bytes());
    key.sign(&message(dataset, releases)).to_bytes()
}

/// Checks a signature that [`sign`] made, with the service's public key from the terms.
///
/// # Errors
/// [`Error::Committee`] for a signature by another key or of another list.
pub fn verify(
    key: &[u8; 32],
    dataset: DatasetId,
    releases: &[DebitRecord],
    signature: &[u8; 64],
) -> Result<(), Error> {
    let refused = || Error::Committee("the signature of the debited releases is not the service's");
    let key = VerifyingKey::from_bytes(key).map_err(|_| refused())?;
    let signature = Signature::from_bytes(signature);
    let verified = key.verify_strict(&message(dataset, releases), &signature);
    verified.map_err(|_| refused())
}

fn message(dataset: DatasetId, releases: &[DebitRecord]) -> Vec<u8> {
    let mut message = b"fhaim debited releases 1".to_vec();
    message.extend_from_slice(&dataset.0);
    message.extend_from_slice(&(releases.len() as u64).to_le_bytes());
    for release in releases {
        message.extend_from_slice(&release.job.0);
        message.extend_from_slice(&release.number.to_le_bytes());
        message.extend_from_slice(&release.statement);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debit_list_signature_is_valid_only_for_the_same_releases() {
        let (key, dataset) = (ServiceSigningKey::from_bytes(&[1; 32]), DatasetId([2; 16]));
        let release = |number| DebitRecord {
            job: JobId([3; 16]),
            number,
            statement: [4; 32],
        };
        let releases = [release(0), release(1)];
        let signature = sign(&key, dataset, &releases);
        let holds = |key: &ServiceSigningKey, dataset, releases: &[DebitRecord]| {
            verify(&key.public(), dataset, releases, &signature).is_ok()
        };
        assert!(holds(&key, dataset, &releases));
        assert!(!holds(&key, dataset, &releases[..1]));
        assert!(!holds(&key, DatasetId([5; 16]), &releases));
        assert!(!holds(
            &ServiceSigningKey::from_bytes(&[6; 32]),
            dataset,
            &releases
        ));
        let mut other = releases;
        other[1].statement[0] ^= 1;
        assert!(!holds(&key, dataset, &other));
    }
}
