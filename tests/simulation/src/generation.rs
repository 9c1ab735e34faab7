//! The generation service: jobs and workers as in `services/generation`, with a simulated store.

use crate::Mutant;
use crate::computation::Call as ComputationCall;
use crate::contribution;
use crate::ghost::Known;
use crate::lease::{self, Policy};
use crate::receipts;
use crate::world::{Envelope, Failure, Node, W};
use fhaim_api::batch::{self, BatchStatus};
use fhaim_api::keys::Receipt;
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::request::JobId;
use fhaim_release::{Action, MechanismRun, ReleaseBatch, StoredBatch};
use fhaim_synth::RunOutcome;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Stored state of the generation service.
#[derive(Clone, Default)]
pub(crate) struct Db {
    jobs: BTreeMap<JobId, Job>,
    /// The highest receipt of all jobs, for [`Mutant::HighestReceiptAlone`].
    highest: receipts::Text,
    /// Whether this service knows that the upload is complete.
    ready: bool,
    /// Receipts that holders showed.
    told: receipts::Text,
}

#[derive(Clone)]
struct Job {
    state: State,
    error: Option<Rc<str>>,
    releases: usize,
    lease: lease::Lease,
    batches: Vec<(Rc<str>, Option<Rc<str>>)>,
    /// SHA-256 of the saved model.
    model: Option<[u8; 32]>,
    /// The receipt of the job's last answer. The next call shows it, so the next receipt contains it. Receipts of
    /// other jobs may not contain it.
    receipt: receipts::Text,
    known: Known,
}

/// State of a job.
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
    /// Makes the job of this name. A repeated call changes nothing.
    Create(JobId),
    Show(JobId),
    Retry(JobId),
    /// Vouches for the dataset to the key service.
    Vouch,
    /// Reports that the upload is complete.
    Ready,
    /// Shows a receipt. The service passes it on with batches.
    Tell(Receipt),
}

/// Reason for refusing a job if the dataset has no upload.
pub(crate) const NOT_READY: &str = "the dataset is not ready: upload its records first";

/// A job as a holder's program sees it.
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

type Lease = lease::Taken<JobId>;

/// Policy of the real service's worker.
const POLICY: Policy = Policy {
    first_pause: 10,
    max_faults: 5,
};

/// The answers of a job, by batch and release, and SHA-256 of its model.
pub(crate) type JobResult = (Vec<Vec<Vec<i64>>>, [u8; 32]);

impl Db {
    pub(crate) fn known(&self) -> Known {
        self.jobs.values().fold(0, |known, job| known | job.known)
    }

    /// Marks the upload as complete.
    pub(crate) fn make_ready(&mut self) {
        self.ready = true;
    }

    pub(crate) fn end_leases(&mut self) {
        for job in self.jobs.values_mut() {
            job.lease.end();
        }
    }

    /// Returns the answers and the model of a finished job.
    pub(crate) fn result(&self, job: JobId) -> Option<JobResult> {
        let job = self.jobs.get(&job)?;
        let answers = job
            .batches
            .iter()
            .map(|(_, answers)| serde_json::from_str(answers.as_deref()?).ok());
        Some((answers.collect::<Option<_>>()?, job.model?))
    }

    fn hold(&mut self, w: &W, lease: &Lease) -> Result<&mut Job, Stop> {
        let job = self.jobs.get_mut(&lease.id).ok_or(Stop::Lost)?;
        if job.state != State::Running || !job.lease.is_held_by(lease) {
            return Err(Stop::Lost);
        }
        job.lease.renew(w);
        Ok(job)
    }

    /// Like [`Db::hold`], and records that the job makes progress.
    fn step(&mut self, w: &W, lease: &Lease) -> Result<&mut Job, Stop> {
        let job = self.hold(w, lease)?;
        job.lease.step();
        Ok(job)
    }

