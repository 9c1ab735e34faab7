//! The randomness of sealing, as a function of a stored key and of the sealed content.
//!
//! A batch may be sealed twice, if a computation service was killed or was restored from an older
//! copy of its store. Both times it gives the same bytes. A second sealing with other randomness
//! would show the decryptor two ciphertexts of the same noise, but the ledger charges the residual
//! noise of only one.

use fhaim_dp::Span;
use hkdf::Hkdf;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

use crate::request::{DatasetId, JobId};

/// The key that a dataset's pages are sealed with. Its owner can strip masks from pages, so it
/// stays with the computation service and never reaches the decryptor.
#[derive(Clone)]
pub struct SealingKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey")
    }
}

/// The context that the randomness of one ciphertext is bound to.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The dataset.
    pub dataset: DatasetId,
    /// The job.
    pub job: JobId,
    /// Number of the job's run.
    pub run: u32,
    /// Number of the batch's first release.
    pub first: u32,
    /// Statements of all releases in the batch.
    pub statements: &'a [[u8; 32]],
    /// Positions of the page's parts.
    pub spans: &'a [Span],
    /// Noise variance of every part, in the ladder's units.
    pub variance_units: u64,
    /// Number of the plaintext modulus.
    pub residue: usize,
    /// Digest of the page's ciphertext and of the noise added to it.
    pub ciphertexts: [u8; 32],
}

impl SealingKey {
    /// Draws a key.
    pub fn random<R: RngCore + CryptoRng>(rng: &mut R) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        rng.fill_bytes(key.as_mut());
        Self(key)
    }

    /// Returns the key with these bytes, or `None` if their number is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self(Zeroizing::new(bytes.try_into().ok()?)))
    }

    /// Returns the key's bytes. They must be sealed before they are stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the commitment to an upload that the crypto service receives. It is a function of
    /// the key and of the manifest's digest: equal for the same upload, and without information for
    /// a party that lacks the key.
    #[expect(
        clippy::expect_used,
        reason = "32 bytes are one block of the 255 that expansion is limited to"
    )]
    pub fn commitment(&self, manifest: &[u8; 32]) -> [u8; 32] {
        let mut commitment = [0; 32];
        Hkdf::<Sha256>::new(Some(b"fhaim upload 1"), self.0.as_ref())
            .expand(manifest, &mut commitment)
            .expect("32 bytes are one block");
        commitment
    }

    /// Returns the generator for one ciphertext: ChaCha20 seeded by HKDF-SHA256 (RFC 5869) of the
    /// context.
    #[expect(
        clippy::expect_used,
        reason = "32 bytes are one block of the 255 that expansion is limited to"
    )]
    pub fn generator(&self, context: &Context<'_>) -> ChaCha20Rng {
        let mut hash = Sha256::new();
        hash.update(context.dataset.0);
        hash.update(context.job.0);
        hash.update(context.run.to_le_bytes());
        hash.update(context.first.to_le_bytes());
        let mut number = |n: usize| hash.update((n as u64).to_le_bytes());
        number(context.statements.len());
        number(context.spans.len());
        number(context.residue);
        for span in context.spans {
            number(span.page);
            number(span.start);
            number(span.len);
        }
        hash.update(context.variance_units.to_le_bytes());
        for statement in context.statements {
            hash.update(statement);
        }
        hash.update(context.ciphertexts);
        let context = hash.finalize();
        let mut seed = [0; 32];
        Hkdf::<Sha256>::new(Some(b"fhaim seal 1"), self.0.as_ref())
            .expand(&context, &mut seed)
            .expect("32 bytes are one block");
        let generator = ChaCha20Rng::from_seed(seed);
        seed.zeroize();
        generator
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_depends_on_every_field_of_the_context() {
        let key = SealingKey::from_bytes(&[3; 32]).unwrap();
        let span = Span {
            page: 2,
            start: 5,
            len: 7,
        };
        let context = Context {
            dataset: DatasetId([1; 16]),
            job: JobId([2; 16]),
            run: 3,
            first: 4,
            statements: &[[5; 32]],
            spans: &[span],
            variance_units: 6,
            residue: 0,
            ciphertexts: [8; 32],
        };
        let first = |key: &SealingKey, context: &Context<'_>| key.generator(context).next_u64();
        let own = first(&key, &context);
        assert_eq!(first(&key, &context), own);
        let elsewhere = Span { start: 6, ..span };
        let changes = [
            Context {
                dataset: DatasetId([9; 16]),
                ..context
            },
            Context {
                job: JobId([9; 16]),
                ..context
            },
            Context { run: 9, ..context },
            Context {
                first: 9,
                ..context
            },
            Context {
                statements: &[[9; 32]],
                ..context
            },
            Context {
                statements: &[],
                ..context
            },
            Context {
                spans: &[elsewhere],
                ..context
            },
            Context {
                variance_units: 9,
                ..context
            },
            Context {
                residue: 1,
                ..context
            },
            Context {
                ciphertexts: [9; 32],
                ..context
            },
        ];
        for changed in &changes {
            assert_ne!(first(&key, changed), own, "{changed:?}");
        }
        let other = SealingKey::from_bytes(&[4; 32]).unwrap();
        let commitments = [(&key, 1), (&key, 2), (&other, 1)].map(|(k, b)| k.commitment(&[b; 32]));
        assert_eq!(commitments[0], key.commitment(&[1; 32]));
        assert!(commitments[0] != commitments[1] && commitments[0] != commitments[2]);
        assert_ne!(first(&other, &context), own);
        assert!(SealingKey::from_bytes(&[3; 31]).is_none());
    }
}
