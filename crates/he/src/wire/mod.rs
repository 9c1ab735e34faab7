//! Header and number encodings of all encoded objects.
//!
//! An object is a 24-byte header and a body. The header has the magic `FHAIM\0`, a format version, a kind, a
//! parameter set, a sub-kind (plaintext modulus), two zero bytes, the body's length (u32) and a checksum. The
//! checksum is the first 8 bytes of the SHA-256 of the preceding bytes and the body. It detects accidents;
//! authenticity is the transport's task. Lengths are checked before anything is allocated, every residue must
//! be below its prime, and no byte may be left over.

pub(crate) mod codec;

use crate::error::{Error, Result};
use crate::scheme::params::{ParameterSet, Parameters};
use crate::scheme::ring::DEGREE;
use sha2::{Digest, Sha256};
use std::ops::RangeInclusive;

/// Number of bytes of the header. The body follows it.
pub(crate) const HEADER: usize = 24;

const MAGIC: &[u8; 6] = b"FHAIM\0";
const VERSION: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ciphertext = 1,
    PublicKey = 2,
    EvaluationKeys = 3,
    SecretKey = 4,
    TileTask = 5,
    Partial = 6,
    SplitEvaluationKeys = 7,
    KeyShare = 8,
    FirstRound = 9,
    SecondRound = 10,
    Opening = 11,
    DecryptionShare = 12,
    UploadKey = 13,
    UploadSwitchKeys = 14,
    SeededCiphertext = 15,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ciphertext => "ciphertext",
            Self::PublicKey => "public key",
            Self::EvaluationKeys => "evaluation keys",
            Self::SecretKey => "secret key",
            Self::TileTask => "tile task",
            Self::Partial => "partial result",
            Self::SplitEvaluationKeys => "split evaluation keys",
            Self::KeyShare => "key share",
            Self::FirstRound => "first round of a key generation",
            Self::SecondRound => "second round of a key generation",
            Self::Opening => "opening",
            Self::DecryptionShare => "decryption share",
            Self::UploadKey => "upload key",
            Self::UploadSwitchKeys => "switching keys of an upload key",
            Self::SeededCiphertext => "seeded ciphertext",
        }
    }

    /// Returns whether objects of this kind belong to one plaintext modulus.
    fn has_residue(self) -> bool {
        matches!(
            self,
            Self::Ciphertext
                | Self::TileTask
                | Self::Partial
                | Self::Opening
                | Self::DecryptionShare
                | Self::SeededCiphertext
        )
    }

    pub(crate) fn malformed(self, reason: &'static str) -> Error {
        Error::Malformed {
            what: self.name(),
            reason,
        }
    }
}

/// The fields of a header: magic and version, kind, set, sub-kind, zeros, length, checksum.
struct Header<'a> {
    /// The bytes that the checksum covers in addition to the body.
    covered: &'a [u8; 16],
    checksum: [u8; 8],
    kind: u8,
    set: ParameterSet,
    residue: usize,
    reserved: [u8; 2],
    length: [u8; 4],
}

impl<'a> Header<'a> {
    fn read(bytes: &'a [u8]) -> Result<(Self, &'a [u8])> {
        let malformed = |reason| Error::Malformed {
            what: "encoded object",
            reason,
        };
        let short = || malformed("it is shorter than its header");
        let (covered, rest) = bytes.split_first_chunk::<16>().ok_or_else(short)?;
        let (checksum, body) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let &[
            m0,
            m1,
            m2,
            m3,
            m4,
            m5,
            version,
            kind,
            set,
            residue,
            r0,
            r1,
            l0,
            l1,
            l2,
            l3,
        ] = covered;
        if [m0, m1, m2, m3, m4, m5] != *MAGIC || version != VERSION {
            return Err(malformed("it is not an object of this format version"));
        }
        let unknown = || malformed("its parameter set is unknown");
        let header = Self {
            covered,
            checksum: *checksum,
            kind,
            set: ParameterSet::by_id(set).ok_or_else(unknown)?,
            residue: usize::from(residue),
            reserved: [r0, r1],
            length: [l0, l1, l2, l3],
        };
        Ok((header, body))
    }
}

