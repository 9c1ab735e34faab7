//! Encodings of the objects that the services of a split key store and send. `wire` defines their common parts.
//!
//! | object | body |
//! |---|---|
//! | key share | number of shares; the 32 bytes that everything is drawn from |
//! | first round | number of shares; the roster's shape and commitments to its upload keys' seeds; part of the public key; parts of keys that take one round; h and k of the keys of squares |
//! | second round | number of shares; parts of the keys of squares |
//! | opening, decryption share | residues of 64 bits each, little-endian, prime after prime |
//!
//! Polynomials are over all primes, and each residue takes as many bits as its prime.

use super::KeyShare;
use super::decryption::{DecryptionShare, Opening, Places};
use super::keygen::{Digits, FirstRound, SecondRound, rounds};
use crate::error::Result;
use crate::scheme::params::Parameters;
use crate::scheme::root::Root;
use crate::scheme::upload::RosterShape;
use crate::table::layout::PAGE;
use crate::wire::codec::{digits, digits_bytes, put_digits, put_shape, take_shape};
use crate::wire::{Kind, Reader, frame, limb_bytes, unframe};
use zeroize::Zeroizing;

impl KeyShare {
    /// Encodes the share. The bytes are the secret, so seal them before you store them.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut body = Zeroizing::new(Vec::with_capacity(1 + 32));
        body.push(self.params.shares() as u8);
        body.extend_from_slice(self.root.bytes());
        Zeroizing::new(frame(Kind::KeyShare, &self.params, 0, &body))
    }

    /// Decodes a share of a key of the given parameter set and number of shares.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let mut body = open(Kind::KeyShare, params, bytes, 1 + 32)?;
        let root = Root::from_bytes(body.bytes()?);
        body.end()?;
        Self::from_root(params, root)
    }
}

impl FirstRound {
    /// Encodes the message.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        let mut body = Vec::with_capacity(Self::length(params, self.shape));
        body.push(params.shares() as u8);
        put_shape(self.shape, &mut body);
        for commitment in &self.commitments {
            body.extend_from_slice(commitment);
        }
        put_digits(params, &self.public, &mut body);
        for part in self.linear.iter().chain(self.squares.iter().flatten()) {
            put_digits(params, part, &mut body);
        }
        frame(Kind::FirstRound, params, 0, &body)
    }

    /// Returns the length in bytes of a message for a dataset with a roster of this shape, without the frame.
    pub fn length(params: &Parameters, shape: Option<RosterShape>) -> usize {
        let (linear, squares) = rounds(shape);
        let keys = linear + 2 * squares;
        let shape_bytes = if shape.is_some() { 2 } else { 1 };
        let commitments = 32 * upload_keys(shape);
        1 + shape_bytes + commitments + polynomial_bytes(params) + keys * digits_bytes(params)
    }

    /// Decodes a message under the given parameter set and number of shares, for a dataset with a roster of this shape.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(
        params: &Parameters,
        shape: Option<RosterShape>,
        bytes: &[u8],
    ) -> Result<Self> {
        let mut body = open(Kind::FirstRound, params, bytes, Self::length(params, shape))?;
        if take_shape(&mut body)? != shape {
            return Err(body.malformed("the message is for another roster"));
        }
        let commitments = (0..upload_keys(shape)).map(|_| body.bytes());
        let commitments = commitments.collect::<Result<_>>()?;
        let public: Digits = vec![body.limbs(&params.all_moduli())?];
        let (linear, squares) = rounds(shape);
        let mut part = || digits(params, &mut body);
        let linear = (0..linear).map(|_| part()).collect::<Result<_>>()?;
        let squares = (0..squares).map(|_| Ok([part()?, part()?]));
        let squares = squares.collect::<Result<_>>()?;
        body.end()?;
        Ok(Self {
            public,
            linear,
            squares,
            shape,
            commitments,
        })
    }
}

impl SecondRound {
    /// Encodes the message.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        let keys = self.squares.len();
        let mut body = Vec::with_capacity(1 + keys * digits_bytes(params));
        body.push(params.shares() as u8);
        for part in &self.squares {
            put_digits(params, part, &mut body);
        }
        frame(Kind::SecondRound, params, 0, &body)
    }

    /// Decodes a message under the given parameter set and number of shares, for a dataset with a roster of this shape.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(
        params: &Parameters,
        shape: Option<RosterShape>,
        bytes: &[u8],
    ) -> Result<Self> {
        let (_, keys) = rounds(shape);
        let length = 1 + keys * digits_bytes(params);
        let mut body = open(Kind::SecondRound, params, bytes, length)?;
        let squares = (0..keys).map(|_| digits(params, &mut body));
        let squares = squares.collect::<Result<_>>()?;
        body.end()?;
        Ok(Self { squares })
    }
}

impl Opening {
    /// Encodes the opening.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        self.0.to_bytes(Kind::Opening, params)
    }

    /// Decodes an opening of a ciphertext of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        Places::from_bytes(Kind::Opening, params, bytes).map(Self)
    }
}

impl DecryptionShare {
    /// Encodes the share.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        self.0.to_bytes(Kind::DecryptionShare, params)
    }

    /// Decodes a share for a ciphertext of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        Places::from_bytes(Kind::DecryptionShare, params, bytes).map(Self)
    }
}

impl Places {
    fn to_bytes(&self, kind: Kind, params: &Parameters) -> Vec<u8> {
        let words = self.limbs.iter().flatten();
        let body: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        frame(kind, params, self.residue, &body)
    }

    fn from_bytes(kind: Kind, params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let moduli = params.set().ciphertext_moduli;
        let place = 8 * moduli.len();
        let (residue, body) = unframe(kind, params, bytes, 0..=PAGE * place)?;
        let refused = |reason| kind.malformed(reason);
        let (words, rest) = body.rest().as_chunks::<8>();
        if !rest.is_empty() || words.len() % moduli.len() != 0 {
            return Err(refused(
                "the number of residues is not a multiple of the number of primes",
            ));
        }
        // A set has at least two primes.
        let places = words.len() / moduli.len();
        let mut words = words.iter().map(|&word| u64::from_le_bytes(word));
        let mut limbs = Vec::with_capacity(moduli.len());
        for &q in moduli {
            let limb: Vec<u64> = words.by_ref().take(places).collect();
            if limb.iter().any(|&x| x >= q) {
                return Err(refused("a residue is not below its prime"));
            }
            limbs.push(limb);
        }
        Ok(Self { residue, limbs })
    }
}

/// Returns the number of a roster's upload keys, including the joint one.
fn upload_keys(shape: Option<RosterShape>) -> usize {
    shape.map_or(0, |shape| shape.holders() + shape.joint().iter().len())
}

/// Returns the bytes of one polynomial over all primes.
fn polynomial_bytes(params: &Parameters) -> usize {
    params.all_moduli().iter().map(|&q| limb_bytes(q)).sum()
}

/// Checks the number of shares at the beginning of an object's body, and returns a reader of the rest.
fn open<'a>(kind: Kind, params: &Parameters, bytes: &'a [u8], length: usize) -> Result<Reader<'a>> {
    let (_, mut body) = unframe(kind, params, bytes, length..=length)?;
    if body.bytes::<1>()?.map(usize::from) != [params.shares()] {
        return Err(body.malformed("the object is for another number of shares"));
    }
    Ok(body)
}
