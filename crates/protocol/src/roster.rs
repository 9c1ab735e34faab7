//! The holders of a dataset that has several: who they are, which part each has, and that all of
//! them agree.
//!
//! The roster is part of the terms, and public. Each holder signs with a key that its own program
//! made. It signs the stored terms, including the roster, and the keys that the key service made
//! under them. The key service begins no run, and so decrypts nothing, until all have signed.
//! Signatures are acts of the dataset's chain ([`crate::crypto::history`]). Holders compare the
//! [fingerprints](Member::fingerprint) of their keys outside of the system: otherwise the service
//! that issues accounts could sign in their place.

use crate::Error;
use crate::counts::CountTables;
use crate::request::DatasetId;
pub use crate::signing::fingerprint;
use crate::signing::{HolderRole, SigningKeyOf};
use ed25519_dalek::{Signature, VerifyingKey};
use fhaim_domain::{Domain, Field, Schema, SchemaProblem};
use fhaim_dp::hex_digest;
use fhaim_he::Layout;
use fhaim_release::{Holders, MAX_HOLDERS};

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use zeroize::Zeroizing;

/// How the table is divided among the holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Partition {
    /// Each holder has all columns of some records.
    Records,
    /// Each holder has some columns of all records, in a common order of rows.
    Columns,
}

/// Most bytes of an account's name.
const MAX_ACCOUNT_BYTES: usize = 320;

/// One holder of a roster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Name of the account that it signs in with.
    pub account: String,
    /// Names of its columns as in the table, if holders have columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Most records that it may have.
    pub record_bound: u64,
    /// Public key of its signatures.
    #[serde(with = "hex_digest")]
    pub key: [u8; 32],
}

impl Member {
    /// Returns the fingerprint of its key, for people to compare.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.key)
    }

    /// Checks that the member's key signed `message`.
    pub(crate) fn verify_message(
        &self,
        message: &[u8],
        signature: &MemberSignature,
    ) -> Result<(), Error> {
        let key = VerifyingKey::from_bytes(&self.key);
        let signature = Signature::from_bytes(&signature.0);
        let verified = key.and_then(|key| key.verify_strict(message, &signature));
        verified.map_err(|_| Error::Signature(self.account.clone()))
    }

    /// Returns the schema's fields that the member has, in the schema's order. `numbers` maps the
    /// names of all fields to their numbers.
    fn fields(&self, numbers: &HashMap<&str, usize>) -> Result<Vec<usize>, Error> {
        let number = |name: &String| {
            let account = &self.account;
            let unknown = || refuse(&format!("{account}: the schema has no column {name:?}"));
            numbers.get(name.as_str()).copied().ok_or_else(unknown)
        };
        let fields = self.columns.iter().map(number);
        let mut fields = fields.collect::<Result<Vec<usize>, Error>>()?;
        fields.sort_unstable();
        Ok(fields)
    }
}

/// The holders of a dataset, in the order in which their parts are joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Roster {
    /// How the table is divided.
    pub partition: Partition,
    /// h: the number of holders whose noise everyone relies on. With 1, no holder has to trust
    /// another's noise. With all holders, releases protect against services and readers but not
    /// against other holders, since each holder can subtract its own noise.
    pub honest: u32,
    /// The holders.
    pub holders: Vec<Member>,
}

impl Roster {
    /// Checks the roster for a table with this schema and at most `record_bound` records. Returns
    /// the holders as prices depend on them.
    ///
    /// # Errors
    /// [`Error::Terms`] with the holder and the field.
    pub fn check(&self, schema: &Schema, record_bound: u64) -> Result<Holders, Error> {
        let count = u32::try_from(self.holders.len()).unwrap_or(u32::MAX);
        if self.holders.is_empty() || count > MAX_HOLDERS {
            return Err(refuse(&format!(
                "{count} holders: there must be 1 to {MAX_HOLDERS}"
            )));
        }
        for (number, member) in self.holders.iter().enumerate() {
            self.check_member(number, member)?;
        }
        self.check_bounds(record_bound)?;
        let holders = Holders::of_records(count, self.honest)?;
        match self.partition {
            Partition::Records => Ok(holders),
            Partition::Columns => Ok(holders.with_columns(self.owners(schema)?)?),
        }
    }

