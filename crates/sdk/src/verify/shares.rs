//! Checks of releases by several holders of records, who compare the sum of their shares.

use fhaim_api::Digest;
use fhaim_api::dataset::Dataset;
use fhaim_domain::Version;
use fhaim_protocol::crypto::chain::Tip;
use fhaim_protocol::roster::HolderSigningKey;
use fhaim_protocol::shares::{Masks, unmask};
use fhaim_protocol::terms::PlanCore;
use fhaim_release::Statistic;
use fhaim_synth::verify::difference;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use uuid::Uuid;

use super::history::{Agreed, LedgerChain, TELL};
use super::{Asked, BY_COLUMNS, Fault, OTHER_TABLE, Own, Told, Verification};
use crate::ladder::replace;
use crate::{Client, Error, KeptLadder, Records};

impl Client {
    /// Computes a holder's share of all releases of a dataset of several holders of records: its summands, with masks
    /// that cancel only in the sum of all shares. Nothing is shared unless all records of the releases agree
    /// (docs/THREAT-MODEL.md, "Checking afterwards").
    ///
    /// # Errors
    /// [`Error::Unverifiable`] for a dataset of one holder or of columns, and for records other than the uploaded ones.
    /// A key that is not the roster's. [`Error::Contradicted`]. [`Error::Ladder`] if this machine's record cannot be
    /// read or written. The errors of the services.
    pub async fn share(
        &self,
        dataset: &Dataset,
        records: &Records,
        kept: &KeptLadder,
        key: &HolderSigningKey,
    ) -> Result<Share, Error> {
        let outline = summed(dataset)?;
        let (id, part) = (dataset.id, kept.part());
        if !kept.is_of(records) {
            return Err(Error::Unverifiable {
                dataset: id,
                reason: OTHER_TABLE,
            });
        }
        self.check_kept(dataset, kept).await?;
        let masks = Masks::new(part, &outline.members, key)?;
        let mut share = Share {
            version: Version,
            dataset: id,
            holder: part,
            releases: Vec::new(),
        };
        let Agreed { told, chain } = self.agreed(dataset, None).await?;
        let signed = chain.check_terms(id, &dataset.terms.0, part);
        signed.map_err(|reason| Error::Contradicted {
            dataset: id,
            reason,
        })?;
        let (records, key) = (records.clone(), kept.key().clone());
        let path = kept.path().with_extension(RECORD);
        let sharing = tokio::task::spawn_blocking(move || {
            let mut record = Record::read(id, path)?;
            record.take(&outline, &told, &chain)?;
            let mut own = Own::new(&records, &key, &outline)?;
            told.check(&outline, |asked| {
                if !asked.derived || is_square(asked) {
                    return None;
                }
                let summands = own.summands(asked)?;
                share.releases.push(SharedRelease {
                    statement: Digest(*asked.statement),
                    masked: masks.mask(asked.statement, &summands),
                });
                None
            });
            record.keep()?;
            Ok(share)
        });
        sharing.await.map_err(|_| Error::Interrupted)?
    }

    /// Records the releases of a job that has ended, next to the key of the upload's noise. A history that is invented
    /// later differs from the record, and gets no share. Returns whether there was anything to record: only holders of
    /// records or counts among several share, and only if the key was stored.
    ///
    /// # Errors
    /// [`Error::Contradicted`]. [`Error::Ladder`] if the record cannot be read or written. The errors of the services.
    pub async fn record(&self, dataset: &Dataset, job: Uuid, ladder: &Path) -> Result<bool, Error> {
        let Ok(outline) = summed(dataset) else {
            return Ok(false);
        };
        if KeptLadder::read(ladder, dataset.id)?.is_none() {
            return Ok(false);
        }
        let Agreed { told, chain } = self.agreed(dataset, Some(job)).await?;
        let (id, path) = (dataset.id, ladder.with_extension(RECORD));
        let recording = tokio::task::spawn_blocking(move || {
            let mut record = Record::read(id, path)?;
            record.take(&outline, &told, &chain)?;
            record.keep()
        });
        recording.await.map_err(|_| Error::Interrupted)??;
        Ok(true)
    }

