//! Strict binary codecs for keys and ciphertexts, which are sent and stored. [`crate::wire`] defines the parts that
//! all encoded objects share.

use crate::error::{Error, Result};
use crate::scheme::ciphertext::Ciphertext;
use crate::scheme::evaluation_keys::{EvaluationKeys, ScoreKeys};
use crate::scheme::params::{ParameterSet, Parameters};
use crate::scheme::public_key::PublicKey;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Poly;
use crate::scheme::root::Root;
use crate::scheme::secret_key::SecretKey;
use crate::scheme::switch_key::{KeySwitchKey, expand, full_transform};
use crate::scheme::upload::{
    KeyKinds, RosterKeys, RosterSecrets, RosterShape, UploadKeyId, UploadSwitchKeys,
    packing_switches,
};
use crate::table::layout::LEVELS;
use crate::wire::{HEADER, Kind, Reader, frame, limb_bytes, put_header, put_limb, unframe};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

impl ParameterSet {
    /// Returns the bytes of an encoded ciphertext: two polynomials, with residues packed to their primes' bits.
    pub fn ciphertext_bytes(&self) -> usize {
        let limbs = self.ciphertext_moduli.iter();
        HEADER + 2 * limbs.map(|&q| limb_bytes(q)).sum::<usize>()
    }
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
        frame(Kind::Ciphertext, params, self.residue, &body)
    }

    /// Decodes a ciphertext of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let length = params.set().ciphertext_bytes() - HEADER;
        let (residue, mut body) = unframe(Kind::Ciphertext, params, bytes, length..=length)?;
        let moduli = params.set().ciphertext_moduli;
        let mut poly = || -> Result<Poly> {
            let residues = body.limbs(moduli)?;
            Ok(Poly::from_residues(DEGREE, residues))
        };
        let c = [poly()?, poly()?];
        body.end()?;
        Ok(Self { residue, c })
    }
}

impl SecretKey {
    /// Encodes the key. The bytes are the secret, so seal them before you store them.
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(frame(
            Kind::SecretKey,
            self.params(),
            0,
            self.root().bytes(),
        ))
    }

    /// Decodes a key of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let (_, mut body) = unframe(Kind::SecretKey, params, bytes, 32..=32)?;
        let root = Root::from_bytes(body.bytes()?);
        body.end()?;
        Self::from_root(params, root)
    }
}

impl SecretKey {
    /// Generates the keys that the computation service evaluates the uploads of a roster with.
    ///
    /// # Errors
    /// The same as for [`SecretKey::encoded_roster_evaluation_keys`].
    pub fn roster_evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        shape: RosterShape,
        rng: &mut R,
    ) -> Result<EvaluationKeys> {
        let encoded = self.encoded_roster_evaluation_keys(shape, rng)?;
        EvaluationKeys::from_bytes(self.params(), &encoded)
    }

    /// Generates and encodes the keys that the computation service evaluates the uploads of a roster with. Each
    /// switching key is encoded as soon as it is made: the keys of twenty holders of records take 240 MB encoded, and
    /// 600 MB in memory.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number of holders that no roster can have. [`Error::Mismatch`] for a key of
    /// several shares.
    pub fn encoded_roster_evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        shape: RosterShape,
        rng: &mut R,
    ) -> Result<Vec<u8>> {
        let params = self.params();
        if params.shares() > 1 {
            return Err(Error::Mismatch("the key has several shares"));
        }
        let ring = params.ring();
        let secrets = RosterSecrets::of(params, self.root(), shape)?;
        let secret = full_transform(ring, self.coefficients());
        // Framed in place, because a copy of large keys would double the memory.
        let mut body = Vec::with_capacity(EvaluationKeys::encoded_bytes(params, Some(shape)));
        body.resize(HEADER, 0);
        put_shape(Some(shape), &mut body);
        secrets.ids().for_each(|id| body.extend_from_slice(&id.0));
        let mut put = |source: &[u64], target: &[u64]| -> Result<()> {
            let key = KeySwitchKey::generate(ring, target, source, rng)?;
            put_key(params, &key, &mut body);
            Ok(())
        };
        for kind in packing_switches() {
            put(&kind.source(ring, &secret), &secret)?;
        }
        secrets.for_each_switch(shape, &secret, put)?;
        put_header(Kind::EvaluationKeys, params, 0, &mut body);
        Ok(body)
    }
}

impl PublicKey {
    /// Encodes the key.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let moduli = self.params().all_moduli();
        let mut body = Vec::new();
        for poly in self.polynomials() {
            for (limb, &q) in poly.chunks_exact(DEGREE).zip(&moduli) {
                put_limb(&mut body, q, limb);
            }
        }
        Ok(frame(Kind::PublicKey, self.params(), 0, &body))
    }

    /// Decodes a key of the given parameter set.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let moduli = params.all_moduli();
        let length = 2 * moduli.iter().map(|&q| limb_bytes(q)).sum::<usize>();
        let (_, mut body) = unframe(Kind::PublicKey, params, bytes, length..=length)?;
        let polynomials = [body.limbs(&moduli)?, body.limbs(&moduli)?];
        body.end()?;
        Self::from_polynomials(params, polynomials)
    }
}