    fn check_member(&self, number: usize, member: &Member) -> Result<(), Error> {
        let account = &member.account;
        let of = |what: &str| Err(refuse(&format!("holder {}: {what}", number + 1)));
        if account.is_empty() || account.len() > MAX_ACCOUNT_BYTES || account.trim() != account {
            return of("account: it must be a name without space at its ends");
        }
        let others = self.holders.iter().take(number);
        if others.clone().any(|other| other.account == *account) {
            return of("account: an earlier holder has the same; list each party once");
        }
        if others.clone().any(|other| other.key == member.key) {
            return of(
                "key: an earlier holder has the same; each holder's program makes its own key",
            );
        }
        let key = VerifyingKey::from_bytes(&member.key);
        if !key.is_ok_and(|key| !key.is_weak()) {
            return of("key: it is not an Ed25519 public key");
        }
        if member.record_bound == 0 {
            return of("record_bound: it must be at least 1");
        }
        match self.partition {
            Partition::Records if !member.columns.is_empty() => {
                of("columns: holders of records have all columns; leave the field out")
            }
            _ => Ok(()),
        }
    }

    fn check_bounds(&self, record_bound: u64) -> Result<(), Error> {
        let bounds = self.holders.iter().map(|member| member.record_bound);
        let (allowed, rule) = match self.partition {
            Partition::Records => (
                bounds.fold(0, u64::saturating_add),
                "the holders' record bounds add up to",
            ),
            Partition::Columns => (
                bounds.max().unwrap_or(0),
                "the holders' largest record bound is",
            ),
        };
        if allowed > record_bound {
            return Err(refuse(&format!(
                "{rule} {allowed}, but the dataset's is {record_bound}: raise record_bound to {allowed}"
            )));
        }
        Ok(())
    }

    /// Returns the holder of each of the schema's attributes: the holder of the attribute's field.
    /// Every answer needs this, so it only reads each holder's columns and makes no schema of them.
    fn owners(&self, schema: &Schema) -> Result<Vec<u32>, Error> {
        let numbers = numbers(schema);
        let mut of_fields = vec![None; schema.fields().len()];
        let mut parts = Vec::with_capacity(self.holders.len());
        for (holder, member) in (0u32..).zip(&self.holders) {
            let fields = member.fields(&numbers)?;
            for &field in &fields {
                let owner = of_fields.get_mut(field);
                if owner.is_some_and(|owner| owner.replace(holder).is_some()) {
                    let name = schema.fields().get(field).map_or("", Field::name);
                    return Err(refuse(&format!("column {name:?} is named twice")));
                }
            }
            parts.push(fields);
        }
        let mut owners = Vec::with_capacity(schema.domain().len());
        for (field, owner) in schema.fields().iter().zip(of_fields) {
            match owner {
                Some(owner) => owners.extend(field.attributes().map(|_| owner)),
                // Identifiers, derived and left-out columns are not encrypted.
                None if field.attributes().is_empty() => {}
                None => {
                    let name = field.name();
                    return Err(refuse(&format!("no holder has column {name:?}")));
                }
            }
        }
        for (number, fields) in parts.iter().enumerate() {
            let checked = schema.check_part(fields);
            checked.map_err(|problem| no_table(number, &problem))?;
        }
        Ok(owners)
    }

    /// Returns the schema of one holder's part. A holder of records has the whole schema.
    ///
    /// # Errors
    /// [`Error::Terms`] for a holder that is not in the roster, and for columns that do not form a
    /// table by themselves.
    pub fn part(&self, schema: &Schema, number: usize) -> Result<Schema, Error> {
        let member = self.holders.get(number);
        let member = member.ok_or_else(|| refuse(&format!("there is no holder {}", number + 1)))?;
        if self.partition == Partition::Records {
            return Ok(schema.clone());
        }
        let part = schema.part(&member.fields(&numbers(schema))?);
        part.map_err(|problem| no_table(number, &problem))
    }
}

