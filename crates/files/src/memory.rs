//! The usage history: which tables this machine's programs have used, and at what privacy cost.
//!
//! The costs of several datasets or runs over the same records add up. No service can know that two tables have the
//! same records; only their holder can. The history identifies a file by its HMAC-SHA256 (RFC 2104) under a random key
//! that never leaves this folder. Without the key, nobody can test whether a guessed table was used. The history is
//! never sent anywhere.

mod account;
mod cost;
mod parties;

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use fhaim_domain::counted;
use fhaim_dp::Rho;
use hmac::{Hmac, Mac};
use rand::{TryRngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

pub use self::cost::{Unit, UseCost};
use self::{
    account::Account,
    parties::{Summary, Used, each},
};
use crate::{
    Error,
    ask::{ask, can_ask},
    data::Data,
    home, note,
};

const KEY_BYTES: usize = 32;

/// The purpose of a use of records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Use {
    /// A dataset at a service.
    Dataset {
        /// Its identifier.
        id: Uuid,
        /// Its generation service.
        server: String,
    },
    /// A privately drafted schema.
    Draft {
        /// File of the schema.
        out: String,
    },
    /// A run in one process.
    Run {
        /// File of the synthetic table.
        out: String,
    },
}

/// HMAC-SHA-256 of a table under the key of this machine.
type RecordDigest = [u8; 32];

/// One use of some records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "EntryForm", into = "EntryForm")]
struct Entry {
    records: RecordDigest,
    used_for: Use,
    cost: UseCost,
}

/// Content of the history file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    version: u32,
    uses: Vec<Entry>,
}

/// The version of [`FileForm`].
const VERSION: u32 = 1;

/// An entry as stored. Epsilon and delta are text, because a JSON number may be read back one unit in the last place
/// off.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    #[serde(with = "fhaim_dp::hex_digest")]
    records: RecordDigest,
    used_for: Use,
    program: String,
    unit: Unit,
    epsilon: String,
    delta: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rho: Option<Rho>,
}

impl TryFrom<EntryForm> for Entry {
    type Error = String;

    fn try_from(form: EntryForm) -> Result<Self, Self::Error> {
        let number = |name: &str, text: &str, most: f64| match text.parse::<f64>() {
            Ok(value) if value >= 0.0 && value <= most => Ok(value),
            _ => Err(format!(
                "{name} is {text:?}, not a number from 0 to {most:e}"
            )),
        };
        Ok(Self {
            records: form.records,
            used_for: form.used_for,
            cost: UseCost {
                program: form.program,
                unit: form.unit,
                epsilon: number("epsilon", &form.epsilon, f64::MAX)?,
                delta: number("delta", &form.delta, 1.0)?,
                rho: form.rho,
            },
        })
    }
}

impl From<Entry> for EntryForm {
    fn from(entry: Entry) -> Self {
        let UseCost {
            program,
            unit,
            epsilon,
            delta,
            rho,
        } = entry.cost;
        Self {
            records: entry.records,
            used_for: entry.used_for,
            program,
            unit,
            // This format has enough digits to read back the same number.
            epsilon: format!("{epsilon:e}"),
            delta: format!("{delta:e}"),
            rho,
        }
    }
}

/// The history's folder, key and entries. The lock keeps other programs from changing them.
struct Memory {
    folder: PathBuf,
    key: Zeroizing<Vec<u8>>,
    entries: Vec<Entry>,
    lock: File,
}

/// Digests of looked-up records: those of one table, or of each party's table.
pub struct KnownRecords {
    digests: Vec<RecordDigest>,
}

/// Looked-up tables.
struct Found {
    folder: PathBuf,
    digests: Vec<RecordDigest>,
    /// The earlier uses of each table.
    before: Vec<Vec<Entry>>,
}

/// Looks up a table before its records are used at the cost `next`.
///
/// If the table was used before, reports the earlier uses and their total cost with `next`, and asks whether to
/// continue unless `yes`. Uses for the dataset `same` are ignored: the caller resumes its upload.
///
/// # Errors
/// [`Error::Declined`] if the user answers no.
pub fn look_up(
    data: impl Into<Data>,
    next: UseCost,
    delta: f64,
    same: Option<Uuid>,
    yes: bool,
) -> Result<Option<KnownRecords>, Error> {
    let Some(found) = Found::of([&data.into()], same) else {
        return Ok(None);
    };
    let used = found.before.first().filter(|before| !before.is_empty());
    if let Some(before) = used {
        note(Account {
            before,
            next,
            delta,
        });
        agree(yes)?;
    }
    Ok(Some(found.records()))
}