    /// Compares every released integer of a dataset of several holders of records with the sum of their shares. It
    /// needs no table.
    ///
    /// # Errors
    /// [`Error::Unverifiable`] for a dataset of one holder or of columns, for shares of another dataset, and unless
    /// there is one share of each holder. Also the errors of the key service.
    pub async fn verify_shares(
        &self,
        dataset: &Dataset,
        shares: &[Share],
    ) -> Result<Verification, Error> {
        let outline = summed(dataset)?;
        let shares = in_order(dataset.id, outline.members.len(), shares)?;
        let told = self.told(dataset.id).await?;
        Ok(told.check(&outline, |asked| {
            if is_square(asked) {
                return Some(Fault::Square);
            }
            let mut masked = Vec::with_capacity(shares.len());
            for (number, share) in (0..).zip(&shares) {
                match share.get(asked.statement) {
                    Some(own) => masked.push(*own),
                    None => return Some(Fault::Unshared(number)),
                }
            }
            match unmask(&masked) {
                Some(expected) => difference(&expected, asked.released).map(Fault::from),
                None => Some(Fault::Statement),
            }
        }))
    }
}

/// The version of the file.
const SHARE_VERSION: u8 = 1;

/// The data that one of several holders passes on to have releases checked: its masked summands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    version: Version<SHARE_VERSION>,
    dataset: Uuid,
    holder: u32,
    releases: Vec<SharedRelease>,
}

/// The masked summands of a release, by its statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedRelease {
    statement: Digest,
    masked: Vec<u64>,
}

/// Returns the plan of a dataset whose releases are sums over its holders.
fn summed(dataset: &Dataset) -> Result<PlanCore, Error> {
    let refuse = |reason| Error::Unverifiable {
        dataset: dataset.id,
        reason,
    };
    let outline = dataset.terms.0.plan_core()?;
    if outline.holders.owners().is_some() {
        return Err(refuse(BY_COLUMNS));
    }
    if outline.members.is_empty() {
        return Err(refuse("it has one holder, who needs no shares"));
    }
    Ok(outline)
}

type ByStatement<'a> = BTreeMap<&'a [u8; 32], &'a [u64]>;

fn by_statement(share: &Share) -> ByStatement<'_> {
    let releases = share.releases.iter();
    releases
        .map(|release| (&release.statement.0, release.masked.as_slice()))
        .collect()
}

/// Sorts shares by the holders' numbers, and indexes each by statement.
fn in_order(
    dataset: Uuid,
    holders: usize,
    shares: &[Share],
) -> Result<Vec<ByStatement<'_>>, Error> {
    let refuse = |reason| Error::Unverifiable { dataset, reason };
    let known = |share: &Share| share.dataset == dataset;
    if !shares.iter().all(known) {
        return Err(refuse("a share is of another dataset"));
    }
    let mut sorted: Vec<&Share> = shares.iter().collect();
    sorted.sort_by_key(|share| share.holder);
    let numbers = sorted.iter().map(|share| share.holder as usize);
    if !numbers.eq(0..holders) {
        return Err(refuse(
            "exactly one share of each holder is needed: some are missing or repeated",
        ));
    }
    Ok(sorted.into_iter().map(by_statement).collect())
}

fn is_square(asked: &Asked<'_>) -> bool {
    matches!(asked.request.statistic, Statistic::SquaredScores(_))
}

/// The extension of the record's file, next to the key of the noise.
const RECORD: &str = "shared";

/// The version of the record.
const RECORD_VERSION: u8 = 1;

/// The content of a record's file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    version: Version<RECORD_VERSION>,
    /// Statements of releases, by `run/number`.
    statements: BTreeMap<String, Digest>,
    /// Hashes of the ledger, by height.
    heads: BTreeMap<u64, Digest>,
}

/// The releases that this machine has seen, by run and number, and the ledger's hashes. A share of another release at
/// the same place would show exact counts by the difference of two sums. Therefore a key service that shows another
/// release later gets no share.
pub(super) struct Record {
    dataset: Uuid,
    path: PathBuf,
    recorded: Recorded,
    /// Held until the record is written. A second program waits for it, then reads the new record.
    _lock: File,
}

