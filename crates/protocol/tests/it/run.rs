//! Tests a job as a state machine, against a source in the clear. Crashes between any two steps
//! change nothing.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::{Schema, Table};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::{Error, generation};
use fhaim_release::{
    Action, MechanismRun, ReleaseBatch, ReleaseRequest, ReleaseSource, RunError, SquaredTerm,
    Statistic, StoredBatch,
};
use fhaim_synth::{AnyMachine, MechanismName, Mechanisms, PlaintextSource, RunOutcome};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

fn terms(mechanism: MechanismName) -> Terms {
    let json = br#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["1","2"]},
        {"name":"b","kind":"categorical","categories":["1","2","3"]},
        {"name":"c","kind":"categorical","categories":["1","2","3","4"]},
        {"name":"d","kind":"numeric","min":0,"max":1,"bins":5}
    ]}"#;
    let mut terms = Terms::new(Schema::from_json("t", json).unwrap(), 10.0, 1e-9, 600);
    terms.mechanism = mechanism.to_string();
    terms.complete(&Mechanisms).unwrap()
}

/// Starts a run over terms from its stored batches.
fn begin(terms: &Terms, stored: Vec<StoredBatch>) -> Result<MechanismRun<AnyMachine>, Error> {
    generation::start(&Mechanisms, terms, stored)
}

fn table() -> Table {
    let mut rng = ChaCha20Rng::seed_from_u64(2);
    let mut columns = vec![Vec::new(); 4];
    for _ in 0..500 {
        let a = rng.random_range(0..2u32);
        let c = if rng.random() { 2 * a } else { 3 };
        for (column, code) in columns.iter_mut().zip([a, rng.random_range(0..3), c, c]) {
            column.push(code);
        }
    }
    let schema = terms(MechanismName::default()).schema;
    Table::new(schema, columns).unwrap()
}

/// Takes the place of a database.
#[derive(Default)]
struct Stored(Vec<StoredBatch>);

impl Stored {
    fn store(&mut self, batch: &ReleaseBatch) {
        assert_eq!(
            batch.number,
            self.0.len(),
            "batches are stored in order, once"
        );
        self.0.push(StoredBatch {
            requests: batch.requests.clone(),
            answers: None,
        });
    }
}

/// Returns the crypto service's integers: squared scores without their public part. A service that
/// forgets to add it makes the mechanism choose by the rest.
fn decrypted(batch: &ReleaseBatch, whole: &[Vec<i64>]) -> Vec<Vec<i64>> {
    let without = |(request, answer): (&ReleaseRequest, &Vec<i64>)| match &request.statistic {
        Statistic::SquaredScores(terms) => {
            let public =
                |term: &SquaredTerm| term.weight * term.target.iter().map(|t| t * t).sum::<i64>();
            let scores = answer.iter().zip(terms);
            scores.map(|(value, term)| value - public(term)).collect()
        }
        _ => answer.clone(),
    };
    batch.requests.iter().zip(whole).map(without).collect()
}

/// Plays a run to its end. After every `crash_after` actions it is restarted from its stored
/// batches.
fn play(
    terms: &Terms,
    source: &mut dyn ReleaseSource,
    crash_after: usize,
) -> (Box<RunOutcome>, Stored) {
    let mut stored = Stored::default();
    loop {
        let mut run = begin(terms, stored.0.clone()).unwrap();
        for _ in 0..crash_after {
            match run.advance().unwrap() {
                Action::Store(batch) => {
                    stored.store(&batch);
                    run.stored().unwrap();
                }
                Action::Ask(batch) => {
                    assert_eq!(batch.requests, stored.0[batch.number].requests);
                    let whole = source.release(&batch.requests).unwrap();
                    let answers = run.decrypted(decrypted(&batch, &whole)).unwrap();
                    assert_eq!(answers, whole);
                    stored.0[batch.number].answers = Some(answers);
                }
                Action::Finish(outcome, _) => {
                    assert_eq!(run.spent(), outcome.spent);
                    return (outcome, stored);
                }
            }
        }
    }
}

