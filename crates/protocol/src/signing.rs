//! Ed25519 key pairs of holders and of key services: two types with one implementation.

use ed25519_dalek::{Signer, SigningKey};
use rand::{CryptoRng, RngCore};
use sha2::{Digest, Sha256};
use std::fmt;
use std::marker::PhantomData;
use zeroize::Zeroizing;

/// A role that signs, with its own type of key.
pub trait Role {
    /// The name of the key's type.
    const KEY: &'static str;
}

/// A holder of a roster.
#[derive(Clone, Copy, Debug)]
pub struct HolderRole;

impl Role for HolderRole {
    const KEY: &'static str = "HolderSigningKey";
}

/// A key service of a committee.
#[derive(Clone, Copy, Debug)]
pub struct ServiceRole;

impl Role for ServiceRole {
    const KEY: &'static str = "ServiceSigningKey";
}

/// The signing key of a role. It is wiped from memory when it is dropped.
pub struct SigningKeyOf<R>(SigningKey, PhantomData<R>);

impl<R: Role> fmt::Debug for SigningKeyOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(R::KEY)
    }
}

impl Clone for SigningKeyOf<ServiceRole> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<R: Role> SigningKeyOf<R> {
    /// Draws a key.
    pub fn random<G: RngCore + CryptoRng>(rng: &mut G) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        rng.fill_bytes(bytes.as_mut());
        Self::from_bytes(&bytes)
    }

    /// Returns the key with this secret.
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(bytes), PhantomData)
    }

    /// Returns the secret. Keep it sealed, or where only its owner can read it.
    pub fn to_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.0.to_bytes())
    }

    /// Returns the public key.
    pub fn public(&self) -> [u8; 32] {
        self.0.verifying_key().to_bytes()
    }

    pub(crate) fn pair(&self) -> &SigningKey {
        &self.0
    }

    pub(crate) fn sign_bytes(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }
}

/// Returns the fingerprint of a public key, for people to compare: eight groups of four hexadecimal
/// digits.
pub fn fingerprint(key: &[u8; 32]) -> String {
    let digest: [u8; 32] = Sha256::digest(key).into();
    let pairs = digest.as_chunks::<2>().0.iter().take(8);
    let groups: Vec<String> = pairs.map(|[x, y]| format!("{x:02x}{y:02x}")).collect();
    groups.join("-")
}
