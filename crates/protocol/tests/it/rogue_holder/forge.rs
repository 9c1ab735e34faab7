//! Forged objects that the format allows but honest programs do not make, and some that it does not
//! allow.
//!
//! The second polynomial of an upload's ciphertext is the expansion of a seed. A rogue holder chooses the seed and every
//! residue of the first polynomial.

use fhaim_he::{Ciphertext, DEGREE, Parameters, SeededCiphertext, UploadKey, UploadKeyId};
use fhaim_protocol::encryption::Payload;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

/// Bytes of an encoded object's header. The last eight are a checksum.
const HEADER: usize = 24;

/// Start of a seeded ciphertext's polynomial, after the key's id and the seed.
const POLYNOMIAL: usize = HEADER + 16 + 32;

/// The polynomials that a rogue holder encrypts.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// The same integer in every coefficient.
    Flat,
    /// Coefficient i is i, centred.
    Ramp,
    /// Signs drawn from a seed.
    Signs(u64),
    /// Integers of 40 bits drawn from a seed: uniform modulo every plaintext modulus.
    Uniform(u64),
}

impl Pattern {
    pub fn coefficients(self) -> Vec<i64> {
        let draw = |seed, bound: i64| {
            let mut rng = ChaCha20Rng::seed_from_u64(seed);
            let one = |_| rng.random_range(-bound..=bound);
            (0..DEGREE).map(one).collect::<Vec<i64>>()
        };
        match self {
            Self::Flat => vec![1; DEGREE],
            Self::Ramp => (0..DEGREE as i64).map(|i| i - DEGREE as i64 / 2).collect(),
            Self::Signs(seed) => {
                let signs = draw(seed, 1 << 20);
                signs.into_iter().map(|x| 2 * (x & 1) - 1).collect()
            }
            Self::Uniform(seed) => draw(seed, 1 << 40),
        }
    }
}

/// The object that a rogue holder sends instead of an honest one.
#[derive(Clone, Copy, Debug)]
pub enum Forgery {
    /// c0 of an encryption of zero plus scale (q + 1) / t times a pattern: any message.
    Message(i64, Pattern),
    /// c0 of the honest object plus the constant polynomial scale (q + 1) / t. It reveals the
    /// secret key if a holder can put it into c1.
    Constant(u64),
    /// c0 of the honest object plus the constant polynomial 2^bits: noise, and no message.
    Noise(u32),
    /// All residues of the transform are one.
    Ones,
    /// All residues are zero.
    Zeros,
    /// All residues have the largest value.
    Largest,
    /// All residues are drawn from a seed.
    Random(u64),
}

impl Forgery {
    /// Whether it decrypts to a polynomial with little noise under the rogue's upload key.
    pub fn encrypts(self) -> bool {
        matches!(self, Self::Message(..) | Self::Constant(_) | Self::Noise(_))
    }

    /// Makes the object that replaces an honest one.
    pub fn of(self, key: &UploadKey, honest: &Payload, rng: &mut ChaCha20Rng) -> Payload {
        let params = key.params();
        let honest = honest.clone().seeded().unwrap();
        if let Self::Message(scale, pattern) = self {
            let message: Vec<i64> = pattern.coefficients().iter().map(|c| scale * c).collect();
            return Payload::Seeded(key.encrypt(&message, rng).unwrap());
        }
        let forged = honest.iter().map(|ciphertext| {
            let t = params.set().plaintext_moduli[ciphertext.residue()];
            edited(params, ciphertext, |_, p, residues| {
                self.edit(t, p, residues);
            })
        });
        Payload::Seeded(forged.collect())
    }

    /// Changes the residues of a transform modulo p.
    fn edit(self, t: u64, p: u64, residues: &mut [u64]) {
        let mut add = |value: u64| {
            for residue in residues.iter_mut() {
                *residue = ((u128::from(*residue) + u128::from(value)) % u128::from(p)) as u64;
            }
        };
        match self {
            Self::Message(..) => {}
            // (q + 1) / t is 1 / t modulo p.
            Self::Constant(scale) => add(times(scale % p, inverse(t % p, p), p)),
            Self::Noise(bits) => add(power(2, u64::from(bits), p)),
            Self::Ones => residues.fill(1),
            Self::Zeros => residues.fill(0),
            Self::Largest => residues.fill(p - 1),
            Self::Random(seed) => {
                let mut rng = ChaCha20Rng::seed_from_u64(seed);
                residues.fill_with(|| rng.random_range(0..p));
            }
        }
    }
}

