//! Whether what was released of a dataset is what its holder's table and noise come to.
//!
//! The key service decrypts what the computation service sends, and cannot see that noise was left out, a
//! cell was changed or another column was counted. A holder that kept the key of its ladder can: a
//! release is the exact statistic of its table and the noise at the release's positions, integer for
//! integer. What was asked, and where its noise lies, is bound by the statements in the ledger.

use fhaim_api::dataset::Dataset;
use fhaim_api::keys::{ReleasedBatch, RunLedger};
use fhaim_domain::Counted;
use fhaim_dp::{Debit, KeyedLadder, LadderKey, Span};
use fhaim_protocol::request::{DatasetId, JobId};
use fhaim_protocol::terms::Outline;
use fhaim_protocol::window::{Placed, Window};
use fhaim_release::ReleaseRequest;
use fhaim_synth::verify::{Difference, difference, expected};
use serde::Serialize;
use std::collections::BTreeMap;
use uuid::Uuid;

use crate::{Client, Error, KeptLadder, Records};

/// What a check came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// Releases that are what they should be.
    pub equal: usize,
    /// Integers that were compared.
    pub integers: usize,
    /// Everything that is not as it should be, or could not be checked.
    pub findings: Vec<Finding>,
}

/// A release that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
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
    /// It was released before the key service kept what was asked.
    Unkept,
    /// What is said to have been asked is not what was debited.
    Statement,
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
        let outline = dataset.terms.0.outline()?;
        if outline.holders.owners().is_some() {
            return Err(refuse(
                "its holders have columns of the same records: what was released are products over \
                 several tables, and no holder can work its share of them out alone",
            ));
        }
        if !outline.members.is_empty() {
            return Err(refuse(
                "it has several holders, and a release is the sum of what all of them have: one table \
                 alone cannot say what it should have been",
            ));
        }
        if !kept.is_of(records) {
            return Err(refuse(
                "this is not the table that was uploaded: nothing is compared, since under one \
                 upload's noise two tables differ by exact counts",
            ));
        }
        let ledger = self.ledger(dataset.id).await?;
        let batches = self.released(dataset.id).await?;
        let (records, key) = (records.clone(), kept.key().clone());
        let checking = tokio::task::spawn_blocking(move || {
            let table: &dyn Counted = match &records {
                Records::Table(table) => &**table,
                Records::Tally(tally) => &**tally,
            };
            check(
                ledger.dataset,
                &outline,
                (table, &key),
                (&ledger.runs, &batches),
            )
        });
        checking.await.map_err(|_| Error::Interrupted)?
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

/// What one batch is held against.
struct Check<'a> {
    dataset: DatasetId,
    outline: &'a Outline,
    table: &'a dyn Counted,
    ladder: KeyedLadder<'a>,
    /// The ledger's debits that no answer was shown for yet, by job and number.
    debits: BTreeMap<(Uuid, u32), &'a Debit>,
    /// What was placed of each job so far.
    placed: BTreeMap<Uuid, Vec<Placed>>,
    found: Verification,
}

/// Holds what was released against a table, the key of its noise, and the ledger's runs.
fn check(
    dataset: Uuid,
    outline: &Outline,
    (table, key): (&dyn Counted, &LadderKey),
    (runs, batches): (&[RunLedger], &[ReleasedBatch]),
) -> Result<Verification, Error> {
    let debits = runs.iter().flat_map(|run| {
        let of_run = run.entries.iter().map(|entry| &entry.debit);
        of_run.map(|debit| ((run.job, debit.number), debit))
    });
    let mut check = Check {
        dataset: DatasetId(dataset.into_bytes()),
        outline,
        table,
        ladder: KeyedLadder::new(key, outline.ladder()?),
        debits: debits.collect(),
        placed: BTreeMap::new(),
        found: Verification::default(),
    };
    for batch in batches {
        check.batch(batch)?;
    }
    let unanswered = std::mem::take(&mut check.debits);
    for ((job, _), debit) in unanswered {
        check.find(job, debit, Fault::Unanswered);
    }
    Ok(check.found)
}

