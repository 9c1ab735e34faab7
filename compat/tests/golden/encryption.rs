//! Keys and ciphertexts in the encoding of `fhaim_he`.

use crate::files::{golden, refuses_damage, stored};
use fhaim_he::{
    COMPACT, Ciphertext, DEGREE, Error, EvaluationKeys, Layout, ParameterSet, Parameters,
    PublicKey, Result, STANDARD, SecretKey, SeededCiphertext, UploadKey, UploadSwitchKeys, WIDE,
};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Number of bytes before the body.
pub const HEADER: usize = 24;

/// The message of the golden ciphertext.
pub const HIDDEN: [i64; 6] = [1, -1, 0, 33_554_429, -33_554_429, 7];

pub fn malformed<T>(decoded: Result<T>) {
    match decoded {
        Err(Error::Malformed { .. }) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("damaged bytes were accepted"),
    }
}

fn fresh_secret(params: &Parameters) -> SecretKey {
    SecretKey::random(params, &mut ChaCha20Rng::seed_from_u64(1)).unwrap()
}

fn fresh_public(secret: &SecretKey) -> PublicKey {
    secret
        .public_key(&mut ChaCha20Rng::seed_from_u64(2))
        .unwrap()
}

/// Returns the golden secret key, under the parameter set STANDARD.
pub fn secret(params: &Parameters) -> SecretKey {
    let bytes = golden("secret-key.standard", || {
        fresh_secret(params).to_bytes().to_vec()
    });
    SecretKey::from_bytes(params, &bytes).unwrap()
}

/// Returns the golden public key, under the parameter set STANDARD.
pub fn public(params: &Parameters) -> PublicKey {
    let made = || fresh_public(&secret(params)).to_bytes().unwrap();
    PublicKey::from_bytes(params, &golden("public-key.standard", made)).unwrap()
}

/// Returns the bytes of the golden ciphertext, under the parameter set STANDARD.
pub fn ciphertext(params: &Parameters) -> Vec<u8> {
    golden("ciphertext.standard", || {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let public = fresh_public(&fresh_secret(params));
        public.encrypt(&HIDDEN, &mut rng).unwrap()[0].to_bytes(params)
    })
}

pub fn reveals(secret: &SecretKey, ciphertext: Ciphertext) {
    let (values, _) = secret.decrypt(&[ciphertext]).unwrap();
    assert!(values.iter().zip(HIDDEN).all(|(&v, h)| v == i128::from(h)));
    assert!(values[HIDDEN.len()..].iter().all(|&v| v == 0));
}

#[test]
fn golden_ciphertext_decrypts_under_its_secret_key() {
    let params = Parameters::new(STANDARD).unwrap();
    let secret = secret(&params);
    let bytes = ciphertext(&params);
    assert_eq!(fhaim_he::parameter_set(&bytes).unwrap(), STANDARD);
    let decoded = Ciphertext::from_bytes(&params, &bytes).unwrap();
    assert_eq!(decoded.to_bytes(&params), bytes);
    reveals(&secret, decoded);
    refuses_damage(&bytes, HEADER, |bytes| {
        malformed(Ciphertext::from_bytes(&params, bytes));
    });
    malformed(SecretKey::from_bytes(&params, &bytes));
}

#[test]
fn secret_key_is_unchanged() {
    let params = Parameters::new(STANDARD).unwrap();
    let bytes = secret(&params).to_bytes();
    assert_eq!(stored("secret-key.standard"), *bytes);
    refuses_damage(&bytes, HEADER, |bytes| {
        malformed(SecretKey::from_bytes(&params, bytes));
    });
}

#[test]
fn public_key_is_unchanged_and_matches_its_secret_key() {
    let params = Parameters::new(STANDARD).unwrap();
    let secret = secret(&params);
    let bytes = golden("public-key.standard", || {
        fresh_public(&secret).to_bytes().unwrap()
    });
    let public = PublicKey::from_bytes(&params, &bytes).unwrap();
    assert_eq!(public.to_bytes().unwrap(), bytes);
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut fresh = public.encrypt(&HIDDEN, &mut rng).unwrap();
    reveals(&secret, fresh.remove(0));
    refuses_damage(&bytes, HEADER, |bytes| {
        malformed(PublicKey::from_bytes(&params, bytes));
    });
}

