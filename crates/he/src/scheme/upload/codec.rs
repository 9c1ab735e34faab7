//! Encodings of upload keys, of ciphertexts under them and of their switching keys. The body of each begins
//! with the 16 bytes that identify the key. [`crate::wire`] defines the part that all encoded objects share.

use super::switch_keys::{FactorKeys, ImageKeys, Origin, ProductKeys, first_level};
use super::{SeededCiphertext, UploadKey, UploadKeyId, UploadSwitchKeys};
use crate::error::Result;
use crate::scheme::params::{MAX_SHARES, ParameterSet, Parameters};
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Poly;
use crate::scheme::switch_key::{KeySwitchKey, expand};
use crate::table::layout::Layout;
use crate::wire::codec::{digits, digits_bytes, put_key};
use crate::wire::{HEADER, Kind, Reader, frame, limb_bytes, put_limb, unframe};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

const ID: usize = size_of::<UploadKeyId>();
const SEED: usize = 32;

impl ParameterSet {
    /// Returns the bytes of an encoded [`SeededCiphertext`]: one polynomial, with residues packed to their primes'
    /// bits, and a seed.
    pub fn seeded_bytes(&self) -> usize {
        let limbs = self.ciphertext_moduli.iter();
        HEADER + ID + SEED + limbs.map(|&q| limb_bytes(q)).sum::<usize>()
    }
}

impl SeededCiphertext {
    /// Encodes the ciphertext.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        let mut body = Vec::with_capacity(params.set().seeded_bytes() - HEADER);
        body.extend_from_slice(&self.key.0);
        body.extend_from_slice(&self.seed);
        for (j, &q) in params.set().ciphertext_moduli.iter().enumerate() {
            put_limb(&mut body, q, self.c0.limb(j));
        }
        frame(Kind::SeededCiphertext, params, self.residue, &body)
    }

    /// Decodes a ciphertext of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let length = params.set().seeded_bytes() - HEADER;
        let (residue, mut body) = unframe(Kind::SeededCiphertext, params, bytes, length..=length)?;
        let key = UploadKeyId(body.bytes()?);
        let seed = body.bytes()?;
        let c0 = Poly::from_residues(DEGREE, body.limbs(params.set().ciphertext_moduli)?);
        body.end()?;
        Ok(Self {
            key,
            residue,
            seed,
            c0,
        })
    }
}

impl UploadKey {
    /// Encodes the key. The bytes are the secret, so seal them before you store them.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut body = Zeroizing::new(Vec::with_capacity(MAX_SHARES * SEED));
        for seed in &self.seeds {
            body.extend_from_slice(seed.as_ref());
        }
        Zeroizing::new(frame(Kind::UploadKey, &self.params, 0, &body))
    }

    /// Decodes a key of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let lengths = SEED..=MAX_SHARES * SEED;
        let (_, body) = unframe(Kind::UploadKey, params, bytes, lengths)?;
        let (seeds, rest) = body.rest().as_chunks::<SEED>();
        if !rest.is_empty() {
            return Err(body.malformed("each seed must have 32 bytes"));
        }
        let seeds = seeds.iter().map(|&seed| Zeroizing::new(seed));
        Self::from_seeds(params, seeds.collect())
    }
}

/// Encoded level of keys without products.
const NO_PRODUCTS: u8 = 0;

impl UploadSwitchKeys {
    /// Returns the bytes of encoded keys, for products of columns with a layout or for no products. The number is
    /// known before there are any keys.
    pub fn bytes(params: &Parameters, layout: Option<Layout>) -> usize {
        let half = digits_bytes(params);
        let products = layout.map_or(0, |_| SEED + half + 3 * 2 * half);
        HEADER + ID + 1 + 2 * half + products
    }

    /// Encodes the keys: both halves of the keys to the service's key, and a seed and one half of the other key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = self.id.0.to_vec();
        let images = || self.products.iter().flat_map(|products| &products.images);
        // A holder makes keys for one level, which is at most the logarithm of the degree.
        let level = images().next();
        body.push(level.map_or(NO_PRODUCTS, |(&level, _)| level as u8));
        let factors = self.factors.iter().map(|factors| &factors.right);
        let squares = self.products.iter().map(|products| &products.square);
        let images = images().flat_map(|(_, images)| [&images.linear, &images.square]);
        for key in [&self.linear]
            .into_iter()
            .chain(factors)
            .chain(squares)
            .chain(images)
        {
            put_key(&self.params, key, &mut body);
        }
        frame(Kind::UploadSwitchKeys, &self.params, 0, &body)
    }

    /// Decodes keys of the given parameter set, for products of columns with a layout or for no products.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, layout: Option<Layout>, bytes: &[u8]) -> Result<Self> {
        let length = Self::bytes(params, layout) - HEADER;
        let (_, mut body) = unframe(Kind::UploadSwitchKeys, params, bytes, length..=length)?;
        let id = UploadKeyId(body.bytes()?);
        let level = layout.map(first_level);
        if body.bytes()? != [level.map_or(NO_PRODUCTS, |level| level as u8)] {
            return Err(body.malformed("the keys are for tables of another stride"));
        }
        let linear = take_key(params, &mut body)?;
        let of_columns = level.map(|level| take_column_keys(params, level, &mut body));
        let (factors, products) = of_columns.transpose()?.unzip();
        body.end()?;
        Ok(Self {
            params: params.clone(),
            id,
            origin: Origin::Holder,
            linear,
            factors,
            products,
        })
    }
}

/// Reads a key with both halves.
fn take_key(params: &Parameters, body: &mut Reader<'_>) -> Result<KeySwitchKey> {
    let a = digits(params, body)?;
    let b = digits(params, body)?;
    Ok(KeySwitchKey { seed: None, b, a })
}

fn take_column_keys(
    params: &Parameters,
    level: usize,
    body: &mut Reader<'_>,
) -> Result<(FactorKeys, ProductKeys)> {
    let seed = body.bytes()?;
    let right = KeySwitchKey {
        seed: Some(seed),
        a: expand(params.ring(), seed),
        b: digits(params, body)?,
    };
    let square = take_key(params, body)?;
    let images = ImageKeys {
        linear: take_key(params, body)?,
        square: take_key(params, body)?,
    };
    let products = ProductKeys {
        square,
        images: BTreeMap::from([(level, images)]),
    };
    Ok((FactorKeys { left: None, right }, products))
}