/// Reads the identifier of the parameter set from any encoded object, so that the caller can build its tables
/// before it decodes the object.
///
/// # Errors
/// [`Error::Malformed`] for bytes that do not start like an encoded object.
pub fn parameter_set(bytes: &[u8]) -> Result<ParameterSet> {
    Header::read(bytes).map(|(header, _)| header.set)
}

/// Encodes an object: puts the header before its body.
pub(crate) fn frame(kind: Kind, params: &Parameters, residue: usize, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.resize(HEADER, 0);
    out.extend_from_slice(body);
    put_header(kind, params, residue, &mut out);
    out
}

/// Writes the header of an object whose body begins at [`HEADER`] bytes.
pub(crate) fn put_header(kind: Kind, params: &Parameters, residue: usize, object: &mut [u8]) {
    let Some((header, body)) = object.split_first_chunk_mut::<HEADER>() else {
        return;
    };
    let length = (body.len() as u32).to_le_bytes();
    let fields = [VERSION, kind as u8, params.set().id, residue as u8, 0, 0];
    let mut start = [MAGIC, &fields[..], &length].concat();
    start.extend_from_slice(&checksum(&start, body));
    header.copy_from_slice(&start);
}

fn checksum(header: &[u8], body: &[u8]) -> [u8; 8] {
    let digest: [u8; 32] = Sha256::new()
        .chain_update(header)
        .chain_update(body)
        .finalize()
        .into();
    // A digest has 32 bytes, so the first 8 exist.
    digest.first_chunk().copied().unwrap_or_default()
}

/// Checks header, length of the body in bytes, and checksum. Returns the plaintext modulus and the body.
pub(crate) fn unframe<'a>(
    kind: Kind,
    params: &Parameters,
    bytes: &'a [u8],
    lengths: RangeInclusive<usize>,
) -> Result<(usize, Reader<'a>)> {
    let (header, body) = Header::read(bytes)?;
    if header.kind != kind as u8 {
        return Err(kind.malformed("it is another kind of object"));
    }
    if header.set != *params.set() {
        return Err(kind.malformed("it has another parameter set"));
    }
    if header.reserved != [0, 0] {
        return Err(kind.malformed("its reserved bytes are not zero"));
    }
    let residues = if kind.has_residue() {
        params.residues()
    } else {
        1
    };
    if header.residue >= residues {
        return Err(kind.malformed("its plaintext modulus is unknown"));
    }
    if !lengths.contains(&body.len()) || header.length != (body.len() as u32).to_le_bytes() {
        return Err(kind.malformed(LENGTH));
    }
    if header.checksum != checksum(header.covered, body) {
        return Err(kind.malformed("its checksum does not match"));
    }
    Ok((header.residue, Reader { kind, rest: body }))
}

const LENGTH: &str = "truncated or too long";

fn bits(q: u64) -> u32 {
    64 - q.leading_zeros()
}

/// Returns the bytes of one limb of residues. The degree is a multiple of 64, so limbs are whole words.
pub(crate) fn limb_bytes(q: u64) -> usize {
    const { assert!(DEGREE.is_multiple_of(64)) };
    DEGREE * bits(q) as usize / 8
}

/// Appends residues below q (of 2 to 62 bits), each in as many bits as q has. Uses only words of 64 bits, because
/// the browser has no wider ones.
pub(crate) fn put_limb(out: &mut Vec<u8>, q: u64, residues: &[u64]) {
    let bits = bits(q);
    let (mut word, mut held) = (0, 0);
    for &residue in residues {
        word |= residue << held;
        held += bits;
        if held >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            held -= 64;
            // Its last `held` bits did not fit. `bits` is below 64, so at least one bit did.
            word = residue >> (bits - held);
        }
    }
}

/// Appends a number of four bytes.
///
/// # Errors
/// [`Error::OutOfRange`] for a number that needs more than four bytes.
pub(crate) fn put_u32(out: &mut Vec<u8>, number: usize) -> Result<()> {
    let number = u32::try_from(number);
    let number = number.map_err(|_| Error::OutOfRange("an encoded number must fit in 32 bits"))?;
    out.extend_from_slice(&number.to_le_bytes());
    Ok(())
}

