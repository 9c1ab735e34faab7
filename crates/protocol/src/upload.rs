//! What a holder sends the computation service: named objects, each encrypted and stored by itself.
//!
//! An upload is planned from public numbers alone, so both sides know its objects beforehand.
//! Objects are independent of each other: they can be made in any order, by several workers, and
//! sent again after a break.

use crate::Error;
use fhaim_domain::Domain;
use fhaim_dp::LadderPlan;
use fhaim_he::{Ciphertext, Columns, EncryptedTable, Layout, ParameterSet, Parameters};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{fmt, str::FromStr, sync::Arc};

/// One object: a polynomial, encrypted once under each plaintext modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Object {
    /// One record chunk of a one-hot column.
    Column {
        /// Number of the one-hot column.
        column: usize,
        /// Number of the record chunk.
        chunk: usize,
    },
    /// The counts of some pairs of attributes.
    Counts {
        /// Number of the ciphertext.
        number: usize,
    },
    /// One vector of the noise ladder.
    Noise {
        /// Page of the ladder.
        page: usize,
        /// Level of the ladder.
        level: usize,
        /// Which of the level's vectors: of three in a loose ladder, of two in a dense one.
        index: usize,
    },
}

impl Object {
    /// The object's name, such as `column/12/3` (column, chunk), `counts/3` or `noise/0/4/1` (page,
    /// level, index). [`str::parse`] reads it back.
    pub fn name(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { column, chunk } => write!(f, "column/{column}/{chunk}"),
            Self::Counts { number } => write!(f, "counts/{number}"),
            Self::Noise { page, level, index } => write!(f, "noise/{page}/{level}/{index}"),
        }
    }
}

impl From<Object> for String {
    fn from(object: Object) -> Self {
        object.to_string()
    }
}

impl TryFrom<String> for Object {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse()
    }
}

impl FromStr for Object {
    type Err = Error;

    /// Reads a name, strictly: every object has one name.
    fn from_str(name: &str) -> Result<Self, Error> {
        let mut parts = name.split('/');
        let kind = parts.next();
        let numbers: Vec<usize> = parts.map_while(|part| part.parse().ok()).collect();
        let object = match (kind, numbers.as_slice()) {
            (Some("column"), &[column, chunk]) => Self::Column { column, chunk },
            (Some("counts"), &[number]) => Self::Counts { number },
            (Some("noise"), &[page, level, index]) => Self::Noise { page, level, index },
            _ => return Err(Error::Object("not a name of an object")),
        };
        // Also refuses signs, leading zeros and what follows a part that is no number.
        if object.to_string() == name {
            Ok(object)
        } else {
            Err(Error::Object("not a name of an object"))
        }
    }
}

/// The public shape of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadPlan {
    /// Number of one-hot columns.
    pub columns: usize,
    /// Record chunks, and the positions a chunk's records take.
    pub layout: Layout,
    /// Size of the noise ladder.
    pub ladder: LadderPlan,
    /// Ciphertexts of an object: plaintext moduli of the parameter set.
    pub residues: usize,
}

impl UploadPlan {
    /// The plan for a table of the given domain and number of records.
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
        })
    }

    /// All objects: columns in row-major order of (column, chunk), then noise in that of (page,
    /// level, index).
    pub fn objects(&self) -> impl Iterator<Item = Object> + use<> {
        self.column_objects().chain(self.noise_objects())
    }

    /// The columns' objects, in row-major order of (column, chunk).
    pub fn column_objects(&self) -> impl Iterator<Item = Object> + use<> {
        let chunks = self.layout.chunks();
        (0..self.columns)
            .flat_map(move |column| (0..chunks).map(move |chunk| Object::Column { column, chunk }))
    }

    /// The noise ladder's objects, in row-major order of (page, level, index).
    pub fn noise_objects(&self) -> impl Iterator<Item = Object> + use<> {
        noise_objects(self.ladder)
    }

    /// Number of objects.
    pub fn object_count(&self) -> usize {
        self.columns
            .saturating_mul(self.layout.chunks())
            .saturating_add(self.ladder.vectors())
    }

    /// Number of ciphertexts in all objects.
    pub fn ciphertext_count(&self) -> usize {
        self.object_count().saturating_mul(self.residues)
    }

    /// Whether the object is one of the plan's.
    pub fn contains(&self, object: Object) -> bool {
        match object {
            Object::Column { column, chunk } => {
                column < self.columns && chunk < self.layout.chunks()
            }
            Object::Counts { .. } => false,
            Object::Noise { page, level, index } => {
                self.ladder.vector(page, level, index).is_some()
            }
        }
    }
}

/// The objects of a noise ladder, in row-major order of (page, level, index).
pub(crate) fn noise_objects(ladder: LadderPlan) -> impl Iterator<Item = Object> + use<> {
    let (levels, vectors) = (ladder.levels(), ladder.form().vectors());
    let vector = move |page, level| (0..vectors).map(move |index| (page, level, index));
    (0..ladder.pages())
        .flat_map(move |page| (0..levels).flat_map(move |level| vector(page, level)))
        .map(|(page, level, index)| Object::Noise { page, level, index })
}

