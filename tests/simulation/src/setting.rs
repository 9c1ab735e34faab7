//! Scenarios that schedules share: a small table, its ladder, and the results of undisturbed runs. They are computed
//! once for each mechanism and number of runs.

use crate::pages::{Clear, Encrypted, Engine};
use fhaim_domain::{Schema, Table};
use fhaim_dp::{Allocator, Ladder, LadderPlan, PAGE};
use fhaim_protocol::crypto::judge::Rules;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_release::{Machine, MechanismJob, ReleaseRequest, RunProgress, Statistic};
use fhaim_synth::{AnyMachine, Error, MechanismName, MechanismStep, Mechanisms, RunOutcome, exact};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};
use std::rc::Rc;
use std::sync::Arc;

/// The dataset of every schedule.
pub(crate) const DATASET: DatasetId = DatasetId([7; 16]);

/// Digest to which runs are bound if the upload is complete from the beginning.
pub(crate) const UPLOAD: [u8; 32] = [4; 32];

const RECORDS: usize = 40;

const SCHEMA: &str = r#"{"name":"t","columns":[
    {"name":"a","kind":"categorical","categories":["1","2"]},
    {"name":"b","kind":"categorical","categories":["1","2","3"]},
    {"name":"c","kind":"categorical","categories":["1","2"]}]}"#;

/// A dataset: its terms, its table, and the engine that makes and reads its pages.
pub(crate) struct Scenario {
    pub plan: Plan,
    pub rules: Rules,
    pub runs: Arc<Vec<Undisturbed>>,
    pub engine: Rc<dyn Engine>,
    mechanism: MechanismName,
}

/// A run without faults.
pub(crate) struct Undisturbed {
    /// All requested batches with their answers.
    pub batches: Vec<Batch>,
    last: RunProgress,
    outcome: RunOutcome,
    /// SHA-256 of the saved model.
    pub model: [u8; 32],
}

pub(crate) struct Batch {
    pub requests: Vec<ReleaseRequest>,
    /// Progress of the mechanism when it asked for the batch.
    pub progress: RunProgress,
    /// Answers as the crypto service releases them.
    pub released: Vec<Vec<i64>>,
    /// Answers with their public part added.
    pub whole: Vec<Vec<i64>>,
}

impl Scenario {
    pub(crate) fn new(mechanism: MechanismName, runs: u32, encrypted: bool, witness: bool) -> Self {
        let mut terms = Terms::new(schema(), 8.0, 1e-9, 64);
        terms.mechanism = mechanism.to_string();
        terms.runs = runs;
        terms.witness = witness;
        let terms = terms
            .complete(&Mechanisms)
            .expect("the terms above are feasible");
        let plan = terms.plan().expect("the terms above are feasible");
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let table = Arc::new(table(&mut rng));
        let ladder = plan.ladder().expect("the ladder is small");
        let mut rng = rand_chacha::ChaCha20Rng::from_rng(&mut rng);
        let ladder = Arc::new(Ladder::draw(ladder, &mut rng));
        let undisturbed =
            (0..runs).map(|run| Undisturbed::new(mechanism, &plan, &table, &ladder, run));
        let runs = Arc::new(undisturbed.collect());
        let rules = Rules::new(DATASET, &plan.core);
        let engine: Rc<dyn Engine> = if encrypted {
            Rc::new(Encrypted::new(&plan, &table, &ladder, &mut rng))
        } else {
            Rc::new(Clear { table, ladder })
        };
        Self {
            plan,
            rules,
            runs,
            engine,
            mechanism,
        }
    }

    /// Starts the mechanism. It takes its steps from the undisturbed runs as long as the answers match one of them.
    pub(crate) fn start(&self) -> Result<Box<AnyMachine>, Error> {
        Ok(Box::new(Remembering {
            runs: Arc::clone(&self.runs),
            possible: (0..self.runs.len()).collect(),
            steps: 0,
            history: Vec::new(),
            disturbed: None,
            name: self.mechanism,
            job: self.plan.job.clone(),
        }))
    }

    /// Returns the undisturbed run that has these answers, batch by batch.
    pub(crate) fn run_of(&self, answers: &[Vec<Vec<i64>>]) -> Option<usize> {
        let same = |run: &Undisturbed| run.batches.iter().map(|b| &b.whole).eq(answers);
        self.runs.iter().position(same)
    }
}

fn schema() -> Schema {
    Schema::from_json("t.json", SCHEMA.as_bytes()).expect("the schema above is valid")
}

fn table(rng: &mut ChaCha8Rng) -> Table {
    let mut columns = vec![Vec::new(); 3];
    for _ in 0..RECORDS {
        let a = rng.random_range(0..2u32);
        let b = if rng.random() { a } else { 2 };
        for (column, code) in columns.iter_mut().zip([a, b, rng.random_range(0..2)]) {
            column.push(code);
        }
    }
    Table::new(Arc::new(schema()), columns).expect("codes are within the schema's sizes")
}

/// Computes exact answers with a run's noise, taken from its window in the dataset's ladder.
struct Source<'a> {
    table: &'a Table,
    ladder: &'a Ladder,
    allocator: Allocator,
    first_page: usize,
}

