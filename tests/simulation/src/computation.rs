//! The computation services: batches, runs and workers as in `services/computation`, with a simulated store.

use crate::Mutant;
use crate::contribution::{self, Contribution};
use crate::crypto::Call as CryptoCall;
use crate::ghost::Known;
use crate::keyshare::Call as Share;
use crate::lease::{self, Policy};
use crate::pages::Forgery;
use crate::receipts;
use crate::setting::DATASET;
use crate::world::{Envelope, Failure, Node, W};
use fhaim_api::Digest;
use fhaim_api::batch::{Batch, BatchStatus};
use fhaim_api::keys::{Decrypted, NewRun, Receipt, RunStanding, Witnessed};
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::request::{JobId, asked};
use fhaim_protocol::sealing::SealingKey;
use fhaim_protocol::window::{Placed, Window};
use fhaim_release::ReleaseRequest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Stored state of a computation service.
#[derive(Clone, Default)]
pub(crate) struct Db {
    batches: BTreeMap<(JobId, u32), Row>,
    windows: BTreeMap<JobId, Rc<str>>,
    pub sealing_key: Option<[u8; 32]>,
    pub contribution: Contribution,
    /// See [`receipts`].
    receipts: receipts::Text,
}

#[derive(Clone)]
struct Row {
    requests: Rc<str>,
    state: State,
    sealed: Option<u64>,
    answers: Option<Rc<str>>,
    /// Receipt that came with the release.
    receipt: Option<Rc<str>>,
    /// Receipts that the caller showed with the batch.
    shown: receipts::Text,
    reason: Option<Rc<str>>,
    lease: lease::Lease,
    /// Ledger entries that the batch's answers reveal.
    known: Known,
    /// Ledger entries that the caller knew of.
    asker: Known,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Queued,
    Running,
    Released,
    Refused,
}

/// A call to a computation service.
#[derive(Serialize, Deserialize)]
pub(crate) enum Call {
    /// A call about the upload.
    Upload(contribution::Call),
    /// Requests a batch.
    Ask {
        job: JobId,
        first: u32,
        batch: Batch,
    },
    /// Polls a batch that was requested before.
    Look {
        job: JobId,
        first: u32,
        receipts: Vec<Receipt>,
    },
}

type Name = (JobId, u32);

type Lease = lease::Taken<Name>;

/// Policy of the real service's worker.
const POLICY: Policy = Policy {
    first_pause: 5,
    max_faults: 10,
};

/// Number of ticks that a poll waits for the end of a batch.
const PATIENCE: u64 = 8;

enum End {
    Released(Vec<Vec<i64>>, Receipt, Known),
    Refused(String),
}

impl Db {
    pub(crate) fn known(&self) -> Known {
        self.batches
            .values()
            .fold(0, |known, row| known | row.known)
    }

    /// Sets the state after a completed upload.
    pub(crate) fn uploaded(&mut self, key: Option<[u8; 32]>) {
        self.contribution = Contribution::from_the_beginning();
        self.sealing_key = key;
    }

    /// Ends every lease, as after a jump of the clock.
    pub(crate) fn end_leases(&mut self) {
        for row in self.batches.values_mut() {
            row.lease.end();
        }
    }

    /// Checks whether the batch of a sealed request is released.
    pub(crate) fn is_released(&self, blob: u64) -> bool {
        let of = |row: &Row| row.sealed == Some(blob) && row.state == State::Released;
        self.batches.values().any(of)
    }

    /// Returns the numbers of all sealed requests.
    pub(crate) fn sealed(&self) -> Vec<u64> {
        self.batches.values().filter_map(|row| row.sealed).collect()
    }

    fn hold(&mut self, w: &W, lease: &Lease) -> Option<&mut Row> {
        let row = self.batches.get_mut(&lease.id)?;
        let held = row.state == State::Running && row.lease.is_held_by(lease);
        held.then(|| {
            row.lease.renew(w);
            row
        })
    }
}

impl Row {
    fn has_ended(&self) -> bool {
        matches!(self.state, State::Released | State::Refused)
    }
}

fn text(value: &impl Serialize) -> Rc<str> {
    serde_json::to_string(value).expect("it is text").into()
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::new(ProblemKind::Internal, error))
}

