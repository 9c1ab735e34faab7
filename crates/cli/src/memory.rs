//! What this machine remembers of the records that its programs have used.
//!
//! Two datasets over the same records, or two runs, add up, and no service can know that they are
//! the same: only their holder can. A file is known again by its HMAC-SHA256 (RFC 2104) under a
//! random key that never leaves this folder, so that what is kept tells nobody who lacks the key
//! whether a guessed table was used. Nothing of this is ever sent.

use std::{
    fmt,
    io::Read,
    path::{Path, PathBuf},
};

use fhaim_api::Digest;
use fhaim_domain::counted;
use fhaim_dp::{Rho, accounting};
use hmac::{Hmac, Mac};
use rand::{TryRngCore, rngs::OsRng};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;
use zeroize::Zeroizing;

use crate::{
    ask::{ask, can_ask},
    error::Error,
    home,
    input::Data,
    output,
    remarks::note,
};

const KEY_BYTES: usize = 32;

/// What records were used for.
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
    /// A schema drafted privately.
    Draft {
        /// The schema.
        out: String,
    },
    /// A run in one process.
    Run {
        /// The synthetic table.
        out: String,
    },
}

/// One use of some records.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    records: Digest,
    used_for: Use,
    /// The whole budget of a dataset; what a run spent.
    rho: Rho,
}

/// The memory's folder, its key and what is in it.
struct Memory {
    folder: PathBuf,
    key: Zeroizing<Vec<u8>>,
    entries: Vec<Entry>,
}

/// Records that were looked up.
pub struct Records {
    digest: Digest,
}

/// What some records have cost, and what they will.
struct Account<'a> {
    before: &'a [Entry],
    next: Rho,
    delta: f64,
}

/// Looks a file up before its records are used, at a cost of `next`: says what it was used for
/// before, what that and `next` cost together, and asks whoever is there, unless `yes`. The use
/// for dataset `same` does not count: it is the one that goes on.
///
/// # Errors
/// [`Error::Usage`] where the answer is no.
pub fn look_up(
    data: impl Into<Data>,
    next: Rho,
    delta: f64,
    same: Option<Uuid>,
    yes: bool,
) -> Result<Option<Records>, Error> {
    let looked_up = Memory::open().and_then(|memory| {
        let digest = memory.digest(&data.into())?;
        Ok((memory.uses(digest, same), digest))
    });
    let (before, digest) = match looked_up {
        Ok(found) => found,
        // The memory is a help: without it everything else works.
        Err(error) => {
            note(format_args!(
                "whether these records were used before is not known: {error}"
            ));
            return Ok(None);
        }
    };
    if !before.is_empty() {
        note(Account {
            before: &before,
            next,
            delta,
        });
        if !yes && can_ask() && !ask("Use them again?")? {
            return Err(Error::Usage("nothing was done".to_owned()));
        }
    }
    Ok(Some(Records { digest }))
}

/// Says which of some datasets, each with its rho, this machine remembers nothing of: it cannot
/// tell over which records they were made, by another machine or an earlier release of this
/// program.
pub fn tell_of_unknown(datasets: impl Iterator<Item = (Uuid, f64)>) {
    let Ok(memory) = Memory::open() else {
        return; // the caller was told
    };
    let unknown = datasets.filter(|&(dataset, _)| !memory.knows(dataset));
    let unknown: Vec<String> = unknown
        .map(|(dataset, rho)| format!("  dataset {dataset}: rho {rho:.6} in all its runs"))
        .collect();
    if unknown.is_empty() {
        return;
    }
    note(format_args!(
        "of {} with this schema it is not remembered here over which records; over these, what \
         they cost adds up:\n{}",
        counted(unknown.len(), "other dataset"),
        unknown.join("\n")
    ));
}

impl Records {
    /// Remembers what the records are used for, and what that costs.
    pub fn remember(&self, used_for: Use, rho: Rho) {
        if let Err(error) = Memory::open().and_then(|memory| memory.add(self.digest, used_for, rho))
        {
            note(format_args!(
                "that these records were used is not remembered: {error}"
            ));
        }
    }
}

impl Memory {
    fn open() -> Result<Self, Error> {
        let folder = home::made(home::memory()?)?;
        let key = {
            let _lock = home::lock(&folder.join("memory.lock"))?;
            key(&folder.join("memory.key"))?
        };
        let path = folder.join("memory.json");
        let entries = match home::read(&path)? {
            Some(text) => serde_json::from_slice(&text).map_err(|error| Error::Content {
                path,
                problem: error.to_string(),
            })?,
            None => Vec::new(),
        };
        Ok(Self {
            folder,
            key,
            entries,
        })
    }

    /// A table's digest under this machine's key.
    fn digest(&self, data: &Data) -> Result<Digest, Error> {
        let mut mac = self.mac()?;
        let mut text = data.open()?;
        let mut piece = Zeroizing::new(vec![0; 1 << 16]);
        loop {
            match text.read(&mut piece).map_err(|source| data.fault(source))? {
                0 => return Ok(Digest(mac.finalize().into_bytes().into())),
                bytes => mac.update(&piece[..bytes]),
            }
        }
    }

