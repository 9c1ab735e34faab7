//! The encrypted noise of holders, as the computation service adds it to pages.
//!
//! A ladder has noise for all possible requests, and a run needs only a part of it. So vectors stay
//! in their store, and the vectors of a page are read when the page is sealed.

use crate::Error;
use crate::encryption::{NO_SUCH_OBJECT, OTHER_KEY, Payload};
use crate::object::{Object, noise_objects};
use fhaim_dp::{Digits, LadderPlan, vectors_of_digit};
use fhaim_he::map;
use fhaim_he::{Ciphertext, Parameters, SeededCiphertext, UploadCiphertext, UploadSwitchKeys};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// A store of the objects of all holders' ladders: memory, or a service's store of uploads.
pub trait NoiseObjects: fmt::Debug + Send + Sync {
    /// Reads noise objects of a holder, by its number, in the given order.
    ///
    /// # Errors
    /// [`Error::Object`] for an unknown object; [`fhaim_he::Error::Unavailable`] for an object that
    /// was changed or cannot be read; [`Error::Away`] if the failure is temporary.
    fn read(&self, holder: usize, objects: &[Object]) -> Result<Vec<Payload>, Error>;
}

/// Objects in memory, by holder and name.
impl NoiseObjects for HashMap<(usize, Object), Payload> {
    fn read(&self, holder: usize, objects: &[Object]) -> Result<Vec<Payload>, Error> {
        let one = |&object: &Object| self.get(&(holder, object)).cloned();
        let all: Option<Vec<Payload>> = objects.iter().map(one).collect();
        all.ok_or(NO_SUCH_OBJECT)
    }
}

/// A holder's ladder in memory.
#[derive(Clone, Debug)]
pub struct UploadedLadder {
    plan: LadderPlan,
    objects: Arc<HashMap<(usize, Object), Payload>>,
}

impl UploadedLadder {
    /// Reads every noise object of the plan with `get`, in order.
    ///
    /// # Errors
    /// Errors of `get`; [`Error::Object`] for objects that lack a plaintext modulus.
    pub fn from_objects(
        params: &Parameters,
        plan: LadderPlan,
        mut get: impl FnMut(Object) -> Result<Payload, Error>,
    ) -> Result<Self, Error> {
        let mut objects = HashMap::with_capacity(plan.vectors());
        for object in noise_objects(plan) {
            let payload = get(object)?;
            check(params, None, &payload)?;
            objects.insert((0, object), payload);
        }
        let objects = Arc::new(objects);
        Ok(Self { plan, objects })
    }

    /// Returns the public size of the ladder.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }
}

/// Ladders of uploads in memory, by the number of their holder.
impl NoiseObjects for Vec<UploadedLadder> {
    fn read(&self, holder: usize, objects: &[Object]) -> Result<Vec<Payload>, Error> {
        let ladder = self.get(holder).ok_or(NO_SUCH_OBJECT)?;
        ladder.objects.read(0, objects)
    }
}

/// Encrypted noise: for each holder, ladder vector and plaintext modulus one ciphertext.
#[derive(Clone, Debug)]
pub struct EncryptedLadder {
    plan: LadderPlan,
    /// The switching keys of each holder's upload key.
    keys: Vec<Arc<UploadSwitchKeys>>,
    objects: Arc<dyn NoiseObjects>,
}

/// A ciphertext with a digest of it.
#[derive(Clone, Debug)]
struct Digested {
    ciphertext: UploadCiphertext,
    digest: [u8; 32],
}

/// Vectors of one page, by their number in the ladder, with one ciphertext for each plaintext
/// modulus.
type Vectors = BTreeMap<usize, Vec<Digested>>;

/// The vectors of a page, for each holder, that make up noise of some variances.
#[derive(Debug)]
pub(crate) struct PageVectors<'a> {
    params: &'a Parameters,
    plan: LadderPlan,
    page: usize,
    holders: Vec<(Arc<UploadSwitchKeys>, Vectors)>,
}

/// The noise of a variance on a page, under one plaintext modulus.
#[derive(Debug)]
pub(crate) struct PageNoise {
    /// The ciphertext to add.
    pub(crate) ciphertext: Ciphertext,
    /// Digests of all vectors in the sum.
    pub(crate) digests: Vec<[u8; 32]>,
}

