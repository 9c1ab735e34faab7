//! The generation service: `services/generation`'s jobs and worker over a simulated store.

use crate::Mutant;
use crate::computation::Ask;
use crate::ghost::Known;
use crate::receipts;
use crate::world::{Envelope, Failure, Node, W};
use fhaim_api::batch::{self, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::request::JobId;
use fhaim_release::{Action, Batch, Run, StoredBatch};
use fhaim_synth::Outcome;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What is stored.
#[derive(Clone, Default)]
pub(crate) struct Db {
    jobs: BTreeMap<JobId, Job>,
    /// The highest receipt of all jobs, for [`Mutant::HighestReceiptAlone`].
    highest: receipts::Text,
}

#[derive(Clone)]
struct Job {
    state: State,
    error: Option<Rc<str>>,
    releases: usize,
    stalls: u32,
    outages: u32,
    lease: Option<u64>,
    until: u64,
    batches: Vec<(Rc<str>, Option<Rc<str>>)>,
    /// SHA-256 of the saved model.
    model: Option<[u8; 32]>,
    /// The receipt of the job's last answer. The next one's call shows it, and so contains it; of
    /// another job's nothing is known.
    receipt: receipts::Text,
    known: Known,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    Queued,
    Running,
    Failed,
    Done,
}

/// A call by a holder's program.
#[derive(Serialize, Deserialize)]
pub(crate) enum Call {
    /// Makes the job of this name; again, it changes nothing.
    Create(JobId),
    Show(JobId),
    Retry(JobId),
}

/// What a holder's program is told of its job.
#[derive(Serialize, Deserialize)]
pub(crate) struct Shown {
    pub state: State,
    pub error: Option<String>,
    pub receipts: Vec<Receipt>,
}

/// Why an attempt ended before its job did.
enum Stop {
    Lost,
    Failed(String),
    Outage,
    Fault(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Fault(failure)
    }
}

struct Lease {
    job: JobId,
    token: u64,
}

/// Attempts in a row without a step after which a job is given up.
const MOST_STALLS: u32 = 5;

/// The answers of a job, by batch and release, and SHA-256 of its model.
pub(crate) type JobResult = (Vec<Vec<Vec<i64>>>, [u8; 32]);

impl Db {
    pub(crate) fn known(&self) -> Known {
        self.jobs.values().fold(0, |known, job| known | job.known)
    }

    pub(crate) fn end_leases(&mut self) {
        for job in self.jobs.values_mut() {
            job.lease = None;
            job.until = 0;
        }
    }

    /// The answers and the model of a job that is done.
    pub(crate) fn result(&self, job: JobId) -> Option<JobResult> {
        let job = self.jobs.get(&job)?;
        let answers = job
            .batches
            .iter()
            .map(|(_, answers)| serde_json::from_str(answers.as_deref()?).ok());
        Some((answers.collect::<Option<_>>()?, job.model?))
    }

    fn hold(&mut self, lease: &Lease, until: u64) -> Result<&mut Job, Stop> {
        let job = self.jobs.get_mut(&lease.job).ok_or(Stop::Lost)?;
        if job.state != State::Running || job.lease != Some(lease.token) {
            return Err(Stop::Lost);
        }
        job.until = until;
        Ok(job)
    }

    /// The receipts that are shown.
    fn receipts(&self, w: &W) -> Vec<Receipt> {
        if w.is(Mutant::GenerationShowsNoReceipt) {
            return Vec::new();
        }
        if w.is(Mutant::HighestReceiptAlone) {
            return receipts::read(&self.highest);
        }
        let jobs = self.jobs.values();
        receipts::distinct(jobs.flat_map(|job| receipts::read(&job.receipt)))
    }

    fn claim_run(&self, runs: u32) -> Result<(), Failure> {
        let live =
            |job: &&Job| job.releases > 0 || matches!(job.state, State::Queued | State::Running);
        if self.jobs.values().filter(live).count() >= runs as usize {
            let detail = "the dataset's budget has no run left";
            return Err(Failure::new(ProblemKind::BudgetSpent, detail));
        }
        Ok(())
    }
}

fn text(value: &impl Serialize) -> Rc<str> {
    serde_json::to_string(value).expect("it is text").into()
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(ProblemKind::Internal, error))
}