/// The unread part of a body.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    kind: Kind,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn malformed(&self, reason: &'static str) -> Error {
        self.kind.malformed(reason)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.malformed(LENGTH))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a number of four bytes, which must be below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> Result<usize> {
        let number = usize::try_from(u32::from_le_bytes(self.bytes()?)).ok();
        number
            .filter(|&number| number < limit)
            .ok_or_else(|| self.malformed("a number is outside its range"))
    }

    /// Reads the number of items that follow, each of at least `bytes` bytes. Rejects a number that the rest of the
    /// body cannot hold.
    pub(crate) fn count(&mut self, bytes: usize) -> Result<usize> {
        let count = self.below(usize::MAX)?;
        match count.checked_mul(bytes) {
            Some(needed) if needed <= self.rest.len() => Ok(count),
            _ => Err(self.malformed(LENGTH)),
        }
    }

    /// Reads a limb's residues and appends them to `out`.
    pub(crate) fn limb(&mut self, q: u64, out: &mut Vec<u64>) -> Result<()> {
        let (limb, rest) = self
            .rest
            .split_at_checked(limb_bytes(q))
            .ok_or_else(|| self.malformed(LENGTH))?;
        self.rest = rest;
        let bits = bits(q);
        let mask = (1 << bits) - 1;
        let mut largest = 0;
        let mut push = |residue: u64| {
            largest = largest.max(residue);
            out.push(residue);
        };
        // `left` holds the `held` bits that earlier words left over, fewer than a residue has.
        let (mut left, mut held) = (0, 0);
        for &word in limb.as_chunks().0 {
            let word = u64::from_le_bytes(word);
            push((left | word << held) & mask);
            left = word >> (bits - held);
            held += 64 - bits;
            while held >= bits {
                push(left & mask);
                left >>= bits;
                held -= bits;
            }
        }
        if largest >= q {
            return Err(self.malformed("a residue is not below its prime"));
        }
        Ok(())
    }

    /// Reads the residues of a polynomial over `moduli`.
    pub(crate) fn limbs(&mut self, moduli: &[u64]) -> Result<Vec<u64>> {
        let mut residues = Vec::with_capacity(moduli.len() * DEGREE);
        for &q in moduli {
            self.limb(q, &mut residues)?;
        }
        Ok(residues)
    }

    /// Rejects bytes that are left over.
    pub(crate) fn end(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.malformed(LENGTH))
        }
    }

    /// Returns the rest of the body.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    /// Bit k of residue i is bit i * bits + k of the limb, counted from the lowest bit of each byte.
    #[test]
    fn residues_are_packed_bit_after_bit() {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(6);
        for q in [5, (1 << 32) - 5, (1 << 54) - 33, (1 << 62) - 57] {
            let residues: Vec<u64> = (0..DEGREE).map(|_| rng.random_range(0..q)).collect();
            let mut bytes = Vec::new();
            put_limb(&mut bytes, q, &residues);
            assert_eq!(bytes.len(), limb_bytes(q));
            let bits = bits(q) as usize;
            let bit = |k: usize| u64::from(bytes[k / 8] >> (k % 8) & 1);
            let read = |i: usize| (0..bits).map(|k| bit(i * bits + k) << k).sum::<u64>();
            assert!((0..DEGREE).all(|i| read(i) == residues[i]), "{q}");
            let mut body = Reader {
                kind: Kind::Ciphertext,
                rest: &bytes,
            };
            assert!(body.limbs(&[q]).unwrap() == residues, "{q}");
            body.end().unwrap();
        }
    }

    /// A count that is too large for the rest of the body is rejected before anything is allocated for it.
    #[test]
    fn counts_larger_than_the_rest_of_the_body_are_rejected() {
        let mut bytes = Vec::new();
        put_u32(&mut bytes, 3).unwrap();
        bytes.extend([0; 12]);
        let count = |each: usize| {
            let mut body = Reader {
                kind: Kind::TileTask,
                rest: &bytes,
            };
            body.count(each).ok()
        };
        assert_eq!(count(4), Some(3));
        assert_eq!(count(5), None);
        assert_eq!(count(usize::MAX), None);
    }
}
