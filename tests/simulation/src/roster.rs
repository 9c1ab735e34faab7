//! Lost keys, deviating holders and concurrent uploads of a schedule, and their times.
//!
//! They are drawn from a separate random stream, so that they do not change the schedules without them.

use crate::Mutant;
use crate::crypto::Call as CryptoCall;
use crate::faults::Faults;
use crate::generation::Call as GenerationCall;
use crate::world::{Envelope, Node, Task, W};
use fhaim_api::keys::Receipt;
use fhaim_protocol::crypto::chain::{Freeze, ReceiptKey, Tip};
use fhaim_protocol::crypto::judge::Rules;
use fhaim_release::{Holders, ReleaseRequest, Statistic};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;

/// Separates the stream of this module from the other streams of a seed. The number is chosen so that the schedules in
/// `tests/seeds.rs` whose built-in faults need none of these events have none.
const STREAM: u64 = 2094;

/// The events of one schedule.
#[derive(Clone, Debug)]
pub(crate) struct Roster {
    /// Number of holders. It decides whether an operator can thaw the dataset.
    pub holders: u32,
    /// The key service loses all data of the dataset.
    pub loss: Option<Loss>,
    /// A holder shows an invented receipt.
    pub invented: Option<Invented>,
    /// A holder's objects of this attribute make pages that cannot be decrypted.
    pub bad_attribute: Option<usize>,
    /// Two programs upload the same part at the same time. Without this, the upload is complete from the beginning.
    pub concurrent: Option<Concurrent>,
}

/// A rollback of the key service to a state before the dataset's keys were made.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    at: u64,
    /// Other stores that are rolled back at the same time: to this fraction of the time so far, or to the beginning.
    others: Vec<(Node, Option<f64>)>,
}

/// A receipt that no key service signed.
#[derive(Clone, Debug)]
pub(crate) struct Invented {
    at: u64,
    /// Whether the holder shows it to the generation service, which passes it on, instead of to the key service.
    passed_on: bool,
    seed: [u8; 32],
    height: u64,
}

/// Two concurrent uploads of one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Concurrent {
    /// Probability at each step that the second program is killed.
    kill: f64,
}

impl Roster {
    /// Returns a roster without events and with one holder.
    fn none() -> Self {
        Self {
            holders: 1,
            loss: None,
            invented: None,
            bad_attribute: None,
            concurrent: None,
        }
    }

    /// Returns the events of a seed, and the random stream after them. Schedules with ciphertexts have no events,
    /// because they share keys and uploads.
    pub(crate) fn new(seed: u64, all: &[Node], encrypted: bool) -> (Self, ChaCha20Rng) {
        let mut rng = ChaCha20Rng::seed_from_u64(seed.wrapping_add(STREAM));
        if encrypted || rng.random_range(0..3) > 0 {
            return (Self::none(), rng);
        }
        let has = |rng: &mut ChaCha20Rng| rng.random_range(0..3) == 0;
        let roster = Self {
            holders: rng.random_range(1..=2),
            loss: has(&mut rng).then(|| Loss::new(&mut rng, all)),
            invented: has(&mut rng).then(|| Invented::new(&mut rng)),
            bad_attribute: has(&mut rng).then(|| rng.random_range(0..3)),
            concurrent: has(&mut rng).then(|| Concurrent {
                kill: [0.0, 0.002, 0.01][rng.random_range(0..3)],
            }),
        };
        (roster, rng)
    }