/// Answers a call.
pub(crate) async fn handle(w: &W, node: Node, envelope: &Envelope) -> Result<Envelope, Failure> {
    match envelope.open()? {
        Call::Ask { job, first, batch } => ask(w, node, (job, first), &batch, envelope.known).await,
        Call::Look {
            job,
            first,
            receipts,
        } => look(w, node, (job, first), &receipts, envelope.known).await,
        Call::Upload(call) => contribution::handle(w, node, call).await,
    }
}

/// Accepts a request for a batch. A repeated request changes nothing, except that a refused batch is
/// reopened if the caller asks for that.
async fn ask(
    w: &W,
    node: Node,
    name: Name,
    batch: &Batch,
    asker: Known,
) -> Result<Envelope, Failure> {
    let queued = |known| Ok(Envelope::new(&BatchStatus::Queued, known));
    w.pause().await;
    let known = w.computing(node).get().batches.get(&name).cloned();
    let Some(row) = known else {
        enqueue(w, node, name, batch, asker).await?;
        return queued(0);
    };
    if read::<Vec<ReleaseRequest>>(&row.requests)? != batch.requests {
        let detail = "the release was requested before with other content";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    let again = batch.again && row.state == State::Refused;
    if again || !row.has_ended() {
        take_in(w, node, name, &row, &batch.receipts, asker).await?;
    }
    if again {
        reopen(w, node, name).await?;
        return queued(row.known);
    }
    if batch.again && node == Node::Witness && row.state == State::Released {
        // A rollback of the crypto service may have removed the digest.
        repeat(w, node, name).await?;
        return queued(row.known);
    }
    Ok(Envelope::new(&status(&row)?, row.known))
}

/// Returns the status of a batch, after a short wait for its end.
async fn look(
    w: &W,
    node: Node,
    name: Name,
    receipts: &[Receipt],
    asker: Known,
) -> Result<Envelope, Failure> {
    let row = find(w, node, name).await?;
    if row.has_ended() {
        return Ok(Envelope::new(&status(&row)?, row.known));
    }
    take_in(w, node, name, &row, receipts, asker).await?;
    w.sleep(PATIENCE).await;
    let row = find(w, node, name).await?;
    Ok(Envelope::new(&status(&row)?, row.known))
}

fn not_found() -> Failure {
    Failure::new(ProblemKind::NotFound, "the batch does not exist")
}

async fn find(w: &W, node: Node, name: Name) -> Result<Row, Failure> {
    w.pause().await;
    let row = w.computing(node).get().batches.get(&name).cloned();
    row.ok_or_else(not_found)
}

/// Stores the receipts that the caller shows, in addition to those that it showed before.
async fn take_in(
    w: &W,
    node: Node,
    name: Name,
    row: &Row,
    receipts: &[Receipt],
    asker: Known,
) -> Result<(), Failure> {
    let shown = receipts::read(&row.shown);
    if receipts.iter().all(|receipt| shown.contains(receipt)) {
        return Ok(());
    }
    w.tx(w.computing(node), |db| {
        let row = db.batches.get_mut(&name).ok_or_else(not_found)?;
        let shown = receipts::read(&row.shown).into_iter();
        let all = receipts::distinct(shown.chain(receipts.iter().cloned()));
        row.shown = Some(text(&all));
        row.asker |= asker;
        Ok(())
    })
    .await
}

async fn reopen(w: &W, node: Node, name: Name) -> Result<(), Failure> {
    w.tx(w.computing(node), |db| {
        if let Some(row) = db.batches.get_mut(&name)
            && row.state == State::Refused
        {
            (row.state, row.reason) = (State::Queued, None);
            row.lease.reset();
            // The worker seals the batch again, to the same bytes.
            if !w.is(Mutant::LostBlobsAreFaults) {
                row.sealed = None;
            }
        }
        Ok(())
    })
    .await
}

async fn repeat(w: &W, node: Node, name: Name) -> Result<(), Failure> {
    w.tx(w.computing(node), |db| {
        if let Some(row) = db.batches.get_mut(&name)
            && row.state == State::Released
        {
            row.state = State::Queued;
            row.lease.reset();
        }
        Ok(())
    })
    .await
}

async fn enqueue(
    w: &W,
    node: Node,
    name: Name,
    batch: &Batch,
    asker: Known,
) -> Result<(), Failure> {
    w.tx(w.computing(node), |db| {
        db.batches.entry(name).or_insert_with(|| Row {
            requests: text(&batch.requests),
            state: State::Queued,
            sealed: None,
            answers: None,
            receipt: None,
            shown: Some(text(&batch.receipts)),
            reason: None,
            lease: lease::Lease::default(),
            known: 0,
            asker,
        });
        Ok(())
    })
    .await
}

fn status(row: &Row) -> Result<BatchStatus, Failure> {
    Ok(match row.state {
        State::Queued => BatchStatus::Queued,
        State::Running => BatchStatus::Running { seconds: 1.0 },
        State::Released => BatchStatus::Released {
            answers: read(row.answers.as_deref().unwrap_or_default())?,
            compute_seconds: 1.0,
            receipt: read(row.receipt.as_deref().unwrap_or_default())?,
        },
        State::Refused => BatchStatus::Refused {
            reason: row.reason.as_deref().unwrap_or_default().to_owned(),
            without_run: false,
        },
    })
}

/// Starts the workers of the process.
pub(crate) fn start(w: &W, node: Node) {
    for _ in 0..2 {
        let world = Rc::clone(w);
        w.spawn(node, async move { worker(&world, node).await });
    }
}

async fn worker(w: &W, node: Node) {
    loop {
        match take(w, node).await {
            Some(lease) => {
                let _renewed = w.at_work(lease.token);
                work(w, node, &lease).await;
            }
            None => w.sleep(15).await,
        }
    }
}

async fn take(w: &W, node: Node) -> Option<Lease> {
    w.pause().await;
    let free = |row: &Row| !row.has_ended() && row.lease.is_free(w);
    if !w.computing(node).get().batches.values().any(free) {
        return None;
    }
    let token = w.fresh();
    let taken = w.tx(w.computing(node), |db| {
        let (&id, row) = db.batches.iter_mut().find(|(_, row)| free(row)).ok_or(())?;
        row.state = State::Running;
        Ok::<_, ()>(row.lease.take(w, id, token))
    });
    taken.await.ok()
}

async fn work(w: &W, node: Node, lease: &Lease) {
    if POLICY.gives_up(lease) {
        return end(w, node, lease, given_up()).await;
    }
    match attempt(w, node, lease).await {
        Ok(None) => {}
        Ok(Some(ended)) => end(w, node, lease, ended).await,
        Err(failure) => {
            w.trace(|| format!("{node:?}: {:?} {}", failure.kind, failure.detail));
            if is_final(failure.kind) {
                end(w, node, lease, End::Refused(failure.detail)).await;
            } else {
                put_off(w, node, lease, failure.kind).await;
            }
        }
    }
}

fn is_final(kind: ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::Refused
            | ProblemKind::BudgetSpent
            | ProblemKind::Frozen
            | ProblemKind::Restored
            | ProblemKind::NotFound
            | ProblemKind::Conflict
            | ProblemKind::Invalid
    )
}

