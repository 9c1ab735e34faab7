//! The upload keys that holders encrypt with, and the resulting form of their objects.
//!
//! Every upload is under its own upload key, which the holder forgets when the upload is complete.
//! The computation service brings it under the dataset's key with switching keys. A sole holder
//! draws its upload key and uploads the switching keys. Several holders fetch their upload keys
//! from the key services, which make the switching keys: a holder that made them could read the
//! dataset's key (docs/THREAT-MODEL.md).

use crate::Error;
use crate::object::Object;
use fhaim_he::{
    Layout, ParameterSet, Parameters, PublicKey, SeededCiphertext, UploadCiphertext, UploadKey,
    UploadKeyId, UploadSwitchKeys,
};
use rand::{CryptoRng, RngCore};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use zeroize::Zeroizing;

/// The party that makes a holder's upload key and its switching keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// The holder, which is the only one.
    OwnKey,
    /// The key services, for each holder of a roster.
    RosterKey,
}

impl Encryption {
    /// Fetches the switching keys that a sole holder uploads, with `get`.
    pub(crate) fn keys(
        self,
        get: impl FnMut(Object) -> Result<Payload, Error>,
    ) -> Result<Option<Arc<UploadSwitchKeys>>, Error> {
        let keys = self.objects().map(get).next().transpose()?;
        let keys = keys.map(Payload::keys).transpose()?;
        Ok(keys.map(Arc::new))
    }

    /// Whether the holder uploads switching keys.
    pub fn has_own_keys(self) -> bool {
        self == Self::OwnKey
    }

    /// Returns the objects of an upload that do not encrypt data.
    pub(crate) fn objects(self) -> impl Iterator<Item = Object> + use<> {
        self.has_own_keys().then_some(Object::Keys).into_iter()
    }
}

/// The form of an upload's objects, and their sizes. Public, as is all of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The party that makes the upload key.
    pub encryption: Encryption,
    /// Layout of the records, on which a sole holder's keys depend; absent for counts.
    pub layout: Option<Layout>,
}

impl Form {
    /// Returns the size in bytes of an object that is an encrypted polynomial.
    pub fn polynomial_bytes(&self, set: &ParameterSet) -> usize {
        set.plaintext_moduli.len() * set.seeded_bytes()
    }

    /// Returns the size in bytes of an object.
    pub fn object_bytes(&self, params: &Parameters, object: Object) -> usize {
        match object {
            Object::Keys => UploadSwitchKeys::bytes(params, self.layout),
            _ => self.polynomial_bytes(params.set()),
        }
    }

    /// Returns the size in bytes of this number of encrypted polynomials and of all other objects.
    pub fn bytes(&self, params: &Parameters, polynomials: usize) -> u64 {
        let each = self.polynomial_bytes(params.set()) as u64;
        let beside = self.encryption.objects();
        let beside = beside.map(|object| self.object_bytes(params, object));
        let all = (polynomials as u64).saturating_mul(each);
        all.saturating_add(beside.sum::<usize>() as u64)
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// [`Error::Object`] for bytes of the wrong length; [`Error::Encryption`] with the first rule
    /// that they break.
    pub fn decode(
        &self,
        params: &Parameters,
        object: Object,
        bytes: &[u8],
    ) -> Result<Payload, Error> {
        if object != Object::Keys {
            return self.decode_polynomial(params, bytes);
        }
        if bytes.len() != self.object_bytes(params, object) {
            return Err(OTHER_LENGTH);
        }
        let keys = UploadSwitchKeys::from_bytes(params, self.layout, bytes)?;
        Ok(Payload::Keys(Box::new(keys)))
    }

    /// Decodes an object that is an encrypted polynomial.
    ///
    /// # Errors
    /// Those of [`Form::decode`].
    pub fn decode_polynomial(&self, params: &Parameters, bytes: &[u8]) -> Result<Payload, Error> {
        let set = params.set();
        if bytes.len() != self.polynomial_bytes(set) {
            return Err(OTHER_LENGTH);
        }
        let decode = |bytes: &[u8]| SeededCiphertext::from_bytes(params, bytes);
        let decoded = bytes.chunks_exact(set.seeded_bytes()).map(decode);
        let in_order = decoded.enumerate().map(|(place, ciphertext)| {
            let ciphertext = ciphertext?;
            if ciphertext.residue() == place {
                Ok(ciphertext)
            } else {
                Err(Error::Object("ciphertexts out of order"))
            }
        });
        let in_order: Result<Vec<_>, Error> = in_order.collect();
        Ok(Payload::Seeded(in_order?))
    }
}

/// Returns a holder's key as hexadecimal text, to be kept or passed on where only text is possible.
pub fn key_to_text(key: &UploadKey) -> Zeroizing<String> {
    const DIGITS: &[char; 16] = &[
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let bytes = key.to_bytes();
    // The final capacity at once: a growing text leaves copies of the key in memory.
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    text.extend(halves.filter_map(|half| DIGITS.get(usize::from(half))));
    text
}

/// Parses a key from its text.
///
/// # Errors
/// [`Error::Object`] for text that [`key_to_text`] does not write; [`Error::Encryption`] for bytes
/// that are not a key of these parameters. Neither error quotes the text.
pub fn key_from_text(params: &Parameters, text: &str) -> Result<UploadKey, Error> {
    let digit = |digit: &u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    bytes.extend(
        pairs
            .iter()
            .map_while(|[high, low]| Some(digit(high)? << 4 | digit(low)?)),
    );
    if bytes.len() != pairs.len() || !rest.is_empty() {
        return Err(Error::Object("a holder's key is invalid"));
    }
    Ok(UploadKey::from_bytes(params, &bytes)?)
}

/// The keys that a holder encrypts with.
#[derive(Clone, Copy, Debug)]
pub struct Encryptor<'a> {
    key: &'a UploadKey,
    /// The dataset's public key, with which a sole holder makes its switching keys.
    public: Option<&'a PublicKey>,
}

impl<'a> Encryptor<'a> {
    /// Creates the encryptor of a sole holder, with an upload key that it drew.
    pub fn sole(public: &'a PublicKey, key: &'a UploadKey) -> Self {
        Self {
            key,
            public: Some(public),
        }
    }

