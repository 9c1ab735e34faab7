//! Simulates all entities in one process over an unreliable network. A seed determines everything.
//!
//! ```sh
//! cargo run --release -p fhaim-simulation -- --seeds 1000 --witness
//! ```
//!
//! Holders' programs, a computation service with two workers, a crypto service and a generation
//! service run the protocol's own entities, codecs and stored forms. The simulation injects faults:
//!
//! - Messages are lost, delayed, repeated and reordered.
//! - Processes are killed between any two writes or messages.
//! - Stores are rolled back to earlier states, individually or together.
//! - Leases expire while a worker still works on the task.
//! - Services receive requests that no service that follows the protocol sends.
//!
//! The ledger, allocator, judge and sealing keys are the real ones. Pages hold clear values or real
//! ciphertexts.
//!
//! About a quarter of the schedules with clear pages have further events, drawn from a second random stream:
//!
//! - The key service loses a dataset's keys and ledger. Other stores can be rolled back with it.
//! - A holder shows an invented receipt to the key service or to the generation service.
//! - A holder's objects make pages that cannot be decrypted. The dataset has one holder or two.
//! - Two programs upload the same part of the dataset at the same time, and are killed in between.
//!
//! The simulation checks these rules. A violation is reported with the number of its rule:
//!
//! 1. No position of the ladder is decrypted for two releases, and no release is sealed to two forms.
//! 2. Every release and every table is the one of an undisturbed run with the same ladder, or the job
//!    is refused with a reason.
//! 3. The crypto service does not answer a caller that knows of an entry that its ledger lacks.
//! 4. Once faults have stopped, every job ends within a bounded number of steps.
//! 5. One call of a client makes one job.
//! 6. No run is given to two jobs.
//! 7. Jobs are not refused without need. Unless a key service was rolled back or a page was spoilt, the number
//!    of finished jobs is at least the smaller of the wanted jobs and the dataset's runs.
//! 8. If there is a second computation service, only pages that it computed to the same bytes are decrypted.
//! 9. Two computation services that follow the protocol never compute different bytes. The dataset is frozen
//!    for a disagreement only if a page was spoilt. A service that shares the key can also freeze it after the
//!    crypto service was rolled back and gave a job another run.
//! 10. If a service shares the key, only batches that it has debited are released.
//! 11. That service debits only requests that the crypto service has promised.
//! 12. That service debits no position of the ladder for two releases, unless it was rolled back itself. This holds
//!     even if the crypto service was rolled back and nobody knows.
//! 13. The crypto service decrypts only batches that it has debited.
//! 14. Nothing is released under other keys than those the upload was encrypted for.
//! 15. A frozen dataset releases nothing, and nobody lifts a permanent freeze.
//! 16. A completed upload has the objects of one session, and at most one of two uploads is completed.
//!
//! An upload has its own noise, so rules 1 and 12 hold for each upload. Rule 3 covers keys too: the key service makes
//! none for a caller that knows of an entry, or if the generation service that vouches for the dataset knows of one.
//! Rule 7 does not apply if a holder's deviation froze the dataset, or if a computation service lost an upload over
//! which a run had begun. Rule 9 does not apply if the key service lost its keys while the upload was registered, so
//! that the two computation services registered it with different keys.
//!
//! After a rollback of the crypto service, violations of rules 1 and 6 are excused if no caller since then knew of the
//! lost entries. [`Counts`] has the number of such cases, and of cases in which an entity that was not asked knew.

mod computation;
mod contribution;
mod crypto;
mod faults;
mod generation;
mod ghost;
mod holder;
mod keyshare;
mod lease;
mod pages;
mod receipts;
mod report;
mod roster;
mod setting;
mod upload;
mod world;

pub use report::Counts;

use crate::faults::Faults;
use crate::holder::End;
use crate::roster::Roster;
use crate::setting::Scenario;
use crate::world::{Node, Task, W, Wait, World};
use fhaim_synth::MechanismName;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::HashMap;
use std::rc::Rc;
use std::task::{Context, Waker};

