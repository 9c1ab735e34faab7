//! Strict binary codecs for everything that crosses a wire or rests on disk.
//!
//! An object is a 24-byte header and a body: the magic `FHAIM\0`, a format version, a kind, a
//! parameter set, a sub-kind (plaintext modulus), two zero bytes, the body's length (u32), and
//! the first 8 bytes of the SHA-256 of what precedes them and the body, which catches accidents (authenticity is the
//! transport's). Lengths are known from header fields before anything is allocated; every residue
//! must lie below its prime; no byte may be left over.

use crate::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::keys::{
    ERROR_VARIANCE, EvaluationKeys, FIRST_LEVELS, KeySwitchKey, LEVELS, PublicKey, SecretKey,
    expand,
};
use crate::params::{DEGREE, ParameterSet, Parameters};
use crate::ring::Poly;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes before the body.
pub(crate) const HEADER: usize = 24;

const MAGIC: &[u8; 6] = b"FHAIM\0";
const VERSION: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ciphertext = 1,
    PublicKey = 2,
    EvaluationKeys = 3,
    SecretKey = 4,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Ciphertext => "ciphertext",
            Self::PublicKey => "public key",
            Self::EvaluationKeys => "evaluation keys",
            Self::SecretKey => "secret key",
        }
    }
}

/// Reads the identifier of the parameter set from any encoded object, so that its tables can be
/// built before the object is decoded.
///
/// # Errors
/// [`Error::Malformed`] for bytes that do not start like an encoded object.
pub fn parameter_set(bytes: &[u8]) -> Result<ParameterSet> {
    let malformed = |reason| Error::Malformed {
        what: "encoded object",
        reason,
    };
    let header = bytes
        .get(..HEADER)
        .ok_or(malformed("shorter than its header"))?;
    if &header[..6] != MAGIC || header[6] != VERSION {
        return Err(malformed("not an object of this format version"));
    }
    ParameterSet::by_id(header[8]).ok_or(malformed("unknown parameter set"))
}

fn seal(kind: Kind, params: &Parameters, residue: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[VERSION, kind as u8, params.set().id, residue, 0, 0]);
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    let checksum = checksum(&out, body);
    out.extend_from_slice(&checksum);
    out.extend_from_slice(body);
    out
}

fn checksum(header: &[u8], body: &[u8]) -> [u8; 8] {
    let digest = Sha256::new()
        .chain_update(header)
        .chain_update(body)
        .finalize();
    std::array::from_fn(|i| digest[i])
}

/// Checks header, length and checksum; returns the sub-kind and the body.
fn open<'a>(
    kind: Kind,
    params: &Parameters,
    bytes: &'a [u8],
    length: usize,
) -> Result<(usize, &'a [u8])> {
    let malformed = |reason| Error::Malformed {
        what: kind.name(),
        reason,
    };
    let set = parameter_set(bytes)?;
    if bytes[7] != kind as u8 {
        return Err(malformed("another kind of object"));
    }
    if set != *params.set() {
        return Err(malformed("another parameter set"));
    }
    if bytes[10..12] != [0, 0] {
        return Err(malformed("reserved bytes are set"));
    }
    let subkinds = if kind == Kind::Ciphertext {
        params.residues()
    } else {
        1
    };
    if usize::from(bytes[9]) >= subkinds {
        return Err(malformed("unknown plaintext modulus"));
    }
    if bytes.len() != HEADER + length || bytes[12..16] != (length as u32).to_le_bytes() {
        return Err(malformed("truncated or too long"));
    }
    let body = &bytes[HEADER..];
    if bytes[16..HEADER] != checksum(&bytes[..16], body) {
        return Err(malformed("its checksum does not match"));
    }
    Ok((usize::from(bytes[9]), body))
}

fn bits(q: u64) -> u32 {
    64 - q.leading_zeros()
}

/// Bytes of one limb of residues; the degree is a multiple of 64, so limbs are whole words.
fn limb_bytes(q: u64) -> usize {
    const { assert!(DEGREE.is_multiple_of(64)) };
    DEGREE * bits(q) as usize / 8
}

/// Appends residues below q (of 2 to 62 bits), each in as many bits as q has. Words of 64 bits alone:
/// the browser has no wider ones.
fn put_limb(out: &mut Vec<u8>, q: u64, residues: &[u64]) {
    let bits = bits(q);
    let (mut word, mut held) = (0, 0);
    for &residue in residues {
        word |= residue << held;
        held += bits;
        if held >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            held -= 64;
            // Its last `held` bits did not fit. `bits` is below 64, so at least one did.
            word = residue >> (bits - held);
        }
    }
}