/// Answers a call.
pub(crate) async fn handle(w: &W, envelope: &Envelope) -> Result<Envelope, Failure> {
    let runs = w.setting.plan.runs;
    match envelope.open()? {
        Call::Create(call) => {
            let job = match w.is(Mutant::EachCallMakesAJob) {
                true => other_name(call, w.fresh()),
                false => call,
            };
            let made = w.tx(&w.generation, |db| {
                if db.jobs.contains_key(&job) {
                    return Ok(());
                }
                db.claim_run(runs)?;
                db.jobs.insert(job, Job::queued());
                Ok::<_, Failure>(())
            });
            made.await?;
            w.ghost.borrow_mut().made(call, job);
            show(w, call)
        }
        Call::Show(job) => {
            w.pause().await;
            show(w, job)
        }
        Call::Retry(id) => {
            let queued = w.tx(&w.generation, |db| {
                let job = db.jobs.get(&id).ok_or_else(not_found)?;
                let may_have_a_run = match w.is(Mutant::RetryClaimsARun) {
                    true => job.releases > 0,
                    false => !job.batches.is_empty(),
                };
                if !may_have_a_run && job.state == State::Failed {
                    db.claim_run(runs)?;
                }
                let job = db.jobs.get_mut(&id).ok_or_else(not_found)?;
                if job.state == State::Failed {
                    (job.state, job.error, job.until) = (State::Queued, None, 0);
                    (job.stalls, job.outages) = (0, 0);
                }
                Ok::<_, Failure>(())
            });
            queued.await?;
            show(w, id)
        }
    }
}

impl Job {
    fn queued() -> Self {
        Self {
            state: State::Queued,
            error: None,
            releases: 0,
            stalls: 0,
            outages: 0,
            lease: None,
            until: 0,
            batches: Vec::new(),
            model: None,
            receipt: None,
            known: 0,
        }
    }
}

fn not_found() -> Failure {
    Failure::new(ProblemKind::NotFound, "no such job")
}

/// Another name for each time that a call comes.
fn other_name(JobId(mut name): JobId, number: u64) -> JobId {
    name[8..].copy_from_slice(&number.to_le_bytes());
    JobId(name)
}

fn show(w: &W, job: JobId) -> Result<Envelope, Failure> {
    let db = w.generation.get();
    let job = match w.is(Mutant::EachCallMakesAJob) {
        true => db
            .jobs
            .iter()
            .find(|(name, _)| name.0[..8] == job.0[..8])
            .map(|(_, job)| job),
        false => db.jobs.get(&job),
    };
    let job = job.ok_or_else(not_found)?;
    let shown = Shown {
        state: job.state,
        error: job.error.as_deref().map(str::to_owned),
        receipts: db.receipts(w),
    };
    Ok(Envelope::new(&shown, db.known()))
}

/// Begins the process's workers.
pub(crate) fn start(w: &W) {
    for _ in 0..2 {
        let world = Rc::clone(w);
        w.spawn(Node::Generation, async move { worker(&world).await });
    }
}

async fn worker(w: &W) {
    loop {
        match take(w).await {
            Some(lease) => {
                let _renewed = w.at_work(lease.token);
                if let Err(stop) = drive(w, &lease).await {
                    settle(w, &lease, stop).await;
                }
            }
            None => w.sleep(15).await,
        }
    }
}

async fn take(w: &W) -> Option<Lease> {
    w.pause().await;
    let now = w.now.get();
    let free = |job: &Job| {
        let waits = matches!(job.state, State::Queued | State::Running);
        waits && job.until <= now && !job.lease.is_some_and(|token| w.is_at_work(token))
    };
    if !w.generation.get().jobs.values().any(free) {
        return None;
    }
    let token = w.fresh();
    let taken = w.tx(&w.generation, |db| {
        let (id, job) = db.jobs.iter_mut().find(|(_, job)| free(job)).ok_or(())?;
        (job.state, job.lease, job.until) = (State::Running, Some(token), now + w.lease);
        Ok::<_, ()>(*id)
    });
    let job = taken.await.ok()?;
    Some(Lease { job, token })
}

async fn settle(w: &W, lease: &Lease, stop: Stop) {
    let now = w.now.get();
    let settled = w.tx(&w.generation, |db| {
        let job = db.hold(lease, 0)?;
        let pause = |attempts: u32| now + (10 << attempts.min(4));
        match stop {
            Stop::Lost => return Err(Stop::Lost),
            Stop::Failed(reason) => {
                w.trace(|| format!("Generation: a job failed: {reason}"));
                (job.state, job.error) = (State::Failed, Some(reason.into()));
            }
            Stop::Outage => {
                (job.state, job.until) = (State::Queued, pause(job.outages));
                (job.stalls, job.outages, job.lease) = (0, job.outages + 1, None);
            }
            Stop::Fault(failure) => {
                w.trace(|| format!("Generation: {:?} {}", failure.kind, failure.detail));
                (job.until, job.lease) = (pause(job.stalls), None);
            }
        }
        Ok(())
    });
    drop(settled.await);
}

/// Sees a job through to its end.
async fn drive(w: &W, lease: &Lease) -> Result<(), Stop> {
    let stored = begin(w, lease).await?;
    let failed = |error: &dyn std::fmt::Display| Stop::Failed(error.to_string());
    let machine = w.setting.start().map_err(|e| failed(&e))?;
    let job = w.setting.plan.job.clone();
    let mut run = Run::new(machine, job, stored).map_err(|e| failed(&e))?;
    loop {
        w.pause().await;
        match run.advance().map_err(|e| failed(&e))? {
            Action::Store(batch) => {
                store(w, lease, &batch).await?;
                run.stored().map_err(|e| failed(&e))?;
            }
            Action::Ask(batch) => {
                let (answers, receipt, known) = ask(w, lease, &batch).await?;
                let answers = run.decrypted(answers).map_err(|e| failed(&e))?;
                store_answers(w, lease, &batch, &answers, receipt, known).await?;
            }
            Action::Finish(outcome, _) => return finish(w, lease, outcome, run.spent()).await,
        }
    }
}

