//! Secret, public and evaluation keys.
//!
//! The scheme's library decrypts with the secret key. Public and key-switching keys are made here:
//! holders encrypt key-switching keys of their own modulo all primes, of which the library would leave
//! some out, and packing needs automorphisms that it does not offer (X -> X^(2^l + 1)).

use crate::encryption::Prepared;
use crate::error::{Error, Result};
use crate::holder::{
    HolderKeyId, HolderKeys, RosterKeys, RosterShape, packing_switches, upload_seed,
};
use crate::layout::Layout;
use crate::params::{DEGREE, Parameters};
use crate::ring::Ring;
use crate::root::Root;
use fhaim_dp::uniform_below;
use fhaim_ntt::Permutation;
use fhe::bfv::SecretKey as SchemeSecretKey;
use fhe::proto::bfv::SecretKey as SecretKeyProto;
use fhe_traits::DeserializeParametrized;
use prost::Message;
use rand::{CryptoRng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// Variance of errors and of the secret's coefficients (centred binomial, as in the library).
pub(crate) const ERROR_VARIANCE: usize = 10;

/// Packing levels: level l applies X -> X^(2^l + 1), l = 1..=13.
pub(crate) const LEVELS: usize = DEGREE.trailing_zeros() as usize;

/// Levels 1..=8, at which some layout's tree begins: from one slot to n / MIN_STRIDE.
pub(crate) const FIRST_LEVELS: usize = (DEGREE / Layout::MIN_STRIDE).trailing_zeros() as usize + 1;

/// The dataset's secret key. Held by the crypto service alone; wiped on drop.
pub struct SecretKey {
    params: Parameters,
    root: Root,
    coefficients: Zeroizing<Vec<i64>>,
    schemes: Vec<SchemeSecretKey>,
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretKey")
            .field("params", self.params.set())
            .finish_non_exhaustive()
    }
}

impl SecretKey {
    /// Draws a key.
    pub fn random<R: RngCore + CryptoRng>(params: &Parameters, rng: &mut R) -> Result<Self> {
        Self::from_root(params, Root::random(rng))
    }

    pub(crate) fn from_root(params: &Parameters, root: Root) -> Result<Self> {
        let coefficients = small(&mut root.generator(b"secret", &[&[params.set().id]]))?;
        Self::from_parts(params, root, coefficients)
    }

    fn from_parts(
        params: &Parameters,
        root: Root,
        coefficients: Zeroizing<Vec<i64>>,
    ) -> Result<Self> {
        let mut proto = SecretKeyProto {
            coeffs: coefficients.to_vec(),
        };
        let bytes = Zeroizing::new(proto.encode_to_vec());
        proto.coeffs.zeroize();
        let scheme = |k| SchemeSecretKey::from_bytes(&bytes, params.scheme(k));
        let schemes = (0..params.residues())
            .map(scheme)
            .collect::<fhe::Result<_>>()?;
        Ok(Self {
            params: params.clone(),
            root,
            coefficients,
            schemes,
        })
    }