fn take_limb(kind: Kind, body: &mut &[u8], q: u64, out: &mut Vec<u64>) -> Result<()> {
    let malformed = |reason| Error::Malformed {
        what: kind.name(),
        reason,
    };
    let (limb, rest) = body
        .split_at_checked(limb_bytes(q))
        .ok_or(malformed("truncated or too long"))?;
    *body = rest;
    let bits = bits(q);
    let mask = (1 << bits) - 1;
    let mut largest = 0;
    let mut push = |residue: u64| {
        largest = largest.max(residue);
        out.push(residue);
    };
    // `left` holds the `held` bits, fewer than a residue's, that earlier words had left.
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
        return Err(malformed("a residue is not below its prime"));
    }
    Ok(())
}

impl Ciphertext {
    /// Encodes the ciphertext.
    pub fn to_bytes(&self, params: &Parameters) -> Vec<u8> {
        let mut body = Vec::with_capacity(params.set().ciphertext_bytes() - HEADER);
        for poly in &self.c {
            for (j, &q) in params.set().ciphertext_moduli.iter().enumerate() {
                put_limb(&mut body, q, poly.limb(j));
            }
        }
        seal(Kind::Ciphertext, params, self.residue as u8, &body)
    }

    /// Decodes a ciphertext of the given parameter set.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let length = params.set().ciphertext_bytes() - HEADER;
        let (residue, mut body) = open(Kind::Ciphertext, params, bytes, length)?;
        let moduli = params.set().ciphertext_moduli;
        let mut poly = || -> Result<Poly> {
            let mut residues = Vec::with_capacity(moduli.len() * DEGREE);
            for &q in moduli {
                take_limb(Kind::Ciphertext, &mut body, q, &mut residues)?;
            }
            Ok(Poly::from_residues(DEGREE, residues))
        };
        Ok(Self {
            residue,
            c: [poly()?, poly()?],
        })
    }
}

impl SecretKey {
    /// Encodes the key. The bytes are the secret: seal them before they rest anywhere.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let body: Zeroizing<Vec<u8>> =
            Zeroizing::new(self.coefficients().iter().map(|&c| c as i8 as u8).collect());
        Zeroizing::new(seal(Kind::SecretKey, self.params(), 0, &body))
    }

    /// Decodes a key of the given parameter set.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let (_, body) = open(Kind::SecretKey, params, bytes, DEGREE)?;
        // Coefficients lie within twice the variance: one signed byte each.
        const { assert!(2 * ERROR_VARIANCE < 128) };
        let coefficients = body.iter().map(|&b| i64::from(b as i8)).collect();
        Self::from_coefficients(params, Zeroizing::new(coefficients))
    }
}

/// Residues of a polynomial over all primes, the special one last.
fn all_moduli(params: &Parameters) -> Vec<u64> {
    params
        .ring()
        .limbs()
        .iter()
        .map(|limb| limb.modulus.value())
        .collect()
}

impl PublicKey {
    /// Encodes the key.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let moduli = all_moduli(self.params());
        let mut body = Vec::new();
        for poly in self.polynomials()? {
            for (limb, &q) in poly.chunks_exact(DEGREE).zip(&moduli) {
                put_limb(&mut body, q, limb);
            }
        }
        Ok(seal(Kind::PublicKey, self.params(), 0, &body))
    }

    /// Decodes a key of the given parameter set.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let moduli = all_moduli(params);
        let length = 2 * moduli.iter().map(|&q| limb_bytes(q)).sum::<usize>();
        let (_, mut body) = open(Kind::PublicKey, params, bytes, length)?;
        let mut poly = || -> Result<Vec<u64>> {
            let mut residues = Vec::with_capacity(moduli.len() * DEGREE);
            for &q in &moduli {
                take_limb(Kind::PublicKey, &mut body, q, &mut residues)?;
            }
            Ok(residues)
        };
        Self::from_polynomials(params, [poly()?, poly()?])
    }
}

impl EvaluationKeys {
    fn keys(&self) -> impl Iterator<Item = &KeySwitchKey> {
        [&self.relinearise, &self.inversion]
            .into_iter()
            .chain(&self.packing)
            .chain(&self.squares)
    }

    /// Encodes the keys: of each, a seed for the uniform half and the other half.
    pub fn to_bytes(&self) -> Vec<u8> {
        let ring = self.params.ring();
        let mut body = Vec::new();
        for key in self.keys() {
            body.extend_from_slice(&key.seed);
            for digit in &key.b {
                for (limb, residues) in ring.limbs().iter().zip(digit.chunks_exact(DEGREE)) {
                    put_limb(&mut body, limb.modulus.value(), residues);
                }
            }
        }
        seal(Kind::EvaluationKeys, &self.params, 0, &body)
    }