impl EncryptedLadder {
    /// Creates the ladders of holders whose upload keys have these switching keys. Objects are
    /// checked when they are read.
    pub fn new(
        plan: LadderPlan,
        keys: Vec<Arc<UploadSwitchKeys>>,
        objects: Arc<dyn NoiseObjects>,
    ) -> Self {
        Self {
            plan,
            keys,
            objects,
        }
    }

    /// Returns the public size of the ladder.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// Returns the number of holders that contribute noise.
    pub(crate) fn holders(&self) -> usize {
        self.keys.len()
    }

    /// Reads the vectors that make up noise of these variances on a page.
    ///
    /// # Errors
    /// [`Error::Encryption`] for noise beyond the ladder; errors of [`NoiseObjects::read`];
    /// [`Error::Object`] for objects that lack a plaintext modulus, or are not under their holder's
    /// key.
    pub(crate) fn page<'a>(
        &self,
        params: &'a Parameters,
        page: usize,
        variances: impl IntoIterator<Item = u64>,
    ) -> Result<PageVectors<'a>, Error> {
        let wanted: BTreeSet<(usize, usize)> = variances.into_iter().flat_map(places).collect();
        let numbers = wanted
            .iter()
            .map(|&(level, index)| self.plan.vector(page, level, index));
        let numbers: Vec<usize> = numbers.collect::<Option<_>>().ok_or(BEYOND)?;
        let object = |&(level, index): &(usize, usize)| Object::Noise { page, level, index };
        let objects: Vec<Object> = wanted.iter().map(object).collect();
        let holder = |(holder, keys): (usize, &Arc<UploadSwitchKeys>)| {
            let read = self.objects.read(holder, &objects)?;
            for payload in &read {
                check(params, Some(keys), payload)?;
            }
            let opened = map(read.iter().collect(), |vector| {
                let all = vector.clone().seeded()?.into_iter();
                let opened = all.map(|seeded| expanded(params, seeded));
                opened.collect::<Result<Vec<Digested>, Error>>()
            });
            let opened = numbers.iter().copied().zip(opened);
            let opened = opened.map(|(number, vector)| Ok((number, vector?)));
            Ok((keys.clone(), opened.collect::<Result<_, Error>>()?))
        };
        let holders = self.keys.iter().enumerate().map(holder);
        Ok(PageVectors {
            params,
            plan: self.plan,
            page,
            holders: holders.collect::<Result<_, Error>>()?,
        })
    }
}

impl PageVectors<'_> {
    /// Returns the page's number.
    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// Returns the noise of one of the variances that the vectors were read for, under plaintext
    /// modulus number `residue`. A holder's vectors are added under its upload key, so that each
    /// holder costs one key switch.
    ///
    /// # Errors
    /// [`Error::Encryption`] for another variance.
    pub(crate) fn noise(&self, units: u64, residue: usize) -> Result<PageNoise, Error> {
        let numbers = places(units).map(|(level, index)| self.plan.vector(self.page, level, index));
        let numbers: Vec<usize> = numbers.collect::<Option<_>>().ok_or(BEYOND)?;
        let mut digests = Vec::new();
        let mut switched = Vec::with_capacity(self.holders.len());
        for (keys, all) in &self.holders {
            let one = |number: &usize| all.get(number)?.get(residue);
            let found: Option<Vec<&Digested>> = numbers.iter().map(one).collect();
            let found = found.ok_or(BEYOND)?;
            digests.extend(found.iter().map(|vector| vector.digest));
            let found = found.iter().map(|vector| &vector.ciphertext);
            switched.push(keys.switch(&UploadCiphertext::sum(self.params, found)?)?);
        }
        Ok(PageNoise {
            ciphertext: Ciphertext::sum(self.params, &switched)?,
            digests,
        })
    }
}

/// Returns level and index of the vectors that make up noise of a variance.
fn places(units: u64) -> impl Iterator<Item = (usize, usize)> {
    let of_digit = |(level, digit)| {
        let indices = vectors_of_digit(digit);
        indices.map(move |index| (level, index))
    };
    Digits::of(units).iter().flat_map(of_digit)
}

const BEYOND: fhaim_he::Error = fhaim_he::Error::OutOfRange("noise beyond the ladder");

fn expanded(params: &Parameters, seeded: SeededCiphertext) -> Result<Digested, Error> {
    Ok(Digested {
        digest: Sha256::digest(seeded.to_bytes(params)).into(),
        ciphertext: seeded.expand(params)?,
    })
}

