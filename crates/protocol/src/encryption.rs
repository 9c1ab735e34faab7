//! Under which key a holder encrypts, and what that makes of its objects.
//!
//! Whoever holds a whole table may draw a key of its own for one upload: what it encrypts then takes half
//! the bytes, and less time. It uploads keys beside that, with which the computation service comes from
//! ciphertexts under the holder's key to those under the dataset's. Whoever has the holder's key can read
//! what it encrypted, as the holder can; the holder forgets it when the upload is complete.

use crate::Error;
use crate::roster::Roster;
use crate::upload::Object;
use fhaim_he::{
    Ciphertext, HolderCiphertext, HolderKey, HolderKeys, Layout, ParameterSet, Parameters,
    PublicKey, SeededCiphertext,
};
use rand::{CryptoRng, RngCore};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Under which key a holder encrypts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// The dataset's public key, which all holders share.
    #[default]
    PublicKey,
    /// A key of the holder's own, of one upload alone.
    HolderKey,
}

impl Encryption {
    /// What new terms name: the holder's own key where there is one holder.
    pub fn of_new(roster: Option<&Roster>) -> Self {
        match roster {
            None => Self::HolderKey,
            Some(_) => Self::PublicKey,
        }
    }

    /// Whether it is the dataset's public key.
    pub fn is_public(&self) -> bool {
        *self == Self::PublicKey
    }

    /// What came with the holder's own key, where it has one; `get` is asked for the object.
    pub(crate) fn keys(
        self,
        get: impl FnMut(Object) -> Result<Payload, Error>,
    ) -> Result<Option<Arc<HolderKeys>>, Error> {
        let keys = self.objects().map(get).next().transpose()?;
        let keys = keys.map(Payload::keys).transpose()?;
        Ok(keys.map(Arc::new))
    }

    /// What an upload has beside what is encrypted.
    pub(crate) fn objects(self) -> impl Iterator<Item = Object> + use<> {
        let keys = (!self.is_public()).then_some(Object::Keys);
        keys.into_iter()
    }
}

/// What an upload's objects are, and of which sizes: public, as all of its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Under which key they are encrypted.
    pub encryption: Encryption,
    /// How records lie, on which a holder's keys depend; nothing where there are counts.
    pub layout: Option<Layout>,
}

impl Form {
    /// Bytes of an object that is an encrypted polynomial.
    pub fn polynomial_bytes(&self, set: &ParameterSet) -> usize {
        let ciphertext = match self.encryption {
            Encryption::PublicKey => set.ciphertext_bytes(),
            Encryption::HolderKey => set.seeded_bytes(),
        };
        set.plaintext_moduli.len() * ciphertext
    }

    /// Bytes of an object.
    pub fn object_bytes(&self, params: &Parameters, object: Object) -> usize {
        match object {
            Object::Keys => HolderKeys::bytes(params, self.layout),
            _ => self.polynomial_bytes(params.set()),
        }
    }

    /// Bytes of so many encrypted polynomials, and of what is beside them.
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
    /// [`Error::Object`] for bytes of another length; [`Error::Encryption`] with the first rule that
    /// they break.
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
        let keys = HolderKeys::from_bytes(params, self.layout, bytes)?;
        Ok(Payload::Keys(Box::new(keys)))
    }

    /// Decodes an object that is an encrypted polynomial.
    ///
    /// # Errors
    /// As [`Form::decode`].
    pub fn decode_polynomial(&self, params: &Parameters, bytes: &[u8]) -> Result<Payload, Error> {
        let set = params.set();
        if bytes.len() != self.polynomial_bytes(set) {
            return Err(OTHER_LENGTH);
        }
        match self.encryption {
            Encryption::PublicKey => {
                let decode = |bytes: &[u8]| Ciphertext::from_bytes(params, bytes);
                let all = each(bytes, set.ciphertext_bytes(), decode, Ciphertext::residue);
                Ok(Payload::Ciphertexts(all?))
            }
            Encryption::HolderKey => {
                let decode = |bytes: &[u8]| SeededCiphertext::from_bytes(params, bytes);
                let all = each(bytes, set.seeded_bytes(), decode, SeededCiphertext::residue);
                Ok(Payload::Seeded(all?))
            }
        }
    }
}

/// Decodes ciphertexts of one size, the residues of which must be 0, 1, ...
fn each<C>(
    bytes: &[u8],
    size: usize,
    decode: impl Fn(&[u8]) -> fhaim_he::Result<C>,
    residue: impl Fn(&C) -> usize,
) -> Result<Vec<C>, Error> {
    let decoded = bytes.chunks_exact(size).map(decode).enumerate();
    let in_order = decoded.map(|(place, ciphertext)| {
        let ciphertext = ciphertext?;
        if residue(&ciphertext) == place {
            Ok(ciphertext)
        } else {
            Err(Error::Object("ciphertexts out of order"))
        }
    });
    in_order.collect()
}

/// A holder's key as text, its bytes in hexadecimal, to be kept or handed on where only text can be.
pub fn key_to_text(key: &HolderKey) -> Zeroizing<String> {
    const DIGITS: &[char; 16] = &[
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let bytes = key.to_bytes();
    // Of its final size at once: a text that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(2 * bytes.len()));
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    text.extend(halves.filter_map(|half| DIGITS.get(usize::from(half))));
    text
}

/// The key that a text holds.
///
/// # Errors
/// [`Error::Object`] for other text than [`key_to_text`] writes; [`Error::Encryption`] for bytes that are no
/// key of these parameters. Neither quotes it.
pub fn key_from_text(params: &Parameters, text: &str) -> Result<HolderKey, Error> {
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
        return Err(Error::Object("a holder's key that is none"));
    }
    Ok(HolderKey::from_bytes(params, &bytes)?)
}

