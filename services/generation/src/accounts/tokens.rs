//! Random tokens of 256 bits, stored as their SHA-256 digest. They need no slow hash because they
//! cannot be guessed.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fhaim_api::Digest;
use fhaim_api::account::Secret;
use fhaim_platform::Failure;
use rand::TryRngCore;
use rand::rngs::OsRng;
use zeroize::Zeroizing;

/// Draws a fresh token.
///
/// # Errors
/// The system has no randomness.
pub fn random() -> Result<Secret, Failure> {
    let mut bits = Zeroizing::new([0; 32]);
    OsRng
        .try_fill_bytes(bits.as_mut_slice())
        .map_err(Failure::internal)?;
    Ok(Secret(URL_SAFE_NO_PAD.encode(bits.as_slice())))
}

/// Returns the digest of a token, which is all that is stored of it.
pub fn digest(token: &Secret) -> String {
    Digest::of(token.0.as_bytes()).to_string()
}
