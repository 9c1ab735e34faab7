//! Secrets at rest: XChaCha20-Poly1305 under keys that are not in the database.
//!
//! A sealed value is bound to a context (its kind and its owner), so that it cannot take the place of another.
//! Sealing does not hide that there is a value, and how long it is.

use crate::config::Sealing;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::TryRngCore;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

const ID: usize = 8;
const NONCE: usize = 24;

/// The reason why a value was not sealed or opened. It says nothing about the value.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// The configuration names neither a file nor a variable, or both.
    #[error("sealing: name either a file or a variable that holds the keys")]
    Source,
    /// The file cannot be read, or the variable is not set.
    #[error("sealing: {0}")]
    Unreadable(String),
    /// A line is not a key.
    #[error("sealing: line {0} is not a key of 64 hexadecimal digits")]
    Key(usize),
    /// There is no key.
    #[error("sealing: the file or variable has no key")]
    NoKey,
    /// The system has no randomness.
    #[error("sealing: the system has no randomness")]
    Randomness,
    /// The value was sealed under a key that is not among the keys.
    #[error("a sealed value cannot be opened: it was sealed under another key")]
    UnknownKey,
    /// The value was sealed for another context, or it is damaged.
    #[error("a sealed value cannot be opened: it is damaged")]
    Unopened,
}

/// Seals values under its first key, and opens values under all keys.
pub struct Sealer {
    keys: Vec<([u8; ID], XChaCha20Poly1305)>,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealer")
    }
}

impl Sealer {
    /// Reads the keys that a configuration names.
    ///
    /// # Errors
    /// [`SealError`] if the keys cannot be read, or if there is no valid key.
    pub fn from_config(config: &Sealing) -> Result<Self, SealError> {
        let text = match (&config.file, &config.variable) {
            (Some(file), None) => std::fs::read_to_string(file)
                .map_err(|e| SealError::Unreadable(format!("{}: {e}", file.display())))?,
            (None, Some(name)) => std::env::var(name)
                .map_err(|_| SealError::Unreadable(format!("the variable {name} is not set")))?,
            _ => return Err(SealError::Source),
        };
        Self::from_text(&Zeroizing::new(text))
    }

    /// Reads keys from text with one key per line, 64 hexadecimal digits each. `#` begins a comment.
    ///
    /// # Errors
    /// [`SealError`] for a line that is not a key, and for a text without keys.
    pub fn from_text(text: &str) -> Result<Self, SealError> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let key: fhaim_api::Digest = line.parse().map_err(|_| SealError::Key(number + 1))?;
            let key = Zeroizing::new(key.0);
            let mut id = [0; ID];
            id.copy_from_slice(&Sha256::digest(key.as_slice())[..ID]);
            let cipher = XChaCha20Poly1305::new_from_slice(key.as_slice());
            keys.push((id, cipher.map_err(|_| SealError::Key(number + 1))?));
        }
        if keys.is_empty() {
            return Err(SealError::NoKey);
        }
        Ok(Self { keys })
    }

    /// Makes a new key, as text for a file.
    ///
    /// # Errors
    /// [`SealError::Randomness`].
    pub fn new_key() -> Result<Zeroizing<String>, SealError> {
        let mut key = Zeroizing::new([0; 32]);
        rand::rngs::OsRng
            .try_fill_bytes(key.as_mut_slice())
            .map_err(|_| SealError::Randomness)?;
        Ok(Zeroizing::new(fhaim_api::Digest(*key).to_string()))
    }

    /// Seals a value for a context.
    ///
    /// # Errors
    /// [`SealError::Randomness`].
    pub fn seal(&self, context: &str, value: &[u8]) -> Result<Vec<u8>, SealError> {
        let (id, cipher) = self.keys.first().ok_or(SealError::NoKey)?;
        let mut nonce = [0; NONCE];
        rand::rngs::OsRng
            .try_fill_bytes(&mut nonce)
            .map_err(|_| SealError::Randomness)?;
        let payload = Payload {
            msg: value,
            aad: context.as_bytes(),
        };
        let sealed = cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| SealError::Unopened)?;
        Ok([id.as_slice(), &nonce, &sealed].concat())
    }

    /// Opens a value sealed for a context.
    ///
    /// # Errors
    /// [`SealError::UnknownKey`]; [`SealError::Unopened`].
    pub fn open(&self, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, SealError> {
        let (id, rest) = sealed
            .split_first_chunk::<ID>()
            .ok_or(SealError::Unopened)?;
        let (nonce, sealed) = rest
            .split_first_chunk::<NONCE>()
            .ok_or(SealError::Unopened)?;
        let key = self.keys.iter().find(|(known, _)| known == id);
        let (_, cipher) = key.ok_or(SealError::UnknownKey)?;
        let payload = Payload {
            msg: sealed,
            aad: context.as_bytes(),
        };
        let opened = cipher.decrypt(&XNonce::from(*nonce), payload);
        opened.map(Zeroizing::new).map_err(|_| SealError::Unopened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_values_open_only_undamaged_and_in_their_context() {
        let first = Sealer::new_key().unwrap();
        let second = Sealer::new_key().unwrap();
        let old = Sealer::from_text(&first).unwrap();
        let rotated = Sealer::from_text(&format!("{}\n{} # old", *second, *first)).unwrap();
        let sealed = old.seal("key of a", b"secret").unwrap();
        assert_eq!(
            rotated.open("key of a", &sealed).unwrap().as_slice(),
            b"secret"
        );
        assert!(matches!(
            rotated.open("key of b", &sealed),
            Err(SealError::Unopened)
        ));
        for i in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[i] ^= 1;
            let refused = rotated.open("key of a", &damaged);
            let of_key = matches!(refused, Err(SealError::UnknownKey));
            let of_value = matches!(refused, Err(SealError::Unopened));
            assert!(if i < ID { of_key } else { of_value }, "byte {i}");
            assert!(
                matches!(
                    rotated.open("key of a", &sealed[..i]),
                    Err(SealError::Unopened)
                ),
                "length {i}"
            );
        }
        let fresh = rotated.seal("key of a", b"secret").unwrap();
        assert!(matches!(
            old.open("key of a", &fresh),
            Err(SealError::UnknownKey)
        ));
    }

    #[test]
    fn invalid_keys_are_reported_with_their_line() {
        assert!(matches!(
            Sealer::from_text("\n# none\n"),
            Err(SealError::NoKey)
        ));
        let key = Sealer::new_key().unwrap();
        let text = format!("{}\nabc", *key);
        assert!(matches!(Sealer::from_text(&text), Err(SealError::Key(2))));
    }
}
