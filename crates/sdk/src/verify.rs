//! Checks that the releases of a dataset follow from its holder's table and noise.
//!
//! The key service decrypts the answers of the computation service. It cannot see that noise was left out, a cell was
//! changed, or another column was counted. A holder that stored its ladder key can see it: a release is the exact
//! statistic of its table plus the noise at the release's positions, integer for integer. The statements in the ledger
//! bind the requests and the positions of their noise.

use fhaim_api::dataset::Dataset;
use fhaim_api::keys::{ReleasedBatch, RunLedger};
use fhaim_domain::Counted;
use fhaim_dp::{Debit, Entry, KeyedLadder, LadderKey, Span};
use fhaim_protocol::crypto::judge::{Replay, Rules};
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::terms::PlanCore;
use fhaim_protocol::window::Placement;
use fhaim_release::ReleaseRequest;
use fhaim_synth::verify::{Difference, difference, expected};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

use crate::{Client, Error, KeptLadder, Records};

mod history;
mod shares;
#[cfg(test)]
mod tests;

pub use shares::Share;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Number of releases that are as expected.
    pub equal: usize,
    /// Number of compared integers.
    pub integers: usize,
    /// Releases that are not as expected, or that could not be checked.
    pub findings: Vec<VerifyFinding>,
}

/// A release that is not as expected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyFinding {
    /// The job.
    pub job: Uuid,
    /// The release's number within it.
    pub number: u32,
    /// The debited statistic, as the ledger describes it.
    pub statistic: String,
    /// The problem with the release.
    pub fault: Fault,
}

/// A problem with a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The ledger has a debit, but the key service shows no integers for it.
    Unanswered,
    /// The ledger has no such debit.
    Undebited,
    /// The request that the key service shows is not the debited one.
    Statement,
    /// Squared scores are not sums over holders, so the holders' shares cannot check them.
    Square,
    /// The holder with this number in the roster did not share it.
    Unshared(u32),
    /// It has another number of cells than its statistic.
    Length {
        /// Number of cells of the statistic.
        expected: usize,
        /// Number of released cells.
        released: usize,
    },
    /// Cells differ from the exact statistic plus its noise.
    Cells {
        /// Number of differing cells.
        count: usize,
        /// Position of the first differing cell.
        first: usize,
        /// The expected value there.
        expected: i64,
        /// The released value there.
        released: i64,
    },
}

impl From<Difference> for Fault {
    fn from(difference: Difference) -> Self {
        match difference {
            Difference::Length { expected, released } => Self::Length { expected, released },
            Difference::Cells {
                count,
                first,
                expected,
                released,
            } => Self::Cells {
                count,
                first,
                expected,
                released,
            },
        }
    }
}

impl Client {
    /// Compares every released integer of a dataset of one holder with the value that follows from `records` and the
    /// noise of `kept`. Neither is sent to a service.
    ///
    /// # Errors
    /// [`Error::Unverifiable`] for a dataset of several holders, and for records other than the uploaded ones, because
    /// under one ladder two tables differ by exact counts. Also the errors of the key service.
    pub async fn verify(
        &self,
        dataset: &Dataset,
        records: &Records,
        kept: &KeptLadder,
    ) -> Result<Verification, Error> {
        let refuse = |reason| Error::Unverifiable {
            dataset: dataset.id,
            reason,
        };
        let outline = dataset.terms.0.plan_core()?;
        if outline.holders.owners().is_some() {
            return Err(refuse(BY_COLUMNS));
        }
        if !outline.members.is_empty() {
            return Err(refuse(
                "it has several holders, so a release is the sum of the parts of all of them: each writes its \
                 share with --share-out, and a party with all shares compares their sum, with --share for each",
            ));
        }
        if !kept.is_of(records) {
            return Err(refuse(OTHER_TABLE));
        }
        self.check_kept(dataset, kept).await?;
        let told = self.told(dataset.id).await?;
        let (records, key) = (records.clone(), kept.key().clone());
        let checking = tokio::task::spawn_blocking(move || {
            let mut own = Own::new(&records, &key, &outline)?;
            Ok(told.check(&outline, |asked| match own.summands(asked) {
                Some(expected) => difference(&expected, asked.released).map(Fault::from),
                None => Some(Fault::Statement),
            }))
        });
        checking.await.map_err(|_| Error::Interrupted)?
    }