impl EvaluationKeys {
    /// Returns the bytes of the encoded keys of a dataset, with a roster of this shape or with a sole holder.
    pub fn encoded_bytes(params: &Parameters, shape: Option<RosterShape>) -> usize {
        HEADER + Self::body_bytes(params, shape)
    }

    fn body_bytes(params: &Parameters, shape: Option<RosterShape>) -> usize {
        let split = usize::from(params.shares() > 1);
        let names = shape.map_or(0, |shape| {
            1 + size_of::<UploadKeyId>() * (shape.holders() + shape.joint().iter().len())
        });
        split + 1 + names + keys_bytes(params, shape)
    }

    fn keys(&self) -> impl Iterator<Item = &KeySwitchKey> {
        let scores = self.scores.iter();
        let scores = scores.flat_map(|keys| [&keys.relinearise, &keys.inversion]);
        self.packing.iter().chain(scores).chain(
            self.roster
                .iter()
                .flat_map(RosterKeys::each)
                .flat_map(UploadSwitchKeys::switch_keys),
        )
    }

    /// Encodes the keys. Each key is a seed of the uniform half, followed by the other half. The keys of a split
    /// secret key are a different kind of object: it begins with the number of shares, and keys that were made in two
    /// rounds have both halves.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match self.params.shares() {
            1 => Kind::EvaluationKeys,
            shares => {
                body.push(shares as u8);
                Kind::SplitEvaluationKeys
            }
        };
        put_names(self.roster.as_ref(), &mut body);
        for key in self.keys() {
            put_key(&self.params, key, &mut body);
        }
        frame(kind, &self.params, 0, &body)
    }

    /// Decodes keys of the given parameter set and number of shares.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] with the first rule that the bytes break.
    pub fn from_bytes(params: &Parameters, bytes: &[u8]) -> Result<Self> {
        let split = params.shares() > 1;
        let kind = match split {
            true => Kind::SplitEvaluationKeys,
            false => Kind::EvaluationKeys,
        };
        let (_, mut body) = unframe(kind, params, bytes, 0..=MAX_KEYS_BYTES)?;
        if split && body.bytes::<1>()?.map(usize::from) != [params.shares()] {
            return Err(body.malformed("the keys are for another number of shares"));
        }
        let shape = take_shape(&mut body)?;
        let ids = shape.map_or(0, |shape| shape.holders() + shape.joint().iter().len());
        let ids = (0..ids).map(|_| Ok(UploadKeyId(body.bytes()?)));
        let ids = ids.collect::<Result<Vec<_>>>()?;
        if body.rest().len() != keys_bytes(params, shape) {
            return Err(body.malformed("truncated or too long"));
        }
        let mut key = |explicit: bool| -> Result<KeySwitchKey> {
            let (seed, a) = if explicit {
                (None, digits(params, &mut body)?)
            } else {
                let seed = body.bytes()?;
                (Some(seed), expand(params.ring(), seed))
            };
            let b = digits(params, &mut body)?;
            Ok(KeySwitchKey { seed, b, a })
        };
        let packing = (0..LEVELS).map(|_| key(false)).collect::<Result<_>>()?;
        let scores = has_scores(params, shape).then(|| {
            Ok::<_, Error>(ScoreKeys {
                relinearise: key(false)?,
                inversion: key(false)?,
            })
        });
        let scores = scores.transpose()?;
        let mut ids = ids.into_iter();
        let mut id = || {
            ids.next()
                .ok_or(Error::Mismatch("an upload key has no identifier"))
        };
        let roster = shape.map(|shape| {
            RosterKeys::assemble(params, shape, &mut id, |kind| key(split && kind.squared))
        });
        let roster = roster.transpose()?;
        body.end()?;
        Ok(Self {
            params: params.clone(),
            packing,
            scores,
            roster,
        })
    }
}

/// Upper bound on the bytes of encoded evaluation keys: 128 holders of records, under the largest set.
const MAX_KEYS_BYTES: usize = 1 << 31;

/// Returns the bytes of all switching keys of a dataset with a roster of this shape.
fn keys_bytes(params: &Parameters, shape: Option<RosterShape>) -> usize {
    let half = digits_bytes(params);
    let seeded = 32 + half;
    let square = match params.shares() {
        1 => seeded,
        _ => 2 * half,
    };
    let of_kinds = |kinds: KeyKinds| -> usize {
        let switches = kinds.switches();
        switches
            .map(|kind| if kind.squared { square } else { seeded })
            .sum()
    };
    let of_roster = |shape: RosterShape| {
        let joint = shape.joint().map_or(0, of_kinds);
        shape.holders() * of_kinds(shape.of_holder()) + joint
    };
    let scores = if has_scores(params, shape) { 2 } else { 0 };
    (LEVELS + scores) * seeded + shape.map_or(0, of_roster)
}

/// Returns whether a dataset has keys for squared scores.
fn has_scores(params: &Parameters, shape: Option<RosterShape>) -> bool {
    params.set().has_squares() && params.shares() == 1 && shape.is_none()
}