impl Record {
    pub(super) fn read(dataset: Uuid, path: PathBuf) -> Result<Self, Error> {
        let lock = File::create(path.with_extension("lock"));
        let lock = lock.and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(|error| fault(&path, error.to_string()))?;
        let recorded = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|_| {
                let problem = format!("not a record of releases of version {RECORD_VERSION}");
                fault(&path, problem)
            })?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Recorded::default(),
            Err(error) => return Err(fault(&path, error.to_string())),
        };
        Ok(Self {
            dataset,
            path,
            recorded,
            _lock: lock,
        })
    }

    /// Adds releases on which all records agree, and the end of the ledger.
    pub(super) fn take(
        &mut self,
        outline: &PlanCore,
        told: &Told,
        chain: &LedgerChain,
    ) -> Result<(), Error> {
        let heads = &self.recorded.heads;
        let mut other = heads
            .iter()
            .find(|(height, head)| !chain.contains(**height, head))
            .map(|(height, _)| format!("entry {height} of the ledger"));
        let found = told.check(outline, |asked| {
            let place = format!("{}/{}", asked.run, asked.request.number);
            match asked.derived && self.is_known(place.clone(), asked.statement) {
                true => None,
                false => {
                    other.get_or_insert(format!("release {place} (run/number)"));
                    Some(Fault::Statement)
                }
            }
        });
        let other = other.or_else(|| {
            // A batch that froze the dataset has debits but no integers: nothing is shared of it.
            let mut findings = found.findings.iter();
            let finding = findings.find(|found| found.fault != Fault::Unanswered);
            finding.map(|found| format!("release {} of job {}", found.number, found.job))
        });
        match other {
            None => {
                let Tip { height, head } = chain.tip();
                self.recorded.heads.insert(height, Digest(head));
                Ok(())
            }
            Some(what) => Err(Error::Contradicted {
                dataset: self.dataset,
                reason: format!(
                    "{what}: the key service shows something else than this machine recorded, or than its \
                     own ledger paid for. It was set back, or it invents releases. {TELL}"
                ),
            }),
        }
    }

    /// Returns whether no other statement was recorded at a place, and records this one.
    fn is_known(&mut self, place: String, statement: &[u8; 32]) -> bool {
        let statement = Digest(*statement);
        *self.recorded.statements.entry(place).or_insert(statement) == statement
    }

    /// Writes the record, before a share is passed on.
    fn keep(&self) -> Result<(), Error> {
        // Names and digests: writing them cannot fail.
        let text = serde_json::to_vec(&self.recorded).unwrap_or_default();
        replace(&self.path, &text).map_err(|error| fault(&self.path, error.to_string()))
    }
}

fn fault(path: &Path, reason: String) -> Error {
    let path = path.to_owned();
    Error::Ladder { path, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(path: &Path) -> Result<Record, Error> {
        Record::read(Uuid::from_u128(1), path.to_owned())
    }

    #[test]
    fn record_accepts_one_statement_per_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.shared");
        let is_known = |record: &mut Record, place: &str, statement: u8| {
            record.is_known(place.to_owned(), &[statement; 32])
        };
        let mut first = record(&path).unwrap();
        assert!(is_known(&mut first, "0/0", 1));
        assert!(is_known(&mut first, "0/1", 2));
        assert!(is_known(&mut first, "1/0", 3));
        first.keep().unwrap();
        drop(first);
        let mut again = record(&path).unwrap();
        assert!(is_known(&mut again, "0/0", 1));
        assert!(!is_known(&mut again, "0/1", 9));
    }

    #[test]
    fn damaged_record_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.shared");
        for text in ["{", "[]", "{\"version\":2,\"statements\":{},\"heads\":{}}"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(record(&path), Err(Error::Ladder { .. })), "{text}");
        }
    }

    #[test]
    fn one_share_of_each_holder_is_required() {
        let id = Uuid::from_u128(1);
        let share = |holder| Share {
            version: Version,
            dataset: id,
            holder,
            releases: Vec::new(),
        };
        let counts = |shares: &[Share]| in_order(id, 3, shares).is_ok();
        assert!(counts(&[share(2), share(0), share(1)]));
        for wrong in [&[0, 1][..], &[0, 1, 1], &[0, 1, 2, 2], &[1, 2, 3], &[]] {
            assert!(!counts(
                &wrong.iter().map(|&n| share(n)).collect::<Vec<_>>()
            ));
        }
        let mut other = share(2);
        other.dataset = Uuid::nil();
        assert!(!counts(&[share(0), share(1), other]));
    }
}
