//! The usage history: which tables this machine's programs have used, and at what privacy cost.
//!
//! The costs of several datasets or runs over the same records add up. No service can know that two tables have the
//! same records; only their holder can. The history identifies a table by a sample of keyed hashes of its records
//! (`sketch.rs`), so that the same records are recognised in any order and file format. The random key never leaves
//! this folder. Without the key, nobody can test whether a guessed record was used. Someone who has the folder with the
//! key can test it for the records of the sample, which are all records of a small table. The history is never sent
//! anywhere.

mod account;
mod cell;
mod cost;
mod index;
mod parties;
mod sketch;
mod stored;
mod total;
mod watch;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use fhaim_domain::counted;
use hmac::{Hmac, Mac};
use rand::{TryRngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

pub(crate) use self::sketch::Sketch;
use self::{
    account::Account,
    index::Index,
    parties::{Summary, Used, each},
    stored::{Entry, FileDigest, History, Identity},
};
pub use self::{
    cost::{Unit, UseCost},
    total::KnownSpending,
    watch::RecordWatch,
};
use crate::{
    Error, FormatArguments,
    consent::{EarlierUse, UseConsent},
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
        /// The run's journal, if an interrupted run can continue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        journal: Option<RunJournal>,
    },
}

/// What the history knows of the file to which a run writes its releases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunJournal {
    /// The run's random identifier, which the file has as well.
    pub id: Uuid,
    /// SHA-256 of each state in which the file may be, as hexadecimal text. While the file is replaced, these are the
    /// states before and after.
    pub states: Vec<String>,
}

/// A run in the history, compared with records that are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRun {
    /// The run's journal.
    pub journal: RunJournal,
    /// Whether the run used exactly the records that are looked up.
    pub has_these_records: bool,
}

/// Records to look up.
#[derive(Clone, Copy, Debug)]
pub enum RecordSource<'a> {
    /// A table. The history identifies it by its records, in any order and file format.
    Table(&'a Data, &'a FormatArguments),
    /// A file that is no table. The history identifies it by its bytes.
    Bytes(&'a Data),
}

/// The history with its folder and key. The lock keeps other programs from changing it.
struct Memory {
    folder: PathBuf,
    key: Zeroizing<Vec<u8>>,
    history: History,
    lock: File,
}

/// Looked-up records: those of one table, or of each party's table.
pub struct KnownRecords {
    identities: Vec<Identity>,
}

/// An earlier use of some records that are looked up.
struct Earlier {
    entry: Entry,
    /// Share of these records that was used.
    share: f64,
}

/// Looked-up tables.
struct Found {
    folder: PathBuf,
    identities: Vec<Identity>,
    /// The earlier uses of each table.
    before: Vec<Vec<Earlier>>,
}

/// Looks up records before they are used at the cost `next`.
///
/// If many of them were used before, reports the earlier uses and their total cost with `next`. Then asks whether to
/// continue, as `consent` says. Uses for the dataset or run `same` are ignored: the caller resumes
/// it.
///
/// # Errors
/// The errors of [`UseConsent::ask`]; the errors of reading the table.
pub fn look_up(
    records: RecordSource<'_>,
    next: UseCost,
    delta: f64,
    same: Option<Uuid>,
    consent: impl Into<UseConsent>,
) -> Result<Option<KnownRecords>, Error> {
    let found = Found::of([records], same)?;
    let before = found.as_ref().and_then(|found| found.before.first());
    let earlier = match before {
        None => EarlierUse::Unknown,
        Some(before) if before.is_empty() => EarlierUse::None,
        Some(before) => {
            note(Account {
                before,
                next,
                delta,
            });
            EarlierUse::Known
        }
    };
    consent.into().ask(earlier)?;
    Ok(found.map(Found::records))
}