/// Appends a switching key: the uniform half, or its seed, and the other half.
pub(crate) fn put_key(params: &Parameters, key: &KeySwitchKey, body: &mut Vec<u8>) {
    match &key.seed {
        Some(seed) => body.extend_from_slice(seed),
        None => put_digits(params, &key.a, body),
    }
    put_digits(params, &key.b, body);
}

/// Appends the shape of a roster, and the identifiers of its upload keys.
fn put_names(roster: Option<&RosterKeys>, body: &mut Vec<u8>) {
    put_shape(roster.map(RosterKeys::shape), body);
    let keys = roster.into_iter().flat_map(RosterKeys::each);
    keys.for_each(|keys| body.extend_from_slice(&keys.id().0));
}

/// Appends the shape of a roster, and the number of its holders.
pub(crate) fn put_shape(shape: Option<RosterShape>, body: &mut Vec<u8>) {
    let tag = match shape {
        None => return body.push(0),
        Some(RosterShape::Counts(_)) => 1,
        Some(RosterShape::Records(_)) => 2,
        Some(RosterShape::Columns(_)) => 3,
    };
    // A roster has at most 128 holders.
    body.extend([tag, shape.map_or(0, RosterShape::holders) as u8]);
}

pub(crate) fn take_shape(body: &mut Reader<'_>) -> Result<Option<RosterShape>> {
    let [tag] = body.bytes()?;
    if tag == 0 {
        return Ok(None);
    }
    let [holders] = body.bytes()?;
    let shape = match tag {
        1 => RosterShape::Counts,
        2 => RosterShape::Records,
        3 => RosterShape::Columns,
        _ => return Err(body.malformed("unknown kind of roster")),
    };
    let shape = shape(usize::from(holders));
    let checked = shape.check();
    checked.map_err(|_| body.malformed("a roster must have 1 to 128 holders"))?;
    Ok(Some(shape))
}

/// Returns the bytes of one polynomial for each digit of a key switch, each over all primes.
pub(crate) fn digits_bytes(params: &Parameters) -> usize {
    let moduli = params.all_moduli();
    let digit = moduli.iter().map(|&q| limb_bytes(q)).sum::<usize>();
    params.set().digits() * digit
}

/// Appends polynomials over all primes.
pub(crate) fn put_digits(params: &Parameters, digits: &[Vec<u64>], body: &mut Vec<u8>) {
    for digit in digits {
        let limbs = params.ring().limbs().iter();
        for (limb, residues) in limbs.zip(digit.chunks_exact(DEGREE)) {
            put_limb(body, limb.modulus.value(), residues);
        }
    }
}

/// Reads one polynomial for each digit of a key switch, each over all primes.
pub(crate) fn digits(params: &Parameters, body: &mut Reader<'_>) -> Result<Vec<Vec<u64>>> {
    let moduli = params.all_moduli();
    let digits = 0..params.set().digits();
    digits.map(|_| body.limbs(&moduli)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Error;
    use crate::scheme::params::{COMPACT, STANDARD, WIDE};
    use rand::{Rng, SeedableRng};

    /// Checks that a decoder rejects truncations, an extension, random bit flips and random bytes.
    pub(crate) fn refuses_damage<T>(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<T>) {
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
    #[ignore = "slow"]
    fn objects_round_trip_and_damage_is_rejected() {
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(5);
        for set in [STANDARD, WIDE, COMPACT] {
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
    fn encoded_roster_keys_have_the_announced_length() {
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(5);
        let params = Parameters::new(COMPACT).unwrap();
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        for shape in [
            RosterShape::Counts(2),
            RosterShape::Records(2),
            RosterShape::Columns(2),
        ] {
            let bytes = secret.encoded_roster_evaluation_keys(shape, &mut rng);
            let bytes = bytes.unwrap();
            let announced = EvaluationKeys::encoded_bytes(&params, Some(shape));
            assert_eq!(bytes.len(), announced, "{shape:?}");
            assert_eq!(bytes.capacity(), announced, "{shape:?}");
            let keys = EvaluationKeys::from_bytes(&params, &bytes).unwrap();
            assert_eq!(keys.roster().unwrap().shape(), shape);
            assert_eq!(keys.to_bytes(), bytes);
        }
        let keys = secret.evaluation_keys(&mut rng).unwrap();
        assert_eq!(
            keys.to_bytes().len(),
            EvaluationKeys::encoded_bytes(&params, None)
        );
    }

    #[test]
    fn residue_not_below_its_prime_is_rejected() {
        let params = Parameters::new(STANDARD).unwrap();
        let zero = || params.ring().zero();
        let mut c = Ciphertext {
            residue: 0,
            c: [zero(), zero()],
        };
        c.c[1].limb_mut(1)[17] = STANDARD.ciphertext_moduli[1];
        let bytes = c.to_bytes(&params);
        let error = Ciphertext::from_bytes(&params, &bytes).unwrap_err();
        assert!(error.to_string().contains("not below its prime"), "{error}");
    }
}
