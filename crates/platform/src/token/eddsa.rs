//! Ed25519 for `jsonwebtoken`. The providers of that crate bring RSA and other algorithms, which no service uses.

use ed25519_dalek::{Signature, SignatureError, Signer, SigningKey, Verifier, VerifyingKey};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};

/// Beginning of an Ed25519 private key in PKCS #8 (RFC 8410, section 7), before the seed.
pub(super) const PKCS8: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` sign and verify with Ed25519, and with nothing else. Every use of that crate must come later;
/// [`Signer::open`](super::Signer::open) calls it.
pub fn install() {
    // Fails only if it is installed already.
    let _ = PROVIDER.install_default();
}

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    let seed = key.as_bytes().strip_prefix(&PKCS8);
    let seed = seed.and_then(|seed| <&[u8; 32]>::try_from(seed).ok());
    let seed = seed.ok_or(ErrorKind::InvalidEddsaKey)?;
    Ok(Box::new(Signs(SigningKey::from_bytes(seed))))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if *algorithm != Algorithm::EdDSA || key.family() != AlgorithmFamily::Ed {
        return Err(ErrorKind::UnsupportedAlgorithm.into());
    }
    let invalid = || ErrorKind::InvalidEddsaKey;
    let point = <&[u8; 32]>::try_from(key.try_get_as_bytes()?).map_err(|_| invalid())?;
    let key = VerifyingKey::from_bytes(point).map_err(|_| invalid())?;
    Ok(Box::new(Verifies(key)))
}

struct Signs(SigningKey);

impl Signer<Vec<u8>> for Signs {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, SignatureError> {
        Ok(Signer::<Signature>::try_sign(&self.0, message)?.to_vec())
    }
}

impl JwtSigner for Signs {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

struct Verifies(VerifyingKey);

impl Verifier<Vec<u8>> for Verifies {
    fn verify(
        &self,
        message: &[u8],
        signature: &Vec<u8>,
    ) -> std::result::Result<(), SignatureError> {
        self.0.verify(message, &Signature::from_slice(signature)?)
    }
}

impl JwtVerifier for Verifies {
    fn algorithm(&self) -> Algorithm {
        Algorithm::EdDSA
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::{Header, Validation, decode, encode};
    use serde_json::{Value, json};

    fn keys(seed: u8) -> (EncodingKey, DecodingKey) {
        let key = SigningKey::from_bytes(&[seed; 32]);
        let der = [PKCS8.as_slice(), key.as_bytes()].concat();
        let public = DecodingKey::from_ed_der(key.verifying_key().as_bytes());
        (EncodingKey::from_ed_der(&der), public)
    }

    fn rules(algorithm: Algorithm) -> Validation {
        let mut rules = Validation::new(algorithm);
        rules.required_spec_claims.clear();
        rules.validate_exp = false;
        rules
    }

    /// The token of RFC 8037, appendix A.4.
    #[test]
    fn token_of_the_standard_is_signed_and_verified() {
        install();
        let seed = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
        let public = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let signature = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt\
                         9g7sVvpAr_MuM0KAg";
        let message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
        let seed = base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, seed);
        let der = [PKCS8.as_slice(), &seed.unwrap()].concat();
        let signed =
            jsonwebtoken::crypto::sign(message, &EncodingKey::from_ed_der(&der), Algorithm::EdDSA);
        assert_eq!(signed.unwrap(), signature);
        let public = DecodingKey::from_ed_components(public).unwrap();
        let verify = |message: &[u8]| {
            jsonwebtoken::crypto::verify(signature, message, &public, Algorithm::EdDSA).unwrap()
        };
        assert!(verify(message) && !verify(b"another message"));
    }

    #[test]
    fn other_algorithms_and_other_keys_are_refused() {
        install();
        let ((private, public), (_, other)) = (keys(1), keys(2));
        let claims = json!({ "sub": "ana" });
        let token = encode(&Header::new(Algorithm::EdDSA), &claims, &private).unwrap();
        let read = |key, algorithm| decode::<Value>(&token, key, &rules(algorithm));
        assert_eq!(read(&public, Algorithm::EdDSA).unwrap().claims, claims);
        let forged = read(&other, Algorithm::EdDSA).unwrap_err();
        assert!(matches!(forged.kind(), ErrorKind::InvalidSignature));
        let other = read(&public, Algorithm::RS256).unwrap_err();
        assert!(matches!(other.kind(), ErrorKind::InvalidAlgorithm));
        let secret = EncodingKey::from_secret(b"secret");
        let hashed = encode(&Header::new(Algorithm::HS256), &claims, &secret).unwrap_err();
        assert!(matches!(hashed.kind(), ErrorKind::UnsupportedAlgorithm));
    }
}
