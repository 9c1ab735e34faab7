//! The protocol by which a holder of a roster fetches its upload key.
//!
//! Each key service keeps one seed for each holder. The holder signs a request with the key that
//! the roster names. Each service answers with its seed, encrypted to a one-time key of the request
//! (HPKE, RFC 9180: X25519, HKDF-SHA256, ChaCha20-Poly1305). So the seeds may pass through other
//! services. An access token is not enough: the generation service issues tokens, and the
//! computation service has the ciphertexts.

use crate::Error;
use crate::request::DatasetId;
use crate::roster::{HolderSigningKey, Member, MemberSignature};
use fhaim_he::Parameters;
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256;
use hpke::{
    Deserializable, Kem, OpModeR, OpModeS, Serializable, single_shot_open, single_shot_seal,
};
use zeroize::Zeroizing;

/// Bytes of the encapsulated key, which precedes the encrypted seed.
const ENCAPSULATED: usize = 32;

/// Bytes of a sealed seed: encapsulated key, seed, authentication tag.
pub const SEALED_SEED: usize = ENCAPSULATED + 32 + 16;

/// A holder's request to each key service for its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeedRequest {
    /// The dataset.
    pub dataset: DatasetId,
    /// The holder's number in the roster.
    pub holder: u32,
    /// Digest of the evaluation keys that the seeds belong to.
    pub evaluation_keys: [u8; 32],
    /// Public key of a key pair that is used for this request only.
    pub one_time_key: [u8; 32],
}

impl SeedRequest {
    /// Returns the bytes that are signed.
    fn message(&self) -> Vec<u8> {
        let parts: [&[u8]; 5] = [
            b"fhaim upload key request 1",
            &self.dataset.0,
            &self.holder.to_le_bytes(),
            &self.evaluation_keys,
            &self.one_time_key,
        ];
        parts.concat()
    }

    /// Signs the request as the holder.
    pub fn sign(&self, key: &HolderSigningKey) -> MemberSignature {
        key.sign_message(&self.message())
    }

    /// Checks that the member signed this request.
    ///
    /// # Errors
    /// [`Error::Signature`] with the account.
    pub fn verify(&self, member: &Member, signature: &MemberSignature) -> Result<(), Error> {
        member.verify_message(&self.message(), signature)
    }

    /// Returns the HPKE info that binds a sealed seed to the request and to the number of the key
    /// service.
    fn info(&self, service: usize) -> Vec<u8> {
        let number = (service as u64).to_le_bytes();
        [&self.message()[..], &number].concat()
    }

    /// Encrypts the seed of key service number `service` to the request's one-time key.
    ///
    /// # Errors
    /// [`Error::Seed`] for an invalid one-time key.
    pub fn seal(&self, service: usize, seed: &[u8; 32]) -> Result<Vec<u8>, Error> {
        let refused = |_| Error::Seed("the one-time key of the request is not an X25519 key");
        let recipient = <X25519HkdfSha256 as Kem>::PublicKey::from_bytes(&self.one_time_key);
        let (encapsulated, sealed) =
            single_shot_seal::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
                &OpModeS::Base,
                &recipient.map_err(refused)?,
                &self.info(service),
                seed,
                &[],
            )
            .map_err(refused)?;
        Ok([&encapsulated.to_bytes()[..], &sealed].concat())
    }
}

/// The secret key of a request's one-time key pair.
pub struct OneTimeKey {
    secret: <X25519HkdfSha256 as Kem>::PrivateKey,
    public: [u8; 32],
}

impl std::fmt::Debug for OneTimeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OneTimeKey")
    }
}

impl OneTimeKey {
    /// Draws a key from the operating system's generator.
    pub fn random() -> Self {
        let (secret, public) = X25519HkdfSha256::gen_keypair();
        let mut bytes = [0; 32];
        bytes.copy_from_slice(&public.to_bytes());
        Self {
            secret,
            public: bytes,
        }
    }

    /// Returns the public key, which goes into the request.
    pub fn public(&self) -> [u8; 32] {
        self.public
    }

