//! Several holders of records check what was released by the sum of what each works out.

use fhaim_api::Digest;
use fhaim_api::dataset::Dataset;
use fhaim_domain::Version;
use fhaim_protocol::roster::HolderKey;
use fhaim_protocol::shares::{Masks, unmask};
use fhaim_protocol::terms::Outline;
use fhaim_release::Statistic;
use fhaim_synth::verify::difference;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use uuid::Uuid;

use super::{Asked, BY_COLUMNS, Fault, OTHER_TABLE, Own, Verification};
use crate::ladder::replace;
use crate::{Client, Error, KeptLadder, Records};

impl Client {
    /// A holder's share of everything that was released of a dataset of several holders of records: its
    /// summands, with masks that vanish from the sum of all shares alone.
    ///
    /// # Errors
    /// [`Error::Unverifiable`] for a dataset of one holder or of columns, and for other records than those of
    /// the upload; a key that is not the roster's; [`Error::Ladder`] where it cannot be noted for what
    /// shares were given. What the key service refuses.
    pub async fn share(
        &self,
        dataset: &Dataset,
        records: &Records,
        kept: &KeptLadder,
        key: &HolderKey,
    ) -> Result<Share, Error> {
        let outline = summed(dataset)?;
        if !kept.is_of(records) {
            return Err(Error::Unverifiable {
                dataset: dataset.id,
                reason: OTHER_TABLE,
            });
        }
        self.check_kept(dataset, kept).await?;
        let masks = Masks::new(kept.part(), &outline.members, key)?;
        let mut share = Share {
            version: Version,
            dataset: dataset.id,
            holder: kept.part(),
            releases: Vec::new(),
        };
        let told = self.told(dataset.id).await?;
        let (records, key) = (records.clone(), kept.key().clone());
        let notes = kept.path().with_extension("shared");
        let sharing = tokio::task::spawn_blocking(move || {
            let mut given = Given::read(notes)?;
            let mut own = Own::new(&records, &key, &outline)?;
            told.check(&outline, |asked| {
                // Noted of every release, shared or not: it decides where those behind it lie.
                if !asked.derived || !given.may(asked) || is_square(asked) {
                    return None;
                }
                let summands = own.summands(asked)?;
                share.releases.push(SharedRelease {
                    statement: Digest(*asked.statement),
                    masked: masks.mask(asked.statement, &summands),
                });
                None
            });
            given.keep()?;
            Ok(share)
        });
        sharing.await.map_err(|_| Error::Interrupted)?
    }

    /// Compares every integer that was released of a dataset of several holders of records with the sum of
    /// their shares. It takes no table.
    ///
    /// # Errors
    /// [`Error::Unverifiable`] for a dataset of one holder or of columns, and for shares of another dataset, or
    /// not one of each holder. What the key service refuses.
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

/// What one holder of several hands on to have releases checked: its summands, masked.
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

/// The outline of a dataset whose releases are sums over its holders.
fn summed(dataset: &Dataset) -> Result<Outline, Error> {
    let refuse = |reason| Error::Unverifiable {
        dataset: dataset.id,
        reason,
    };
    let outline = dataset.terms.0.outline()?;
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

/// Shares by the holders' numbers, each by statement.
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
            "it takes one share of each holder: others are missing, or there twice",
        ));
    }
    Ok(sorted.into_iter().map(by_statement).collect())
}

fn is_square(asked: &Asked<'_>) -> bool {
    matches!(asked.request.statistic, Statistic::SquaredScores(_))
}

/// For which releases shares were given, by run and number: of two releases at one place the sums would
/// differ by exact counts, so a key service that shows another later gets none of it.
struct Given {
    path: PathBuf,
    /// By `run/number`.
    statements: BTreeMap<String, Digest>,
    refused: bool,
    /// Held until the note is written: of two that share at once, the other waits and reads it.
    _lock: File,
}

impl Given {
    fn fault(path: &std::path::Path, reason: String) -> Error {
        let path = path.to_owned();
        Error::Ladder { path, reason }
    }

    fn read(path: PathBuf) -> Result<Self, Error> {
        let lock = File::create(path.with_extension("lock"));
        let lock = lock.and_then(|file| file.lock().map(|()| file));
        let lock = lock.map_err(|error| Self::fault(&path, error.to_string()))?;
        let statements = match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|_| Self::fault(&path, "not a note of shares".to_owned()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Self::fault(&path, error.to_string())),
        };
        Ok(Self {
            path,
            statements,
            refused: false,
            _lock: lock,
        })
    }

    /// Whether a share of a release may be given: none was of another at its place.
    fn may(&mut self, asked: &Asked<'_>) -> bool {
        let place = format!("{}/{}", asked.run, asked.request.number);
        let statement = Digest(*asked.statement);
        let known = *self.statements.entry(place).or_insert(statement);
        self.refused |= known != statement;
        known == statement
    }

    /// Notes it, before the share is handed on.
    fn keep(&self) -> Result<(), Error> {
        if self.refused {
            let reason = "the key service shows another release than the one that a share was given for: \
                          give none, since the two sums would differ by exact counts";
            return Err(Self::fault(&self.path, reason.to_owned()));
        }
        // Names and digests: writing them cannot fail.
        let text = serde_json::to_vec(&self.statements).unwrap_or_default();
        replace(&self.path, &text).map_err(|error| Self::fault(&self.path, error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_release::ReleaseRequest;

    #[test]
    fn one_release_at_a_place_is_shared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.shared");
        let request = |number| ReleaseRequest {
            number,
            statistic: Statistic::Total,
            variance_units: 1,
        };
        let may = |given: &mut Given, run, number, statement: &[u8; 32]| {
            given.may(&Asked {
                derived: true,
                run,
                request: &request(number),
                spans: &[],
                statement,
                released: &[],
            })
        };
        let mut given = Given::read(path.clone()).unwrap();
        assert!(may(&mut given, 0, 0, &[1; 32]));
        assert!(may(&mut given, 0, 1, &[2; 32]));
        assert!(may(&mut given, 1, 0, &[3; 32]));
        given.keep().unwrap();
        drop(given);
        let mut again = Given::read(path.clone()).unwrap();
        assert!(may(&mut again, 0, 0, &[1; 32]));
        again.keep().unwrap();
        assert!(!may(&mut again, 0, 1, &[9; 32]));
        assert!(again.keep().is_err());
        drop(again);
        std::fs::write(&path, "{").unwrap();
        assert!(Given::read(path).is_err());
    }

    #[test]
    fn it_takes_one_share_of_each_holder() {
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