    /// Returns the receipts that this service shows to others.
    fn receipts(&self, w: &W) -> Vec<Receipt> {
        if w.is(Mutant::GenerationShowsNoReceipt) {
            return Vec::new();
        }
        if w.is(Mutant::HighestReceiptAlone) {
            return receipts::read(&self.highest);
        }
        let jobs = self.jobs.values();
        let of_jobs = jobs.flat_map(|job| receipts::read(&job.receipt));
        receipts::distinct(receipts::read(&self.told).into_iter().chain(of_jobs))
    }

    /// Checks whether this service knows that the dataset has had keys.
    fn had_keys(&self) -> bool {
        let has = |job: &Job| job.receipt.is_some() || job.releases > 0;
        self.told.is_some() || self.jobs.values().any(has)
    }

    fn claim_run(&self, runs: u32) -> Result<(), Failure> {
        let live =
            |job: &&Job| job.releases > 0 || matches!(job.state, State::Queued | State::Running);
        if self.jobs.values().filter(live).count() >= runs as usize {
            let detail = "the dataset's budget has no more runs";
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
    let runs = w.setting.plan.core.runs;
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
                if !db.ready {
                    return Err(Failure::new(ProblemKind::Conflict, NOT_READY));
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
                    (job.state, job.error) = (State::Queued, None);
                    job.lease.reset();
                }
                Ok::<_, Failure>(())
            });
            queued.await?;
            show(w, id)
        }
        Call::Vouch => vouch(w).await,
        Call::Ready => ready(w).await,
        Call::Tell(receipt) => {
            let told = w.tx(&w.generation, |db| {
                db.told = Some(text(&[receipt]));
                Ok::<_, Failure>(())
            });
            told.await?;
            Ok(Envelope::new(&(), 0))
        }
    }
}

/// Vouches for the dataset unless it has had keys.
async fn vouch(w: &W) -> Result<Envelope, Failure> {
    w.pause().await;
    let db = w.generation.get();
    if db.had_keys() && !w.is(Mutant::GenerationVouchesAgain) {
        w.event("a voucher was refused");
        let detail = "the dataset has had keys: make a new dataset";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    Ok(Envelope::new(&(), db.known()))
}

/// Marks the dataset as ready, if the computation services have its upload.
async fn ready(w: &W) -> Result<Envelope, Failure> {
    w.pause().await;
    if w.generation.get().ready {
        return Ok(Envelope::new(&(), 0));
    }
    let witness = w.has_witness().then_some(Node::Witness);
    for node in [Node::Computation].into_iter().chain(witness) {
        let call = ComputationCall::Upload(contribution::Call::State);
        let call = Envelope::new(&call, 0);
        let state: contribution::State = w.call(Node::Generation, node, call).await?.open()?;
        if !state.complete {
            let detail = "the upload is not complete";
            return Err(Failure::new(ProblemKind::Conflict, detail));
        }
    }
    let stored = w.tx(&w.generation, |db| {
        db.make_ready();
        Ok::<_, Failure>(())
    });
    stored.await?;
    Ok(Envelope::new(&(), 0))
}

impl Job {
    fn queued() -> Self {
        Self {
            state: State::Queued,
            error: None,
            releases: 0,
            lease: lease::Lease::default(),
            batches: Vec::new(),
            model: None,
            receipt: None,
            known: 0,
        }
    }
}

fn not_found() -> Failure {
    Failure::new(ProblemKind::NotFound, "the job does not exist")
}

/// Returns a different job name for each arrival of a call.
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

/// Starts the workers of the process.
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
                let ended = match POLICY.gives_up(&lease) {
                    true => Err(Stop::Failed(given_up(lease.faults))),
                    false => drive(w, &lease).await,
                };
                if let Err(stop) = ended {
                    settle(w, &lease, stop).await;
                }
            }
            None => w.sleep(15).await,
        }
    }
}

async fn take(w: &W) -> Option<Lease> {
    w.pause().await;
    let free = |job: &Job| {
        let waits = matches!(job.state, State::Queued | State::Running);
        waits && job.lease.is_free(w)
    };
    if !w.generation.get().jobs.values().any(free) {
        return None;
    }
    let token = w.fresh();
    let taken = w.tx(&w.generation, |db| {
        let (&id, job) = db.jobs.iter_mut().find(|(_, job)| free(job)).ok_or(())?;
        job.state = State::Running;
        Ok::<_, ()>(job.lease.take(w, id, token))
    });
    taken.await.ok()
}

