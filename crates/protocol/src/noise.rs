//! A holder's noise under encryption, as the computation service adds it to pages.

use crate::Error;
use crate::encryption::{OTHER_KEY, Payload};
use crate::upload::{Object, noise_objects};
use fhaim_dp::{Digits, LadderPlan};
use fhaim_he::{Ciphertext, HolderCiphertext, HolderKeys, Parameters, SeededCiphertext};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::Arc;

/// Noise under encryption: one ciphertext a ladder vector and plaintext modulus.
#[derive(Clone, Debug)]
pub struct EncryptedLadder {
    plan: LadderPlan,
    vectors: Vectors,
}

/// Vectors by (page, level, index), row-major; of each one ciphertext a plaintext modulus.
#[derive(Clone, Debug)]
enum Vectors {
    /// Under the dataset's key.
    Public(Vec<Vec<Digested<Ciphertext>>>),
    /// Under a holder's own, with what brings a sum of them under the dataset's.
    Own(Arc<HolderKeys>, Vec<Vec<Digested<HolderCiphertext>>>),
}

/// A ciphertext with a digest of it.
#[derive(Clone, Debug)]
struct Digested<C> {
    ciphertext: C,
    digest: [u8; 32],
}

/// The noise of a variance on a page, under one plaintext modulus.
#[derive(Debug)]
pub(crate) struct PageNoise<'a> {
    /// What is to be added.
    pub(crate) ciphertexts: Vec<Cow<'a, Ciphertext>>,
    /// Of every vector that it is made of.
    pub(crate) digests: Vec<[u8; 32]>,
}

impl EncryptedLadder {
    /// Puts a ladder together; `get` is asked for every noise object of the plan, in order.
    ///
    /// # Errors
    /// What `get` returns; [`Error::Object`] for objects that lack a plaintext modulus, or are not under the
    /// holder's key where `keys` came with one.
    pub fn from_objects(
        params: &Parameters,
        plan: LadderPlan,
        keys: Option<Arc<HolderKeys>>,
        mut get: impl FnMut(Object) -> Result<Payload, Error>,
    ) -> Result<Self, Error> {
        let objects = noise_objects(plan);
        let vectors = match keys {
            None => Vectors::Public(collect(objects, |object| {
                let vector = get(object)?.ciphertexts()?;
                whole(params, vector.iter().map(Ciphertext::residue))?;
                Ok(vector.into_iter().map(digested).collect())
            })?),
            Some(keys) => {
                let vectors = collect(objects, |object| {
                    let vector = get(object)?.seeded()?;
                    whole(params, vector.iter().map(SeededCiphertext::residue))?;
                    if vector.iter().any(|seeded| seeded.key_id() != keys.id()) {
                        return Err(OTHER_KEY);
                    }
                    let expand = |seeded: SeededCiphertext| {
                        Ok(Digested {
                            digest: Sha256::digest(seeded.to_bytes(params)).into(),
                            ciphertext: seeded.expand(params)?,
                        })
                    };
                    vector.into_iter().map(expand).collect()
                })?;
                Vectors::Own(keys, vectors)
            }
        };
        Ok(Self { plan, vectors })
    }

    /// The ladder's public size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// The ciphertexts of a noise object, one a plaintext modulus; nothing of noise under a holder's own key.
    pub(crate) fn object(&self, object: Object) -> Option<Vec<Ciphertext>> {
        let (Object::Noise { page, level, index }, Vectors::Public(vectors)) =
            (object, &self.vectors)
        else {
            return None;
        };
        let vector = vectors.get(self.plan.vector(page, level, index)?)?;
        Some(
            vector
                .iter()
                .map(|digested| digested.ciphertext.clone())
                .collect(),
        )
    }

    /// The noise of a variance on a page under plaintext modulus number `residue`. Vectors under a holder's own
    /// key are added up before they are brought under the dataset's, which takes one key switch.
    ///
    /// # Errors
    /// [`Error::Encryption`] for noise beyond the ladder.
    pub(crate) fn noise(
        &self,
        params: &Parameters,
        (page, units): (usize, u64),
        residue: usize,
    ) -> Result<PageNoise<'_>, Error> {
        let form = self.plan.form();
        let digits = Digits::of(units);
        let vectors = digits
            .iter()
            .flat_map(|(level, digit)| form.of_digit(digit).map(move |index| (level, index)))
            .map(|(level, index)| self.plan.vector(page, level, index))
            .collect::<Option<Vec<usize>>>()
            .ok_or(BEYOND)?;
        match &self.vectors {
            Vectors::Public(all) => {
                let found = pick(all, &vectors, residue)?;
                Ok(PageNoise {
                    ciphertexts: found.iter().map(|v| Cow::Borrowed(&v.ciphertext)).collect(),
                    digests: found.iter().map(|v| v.digest).collect(),
                })
            }
            Vectors::Own(keys, all) => {
                let found = pick(all, &vectors, residue)?;
                let ciphertexts = if found.is_empty() {
                    Vec::new()
                } else {
                    let sum = HolderCiphertext::sum(params, found.iter().map(|v| &v.ciphertext))?;
                    vec![Cow::Owned(keys.switch(&sum)?)]
                };
                Ok(PageNoise {
                    ciphertexts,
                    digests: found.iter().map(|v| v.digest).collect(),
                })
            }
        }
    }
}

const BEYOND: fhaim_he::Error = fhaim_he::Error::OutOfRange("noise beyond the ladder");

/// Vectors of these numbers under a plaintext modulus.
fn pick<'a, C>(
    all: &'a [Vec<Digested<C>>],
    numbers: &[usize],
    residue: usize,
) -> Result<Vec<&'a Digested<C>>, Error> {
    let one = |&number: &usize| all.get(number)?.get(residue);
    let found: Option<Vec<_>> = numbers.iter().map(one).collect();
    Ok(found.ok_or(BEYOND)?)
}

fn collect<T>(
    objects: impl Iterator<Item = Object>,
    open: impl FnMut(Object) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    objects.map(open).collect()
}

fn digested(ciphertext: Ciphertext) -> Digested<Ciphertext> {
    let mut hash = Sha256::new();
    ciphertext.digest_into(|bytes| hash.update(bytes));
    Digested {
        ciphertext,
        digest: hash.finalize().into(),
    }
}

/// Refuses an object that lacks a plaintext modulus.
fn whole(params: &Parameters, residues: impl Iterator<Item = usize>) -> Result<(), Error> {
    match residues.eq(0..params.residues()) {
        true => Ok(()),
        false => Err(Error::Object(
            "one ciphertext a plaintext modulus, in order",
        )),
    }
}