/// A fault that can be built into a service, to check that the simulation finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// CE stores windows without comparing them, and does not catch up with the crypto service.
    ComputationForgets,
    /// CSE trusts the positions that a request names.
    CryptoTrustsSpans,
    /// CE seals with new randomness each time.
    FreshSealing,
    /// CE makes its sealing key at the first use, so that an earlier copy of its store has none.
    LateSealingKey,
    /// CSE does not check receipts.
    ReceiptsNotChecked,
    /// CE does not show its receipt.
    ComputationShowsNoReceipt,
    /// GE does not show its receipt.
    GenerationShowsNoReceipt,
    /// GE makes a job for every call that arrives, even if it repeats an earlier one.
    EachCallMakesAJob,
    /// CSE answers before it appends to its chain.
    CryptoAnswersFirst,
    /// CSE decrypts before it debits.
    CryptoDebitsLate,
    /// CSE appends to its chain without comparing heights.
    CryptoAppendsBlindly,
    /// CE treats a sealed batch that is missing from its blob store as a transient fault, even when the batch is
    /// reopened.
    LostBlobsAreFaults,
    /// CE, GE and holders keep only the highest receipt, even if the call that returned it did not show the previous
    /// one.
    HighestReceiptAlone,
    /// CSE decrypts batches without a digest from the second computation service.
    CryptoDoesNotWait,
    /// The second computation service seals with its own key.
    WitnessHasItsOwnKey,
    /// GE asks the second computation service for a batch only once.
    WitnessIsAskedOnce,
    /// CSE releases batches that the service that shares the key has not debited.
    CryptoSharesWithNoOne,
    /// CSE promises a request that it judged before another copy of the same request was released.
    CryptoPromisesLate,
    /// The service that shares the key discards its own ledger when the crypto service's ledger contradicts it.
    KeyshareBelievesTheFirst,
    /// GE vouches for other keys although it has a receipt for the dataset.
    GenerationVouchesAgain,
    /// CSE ignores receipts that the dataset's receipt key did not sign.
    CryptoIgnoresUnknownReceipts,
    /// CSE makes other keys for a caller that shows a receipt.
    CryptoMakesKeysAgain,
    /// CSE releases while the dataset is frozen.
    CryptoReleasesWhileFrozen,
    /// CE completes an upload whose manifest differs from the one that the program sends.
    ComputationCompletesMixed,
    /// An operator can thaw a dataset of several holders that was frozen because of a page.
    ThawIgnoresHolders,
    /// A retried job claims a free run, although it may have one already.
    RetryClaimsARun,
}

impl Mutant {
    /// All built-in faults.
    pub const ALL: [Self; 26] = [
        Self::ComputationForgets,
        Self::CryptoTrustsSpans,
        Self::FreshSealing,
        Self::LateSealingKey,
        Self::ReceiptsNotChecked,
        Self::ComputationShowsNoReceipt,
        Self::GenerationShowsNoReceipt,
        Self::EachCallMakesAJob,
        Self::CryptoAnswersFirst,
        Self::CryptoDebitsLate,
        Self::CryptoAppendsBlindly,
        Self::LostBlobsAreFaults,
        Self::HighestReceiptAlone,
        Self::CryptoDoesNotWait,
        Self::WitnessHasItsOwnKey,
        Self::WitnessIsAskedOnce,
        Self::CryptoSharesWithNoOne,
        Self::CryptoPromisesLate,
        Self::KeyshareBelievesTheFirst,
        Self::RetryClaimsARun,
        Self::GenerationVouchesAgain,
        Self::CryptoIgnoresUnknownReceipts,
        Self::CryptoMakesKeysAgain,
        Self::CryptoReleasesWhileFrozen,
        Self::ComputationCompletesMixed,
        Self::ThawIgnoresHolders,
    ];
}

/// Options of the played schedules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether pages are real ciphertexts.
    pub encrypted: bool,
    /// Whether there is a second computation service.
    pub witness: bool,
    /// Whether a service shares the key with the crypto service. Requires clear pages.
    pub keyshare: bool,
    /// Whether to print every event.
    pub trace: bool,
    /// Fault that is built into a service.
    pub mutant: Option<Mutant>,
}

/// Result of one schedule.
#[derive(Clone, Debug)]
pub struct Played {
    /// Counts of the schedule's events.
    pub counts: Counts,
    /// Violated rules.
    pub violations: Vec<String>,
}

/// Plays schedules. They share tables, ladders, keys and fits.
#[derive(Default)]
pub struct Simulation {
    settings: HashMap<(MechanismName, u32, bool, bool), Rc<Scenario>>,
}

/// Number of steps after the last fault within which every job must end.
const BOUND: u64 = 30_000;

impl Simulation {
    /// Plays the schedule of a seed.
    pub fn play(&mut self, seed: u64, options: &Options) -> Played {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
        let mechanisms: Vec<MechanismName> = MechanismName::encrypted().collect();
        let mechanism = mechanisms[rng.random_range(0..mechanisms.len())];
        let runs = if options.encrypted {
            2
        } else {
            rng.random_range(1..=3)
        };
        let Options {
            encrypted,
            witness,
            keyshare,
            ..
        } = *options;
        let name = (mechanism, runs, encrypted, witness);
        let setting = self.settings.entry(name);
        let new = || Rc::new(Scenario::new(mechanism, runs, encrypted, witness));
        let setting = Rc::clone(setting.or_insert_with(new));
        let with = (options.mutant, keyshare);
        let all = Node::all(witness, keyshare);
        let roster = Roster::new(seed, &all, encrypted);
        let events = roster.0.clone();
        let world = Rc::new(World::new(setting, with, roster, seed, options.trace));
        let mut schedule = Schedule {
            faults: Faults::new(&mut rng, &all),
            roster: events,
            world,
            tasks: Vec::new(),
        };
        schedule.play();
        schedule.end()
    }
}

/// One schedule in progress.
struct Schedule {
    world: W,
    tasks: Vec<Task>,
    faults: Faults,
    /// Events that have not happened yet.
    roster: Roster,
}