fn given_up(attempts: u32) -> String {
    format!("the job failed: {attempts} attempts in a row made no progress")
}

async fn settle(w: &W, lease: &Lease, stop: Stop) {
    let settled = w.tx(&w.generation, |db| {
        let job = db.hold(w, lease)?;
        match stop {
            Stop::Lost => return Err(Stop::Lost),
            Stop::Failed(reason) => {
                w.trace(|| format!("Generation: a job failed: {reason}"));
                (job.state, job.error) = (State::Failed, Some(reason.into()));
            }
            Stop::Outage => {
                job.state = State::Queued;
                job.lease.put_off_for_outage(w, &POLICY);
            }
            Stop::Fault(failure) => {
                w.trace(|| format!("Generation: {:?} {}", failure.kind, failure.detail));
                if !job.lease.put_off_for_fault(w, &POLICY) {
                    let reason = given_up(POLICY.max_faults);
                    (job.state, job.error) = (State::Failed, Some(reason.into()));
                }
            }
        }
        Ok(())
    });
    drop(settled.await);
}

/// Runs a job to its end.
async fn drive(w: &W, lease: &Lease) -> Result<(), Stop> {
    let stored = begin(w, lease).await?;
    let failed = |error: &dyn std::fmt::Display| Stop::Failed(error.to_string());
    let machine = w.setting.start().map_err(|e| failed(&e))?;
    let job = w.setting.plan.job.clone();
    let mut run = MechanismRun::new(machine, job, stored).map_err(|e| failed(&e))?;
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

/// Reads the stored batches of a job.
async fn begin(w: &W, lease: &Lease) -> Result<Vec<StoredBatch>, Stop> {
    let batches = w.tx(&w.generation, |db| {
        Ok::<_, Stop>(db.hold(w, lease)?.batches.clone())
    });
    let stored = batches.await?.into_iter().map(|(requests, answers)| {
        Ok(StoredBatch {
            requests: read(&requests)?,
            answers: answers.as_deref().map(read).transpose()?,
        })
    });
    Ok(stored.collect::<Result<_, Failure>>()?)
}

async fn store(w: &W, lease: &Lease, batch: &ReleaseBatch) -> Result<(), Stop> {
    w.tx(&w.generation, |db| {
        let job = db.step(w, lease)?;
        if job.batches.len() != batch.number {
            let detail = "a batch of this number is already stored";
            return Err(Failure::new(ProblemKind::Internal, detail).into());
        }
        job.batches.push((text(&batch.requests), None));
        Ok(())
    })
    .await
}

/// Gets a batch released by the computation service. Requests the batch once and then polls it. Requests it again if
/// that service has lost it in a rollback.
async fn ask(
    w: &W,
    lease: &Lease,
    batch: &ReleaseBatch,
) -> Result<(Vec<Vec<i64>>, Receipt, Known), Stop> {
    let contradiction = || Stop::Failed("a batch has no releases".to_owned());
    let (job, number) = (lease.id, batch.first().ok_or_else(contradiction)?);
    let put = |again| {
        let requests = batch.requests.clone();
        move |receipts| ComputationCall::Ask {
            job,
            first: number,
            batch: batch::Batch {
                requests,
                receipts,
                again,
            },
        }
    };
    let mut wait = 6;
    let mut said = None;
    if w.has_witness() {
        second(w, call(w, Node::Witness, put(true)).await, &mut said)?;
    }
    let first = Node::Computation;
    let mut answer = call(w, first, put(true)).await;
    loop {
        let found = answer.map_err(|failure| stop_of(&failure))?;
        match found.open()? {
            BatchStatus::Released {
                answers, receipt, ..
            } => return Ok((answers, receipt, found.known)),
            BatchStatus::Refused { reason, .. } => {
                let reason = format!("the computation service refused a release: {reason}");
                return Err(Stop::Failed(reason));
            }
            BatchStatus::Queued | BatchStatus::Running { .. } | BatchStatus::Waiting { .. } => {}
        }
        w.sleep(wait).await;
        wait = (wait * 3 / 2).min(40);
        let look = |receipts| ComputationCall::Look {
            job,
            first: number,
            receipts,
        };
        // While the first service waits, poll the second one, and have it send its digest again from time to time.
        let again = said.is_none_or(|at| at + SAY_AGAIN_AFTER < w.now.get());
        if w.has_witness() && again && !w.is(Mutant::WitnessIsAskedOnce) {
            let answer = match said {
                Some(_) => call(w, Node::Witness, put(true)).await,
                None => match call(w, Node::Witness, look).await {
                    Err(failure) if failure.kind == ProblemKind::NotFound => {
                        call(w, Node::Witness, put(true)).await
                    }
                    answer => answer,
                },
            };
            second(w, answer, &mut said)?;
        }
        answer = match call(w, first, look).await {
            Err(failure) if failure.kind == ProblemKind::NotFound => {
                call(w, first, put(false)).await
            }
            answer => answer,
        };
    }
}

/// Number of ticks after which the generation service asks the second computation service for its digest again.
const SAY_AGAIN_AFTER: u64 = 100;

/// Reads the second computation service's answer: sets `said` to the current time if it has sent its digest.
fn second(w: &W, answer: Result<Envelope, Failure>, said: &mut Option<u64>) -> Result<(), Stop> {
    let found = answer.map_err(|failure| stop_of(&failure))?;
    *said = match found.open()? {
        BatchStatus::Released { .. } => Some(w.now.get()),
        BatchStatus::Refused { reason, .. } => {
            let reason = format!("the second computation service refused a release: {reason}");
            return Err(Stop::Failed(reason));
        }
        BatchStatus::Queued | BatchStatus::Running { .. } | BatchStatus::Waiting { .. } => None,
    };
    Ok(())
}

/// Calls a computation service with the current receipts. They can include later receipts from other jobs.
async fn call(
    w: &W,
    to: Node,
    of: impl FnOnce(Vec<Receipt>) -> ComputationCall,
) -> Result<Envelope, Failure> {
    w.pause().await;
    let db = w.generation.get();
    let envelope = Envelope::new(&of(db.receipts(w)), db.known());
    drop(db);
    w.call(Node::Generation, to, envelope).await
}

fn stop_of(failure: &Failure) -> Stop {
    match failure.kind {
        ProblemKind::Unauthenticated
        | ProblemKind::Quota
        | ProblemKind::TooManyRequests
        | ProblemKind::Full
        | ProblemKind::Unavailable
        | ProblemKind::Internal => Stop::Outage,
        _ => Stop::Failed(format!("the computation service: {}", failure.detail)),
    }
}

async fn store_answers(
    w: &W,
    lease: &Lease,
    batch: &ReleaseBatch,
    answers: &[Vec<i64>],
    receipt: Receipt,
    known: Known,
) -> Result<(), Stop> {
    w.tx(&w.generation, |db| {
        let job = db.step(w, lease)?;
        job.batches[batch.number].1 = Some(text(&answers));
        job.releases += batch.requests.len();
        job.known |= known;
        job.receipt = Some(text(&[&receipt]));
        db.highest = receipts::keep(w, &db.highest, &[], &receipt);
        Ok(())
    })
    .await
}

/// Stores the model and marks the job as done.
async fn finish(
    w: &W,
    lease: &Lease,
    outcome: Box<RunOutcome>,
    spent: fhaim_dp::Rho,
) -> Result<(), Stop> {
    if outcome.spent != spent {
        let problem = "the mechanism's cost differs from the sum of its releases; this is a bug";
        return Err(Stop::Failed(problem.to_owned()));
    }
    let undisturbed = w.setting.runs.iter().find(|run| run.is(&outcome));
    let model = undisturbed.map(|run| run.model);
    let model = model.unwrap_or_else(|| Sha256::digest(outcome.model.save()).into());
    w.tx(&w.generation, |db| {
        let job = db.step(w, lease)?;
        (job.model, job.state) = (Some(model), State::Done);
        Ok(())
    })
    .await
}