impl Check<'_> {
    fn find(&mut self, job: Uuid, debit: &Debit, fault: Fault) {
        self.found.findings.push(Finding {
            job,
            number: debit.number,
            statistic: debit.description.clone(),
            fault,
        });
    }

    fn batch(&mut self, batch: &ReleasedBatch) -> Result<(), Error> {
        let job = JobId(batch.job.into_bytes());
        let mut window = Window::new(self.dataset, job, batch.run, self.outline.run_ladder);
        let placed = self.placed.entry(batch.job).or_default();
        window.catch_up(placed)?;
        placed.extend(batch.entries.iter().map(|entry| Placed {
            cells: usize::try_from(entry.debit.cells).unwrap_or(usize::MAX),
            statement: entry.debit.digest,
        }));
        let requests = batch.requests.as_deref();
        let placement = requests.and_then(|requests| window.place(requests).ok());
        for (index, entry) in batch.entries.iter().enumerate() {
            let debit = &entry.debit;
            let known = self.debits.remove(&(batch.job, debit.number));
            let released = batch.answers.get(index);
            let asked = requests.and_then(|requests| requests.get(index));
            let place = placement.as_ref().and_then(|placement| {
                let statement = placement.placed.get(index)?.statement;
                let debited = known.is_none_or(|known| known.digest == statement);
                (debited && debit.digest == statement).then_some(placement.spans.get(index)?)
            });
            let fault = match (asked, place, released) {
                (_, _, None) => Some(Fault::Unanswered),
                (None, _, _) if requests.is_none() => Some(Fault::Unkept),
                (Some(asked), Some(spans), Some(released)) => {
                    self.found.integers += released.len();
                    self.compare(asked, spans, released)
                }
                _ => Some(Fault::Statement),
            };
            match fault {
                Some(fault) => self.find(batch.job, debit, fault),
                None => self.found.equal += 1,
            }
        }
        Ok(())
    }

    /// What is wrong with the integers of a release whose positions are these. What was debited fits
    /// the table and the ladder, so a request that does not was not what was debited.
    fn compare(
        &mut self,
        asked: &ReleaseRequest,
        spans: &[Span],
        released: &[i64],
    ) -> Option<Fault> {
        let noise = self.ladder.release_noise(spans, asked.variance_units).ok();
        let expected = noise.map(|noise| expected(self.table, &asked.statistic, &noise));
        match expected {
            Some(Ok(expected)) => difference(&expected, released).map(Fault::from),
            _ => Some(Fault::Statement),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fhaim_domain::{Schema, Table};
    use fhaim_dp::{Ledger, Rho};
    use fhaim_protocol::terms::Terms;
    use fhaim_release::{Axis, Statistic};

    const DATASET: Uuid = Uuid::from_u128(5);
    const JOB: Uuid = Uuid::from_u128(6);
    const UNITS: u64 = 7;

    struct Setting {
        outline: Outline,
        table: Table,
        key: LadderKey,
    }

    impl Setting {
        fn new() -> Self {
            let schema = br#"{"name":"t","columns":[
                {"name":"a","kind":"categorical","categories":["x","y"]},
                {"name":"b","kind":"categorical","categories":["x","y","z"]}]}"#;
            let schema = Schema::from_json("t.json", schema).unwrap();
            let terms = Terms::new(schema.clone(), 1.0, 1e-9, 100);
            let terms = terms.complete(&fhaim_synth::Mechanisms).unwrap();
            let columns = vec![
                (0..60).map(|i| u32::from(i % 3 == 0)).collect(),
                (0..60).map(|i| i % 7 % 3).collect(),
            ];
            Self {
                outline: terms.outline().unwrap(),
                table: Table::new(schema, columns).unwrap(),
                key: LadderKey::from_bytes(DATASET.into_bytes(), &[3; 32]),
            }
        }

        fn window(&self) -> Window {
            let (dataset, job) = (DATASET.into_bytes(), JOB.into_bytes());
            Window::new(DatasetId(dataset), JobId(job), 0, self.outline.run_ladder)
        }

        /// What a key service shows of two honest batches, and its ledger.
        fn released(&self) -> (Vec<RunLedger>, Vec<ReleasedBatch>) {
            let pair = Statistic::Product(Axis::identity(0, 2), Axis::identity(1, 3));
            let one_way = Statistic::OneWay(Axis::identity(1, 3));
            let batches = [vec![Statistic::Total, one_way], vec![pair]];
            let mut ledger = Ledger::new(Rho::from_f64_down(1e6).unwrap());
            let mut noise = KeyedLadder::new(&self.key, self.outline.ladder().unwrap());
            let (mut window, mut number) = (self.window(), 0);
            let mut shown = Vec::new();
            for (height, statistics) in (1..).zip(batches) {
                let request = |statistic| {
                    number += 1;
                    ReleaseRequest {
                        number: number - 1,
                        statistic,
                        variance_units: UNITS,
                    }
                };
                let requests: Vec<_> = statistics.into_iter().map(request).collect();
                let placement = window.place(&requests).unwrap();
                window.take(&placement);
                for (request, placed) in requests.iter().zip(&placement.placed) {
                    let debit = Debit {
                        number: request.number,
                        description: "what".to_owned(),
                        digest: placed.statement,
                        delta2_squared: 1,
                        variance_units: UNITS,
                        honest: 1,
                        cells: placed.cells as u64,
                        leak: Rho::ZERO,
                    };
                    ledger.debit(debit).unwrap();
                }
                let answer = |(request, spans): (&ReleaseRequest, _)| {
                    let noise = noise.release_noise(spans, UNITS).unwrap();
                    expected(&self.table, &request.statistic, &noise).unwrap()
                };
                let spans = placement.spans.iter().map(Vec::as_slice);
                let answers = requests.iter().zip(spans).map(answer).collect();
                let debited = ledger.entries().len() - requests.len();
                shown.push(ReleasedBatch {
                    height,
                    job: JOB,
                    run: 0,
                    entries: ledger.entries()[debited..].to_vec(),
                    requests: Some(requests),
                    answers,
                });
            }
            let run = RunLedger {
                job: JOB,
                budget: ledger.budget().into(),
                spent: ledger.spent().into(),
                entries: ledger.entries().to_vec(),
            };
            (vec![run], shown)
        }

        fn faults(&self, runs: &[RunLedger], batches: &[ReleasedBatch]) -> Vec<(u32, Fault)> {
            let held = (&self.table as &dyn Counted, &self.key);
            let found = check(DATASET, &self.outline, held, (runs, batches)).unwrap();
            assert_eq!(found.equal + found.findings.len(), 3);
            let faults = found.findings.into_iter();
            faults.map(|found| (found.number, found.fault)).collect()
        }
    }

    #[test]
    fn every_lie_about_a_release_is_found() {
        let setting = Setting::new();
        let (runs, honest) = setting.released();
        assert_eq!(setting.faults(&runs, &honest), []);
        let told = |lie: &dyn Fn(&mut Vec<ReleasedBatch>)| {
            let mut batches = honest.clone();
            lie(&mut batches);
            setting.faults(&runs, &batches)
        };
        let expected = honest[1].answers[0][4];
        let changed = Fault::Cells {
            count: 1,
            first: 4,
            expected,
            released: expected + 1,
        };
        assert_eq!(told(&|b| b[1].answers[0][4] += 1), [(2, changed)]);
        let longer = Fault::Length {
            expected: 6,
            released: 7,
        };
        assert_eq!(told(&|b| b[1].answers[0].push(0)), [(2, longer)]);
        // No answer, no batch, no debit that the ledger has not.
        let unanswered = |number| (number, Fault::Unanswered);
        assert_eq!(told(&|b| b[0].answers.truncate(1)), [unanswered(1)]);
        assert_eq!(told(&|b| b.truncate(1)), [unanswered(2)]);
        // Another statistic, another noise, another place, another debit than was paid for.
        let statement = |number| (number, Fault::Statement);
        let asked = |b: &mut Vec<ReleasedBatch>, change: &dyn Fn(&mut ReleaseRequest)| {
            change(&mut b[0].requests.as_mut().unwrap()[1]);
        };
        let other = Statistic::OneWay(Axis {
            attribute: 1,
            functions: vec![vec![2, 0, 0]; 3],
        });
        let other = told(&|b| asked(b, &|request| request.statistic = other.clone()));
        assert_eq!(other, [statement(1)]);
        let less = told(&|b| asked(b, &|request| request.variance_units = 1));
        assert_eq!(less, [statement(1)]);
        assert_eq!(told(&|b| b[1].run = 1), [statement(2)]);
        let both = [statement(0), statement(1)];
        assert_eq!(told(&|b| asked(b, &|request| request.number = 5)), both);
        assert_eq!(
            told(&|b| b[1].entries[0].debit.digest = [9; 32]),
            [statement(2)]
        );
        let unkept = told(&|b| b[1].requests = None);
        assert_eq!(unkept, [(2, Fault::Unkept)]);
    }

    /// Without the positions of a batch that was not kept, no later one could be checked.
    #[test]
    fn what_was_not_kept_has_its_positions_all_the_same() {
        let setting = Setting::new();
        let (runs, mut batches) = setting.released();
        batches[0].requests = None;
        let unkept = [(0, Fault::Unkept), (1, Fault::Unkept)];
        assert_eq!(setting.faults(&runs, &batches), unkept);
    }
}