/// Bytes of an encoded object: the encodings of its ciphertexts, one after the other.
pub fn object_bytes(set: &ParameterSet) -> usize {
    set.plaintext_moduli.len() * set.ciphertext_bytes()
}

/// Encodes an object's ciphertexts.
pub fn encode_object(params: &Parameters, ciphertexts: &[Ciphertext]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(object_bytes(params.set()));
    for ciphertext in ciphertexts {
        bytes.extend_from_slice(&ciphertext.to_bytes(params));
    }
    bytes
}

/// Decodes an object: one ciphertext under each plaintext modulus, in order.
///
/// # Errors
/// [`Error::Object`] for an object that the plan does not have, or of another size;
/// [`Error::Encryption`] with the first rule that a ciphertext's bytes break.
pub fn decode_object(
    params: &Parameters,
    plan: &UploadPlan,
    object: Object,
    bytes: &[u8],
) -> Result<Vec<Ciphertext>, Error> {
    if !plan.contains(object) {
        return Err(Error::Object("the upload has no such object"));
    }
    if plan.residues != params.residues() {
        return Err(Error::Object("truncated or too long"));
    }
    decode_ciphertexts(params, bytes)
}

/// Decodes an object's ciphertexts, one under each plaintext modulus, in order.
///
/// # Errors
/// As [`decode_object`].
pub fn decode_ciphertexts(params: &Parameters, bytes: &[u8]) -> Result<Vec<Ciphertext>, Error> {
    if bytes.len() != object_bytes(params.set()) {
        return Err(Error::Object("truncated or too long"));
    }
    let decode = |(residue, bytes): (usize, &[u8])| {
        let ciphertext = Ciphertext::from_bytes(params, bytes)?;
        if ciphertext.residue() == residue {
            Ok(ciphertext)
        } else {
            Err(Error::Object("ciphertexts out of order"))
        }
    };
    bytes
        .chunks_exact(params.set().ciphertext_bytes())
        .enumerate()
        .map(decode)
        .collect()
}

/// Noise under encryption: one ciphertext a ladder vector and plaintext modulus.
#[derive(Clone, Debug)]
pub struct EncryptedLadder {
    plan: LadderPlan,
    /// Vectors by (page, level, index), row-major; one ciphertext a plaintext modulus, with the
    /// SHA-256 of its residues.
    vectors: Vec<Vec<(Ciphertext, [u8; 32])>>,
}

/// A vector of the ladder under one plaintext modulus.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector<'a> {
    pub ciphertext: &'a Ciphertext,
    /// SHA-256 of its residues.
    pub digest: [u8; 32],
}

impl EncryptedLadder {
    /// Puts a ladder together; `get` is asked for every noise object of the plan, in order.
    ///
    /// # Errors
    /// What `get` returns; [`Error::Object`] for objects that lack a plaintext modulus.
    pub fn from_objects(
        params: &Parameters,
        plan: UploadPlan,
        get: impl FnMut(Object) -> Result<Vec<Ciphertext>, Error>,
    ) -> Result<Self, Error> {
        Self::of_plan(params, plan.ladder, get)
    }

    /// The same, whatever else is uploaded.
    pub(crate) fn of_plan(
        params: &Parameters,
        plan: LadderPlan,
        get: impl FnMut(Object) -> Result<Vec<Ciphertext>, Error>,
    ) -> Result<Self, Error> {
        let digested = |ciphertexts: Vec<Ciphertext>| {
            let with_digest = |ciphertext: Ciphertext| {
                let mut hash = Sha256::new();
                ciphertext.digest_into(|bytes| hash.update(bytes));
                (ciphertext, hash.finalize().into())
            };
            ciphertexts.into_iter().map(with_digest).collect::<Vec<_>>()
        };
        let vectors = noise_objects(plan).map(get).map(|v| v.map(digested));
        let vectors = vectors.collect::<Result<Vec<_>, Error>>()?;
        let whole = |vector: &Vec<(Ciphertext, _)>| {
            let residues = vector.iter().map(|(ciphertext, _)| ciphertext.residue());
            residues.eq(0..params.residues())
        };
        if !vectors.iter().all(whole) {
            return Err(Error::Object(
                "one ciphertext a plaintext modulus, in order",
            ));
        }
        Ok(Self { plan, vectors })
    }

    /// The ladder's public size.
    pub fn plan(&self) -> LadderPlan {
        self.plan
    }

    /// The ciphertexts of a noise object, one a plaintext modulus.
    pub(crate) fn object(&self, object: Object, residues: usize) -> Option<Vec<Ciphertext>> {
        let Object::Noise { page, level, index } = object else {
            return None;
        };
        let vector = |residue| Some(self.vector(page, level, index, residue)?.ciphertext.clone());
        (0..residues).map(vector).collect()
    }