/// Like [`look_up`], for the records of several parties, each with its own cost.
///
/// Makes one remark about all tables, on one line if `short`, and asks one question.
///
/// # Errors
/// The errors of [`look_up`].
pub fn look_up_parties(
    parties: &[(RecordSource<'_>, UseCost)],
    delta: f64,
    (yes, short): (bool, bool),
) -> Result<Option<KnownRecords>, Error> {
    if let [(alone, next)] = parties {
        return look_up(*alone, next.clone(), delta, None, yes);
    }
    let Some(found) = Found::of(parties.iter().map(|(records, _)| *records), None)? else {
        UseConsent::from(yes).ask(EarlierUse::Unknown)?;
        return Ok(None);
    };
    let used = (parties.iter().zip(&found.before)).filter(|(_, before)| !before.is_empty());
    let used = used.map(|((records, next), before)| Used {
        name: records.data().name(),
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
        UseConsent::from(yes).ask(EarlierUse::Known)?;
    }
    Ok(Some(found.records()))
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

/// Returns the states in which the releases file of a run may be, or `None` if the history does not have the run.
///
/// # Errors
/// The history cannot be read.
pub fn states_of_run(id: Uuid) -> Result<Option<Vec<String>>, Error> {
    let history = Memory::open()?.history;
    Ok(history
        .journal(id)
        .map(|(_, journal)| journal.states.clone()))
}

/// Removes a dataset from the history. Call it only if the dataset released nothing, and cannot release anything.
pub fn forget_dataset(dataset: Uuid) {
    let forgotten = Memory::open().and_then(|mut memory| {
        if memory.knows(dataset) {
            memory.history.remove(|entry| entry.is_of(Some(dataset)));
            memory.store()?;
        }
        Ok(())
    });
    if let Err(error) = forgotten {
        note(format_args!(
            "cannot remove the dataset from the history of used records, which counts its budget as spent: {error}"
        ));
    }
}

impl RecordSource<'_> {
    fn data(&self) -> &Data {
        match self {
            Self::Table(data, _) | Self::Bytes(data) => data,
        }
    }

    fn identify(&self, key: &[u8]) -> Result<Identity, Error> {
        match self {
            Self::Table(data, format) => match data.sketch().get() {
                Some(sketch) => Ok(Identity::Records(sketch.clone())),
                None => Ok(Identity::Records(Sketch::of(key, data, format)?)),
            },
            Self::Bytes(data) => Ok(Identity::File(digest(key, data)?)),
        }
    }
}

impl Found {
    /// Looks up tables. If the history cannot be read, makes a remark and returns `None`.
    fn of<'a>(
        sources: impl IntoIterator<Item = RecordSource<'a>>,
        same: Option<Uuid>,
    ) -> Result<Option<Self>, Error> {
        let opened = Memory::open().map_err(|error| {
            note(format_args!(
                "cannot tell whether these records were used before, and cannot record this use: {error}. Restore the file \
                 from a backup, or move it away to start a new history"
            ));
        });
        let Ok(Memory {
            folder,
            key,
            history,
            lock,
        }) = opened
        else {
            return Ok(None);
        };
        // Other programs need not wait while the tables are read.
        drop(lock);
        let index = Index::of(&history);
        let (mut identities, mut before) = (Vec::new(), Vec::new());
        for source in sources {
            let records = source.identify(&key)?;
            let overlaps = index.overlaps(&records);
            let uses = history.uses.iter().filter(|entry| !entry.is_of(same));
            let uses = uses.filter_map(|entry| {
                Some(Earlier {
                    share: overlaps.get(&entry.table)?.share(),
                    entry: entry.clone(),
                })
            });
            before.push(uses.collect());
            identities.push(records);
        }
        Ok(Some(Self {
            folder,
            identities,
            before,
        }))
    }

    fn records(self) -> KnownRecords {
        KnownRecords {
            identities: self.identities,
        }
    }
}

impl KnownRecords {
    /// Adds a use of the records and its cost to the history. Call it before anyone sees a result.
    ///
    /// # Errors
    /// The history cannot be read or written. Then nobody may see a result.
    pub fn remember(&self, used_for: &Use, cost: UseCost) -> Result<(), Error> {
        self.remember_each(used_for, [Some(cost)])
    }

    /// Adds a run's cost so far to the history, or replaces the cost that the history has for this run. Call it before
    /// each write of the run's releases, with the states before and after, and again after the write, with the state
    /// after. The first of the journal's states is that of the file so far.
    ///
    /// # Errors
    /// [`Error::RunElsewhere`] if the history has other states of the run; the history cannot be read or written. Then
    /// the releases must not be written either.
    pub fn remember_run(
        &self,
        out: &Path,
        journal: RunJournal,
        cost: &UseCost,
    ) -> Result<(), Error> {
        let mut memory = Memory::open()?;
        let id = Some(journal.id);
        if let Some((_, known)) = memory.history.journal(journal.id)
            && let Some(state) = journal.states.first()
            && !known.states.contains(state)
        {
            return Err(Error::RunElsewhere);
        }
        memory.history.remove(|entry| entry.is_of(id));
        let used_for = Use::Run {
            out: out.display().to_string(),
            journal: Some(journal),
        };
        for records in &self.identities {
            memory.history.add(records, &used_for, cost.clone());
        }
        memory.store()
    }

    /// Returns a run of the history by its identifier.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn run(&self, id: Uuid) -> Result<Option<KnownRun>, Error> {
        let history = Memory::open()?.history;
        Ok(history.journal(id).map(|(entry, journal)| KnownRun {
            journal: journal.clone(),
            has_these_records: history.tables.get(entry.table) == self.identities.first(),
        }))
    }

    /// Like [`KnownRecords::remember`], for parties' tables in their order, each at its own cost if it has one.
    ///
    /// Writes all entries at once, so that a killed program records either all of them or none.
    ///
    /// # Errors
    /// As [`KnownRecords::remember`].
    pub fn remember_each(
        &self,
        used_for: &Use,
        costs: impl IntoIterator<Item = Option<UseCost>>,
    ) -> Result<(), Error> {
        let mut memory = Memory::open()?;
        for (records, cost) in self.identities.iter().zip(costs) {
            if let Some(cost) = cost {
                memory.history.add(records, used_for, cost);
            }
        }
        memory.store()
    }
}

impl History {
    /// Returns the entry and the journal of a run.
    fn journal(&self, id: Uuid) -> Option<(&Entry, &RunJournal)> {
        let entry = self.uses.iter().find(|entry| entry.is_of(Some(id)))?;
        match &entry.used_for {
            Use::Run {
                journal: Some(journal),
                ..
            } => Some((entry, journal)),
            _ => None,
        }
    }
}

impl Entry {
    /// Whether the entry belongs to this dataset or run.
    fn is_of(&self, same: Option<Uuid>) -> bool {
        let id = match &self.used_for {
            Use::Dataset { id, .. } => Some(*id),
            Use::Run { journal, .. } => journal.as_ref().map(|journal| journal.id),
            Use::Draft { .. } => None,
        };
        id.is_some() && id == same
    }
}

impl Memory {
    fn open() -> Result<Self, Error> {
        let folder = home::made(home::memory()?)?;
        let lock = home::lock(&folder.join("memory.lock"))?;
        let path = folder.join("memory.json");
        let history = match home::read(&path)? {
            Some(text) => {
                History::decode(&text).map_err(|problem| Error::Content { path, problem })?
            }
            None => History::default(),
        };
        let key = key(&folder.join("memory.key"), history.uses.is_empty())?;
        Ok(Self {
            folder,
            key,
            history,
            lock,
        })
    }

    fn knows(&self, dataset: Uuid) -> bool {
        (self.history.uses.iter()).any(|entry| entry.is_of(Some(dataset)))
    }

    fn store(self) -> Result<(), Error> {
        let path = self.folder.join("memory.json");
        let text = self.history.encode().map_err(|error| Error::Write {
            path: path.clone(),
            source: error.into(),
        })?;
        home::replace(&path, &text)
    }
}

/// Returns the digest of a file under this machine's key.
fn digest(key: &[u8], data: &Data) -> Result<FileDigest, Error> {
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
