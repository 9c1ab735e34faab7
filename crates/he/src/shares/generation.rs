//! Public and evaluation keys of a split secret key, without anyone's having it.
//!
//! Notation: s = sum s_i, sigma an automorphism, a the uniform half that the services have in common,
//! P the special prime, every e an error of its own; digit j of a key has P sigma(s) on limb j alone.
//!
//! **Linear keys**, and the public key, take one round: b_i = e - a s_i + P sigma(s_i), and b is their
//! sum.
//!
//! **Keys of squares** take two. In the first, with a u_i of its own for each key, a service sends
//!
//! ```text
//! h_i = e - a u_i + P sigma(s_i),    k_i = e + a sigma(s_i)
//! ```
//!
//! Their sums are h and k. In the second it sends sigma(s_i) h + e + (u_i - s_i) k + e. The sum of
//! these is b, and
//!
//! ```text
//! b + k s = P sigma(s)^2 + sigma(s) e_h + u e_k + e + e
//! ```
//!
//! so (b, k) is the key. It cannot be expanded from a seed: k is a sum of errors, too.

use super::{Common, KeyLabel, KeyShare};
use crate::error::{Error, Result};
use crate::keys::{
    EvaluationKeys, FIRST_LEVELS, KeySwitchKey, LEVELS, PublicKey, cover, full_transform, plain,
    small,
};
use crate::params::{DEGREE, Parameters};
use crate::ring::Ring;
use crate::root::digest;
use zeroize::Zeroizing;

/// One polynomial a digit of a key switch, each its transform over all primes in Montgomery form.
pub(super) type Digits = Vec<Vec<u64>>;

/// What a service sends in the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRound {
    /// Its part of the public key, in a list of one.
    pub(super) public: Digits,
    /// Its parts of inversion, and of packing at every level.
    pub(super) linear: Vec<Digits>,
    /// h_i and k_i of relinearisation, and of squares at every level.
    pub(super) squares: Vec<[Digits; 2]>,
}

/// What a service sends in the second round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondRound {
    /// Its parts of relinearisation, and of squares at every level.
    pub(super) squares: Vec<Digits>,
}

/// The sums of all services' first rounds.
#[derive(Clone, Debug)]
pub struct RoundSums {
    params: Parameters,
    common: Common,
    sums: FirstRound,
}

impl KeyShare {
    /// This service's message of the first round: the same whenever it is asked for.
    ///
    /// # Errors
    /// What drawing refuses: never, under sound parameters.
    pub fn first_round(&self, common: &Common) -> Result<FirstRound> {
        let ring = self.params.ring();
        let rng = &mut self.root.generator(b"first round", &[&common.seed]);
        // The public key's own digit is the first of what its seed expands to.
        let uniform: Digits = common.uniform(ring, KeyLabel::Public);
        let public = uniform.into_iter().take(1).collect::<Digits>();
        let public = cover(ring, &public, &self.secret, None, rng)?;
        let mut linear = Vec::with_capacity(1 + LEVELS);
        for key in KeyLabel::linear() {
            let a = common.uniform(ring, key);
            let image = key.image(ring, &self.secret);
            linear.push(cover(ring, &a, &self.secret, Some(&image), rng)?);
        }
        let mut squares = Vec::with_capacity(1 + FIRST_LEVELS);
        for (key, ephemeral) in KeyLabel::squares().zip(self.ephemerals(common)?) {
            let a = common.uniform(ring, key);
            let image = key.image(ring, &self.secret);
            let h = cover(ring, &a, &ephemeral, Some(&image), rng)?;
            let k = cover(ring, &a, &negated(ring, &image), None, rng)?;
            squares.push([h, k]);
        }
        Ok(FirstRound {
            public,
            linear,
            squares,
        })
    }

    /// The u_i of every square's key.
    fn ephemerals(&self, common: &Common) -> Result<Vec<Zeroizing<Vec<u64>>>> {
        let rng = &mut self.root.generator(b"ephemerals", &[&common.seed]);
        let ring = self.params.ring();
        (0..=FIRST_LEVELS)
            .map(|_| Ok(full_transform(ring, &small(rng)?)))
            .collect()
    }

    /// This service's message of the second round: the same for the same sums, and with errors of its
    /// own for others.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for sums under other parameters.
    pub fn second_round(&self, sums: &RoundSums) -> Result<SecondRound> {
        self.params.check_same(&sums.params)?;
        let ring = self.params.ring();
        let seen = sums.digest();
        let rng = &mut self
            .root
            .generator(b"second round", &[&sums.common.seed, &seen]);
        let ephemerals = self.ephemerals(&sums.common)?;
        let mut squares = Vec::with_capacity(1 + FIRST_LEVELS);
        let keys = KeyLabel::squares().zip(&sums.sums.squares);
        for ((key, [h, k]), ephemeral) in keys.zip(&ephemerals) {
            let image = key.image(ring, &self.secret);
            let mut b = cover(ring, h, &negated(ring, &image), None, rng)?;
            let difference = difference(ring, &self.secret, ephemeral);
            add(ring, &mut b, &cover(ring, k, &difference, None, rng)?);
            squares.push(b);
        }
        Ok(SecondRound { squares })
    }
}

impl FirstRound {
    fn polynomials(&self) -> impl Iterator<Item = &Digits> {
        [&self.public]
            .into_iter()
            .chain(&self.linear)
            .chain(self.squares.iter().flatten())
    }

