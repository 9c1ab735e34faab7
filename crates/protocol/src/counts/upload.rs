//! What a holder of counts sends: its tables and its noise, each ciphertext an object by itself.

use super::CountTables;
use super::tally::Tally;
use crate::Error;
use crate::holder::{Noise, encrypt_vector, map};
use crate::upload::{EncryptedLadder, Object, decode_ciphertexts, encode_object, noise_objects};
use fhaim_domain::Domain;
use fhaim_dp::{LadderPlan, fork};
use fhaim_he::{Ciphertext, EncryptedCounts, Parameters, PublicKey};
use fhaim_release::Holders;
use rand::{CryptoRng, RngCore};

/// The public shape of a contribution of counts: a function of schema and terms alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountsPlan {
    /// The tables.
    pub tables: CountTables,
    /// Size of the noise ladder.
    pub ladder: LadderPlan,
}

impl CountsPlan {
    /// The plan of a domain.
    ///
    /// # Errors
    /// As [`CountTables::new`].
    pub fn new(domain: &Domain, ladder: LadderPlan) -> Result<Self, Error> {
        let tables = CountTables::new(domain)?;
        Ok(Self { tables, ladder })
    }

    /// All objects: the tables' ciphertexts, then the noise in row-major order of (page, level,
    /// index).
    pub fn objects(&self) -> impl Iterator<Item = Object> + use<> {
        let numbers = 0..self.tables.layout().ciphertexts();
        let counts = numbers.map(|number| Object::Counts { number });
        counts.chain(noise_objects(self.ladder))
    }

    /// Number of objects.
    pub fn object_count(&self) -> usize {
        let counts = self.tables.layout().ciphertexts();
        counts.saturating_add(self.ladder.vectors())
    }

    /// Whether the object is one of the plan's.
    pub fn contains(&self, object: Object) -> bool {
        match object {
            Object::Counts { number } => number < self.tables.layout().ciphertexts(),
            Object::Noise { page, level, index } => {
                self.ladder.vector(page, level, index).is_some()
            }
            Object::Column { .. } => false,
        }
    }

    /// Decodes an object: one ciphertext under each plaintext modulus, in order.
    ///
    /// # Errors
    /// [`Error::Object`] for an object that the plan does not have, or of another size;
    /// [`Error::Encryption`] with the first rule that a ciphertext's bytes break.
    pub fn decode(
        &self,
        params: &Parameters,
        object: Object,
        bytes: &[u8],
    ) -> Result<Vec<Ciphertext>, Error> {
        if !self.contains(object) {
            return Err(Error::Object("the upload has no such object"));
        }
        decode_ciphertexts(params, bytes)
    }
}

/// A holder of counts about to be encrypted.
#[derive(Clone, Copy, Debug)]
pub struct CountsHolder<'a> {
    tally: &'a Tally,
    noise: Noise<'a>,
    public: &'a PublicKey,
    plan: &'a CountsPlan,
}

impl<'a> CountsHolder<'a> {
    /// A holder who follows `plan`.
    ///
    /// # Errors
    /// [`Error::Object`] where the plan is not the tally's or the ladder's; [`Error::Table`] for a
    /// tally without a record.
    pub fn new(
        tally: &'a Tally,
        noise: Noise<'a>,
        public: &'a PublicKey,
        plan: &'a CountsPlan,
    ) -> Result<Self, Error> {
        let other = matches!(noise, Noise::Drawn(ladder) if ladder.plan() != plan.ladder);
        if other || *tally.tables() != plan.tables {
            return Err(Error::Object("the plan is not this table's"));
        }
        if tally.records() == 0 {
            return Err(Error::Table("it has no record".to_owned()));
        }
        Ok(Self {
            tally,
            noise,
            public,
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
    ) -> Result<Vec<Ciphertext>, Error> {
        self.draw(object, &mut fork(rng))
    }

    fn draw<R: RngCore + CryptoRng>(
        &self,
        object: Object,
        rng: &mut R,
    ) -> Result<Vec<Ciphertext>, Error> {
        let missing = Error::Object("the upload has no such object");
        match object {
            Object::Counts { number } => {
                let counts = self.tally.counts(number).ok_or(missing)?;
                Ok(self.public.encrypt(counts, rng)?)
            }
            Object::Noise { .. } => {
                encrypt_vector(self.public, self.plan.ladder, self.noise, object, rng)
            }
            Object::Column { .. } => Err(missing),
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
        let ciphertexts = self.encrypt(object, rng)?;
        Ok(encode_object(self.public.params(), &ciphertexts))
    }

    /// Encrypts everything in one go, on all cores; `progress` is told of every object done.
    ///
    /// # Errors
    /// What the encryption refuses.
    pub fn encrypt_all<R: RngCore + CryptoRng>(
        &self,
        rng: &mut R,
        progress: &(dyn Fn() + Sync),
    ) -> Result<Vec<(Object, Vec<Ciphertext>)>, Error> {
        let objects: Vec<_> = self.plan.objects().map(|o| (o, fork(rng))).collect();
        let encrypted = map(&objects, |(object, generator)| {
            let encrypted = self.draw(*object, &mut Clone::clone(generator))?;
            progress();
            Ok((*object, encrypted))
        });
        encrypted.into_iter().collect()
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
    /// Adds what `holders` sent; `get` is asked for every object of the plan and each holder, by its
    /// number. Memory is that of one contribution.
    ///
    /// # Errors
    /// [`Error::Object`] where the holders have columns of the same records; what `get` returns;
    /// [`Error::Encryption`] for objects that lack a plaintext modulus.
    pub fn join(
        params: &Parameters,
        plan: &CountsPlan,
        holders: &Holders,
        mut get: impl FnMut(usize, Object) -> Result<Vec<Ciphertext>, Error>,
    ) -> Result<Self, Error> {
        if holders.owners().is_some() {
            return Err(Error::Object(
                "holders of columns cannot count by themselves",
            ));
        }
        let mut sum = |object| {
            let of_each = (0..holders.count() as usize).map(|holder| get(holder, object));
            crate::joint::add(params, &of_each.collect::<Result<Vec<_>, Error>>()?)
        };
        let layout = plan.tables.layout().clone();
        let numbers = 0..layout.ciphertexts();
        let counts = numbers.map(|number| sum(Object::Counts { number }));
        let counts = counts.collect::<Result<Vec<_>, Error>>()?;
        Ok(Self {
            tables: plan.tables.clone(),
            counts: EncryptedCounts::new(params, layout, holders.count(), counts)?,
            ladder: EncryptedLadder::of_plan(params, plan.ladder, sum)?,
        })
    }
}
