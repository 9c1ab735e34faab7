//! The objects that a holder sends to the computation service. Each is encrypted and stored
//! separately.
//!
//! The plan of an upload follows from public numbers only, so both sides know its objects
//! beforehand. Objects are independent of each other: several workers can make them in any order,
//! and send them again after an interruption. All objects of a holder must be under the same upload
//! key.

use crate::Error;
use crate::encryption::{Encryption, Form, NO_SUCH_OBJECT, OTHER_LENGTH, Payload};
use crate::noise::UploadedLadder;
pub use crate::object::Object;
use crate::object::noise_objects;
use fhaim_domain::Domain;
use fhaim_dp::LadderPlan;
use fhaim_he::{
    Chunks, Columns, EncryptedTable, Layout, ParameterSet, Parameters, UploadSwitchKeys,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The public shape of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadPlan {
    /// Number of one-hot columns.
    pub columns: usize,
    /// The record chunks, and the positions that a chunk's records take.
    pub layout: Layout,
    /// Size of the noise ladder.
    pub ladder: LadderPlan,
    /// Number of ciphertexts in an object: the plaintext moduli of the parameter set.
    pub residues: usize,
    /// The party that makes the upload key.
    pub encryption: Encryption,
}

impl UploadPlan {
    /// Plans the upload of a sole holder's table with this domain and number of records.
    ///
    /// # Errors
    /// A table without records.
    pub fn for_table(
        domain: &Domain,
        records: usize,
        ladder: LadderPlan,
        set: &ParameterSet,
    ) -> Result<Self, Error> {
        Ok(Self {
            columns: domain.columns(),
            layout: Layout::for_records(records)?,
            ladder,
            residues: set.plaintext_moduli.len(),
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
            layout: Some(self.layout),
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
        if self.residues != params.residues() {
            return Err(OTHER_LENGTH);
        }
        self.form().decode(params, object, bytes)
    }

    /// Returns all objects: a sole holder's switching keys, then columns in row-major order of
    /// (column, chunk), then noise in row-major order of (page, level, index).
    pub fn objects(&self) -> impl Iterator<Item = Object> + use<> {
        let keys = self.encryption.objects();
        keys.chain(self.column_objects())
            .chain(self.noise_objects())
    }

    /// Returns the objects of the columns, in row-major order of (column, chunk).
    pub fn column_objects(&self) -> impl Iterator<Item = Object> + use<> {
        let chunks = self.layout.chunks();
        (0..self.columns)
            .flat_map(move |column| (0..chunks).map(move |chunk| Object::Column { column, chunk }))
    }

    /// Returns the objects of the noise ladder, in row-major order of (page, level, index).
    pub fn noise_objects(&self) -> impl Iterator<Item = Object> + use<> {
        noise_objects(self.ladder)
    }

    /// Returns the number of objects.
    pub fn object_count(&self) -> usize {
        let keys = self.encryption.objects().count();
        self.polynomials().saturating_add(keys)
    }

    /// Returns the number of objects that are encrypted polynomials.
    pub fn polynomials(&self) -> usize {
        self.columns
            .saturating_mul(self.layout.chunks())
            .saturating_add(self.ladder.vectors())
    }

    /// Returns the number of ciphertexts in all objects.
    pub fn ciphertext_count(&self) -> usize {
        self.polynomials().saturating_mul(self.residues)
    }

    /// Whether the plan has this object.
    pub fn contains(&self, object: Object) -> bool {
        match object {
            Object::Column { column, chunk } => {
                column < self.columns && chunk < self.layout.chunks()
            }
            Object::Keys => self.encryption.has_own_keys(),
            Object::Counts { .. } => false,
            Object::Noise { page, level, index } => {
                self.ladder.vector(page, level, index).is_some()
            }
        }
    }
}

/// Everything that a holder uploads, as the computation service has it.
#[derive(Clone, Debug)]
pub struct ReceivedUpload {
    /// The public shape.
    pub plan: UploadPlan,
    /// The one-hot columns, in memory or in the service's store.
    pub table: Arc<dyn Columns>,
    /// Noise for all future releases.
    pub ladder: UploadedLadder,
    /// The switching keys of a sole holder's upload key.
    pub keys: Option<Arc<UploadSwitchKeys>>,
}

impl ReceivedUpload {
    /// Assembles an upload in memory. `get` returns each object of the plan and is called in order.
    ///
    /// # Errors
    /// Errors of `get`; [`Error::Encryption`] for objects that lack a plaintext modulus or are
    /// under different keys.
    pub fn from_objects(
        params: &Parameters,
        plan: UploadPlan,
        mut get: impl FnMut(Object) -> Result<Payload, Error>,
    ) -> Result<Self, Error> {
        let keys = plan.encryption.keys(&mut get)?;
        let chunks = plan.column_objects().map(&mut get);
        let chunks = chunks.collect::<Result<Vec<_>, Error>>()?;
        let table = table(params, plan, chunks)?;
        let ladder = UploadedLadder::from_objects(params, plan.ladder, get)?;
        Ok(Self {
            plan,
            table: Arc::new(table),
            ladder,
            keys,
        })
    }
}

/// Assembles a table in memory from its objects, in the order of [`UploadPlan::column_objects`].
///
/// # Errors
/// [`Error::Encryption`] for objects that lack a plaintext modulus or are under different keys.
pub fn table(
    params: &Parameters,
    plan: UploadPlan,
    objects: Vec<Payload>,
) -> Result<EncryptedTable, Error> {
    if objects.len() != plan.column_objects().count() {
        return Err(Error::Object("an object is missing"));
    }
    let columns = by_column(plan, objects, |object| object.expanded(params))?;
    Ok(EncryptedTable::new(params, plan.layout, columns)?)
}

/// Returns record chunks under plaintext modulus number `residue`, from their objects.
///
/// # Errors
/// [`Error::Object`] for objects that lack this modulus or are not ciphertexts;
/// [`Error::Encryption`] for ciphertexts under different keys.
pub fn record_chunks(
    params: &Parameters,
    objects: Vec<Payload>,
    residue: usize,
) -> Result<Chunks, Error> {
    let seeded = objects.into_iter().map(|object| {
        let seeded = object.seeded()?.into_iter().nth(residue);
        let seeded = seeded.ok_or(Error::Object("a plaintext modulus is missing"))?;
        Ok(seeded.expand(params)?)
    });
    let seeded = seeded.collect::<Result<Vec<_>, Error>>()?;
    Ok(Chunks::of_holder(seeded)?)
}

/// Opens the objects and groups the chunks of each column.
fn by_column<C>(
    plan: UploadPlan,
    objects: Vec<Payload>,
    open: impl Fn(Payload) -> Result<Vec<C>, Error>,
) -> Result<Vec<Vec<Vec<C>>>, Error> {
    let mut objects = objects.into_iter().map(open);
    let mut column = |_| objects.by_ref().take(plan.layout.chunks()).collect();
    (0..plan.columns).map(&mut column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_dp::LEVEL_VECTORS;
    use fhaim_he::{COMPACT, WIDE};
    use rand::SeedableRng;

    fn plan() -> UploadPlan {
        let domain = Domain::new(vec![2, 3]);
        let ladder = LadderPlan::new(10_000, 100).unwrap();
        UploadPlan::for_table(&domain, 9000, ladder, &WIDE).unwrap()
    }

    #[test]
    fn every_object_has_a_unique_name_and_is_counted() {
        let plan = plan();
        let objects: Vec<Object> = plan.objects().collect();
        let polynomials = 5 * 2 + 2 * 4 * LEVEL_VECTORS;
        assert_eq!(objects.len(), plan.object_count());
        assert_eq!((objects[0], objects.len()), (Object::Keys, polynomials + 1));
        assert_eq!(plan.ciphertext_count(), 2 * polynomials);
        let of_roster = plan.under(Encryption::RosterKey);
        assert!(of_roster.objects().eq(objects[1..].iter().copied()));
        assert_eq!(of_roster.object_count(), polynomials);
        assert!(!of_roster.contains(Object::Keys));
        let mut names: Vec<String> = objects.iter().map(Object::name).collect();
        for (object, name) in objects.iter().zip(&names) {
            assert!(plan.contains(*object));
            assert_eq!(name.parse::<Object>().unwrap(), *object);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), objects.len());
        for (column, chunk) in [(5, 0), (0, 2)] {
            assert!(!plan.contains(Object::Column { column, chunk }));
        }
        for (page, level, index) in [(2, 0, 0), (0, 4, 0), (0, 0, LEVEL_VECTORS)] {
            assert!(!plan.contains(Object::Noise { page, level, index }));
        }
    }

    #[test]
    fn malformed_object_names_are_rejected() {
        for name in [
            "",
            "column",
            "column/1",
            "column/1/2/3",
            "column/01/2",
            "column/+1/2",
            "column/1/2/",
            "/column/1/2",
            "column/1/x",
            "column/1/2/x",
            "noise/1/2",
            "noise/0/1/-1",
            "Noise/0/1/1",
            "column/1/99999999999999999999999",
            "counts",
            "counts/01",
            "counts/1/2",
            "keys/",
            "keys/0",
            "Keys",
        ] {
            assert!(
                matches!(name.parse::<Object>(), Err(Error::Object(..))),
                "{name}"
            );
        }
    }

    #[test]
    fn plans_survive_json_and_invalid_ones_are_rejected() {
        let json = serde_json::to_string(&plan()).unwrap();
        assert_eq!(serde_json::from_str::<UploadPlan>(&json).unwrap(), plan());
        for (from, to, words) in [
            ("\"stride\":8192", "\"stride\":77", "malformed layout"),
            ("\"levels\":4", "\"levels\":0", "a noise ladder of 0 levels"),
            (
                "\"own-key\"",
                "\"public-key\"",
                "unknown variant `public-key`",
            ),
        ] {
            assert!(json.contains(from), "{json}");
            let changed = json.replace(from, to);
            let refused = serde_json::from_str::<UploadPlan>(&changed).unwrap_err();
            assert!(refused.to_string().starts_with(words), "{refused}");
        }
    }

    #[test]
    fn malformed_objects_are_rejected() {
        let params = Parameters::new(WIDE).unwrap();
        let mut rng = rand_chacha::ChaCha20Rng::from_seed([1; 32]);
        let key = fhaim_he::UploadKey::random(&params, &mut rng).unwrap();
        let ciphertexts = key.encrypt(&[1, 2, 3], &mut rng).unwrap();
        let bytes = Payload::Seeded(ciphertexts.clone()).encode(&params);
        let object = Object::Column {
            column: 0,
            chunk: 1,
        };
        let decode = |object, bytes: &[u8]| plan().decode(&params, object, bytes)?.seeded();
        assert_eq!(decode(object, &bytes).unwrap(), ciphertexts);
        let outside = Object::Column {
            column: 5,
            chunk: 0,
        };
        assert!(matches!(decode(outside, &bytes), Err(Error::Object(..))));
        assert!(matches!(
            decode(object, &bytes[..bytes.len() - 1]),
            Err(Error::Object(..))
        ));
        assert!(matches!(
            decode(object, &bytes[..bytes.len() / 2]),
            Err(Error::Object(..))
        ));
        assert!(matches!(
            decode(object, &[bytes.as_slice(), &[0]].concat()),
            Err(Error::Object(..))
        ));
        let (first, second) = bytes.split_at(bytes.len() / 2);
        assert!(matches!(
            decode(object, &[second, first].concat()),
            Err(Error::Object(..))
        ));
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2 + 40] ^= 4;
        assert!(matches!(
            decode(object, &flipped),
            Err(Error::Encryption(..))
        ));
        let other = Parameters::new(COMPACT).unwrap();
        assert!(matches!(
            plan().decode(&other, object, &bytes),
            Err(Error::Object(..))
        ));
    }

    /// Ciphertexts under the dataset's public key send both their polynomials, and have no seed.
    #[test]
    fn ciphertexts_without_a_seed_are_refused() {
        let params = Parameters::new(COMPACT).unwrap();
        let mut rng = rand_chacha::ChaCha20Rng::from_seed([2; 32]);
        let secret = fhaim_he::SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let whole = public.encrypt(&[1], &mut rng).unwrap()[0].to_bytes(&params);
        let plan = UploadPlan {
            residues: 1,
            ..plan()
        };
        let length = params.set().seeded_bytes();
        for object in plan.objects().filter(|&object| object != Object::Keys) {
            let refused = plan.decode(&params, object, &whole);
            assert!(matches!(
                refused,
                Err(Error::Object("truncated or too long"))
            ));
            // The prefix has the right length, but is still of another kind.
            let refused = plan.decode(&params, object, &whole[..length]);
            assert!(matches!(
                refused,
                Err(Error::Encryption(fhaim_he::Error::Malformed { .. }))
            ));
        }
    }
}