fn given_up() -> End {
    End::Refused("the computation service failed too many times in a row".to_owned())
}

/// Schedules another attempt of a batch after a pause. Ends the batch after too many of this service's own faults.
async fn put_off(w: &W, node: Node, lease: &Lease, kind: ProblemKind) {
    let put_off = w.tx(w.computing(node), |db| {
        let row = db.hold(w, lease).ok_or(())?;
        if kind != ProblemKind::Internal {
            row.lease.put_off_for_outage(w, &POLICY);
        } else if !row.lease.put_off_for_fault(w, &POLICY) {
            return Ok(false);
        }
        row.state = State::Queued;
        Ok::<_, ()>(true)
    });
    if put_off.await == Ok(false) {
        end(w, node, lease, given_up()).await;
    }
}

async fn end(w: &W, node: Node, lease: &Lease, end: End) {
    let ended = w.tx(w.computing(node), |db| {
        let row = db.hold(w, lease).ok_or(())?;
        row.lease.step();
        match end {
            End::Released(answers, receipt, known) => {
                row.state = State::Released;
                row.answers = Some(text(&answers));
                row.receipt = Some(text(&receipt));
                row.known |= known;
            }
            End::Refused(reason) => {
                row.state = State::Refused;
                row.reason = Some(reason.into());
            }
        }
        Ok::<_, ()>(())
    });
    let _ = ended.await; // If the lease is lost, another worker ends the batch.
}