    /// Decrypts the seed of key service number `service`.
    ///
    /// # Errors
    /// [`Error::Seed`] for bytes that are not sealed for this request.
    pub fn open(
        &self,
        request: &SeedRequest,
        service: usize,
        sealed: &[u8],
    ) -> Result<Zeroizing<[u8; 32]>, Error> {
        const REFUSED: Error = Error::Seed("a key service's answer belongs to another request");
        let refused = |_| REFUSED;
        let (encapsulated, sealed) = sealed.split_at_checked(ENCAPSULATED).ok_or(REFUSED)?;
        let encapsulated = <X25519HkdfSha256 as Kem>::EncappedKey::from_bytes(encapsulated);
        let opened = single_shot_open::<ChaCha20Poly1305, HkdfSha256, X25519HkdfSha256>(
            &OpModeR::Base,
            &self.secret,
            &encapsulated.map_err(refused)?,
            &request.info(service),
            sealed,
            &[],
        );
        let opened = Zeroizing::new(opened.map_err(refused)?);
        let mut seed = Zeroizing::new([0; 32]);
        let bytes: &[u8; 32] = opened.as_slice().try_into().map_err(|_| REFUSED)?;
        seed.copy_from_slice(bytes);
        Ok(seed)
    }
}

/// Returns the upload key that the seeds of all key services expand to, in the order of the terms.
/// The computation service rejects objects under any other key.
///
/// # Errors
/// [`Error::Seed`] if the number of seeds is not the number of key services.
pub fn upload_key(
    params: &Parameters,
    seeds: Vec<Zeroizing<[u8; 32]>>,
) -> Result<fhaim_he::UploadKey, Error> {
    if seeds.len() != params.shares() {
        return Err(Error::Seed("some key services' seeds are missing"));
    }
    Ok(fhaim_he::UploadKey::from_seeds(params, seeds)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::STANDARD;

    fn request(one_time_key: [u8; 32]) -> SeedRequest {
        SeedRequest {
            dataset: DatasetId([1; 16]),
            holder: 1,
            evaluation_keys: [2; 32],
            one_time_key,
        }
    }

    #[test]
    fn sealed_seed_is_opened_for_its_request_and_service_only() {
        let key = OneTimeKey::random();
        let request = request(key.public());
        let sealed = request.seal(1, &[7; 32]).unwrap();
        assert_eq!(sealed.len(), SEALED_SEED);
        assert_eq!(*key.open(&request, 1, &sealed).unwrap(), [7; 32]);
        let other = SeedRequest {
            evaluation_keys: [3; 32],
            ..request
        };
        assert!(matches!(
            key.open(&request, 0, &sealed),
            Err(Error::Seed(_))
        ));
        assert!(matches!(key.open(&other, 1, &sealed), Err(Error::Seed(_))));
        let stranger = OneTimeKey::random();
        assert!(matches!(
            stranger.open(&request, 1, &sealed),
            Err(Error::Seed(_))
        ));
        for length in [0, 31, 32, SEALED_SEED - 1] {
            let cut = sealed.get(..length).unwrap();
            assert!(matches!(key.open(&request, 1, cut), Err(Error::Seed(_))));
        }
    }

    #[test]
    fn request_is_verified_with_the_signers_key_only() {
        let [signer, other] = [1, 2].map(|n| HolderSigningKey::from_bytes(&[n; 32]));
        let member = |key: &HolderSigningKey| Member {
            account: "holder".to_owned(),
            columns: Vec::new(),
            record_bound: 1,
            key: key.public(),
        };
        let asked = request([5; 32]);
        let signature = asked.sign(&signer);
        assert!(asked.verify(&member(&signer), &signature).is_ok());
        assert!(matches!(
            asked.verify(&member(&other), &signature),
            Err(Error::Signature(_))
        ));
        let changed = request([6; 32]);
        assert!(matches!(
            changed.verify(&member(&signer), &signature),
            Err(Error::Signature(_))
        ));
    }

    #[test]
    fn missing_seed_is_refused() {
        let params = Parameters::new(STANDARD).unwrap().with_shares(2).unwrap();
        let seeds = |count| (0..count).map(|n| Zeroizing::new([n; 32])).collect();
        assert!(upload_key(&params, seeds(2)).is_ok());
        for count in [0, 1, 3] {
            assert!(matches!(
                upload_key(&params, seeds(count)),
                Err(Error::Seed(_))
            ));
        }
    }
}