/// Rejects an object that lacks a plaintext modulus, or whose key does not fit these switching
/// keys.
fn check(
    params: &Parameters,
    keys: Option<&UploadSwitchKeys>,
    payload: &Payload,
) -> Result<(), Error> {
    let Payload::Seeded(all) = payload else {
        return Err(OTHER_KEY);
    };
    let of = |keys: &UploadSwitchKeys| all.iter().all(|c| c.key_id() == keys.id());
    if !keys.is_none_or(of) {
        return Err(OTHER_KEY);
    }
    let residues = all.iter().map(SeededCiphertext::residue);
    match residues.eq(0..params.residues()) {
        true => Ok(()),
        false => Err(Error::Object(
            "an object needs one ciphertext for each plaintext modulus, in order",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::{COMPACT, SecretKey, UploadKey};
    use rand::SeedableRng;
    use std::sync::Mutex;

    /// Objects in memory, with a record of the reads.
    #[derive(Debug)]
    struct Watched {
        objects: HashMap<(usize, Object), Payload>,
        read: Mutex<Vec<Object>>,
    }

    impl NoiseObjects for Watched {
        fn read(&self, holder: usize, objects: &[Object]) -> Result<Vec<Payload>, Error> {
            self.read.lock().unwrap().extend(objects);
            self.objects.read(holder, objects)
        }
    }

    fn plan() -> LadderPlan {
        LadderPlan::with_levels(20_000, 3).unwrap()
    }

    fn noise(page: usize, level: usize, index: usize) -> Object {
        Object::Noise { page, level, index }
    }

    #[test]
    fn only_vectors_of_the_requested_variances_are_read() {
        let params = Parameters::new(COMPACT).unwrap();
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(4);
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let own = UploadKey::random(&params, &mut rng).unwrap();
        let keys = Arc::new(own.switch_keys(&public, None, &mut rng).unwrap());
        let mut encrypt = |value: i64| Payload::Seeded(own.encrypt(&[value], &mut rng).unwrap());
        let values = [
            (noise(1, 0, 0), 1),
            (noise(1, 0, 1), 20),
            (noise(1, 2, 0), 300),
        ];
        let objects = values.map(|(object, value)| ((0, object), encrypt(value)));
        let watched = Arc::new(Watched {
            objects: objects.into_iter().collect(),
            read: Mutex::default(),
        });
        let ladder = EncryptedLadder::new(plan(), vec![keys], watched.clone());
        // Digits 3, 0, 1 for one variance and 1 for the other: neither needs the second vector of
        // the third level.
        let vectors = ladder.page(&params, 1, [19, 1]).unwrap();
        let read = watched.read.lock().unwrap().clone();
        assert_eq!(read, values.map(|(object, _)| object));
        for (units, sum, parts) in [(19, 321, 3), (1, 1, 1)] {
            let noise = vectors.noise(units, 0).unwrap();
            let (decrypted, _) = secret.decrypt(&[noise.ciphertext]).unwrap();
            assert_eq!((decrypted[0], noise.digests.len()), (sum, parts));
        }
        assert!(matches!(
            vectors.noise(2 << 4, 0),
            Err(Error::Encryption(..))
        ));
        // A missing object, and a page beyond the ladder.
        assert!(matches!(
            ladder.page(&params, 0, [1]),
            Err(Error::Object(..))
        ));
        assert!(matches!(
            ladder.page(&params, 3, [1]),
            Err(Error::Encryption(fhaim_he::Error::OutOfRange(_)))
        ));
    }

    #[test]
    fn ladder_objects_under_another_key_are_rejected_on_read() {
        let params = Parameters::new(COMPACT).unwrap();
        let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(5);
        let secret = SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let [own, other] = [0; 2].map(|_| UploadKey::random(&params, &mut rng).unwrap());
        let keys = Arc::new(own.switch_keys(&public, None, &mut rng).unwrap());
        let mut with = |key: &UploadKey| {
            let payload = Payload::Seeded(key.encrypt(&[7], &mut rng).unwrap());
            let objects = HashMap::from([((0, noise(0, 0, 0)), payload)]);
            EncryptedLadder::new(plan(), vec![keys.clone()], Arc::new(objects))
        };
        assert!(with(&own).page(&params, 0, [1]).is_ok());
        let refused = with(&other).page(&params, 0, [1]);
        assert!(matches!(refused, Err(Error::Object(_))));
    }
}
