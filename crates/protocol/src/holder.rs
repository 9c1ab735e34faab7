//! The data entity: encrypts a table and a ladder of noise, and can then go offline.

use crate::Error;
use crate::encryption::{Encryptor, NO_SUCH_OBJECT, Payload};
use crate::upload::{Object, ReceivedUpload, UploadPlan};
use fhaim_domain::Table;
use fhaim_dp::{Ladder, LadderKey, LadderPlan, fork};
use fhaim_he::map;
use fhaim_he::{PAGE, coefficient};
use rand::{CryptoRng, RngCore};
use zeroize::Zeroizing;

/// The source of a holder's noise.
#[derive(Clone, Copy, Debug)]
pub enum HolderNoise<'a> {
    /// Each vector is drawn when it is encrypted, and forgotten. An object that is encrypted again
    /// holds other noise.
    Fresh,
    /// From a ladder that was drawn before.
    Drawn(&'a Ladder),
    /// Each vector is drawn from a kept key when it is encrypted. An object that is encrypted again
    /// holds the same noise, and the key's owner can subtract it.
    Keyed(&'a LadderKey),
}

/// A table that is about to be encrypted.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    table: &'a Table,
    noise: HolderNoise<'a>,
    encryptor: Encryptor<'a>,
    plan: UploadPlan,
}

/// Rejects a table with more records than its dataset's terms allow.
///
/// # Errors
/// [`Error::Records`].
pub fn check_records(records: usize, record_bound: u64) -> Result<(), Error> {
    let records = records as u64;
    if records > record_bound {
        let bound = record_bound;
        return Err(Error::Records { records, bound });
    }
    Ok(())
}

impl<'a> Holder<'a> {
    /// Creates a holder that follows `plan`, for a dataset whose terms allow `record_bound`
    /// records.
    ///
    /// # Errors
    /// [`Error::Records`] for a table with more records: its squared scores could change by more
    /// than the terms pay for. [`Error::Object`] if the plan does not fit the table, the ladder or
    /// the key.
    pub fn new(
        table: &'a Table,
        record_bound: u64,
        noise: HolderNoise<'a>,
        encryptor: impl Into<Encryptor<'a>>,
        plan: UploadPlan,
    ) -> Result<Self, Error> {
        check_records(table.records(), record_bound)?;
        let encryptor = encryptor.into();
        let set = encryptor.params().set();
        let wanted = UploadPlan::for_table(table.domain(), table.records(), plan.ladder, set)?
            .under(plan.encryption);
        let other = matches!(noise, HolderNoise::Drawn(ladder) if ladder.plan() != plan.ladder);
        if other || plan != wanted || !encryptor.follows(plan.encryption) {
            return Err(Error::Object("the plan does not fit this table"));
        }
        Ok(Self {
            table,
            noise,
            encryptor,
            plan,
        })
    }

    /// Returns the public shape of the upload.
    pub fn plan(&self) -> &UploadPlan {
        &self.plan
    }

    /// Encrypts one object with its own generator, keyed from `rng`. It takes one key per object
    /// from any `rng`.
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
            _ if !self.plan.contains(object) => Err(NO_SUCH_OBJECT),
            Object::Keys => self.encryptor.keys(self.plan.form().layout, rng),
            Object::Column { column, chunk } => self.encrypt_column(column, chunk, rng),
            _ => encrypt_vector(&self.encryptor, self.plan.ladder, self.noise, object, rng),
        }
    }

    /// Encrypts one object and encodes it.
    ///
    /// # Errors
    /// Those of [`Holder::encrypt`].
    pub fn encode<R: RngCore + CryptoRng>(
        &self,
        object: Object,
        rng: &mut R,
    ) -> Result<Vec<u8>, Error> {
        let payload = self.encrypt(object, rng)?;
        Ok(payload.encode(self.encryptor.params()))
    }

    fn encrypt_column<R: RngCore + CryptoRng>(
        &self,
        column: usize,
        chunk: usize,
        rng: &mut R,
    ) -> Result<Payload, Error> {
        let position = self.table.domain().one_hot_position(column);
        let (attribute, category) = position.ok_or(Error::Object("no such column"))?;
        let codes = self.table.column(attribute).chunks(PAGE).nth(chunk);
        let codes = codes.ok_or(Error::Object("no such chunk"))?;
        let bits = codes.iter().map(|&code| i64::from(code == category));
        let bits = Zeroizing::new(bits.collect::<Vec<i64>>());
        self.encryptor.encrypt(&bits, rng)
    }
}

/// Encrypts a noise object of a ladder's plan.
pub(crate) fn encrypt_vector<R: RngCore + CryptoRng>(
    encryptor: &Encryptor<'_>,
    plan: LadderPlan,
    noise: HolderNoise<'_>,
    object: Object,
    rng: &mut R,
) -> Result<Payload, Error> {
    let Object::Noise { page, level, index } = object else {
        return Err(NO_SUCH_OBJECT);
    };
    match noise {
        HolderNoise::Fresh => {
            let samples = plan.draw_vector(page, level, index, rng);
            encrypt_noise(encryptor, samples.as_ref().map(|s| s.as_slice()), rng)
        }
        HolderNoise::Drawn(ladder) => {
            encrypt_noise(encryptor, ladder.vector(page, level, index), rng)
        }
        HolderNoise::Keyed(key) => {
            let samples = key.vector(&plan, page, level, index);
            encrypt_noise(encryptor, samples.as_ref().map(|s| s.as_slice()), rng)
        }
    }
}

/// Encrypts a ladder vector. The sample at position p becomes coefficient [`coefficient`]`(p)`.
fn encrypt_noise<R: RngCore + CryptoRng>(
    encryptor: &Encryptor<'_>,
    samples: Option<&[i64]>,
    rng: &mut R,
) -> Result<Payload, Error> {
    let samples = samples.ok_or(Error::Object("the ladder has no such vector"))?;
    let mut coefficients = Zeroizing::new(vec![0; PAGE]);
    for (position, &sample) in samples.iter().enumerate() {
        let place = coefficients.get_mut(coefficient(position));
        *place.ok_or(Error::Object(
            "a vector of the ladder is longer than a page",
        ))? = sample;
    }
    encryptor.encrypt(&coefficients, rng)
}

/// Encrypts everything at once, on all cores. `progress` is called after each of the
/// [`UploadPlan::object_count`] objects.
///
/// # Errors
/// Errors of the encryption.
pub fn encrypt<R: RngCore + CryptoRng>(
    holder: &Holder<'_>,
    rng: &mut R,
    progress: &(dyn Fn() + Sync),
) -> Result<ReceivedUpload, Error> {
    // Each object has its own generator, so that threads do not share one.
    let objects: Vec<_> = holder.plan.objects().map(|o| (o, fork(rng))).collect();
    let encrypt = |(object, generator): &(Object, _)| {
        let encrypted = holder.draw(*object, &mut Clone::clone(generator));
        progress();
        encrypted
    };
    let mut encrypted = map(objects.iter().collect(), encrypt).into_iter();
    let missing = || Err(Error::Object("an object is missing"));
    ReceivedUpload::from_objects(holder.encryptor.params(), holder.plan, |_| {
        encrypted.next().unwrap_or_else(missing)
    })
}
