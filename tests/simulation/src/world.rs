//! The environment of the simulated services: tasks that can be killed, an unreliable network, stores that remember
//! all their states, and one source of randomness.
//!
//! A service's code waits wherever the real one does: before and after each transaction, and for
//! the answer to a call. The simulation kills tasks only there. Other points make no difference, because only stored
//! or sent data outlives a task.

use crate::ghost::{Ghost, Known};
use crate::roster::Roster;
use crate::setting::Scenario;
use crate::{Counts, Mutant, computation, crypto, generation, holder, keyshare, upload};
use fhaim_api::problem::ProblemKind;
use fhaim_protocol::Error;
use fhaim_protocol::crypto::chain::ChainReceipt;
use rand::{Rng, SeedableRng};
use rand_chacha::{ChaCha8Rng, ChaCha20Rng};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

/// An entity with its own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Holder,
    Computation,
    Crypto,
    Generation,
    /// The second computation service, in schedules that have one.
    Witness,
    /// The service that shares the key with the crypto service, in schedules that have one.
    Keyshare,
    /// The holder's second uploading program, in schedules that have two.
    Uploader,
}

impl Node {
    const ALL: [Self; 6] = [
        Self::Holder,
        Self::Computation,
        Self::Crypto,
        Self::Generation,
        Self::Witness,
        Self::Keyshare,
    ];

    /// Returns the nodes of a schedule.
    pub(crate) fn all(witness: bool, keyshare: bool) -> Vec<Self> {
        let has = |node: &Self| match node {
            Self::Witness => witness,
            Self::Keyshare => keyshare,
            _ => true,
        };
        Self::ALL.into_iter().filter(has).collect()
    }
}

/// A service's refusal, or an error because the service is unreachable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub kind: ProblemKind,
    pub detail: String,
}

impl Failure {
    pub(crate) fn new(kind: ProblemKind, detail: impl fmt::Display) -> Self {
        Self {
            kind,
            detail: detail.to_string(),
        }
    }
}

/// A message's text and, for decryption requests, its body.
#[derive(Clone)]
pub(crate) struct Envelope {
    pub text: String,
    pub body: Option<Rc<[u8]>>,
    /// For the checks: entries of the ledger that the caller knows of, or that the answer reveals.
    pub known: Known,
}

impl Envelope {
    pub(crate) fn new(call: &impl Serialize, known: Known) -> Self {
        Self {
            text: serde_json::to_string(call).expect("calls are text"),
            body: None,
            known,
        }
    }

    pub(crate) fn open<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let malformed = |error| Failure::new(ProblemKind::Malformed, error);
        serde_json::from_str(&self.text).map_err(malformed)
    }
}

type Answer = Result<Envelope, Failure>;
type Work = Pin<Box<dyn Future<Output = ()>>>;

/// Condition that a task waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    Ready,
    Until(u64),
    Reply { call: u64, deadline: u64 },
}

pub(crate) struct Task {
    pub node: Node,
    pub work: Work,
    pub wait: Wait,
}

/// A message in transit.
struct Message {
    call: u64,
    from: Node,
    to: Node,
    due: u64,
    content: Content,
}

enum Content {
    Request(Envelope),
    Reply(Answer),
}

/// Probabilities of network faults, and the longest delay.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    pub drop: f64,
    pub repeat: f64,
    pub delay: u64,
}

/// A store: the committed state, and all earlier states.
pub(crate) struct Store<T> {
    now: RefCell<Rc<T>>,
    history: RefCell<Vec<(u64, Rc<T>)>>,
}

impl<T: Clone + Default> Store<T> {
    fn new() -> Self {
        let empty = Rc::new(T::default());
        Self {
            history: RefCell::new(vec![(0, Rc::clone(&empty))]),
            now: RefCell::new(empty),
        }
    }

    pub(crate) fn get(&self) -> Rc<T> {
        Rc::clone(&self.now.borrow())
    }