/// Returns the numbers of a schema's fields by their names.
fn numbers(schema: &Schema) -> HashMap<&str, usize> {
    schema.fields().iter().map(Field::name).zip(0..).collect()
}

fn no_table(number: usize, problem: &SchemaProblem) -> Error {
    let number = number + 1;
    refuse(&format!(
        "holder {number}: its columns must form a table by themselves: {problem}"
    ))
}

fn refuse(what: &str) -> Error {
    Error::Terms(format!("roster: {what}"))
}

/// Data that a holder uploads in addition to its noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ContributionKind {
    /// One-hot records, as in the FHAIM paper. All statistics can be computed later.
    #[default]
    Records,
    /// Counts of all pairs of columns, from a holder with all columns. An upload has megabytes for
    /// any number of records, and no party sees even the order of magnitude of that number.
    /// Statistics of three columns cannot be computed later.
    Counts,
}

impl ContributionKind {
    /// Returns the kind with the smaller upload for a holder of `records` records with all columns.
    ///
    /// # Errors
    /// [`Error::Encryption`] for zero records, and for more than a table can have.
    pub fn smaller(domain: &Domain, records: usize) -> Result<Self, Error> {
        let one_hot = domain.columns() * Layout::for_records(records)?.chunks();
        match CountTables::new(domain) {
            Ok(tables) if tables.layout().ciphertexts() < one_hot => Ok(Self::Counts),
            _ => Ok(Self::Records),
        }
    }

    pub(crate) fn is_records(&self) -> bool {
        *self == Self::Records
    }
}

/// The agreement that every holder signs. Digests are over the stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The dataset.
    pub dataset: DatasetId,
    /// Digest of the terms, including the roster.
    pub terms: [u8; 32],
    /// Digest of the public key.
    pub public_key: [u8; 32],
    /// Digest of the evaluation keys.
    pub evaluation_keys: [u8; 32],
}

impl Agreement {
    /// Returns the bytes to sign, for a program that cannot read its own key, such as a page in a
    /// browser.
    pub fn message(&self) -> Vec<u8> {
        let parts: [&[u8]; 5] = [
            b"fhaim agreement 1",
            &self.dataset.0,
            &self.terms,
            &self.public_key,
            &self.evaluation_keys,
        ];
        parts.concat()
    }

    /// Checks that the member signed this agreement.
    ///
    /// # Errors
    /// [`Error::Signature`] with the account.
    pub fn verify(&self, member: &Member, signature: &MemberSignature) -> Result<(), Error> {
        member.verify_message(&self.message(), signature)
    }
}

/// A holder's signature of an [`Agreement`]. As text it has 128 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemberSignature(pub [u8; 64]);

impl From<MemberSignature> for String {
    fn from(signature: MemberSignature) -> Self {
        signature
            .0
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

impl TryFrom<String> for MemberSignature {
    type Error = &'static str;

    /// Parses exactly 128 lower-case digits.
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let wrong = "a signature has 128 hexadecimal digits in lower case";
        let mut bytes = [0; 64];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(wrong);
        }
        for (byte, pair) in bytes.iter_mut().zip(pairs) {
            let digits = pair.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
            let pair = std::str::from_utf8(pair).ok().filter(|_| digits);
            let value = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok());
            *byte = value.ok_or(wrong)?;
        }
        Ok(Self(bytes))
    }
}

/// The key that a holder's program signs with, and keeps.
pub type HolderSigningKey = SigningKeyOf<HolderRole>;

impl HolderSigningKey {
    /// Returns a secret that only this holder and the holder of the public key `other` can compute:
    /// the Diffie-Hellman product of the two keys on the curve of X25519.
    pub(crate) fn shared(&self, other: &[u8; 32]) -> Result<Zeroizing<[u8; 32]>, Error> {
        let refuse = || Error::Signature("a holder whose key in the roster is invalid".to_owned());
        let other = VerifyingKey::from_bytes(other).map_err(|_| refuse())?;
        if other.is_weak() {
            return Err(refuse());
        }
        let product = other.to_montgomery() * self.pair().to_scalar();
        Ok(Zeroizing::new(product.to_bytes()))
    }