    /// A key with these coefficients, for tests that take another key for one.
    #[cfg(test)]
    pub(crate) fn from_coefficients(
        params: &Parameters,
        coefficients: Zeroizing<Vec<i64>>,
    ) -> Result<Self> {
        Self::from_parts(params, Root::from_bytes([0; 32]), coefficients)
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// The coefficients of s. They are the secret.
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// The key under plaintext modulus number `residue`, which must be one of the set's.
    #[expect(clippy::indexing_slicing, reason = "one for each of the set's moduli")]
    pub(crate) fn scheme(&self, residue: usize) -> &SchemeSecretKey {
        &self.schemes[residue]
    }

    /// The public key to encrypt under.
    pub fn public_key<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<PublicKey> {
        let ring = self.params.ring();
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        // One polynomial of what a seed expands to is uniform in Montgomery form and out of it.
        let uniform: Vec<Vec<u64>> = expand(ring, seed).into_iter().take(1).collect();
        let secret = full_transform(ring, &self.coefficients);
        let covered = cover(ring, &uniform, &secret, None, rng)?;
        let [covered, uniform] = [covered, uniform].map(|digits| plain(ring, digits));
        PublicKey::from_polynomials(&self.params, [covered, uniform])
    }

    /// The seed of a holder's upload key, by the holder's number. Only that holder may see it.
    pub fn upload_seed(&self, holder: usize) -> Zeroizing<[u8; 32]> {
        upload_seed(&self.root, holder)
    }

    /// The keys that the computation service evaluates the uploads of a roster with.
    ///
    /// # Errors
    /// As [`SecretKey::encoded_roster_evaluation_keys`].
    pub fn roster_evaluation_keys<R: RngCore + CryptoRng>(
        &self,
        shape: RosterShape,
        rng: &mut R,
    ) -> Result<EvaluationKeys> {
        let encoded = self.encoded_roster_evaluation_keys(shape, rng)?;
        EvaluationKeys::from_bytes(&self.params, &encoded)
    }

    /// The keys that the computation service evaluates a sole holder's upload with.
    pub fn evaluation_keys<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<EvaluationKeys> {
        let keys = self.packing_keys(rng)?;
        if !self.params.set().has_squares() {
            return Ok(keys);
        }
        let ring = self.params.ring();
        let secret = full_transform(ring, &self.coefficients);
        let inverted = permuted(&secret, &ring.automorphism(2 * DEGREE - 1));
        let mut key = |source: &[u64]| KeySwitchKey::generate(ring, &secret, source, rng);
        let scores = ScoreKeys {
            relinearise: key(&squared(ring, &secret))?,
            inversion: key(&inverted)?,
        };
        Ok(EvaluationKeys {
            scores: Some(scores),
            ..keys
        })
    }

    fn packing_keys<R: RngCore + CryptoRng>(&self, rng: &mut R) -> Result<EvaluationKeys> {
        let ring = self.params.ring();
        let secret = full_transform(ring, &self.coefficients);
        let packing = packing_switches().map(|kind| {
            let source = kind.source(ring, &secret);
            KeySwitchKey::generate(ring, &secret, &source, rng)
        });
        Ok(EvaluationKeys {
            params: self.params.clone(),
            packing: packing.collect::<Result<_>>()?,
            scores: None,
            roster: None,
        })
    }
}

/// Transform of a small polynomial over all limbs, the special ones included.
pub(crate) fn full_transform(ring: &Ring, coefficients: &[i64]) -> Zeroizing<Vec<u64>> {
    let n = ring.degree();
    let mut out = Zeroizing::new(vec![0; n * ring.limbs().len()]);
    for (limb, values) in ring.limbs().iter().zip(out.chunks_exact_mut(n)) {
        for (value, &c) in values.iter_mut().zip(coefficients) {
            *value = limb.modulus.small(c);
        }
        limb.forward(values);
    }
    out
}

/// The image of a polynomial over all limbs under an automorphism.
pub(crate) fn permuted(p: &[u64], automorphism: &Permutation) -> Zeroizing<Vec<u64>> {
    let mut image = Zeroizing::new(vec![0; p.len()]);
    let limbs = image.chunks_exact_mut(DEGREE).zip(p.chunks_exact(DEGREE));
    limbs.for_each(|(out, limb)| automorphism.apply(limb, out));
    image
}

/// The square of a polynomial, as transforms over all limbs.
pub(crate) fn squared(ring: &Ring, p: &[u64]) -> Zeroizing<Vec<u64>> {
    let mut square = Zeroizing::new(p.to_vec());
    for (limb, values) in ring.limbs().iter().zip(square.chunks_exact_mut(DEGREE)) {
        values
            .iter_mut()
            .for_each(|x| *x = limb.modulus.mul(*x, *x));
    }
    square
}

/// The dataset's public key.
#[derive(Clone, Debug)]
pub struct PublicKey {
    params: Parameters,
    /// Residues of the two polynomials, transforms over all primes. They encrypt zero, and so serve
    /// every plaintext modulus.
    polynomials: Arc<[Vec<u64>; 2]>,
    /// The same as encryption takes them.
    prepared: Arc<Prepared>,
}

impl PublicKey {
    /// From the residues of two polynomials over all primes, each below its prime.
    pub(crate) fn from_polynomials(params: &Parameters, polys: [Vec<u64>; 2]) -> Result<Self> {
        Ok(Self {
            params: params.clone(),
            prepared: Arc::new(Prepared::new(params.ring(), &polys)?),
            polynomials: Arc::new(polys),
        })
    }

    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// The residues that it was made from.
    pub(crate) fn polynomials(&self) -> &[Vec<u64>; 2] {
        &self.polynomials
    }

    pub(crate) fn prepared(&self) -> &Prepared {
        &self.prepared
    }
}

/// Everything the computation service needs beside ciphertexts; none of it is secret.
#[derive(Clone, Debug)]
pub struct EvaluationKeys {
    pub(crate) params: Parameters,
    /// Entry l - 1: s(X^(2^l + 1)) -> s.
    pub(crate) packing: Vec<KeySwitchKey>,
    /// Those for squared scores, which multiply under s: only sole holders have them.
    pub(crate) scores: Option<ScoreKeys>,
    /// Those of a roster's upload keys. A sole holder uploads its own.
    pub(crate) roster: Option<RosterKeys>,
}

/// Keys for the product of a page with its image under X -> X^-1.
///
/// A product of two ciphertexts that were switched to s can show s to a holder that chose one of them. So a dataset of
/// several holders has no such keys: what its holders send may be multiplied only under other keys.
#[derive(Clone, Debug)]
pub(crate) struct ScoreKeys {
    /// s^2 -> s.
    pub(crate) relinearise: KeySwitchKey,
    /// s(X^-1) -> s.
    pub(crate) inversion: KeySwitchKey,
}

impl EvaluationKeys {
    /// The switching keys of a roster's upload keys.
    pub fn roster(&self) -> Option<&RosterKeys> {
        self.roster.as_ref()
    }