    fn mac(&self) -> Result<Hmac<Sha256>, Error> {
        // Keys of any length are taken: this cannot fail.
        Hmac::new_from_slice(&self.key).map_err(|_| Error::NoRandomness)
    }

    fn knows(&self, dataset: Uuid) -> bool {
        let is_of =
            |entry: &Entry| matches!(entry.used_for, Use::Dataset { id, .. } if id == dataset);
        self.entries.iter().any(is_of)
    }

    fn uses(&self, records: Digest, same: Option<Uuid>) -> Vec<Entry> {
        let is_other = |entry: &&Entry| match &entry.used_for {
            Use::Dataset { id, .. } => Some(*id) != same,
            Use::Draft { .. } | Use::Run { .. } => true,
        };
        let of_records = self.entries.iter().filter(|e| e.records == records);
        of_records.filter(is_other).cloned().collect()
    }

    fn add(self, records: Digest, used_for: Use, rho: Rho) -> Result<(), Error> {
        let _lock = home::lock(&self.folder.join("memory.lock"))?;
        // Another program may have added to it meanwhile.
        let path = self.folder.join("memory.json");
        let mut entries: Vec<Entry> = match home::read(&path)? {
            Some(text) => serde_json::from_slice(&text).unwrap_or(self.entries),
            None => Vec::new(),
        };
        let is_dataset = matches!(used_for, Use::Dataset { .. });
        let known = (entries.iter()).any(|e| e.records == records && e.used_for == used_for);
        // A dataset is paid for once, however often its upload is gone on with.
        if !(is_dataset && known) {
            entries.push(Entry {
                records,
                used_for,
                rho,
            });
        }
        home::replace(&path, output::to_json(&entries)?.as_bytes())
    }
}

/// The key, made where there is none yet.
fn key(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    if let Some(key) = home::read(path)?.map(Zeroizing::new) {
        if key.len() == KEY_BYTES {
            return Ok(key);
        }
        let problem = "it is not the key that it was, and without it no record is known again; \
                       put it back, or remove it to begin anew and know nothing of before";
        return Err(Error::Content {
            path: path.to_owned(),
            problem: problem.to_owned(),
        });
    }
    let mut key = Zeroizing::new(vec![0; KEY_BYTES]);
    OsRng
        .try_fill_bytes(&mut key)
        .map_err(|_| Error::NoRandomness)?;
    home::replace(path, &key)?;
    Ok(key)
}

impl fmt::Display for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "these records were used before, and what they cost adds up:"
        )?;
        for Entry { used_for, rho, .. } in self.before {
            let rho = rho.to_f64();
            match used_for {
                Use::Dataset { id, server } => {
                    writeln!(
                        f,
                        "  dataset {id} at {server}: rho {rho:.6} in all its runs"
                    )?;
                }
                Use::Draft { out } => {
                    writeln!(f, "  a schema drafted privately, {out}: rho {rho:.6}")?;
                }
                Use::Run { out } => writeln!(f, "  a run here, into {out}: rho {rho:.6}")?,
            }
        }
        let before = Rho::checked_sum(self.before.iter().map(|entry| entry.rho));
        let together = before.and_then(|before| before.checked_add(self.next));
        let (Some(before), Some(together)) = (before, together) else {
            return f.write_str("together more than any budget");
        };
        let [so_far, with_this] = [before, together].map(|rho| epsilon(rho, self.delta));
        write!(
            f,
            "together rho {:.6}, epsilon {so_far:.3} at delta {delta:e}; with this rho {:.6}, \
             epsilon {with_this:.3}",
            before.to_f64(),
            together.to_f64(),
            delta = self.delta
        )
    }
}

fn epsilon(rho: Rho, delta: f64) -> f64 {
    accounting::epsilon(rho, delta).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_add_up_in_rho_and_are_told_as_epsilon() {
        let rho = accounting::rho(1.0, 1e-9).unwrap();
        let entry = |out: &str| Entry {
            records: Digest::of(b"table"),
            used_for: Use::Run {
                out: out.to_owned(),
            },
            rho,
        };
        let told = Account {
            before: &[entry("a.csv"), entry("b.csv")],
            next: rho,
            delta: 1e-9,
        };
        let told = told.to_string();
        let thrice = Rho::checked_sum([rho; 3]).unwrap();
        let epsilon = accounting::epsilon(thrice, 1e-9).unwrap();
        // Less than three times 1, more than its root.
        assert!((1.73..3.0).contains(&epsilon));
        assert!(told.contains("a.csv") && told.contains("b.csv"), "{told}");
        let with_this = format!("with this rho {:.6}, epsilon {epsilon:.3}", thrice.to_f64());
        assert!(told.ends_with(&with_this), "{told}");
    }
}
