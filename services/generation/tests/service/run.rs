//! A job as a state machine, against a source in the clear: crashes between any two steps change
//! nothing.

use fhaim_domain::{Schema, Table};
use fhaim_generation::run::{Action, Batch, Run, RunError, StoredBatch};
use fhaim_protocol::terms::Terms;
use fhaim_synth::{MechanismName, Outcome, PlaintextSource, Source};
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
    terms.mechanism = mechanism;
    terms
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
    let schema = terms(MechanismName::Staged).schema;
    Table::new(schema, columns).unwrap()
}

/// What a database would hold.
#[derive(Default)]
struct Stored(Vec<StoredBatch>);

impl Stored {
    fn store(&mut self, batch: &Batch) {
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

/// Plays a run to its end; after every `crash_after` actions it is begun anew from what is stored.
fn play(terms: &Terms, source: &mut dyn Source, crash_after: usize) -> (Box<Outcome>, Stored) {
    let mut stored = Stored::default();
    loop {
        let mut run = Run::new(terms, stored.0.clone()).unwrap();
        for _ in 0..crash_after {
            match run.advance().unwrap() {
                Action::Store(batch) => {
                    stored.store(&batch);
                    run.stored().unwrap();
                }
                Action::Ask(batch) => {
                    assert_eq!(batch.requests, stored.0[batch.number].requests);
                    let answers = source.release(&batch.requests).unwrap();
                    run.answered(answers.clone()).unwrap();
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
fn a_run_is_the_mechanism_whatever_ends_it() {
    let table = table();
    for mechanism in [
        MechanismName::Staged,
        MechanismName::FhaimL2,
        MechanismName::OneWays,
    ] {
        let terms = terms(mechanism);
        let job = terms.plan().unwrap().job;
        let mut rng = ChaCha20Rng::seed_from_u64(4);
        let mut source = PlaintextSource::with_rng(&table, &mut rng);
        let mut whole = mechanism.start(job.clone()).unwrap();
        let whole = fhaim_synth::run(whole.as_mut(), &mut source, &mut |_| {}).unwrap();
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

/// What is stored after a whole run.
fn whole() -> (Terms, Vec<StoredBatch>) {
    let (table, terms) = (table(), terms(MechanismName::Staged));
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let mut source = PlaintextSource::with_rng(&table, &mut rng);
    let (_, stored) = play(&terms, &mut source, usize::MAX);
    assert!(stored.0.len() >= 3);
    (terms, stored.0)
}

#[test]
fn a_batch_that_would_be_another_now_ends_the_run() {
    let (terms, mut stored) = whole();
    stored[1].requests[0].variance_units += 1;
    let mut run = Run::new(&terms, stored).unwrap();
    assert!(matches!(run.advance(), Err(RunError::Diverged(1))));
}

#[test]
fn what_contradicts_itself_is_refused() {
    let (terms, stored) = whole();
    let mut gap = stored.clone();
    gap[0].answers = None;
    assert!(matches!(
        Run::new(&terms, gap),
        Err(RunError::Contradiction)
    ));
    let mut more = stored.clone();
    more.push(stored[1].clone());
    let mut run = Run::new(&terms, more).unwrap();
    assert!(matches!(run.advance(), Err(RunError::Contradiction)));
}

#[test]
fn answers_must_be_those_asked_for_and_come_in_turn() {
    let (terms, mut stored) = whole();
    stored.truncate(2);
    let answers = stored[1].answers.take().unwrap();
    let mut run = Run::new(&terms, stored).unwrap();
    assert!(matches!(
        run.answered(answers.clone()),
        Err(RunError::OutOfTurn)
    ));
    assert!(matches!(run.stored(), Err(RunError::OutOfTurn)));
    assert!(matches!(
        run.advance(),
        Ok(Action::Ask(Batch { number: 1, .. }))
    ));
    let (mut fewer, mut shorter) = (answers.clone(), answers.clone());
    fewer.pop();
    shorter[0].pop();
    for wrong in [fewer, shorter, Vec::new()] {
        assert!(matches!(run.answered(wrong), Err(RunError::Answers(1))));
    }
    let before = run.spent();
    run.answered(answers.clone()).unwrap();
    assert!(run.spent() > before);
    assert!(matches!(run.answered(answers), Err(RunError::OutOfTurn)));
}

#[test]
fn terms_that_cannot_be_met_are_refused() {
    let mut none = terms(MechanismName::Staged);
    none.epsilon = 0.0;
    assert!(Run::new(&none, Vec::new()).is_err());
    assert!(matches!(
        Run::new(&terms(MechanismName::Aim), Vec::new()),
        Err(RunError::Terms(_))
    ));
}