    fn commit(&self, time: u64, next: T) {
        let next = Rc::new(next);
        self.history.borrow_mut().push((time, Rc::clone(&next)));
        *self.now.borrow_mut() = next;
    }

    /// Changes the stored state outside a task.
    pub(crate) fn alter(&self, time: u64, change: impl FnOnce(&mut T)) {
        let mut next = T::clone(&self.get());
        change(&mut next);
        self.commit(time, next);
    }

    /// Rolls the store back to its first, empty state.
    fn restore_first(&self) {
        *self.now.borrow_mut() = Rc::clone(&self.history.borrow()[0].1);
    }

    /// Rolls the store back to its state at a time, even if that state is from before an earlier rollback.
    fn restore(&self, time: u64) {
        let history = self.history.borrow();
        let at = history.partition_point(|(t, _)| *t <= time).max(1) - 1;
        *self.now.borrow_mut() = Rc::clone(&history[at].1);
    }
}

/// State of a schedule, except for its tasks.
pub(crate) struct World {
    pub setting: Rc<Scenario>,
    pub mutant: Option<Mutant>,
    pub holder: Store<holder::Db>,
    pub computation: Store<computation::Db>,
    pub crypto: Store<crypto::Db>,
    pub generation: Store<generation::Db>,
    pub witness: Store<computation::Db>,
    pub keyshare: Store<keyshare::Db>,
    /// Store of the second uploading program.
    pub uploader: Store<upload::Journal>,
    /// The schedule's lost keys, deviating holders and concurrent uploads.
    pub roster: Roster,
    roster_rng: RefCell<ChaCha20Rng>,
    has_keyshare: bool,
    /// Sealed requests by number. Numbers are not reused.
    pub blobs: RefCell<HashMap<u64, Rc<[u8]>>>,
    pub ghost: RefCell<Ghost>,
    pub counts: RefCell<Counts>,
    pub weather: Cell<Weather>,
    /// Length of a lease in ticks.
    pub lease: u64,
    /// Number of jobs that holders want.
    pub wanted: usize,
    /// Whether faults still occur.
    pub faulty: Cell<bool>,
    pub now: Cell<u64>,
    pub up: [Cell<bool>; 7],
    rng: RefCell<ChaCha8Rng>,
    wait: Cell<Wait>,
    spawned: RefCell<Vec<(Node, Work)>>,
    messages: RefCell<Vec<Message>>,
    replies: RefCell<HashMap<u64, Answer>>,
    fresh: Cell<u64>,
    /// Receipts whose signatures have been verified.
    verified: RefCell<HashSet<Signed>>,
    /// Tokens of the leases that are renewed in the background.
    at_work: RefCell<HashSet<u64>>,
    trace: bool,
}

/// Guard that renews a lease in the background until it is dropped, as it is when the process is killed.
pub(crate) struct AtWork(W, u64);

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.at_work.borrow_mut().remove(&self.1);
    }
}

/// A receipt's height, head and signature, and the key that verified it.
type Signed = (u64, [u8; 32], [u8; 64], [u8; 32]);

pub(crate) type W = Rc<World>;

/// Number of ticks after which a caller gives up.
const PATIENCE: u64 = 120;