    /// Signs an agreement.
    pub fn sign(&self, agreement: &Agreement) -> MemberSignature {
        self.sign_message(&agreement.message())
    }

    pub(crate) fn sign_message(&self, message: &[u8]) -> MemberSignature {
        MemberSignature(self.sign_bytes(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    fn schema() -> Schema {
        let column =
            |name| format!(r#"{{"name":"{name}","kind":"categorical","categories":["x","y"]}}"#);
        let columns = ["a", "b", "c"].map(column).join(",");
        let json = format!(r#"{{"name":"t","columns":[{columns}]}}"#);
        Schema::from_json("t.json", json.as_bytes()).unwrap()
    }

    fn key(number: u64) -> HolderSigningKey {
        HolderSigningKey::random(&mut ChaCha20Rng::seed_from_u64(number))
    }

    fn roster(partition: Partition, columns: &[&[&str]]) -> Roster {
        let member = |(number, columns): (u64, &&[&str])| Member {
            account: format!("holder{number}@example.org"),
            columns: columns.iter().map(|&c| c.to_owned()).collect(),
            record_bound: 100 + number,
            key: key(number).public(),
        };
        Roster {
            partition,
            honest: 1,
            holders: (0..).zip(columns).map(member).collect(),
        }
    }

    #[test]
    fn roster_check_assigns_attributes_to_holders() {
        let records = roster(Partition::Records, &[&[], &[], &[]]);
        let holders = records.check(&schema(), 303).unwrap();
        assert_eq!(
            (holders.count(), holders.honest(), holders.owners()),
            (3, 1, None)
        );
        let columns = roster(Partition::Columns, &[&["c", "a"], &["b"]]);
        let holders = columns.check(&schema(), 101).unwrap();
        assert_eq!(holders.owners(), Some(&[0, 1, 0][..]));
        let json = serde_json::to_string(&columns).unwrap();
        assert_eq!(serde_json::from_str::<Roster>(&json).unwrap(), columns);
        let renamed = json.replace("\"honest\"", "\"trust\"");
        let refused = serde_json::from_str::<Roster>(&renamed)
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with("unknown field `trust`"), "{refused}");
        assert_eq!(columns.holders[0].fingerprint().len(), 8 * 4 + 7);
    }

    #[test]
    fn invalid_rosters_are_rejected_with_the_field() {
        let refused = |roster: &Roster, bound, word: &str| {
            let error = roster.check(&schema(), bound).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        let records = roster(Partition::Records, &[&[], &[]]);
        refused(&records, 200, "record_bound");
        refused(&roster(Partition::Records, &[]), 200, "holders");
        refused(&roster(Partition::Records, &[&["a"], &[]]), 300, "columns");
        refused(&roster(Partition::Columns, &[&["a"], &["b"]]), 300, "\"c\"");
        refused(
            &roster(Partition::Columns, &[&["a", "c"], &["b", "c"]]),
            300,
            "twice",
        );
        refused(
            &roster(Partition::Columns, &[&["a", "c", "d"], &["b"]]),
            300,
            "\"d\"",
        );
        refused(
            &roster(Partition::Columns, &[&["a", "b", "c"], &[]]),
            300,
            "holder 2: its columns must form a table",
        );
        let change = |change: &dyn Fn(&mut Roster)| {
            let mut changed = records.clone();
            change(&mut changed);
            changed
        };
        refused(&change(&|r| r.honest = 3), 300, "relied upon");
        refused(&change(&|r| r.honest = 0), 300, "relied upon");
        refused(
            &change(&|r| r.holders[1].key = r.holders[0].key),
            300,
            "key",
        );
        refused(&change(&|r| r.holders[1].key = [0; 32]), 300, "key");
        refused(
            &change(&|r| r.holders[1].account = r.holders[0].account.clone()),
            300,
            "account",
        );
        refused(&change(&|r| r.holders[0].account.push(' ')), 300, "account");
        refused(
            &change(&|r| r.holders[0].record_bound = 0),
            300,
            "record_bound",
        );
    }

    /// A column of two attributes belongs to one holder, and identifiers belong to none.
    #[test]
    fn columns_with_two_attributes_belong_to_one_holder() {
        let json = r#"{"name":"t","target":"b","columns":[
            {"name":"n","kind":"identifier","pattern":"[0-9]{6}"},
            {"name":"a","kind":"number","decimals":0,"min":0,"max":100,"bins":4,"digits":5},
            {"name":"b","kind":"categorical","categories":["x","y"]}]}"#;
        let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
        let columns = roster(Partition::Columns, &[&["b"], &["a"]]);
        let holders = columns.check(&schema, 101).unwrap();
        assert_eq!(holders.owners(), Some(&[1, 1, 0][..]));
        let parts = [0, 1].map(|number| columns.part(&schema, number).unwrap());
        assert_eq!(parts[0].domain().sizes(), [2]);
        assert_eq!(parts[1].domain().len(), 2);
        let by_attribute = roster(Partition::Columns, &[&["b"], &["a", "a (digit)"]]);
        let error = by_attribute.check(&schema, 101).unwrap_err().to_string();
        assert!(error.contains("no column \"a (digit)\""), "{error}");
        let identifier = roster(Partition::Columns, &[&["b", "a"], &["n"]]);
        assert!(matches!(
            identifier.check(&schema, 101),
            Err(Error::Terms(..))
        ));
        assert!(matches!(columns.part(&schema, 2), Err(Error::Terms(..))));
    }

    /// A signature covers one dataset, one set of terms and one set of keys, to the bit.
    #[test]
    fn signature_of_a_changed_agreement_is_rejected() {
        let roster = roster(Partition::Records, &[&[], &[]]);
        let agreement = Agreement {
            dataset: DatasetId([1; 16]),
            terms: [2; 32],
            public_key: [3; 32],
            evaluation_keys: [4; 32],
        };
        let signature = key(0).sign(&agreement);
        agreement.verify(&roster.holders[0], &signature).unwrap();
        let other = agreement
            .verify(&roster.holders[1], &signature)
            .unwrap_err();
        assert!(other.to_string().contains("holder1@example.org"));
        for bit in 0..8 * 32 {
            let (byte, mask) = (bit / 8, 1 << (bit % 8));
            let flip = |change: &dyn Fn(&mut Agreement)| {
                let mut changed = agreement;
                change(&mut changed);
                assert!(matches!(
                    changed.verify(&roster.holders[0], &signature),
                    Err(Error::Signature(..))
                ));
            };
            flip(&|a| a.dataset.0[byte % 16] ^= mask);
            flip(&|a| a.terms[byte] ^= mask);
            flip(&|a| a.public_key[byte] ^= mask);
            flip(&|a| a.evaluation_keys[byte] ^= mask);
            let mut changed = signature;
            changed.0[2 * byte] ^= mask;
            assert!(matches!(
                agreement.verify(&roster.holders[0], &changed),
                Err(Error::Signature(..))
            ));
        }
    }

    #[test]
    fn malformed_signature_texts_are_rejected() {
        let signature = MemberSignature([0xab; 64]);
        let json = serde_json::to_string(&signature).unwrap();
        assert_eq!(
            serde_json::from_str::<MemberSignature>(&json).unwrap(),
            signature
        );
        for wrong in [
            json.replace("ab", "AB"),
            json.replacen("ab", "", 1),
            json.replacen("ab", "+1", 1),
        ] {
            let refused = serde_json::from_str::<MemberSignature>(&wrong)
                .unwrap_err()
                .to_string();
            let words = "a signature has 128 hexadecimal digits in lower case";
            assert!(refused.starts_with(words), "{refused}");
        }
    }
}