/// Like [`look_up`], for the tables of several parties, each with its own cost.
///
/// Makes one remark about all tables, on one line if `short`, and asks one question.
///
/// # Errors
/// [`Error::Declined`] if the user answers no.
pub fn look_up_parties(
    parties: &[(Data, UseCost)],
    delta: f64,
    (yes, short): (bool, bool),
) -> Result<Option<KnownRecords>, Error> {
    if let [(alone, next)] = parties {
        return look_up(alone, next.clone(), delta, None, yes);
    }
    let Some(found) = Found::of(parties.iter().map(|(data, _)| data), None) else {
        return Ok(None);
    };
    let used = (parties.iter().zip(&found.before)).filter(|(_, before)| !before.is_empty());
    let used = used.map(|((data, next), before)| Used {
        name: data.name(),
        account: Account {
            before,
            next: next.clone(),
            delta,
        },
    });
    let used: Vec<Used<'_>> = used.collect();
    if !used.is_empty() {
        note(Summary {
            each: each(&used, &found.folder),
            used: &used,
            parties: parties.len(),
            short,
        });
        agree(yes)?;
    }
    Ok(Some(found.records()))
}

/// Asks a user at the terminal whether to use the records again, unless `yes`.
fn agree(yes: bool) -> Result<(), Error> {
    if !yes && can_ask() && !ask("Use them again?")? {
        return Err(Error::Declined);
    }
    Ok(())
}

/// Reports the datasets (with their rho) that are not in this machine's history.
///
/// Another machine created them, so their records are unknown here.
pub fn tell_of_unknown(datasets: impl Iterator<Item = (Uuid, f64)>) {
    let Ok(memory) = Memory::open() else {
        return; // looking up the table has reported the error
    };
    let unknown = datasets.filter(|&(dataset, _)| !memory.knows(dataset));
    let unknown: Vec<String> = unknown
        .map(|(dataset, rho)| format!("  dataset {dataset}: rho {rho:.6} for all its runs"))
        .collect();
    if unknown.is_empty() {
        return;
    }
    note(format_args!(
        "{} with this schema, created on another machine: if the records are the same as here, the \
         privacy costs add up:\n{}",
        counted(unknown.len(), "other dataset"),
        unknown.join("\n")
    ));
}

impl Found {
    /// Looks up tables. If that fails, makes a remark and returns `None`: everything else works without the history.
    fn of<'a>(tables: impl IntoIterator<Item = &'a Data>, same: Option<Uuid>) -> Option<Self> {
        let found = Self::read(tables, same).map_err(|error| {
            note(format_args!(
                "cannot tell whether these records were used before, and cannot record this use: {error}. Restore the file \
                 from a backup, or move it away to start a new history"
            ));
        });
        found.ok()
    }

    fn read<'a>(
        tables: impl IntoIterator<Item = &'a Data>,
        same: Option<Uuid>,
    ) -> Result<Self, Error> {
        let Memory {
            folder,
            key,
            entries,
            lock,
        } = Memory::open()?;
        // Other programs need not wait while the tables are read.
        drop(lock);
        let digests = tables.into_iter().map(|table| digest(&key, table));
        let digests = digests.collect::<Result<Vec<_>, _>>()?;
        let mut uses: HashMap<RecordDigest, Vec<Entry>> = HashMap::new();
        for entry in entries {
            if !entry.is_of(same) {
                uses.entry(entry.records).or_default().push(entry);
            }
        }
        // Two parties may have the same records.
        let before = digests.iter().map(|digest| uses.get(digest).cloned());
        Ok(Self {
            folder,
            before: before.map(Option::unwrap_or_default).collect(),
            digests,
        })
    }

    fn records(self) -> KnownRecords {
        KnownRecords {
            digests: self.digests,
        }
    }
}

impl KnownRecords {
    /// Adds a use of the records and its cost to the history.
    pub fn remember(&self, used_for: &Use, cost: UseCost) {
        self.remember_each(used_for, [Some(cost)]);
    }

