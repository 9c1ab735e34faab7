//! Refusals that stay, and the loss that explains each one.

use std::time::Instant;

use fhaim_kit::{KEYSHARE, WITNESS};
use serde_json::Value;

use super::{COMPUTATION, CRYPTO, GENERATION, SetBack};

/// A loss of data that can be the reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A key service lost acts or keys of the dataset.
    Ledger,
    /// A computation service lost the upload.
    Upload,
    /// A service does not know the dataset, the upload or the job.
    Unknown,
}

/// Words of documented refusals.
const WORDS: [(&str, Cause); 12] = [
    // Before the other words, which these refusals also have.
    ("no longer has their upload", Cause::Upload),
    ("has no ledger of dataset", Cause::Unknown),
    ("set back", Cause::Ledger),
    ("is frozen", Cause::Ledger),
    ("keys have already been created", Cause::Ledger),
    ("has a receipt for keys", Cause::Ledger),
    ("does not have the keys of this dataset", Cause::Ledger),
    ("no longer has your part", Cause::Upload),
    ("bound to another upload", Cause::Upload),
    ("no keys for this dataset", Cause::Unknown),
    ("\"kind\":\"not-found\"", Cause::Unknown),
    // The same without --json.
    ("error: Not found", Cause::Unknown),
];

/// A refusal that stays when the command is repeated.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The error of the command or of the job.
    pub words: String,
    /// The loss that must have happened. `None` if the reason is not documented, or nothing happened for too long.
    pub cause: Option<Cause>,
}

impl Refusal {
    /// Returns the refusal that an error is, if it is a documented one.
    pub fn of(words: &str) -> Option<Self> {
        let (_, cause) = WORDS.iter().find(|(part, _)| words.contains(part))?;
        Some(Self {
            words: message(words),
            cause: Some(*cause),
        })
    }

    /// Returns the refusal for an error that stayed although all faults have ended.
    pub fn stuck(words: &str) -> Self {
        Self {
            words: message(words),
            cause: None,
        }
    }

    /// Returns whether a loss after `began` explains the refusal for a dataset.
    pub fn is_explained(&self, set_backs: &[SetBack], dataset: &str, began: Instant) -> bool {
        let mut later = set_backs.iter().filter(|set_back| set_back.at > began);
        match self.cause {
            Some(Cause::Ledger) => later.any(|set_back| set_back.lost.contains(dataset)),
            Some(Cause::Upload) => {
                later.any(|set_back| matches!(set_back.service, COMPUTATION | WITNESS))
            }
            Some(Cause::Unknown) => later.any(|set_back| match set_back.service {
                GENERATION | COMPUTATION | WITNESS => true,
                CRYPTO | KEYSHARE.. => set_back.lost.contains(dataset),
            }),
            None => false,
        }
    }
}

/// Returns the message of an error that a command printed as JSON.
fn message(words: &str) -> String {
    let last = words.trim().lines().last().unwrap_or_default();
    let report: Value = serde_json::from_str(last).unwrap_or_default();
    report["message"]
        .as_str()
        .unwrap_or(words)
        .trim()
        .to_owned()
}