    /// The switching keys of an upload key of the roster.
    pub(crate) fn upload(&self, id: HolderKeyId) -> Option<&HolderKeys> {
        let mut uploads = self.roster.iter().flat_map(|roster| &roster.uploads);
        uploads.find(|keys| keys.id == id).map(Arc::as_ref)
    }

    /// The switching keys of the joint key of holders of columns.
    pub(crate) fn joint(&self) -> Option<&HolderKeys> {
        self.roster.as_ref()?.joint.as_ref()
    }

    /// The parameter set's tables.
    pub fn params(&self) -> &Parameters {
        &self.params
    }
}

/// A key from some secret polynomial s' to s, with the digits that the ring has (see `keyswitch`).
///
/// Digit i is (b, a) with b = e - a s + P s' on its own limbs and b = e - a s elsewhere, P the product of
/// the special primes: the residue of g_i P, g_i being 1 modulo the digit's own primes and 0 modulo the
/// other ciphertext primes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeySwitchKey {
    /// Expands to every `a`: only the seed is sent. Keys that were made in two rounds have none.
    pub(crate) seed: Option<[u8; 32]>,
    /// Per digit and limb, transforms of b in Montgomery form.
    pub(crate) b: Vec<Vec<u64>>,
    /// Per digit and limb, transforms of a in Montgomery form.
    pub(crate) a: Vec<Vec<u64>>,
}

impl KeySwitchKey {
    /// `secret` and `source` are transforms over all limbs.
    pub(crate) fn generate<R: RngCore + CryptoRng>(
        ring: &Ring,
        secret: &[u64],
        source: &[u64],
        rng: &mut R,
    ) -> Result<Self> {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        let a = expand(ring, seed);
        let b = cover(ring, &a, secret, Some(source), rng)?;
        let seed = Some(seed);
        Ok(Self { seed, b, a })
    }
}

/// For each digit a of `uniform`: e - a s + P s' on the digit's own limbs, e - a s elsewhere, with an
/// error e drawn for it. Digits, in and out, are transforms over all limbs in Montgomery form; s and
/// s' are plain ones.
#[expect(
    clippy::indexing_slicing,
    reason = "secret, source and digits hold a ring's degree of values for each limb"
)]
pub(crate) fn cover<R: RngCore + CryptoRng>(
    ring: &Ring,
    uniform: &[Vec<u64>],
    secret: &[u64],
    source: Option<&[u64]>,
    rng: &mut R,
) -> Result<Vec<Vec<u64>>> {
    let n = ring.degree();
    let together = ring.limbs_of_digit();
    let digit = |(i, a): (usize, &Vec<u64>)| {
        let mut b = full_transform(ring, &small(rng)?);
        for (j, limb) in ring.limbs().iter().enumerate() {
            let m = limb.modulus;
            let p = m.mont(ring.special_product(limb));
            let source = source.filter(|_| i == j / together);
            for k in j * n..(j + 1) * n {
                let masked = m.redc(u128::from(a[k]) * u128::from(secret[k]));
                let mut value = m.sub(b[k], masked);
                if let Some(source) = source {
                    value = m.add(value, m.redc(u128::from(p) * u128::from(source[k])));
                }
                b[k] = m.mont(value);
            }
        }
        Ok(std::mem::take(&mut *b))
    };
    uniform.iter().enumerate().map(digit).collect()
}

/// The first of polynomials over all limbs, out of Montgomery form; empty if there is none.
pub(crate) fn plain(ring: &Ring, digits: Vec<Vec<u64>>) -> Vec<u64> {
    let mut polynomial = digits.into_iter().next().unwrap_or_default();
    let limbs = polynomial.chunks_exact_mut(DEGREE).zip(ring.limbs());
    limbs.for_each(|(values, limb)| limb.modulus.scale(values, 1));
    polynomial
}

/// The uniform halves of a key-switching key, in Montgomery form (uniform either way).
pub(crate) fn expand(ring: &Ring, seed: [u8; 32]) -> Vec<Vec<u64>> {
    let mut rng = ChaCha20Rng::from_seed(seed);
    let mut digit = || {
        let limbs = ring.limbs().iter();
        limbs
            .flat_map(|l| (0..ring.degree()).map(|_| l.modulus.value()))
            .map(|q| uniform_below(q, &mut rng))
            .collect()
    };
    (0..ring.digits()).map(|_| digit()).collect()
}

/// A polynomial from the error distribution.
pub(crate) fn small<R: RngCore + CryptoRng>(rng: &mut R) -> Result<Zeroizing<Vec<i64>>> {
    let drawn = fhe_util::sample_vec_cbd(DEGREE, ERROR_VARIANCE, rng);
    Ok(Zeroizing::new(
        drawn.map_err(|reason| Error::Scheme(reason.to_owned()))?,
    ))
}