    fn polynomials_mut(&mut self) -> impl Iterator<Item = &mut Digits> {
        [&mut self.public]
            .into_iter()
            .chain(&mut self.linear)
            .chain(self.squares.iter_mut().flatten())
    }
}

impl RoundSums {
    /// Adds up the first rounds of all services, in any order.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another number of messages than shares, and for messages under other
    /// parameters.
    pub fn new(params: &Parameters, common: &Common, messages: &[FirstRound]) -> Result<Self> {
        let (first, rest) = all_of(params, messages)?;
        for message in messages {
            check_shape(params, message.polynomials().skip(1))?;
            let public = message.public.first();
            if message.public.len() != 1 || public.map(Vec::len) != Some(limbs(params)) {
                return Err(SHAPE);
            }
            if message.linear.len() != 1 + LEVELS || message.squares.len() != 1 + FIRST_LEVELS {
                return Err(SHAPE);
            }
        }
        let mut sums = first.clone();
        for message in rest {
            for (sum, other) in sums.polynomials_mut().zip(message.polynomials()) {
                add(params.ring(), sum, other);
            }
        }
        Ok(Self {
            params: params.clone(),
            common: common.clone(),
            sums,
        })
    }

    /// A digest of all sums.
    fn digest(&self) -> [u8; 32] {
        let words = self.sums.polynomials().flatten().flatten();
        let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        digest(b"fhaim round sums 1", &[&bytes])
    }

    /// The public key: complete after the first round.
    ///
    /// # Errors
    /// Never for sums that [`RoundSums::new`] took.
    pub fn public_key(&self) -> Result<PublicKey> {
        let ring = self.params.ring();
        let uniform = self.common.uniform(ring, KeyLabel::Public);
        let polynomials = [self.sums.public.clone(), uniform].map(|digits| plain(ring, digits));
        PublicKey::from_polynomials(&self.params, polynomials)
    }

    /// The evaluation keys, from the second rounds of all services, in any order.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for another number of messages than shares, and for messages under other
    /// parameters.
    pub fn evaluation_keys(&self, messages: &[SecondRound]) -> Result<EvaluationKeys> {
        let ring = self.params.ring();
        let (first, rest) = all_of(&self.params, messages)?;
        for message in messages {
            check_shape(&self.params, message.squares.iter())?;
            if message.squares.len() != 1 + FIRST_LEVELS {
                return Err(SHAPE);
            }
        }
        let mut sums = first.clone();
        for message in rest {
            for (sum, other) in sums.squares.iter_mut().zip(&message.squares) {
                add(ring, sum, other);
            }
        }
        let linear = |(key, b): (KeyLabel, &Digits)| KeySwitchKey {
            seed: Some(self.common.seed(key)),
            a: self.common.uniform(ring, key),
            b: b.clone(),
        };
        let square = |([_, k], b): (&[Digits; 2], Digits)| KeySwitchKey {
            seed: None,
            a: k.clone(),
            b,
        };
        let mut linear = KeyLabel::linear().zip(&self.sums.linear).map(linear);
        let mut squares = self.sums.squares.iter().zip(sums.squares).map(square);
        Ok(EvaluationKeys {
            params: self.params.clone(),
            relinearise: squares.next().ok_or(SHAPE)?,
            inversion: linear.next().ok_or(SHAPE)?,
            packing: linear.collect(),
            squares: squares.collect(),
            roster: None,
        })
    }
}

const SHAPE: Error = Error::Mismatch("a message of a key generation under other parameters");

/// Values of a polynomial over all primes.
fn limbs(params: &Parameters) -> usize {
    params.ring().limbs().len() * DEGREE
}

/// The first of as many messages as there are shares, and the others.
fn all_of<'a, T>(params: &Parameters, messages: &'a [T]) -> Result<(&'a T, &'a [T])> {
    match messages.split_first() {
        Some(split) if messages.len() == params.shares() => Ok(split),
        _ => Err(Error::Mismatch("a message of every service")),
    }
}

/// Refuses digits that are not as many, or as long, as the parameters say.
fn check_shape<'a>(params: &Parameters, all: impl Iterator<Item = &'a Digits>) -> Result<()> {
    let digits = params.set().digits();
    for of_key in all {
        if of_key.len() != digits || of_key.iter().any(|digit| digit.len() != limbs(params)) {
            return Err(SHAPE);
        }
    }
    Ok(())
}

/// sum += other, over all primes.
fn add(ring: &Ring, sum: &mut Digits, other: &Digits) {
    for (sum, other) in sum.iter_mut().zip(other) {
        let pairs = sum.chunks_exact_mut(DEGREE).zip(other.chunks_exact(DEGREE));
        for ((sum, other), limb) in pairs.zip(ring.limbs()) {
            for (x, &y) in sum.iter_mut().zip(other) {
                *x = limb.modulus.add(*x, y);
            }
        }
    }
}

/// x - y, over all primes.
pub(super) fn difference(ring: &Ring, x: &[u64], y: &[u64]) -> Zeroizing<Vec<u64>> {
    let mut out = Zeroizing::new(x.to_vec());
    let pairs = out.chunks_exact_mut(DEGREE).zip(y.chunks_exact(DEGREE));
    for ((out, y), limb) in pairs.zip(ring.limbs()) {
        for (x, &y) in out.iter_mut().zip(y) {
            *x = limb.modulus.sub(*x, y);
        }
    }
    out
}

/// -x, over all primes.
fn negated(ring: &Ring, x: &[u64]) -> Zeroizing<Vec<u64>> {
    let zero = Zeroizing::new(vec![0; x.len()]);
    difference(ring, &zero, x)
}