    /// Decodes keys of the given parameter set.
    ///
    /// # Errors
    /// [`Error::Malformed`] with the first rule the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let moduli = all_moduli(params);
        let digits = params.set().ciphertext_moduli.len();
        let digit = moduli.iter().map(|&q| limb_bytes(q)).sum::<usize>();
        let length = (2 + LEVELS + FIRST_LEVELS) * (32 + digits * digit);
        let (_, mut body) = open(Kind::EvaluationKeys, params, bytes, length)?;
        let mut key = || -> Result<KeySwitchKey> {
            let (seed, rest) = body.split_first_chunk::<32>().ok_or(Error::Malformed {
                what: "evaluation keys",
                reason: "truncated or too long",
            })?;
            body = rest;
            let mut b = Vec::with_capacity(digits);
            for _ in 0..digits {
                let mut residues = Vec::with_capacity(moduli.len() * DEGREE);
                for &q in &moduli {
                    take_limb(Kind::EvaluationKeys, &mut body, q, &mut residues)?;
                }
                b.push(residues);
            }
            Ok(KeySwitchKey {
                seed: *seed,
                b,
                a: expand(params.ring(), *seed),
            })
        };
        let (relinearise, inversion) = (key()?, key()?);
        let packing = (0..LEVELS).map(|_| key()).collect::<Result<_>>()?;
        let squares = (0..FIRST_LEVELS).map(|_| key()).collect::<Result<_>>()?;
        Ok(Self {
            params: params.clone(),
            relinearise,
            inversion,
            packing,
            squares,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{P1, P2};
    use rand::{Rng, SeedableRng};

    /// Every truncation edge, an extension, and bit flips at random places are refused.
    fn refuses_damage<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T>) {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(bytes.len() as u64);
        let refused = |bytes: &[u8]| match decode(bytes) {
            Err(Error::Malformed { .. }) => {}
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("accepted damaged bytes"),
        };
        for length in (0..=HEADER).chain([bytes.len() / 2, bytes.len() - 1]) {
            refused(&bytes[..length]);
        }
        let mut longer = bytes.to_vec();
        longer.push(0);
        refused(&longer);
        for bit in (0..8 * HEADER).chain((0..100).map(|_| rng.random_range(0..8 * bytes.len()))) {
            let mut flipped = bytes.to_vec();
            flipped[bit / 8] ^= 1 << (bit % 8);
            refused(&flipped);
        }
        let noise: Vec<u8> = (0..bytes.len()).map(|_| rng.random()).collect();
        refused(&noise);
    }

    #[test]
    fn objects_survive_a_round_trip_and_damage_is_refused() {
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(5);
        for set in [P1, P2] {
            let params = Parameters::new(set).unwrap();
            let secret = SecretKey::random(&params, &mut rng).unwrap();
            let public = secret.public_key(&mut rng).unwrap();
            let keys = secret.evaluation_keys(&mut rng).unwrap();

            let bytes = secret.to_bytes();
            let secret = SecretKey::from_bytes(&params, &bytes).unwrap();
            refuses_damage(&bytes, |b| SecretKey::from_bytes(&params, b));

            let bytes = public.to_bytes().unwrap();
            let public = PublicKey::from_bytes(&params, &bytes).unwrap();
            assert_eq!(public.to_bytes().unwrap(), bytes);
            refuses_damage(&bytes, |b| PublicKey::from_bytes(&params, b));

            let bytes = keys.to_bytes();
            let decoded = EvaluationKeys::from_bytes(&params, &bytes).unwrap();
            assert!(decoded.keys().zip(keys.keys()).all(|(a, b)| a == b));
            refuses_damage(&bytes, |b| EvaluationKeys::from_bytes(&params, b));

            let ciphertexts = public.encrypt(&[5, -7], &mut rng).unwrap();
            for c in &ciphertexts {
                let bytes = c.to_bytes(&params);
                assert_eq!(bytes.len(), set.ciphertext_bytes());
                assert_eq!(&Ciphertext::from_bytes(&params, &bytes).unwrap(), c);
                refuses_damage(&bytes, |b| Ciphertext::from_bytes(&params, b));
            }
            assert_eq!(secret.decrypt(&ciphertexts).unwrap().0[..2], [5, -7]);
        }
    }

    #[test]
    fn a_residue_at_its_prime_is_refused_even_with_a_right_checksum() {
        let params = Parameters::new(P1).unwrap();
        let zero = || params.ring().zero();
        let mut c = Ciphertext {
            residue: 0,
            c: [zero(), zero()],
        };
        c.c[1].limb_mut(1)[17] = P1.ciphertext_moduli[1];
        let bytes = c.to_bytes(&params);
        let error = Ciphertext::from_bytes(&params, &bytes).unwrap_err();
        assert!(error.to_string().contains("not below its prime"), "{error}");
    }

    /// Bit k of residue i is bit i * bits + k of the limb, counted from the lowest of each byte.
    #[test]
    fn residues_lie_bit_after_bit() {
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
            let (mut taken, mut body) = (Vec::new(), bytes.as_slice());
            take_limb(Kind::Ciphertext, &mut body, q, &mut taken).unwrap();
            assert!(body.is_empty() && taken == residues, "{q}");
        }
    }
}