/// Counts the attempt, and reads the job.
async fn begin(w: &W, lease: &Lease) -> Result<Vec<StoredBatch>, Stop> {
    let until = w.now.get() + w.lease;
    let batches = w.tx(&w.generation, |db| {
        let job = db.hold(lease, until)?;
        if job.stalls >= MOST_STALLS {
            let stalls = job.stalls;
            return Err(Stop::Failed(format!("given up after {stalls} attempts")));
        }
        job.stalls += 1;
        Ok(job.batches.clone())
    });
    let stored = batches.await?.into_iter().map(|(requests, answers)| {
        Ok(StoredBatch {
            requests: read(&requests)?,
            answers: answers.as_deref().map(read).transpose()?,
        })
    });
    Ok(stored.collect::<Result<_, Failure>>()?)
}

async fn store(w: &W, lease: &Lease, batch: &Batch) -> Result<(), Stop> {
    let until = w.now.get() + w.lease;
    w.tx(&w.generation, |db| {
        let job = db.hold(lease, until)?;
        if job.batches.len() != batch.number {
            let detail = "a batch of this number is stored";
            return Err(Failure::new(ProblemKind::Internal, detail).into());
        }
        job.batches.push((text(&batch.requests), None));
        job.stalls = 0;
        Ok(())
    })
    .await
}

/// Asks the computation service for a batch until it is released.
async fn ask(
    w: &W,
    lease: &Lease,
    batch: &Batch,
) -> Result<(Vec<Vec<i64>>, Option<Receipt>, Known), Stop> {
    let contradiction = || Stop::Failed("a batch without a release".to_owned());
    w.pause().await;
    let db = w.generation.get();
    let mut asked = Ask {
        job: lease.job,
        first: batch.first().ok_or_else(contradiction)?,
        batch: batch::Batch {
            requests: batch.requests.clone(),
            receipts: db.receipts(w),
            again: true,
        },
    };
    let (known, mut wait) = (db.known(), 6);
    drop(db);
    loop {
        let envelope = Envelope::new(&asked, known);
        let answer = w.call(Node::Generation, Node::Computation, envelope).await;
        let answer = answer.map_err(|failure| stop_of(&failure))?;
        asked.batch.again = false;
        match answer.open()? {
            BatchStatus::Released {
                answers, receipt, ..
            } => return Ok((answers, receipt, answer.known)),
            BatchStatus::Refused { reason, .. } => {
                let reason = format!("the computation service refused a release: {reason}");
                return Err(Stop::Failed(reason));
            }
            BatchStatus::Queued | BatchStatus::Running { .. } => {}
        }
        w.sleep(wait).await;
        wait = (wait * 3 / 2).min(40);
    }
}

fn stop_of(failure: &Failure) -> Stop {
    match failure.kind {
        ProblemKind::Unauthenticated
        | ProblemKind::TooManyRequests
        | ProblemKind::Unavailable
        | ProblemKind::Internal => Stop::Outage,
        _ => Stop::Failed(format!("the computation service: {}", failure.detail)),
    }
}

async fn store_answers(
    w: &W,
    lease: &Lease,
    batch: &Batch,
    answers: &[Vec<i64>],
    receipt: Option<Receipt>,
    known: Known,
) -> Result<(), Stop> {
    let until = w.now.get() + w.lease;
    w.tx(&w.generation, |db| {
        let job = db.hold(lease, until)?;
        job.batches[batch.number].1 = Some(text(&answers));
        job.releases += batch.requests.len();
        (job.stalls, job.outages) = (0, 0);
        job.known |= known;
        if let Some(receipt) = &receipt {
            job.receipt = Some(text(&[receipt]));
            db.highest = receipts::keep(w, &db.highest, &[], receipt);
        }
        Ok(())
    })
    .await
}

/// Stores the model, and that the job is done.
async fn finish(
    w: &W,
    lease: &Lease,
    outcome: Box<Outcome>,
    spent: fhaim_dp::Rho,
) -> Result<(), Stop> {
    if outcome.spent != spent {
        let problem = "the mechanism's account differs from the sum of its releases";
        return Err(Stop::Failed(problem.to_owned()));
    }
    let undisturbed = w.setting.runs.iter().find(|run| run.is(&outcome));
    let model = undisturbed.map(|run| run.model);
    let model = model.unwrap_or_else(|| Sha256::digest(outcome.model.save()).into());
    w.tx(&w.generation, |db| {
        let job = db.hold(lease, 0)?;
        (job.model, job.state) = (Some(model), State::Done);
        Ok(())
    })
    .await
}