    /// Creates the encryptor of a holder of a roster, with the upload key that the key services
    /// made for it.
    pub fn of_roster(key: &'a UploadKey) -> Self {
        Self { key, public: None }
    }

    /// Returns the parameters of the ciphertexts.
    pub fn params(&self) -> &'a Parameters {
        self.key.params()
    }

    /// Returns the party that made the upload key.
    pub fn encryption(&self) -> Encryption {
        match self.public {
            None => Encryption::RosterKey,
            Some(_) => Encryption::OwnKey,
        }
    }

    /// Whether it encrypts as the plan demands, with all keys under one parameter set.
    pub(crate) fn follows(&self, encryption: Encryption) -> bool {
        let same = |public: &PublicKey| self.key.params().set() == public.params().set();
        self.encryption() == encryption && self.public.is_none_or(same)
    }

    /// Encrypts a polynomial under each plaintext modulus.
    pub(crate) fn encrypt<R: RngCore + CryptoRng>(
        &self,
        coefficients: &[i64],
        rng: &mut R,
    ) -> Result<Payload, Error> {
        Ok(Payload::Seeded(self.key.encrypt(coefficients, rng)?))
    }

    /// Makes a sole holder's switching keys for records with this layout, or for counts.
    pub(crate) fn keys<R: RngCore + CryptoRng>(
        &self,
        layout: Option<Layout>,
        rng: &mut R,
    ) -> Result<Payload, Error> {
        let public = self.public.ok_or(NO_SUCH_OBJECT)?;
        let keys = self.key.switch_keys(public, layout, rng)?;
        Ok(Payload::Keys(Box::new(keys)))
    }
}

/// The error for an object of the wrong size.
pub(crate) const OTHER_LENGTH: Error = Error::Object("truncated or too long");

/// The error for an object that an upload does not have.
pub(crate) const NO_SUCH_OBJECT: Error = Error::Object("the upload has no such object");

/// The error for an object under another key than that of the upload's switching keys.
pub(crate) const OTHER_KEY: Error = Error::Object("an object is under another key than its upload");

/// The content of an object.
#[derive(Clone, Debug)]
pub enum Payload {
    /// One ciphertext for each plaintext modulus, in order, under the holder's upload key.
    Seeded(Vec<SeededCiphertext>),
    /// The switching keys of a sole holder's upload key.
    Keys(Box<UploadSwitchKeys>),
}

impl Payload {
    /// Encodes the parts of the object, one after the other.
    pub fn encode(&self, params: &Parameters) -> Vec<u8> {
        match self {
            Self::Seeded(all) => all.iter().flat_map(|c| c.to_bytes(params)).collect(),
            Self::Keys(keys) => keys.to_bytes(),
        }
    }

    /// Whether it has only ciphertexts, and all of them are under this upload key.
    pub fn is_under(&self, key: UploadKeyId) -> bool {
        match self {
            Self::Seeded(all) => all.iter().all(|ciphertext| ciphertext.key_id() == key),
            Self::Keys(_) => false,
        }
    }

    /// Returns the ciphertexts, one for each plaintext modulus.
    ///
    /// # Errors
    /// [`Error::Object`] if the object has no ciphertexts.
    pub fn seeded(self) -> Result<Vec<SeededCiphertext>, Error> {
        match self {
            Self::Seeded(all) => Ok(all),
            Self::Keys(_) => Err(Error::Object("an object has keys instead of ciphertexts")),
        }
    }

    /// Returns the ciphertexts with their seeds expanded.
    ///
    /// # Errors
    /// Those of [`Payload::seeded`].
    pub fn expanded(self, params: &Parameters) -> Result<Vec<UploadCiphertext>, Error> {
        let all = self.seeded()?.into_iter();
        let expanded = all.map(|seeded| seeded.expand(params));
        Ok(expanded.collect::<fhaim_he::Result<_>>()?)
    }

    /// Returns a sole holder's switching keys.
    ///
    /// # Errors
    /// [`Error::Object`] if the object is not switching keys.
    pub fn keys(self) -> Result<UploadSwitchKeys, Error> {
        match self {
            Self::Keys(keys) => Ok(*keys),
            Self::Seeded(_) => Err(Error::Object("an object has ciphertexts instead of keys")),
        }
    }
}