    /// Rejects a key that does not belong to the upload at the services. A comparison with the noise of another upload
    /// would act as a second answer.
    async fn check_kept(&self, dataset: &Dataset, kept: &KeptLadder) -> Result<(), Error> {
        let refused = Err(Error::Unverifiable {
            dataset: dataset.id,
            reason: OTHER_UPLOAD,
        });
        match kept.manifest() {
            Some(manifest) if self.is_upload(dataset, kept.part(), manifest).await? => Ok(()),
            _ => refused,
        }
    }

    /// Fetches the ledger and the answers, in a consistent state if a running job allows it.
    async fn told(&self, dataset: Uuid) -> Result<Told, Error> {
        let mut told = Told {
            dataset,
            runs: Vec::new(),
            batches: Vec::new(),
        };
        for _ in 0..MOMENTS {
            told.batches = self.released(dataset).await?;
            told.runs = self.ledger(dataset).await?.runs;
            if told.is_of_one_moment() {
                break;
            }
            tokio::time::sleep(BETWEEN_MOMENTS).await;
        }
        Ok(told)
    }

    /// Returns all releases of a dataset, as the key service has them, oldest first.
    ///
    /// # Errors
    /// [`Error::NoLedger`] if the key service does not know the dataset. Also the errors of the service.
    pub async fn released(&self, dataset: Uuid) -> Result<Vec<ReleasedBatch>, Error> {
        let crypto = &self.endpoints().crypto;
        let address = format!("{crypto}/v1/datasets/{dataset}/answers");
        let released = self.list(&address).await;
        Ok(self.expect_ledger(dataset, released).await?.items)
    }
}

/// Maximum number of attempts to fetch the ledger and the answers without a release in between.
const MOMENTS: usize = 3;

/// The longest time from a key service's debit to its answer, unless the service is stopped in between.
const BETWEEN_MOMENTS: Duration = Duration::from_millis(300);

/// Why holders of columns cannot check releases.
const BY_COLUMNS: &str = "its holders have columns of the same records: releases are products over several tables, and \
     no holder can compute its share of them alone";

/// Why nothing is compared with the key of another upload.
const OTHER_UPLOAD: &str = "the key of the noise on this machine is not that of the upload that the services have: the \
     upload from here was not completed, or another was made later from elsewhere. Its releases can be checked only there";

/// Why nothing is compared with another table.
const OTHER_TABLE: &str = "this is not the table that was uploaded: nothing is compared, because under one upload's \
     noise two tables differ by exact counts";

/// One holder's table and noise.
struct Own<'a> {
    table: &'a dyn Counted,
    ladder: KeyedLadder<'a>,
}

impl<'a> Own<'a> {
    fn new(records: &'a Records, key: &'a LadderKey, outline: &PlanCore) -> Result<Self, Error> {
        Ok(Self {
            table: match records {
                Records::Table(table) => &**table,
                Records::Counts(pair_counts) => &**pair_counts,
            },
            ladder: KeyedLadder::new(key, outline.ladder()?),
        })
    }

    /// Returns this holder's part of a release. Debited requests fit the table and the ladder, so a request that does
    /// not fit was not debited.
    fn summands(&mut self, asked: &Asked<'_>) -> Option<Vec<i64>> {
        let request = asked.request;
        let noise = self
            .ladder
            .release_noise(asked.spans, request.variance_units);
        expected(self.table, &request.statistic, &noise.ok()?).ok()
    }
}

/// A release that matches its debit.
struct Asked<'a> {
    /// Whether its positions and its price follow from the run's requests, from the first release on and within the
    /// budget. Otherwise both rely on the key service's claims about earlier releases.
    derived: bool,
    run: u32,
    request: &'a ReleaseRequest,
    spans: &'a [Span],
    statement: &'a [u8; 32],
    released: &'a [i64],
}

/// The ledger and the answers of a dataset, as the key service shows them.
struct Told {
    dataset: Uuid,
    runs: Vec<RunLedger>,
    batches: Vec<ReleasedBatch>,
}

impl Told {
    fn is_of_one_moment(&self) -> bool {
        let debits = self.runs.iter().map(|run| run.entries.len());
        let answered = self.batches.iter().map(|batch| batch.entries.len());
        debits.sum::<usize>() == answered.sum::<usize>()
    }