async fn attempt(w: &W, node: Node, lease: &Lease) -> Result<Option<End>, Failure> {
    w.pause().await;
    let task = w.computing(node).get().batches.get(&lease.id).cloned();
    let Some(task) = task else { return Ok(None) };
    let stored = task
        .sealed
        .and_then(|blob| w.blobs.borrow().get(&blob).cloned());
    let absent = task.sealed.is_some() && stored.is_none();
    if absent && w.is(Mutant::LostBlobsAreFaults) {
        return Err(Failure::new(ProblemKind::Internal, "a blob is missing"));
    }
    let sealed = match stored {
        Some(sealed) => sealed,
        None => match compute(w, node, lease, &task).await? {
            Some(sealed) => sealed,
            None => return Ok(None),
        },
    };
    let done = match node {
        Node::Witness => attest(w, node, lease.id.0, &task, &sealed).await,
        _ => decrypt(w, node, lease.id.0, &task, sealed).await,
    };
    done.map(Some)
}

/// Computes and seals a batch, and stores it together with the window that follows it.
async fn compute(
    w: &W,
    node: Node,
    lease: &Lease,
    task: &Row,
) -> Result<Option<Rc<[u8]>>, Failure> {
    let (window, before) = window(w, node, lease.id.0, task).await?;
    let key = sealing_key(w, node).await?;
    let requests: Vec<ReleaseRequest> = read(&task.requests)?;
    let under = w.computing(node).get().contribution.under();
    let engine = &w.setting.engine;
    let sealed = engine.seal(&window, &requests, (&key, under));
    let invalid = |error| Failure::new(ProblemKind::Invalid, error);
    let (mut bytes, after) = sealed.map_err(invalid)?;
    if w.roster.spoils(&requests) {
        w.event("a page of bad objects was sealed");
        bytes = engine.forge(&bytes, Forgery::Spoilt).unwrap_or(bytes);
    }
    let after = text(&after);
    w.pause().await;
    let blob = w.fresh();
    w.blobs.borrow_mut().insert(blob, Rc::clone(&bytes));
    let stored = w.tx(w.computing(node), |db| {
        if db.hold(w, lease).is_none() {
            return Err(None);
        }
        let same = db.windows.get(&lease.id.0) == before.as_ref();
        if !same && !w.is(Mutant::ComputationForgets) {
            let detail = "another worker has changed the run's window in the meantime";
            return Err(Some(Failure::new(ProblemKind::Unavailable, detail)));
        }
        db.windows.insert(lease.id.0, after);
        if let Some(row) = db.hold(w, lease) {
            row.lease.step();
            row.sealed = Some(blob);
        }
        Ok(())
    });
    match stored.await {
        Ok(()) => Ok(Some(bytes)),
        Err(None) => Ok(None),
        Err(Some(failure)) => Err(failure),
    }
}

/// Returns the run's window, updated with the crypto service's releases, and its previously stored text.
async fn window(
    w: &W,
    node: Node,
    job: JobId,
    task: &Row,
) -> Result<(Window, Option<Rc<str>>), Failure> {
    let (shown, receipts, known) = show(w, node, task).await;
    let upload = w.computing(node).get().contribution.bound()?;
    let new = NewRun {
        upload: Digest(upload),
    };
    let call = CryptoCall::Begin { job, new, receipts };
    let envelope = Envelope::new(&call, known);
    let answer = w.call(node, Node::Crypto, envelope).await?;
    let chain_state: RunStanding = answer.open()?;
    keep_receipt(w, node, &shown, &chain_state.receipt).await?;
    w.pause().await;
    let before = w.computing(node).get().windows.get(&job).cloned();
    let mut window = match &before {
        Some(text) => read(text)?,
        None => Window::new(
            DATASET,
            job,
            chain_state.run,
            w.setting.plan.core.run_ladder,
        ),
    };
    let released: Vec<Placed> = chain_state.releases.iter().map(Placed::from).collect();
    if w.is(Mutant::ComputationForgets) {
        return Ok((window, before));
    }
    if window.run() != chain_state.run || window.catch_up(&released).is_err() {
        let detail = "the crypto service and this service disagree about the job's run";
        return Err(Failure::new(ProblemKind::Conflict, detail));
    }
    Ok((window, before))
}