impl World {
    pub(crate) fn new(
        setting: Rc<Scenario>,
        (mutant, has_keyshare): (Option<Mutant>, bool),
        (roster, roster_rng): (Roster, ChaCha20Rng),
        seed: u64,
        trace: bool,
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let wanted = rng.random_range(1..=setting.plan.core.runs as usize + 1);
        Self {
            setting,
            mutant,
            holder: Store::new(),
            computation: Store::new(),
            crypto: Store::new(),
            generation: Store::new(),
            witness: Store::new(),
            keyshare: Store::new(),
            uploader: Store::new(),
            roster,
            roster_rng: RefCell::new(roster_rng),
            has_keyshare,
            blobs: RefCell::default(),
            ghost: RefCell::default(),
            counts: RefCell::default(),
            weather: Cell::default(),
            lease: *[40, 150, 600].get(rng.random_range(0..3)).unwrap_or(&600),
            wanted,
            faulty: Cell::new(true),
            now: Cell::new(0),
            up: [const { Cell::new(true) }; 7],
            rng: RefCell::new(rng),
            wait: Cell::new(Wait::Ready),
            spawned: RefCell::default(),
            messages: RefCell::default(),
            replies: RefCell::default(),
            fresh: Cell::new(0),
            verified: RefCell::default(),
            at_work: RefCell::default(),
            trace,
        }
    }

    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(crate) fn trace(&self, line: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>6}  {}", self.now.get(), line());
        }
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.counts.borrow_mut());
    }

    pub(crate) fn chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.rng.borrow_mut().random_bool(probability.min(1.0))
    }

    /// Returns a random number below `end`, which must not be 0.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.rng.borrow_mut().random_range(0..end)
    }

    /// Like [`World::below`], from the random stream of [`Roster`].
    pub(crate) fn roster_below(&self, end: u64) -> u64 {
        self.roster_rng.borrow_mut().random_range(0..end)
    }

    /// Decides whether an event of [`Roster`] happens.
    pub(crate) fn roster_chance(&self, probability: f64) -> bool {
        probability > 0.0 && self.roster_rng.borrow_mut().random_bool(probability)
    }

    /// Returns random bytes for a key, from the random stream of [`Roster`].
    pub(crate) fn roster_key(&self) -> [u8; 32] {
        self.roster_rng.borrow_mut().random()
    }

    /// Counts an event of [`Roster`].
    pub(crate) fn event(&self, name: &str) {
        self.trace(|| format!("event: {name}"));
        self.count(|c| c.event(name));
    }

    /// Returns random bytes for a key.
    pub(crate) fn key(&self) -> [u8; 32] {
        self.rng.borrow_mut().random()
    }

    /// Returns a number that was not returned before.
    pub(crate) fn fresh(&self) -> u64 {
        self.fresh.set(self.fresh.get() + 1);
        self.fresh.get()
    }

    async fn wait(&self, wait: Wait) {
        let mut waited = false;
        poll_fn(|_| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            self.wait.set(wait);
            Poll::Pending
        })
        .await;
    }

    /// Waits at a point at which the task can be killed.
    pub(crate) async fn pause(&self) {
        self.wait(Wait::Ready).await;
    }

    pub(crate) async fn sleep(&self, ticks: u64) {
        self.wait(Wait::Until(self.now.get() + ticks)).await;
    }

    /// Runs a transaction: commits its changes or, on an error, discards all of them.
    pub(crate) async fn tx<T: Clone + Default, R, E>(
        &self,
        store: &Store<T>,
        work: impl FnOnce(&mut T) -> Result<R, E>,
    ) -> Result<R, E> {
        self.pause().await;
        let mut next = T::clone(&store.get());
        let result = work(&mut next)?;
        store.commit(self.now.get(), next);
        self.pause().await;
        Ok(result)
    }

    /// Calls a service and waits for its answer, at most [`PATIENCE`] ticks and the network's delay.
    pub(crate) async fn call(&self, from: Node, to: Node, envelope: Envelope) -> Answer {
        let call = self.fresh();
        self.trace(|| format!("{from:?} -> {to:?} #{call} {}", shorten(&envelope.text)));
        self.post(from, to, call, envelope);
        let deadline = self.now.get() + PATIENCE + self.weather.get().delay;
        self.wait(Wait::Reply { call, deadline }).await;
        let answer = self.replies.borrow_mut().remove(&call);
        answer.unwrap_or_else(|| {
            self.trace(|| format!("{from:?} gives up on #{call}"));
            Err(Failure::new(ProblemKind::Unavailable, "no answer in time"))
        })
    }

    /// Sends a request without waiting for an answer.
    pub(crate) fn post(&self, from: Node, to: Node, call: u64, envelope: Envelope) {
        self.count(|c| c.messages += 1);
        let weather = self.weather.get();
        if self.chance(weather.drop) {
            return self.count(|c| c.dropped += 1);
        }
        if self.chance(weather.repeat) {
            self.count(|c| c.repeated += 1);
            self.send(from, to, call, Content::Request(envelope.clone()));
        }
        self.send(from, to, call, Content::Request(envelope));
    }

    fn reply(&self, from: Node, to: Node, call: u64, answer: Answer) {
        self.count(|c| c.messages += 1);
        if self.chance(self.weather.get().drop) {
            self.trace(|| format!("the answer to #{call} is lost"));
            return self.count(|c| c.dropped += 1);
        }
        self.send(from, to, call, Content::Reply(answer));
    }

    fn send(&self, from: Node, to: Node, call: u64, content: Content) {
        let delay = match self.weather.get().delay {
            0 => 0,
            delay if self.chance(0.2) => self.below(delay),
            _ => self.below(3),
        };
        if delay > 10 {
            self.count(|c| c.delayed += 1);
        }
        self.messages.borrow_mut().push(Message {
            call,
            from,
            to,
            due: self.now.get() + delay,
            content,
        });
    }

    /// Returns the time at which the next message is due, and the indices of the messages that are due now.
    pub(crate) fn due(&self) -> (Option<u64>, Vec<usize>) {
        let messages = self.messages.borrow();
        let now = self.now.get();
        let due = (0..messages.len()).filter(|&i| messages[i].due <= now);
        (messages.iter().map(|m| m.due).min(), due.collect())
    }

    /// Delivers a message.
    pub(crate) fn deliver(self: &Rc<Self>, index: usize) {
        let message = self.messages.borrow_mut().swap_remove(index);
        let Message { call, from, to, .. } = message;
        match message.content {
            Content::Reply(answer) => {
                self.trace(|| match &answer {
                    Ok(envelope) => format!("{to:?} <- #{call} {}", shorten(&envelope.text)),
                    Err(failure) => {
                        format!("{to:?} <- #{call} {:?}: {}", failure.kind, failure.detail)
                    }
                });
                self.replies.borrow_mut().entry(call).or_insert(answer);
            }
            Content::Request(_) if !self.up[to as usize].get() => {
                let failure = Failure::new(ProblemKind::Unavailable, "the service is down");
                self.send(to, from, call, Content::Reply(Err(failure)));
            }
            Content::Request(envelope) => {
                let world = Rc::clone(self);
                let work = async move {
                    let answer = match to {
                        Node::Holder | Node::Uploader => return,
                        Node::Computation | Node::Witness => {
                            computation::handle(&world, to, &envelope).await
                        }
                        Node::Crypto => crypto::handle(&world, &envelope).await,
                        Node::Keyshare => keyshare::handle(&world, &envelope).await,
                        Node::Generation => generation::handle(&world, &envelope).await,
                    };
                    world.reply(to, from, call, answer);
                };
                self.spawn(to, work);
            }
        }
    }

    /// Checks whether a waiting task can continue.
    pub(crate) fn is_ready(&self, wait: Wait) -> bool {
        let now = self.now.get();
        match wait {
            Wait::Ready => true,
            Wait::Until(time) => time <= now,
            Wait::Reply { call, deadline } => {
                deadline <= now || self.replies.borrow().contains_key(&call)
            }
        }
    }

    /// Returns the condition that the most recently polled task waits for.
    pub(crate) fn waiting(&self) -> Wait {
        self.wait.get()
    }

    pub(crate) fn spawn(&self, node: Node, work: impl Future<Output = ()> + 'static) {
        self.spawned.borrow_mut().push((node, Box::pin(work)));
    }

    pub(crate) fn spawned(&self) -> Vec<Task> {
        let spawned = std::mem::take(&mut *self.spawned.borrow_mut());
        let task = |(node, work)| Task {
            node,
            work,
            wait: Wait::Ready,
        };
        spawned.into_iter().map(task).collect()
    }

    /// Renews a lease in the background until the guard is dropped.
    pub(crate) fn at_work(self: &Rc<Self>, token: u64) -> AtWork {
        self.at_work.borrow_mut().insert(token);
        AtWork(Rc::clone(self), token)
    }

    /// Checks whether a lease is renewed in the background.
    pub(crate) fn is_at_work(&self, token: u64) -> bool {
        self.at_work.borrow().contains(&token)
    }

    /// Starts the tasks of a process.
    pub(crate) fn start(self: &Rc<Self>, node: Node) {
        self.up[node as usize].set(true);
        match node {
            Node::Holder => holder::start(self),
            Node::Uploader => upload::start(self, node),
            Node::Computation | Node::Witness => computation::start(self, node),
            Node::Generation => generation::start(self),
            Node::Crypto | Node::Keyshare => {}
        }
    }

    /// Rolls a store back to its state at a time.
    pub(crate) fn restore(&self, node: Node, time: u64) {
        let completed = || {
            let of = |node| self.computing(node).get().contribution.completed();
            let kept = self.holder.get().journal.kept();
            [of(Node::Computation), of(Node::Witness), kept]
        };
        let before = completed();
        match node {
            Node::Uploader => {}
            Node::Holder => self.holder.restore(time),
            Node::Computation => self.computation.restore(time),
            Node::Crypto => self.crypto.restore(time),
            Node::Generation => self.generation.restore(time),
            Node::Witness => self.witness.restore(time),
            Node::Keyshare => self.keyshare.restore(time),
        }
        let mut ghost = self.ghost.borrow_mut();
        let needed = ghost.has_run() || self.has_witness();
        ghost.upload_lost |= needed && completed() != before;
    }

    /// Makes a key service lose all data of the dataset.
    pub(crate) fn lose_keys(&self, node: Node) {
        match node {
            Node::Keyshare => self.keyshare.restore_first(),
            _ => self.crypto.restore_first(),
        }
    }

    /// Makes the dataset's keys. No rollback goes back further, except for a key service that loses all data.
    pub(crate) fn make_keys(&self) {
        self.crypto.alter(0, crypto::Db::first_keys);
        self.keyshare.alter(0, keyshare::Db::first_keys);
    }

    /// Completes the upload and gives the computation services a sealing key. No rollback goes back further.
    pub(crate) fn upload(&self, key: Option<[u8; 32]>) {
        self.computation.alter(0, |db| db.uploaded(key));
        self.witness.alter(0, |db| db.uploaded(key));
        self.generation.alter(0, generation::Db::make_ready);
    }

    /// Checks whether there is a second computation service.
    pub(crate) fn has_witness(&self) -> bool {
        self.setting.rules.plan.witness
    }

    /// Checks whether a service shares the key with the crypto service.
    pub(crate) fn has_keyshare(&self) -> bool {
        self.has_keyshare
    }

    /// Returns the store of one of the computation services.
    pub(crate) fn computing(&self, node: Node) -> &Store<computation::Db> {
        match node {
            Node::Witness => &self.witness,
            _ => &self.computation,
        }
    }

    /// Verifies a receipt's signature, once for each receipt and key.
    pub(crate) fn verify(&self, receipt: &ChainReceipt, key: &[u8; 32]) -> Result<(), Error> {
        let tip = receipt.tip;
        let name = (tip.height, tip.head, receipt.signature, *key);
        if !self.verified.borrow().contains(&name) {
            receipt.verify(key)?;
            self.verified.borrow_mut().insert(name);
        }
        Ok(())
    }

    /// Returns the ledger entries that any entity except the key services knows of.
    pub(crate) fn everyone_knows(&self) -> Known {
        let computing = self.computation.get().known() | self.witness.get().known();
        self.holder.get().known() | computing | self.generation.get().known()
    }
}

fn shorten(text: &str) -> &str {
    let end = text.char_indices().nth(150).map_or(text.len(), |(i, _)| i);
    &text[..end]
}
