//! The 32 bytes from which a key service draws all secrets of a dataset's key.
//!
//! They are a key for HKDF-SHA256 (RFC 5869). Its context names the secret and every input from other parties that
//! the secret depends on. A service that stores the 32 bytes can draw the same secrets again after a crash.

use hkdf::Hkdf;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, Zeroizing};

/// The 32 bytes. They are wiped from memory on drop.
#[derive(Clone)]
pub(crate) struct Root(Zeroizing<[u8; 32]>);

impl Root {
    pub(crate) fn random<R: RngCore + CryptoRng>(rng: &mut R) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        rng.fill_bytes(bytes.as_mut());
        Self(bytes)
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns a generator for one purpose: ChaCha20 under a key that depends on the purpose and each part of its
    /// context.
    #[expect(
        clippy::expect_used,
        reason = "32 bytes are one block of the 255 that expansion is limited to"
    )]
    pub(crate) fn generator(&self, purpose: &[u8], context: &[&[u8]]) -> ChaCha20Rng {
        let mut seed = [0; 32];
        Hkdf::<Sha256>::new(Some(b"fhaim key root 1"), self.0.as_ref())
            .expand(&digest(purpose, context), &mut seed)
            .expect("32 bytes are one block");
        let generator = ChaCha20Rng::from_seed(seed);
        seed.zeroize();
        generator
    }

    /// Returns 32 bytes for one purpose.
    pub(crate) fn bytes_for(&self, purpose: &[u8], context: &[&[u8]]) -> Zeroizing<[u8; 32]> {
        let mut bytes = Zeroizing::new([0; 32]);
        self.generator(purpose, context).fill_bytes(bytes.as_mut());
        bytes
    }
}

/// Returns the SHA-256 of a purpose and of parts, each preceded by its length.
pub(crate) fn digest(purpose: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in [purpose].iter().chain(parts) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