    /// Like [`KnownRecords::remember`], for parties' tables in their order, each at its own cost if it has one.
    ///
    /// Writes all entries at once, so that a killed program records either all of them or none.
    pub fn remember_each(&self, used_for: &Use, costs: impl IntoIterator<Item = Option<UseCost>>) {
        let uses = self.digests.iter().zip(costs);
        let entries = uses.filter_map(|(&records, cost)| {
            Some(Entry {
                records,
                used_for: used_for.clone(),
                cost: cost?,
            })
        });
        let remembered = Memory::open().and_then(|memory| memory.add(entries.collect()));
        if let Err(error) = remembered {
            note(format_args!(
                "cannot record this use of the records in the history: {error}"
            ));
        }
    }
}

impl Entry {
    /// Whether the entry belongs to this dataset.
    fn is_of(&self, dataset: Option<Uuid>) -> bool {
        matches!(self.used_for, Use::Dataset { id, .. } if Some(id) == dataset)
    }
}

impl Memory {
    fn open() -> Result<Self, Error> {
        let folder = home::made(home::memory()?)?;
        let lock = home::lock(&folder.join("memory.lock"))?;
        let path = folder.join("memory.json");
        let entries = match home::read(&path)? {
            Some(text) => decode(&text).map_err(|problem| Error::Content { path, problem })?,
            None => Vec::new(),
        };
        let key = key(&folder.join("memory.key"), entries.is_empty())?;
        Ok(Self {
            folder,
            key,
            entries,
            lock,
        })
    }

    fn knows(&self, dataset: Uuid) -> bool {
        self.entries.iter().any(|entry| entry.is_of(Some(dataset)))
    }

    fn add(mut self, new: Vec<Entry>) -> Result<(), Error> {
        for entry in new {
            let is_dataset = matches!(entry.used_for, Use::Dataset { .. });
            let is_known = |e: &Entry| e.records == entry.records && e.used_for == entry.used_for;
            // A dataset is paid for once, no matter how often its upload is resumed.
            if !(is_dataset && self.entries.iter().any(is_known)) {
                self.entries.push(entry);
            }
        }
        let path = self.folder.join("memory.json");
        let form = FileForm {
            version: VERSION,
            uses: self.entries,
        };
        let mut text = serde_json::to_vec_pretty(&form).map_err(|error| Error::Write {
            path: path.clone(),
            source: error.into(),
        })?;
        text.push(b'\n');
        home::replace(&path, &text)
    }
}

/// Parses the history file.
fn decode(text: &[u8]) -> Result<Vec<Entry>, String> {
    let form: FileForm = serde_json::from_slice(text).map_err(|error| {
        format!("it is damaged, or another version of fhaim wrote it ({error})")
    })?;
    match form.version {
        VERSION => Ok(form.uses),
        other => Err(format!(
            "it has version {other}, but this program reads version {VERSION}"
        )),
    }
}

/// Returns a table's digest under this machine's key.
fn digest(key: &[u8], data: &Data) -> Result<RecordDigest, Error> {
    // This cannot fail: HMAC accepts keys of any length.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| Error::NoRandomness)?;
    let mut text = data.open()?;
    let mut piece = Zeroizing::new(vec![0; 1 << 16]);
    loop {
        match text.read(&mut piece).map_err(|source| data.fault(source))? {
            0 => return Ok(mac.finalize().into_bytes().into()),
            bytes => mac.update(&piece[..bytes]),
        }
    }
}

/// Reads the key. If it does not exist and the history is empty, creates it.
fn key(path: &Path, is_new: bool) -> Result<Zeroizing<Vec<u8>>, Error> {
    match home::read(path)?.map(Zeroizing::new) {
        Some(key) if key.len() == KEY_BYTES => return Ok(key),
        None if is_new => {}
        other => {
            let what = match other {
                Some(_) => "the key has the wrong length",
                None => "the key is missing",
            };
            let problem = format!(
                "{what}, and without it no table can be recognised; restore it from a backup, or delete it and memory.json \
                 to start a new history"
            );
            return Err(Error::Content {
                path: path.to_owned(),
                problem,
            });
        }
    }
    let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
    OsRng
        .try_fill_bytes(&mut key)
        .map_err(|_| Error::NoRandomness)?;
    home::replace(path, &key)?;
    Ok(key)
}

#[cfg(test)]
mod tests;
