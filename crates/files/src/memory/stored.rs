//! The file of the usage history.

use super::{Unit, Use, UseCost, sketch::Sketch};
use fhaim_dp::Rho;
use serde::{Deserialize, Serialize};

/// HMAC-SHA-256 of a file under the key of this machine.
pub(super) type FileDigest = [u8; 32];

/// Records, as the history identifies them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Identity {
    /// By a sample of them.
    Records(Sketch),
    /// By all bytes of their file, which is no table.
    File(#[serde(with = "fhaim_dp::hex_digest")] FileDigest),
}

/// The tables that were used, and their uses.
#[derive(Debug, Default, PartialEq)]
pub(super) struct History {
    pub tables: Vec<Identity>,
    pub uses: Vec<Entry>,
}

/// One use of some records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "EntryForm", into = "EntryForm")]
pub(super) struct Entry {
    /// Place in [`History::tables`].
    pub table: usize,
    pub used_for: Use,
    pub cost: UseCost,
}

/// Content of the history file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    version: u32,
    tables: Vec<Identity>,
    uses: Vec<Entry>,
}

/// The version of [`FileForm`].
const VERSION: u32 = 1;

/// The field of [`FileForm`] that files of every version have.
#[derive(Deserialize)]
struct VersionForm {
    version: u32,
}

/// An entry as stored. Epsilon and delta are text, because a JSON number may be read back one unit in the last place
/// off.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    table: usize,
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
            table: form.table,
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
            table: entry.table,
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

impl History {
    /// Parses the history file.
    ///
    /// # Errors
    /// A description of the problem.
    pub fn decode(text: &[u8]) -> Result<Self, String> {
        let damaged = |error: serde_json::Error| format!("it is damaged ({error})");
        let VersionForm { version } = serde_json::from_slice(text).map_err(damaged)?;
        if version != VERSION {
            return Err(format!(
                "it has version {version}, but this program reads version {VERSION}"
            ));
        }
        let FileForm { tables, uses, .. } = serde_json::from_slice(text).map_err(damaged)?;
        if uses.iter().any(|entry| entry.table >= tables.len()) {
            return Err("it is damaged: a use has no table".to_owned());
        }
        Ok(Self { tables, uses })
    }

    /// Returns the content of the history file.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn encode(self) -> Result<Vec<u8>, serde_json::Error> {
        let form = FileForm {
            version: VERSION,
            tables: self.tables,
            uses: self.uses,
        };
        let mut text = serde_json::to_vec_pretty(&form)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Adds a use of some records.
    pub fn add(&mut self, records: &Identity, used_for: &Use, cost: UseCost) {
        let known = self.tables.iter().position(|table| table == records);
        let table = known.unwrap_or_else(|| {
            self.tables.push(records.clone());
            self.tables.len() - 1
        });
        let is_known = |e: &Entry| e.table == table && e.used_for == *used_for;
        // A dataset is paid for once, no matter how often its upload is resumed.
        if !(matches!(used_for, Use::Dataset { .. }) && self.uses.iter().any(is_known)) {
            self.uses.push(Entry {
                table,
                used_for: used_for.clone(),
                cost,
            });
        }
    }

    /// Removes the uses that `is_void` selects, and the tables that have no other uses.
    pub fn remove(&mut self, is_void: impl Fn(&Entry) -> bool) {
        self.uses.retain(|entry| !is_void(entry));
        let mut kept = Vec::new();
        for entry in &mut self.uses {
            let place = kept.iter().position(|table| *table == entry.table);
            entry.table = place.unwrap_or_else(|| {
                kept.push(entry.table);
                kept.len() - 1
            });
        }
        let tables = kept.iter().filter_map(|&table| self.tables.get(table));
        self.tables = tables.cloned().collect();
    }
}
