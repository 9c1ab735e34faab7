//! The upload of a holder of counts: its tables and its noise, with each ciphertext as a separate
//! object.

use super::CountTables;
use super::pair_counts::PairCounts;
use crate::Error;
use crate::encryption::{Encryption, Encryptor, Form, NO_SUCH_OBJECT, Payload};
use crate::holder::{HolderNoise, encrypt_vector};
use crate::joint::SwitchKeys;
use crate::noise::{EncryptedLadder, NoiseObjects};
use crate::object::{Object, noise_objects};
use fhaim_domain::Domain;
use fhaim_dp::{LadderPlan, fork};
use fhaim_he::map;
use fhaim_he::{EncryptedCounts, Parameters};
use fhaim_release::Holders;
use rand::{CryptoRng, RngCore};
use std::sync::Arc;

/// The public shape of a contribution of counts. It follows from schema and terms only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountsPlan {
    /// The tables.
    pub tables: CountTables,
    /// Size of the noise ladder.
    pub ladder: LadderPlan,
    /// The party that makes the upload key.
    pub encryption: Encryption,
}

impl CountsPlan {
    /// Plans the upload of a sole holder.
    ///
    /// # Errors
    /// Those of [`CountTables::new`].
    pub fn new(domain: &Domain, ladder: LadderPlan) -> Result<Self, Error> {
        let tables = CountTables::new(domain)?;
        Ok(Self {
            tables,
            ladder,
            encryption: Encryption::OwnKey,
        })
    }

    /// Returns the same plan for an upload key with another maker.
    #[must_use]
    pub fn under(self, encryption: Encryption) -> Self {
        Self { encryption, ..self }
    }

    /// Returns the form of the objects.
    pub fn form(&self) -> Form {
        Form {
            encryption: self.encryption,
            layout: None,
        }
    }

    /// Returns all objects: a sole holder's switching keys, the tables' ciphertexts, then the noise
    /// in row-major order of (page, level, index).
    pub fn objects(&self) -> impl Iterator<Item = Object> + use<> {
        let numbers = 0..self.tables.layout().ciphertexts();
        let counts = numbers.map(|number| Object::Counts { number });
        let keys = self.encryption.objects();
        keys.chain(counts).chain(noise_objects(self.ladder))
    }

    /// Returns the number of objects.
    pub fn object_count(&self) -> usize {
        let keys = self.encryption.objects().count();
        self.polynomials().saturating_add(keys)
    }

    /// Returns the number of objects that are encrypted polynomials.
    pub fn polynomials(&self) -> usize {
        let counts = self.tables.layout().ciphertexts();
        counts.saturating_add(self.ladder.vectors())
    }

    /// Whether the plan has this object.
    pub fn contains(&self, object: Object) -> bool {
        match object {
            Object::Keys => self.encryption.has_own_keys(),
            Object::Counts { number } => number < self.tables.layout().ciphertexts(),
            Object::Noise { page, level, index } => {
                self.ladder.vector(page, level, index).is_some()
            }
            Object::Column { .. } => false,
        }
    }

    /// Decodes an object.
    ///
    /// # Errors
    /// [`Error::Object`] for an object that the plan does not have, or that has another size;
    /// [`Error::Encryption`] with the first rule that its bytes break.
    pub fn decode(
        &self,
        params: &Parameters,
        object: Object,
        bytes: &[u8],
    ) -> Result<Payload, Error> {
        if !self.contains(object) {
            return Err(NO_SUCH_OBJECT);
        }
        self.form().decode(params, object, bytes)
    }
}

/// Objects that are encrypted before the first of them is passed on: enough for any number of
/// cores.
const OBJECTS_AT_ONCE: usize = 64;

/// A holder of counts that are about to be encrypted.
#[derive(Clone, Copy, Debug)]
pub struct CountsHolder<'a> {
    pair_counts: &'a PairCounts,
    noise: HolderNoise<'a>,
    encryptor: Encryptor<'a>,
    plan: &'a CountsPlan,
}

impl<'a> CountsHolder<'a> {
    /// Creates a holder that follows `plan`.
    ///
    /// # Errors
    /// [`Error::Object`] if the plan does not fit the counts, the ladder or the key;
    /// [`Error::Table`] for counts without a record.
    pub fn new(
        pair_counts: &'a PairCounts,
        noise: HolderNoise<'a>,
        encryptor: impl Into<Encryptor<'a>>,
        plan: &'a CountsPlan,
    ) -> Result<Self, Error> {
        let encryptor = encryptor.into();
        let other = matches!(noise, HolderNoise::Drawn(ladder) if ladder.plan() != plan.ladder);
        if other || !encryptor.follows(plan.encryption) || *pair_counts.tables() != plan.tables {
            return Err(Error::Object("the plan does not fit this table"));
        }
        if pair_counts.records() == 0 {
            return Err(Error::Table("it has no records".to_owned()));
        }
        Ok(Self {
            pair_counts,
            noise,
            encryptor,
            plan,
        })
    }