/// What a holder encrypts with: the dataset's public key, or a key of its own.
#[derive(Clone, Copy, Debug)]
pub struct Encryptor<'a> {
    public: &'a PublicKey,
    own: Option<&'a HolderKey>,
}

impl<'a> From<&'a PublicKey> for Encryptor<'a> {
    fn from(public: &'a PublicKey) -> Self {
        Self { public, own: None }
    }
}

impl<'a> Encryptor<'a> {
    /// The holder's own key, where it has one; its ciphertexts are brought under the public one's.
    pub fn new(public: &'a PublicKey, own: Option<&'a HolderKey>) -> Self {
        Self { public, own }
    }

    /// The parameters of its ciphertexts.
    pub fn params(&self) -> &'a Parameters {
        self.public.params()
    }

    /// Under which key it encrypts.
    pub fn encryption(&self) -> Encryption {
        match self.own {
            None => Encryption::PublicKey,
            Some(_) => Encryption::HolderKey,
        }
    }

    /// Whether it encrypts as a plan says: under such a key, and under one of the public key's parameters.
    pub(crate) fn follows(&self, encryption: Encryption) -> bool {
        let same = |own: &HolderKey| own.params().set() == self.public.params().set();
        self.encryption() == encryption && self.own.is_none_or(same)
    }

    /// Encrypts a polynomial, under each plaintext modulus.
    pub(crate) fn encrypt<R: RngCore + CryptoRng>(
        &self,
        coefficients: &[i64],
        rng: &mut R,
    ) -> Result<Payload, Error> {
        Ok(match self.own {
            None => Payload::Ciphertexts(self.public.encrypt(coefficients, rng)?),
            Some(key) => Payload::Seeded(key.encrypt(coefficients, rng)?),
        })
    }

    /// The keys that come with its own: for records that lie so, or for counts.
    pub(crate) fn keys<R: RngCore + CryptoRng>(
        &self,
        layout: Option<Layout>,
        rng: &mut R,
    ) -> Result<Payload, Error> {
        let key = self.own.ok_or(NO_SUCH_OBJECT)?;
        Ok(Payload::Keys(Box::new(key.switch_keys(
            self.public,
            layout,
            rng,
        )?)))
    }
}

/// Of an object that is not of its size.
pub(crate) const OTHER_LENGTH: Error = Error::Object("truncated or too long");

/// Of an object that an upload does not have.
pub(crate) const NO_SUCH_OBJECT: Error = Error::Object("the upload has no such object");

/// Of an object under another key than the upload's keys were made with.
pub(crate) const OTHER_KEY: Error =
    Error::Object("it is under another key than the keys of its upload");

/// What an object holds.
#[derive(Clone, Debug)]
pub enum Payload {
    /// One ciphertext under each plaintext modulus, in order, under the dataset's key.
    Ciphertexts(Vec<Ciphertext>),
    /// The same under the holder's own.
    Seeded(Vec<SeededCiphertext>),
    /// What comes with the holder's own key.
    Keys(Box<HolderKeys>),
}

impl Payload {
    /// Encodes it: its parts, one after the other.
    pub fn encode(&self, params: &Parameters) -> Vec<u8> {
        match self {
            Self::Ciphertexts(all) => all.iter().flat_map(|c| c.to_bytes(params)).collect(),
            Self::Seeded(all) => all.iter().flat_map(|c| c.to_bytes(params)).collect(),
            Self::Keys(keys) => keys.to_bytes(),
        }
    }
    /// The ciphertexts, one a plaintext modulus, under the dataset's key.
    ///
    /// # Errors
    /// [`Error::Object`] where it has none.
    pub fn ciphertexts(self) -> Result<Vec<Ciphertext>, Error> {
        match self {
            Self::Ciphertexts(all) => Ok(all),
            _ => Err(Error::Object("it is not under the dataset's key")),
        }
    }

    /// The ciphertexts, one a plaintext modulus, under a holder's own key.
    ///
    /// # Errors
    /// [`Error::Object`] where it has none.
    pub fn seeded(self) -> Result<Vec<SeededCiphertext>, Error> {
        match self {
            Self::Seeded(all) => Ok(all),
            _ => Err(Error::Object("it is not under a holder's key")),
        }
    }

    /// The same, with what their seeds stand for.
    ///
    /// # Errors
    /// As [`Payload::seeded`].
    pub fn expanded(self, params: &Parameters) -> Result<Vec<HolderCiphertext>, Error> {
        let all = self.seeded()?.into_iter();
        let expanded = all.map(|seeded| seeded.expand(params));
        Ok(expanded.collect::<fhaim_he::Result<_>>()?)
    }

    /// What came with a holder's own key.
    ///
    /// # Errors
    /// [`Error::Object`] where it is something else.
    pub fn keys(self) -> Result<HolderKeys, Error> {
        match self {
            Self::Keys(keys) => Ok(*keys),
            _ => Err(Error::Object("it is no key")),
        }
    }
}