    /// Returns the name of the kind of events, if there are any.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        let kinds = [
            ("keys lost", self.loss.is_some()),
            ("receipt invented", self.invented.is_some()),
            ("bad objects", self.bad_attribute.is_some()),
            ("concurrent uploads", self.concurrent.is_some()),
        ];
        let kinds = kinds.iter().filter(|(_, has)| *has);
        let kinds: Vec<_> = kinds.map(|(name, _)| *name).collect();
        match kinds.as_slice() {
            [] => None,
            [kind] => Some(*kind),
            _ => Some("several of these"),
        }
    }

    /// Checks whether bad objects make pages with these releases impossible to decrypt.
    pub(crate) fn spoils(&self, requests: &[ReleaseRequest]) -> bool {
        let Some(bad) = self.bad_attribute else {
            return false;
        };
        requests.iter().any(|request| match &request.statistic {
            Statistic::Total => false,
            Statistic::OneWay(axis) => axis.attribute == bad,
            Statistic::Product(a, b) => a.attribute == bad || b.attribute == bad,
            Statistic::SquaredScores(_) => true,
        })
    }

    /// Returns the rules that decide whether an operator can thaw the dataset.
    pub(crate) fn thaw_rules(&self, w: &W) -> Rules {
        let holders = match w.is(Mutant::ThawIgnoresHolders) {
            true => 1,
            false => self.holders,
        };
        let mut rules = w.setting.rules.clone();
        rules.plan.holders = Holders::of_records(holders, 1).expect("there is a holder");
        rules
    }

    /// Checks whether no operator can lift a freeze. Does not use the protocol's own rules, which it is meant to check.
    pub(crate) fn is_permanent(&self, reason: Freeze) -> bool {
        match reason {
            Freeze::Witness => false,
            Freeze::Noise | Freeze::Upload => self.holders > 1,
            Freeze::Restored | Freeze::UnknownReceipt => true,
        }
    }

    /// Runs the events that happen before the next step.
    pub(crate) fn step(&mut self, w: &W, faults: &mut Faults, tasks: &mut Vec<Task>) {
        let now = w.now.get();
        if !w.faulty.get() {
            return;
        }
        if self.loss.as_ref().is_some_and(|loss| loss.at <= now) {
            let loss = self.loss.take();
            loss.inspect(|loss| loss.happen(w, faults, tasks));
        }
        if self.invented.as_ref().is_some_and(|shown| shown.at <= now) {
            let invented = self.invented.take();
            invented.inspect(|invented| invented.show(w));
        }
        if let Some(Concurrent { kill }) = self.concurrent
            && w.roster_chance(kill)
        {
            w.event("the second uploading program is killed");
            faults.end(w, tasks, Node::Uploader);
        }
    }
}

impl Loss {
    fn new(rng: &mut ChaCha20Rng, all: &[Node]) -> Self {
        let others = all.iter().filter(|&&node| node != Node::Crypto);
        let others: Vec<_> = others
            .filter_map(|&node| {
                let to = rng.random::<bool>().then(|| rng.random());
                rng.random::<bool>().then_some((node, to))
            })
            .collect();
        // Half of the losses are early, while the upload may be incomplete.
        let latest = [200, 1500][rng.random_range(0..2)];
        Self {
            at: rng.random_range(20..latest),
            others,
        }
    }

    fn happen(&self, w: &W, faults: &mut Faults, tasks: &mut Vec<Task>) {
        w.event("keys lost");
        faults.end(w, tasks, Node::Crypto);
        w.trace(|| "Crypto loses the dataset's keys".to_owned());
        w.lose_keys(Node::Crypto);
        w.ghost.borrow_mut().set_back(Node::Crypto);
        for &(node, to) in &self.others {
            faults.end(w, tasks, node);
            let now = w.now.get();
            let time = to.map_or(0, |part| (now as f64 * part) as u64);
            w.trace(|| format!("{node:?} is rolled back to {time}"));
            match node {
                Node::Keyshare => w.lose_keys(node),
                _ => w.restore(node, time),
            }
            w.ghost.borrow_mut().set_back(node);
        }
    }
}

impl Invented {
    fn new(rng: &mut ChaCha20Rng) -> Self {
        Self {
            at: rng.random_range(20..1500),
            passed_on: rng.random(),
            seed: rng.random(),
            height: rng.random_range(0..12),
        }
    }

    fn show(&self, w: &W) {
        let key = ReceiptKey::from_bytes(&self.seed).expect("32 bytes are a key");
        let tip = Tip {
            height: self.height,
            head: self.seed,
        };
        let receipt: Receipt = key.sign(crate::setting::DATASET, tip).into();
        w.event("receipt invented");
        let (to, envelope) = match self.passed_on {
            true => {
                let call = GenerationCall::Tell(receipt);
                (Node::Generation, Envelope::new(&call, 0))
            }
            false => {
                let receipts = vec![receipt.to_header()];
                let call = CryptoCall::Show { receipts };
                (Node::Crypto, Envelope::new(&call, 0))
            }
        };
        w.post(Node::Uploader, to, w.fresh(), envelope);
    }
}