impl Schedule {
    fn play(&mut self) {
        let world = Rc::clone(&self.world);
        world.make_keys();
        match self.roster.concurrent {
            Some(_) => world.start(Node::Uploader),
            // The same in all schedules, so that encrypted ones can share sealed batches.
            None => world.upload((!world.is(Mutant::LateSealingKey)).then_some([6; 32])),
        }
        world.weather.set(self.faults.weather);
        let nodes = Node::all(world.has_witness(), world.has_keyshare());
        nodes.into_iter().for_each(|node| world.start(node));
        let mut steps = 0;
        while !self.is_over() {
            self.faults.step(&world, &mut self.tasks);
            self.roster.step(&world, &mut self.faults, &mut self.tasks);
            self.tasks.extend(world.spawned());
            self.step();
            steps += u64::from(!world.faulty.get());
            if steps > BOUND {
                let what = format!("4: a job has not ended after {BOUND} steps without a fault");
                return world.ghost.borrow_mut().violation(what);
            }
        }
    }

    /// Checks whether every wanted job has ended.
    fn is_over(&self) -> bool {
        let world = &self.world;
        !world.faulty.get() && world.holder.get().ended().len() == world.wanted
    }

    /// Continues a task or delivers a message, chosen at random.
    fn step(&mut self) {
        let world = Rc::clone(&self.world);
        world.count(|c| c.steps += 1);
        let ready = (0..self.tasks.len()).filter(|&i| world.is_ready(self.tasks[i].wait));
        let ready: Vec<usize> = ready.collect();
        let (next, due) = world.due();
        let choices = ready.len() + due.len();
        if choices == 0 {
            return self.jump(next);
        }
        world.now.set(world.now.get() + 1);
        let choice = world.below(choices as u64) as usize;
        match ready.get(choice) {
            Some(&task) => self.poll(task),
            None => world.deliver(due[choice - ready.len()]),
        }
    }

    /// Advances the time until a task can continue or a message is due.
    fn jump(&self, message: Option<u64>) {
        let waits = self.tasks.iter().map(|task| match task.wait {
            Wait::Ready => 0,
            Wait::Until(time) => time,
            Wait::Reply { deadline, .. } => deadline,
        });
        let now = self.world.now.get();
        let next = waits.chain(message).min().unwrap_or(now);
        self.world.now.set(next.max(now + 1));
    }

    fn poll(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        let mut context = Context::from_waker(Waker::noop());
        if task.work.as_mut().poll(&mut context).is_ready() {
            drop(self.tasks.swap_remove(index));
        } else {
            task.wait = self.world.waiting();
        }
    }

    /// Checks the final state, and returns the result.
    fn end(self) -> Played {
        let world = self.world;
        drop(self.tasks);
        let mut ghost = world.ghost.take();
        let mut counts = world.counts.take();
        let holder = world.holder.get();
        let mut runs = Vec::new();
        let mut refused = 0;
        for end in holder.ended().values() {
            match end {
                End::Done(None) => {
                    ghost.violation("2: a table differs from the undisturbed runs".to_owned());
                }
                End::Done(Some(run)) => runs.push(*run),
                End::Refused(reason) => {
                    refused += 1;
                    counts.refuse(reason);
                    if reason.is_empty() {
                        ghost.violation("2: a job was refused without a reason".to_owned());
                    }
                }
            }
        }
        let due = world.wanted.min(world.setting.plan.core.runs as usize);
        // After a rollback, the generation service may have forgotten a job that has a run, and accepted
        // another job in its place.
        let excused = ghost.crypto_restored
            || ghost.keyshare_restored
            || ghost.spoilt
            || ghost.deviated
            || ghost.upload_lost
            || ghost.generation_restored && world.wanted > due;
        if runs.len() < due && refused > 0 && !excused {
            let what = format!("7: only {} of {due} jobs were done", runs.len());
            ghost.violation(what);
        }
        let done = runs.len();
        runs.sort_unstable();
        runs.dedup();
        if runs.len() < done && !ghost.crypto_restored {
            ghost.violation("6: two tables are from the same run".to_owned());
        }
        counts.done += done as u64;
        counts.schedules = 1;
        let seen = counts.events.keys().map(|event| (event.clone(), 1));
        counts.events_in = seen.collect();
        if let Some(kind) = world.roster.kind() {
            let outcome = match (runs.len() >= due, refused > 0) {
                (true, _) => "all jobs with runs were done",
                (false, true) => "jobs were refused",
                (false, false) => "jobs did not end",
            };
            counts.outcome(&format!("schedules with {kind}: {outcome}"));
        }
        counts.forgotten += u64::from(ghost.forgotten > 0);
        counts.unasked += u64::from(ghost.unasked > 0);
        counts.reused += u64::from(ghost.reused > 0);
        counts.reassigned += u64::from(ghost.reassigned > 0);
        Played {
            counts,
            violations: ghost.violations,
        }
    }
}
