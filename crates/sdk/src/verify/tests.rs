use super::history::LedgerChain;
use super::shares::Record;
use super::*;
use fhaim_domain::{Schema, Table};
use fhaim_protocol::terms::Terms;
use fhaim_release::{Axis, Statistic};
use std::sync::Arc;

const DATASET: Uuid = Uuid::from_u128(5);
const JOB: Uuid = Uuid::from_u128(6);
const UNITS: u64 = 1000;

struct Setting {
    outline: PlanCore,
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
            outline: terms.plan_core().unwrap(),
            table: Table::new(schema, columns).unwrap(),
            key: LadderKey::from_bytes(DATASET.into_bytes(), &[3; 32]),
        }
    }

    fn rules(&self) -> Rules {
        Rules::new(DatasetId(DATASET.into_bytes()), &self.outline)
    }

    /// Two honest batches as a key service shows them, and its ledger.
    fn released(&self) -> (Vec<RunLedger>, Vec<ReleasedBatch>) {
        let pair = Statistic::Product(Axis::identity(0, 2), Axis::identity(1, 3));
        let one_way = Statistic::OneWay(Axis::identity(1, 3));
        let batches = [vec![Statistic::Total, one_way], vec![pair]];
        let rules = self.rules();
        let mut replay = Replay::new(&rules, JobId(JOB.into_bytes()), 0);
        let mut noise = KeyedLadder::new(&self.key, self.outline.ladder().unwrap());
        let mut number = 0;
        let (mut shown, mut debited) = (Vec::new(), Vec::new());
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
            let (placement, entries) = replay.batch(&rules, &requests).unwrap();
            debited.extend(entries.iter().cloned());
            let answer = |(request, spans): (&ReleaseRequest, _)| {
                let noise = noise.release_noise(spans, UNITS).unwrap();
                expected(&self.table, &request.statistic, &noise).unwrap()
            };
            let spans = placement.spans.iter().map(Vec::as_slice);
            let answers = requests.iter().zip(spans).map(answer).collect();
            shown.push(ReleasedBatch {
                height,
                job: JOB,
                run: 0,
                entries,
                requests,
                answers,
            });
        }
        let run = RunLedger {
            job: JOB,
            budget: rules.plan.run_budget.into(),
            spent: rules.plan.run_budget.into(),
            entries: debited,
        };
        (vec![run], shown)
    }

    fn faults(&self, runs: &[RunLedger], batches: &[ReleasedBatch]) -> Vec<(u32, Fault)> {
        let records = Records::Table(Arc::new(self.table.clone()));
        let mut own = Own::new(&records, &self.key, &self.outline).unwrap();
        let told = Told {
            dataset: DATASET,
            runs: runs.to_vec(),
            batches: batches.to_vec(),
        };
        let found = told.check(&self.outline, |asked| match own.summands(asked) {
            Some(expected) => difference(&expected, asked.released).map(Fault::from),
            None => Some(Fault::Statement),
        });
        assert_eq!(found.equal + found.findings.len(), 3);
        let faults = found.findings.into_iter();
        faults.map(|found| (found.number, found.fault)).collect()
    }
}

#[test]
fn every_altered_release_is_found() {
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
    // A missing answer, and a missing batch.
    let unanswered = |number| (number, Fault::Unanswered);
    assert_eq!(told(&|b| b[0].answers.truncate(1)), [unanswered(1)]);
    assert_eq!(told(&|b| b.truncate(1)), [unanswered(2)]);
    // Another statistic, noise, place or debit than the one that was paid for.
    let statement = |number| (number, Fault::Statement);
    let asked = |b: &mut Vec<ReleasedBatch>, change: &dyn Fn(&mut ReleaseRequest)| {
        change(&mut b[0].requests[1]);
    };
    let other = Statistic::OneWay(Axis {
        attribute: 1,
        functions: vec![vec![2, 0, 0]; 3],
    });
    let other = told(&|b| asked(b, &|request| request.statistic = other.clone()));
    assert_eq!(other, [statement(1)]);
    let less = told(&|b| asked(b, &|request| request.variance_units = 999));
    assert_eq!(less, [statement(1)]);
    // Beyond the budget, nothing follows from the requests.
    let little = told(&|b| asked(b, &|request| request.variance_units = 1));
    assert_eq!(little, [statement(0), statement(1)]);
    assert_eq!(told(&|b| b[1].run = 1), [statement(2)]);
    let both = [statement(0), statement(1)];
    assert_eq!(told(&|b| asked(b, &|request| request.number = 5)), both);
    assert_eq!(
        told(&|b| b[1].entries[0].debit.digest = [9; 32]),
        [statement(2)]
    );
    assert_eq!(told(&|b| b[1].requests.clear()), [statement(2)]);
}

