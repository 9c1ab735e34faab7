//! A dataset's history as a hash chain, and receipts for it.
//!
//! Everything that affects later answers is an [`Act`]: which job has which run, which releases
//! were made, whether the dataset is frozen or its key destroyed. Acts are appended by compare and
//! set before the service acts on them. Every answer carries a [`ChainReceipt`], signed with the
//! dataset's own receipt key. Clients show their receipt with the next request. A service that was
//! restored from an older copy of its store so finds out, and refuses the dataset permanently.

pub use super::freeze::Freeze;
use crate::Error;
use crate::request::{DatasetId, JobId};
use crate::roster::MemberSignature;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use fhaim_dp::{Entry, hex_digest};
use rand::{CryptoRng, RngCore};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// One entry of a dataset's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// The dataset's keys were made, under terms that cannot change afterwards.
    KeysMade {
        /// Digest of the terms.
        #[serde(with = "hex_digest")]
        terms: [u8; 32],
        /// Digest of the public key.
        #[serde(with = "hex_digest")]
        public_key: [u8; 32],
        /// Digest of the evaluation keys.
        #[serde(with = "hex_digest")]
        evaluation_keys: [u8; 32],
    },
    /// A holder of the roster has signed the terms and the keys.
    Signed {
        /// The holder's number in the roster.
        member: u32,
        /// The holder's signature of the [`crate::roster::Agreement`].
        signature: MemberSignature,
    },
    /// A holder of the roster has withdrawn: no further run may begin.
    Withdrawn {
        /// The holder's number in the roster.
        member: u32,
    },
    /// A job was given a run: a share of the budget and a window of the noise ladder.
    RunBegun {
        /// The job.
        job: JobId,
        /// The run.
        run: u32,
        /// Digest of the upload's manifest: the same for all runs.
        #[serde(with = "hex_digest")]
        upload: [u8; 32],
    },
    /// A batch was debited before its decryption. The act of its release follows, unless one of its
    /// pages cannot be decrypted.
    Debited {
        /// The job.
        job: JobId,
        /// The debits, in the order of their numbers.
        entries: Vec<Entry>,
        /// Digest of the request. The debits pay for the decryption of this request only.
        #[serde(with = "hex_digest")]
        request: [u8; 32],
    },
    /// A batch was released and paid for with its own debits.
    Released {
        /// The job.
        job: JobId,
        /// The debits, in the order of their numbers.
        entries: Vec<Entry>,
        /// Digest of the released integers: see [`answers_digest`]. Under a split key a service
        /// does not see the integers, and this is the digest of the request for which it sent its
        /// share.
        #[serde(with = "hex_digest")]
        answers: [u8; 32],
    },
    /// Nothing is released until an operator of the key service has investigated.
    Frozen {
        /// Reason of the freeze.
        reason: Freeze,
    },
    /// An operator has investigated and reopened the dataset.
    Thawed,
    /// The secret key was destroyed.
    KeysDestroyed,
}

/// Returns the SHA-256 of a batch's released integers.
pub fn answers_digest(answers: &[Vec<i64>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update((answers.len() as u64).to_le_bytes());
    for answer in answers {
        hash.update((answer.len() as u64).to_le_bytes());
        for value in answer {
            hash.update(value.to_le_bytes());
        }
    }
    hash.finalize().into()
}

/// The end of a chain: its number of acts, and the hash over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tip {
    /// Number of acts.
    pub height: u64,
    /// SHA-256 over height, previous tip and last act; zero for an empty chain.
    #[serde(with = "hex_digest")]
    pub head: [u8; 32],
}

impl Tip {
    /// Returns the tip after another act, given as its stored text.
    #[must_use]
    pub fn append(self, dataset: DatasetId, act: &str) -> Self {
        let height = self.height + 1;
        let mut hash = Sha256::new();
        hash.update(b"fhaim chain 1");
        hash.update(dataset.0);
        hash.update(height.to_le_bytes());
        hash.update(self.head);
        hash.update(act.as_bytes());
        Self {
            height,
            head: hash.finalize().into(),
        }
    }
}

/// Signs a dataset's receipts.
#[derive(Clone)]
pub struct ReceiptKey(SigningKey);

impl std::fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReceiptKey")
    }
}

/// A signed tip. It proves to a service that was restored from an older copy that its chain was
/// longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainReceipt {
    /// The dataset.
    pub dataset: DatasetId,
    /// Tip of the dataset's chain when the receipt was given.
    pub tip: Tip,
    /// Ed25519 signature by the dataset's receipt key.
    pub signature: [u8; 64],
}