/// Returns the same ciphertext with other residues. `edit` gets the number of each prime, the prime
/// and the residues.
pub fn edited(
    params: &Parameters,
    ciphertext: &SeededCiphertext,
    mut edit: impl FnMut(usize, u64, &mut [u64]),
) -> SeededCiphertext {
    let mut bytes = ciphertext.to_bytes(params);
    let mut place = POLYNOMIAL;
    for (number, &p) in params.set().ciphertext_moduli.iter().enumerate() {
        let packed = &mut bytes[place..place + limb_bytes(p)];
        let mut residues = unpack(packed, p);
        edit(number, p, &mut residues);
        packed.copy_from_slice(&pack(&residues, p));
        place += limb_bytes(p);
    }
    SeededCiphertext::from_bytes(params, &sealed(bytes)).unwrap()
}

/// Returns the bytes of a ciphertext with one invalid residue: its prime.
pub fn with_too_large_residue(params: &Parameters, ciphertext: &SeededCiphertext) -> Vec<u8> {
    let mut bytes = ciphertext.to_bytes(params);
    let p = params.set().ciphertext_moduli[0];
    let packed = &mut bytes[POLYNOMIAL..POLYNOMIAL + limb_bytes(p)];
    let mut residues = unpack(packed, p);
    residues[7] = p;
    packed.copy_from_slice(&pack(&residues, p));
    sealed(bytes)
}

/// Returns the same bytes as an object of another kind.
pub fn of_kind(kind: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[7] = kind;
    sealed(bytes)
}

/// Returns the same ciphertexts with the id of another key.
pub fn renamed(params: &Parameters, payload: &Payload, id: UploadKeyId) -> Payload {
    let renamed = payload.clone().seeded().unwrap().into_iter().map(|one| {
        let mut bytes = one.to_bytes(params);
        bytes[HEADER..HEADER + 16].copy_from_slice(&id.0);
        SeededCiphertext::from_bytes(params, &sealed(bytes)).unwrap()
    });
    Payload::Seeded(renamed.collect())
}

/// Returns (0, (q + 1) / t) under the dataset's key, which decrypts to the key itself. No holder
/// can send it. A test reads a split key with it.
pub fn extractor(params: &Parameters, like: &Ciphertext) -> Ciphertext {
    let t = params.set().plaintext_moduli[0];
    let moduli = params.set().ciphertext_moduli;
    let mut bytes = like.to_bytes(params);
    let mut place = HEADER;
    for second in [false, true] {
        for &p in moduli {
            let value = if second { inverse(t % p, p) } else { 0 };
            let packed = pack(&[value; DEGREE], p);
            bytes[place..place + packed.len()].copy_from_slice(&packed);
            place += packed.len();
        }
    }
    Ciphertext::from_bytes(params, &sealed(bytes)).unwrap()
}

/// Recomputes the checksum of an encoded object.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let (header, body) = bytes.split_at(HEADER);
    let checksum = Sha256::new()
        .chain_update(&header[..HEADER - 8])
        .chain_update(body)
        .finalize();
    bytes[HEADER - 8..HEADER].copy_from_slice(&checksum[..8]);
    bytes
}

fn bits(p: u64) -> usize {
    (64 - p.leading_zeros()) as usize
}

fn limb_bytes(p: u64) -> usize {
    DEGREE * bits(p) / 8
}

fn pack(residues: &[u64], p: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(limb_bytes(p));
    let (mut held, mut word) = (0, 0u128);
    for &residue in residues {
        word |= u128::from(residue) << held;
        held += bits(p);
        while held >= 8 {
            out.push(word as u8);
            word >>= 8;
            held -= 8;
        }
    }
    out
}

fn unpack(bytes: &[u8], p: u64) -> Vec<u64> {
    let mut out = Vec::with_capacity(DEGREE);
    let (mut held, mut word) = (0, 0u128);
    for &byte in bytes {
        word |= u128::from(byte) << held;
        held += 8;
        if held >= bits(p) {
            out.push((word & ((1 << bits(p)) - 1)) as u64);
            word >>= bits(p);
            held -= bits(p);
        }
    }
    out
}

fn times(a: u64, b: u64, p: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(p)) as u64
}

fn power(mut base: u64, mut exponent: u64, p: u64) -> u64 {
    let mut result = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = times(result, base, p);
        }
        base = times(base, base, p);
        exponent >>= 1;
    }
    result
}

/// p must be prime.
fn inverse(a: u64, p: u64) -> u64 {
    power(a, p - 2, p)
}
