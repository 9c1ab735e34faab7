//! Public and evaluation keys of a split secret key, which no service holds.
//!
//! Notation: s = sum s_i is the dataset's key, x and y are any of its keys, and x_i is service i's share of x.
//! sigma is an automorphism, a the uniform half that the services have in common, P the special prime, and
//! every e a separate error. Digit j of a key has P sigma(x) only on limb j.
//!
//! **Linear keys**, from sigma(x) to y, and the public key take one round: b_i = e - a y_i + P sigma(x_i), and b
//! is the sum of all b_i.
//!
//! **Keys of squares**, from sigma(x)^2 to s, take two rounds. In the first, a service draws a separate u_i for
//! each key, and sends
//!
//! ```text
//! h_i = e - a u_i + P sigma(x_i),    k_i = e + a sigma(x_i)
//! ```
//!
//! Their sums are h and k. In the second round it sends sigma(x_i) h + e + (u_i - s_i) k + e. The sum of these
//! is b, and
//!
//! ```text
//! b + k s = P sigma(x)^2 + sigma(x) e_h + u e_k + e + e
//! ```
//!
//! so (b, k) is the key. It cannot be expanded from a seed, because k is also a sum of errors.

use super::{CommonRandomness, KeyShare, Switch};
use crate::error::{Error, Result};
use crate::scheme::evaluation_keys::EvaluationKeys;
use crate::scheme::params::Parameters;
use crate::scheme::public_key::PublicKey;
use crate::scheme::ring::DEGREE;
use crate::scheme::ring::Ring;
use crate::scheme::root::digest;
use crate::scheme::switch_key::{KeySwitchKey, cover, expand, full_transform, plain, small};
use crate::scheme::upload::{RosterKeys, RosterShape, UploadKeyId};
use crate::table::layout::LEVELS;
use zeroize::Zeroizing;

/// One polynomial for each digit of a key switch, each as its transform over all primes in Montgomery form.
pub(super) type Digits = Vec<Vec<u64>>;

/// One service's message of the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstRound {
    /// The service's part of the public key, a list with one element.
    pub(super) public: Digits,
    /// The service's parts of the packing keys of every level, and of the linear keys of upload keys.
    pub(super) linear: Vec<Digits>,
    /// h_i and k_i for the squares of upload keys.
    pub(super) squares: Vec<[Digits; 2]>,
    /// The shape of the roster whose upload keys are made.
    pub(super) shape: Option<RosterShape>,
    /// Commitments to the seeds of the service's upload keys, that of the joint key last.
    pub(super) commitments: Vec<[u8; 32]>,
}

/// One service's message of the second round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecondRound {
    /// The service's parts of the keys of squares, in the order of the first round.
    pub(super) squares: Vec<Digits>,
}

/// The sums of all services' first rounds.
#[derive(Clone, Debug)]
pub struct RoundSums {
    params: Parameters,
    common: CommonRandomness,
    /// The identifiers of the upload keys, that of the joint key last.
    ids: Vec<UploadKeyId>,
    sums: FirstRound,
}

impl KeyShare {
    /// Computes this service's message of the first round. A repetition returns the same message.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a number of holders that no roster can have.
    pub fn first_round(&self, common: &CommonRandomness) -> Result<FirstRound> {
        let ring = self.params.ring();
        let shape = common.shape;
        let rng = &mut self.root.generator(b"first round", &[&common.seed]);
        let secrets = self.secrets(shape)?;
        // The public key's only digit is the first polynomial that its seed expands to.
        let uniform: Digits = expand(ring, common.public_seed());
        let public = uniform.into_iter().take(1).collect::<Digits>();
        let mut round = FirstRound {
            shape,
            commitments: secrets.roster.commitments(),
            public: cover(ring, &public, &self.secret, None, rng)?,
            linear: Vec::new(),
            squares: Vec::new(),
        };
        for switch in Switch::all(shape) {
            let a = expand(ring, common.seed(switch));
            let image = secrets.image(ring, switch)?;
            if switch.kind.squared {
                let ephemeral = self.ephemeral(common, switch)?;
                let h = cover(ring, &a, &ephemeral, Some(&image), rng)?;
                let k = cover(ring, &a, &negated(ring, &image), None, rng)?;
                round.squares.push([h, k]);
            } else {
                let target = secrets.target(switch)?;
                round
                    .linear
                    .push(cover(ring, &a, target, Some(&image), rng)?);
            }
        }
        Ok(round)
    }

    /// Returns the u_i of the key of a square.
    fn ephemeral(&self, common: &CommonRandomness, switch: Switch) -> Result<Zeroizing<Vec<u64>>> {
        let context: [&[u8]; 2] = [&common.seed, &switch.label()];
        let rng = &mut self.root.generator(b"ephemeral", &context);
        Ok(full_transform(self.params.ring(), &small(rng)?))
    }