#[test]
fn run_interrupted_anywhere_equals_the_uninterrupted_run() {
    let table = table();
    for mechanism in MechanismName::encrypted() {
        let terms = terms(mechanism);
        let job = terms.plan().unwrap().job;
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut source = PlaintextSource::with_rng(&table, &mut rng);
        let run = begin(&terms, Vec::new()).unwrap();
        let whole = fhaim_synth::drive(run, &mut source, &mut |_| {}).unwrap();
        assert!(whole.spent <= job.rho);
        for crash_after in [usize::MAX, 1, 2, 3] {
            let mut rng = ChaCha20Rng::seed_from_u64(4);
            let mut source = PlaintextSource::with_rng(&table, &mut rng);
            let (outcome, stored) = play(&terms, &mut source, crash_after);
            assert_eq!(
                outcome.releases, whole.releases,
                "{mechanism}, {crash_after}"
            );
            assert_eq!(outcome.model.save(), whole.model.save());
            let numbers = stored.0.iter().flat_map(|b| &b.requests).map(|r| r.number);
            assert!(numbers.eq(0..whole.releases.len() as u32));
        }
    }
}

/// Returns the batches stored after a whole run.
fn whole() -> (Terms, Vec<StoredBatch>) {
    let (table, terms) = (table(), terms(MechanismName::default()));
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut source = PlaintextSource::with_rng(&table, &mut rng);
    let (_, stored) = play(&terms, &mut source, usize::MAX);
    assert!(stored.0.len() >= 3);
    (terms, stored.0)
}

#[test]
fn stored_batch_that_differs_from_the_mechanism_ends_the_run() {
    let (terms, mut stored) = whole();
    stored[1].requests[0].variance_units += 1;
    let mut run = begin(&terms, stored).unwrap();
    assert!(matches!(run.advance(), Err(RunError::Diverged(1))));
}

#[test]
fn contradictory_stored_batches_are_rejected() {
    let (terms, stored) = whole();
    let mut gap = stored.clone();
    gap[0].answers = None;
    assert!(matches!(begin(&terms, gap), Err(Error::Run(_))));
    let mut more = stored.clone();
    more.push(stored[1].clone());
    let mut run = begin(&terms, more).unwrap();
    assert!(matches!(run.advance(), Err(RunError::Contradiction)));
}

#[test]
fn wrong_or_unexpected_answers_are_rejected() {
    let (terms, mut stored) = whole();
    stored.truncate(2);
    let answers = stored[1].answers.take().unwrap();
    let mut run = begin(&terms, stored).unwrap();
    assert!(matches!(
        run.answered(answers.clone()),
        Err(RunError::OutOfTurn)
    ));
    assert!(matches!(run.stored(), Err(RunError::OutOfTurn)));
    assert!(matches!(
        run.advance(),
        Ok(Action::Ask(ReleaseBatch { number: 1, .. }))
    ));
    let (mut fewer, mut shorter) = (answers.clone(), answers.clone());
    fewer.pop();
    shorter[0].pop();
    for wrong in [fewer, shorter, Vec::new()] {
        let refused = run.decrypted(wrong.clone());
        assert!(matches!(refused, Err(RunError::Answers(1))));
        assert!(matches!(run.answered(wrong), Err(RunError::Answers(1))));
    }
    let before = run.spent();
    run.answered(answers.clone()).unwrap();
    assert!(run.spent() > before);
    assert!(matches!(run.answered(answers), Err(RunError::OutOfTurn)));
}

#[test]
fn terms_without_a_mechanism_have_the_default() {
    let schema = terms(MechanismName::default()).schema;
    let named = Terms::new(schema, 1.0, 1e-9, 600).mechanism;
    assert_eq!(named, MechanismName::default().as_str());
}

#[test]
fn impossible_terms_cannot_start_a_run() {
    let mut none = terms(MechanismName::default());
    none.epsilon = 0.0;
    assert!(matches!(begin(&none, Vec::new()), Err(Error::Privacy(..))));
    let mut none = none.choices();
    none.mechanism = "aim".to_owned();
    assert!(matches!(
        none.complete(&Mechanisms),
        Err(Error::Mechanism(..))
    ));
}
