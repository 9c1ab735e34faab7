//! What a holder of counts sends: its tables and its noise, each ciphertext an object by itself.

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

/// The public shape of a contribution of counts: a function of schema and terms alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountsPlan {
    /// The tables.
    pub tables: CountTables,
    /// Size of the noise ladder.
    pub ladder: LadderPlan,
    /// Who makes the upload key.
    pub encryption: Encryption,
}

impl CountsPlan {
    /// The plan of a sole holder's domain.
    ///
    /// # Errors
    /// As [`CountTables::new`].
    pub fn new(domain: &Domain, ladder: LadderPlan) -> Result<Self, Error> {
        let tables = CountTables::new(domain)?;
        Ok(Self {
            tables,
            ladder,
            encryption: Encryption::OwnKey,
        })
    }

    /// The same upload under a key that others make.
    #[must_use]
    pub fn under(self, encryption: Encryption) -> Self {
        Self { encryption, ..self }
    }

    /// What its objects are.
    pub fn form(&self) -> Form {
        Form {
            encryption: self.encryption,
            layout: None,
        }
    }

    /// All objects: a sole holder's switching keys, the tables' ciphertexts, then the noise in row-major
    /// order of (page, level, index).
    pub fn objects(&self) -> impl Iterator<Item = Object> + use<> {
        let numbers = 0..self.tables.layout().ciphertexts();
        let counts = numbers.map(|number| Object::Counts { number });
        let keys = self.encryption.objects();
        keys.chain(counts).chain(noise_objects(self.ladder))
    }

    /// Number of objects.
    pub fn object_count(&self) -> usize {
        let keys = self.encryption.objects().count();
        self.polynomials().saturating_add(keys)
    }

    /// Number of objects that are encrypted polynomials.
    pub fn polynomials(&self) -> usize {
        let counts = self.tables.layout().ciphertexts();
        counts.saturating_add(self.ladder.vectors())
    }

    /// Whether the object is one of the plan's.
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
    /// [`Error::Object`] for an object that the plan does not have, or of another size;
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

/// Objects that are encrypted before the first of them is handed on: enough for any number of cores.
const OBJECTS_AT_ONCE: usize = 64;

/// A holder of counts about to be encrypted.
#[derive(Clone, Copy, Debug)]
pub struct CountsHolder<'a> {
    pair_counts: &'a PairCounts,
    noise: HolderNoise<'a>,
    encryptor: Encryptor<'a>,
    plan: &'a CountsPlan,
}

impl<'a> CountsHolder<'a> {
    /// A holder who follows `plan`.
    ///
    /// # Errors
    /// [`Error::Object`] where the plan is not the pair_counts's, the ladder's or the key's; [`Error::Table`] for a
    /// pair_counts without a record.
    pub fn new(
        pair_counts: &'a PairCounts,
        noise: HolderNoise<'a>,
        encryptor: impl Into<Encryptor<'a>>,
        plan: &'a CountsPlan,
    ) -> Result<Self, Error> {
        let encryptor = encryptor.into();
        let other = matches!(noise, HolderNoise::Drawn(ladder) if ladder.plan() != plan.ladder);
        if other || !encryptor.follows(plan.encryption) || *pair_counts.tables() != plan.tables {
            return Err(Error::Object("the plan is not this table's"));
        }
        if pair_counts.records() == 0 {
            return Err(Error::Table("it has no record".to_owned()));
        }
        Ok(Self {
            pair_counts,
            noise,
            encryptor,
            plan,
        })
    }

    /// Encrypts one object, with a generator of its own, keyed from `rng`.
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
    /// As [`CountsHolder::encrypt`].
    pub fn encode<R: RngCore + CryptoRng>(
        &self,
        object: Object,
        rng: &mut R,
    ) -> Result<Vec<u8>, Error> {
        let payload = self.encrypt(object, rng)?;
        Ok(payload.encode(self.encryptor.params()))
    }

    /// Encrypts everything, on all cores, and hands it on in the plan's order, a few objects at a time; `progress` is
    /// told of every object done.
    ///
    /// # Errors
    /// What the encryption refuses, and what `take` returns.
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

/// The contributions of all holders, added, as the computation service holds them.
#[derive(Clone, Debug)]
pub struct CountsUpload {
    /// The tables that there are.
    pub tables: CountTables,
    /// Their counts.
    pub counts: EncryptedCounts,
    /// Noise for every release to come.
    pub ladder: EncryptedLadder,
}

impl CountsUpload {
    /// Adds the counts that the holders sent, each brought under the dataset's key first; `get` is asked for all counts
    /// of each holder, by its number. Noise stays where it is. Memory is that of one contribution's counts.
    ///
    /// # Errors
    /// [`Error::Object`] where the holders have columns of the same records, for keys of another roster, and for counts
    /// under another key than their holder's; what `get` returns; [`Error::Encryption`] for objects that lack a
    /// plaintext modulus.
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