    /// Encrypts one object with its own generator, keyed from `rng`.
    ///
    /// # Errors
    /// [`Error::Object`] for an object that the plan does not have.
    pub fn encrypt<R: RngCore + CryptoRng>(
        &self,
        object: Object,
        rng: &mut R,
    ) -> Result<Payload, Error> {
        self.draw(object, &mut fork(rng))
    }

    fn draw<R: RngCore + CryptoRng>(&self, object: Object, rng: &mut R) -> Result<Payload, Error> {
        match object {
            Object::Keys => self.encryptor.keys(self.plan.form().layout, rng),
            Object::Counts { number } => {
                let counts = self.pair_counts.counts(number).ok_or(NO_SUCH_OBJECT)?;
                self.encryptor.encrypt(counts, rng)
            }
            Object::Noise { .. } => {
                encrypt_vector(&self.encryptor, self.plan.ladder, self.noise, object, rng)
            }
            Object::Column { .. } => Err(NO_SUCH_OBJECT),
        }
    }

    /// Encrypts one object and encodes it.
    ///
    /// # Errors
    /// Those of [`CountsHolder::encrypt`].
    pub fn encode<R: RngCore + CryptoRng>(
        &self,
        object: Object,
        rng: &mut R,
    ) -> Result<Vec<u8>, Error> {
        let payload = self.encrypt(object, rng)?;
        Ok(payload.encode(self.encryptor.params()))
    }

    /// Encrypts everything on all cores, and passes it to `take` in the plan's order, a few objects
    /// at a time. `progress` is called after each object.
    ///
    /// # Errors
    /// Errors of the encryption and of `take`.
    pub fn encrypt_each<R: RngCore + CryptoRng, E: From<Error>>(
        &self,
        rng: &mut R,
        progress: &(dyn Fn() + Sync),
        mut take: impl FnMut(Object, Payload) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut objects = self.plan.objects();
        loop {
            let next = objects.by_ref().take(OBJECTS_AT_ONCE);
            let next: Vec<_> = next.map(|object| (object, fork(rng))).collect();
            if next.is_empty() {
                return Ok(());
            }
            let encrypted = map(next.iter().collect(), |(object, generator)| {
                let encrypted = self.draw(*object, &mut Clone::clone(generator));
                progress();
                encrypted
            });
            for ((object, _), encrypted) in next.iter().zip(encrypted) {
                take(*object, encrypted?)?;
            }
        }
    }
}

/// The sum of all holders' contributions, as the computation service has it.
#[derive(Clone, Debug)]
pub struct CountsUpload {
    /// The list of tables.
    pub tables: CountTables,
    /// Their encrypted counts.
    pub counts: EncryptedCounts,
    /// Noise for all future releases.
    pub ladder: EncryptedLadder,
}

impl CountsUpload {
    /// Adds the counts of all holders, each first brought under the dataset's key. `get` returns an
    /// object of a holder by the holder's number. The noise is not copied. Memory is that of one
    /// contribution's counts.
    ///
    /// # Errors
    /// [`Error::Object`] for holders of columns, for keys of another roster, and for counts that
    /// are not under their holder's key; errors of `get`; [`Error::Encryption`] for objects that
    /// lack a plaintext modulus.
    pub fn join(
        params: &Parameters,
        plan: &CountsPlan,
        holders: &Holders,
        keys: &SwitchKeys<'_>,
        mut get: impl FnMut(usize, Object) -> Result<Payload, Error>,
        noise: Arc<dyn NoiseObjects>,
    ) -> Result<Self, Error> {
        if holders.owners().is_some() {
            return Err(Error::Object(
                "holders of columns cannot count by themselves",
            ));
        }
        let keys = keys.of_each(holders.count() as usize)?;
        let layout = plan.tables.layout().clone();
        let numbers = (0..layout.ciphertexts()).map(|number| Object::Counts { number });
        let uploaded = numbers.map(|object| {
            let of_holder = |holder| get(holder, object)?.expanded(params);
            (0..keys.len())
                .map(of_holder)
                .collect::<Result<Vec<_>, Error>>()
        });
        let counts = EncryptedCounts::of_holders(&keys, layout, uploaded)?;
        Ok(Self {
            tables: plan.tables.clone(),
            counts,
            ladder: EncryptedLadder::new(plan.ladder, keys, noise),
        })
    }
}
