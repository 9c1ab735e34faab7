//! SHA-256 digests in the form of `Content-Digest` (RFC 9530): `sha-256=:<base64>:`.

use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use std::{fmt, str::FromStr};
use utoipa::ToSchema;

/// A SHA-256 digest. 64 lower-case hexadecimal digits in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[0-9a-f]{64}$", min_length = 64, max_length = 64)]
pub struct Digest(pub [u8; 32]);

/// An error for text that is not a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 digest must have 64 lower-case hexadecimal digits")]
pub struct DigestError;

impl Digest {
    /// Returns the digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let nibble = |c: u8| match c {
            b'0'..=b'9' => Ok(c - b'0'),
            b'a'..=b'f' => Ok(c - b'a' + 10),
            _ => Err(DigestError),
        };
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| DigestError)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_survives_its_text_and_other_text_is_rejected() {
        let digest = Digest::of(b"abc");
        let text = digest.to_string();
        assert!(text.starts_with("ba7816bf") && text.ends_with("f20015ad"));
        assert_eq!(text.parse(), Ok(digest));
        for wrong in ["", &text[1..], &text.to_uppercase(), &format!("{text}0")] {
            assert_eq!(wrong.parse::<Digest>(), Err(DigestError), "{wrong}");
        }
    }
}