/// An independent encoder that follows the format's description: residues are packed one after the other, in as many
/// bits as their prime has, from the lowest bit of the first byte.
#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    word: u128,
    held: u32,
    count: u64,
}

impl Body {
    /// Encodes a polynomial's residues modulo each prime. They are multiples of an odd constant.
    fn poly(&mut self, primes: &[u64]) {
        for &prime in primes {
            for _ in 0..DEGREE {
                self.count += 1;
                let residue = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15) % prime;
                self.word |= u128::from(residue) << self.held;
                self.held += prime.ilog2() + 1;
                while self.held >= 8 {
                    self.bytes.push(self.word as u8);
                    self.word >>= 8;
                    self.held -= 8;
                }
            }
        }
        assert_eq!(self.held, 0, "a prime's residues fill whole bytes");
    }

    /// Encodes half a key-switching key: a polynomial over all primes for each digit. A digit covers as many
    /// ciphertext primes as there are special ones.
    fn half(&mut self, set: &ParameterSet) {
        let all = [set.ciphertext_moduli, set.special_moduli].concat();
        for _ in set.ciphertext_moduli.chunks(set.special_moduli.len()) {
            self.poly(&all);
        }
    }
}

/// Encodes an object: magic, version, kind, set, plaintext modulus, two zero bytes, length, checksum, body.
fn object(kind: u8, set: u8, modulus: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = b"FHAIM\0".to_vec();
    bytes.extend([1, kind, set, modulus, 0, 0]);
    bytes.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
    let digest = Sha256::digest([bytes.as_slice(), body].concat());
    bytes.extend(&digest[..8]);
    bytes.extend(body);
    bytes
}

/// Generates one object of each kind by a rule, without random numbers.
fn by_rule(set: &ParameterSet) -> Vec<(&'static str, Vec<u8>)> {
    let ciphertext = set.ciphertext_moduli;
    let all = [ciphertext, set.special_moduli].concat();
    let mut objects = Vec::new();
    for modulus in 0..set.plaintext_moduli.len() {
        let mut body = Body::default();
        body.poly(ciphertext);
        body.poly(ciphertext);
        let bytes = object(1, set.id, modulus as u8, &body.bytes);
        objects.push(("ciphertext", bytes));
    }
    let mut body = Body::default();
    body.poly(&all);
    body.poly(&all);
    objects.push(("public-key", object(2, set.id, 0, &body.bytes)));
    objects.extend(evaluation_keys(set));
    objects.push(("secret-key", object(4, set.id, 0, &[7; 32])));
    objects
}

/// Generates evaluation keys of a sole holder's dataset, and of a roster of each kind: the kind of roster, its number
/// of holders, the identifiers of its upload keys, and then a seed and half a key for each switching key.
fn evaluation_keys(set: &ParameterSet) -> Vec<(&'static str, Vec<u8>)> {
    // 13 levels of packing, and two keys for squared scores in sets that support them.
    let sole = 13 + if set.has_squares() { 2 } else { 0 };
    // h to s; the inverse to h, the square to s, and two keys for each of 8 levels; left and right factors of
    // columns.
    let (records, columns) = (1 + 1 + 1 + 2 * 8, 3 + 1 + 1 + 2 * 8);
    let kinds: [(_, &[u8], u8, u8); 4] = [
        ("evaluation-keys", &[0], 0, sole),
        ("evaluation-keys-of-counts", &[1, 2], 2, 13 + 2),
        ("evaluation-keys-of-records", &[2, 1], 1, 13 + records),
        ("evaluation-keys-of-columns", &[3, 1], 2, 13 + columns),
    ];
    let encode = |(kind, shape, names, keys): (_, &[u8], u8, u8)| {
        let mut body = Body::default();
        body.bytes.extend(shape);
        (0..names).for_each(|name| body.bytes.extend([name; 16]));
        for key in 0..keys {
            body.bytes.extend([key; 32]);
            body.half(set);
        }
        (kind, object(3, set.id, 0, &body.bytes))
    };
    kinds.map(encode).to_vec()
}