    /// Checks the releases against the ledger, and passes every release that matches its debit to `judge`.
    fn check(
        &self,
        outline: &PlanCore,
        judge: impl FnMut(&Asked<'_>) -> Option<Fault>,
    ) -> Verification {
        let debits = self.runs.iter().flat_map(|run| {
            let of_run = run.entries.iter().map(|entry| &entry.debit);
            of_run.map(|debit| ((run.job, debit.number), debit))
        });
        let mut check = Check {
            rules: Rules::new(DatasetId(self.dataset.into_bytes()), outline),
            judge,
            debits: debits.collect(),
            kept: BTreeMap::new(),
            runs: BTreeMap::new(),
            found: Verification::default(),
        };
        for batch in &self.batches {
            check.batch(batch);
        }
        let unanswered = std::mem::take(&mut check.debits);
        for ((job, _), debit) in unanswered {
            check.find(job, debit, Fault::Unanswered);
        }
        check.found
    }
}

/// The run of a job, replayed from its requests.
struct Kept {
    replay: Replay,
    /// Whether everything so far follows from the requests.
    derived: bool,
}

/// A batch with its positions and prices.
struct Derived {
    placement: Placement,
    entries: Vec<Entry>,
    derived: bool,
}

/// A check in progress.
struct Check<'a, J> {
    rules: Rules,
    judge: J,
    /// The ledger's debits without an answer so far, by job and number.
    debits: BTreeMap<(Uuid, u32), &'a Debit>,
    /// The replayed run of each job so far.
    kept: BTreeMap<Uuid, Kept>,
    /// The job of each run. Two jobs of one run would have the same noise.
    runs: BTreeMap<u32, Uuid>,
    found: Verification,
}

impl<J: FnMut(&Asked<'_>) -> Option<Fault>> Check<'_, J> {
    fn find(&mut self, job: Uuid, debit: &Debit, fault: Fault) {
        self.found.findings.push(VerifyFinding {
            job,
            number: debit.number,
            statistic: debit.description.clone(),
            fault,
        });
    }

    /// Derives the positions and prices of a batch's releases, after those of its job before it. Returns `None` if they
    /// do not follow from the requests. Later releases then rely on the ledger's claims.
    fn derive(&mut self, batch: &ReleasedBatch) -> Option<Derived> {
        let (job, run) = (JobId(batch.job.into_bytes()), batch.run);
        let another = *self.runs.entry(run).or_insert(batch.job) != batch.job;
        let rules = &self.rules;
        let kept = self.kept.entry(batch.job).or_insert_with(|| Kept {
            replay: Replay::new(rules, job, run),
            derived: true,
        });
        if another || run >= rules.plan.runs || kept.replay.run() != run {
            kept.derived = false;
            return None;
        }
        let Ok((placement, entries)) = kept.replay.batch(rules, &batch.requests) else {
            kept.derived = false;
            // If that cannot be placed either, no later batch can be.
            let _ = kept.replay.claimed(&batch.entries);
            return None;
        };
        kept.derived &= entries == batch.entries;
        Some(Derived {
            placement,
            entries,
            derived: kept.derived,
        })
    }

    fn batch(&mut self, batch: &ReleasedBatch) {
        let derived = self.derive(batch);
        for (index, entry) in batch.entries.iter().enumerate() {
            let debit = &entry.debit;
            let known = self.debits.remove(&(batch.job, debit.number));
            let asked = batch.requests.get(index);
            let place = derived.as_ref().and_then(|derived| {
                let same = derived.entries.get(index) == Some(entry);
                let spans = derived.placement.spans.get(index)?;
                same.then_some((spans, derived.derived))
            });
            let fault = match (asked, place, batch.answers.get(index)) {
                _ if known.is_none() => Some(Fault::Undebited),
                _ if known != Some(debit) => Some(Fault::Statement),
                (_, _, None) => Some(Fault::Unanswered),
                (Some(request), Some((spans, derived)), Some(released)) => {
                    self.found.integers += released.len();
                    (self.judge)(&Asked {
                        derived,
                        run: batch.run,
                        request,
                        spans,
                        statement: &debit.digest,
                        released,
                    })
                }
                _ => Some(Fault::Statement),
            };
            match fault {
                Some(fault) => self.find(batch.job, debit, fault),
                None => self.found.equal += 1,
            }
        }
    }
}