    /// The vector at (page, level, index) under plaintext modulus `residue`.
    pub(crate) fn vector(
        &self,
        page: usize,
        level: usize,
        index: usize,
        residue: usize,
    ) -> Option<Vector<'_>> {
        let vector = self.plan.vector(page, level, index)?;
        let (ciphertext, digest) = self.vectors.get(vector)?.get(residue)?;
        Some(Vector {
            ciphertext,
            digest: *digest,
        })
    }
}

/// Everything a holder uploads, as the computation service holds it.
#[derive(Clone, Debug)]
pub struct Upload {
    /// The public shape.
    pub plan: UploadPlan,
    /// One-hot columns, in memory or wherever the service keeps them.
    pub table: Arc<dyn Columns>,
    /// Noise for every release to come.
    pub ladder: EncryptedLadder,
}

impl Upload {
    /// Puts an upload together in memory; `get` is asked for every object of the plan, in order.
    ///
    /// # Errors
    /// What `get` returns; [`Error::Encryption`] for objects that lack a plaintext modulus.
    pub fn from_objects(
        params: &Parameters,
        plan: UploadPlan,
        mut get: impl FnMut(Object) -> Result<Vec<Ciphertext>, Error>,
    ) -> Result<Self, Error> {
        let mut columns: Vec<Vec<Vec<Ciphertext>>> = vec![Vec::new(); plan.columns];
        for object in plan.column_objects() {
            if let Object::Column { column, .. } = object {
                let chunks = columns.get_mut(column);
                let chunks = chunks.ok_or(Error::Object("the upload has no such object"))?;
                chunks.push(get(object)?);
            }
        }
        Ok(Self {
            plan,
            table: Arc::new(EncryptedTable::new(params, plan.layout, columns)?),
            ladder: EncryptedLadder::from_objects(params, plan, get)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_he::{P1, P2};
    use rand::SeedableRng;

    fn plan() -> UploadPlan {
        let domain = Domain::new(vec![2, 3]);
        let ladder = LadderPlan::new(10_000, 100).unwrap();
        UploadPlan::for_table(&domain, 9000, ladder, &P2).unwrap()
    }

    #[test]
    fn objects_are_named_once_and_counted() {
        let plan = plan();
        let objects: Vec<Object> = plan.objects().collect();
        assert_eq!(objects.len(), plan.object_count());
        assert_eq!(objects.len(), 5 * 2 + 2 * 4 * 3);
        assert_eq!(plan.ciphertext_count(), 2 * objects.len());
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
        for (page, level, index) in [(2, 0, 0), (0, 4, 0), (0, 0, 3)] {
            assert!(!plan.contains(Object::Noise { page, level, index }));
        }
    }

    #[test]
    fn other_names_are_refused() {
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
        ] {
            assert!(name.parse::<Object>().is_err(), "{name}");
        }
    }

    #[test]
    fn plans_survive_json_and_impossible_ones_do_not() {
        let json = serde_json::to_string(&plan()).unwrap();
        assert_eq!(serde_json::from_str::<UploadPlan>(&json).unwrap(), plan());
        for (from, to) in [
            ("\"stride\":8192", "\"stride\":77"),
            ("\"levels\":4", "\"levels\":0"),
        ] {
            assert!(json.contains(from), "{json}");
            assert!(serde_json::from_str::<UploadPlan>(&json.replace(from, to)).is_err());
        }
    }

    #[test]
    fn objects_are_decoded_strictly() {
        let params = Parameters::new(P2).unwrap();
        let mut rng = rand_chacha::ChaCha20Rng::from_seed([1; 32]);
        let secret = fhaim_he::SecretKey::random(&params, &mut rng).unwrap();
        let public = secret.public_key(&mut rng).unwrap();
        let ciphertexts = public.encrypt(&[1, 2, 3], &mut rng).unwrap();
        let bytes = encode_object(&params, &ciphertexts);
        let object = Object::Column {
            column: 0,
            chunk: 1,
        };
        let decode = |object, bytes: &[u8]| decode_object(&params, &plan(), object, bytes);
        assert_eq!(decode(object, &bytes).unwrap(), ciphertexts);
        let outside = Object::Column {
            column: 5,
            chunk: 0,
        };
        assert!(decode(outside, &bytes).is_err());
        assert!(decode(object, &bytes[..bytes.len() - 1]).is_err());
        assert!(decode(object, &bytes[..bytes.len() / 2]).is_err());
        assert!(decode(object, &[bytes.as_slice(), &[0]].concat()).is_err());
        let (first, second) = bytes.split_at(bytes.len() / 2);
        assert!(decode(object, &[second, first].concat()).is_err());
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2 + 40] ^= 4;
        assert!(decode(object, &flipped).is_err());
        let other = Parameters::new(P1).unwrap();
        assert!(decode_object(&other, &plan(), object, &bytes).is_err());
    }
}