    /// Computes this service's message of the second round. The same sums give the same message, and other sums give
    /// other errors.
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
        let secrets = self.secrets(sums.sums.shape)?;
        let mut squares = Vec::with_capacity(sums.sums.squares.len());
        let switches = Switch::all(sums.sums.shape).filter(|switch| switch.kind.squared);
        for (switch, [h, k]) in switches.zip(&sums.sums.squares) {
            let image = secrets.image(ring, switch)?;
            let ephemeral = self.ephemeral(&sums.common, switch)?;
            let mut b = cover(ring, h, &negated(ring, &image), None, rng)?;
            let difference = difference(ring, &self.secret, &ephemeral);
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

/// Returns the numbers of switching keys that take one round and two rounds.
pub(super) fn rounds(shape: Option<RosterShape>) -> (usize, usize) {
    let squared = Switch::all(shape)
        .filter(|switch| switch.kind.squared)
        .count();
    (Switch::all(shape).count() - squared, squared)
}

impl RoundSums {
    /// Adds up the first rounds of all services, in the order of the services.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the number of messages is not the number of shares, or if a message is under other
    /// parameters or for another roster.
    pub fn new(
        params: &Parameters,
        common: &CommonRandomness,
        messages: &[FirstRound],
    ) -> Result<Self> {
        let shape = common.shape;
        let (first, rest) = all_of(params, messages)?;
        let (linear, squares) = rounds(shape);
        for message in messages {
            check_shape(params, message.polynomials().skip(1))?;
            let public = message.public.first();
            if message.public.len() != 1 || public.map(Vec::len) != Some(limbs(params)) {
                return Err(SHAPE);
            }
            if message.shape != shape
                || message.linear.len() != linear
                || message.squares.len() != squares
            {
                return Err(SHAPE);
            }
        }
        let mut sums = first.clone();
        for message in rest {
            for (sum, other) in sums.polynomials_mut().zip(message.polynomials()) {
                add(params.ring(), sum, other);
            }
        }
        let commitment = |key: usize| {
            let of_each = messages.iter().map(|message| message.commitments.get(key));
            let of_each = of_each.map(|commitment| commitment.copied());
            let of_each: Option<Vec<[u8; 32]>> = of_each.collect();
            of_each.map(|all| UploadKeyId::of(&all)).ok_or(SHAPE)
        };
        let keys = shape.map_or(0, |shape| shape.holders() + shape.joint().iter().len());
        Ok(Self {
            params: params.clone(),
            common: common.clone(),
            ids: (0..keys).map(commitment).collect::<Result<_>>()?,
            sums,
        })
    }

    /// Returns a digest of all sums.
    fn digest(&self) -> [u8; 32] {
        let words = self.sums.polynomials().flatten().flatten();
        let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
        digest(b"fhaim round sums 1", &[&bytes])
    }

    /// Returns the public key, which is complete after the first round.
    ///
    /// # Errors
    /// None for sums that [`RoundSums::new`] accepted.
    pub fn public_key(&self) -> Result<PublicKey> {
        let ring = self.params.ring();
        let uniform = expand(ring, self.common.public_seed());
        let polynomials = [self.sums.public.clone(), uniform].map(|digits| plain(ring, digits));
        PublicKey::from_polynomials(&self.params, polynomials)
    }

    /// Computes the evaluation keys from the second rounds of all services, in any order.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if the number of messages is not the number of shares, or if a message is under other
    /// parameters.
    pub fn evaluation_keys(&self, messages: &[SecondRound]) -> Result<EvaluationKeys> {
        let ring = self.params.ring();
        let (first, rest) = all_of(&self.params, messages)?;
        for message in messages {
            check_shape(&self.params, message.squares.iter())?;
            if message.squares.len() != self.sums.squares.len() {
                return Err(SHAPE);
            }
        }
        let mut sums = first.clone();
        for message in rest {
            for (sum, other) in sums.squares.iter_mut().zip(&message.squares) {
                add(ring, sum, other);
            }
        }
        let mut switches = Switch::all(self.sums.shape);
        let mut linear = self.sums.linear.iter();
        let mut squares = self.sums.squares.iter().zip(sums.squares);
        let mut next = || {
            let switch = switches.next().ok_or(SHAPE)?;
            if switch.kind.squared {
                let ([_, k], b) = squares.next().ok_or(SHAPE)?;
                let (seed, a) = (None, k.clone());
                return Ok(KeySwitchKey { seed, a, b });
            }
            let seed = self.common.seed(switch);
            Ok(KeySwitchKey {
                seed: Some(seed),
                a: expand(ring, seed),
                b: linear.next().ok_or(SHAPE)?.clone(),
            })
        };
        let packing = (0..LEVELS).map(|_| next()).collect::<Result<_>>()?;
        let mut ids = self.ids.iter();
        let roster = self.sums.shape.map(|shape| {
            RosterKeys::assemble(
                &self.params,
                shape,
                || ids.next().copied().ok_or(SHAPE),
                |_| next(),
            )
        });
        Ok(EvaluationKeys {
            params: self.params.clone(),
            packing,
            scores: None,
            roster: roster.transpose()?,
        })
    }
}

const SHAPE: Error =
    Error::Mismatch("a key generation message is for other parameters or another roster");

/// Returns the number of values of a polynomial over all primes.
fn limbs(params: &Parameters) -> usize {
    params.ring().limbs().len() * DEGREE
}

/// Splits messages into the first and the others, if there are as many as shares.
fn all_of<'a, T>(params: &Parameters, messages: &'a [T]) -> Result<(&'a T, &'a [T])> {
    match messages.split_first() {
        Some(split) if messages.len() == params.shares() => Ok(split),
        _ => Err(Error::Mismatch("expected one message of every service")),
    }
}

/// Rejects messages whose digits have a number or length that does not match the parameters.
fn check_shape<'a>(params: &Parameters, all: impl Iterator<Item = &'a Digits>) -> Result<()> {
    let digits = params.set().digits();
    for of_key in all {
        if of_key.len() != digits || of_key.iter().any(|digit| digit.len() != limbs(params)) {
            return Err(SHAPE);
        }
    }
    Ok(())
}

/// Computes sum += other, over all primes.
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

/// Returns x - y, over all primes.
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

/// Returns -x, over all primes.
fn negated(ring: &Ring, x: &[u64]) -> Zeroizing<Vec<u64>> {
    let zero = Zeroizing::new(vec![0; x.len()]);
    difference(ring, &zero, x)
}