/// Generates the objects that holders make with upload keys. All except the key begin with the 16 bytes of its
/// identifier.
fn holders_by_rule(set: &ParameterSet) -> Vec<(&'static str, Vec<u8>)> {
    let named = || Body {
        bytes: (0..16).collect(),
        ..Body::default()
    };
    let mut objects = Vec::new();
    for modulus in 0..set.plaintext_moduli.len() {
        let mut body = named();
        body.bytes.extend([9; 32]);
        body.poly(set.ciphertext_moduli);
        let bytes = object(15, set.id, modulus as u8, &body.bytes);
        objects.push(("seeded-ciphertext", bytes));
    }
    objects.push(("upload-key", object(13, set.id, 0, &[8; 32])));
    // Level 0, and both halves of the key from h to s.
    let mut body = named();
    body.bytes.push(0);
    (0..2).for_each(|_| body.half(set));
    objects.push(("holder-keys", object(14, set.id, 0, &body.bytes)));
    // A table of one chunk has one slot, so level 1. First a seed and half a key, then three keys with both halves.
    let mut body = named();
    body.bytes.push(1);
    (0..2).for_each(|_| body.half(set));
    body.bytes.extend([9; 32]);
    (0..1 + 3 * 2).for_each(|_| body.half(set));
    let bytes = object(14, set.id, 0, &body.bytes);
    objects.push(("holder-keys-of-columns", bytes));
    objects
}

fn rewrite(params: &Parameters, kind: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let columns = Layout::for_records(DEGREE)?;
    Ok(match kind {
        "seeded-ciphertext" => SeededCiphertext::from_bytes(params, bytes)?.to_bytes(params),
        "upload-key" => UploadKey::from_bytes(params, bytes)?.to_bytes().to_vec(),
        "holder-keys" => UploadSwitchKeys::from_bytes(params, None, bytes)?.to_bytes(),
        "holder-keys-of-columns" => {
            UploadSwitchKeys::from_bytes(params, Some(columns), bytes)?.to_bytes()
        }
        "ciphertext" => Ciphertext::from_bytes(params, bytes)?.to_bytes(params),
        "public-key" => PublicKey::from_bytes(params, bytes)?.to_bytes()?,
        "secret-key" => SecretKey::from_bytes(params, bytes)?.to_bytes().to_vec(),
        _ => EvaluationKeys::from_bytes(params, bytes)?.to_bytes(),
    })
}

/// Keys take megabytes. For every kind and parameter set, the golden file therefore has only the digest of one
/// object, which is generated here by a rule.
#[test]
fn objects_of_every_kind_and_set_round_trip() {
    let sets = [COMPACT, STANDARD, WIDE];
    let lines = lines(&sets, by_rule) + &lines(&sets, holders_by_rule);
    let made = || lines.clone().into_bytes();
    assert_eq!(golden("objects.sha256", made), lines.as_bytes());
}

/// Reads and writes objects of several sets, checks that damaged ones are rejected, and returns a line for each.
fn lines(
    sets: &[ParameterSet],
    objects: impl Fn(&ParameterSet) -> Vec<(&'static str, Vec<u8>)>,
) -> String {
    let mut lines = String::new();
    for set in sets {
        let params = Parameters::new(*set).unwrap();
        for (kind, bytes) in objects(set) {
            let written = rewrite(&params, kind, &bytes).unwrap();
            assert!(written == bytes, "{kind} {}", set.id);
            let digest = Sha256::digest(&written);
            let (id, modulus, length) = (set.id, bytes[9], bytes.len());
            writeln!(lines, "{kind} {id} {modulus} {length} {digest:x}").unwrap();
            for length in [0, HEADER - 1, HEADER, bytes.len() / 2, bytes.len() - 1] {
                malformed(rewrite(&params, kind, &bytes[..length]));
            }
            let mut damaged = bytes.clone();
            for bit in 0..8 * 16 {
                damaged[bit / 8] ^= 1 << (bit % 8);
                malformed(rewrite(&params, kind, &damaged));
                damaged[bit / 8] ^= 1 << (bit % 8);
            }
            damaged.push(0);
            malformed(rewrite(&params, kind, &damaged));
        }
    }
    lines
}