async fn sealing_key(w: &W, node: Node) -> Result<SealingKey, Failure> {
    let fresh = w.is(Mutant::FreshSealing).then(|| w.key());
    let own = w.is(Mutant::WitnessHasItsOwnKey) && node == Node::Witness;
    let fresh = fresh.or(own.then_some([8; 32]));
    let late = w.is(Mutant::LateSealingKey).then(|| w.key());
    let key = w.tx(w.computing(node), |db| {
        if db.sealing_key.is_none() {
            db.sealing_key = late;
        }
        let missing = || Failure::new(ProblemKind::Internal, "the sealing key is missing");
        fresh.or(db.sealing_key).ok_or_else(missing)
    });
    let damaged = || Failure::new(ProblemKind::Internal, "the sealing key is damaged");
    SealingKey::from_bytes(&key.await?).ok_or_else(damaged)
}

/// Returns the receipts to show to the crypto service, the same as headers, and the ledger entries that this service
/// and its caller know of.
async fn show(w: &W, node: Node, task: &Row) -> (Vec<Receipt>, Vec<String>, Known) {
    w.pause().await;
    let db = w.computing(node).get();
    let own = receipts::read(&db.receipts).into_iter();
    let own = own.filter(|_| !w.is(Mutant::ComputationShowsNoReceipt));
    let shown = receipts::distinct(own.chain(receipts::read(&task.shown)));
    let headers = shown.iter().map(Receipt::to_header).collect();
    (shown, headers, db.known() | task.asker)
}

async fn keep_receipt(
    w: &W,
    node: Node,
    shown: &[Receipt],
    receipt: &Receipt,
) -> Result<(), Failure> {
    w.tx(w.computing(node), |db| {
        db.receipts = receipts::keep(w, &db.receipts, shown, receipt);
        Ok(())
    })
    .await
}

async fn decrypt(
    w: &W,
    node: Node,
    job: JobId,
    task: &Row,
    sealed: Rc<[u8]>,
) -> Result<End, Failure> {
    let (shown, receipts, known) = show(w, node, task).await;
    let call = CryptoCall::Decrypt { job, receipts };
    let mut envelope = Envelope::new(&call, known);
    let look = w.setting.engine.look(&sealed);
    let look = look.map_err(|error| Failure::new(ProblemKind::Internal, error))?;
    w.ghost.borrow_mut().sent(&look);
    envelope.body = Some(sealed);
    let answer = w.call(node, Node::Crypto, envelope).await?;
    let Decrypted { answers, receipt } = answer.open()?;
    keep_receipt(w, node, &shown, &receipt).await?;
    Ok(End::Released(answers, receipt, answer.known))
}

/// Sends the digest of a batch to the key services, as the second computation service.
async fn attest(w: &W, node: Node, job: JobId, task: &Row, sealed: &[u8]) -> Result<End, Failure> {
    let (shown, receipts, known) = show(w, node, task).await;
    let look = w.setting.engine.look(sealed);
    let look = look.map_err(|error| Failure::new(ProblemKind::Internal, error))?;
    let new = Witnessed {
        asked: Digest(asked(&look.releases)),
        request: Digest::of(sealed),
    };
    w.ghost.borrow_mut().witnessed.insert(new.request.0);
    if w.has_keyshare() {
        let new = new.clone();
        let call = Envelope::new(&Share::Witnessed { job, new }, 0);
        w.call(node, Node::Keyshare, call).await?;
    }
    let call = CryptoCall::Witnessed { job, new, receipts };
    let answer = w
        .call(node, Node::Crypto, Envelope::new(&call, known))
        .await?;
    let receipt: Receipt = answer.open()?;
    keep_receipt(w, node, &shown, &receipt).await?;
    Ok(End::Released(Vec::new(), receipt, answer.known))
}
