//! Whether what was released of a dataset is what its holder's table and noise come to.
//!
//! The key service decrypts what the computation service sends, and cannot see that noise was left out, a
//! cell was changed or another column was counted. A holder that kept the key of its ladder can: a
//! release is the exact statistic of its table and the noise at the release's positions, integer for
//! integer. What was asked, and where its noise lies, is bound by the statements in the ledger.

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

/// What a check came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Releases that are what they should be.
    pub equal: usize,
    /// Integers that were compared.
    pub integers: usize,
    /// Everything that is not as it should be, or could not be checked.
    pub findings: Vec<VerifyFinding>,
}

/// A release that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyFinding {
    /// The job.
    pub job: Uuid,
    /// The release's number within it.
    pub number: u32,
    /// What was debited for, as the ledger has it.
    pub statistic: String,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The ledger has a debit, and the key service shows no integers for it.
    Unanswered,
    /// The ledger has no such debit.
    Undebited,
    /// What is said to have been asked is not what was debited.
    Statement,
    /// A square is no sum over holders: what each has says nothing of it.
    Square,
    /// A holder, by its number in the roster, shared nothing of it.
    Unshared(u32),
    /// It has another number of cells than its statistic.
    Length {
        /// Cells that the statistic has.
        expected: usize,
        /// Cells that were released.
        released: usize,
    },
    /// Cells have other values than the exact statistic with its noise.
    Cells {
        /// So many have.
        count: usize,
        /// Position of the first that has.
        first: usize,
        /// What was to be released there.
        expected: i64,
        /// What was released.
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
    /// Compares every integer that was released of a dataset of one holder with what `records` and the
    /// noise of `kept` come to. Nothing is sent.
    ///
    /// # Errors
    /// [`Error::Unverifiable`] for a dataset of several holders, and for other records than those of the
    /// upload: under one ladder two tables differ by exact counts. What the key service refuses.
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
                "it has several holders, and a release is the sum of what all of them have: each writes its \
                 share with --share-out, and whoever has all shares compares their sum, with --share for each",
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

    /// Refuses a key that is not of the upload that the services have: with another's noise a release would be
    /// a second answer.
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

    /// Ledger and answers, of one moment where a job under way lets them be.
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

    /// Everything that was released of a dataset, as the key service has it, oldest first.
    ///
    /// # Errors
    /// What the service refuses.
    pub async fn released(&self, dataset: Uuid) -> Result<Vec<ReleasedBatch>, Error> {
        let crypto = &self.endpoints().crypto;
        let address = format!("{crypto}/v1/datasets/{dataset}/answers");
        self.list(&address).await
    }
}

/// How often ledger and answers are asked for again, where something is released in between.
const MOMENTS: usize = 3;

/// The longest time from a key service's debit to its answer, unless it is stopped in between.
const BETWEEN_MOMENTS: Duration = Duration::from_millis(300);

/// Why holders of columns cannot check what was released.
const BY_COLUMNS: &str = "its holders have columns of the same records: what was released are products over several \
     tables, and no holder can work its share of them out alone";

/// Why nothing is compared with the key of another upload.
const OTHER_UPLOAD: &str = "the key of the noise here is not that of the upload that the services have: this one did not \
     come to its end, or another was made since, from elsewhere. Only where that was made can its releases be checked";

/// Why nothing is compared with another table.
const OTHER_TABLE: &str = "this is not the table that was uploaded: nothing is compared, since under one upload's \
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
                Records::Tally(pair_counts) => &**pair_counts,
            },
            ladder: KeyedLadder::new(key, outline.ladder()?),
        })
    }

    /// What this holder adds to a release. What was debited fits the table and the ladder, so a request that
    /// does not was not what was debited.
    fn summands(&mut self, asked: &Asked<'_>) -> Option<Vec<i64>> {
        let request = asked.request;
        let noise = self
            .ladder
            .release_noise(asked.spans, request.variance_units);
        expected(self.table, &request.statistic, &noise.ok()?).ok()
    }
}

/// A release that was debited as it is shown.
struct Asked<'a> {
    /// Whether where it lies and what it costs follow from what was asked of its run, from the first release
    /// on, within the budget. Else both rest on what the key service claims of releases before it.
    derived: bool,
    run: u32,
    request: &'a ReleaseRequest,
    spans: &'a [Span],
    statement: &'a [u8; 32],
    released: &'a [i64],
}

/// What the key service tells of a dataset.
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

    /// Holds what was released against the ledger, and every release that is as it was debited against
    /// `judge`.
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

/// A job's run, as what was asked of it makes it.
struct Kept {
    replay: Replay,
    /// Whether all of it follows from what was asked.
    derived: bool,
}

/// A batch, placed and priced.
struct Derived {
    placement: Placement,
    entries: Vec<Entry>,
    derived: bool,
}

/// A check under way.
struct Check<'a, J> {
    rules: Rules,
    judge: J,
    /// The ledger's debits that no answer was shown for yet, by job and number.
    debits: BTreeMap<(Uuid, u32), &'a Debit>,
    /// What was released of each job so far.
    kept: BTreeMap<Uuid, Kept>,
    /// Which job has a run: two would have the same noise.
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

    /// Where a batch's releases lie and what they cost, behind those of its job before it; nothing where
    /// that does not follow from what was asked. What is behind then rests on what the ledger claims.
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
            // Where that cannot be placed either, nothing behind it will be.
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