/// Returns the releases that one of several holders would share.
fn shared(setting: &Setting, runs: &[RunLedger], batches: &[ReleasedBatch]) -> Vec<u32> {
    let told = Told {
        dataset: DATASET,
        runs: runs.to_vec(),
        batches: batches.to_vec(),
    };
    let mut shared = Vec::new();
    told.check(&setting.outline, |asked| {
        shared.extend(asked.derived.then_some(asked.request.number));
        None
    });
    shared
}

/// A batch that froze the dataset was debited but has no integers. A release that differs from an earlier record of it
/// is a contradiction.
#[test]
fn frozen_batch_does_not_contradict_earlier_releases() {
    let setting = Setting::new();
    let (runs, honest) = setting.released();
    let told = |batches: &[ReleasedBatch]| Told {
        dataset: DATASET,
        runs: runs.clone(),
        batches: batches.to_vec(),
    };
    let folder = tempfile::tempdir().unwrap();
    let chain = LedgerChain::read(DATASET, &[]).unwrap();
    let path = folder.path().join("a.shared");
    let mut record = Record::read(DATASET, path).unwrap();
    record
        .take(&setting.outline, &told(&honest[..1]), &chain)
        .unwrap();
    record
        .take(&setting.outline, &told(&honest), &chain)
        .unwrap();
    let mut invented = honest.clone();
    invented[0].requests[1].variance_units = 999;
    let refused = record.take(&setting.outline, &told(&invented), &chain);
    assert!(
        matches!(refused, Err(Error::Contradicted { .. })),
        "{refused:?}"
    );
}

/// A key service may claim other cells than a release has, or hide the request. Then the next release could lie on the
/// same noise, and the two sums would differ by exact counts. A key service that shows releases without a debit would
/// get them for free.
#[test]
fn releases_without_request_or_debit_are_not_shared() {
    let setting = Setting::new();
    let (runs, honest) = setting.released();
    assert_eq!(shared(&setting, &runs, &honest), [0, 1, 2]);
    let mut unsaid = honest.clone();
    unsaid[0].requests.clear();
    assert!(shared(&setting, &runs, &unsaid).is_empty());

    let (mut short, mut claimed) = (runs.clone(), honest.clone());
    short[0].entries[0].debit.cells = 2;
    claimed[0].entries[0].debit.cells = 2;
    assert!(shared(&setting, &short, &claimed).is_empty());
    assert_eq!(setting.faults(&short, &claimed)[0], (0, Fault::Statement));

    let undebited = |number| (number, Fault::Undebited);
    assert!(shared(&setting, &[], &honest).is_empty());
    let all = [undebited(0), undebited(1), undebited(2)];
    assert_eq!(setting.faults(&[], &honest), all);
    // A run that the terms do not have.
    let mut beyond = honest.clone();
    beyond.iter_mut().for_each(|batch| batch.run = 1);
    assert!(shared(&setting, &runs, &beyond).is_empty());
}

/// Without the positions of a batch whose requests are hidden, no later batch could be checked.
#[test]
fn batch_without_requests_keeps_its_positions() {
    let setting = Setting::new();
    let (runs, mut batches) = setting.released();
    batches[0].requests.clear();
    let statement = [(0, Fault::Statement), (1, Fault::Statement)];
    assert_eq!(setting.faults(&runs, &batches), statement);
}