impl ReceiptKey {
    /// Draws a key.
    pub fn random<R: RngCore + CryptoRng>(rng: &mut R) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        rng.fill_bytes(seed.as_mut());
        Self(SigningKey::from_bytes(&seed))
    }

    /// Returns the key that [`ReceiptKey::to_bytes`] wrote.
    ///
    /// # Errors
    /// Bytes of another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let seed = bytes
            .try_into()
            .map_err(|_| Error::Request("a receipt key has 32 bytes"))?;
        Ok(Self(SigningKey::from_bytes(seed)))
    }

    /// Returns the key's bytes. They must be sealed before they are stored.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// Returns the public key that receipts are checked with.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    /// Signs a receipt.
    pub fn sign(&self, dataset: DatasetId, tip: Tip) -> ChainReceipt {
        ChainReceipt {
            dataset,
            tip,
            signature: self.0.sign(&message(dataset, tip)).to_bytes(),
        }
    }
}

impl ChainReceipt {
    /// Checks the signature under a dataset's public receipt key.
    ///
    /// # Errors
    /// [`Error::Request`] for an invalid key, and for a signature that is invalid or of another
    /// message.
    pub fn verify(&self, public: &[u8; 32]) -> Result<(), Error> {
        let key = VerifyingKey::from_bytes(public);
        let key = key.map_err(|_| Error::Request("the receipt key is invalid"))?;
        let signature = Signature::from_bytes(&self.signature);
        key.verify_strict(&message(self.dataset, self.tip), &signature)
            .map_err(|_| Error::Request("the receipt's signature is not the key service's"))
    }

    /// Whether a chain contains the receipt's tip. `head` returns the chain's hash at a height, or
    /// `None` past its end.
    pub fn is_of(&self, head: impl FnOnce(u64) -> Option<[u8; 32]>) -> bool {
        if self.tip.height == 0 {
            return self.tip == Tip::default();
        }
        head(self.tip.height) == Some(self.tip.head)
    }
}

fn message(dataset: DatasetId, tip: Tip) -> Vec<u8> {
    let mut message = b"fhaim receipt 1".to_vec();
    message.extend_from_slice(&dataset.0);
    message.extend_from_slice(&tip.height.to_le_bytes());
    message.extend_from_slice(&tip.head);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    const DATASET: DatasetId = DatasetId([5; 16]);

    #[test]
    fn receipt_matches_only_chains_that_contain_its_tip() {
        let key = ReceiptKey::random(&mut ChaCha20Rng::seed_from_u64(1));
        let acts = ["one", "two", "three"];
        let mut heads = vec![Tip::default()];
        for act in acts {
            heads.push(heads.last().unwrap().append(DATASET, act));
        }
        let at = |heads: &[Tip], height: u64| heads.get(height as usize).map(|tip| tip.head);
        for tip in &heads {
            let receipt = key.sign(DATASET, *tip);
            receipt.verify(&key.public()).unwrap();
            assert!(receipt.is_of(|h| at(&heads, h)));
            let shorter = &heads[..tip.height as usize];
            assert!(tip.height == 0 || !receipt.is_of(|h| at(shorter, h)));
        }
        let other = heads[2].append(DATASET, "another");
        assert!(!key.sign(DATASET, other).is_of(|h| at(&heads, h)));
        assert_ne!(heads[1].append(DatasetId([6; 16]), "two"), heads[2]);
    }

    #[test]
    fn changed_receipts_are_rejected() {
        let mut rng = ChaCha20Rng::seed_from_u64(2);
        let (key, other) = (ReceiptKey::random(&mut rng), ReceiptKey::random(&mut rng));
        let tip = Tip::default().append(DATASET, "act");
        let receipt = key.sign(DATASET, tip);
        assert!(matches!(
            receipt.verify(&other.public()),
            Err(Error::Request(..))
        ));
        let mut higher = receipt;
        higher.tip.height = 1 << 63;
        let mut elsewhere = receipt;
        elsewhere.dataset = DatasetId([6; 16]);
        let mut flipped = receipt;
        flipped.signature[3] ^= 1;
        for changed in [higher, elsewhere, flipped] {
            assert!(matches!(
                changed.verify(&key.public()),
                Err(Error::Request(..))
            ));
        }
        let read = ReceiptKey::from_bytes(&*key.to_bytes()).unwrap();
        assert_eq!(read.sign(DATASET, tip), receipt);
        assert!(matches!(
            ReceiptKey::from_bytes(&[0; 31]),
            Err(Error::Request(..))
        ));
    }
}
