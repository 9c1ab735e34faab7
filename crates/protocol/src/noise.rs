//! A holder's noise under encryption, as the computation service adds it to pages.
//!
//! A ladder has noise for whatever may be asked for, and a run asks for a part of it: its vectors stay where they
//! are kept, and those of a page are read when the page is sealed.

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

/// Where the objects of all holders' ladders are kept: in memory, or wherever a service keeps uploads.
pub trait NoiseObjects: fmt::Debug + Send + Sync {
    /// These noise objects of a holder, by its number, in their order.
    ///
    /// # Errors
    /// [`Error::Object`] for one that there is not; [`fhaim_he::Error::Unavailable`] for one that is not what was put
    /// there, or cannot be read; [`Error::Away`] where that passes by itself.
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
    /// `get` is asked for every noise object of the plan, in order.
    ///
    /// # Errors
    /// What `get` returns; [`Error::Object`] for objects that lack a plaintext modulus.
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

    /// The ladder's public size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }
}

/// Ladders of uploads that are in memory, by the number of their holder.
impl NoiseObjects for Vec<UploadedLadder> {
    fn read(&self, holder: usize, objects: &[Object]) -> Result<Vec<Payload>, Error> {
        let ladder = self.get(holder).ok_or(NO_SUCH_OBJECT)?;
        ladder.objects.read(0, objects)
    }
}

/// Noise under encryption: of each holder one ciphertext a ladder vector and plaintext modulus.
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

/// Vectors of one page, by their number in the ladder; of each one ciphertext a plaintext modulus.
type Vectors = BTreeMap<usize, Vec<Digested>>;

/// Those vectors of a page that some variances are made of, of each holder.
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
    /// What is to be added.
    pub(crate) ciphertext: Ciphertext,
    /// Of every vector that it is made of.
    pub(crate) digests: Vec<[u8; 32]>,
}

impl EncryptedLadder {
    /// The ladders of holders whose upload keys have these switching keys, kept somewhere. Objects are held against
    /// what they should be when they are read.
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

    /// The ladder's public size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// Number of holders whose noise it is.
    pub(crate) fn holders(&self) -> usize {
        self.keys.len()
    }

    /// Reads what noise of these variances on a page is made of.
    ///
    /// # Errors
    /// [`Error::Encryption`] for noise beyond the ladder; as [`NoiseObjects::read`]; [`Error::Object`] for objects
    /// that lack a plaintext modulus, or are under another key than their holder's.
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
    /// Of which page they are.
    pub(crate) fn page(&self) -> usize {
        self.page
    }

    /// The noise of a variance, one of those that these were read for, under plaintext modulus number `residue`. A
    /// holder's vectors are added up under its upload key, which takes one key switch a holder.
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

/// The vectors of a page, by level and index, that noise of a variance is made of.
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

/// Refuses an object that lacks a plaintext modulus, or is under another key than these switching keys are for.
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
            "one ciphertext a plaintext modulus, in order",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::{COMPACT, SecretKey, UploadKey};
    use rand::SeedableRng;
    use std::sync::Mutex;

    /// Objects in memory, and which of them were asked for.
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
    fn of_a_page_those_vectors_are_read_that_its_variances_are_made_of() {
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
        // Digits 3, 0, 1 and, of the other variance, 1: the third level's second vector is in neither.
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
        // What is not there, and what no ladder of this size has.
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
    fn what_is_under_another_key_than_the_ladders_is_refused_when_it_is_read() {
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