impl<'a> Source<'a> {
    fn new(table: &'a Table, ladder: &'a Ladder, plan: LadderPlan, run: u32) -> Self {
        Self {
            table,
            ladder,
            allocator: Allocator::new(plan),
            first_page: plan.pages() * run as usize,
        }
    }

    fn answer(&mut self, request: &ReleaseRequest) -> (Vec<i64>, Vec<i64>) {
        let spans = self
            .allocator
            .allocate(request.number, request.statistic.cells());
        let mut spans = spans.expect("the plan has positions for the mechanism's releases");
        for span in &mut spans {
            span.page += self.first_page;
        }
        let noise = self.ladder.release_noise(&spans, request.variance_units);
        let noise = noise.expect("the run's window is within the ladder");
        let exact = exact(self.table, &request.statistic).expect("a statistic of the domain");
        let whole: Vec<i64> = exact.iter().zip(noise.iter()).map(|(e, n)| e + n).collect();
        let public = public_part(&request.statistic, whole.len());
        let released = whole.iter().zip(public).map(|(w, p)| w - p).collect();
        (released, whole)
    }
}

/// Returns the public part of each cell: `weight * ||target||^2` for a squared score, otherwise 0.
pub(crate) fn public_part(statistic: &Statistic, cells: usize) -> Vec<i64> {
    match statistic {
        Statistic::SquaredScores(terms) => (terms.iter())
            .map(|term| term.weight * term.target.iter().map(|t| t * t).sum::<i64>())
            .collect(),
        _ => vec![0; cells],
    }
}

impl Undisturbed {
    /// Checks whether an outcome has the releases of this run.
    pub(crate) fn is(&self, outcome: &RunOutcome) -> bool {
        self.outcome.releases == outcome.releases
    }

    fn new(name: MechanismName, plan: &Plan, table: &Table, ladder: &Ladder, run: u32) -> Self {
        let mut machine = name
            .start(plan.job.clone())
            .expect("the plan is valid for the mechanism");
        let mut source = Source::new(table, ladder, plan.core.run_ladder, run);
        let mut batches: Vec<Batch> = Vec::new();
        loop {
            let answers = batches.last().map_or(&[][..], |batch| &batch.whole);
            match machine.step(answers).expect("honest answers are accepted") {
                MechanismStep::Release(requests) => {
                    let answers = requests.iter().map(|request| source.answer(request));
                    let (released, whole) = answers.unzip();
                    batches.push(Batch {
                        requests,
                        progress: machine.progress(),
                        released,
                        whole,
                    });
                }
                MechanismStep::Done(outcome) => {
                    debug_assert!(ladder.plan().positions() <= ladder.plan().pages() * PAGE);
                    return Self {
                        batches,
                        last: machine.progress(),
                        model: Sha256::digest(outcome.model.save()).into(),
                        outcome: *outcome,
                    };
                }
            }
        }
    }
}

/// A machine that takes its steps from undisturbed runs. Once the answers match none of them, it runs the real
/// mechanism.
struct Remembering {
    runs: Arc<Vec<Undisturbed>>,
    /// Runs that match all answers so far.
    possible: Vec<usize>,
    steps: usize,
    history: Vec<Vec<Vec<i64>>>,
    disturbed: Option<Box<AnyMachine>>,
    name: MechanismName,
    job: MechanismJob,
}

impl Machine for Remembering {
    type Outcome = RunOutcome;
    type Error = Error;

    fn step(&mut self, answers: &[Vec<i64>]) -> Result<MechanismStep, Error> {
        self.history.push(answers.to_vec());
        if let Some(machine) = &mut self.disturbed {
            return machine.step(answers);
        }
        self.steps += 1;
        let runs = Arc::clone(&self.runs);
        if let Some(last) = self.steps.checked_sub(2) {
            self.possible.retain(|&run| {
                let batch = runs[run].batches.get(last);
                batch.is_some_and(|batch| batch.whole == answers)
            });
        }
        let Some(run) = self.possible.first().map(|&run| &runs[run]) else {
            return self.play();
        };
        Ok(match run.batches.get(self.steps - 1) {
            Some(batch) => MechanismStep::Release(batch.requests.clone()),
            None => MechanismStep::Done(Box::new(RunOutcome {
                model: run.outcome.model.clone(),
                releases: run.outcome.releases.clone(),
                spent: run.outcome.spent,
                timings: Vec::new(),
            })),
        })
    }

    fn progress(&self) -> RunProgress {
        if let Some(machine) = &self.disturbed {
            return machine.progress();
        }
        let run = &self.runs[self.possible[0]];
        let batch = run.batches.get(self.steps.saturating_sub(1));
        batch.map_or(run.last, |batch| batch.progress)
    }
}

impl Remembering {
    /// Runs the real mechanism from the beginning to the current step.
    fn play(&mut self) -> Result<MechanismStep, Error> {
        let mut machine = self.name.start(self.job.clone())?;
        let (last, before) = self.history.split_last().expect("a step was pushed");
        for answers in before {
            machine.step(answers)?;
        }
        let next = machine.step(last);
        self.disturbed = Some(machine);
        next
    }
}
