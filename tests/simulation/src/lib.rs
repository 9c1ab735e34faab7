//! All entities in one process, over a network that fails, from a seed.
//!
//! Holders' programs, two workers of a computation service, a crypto service and a generation
//! service run the protocol's own entities, codecs and stored forms. Messages are lost, late,
//! repeated and out of order; processes are killed between any two stored writes or messages; one
//! store or several are set back to any earlier state, each by itself or together; leases end while
//! someone is at work; requests come that no service which follows the protocol sends.
//!
//! Pages are clear values beside the real ledger, allocator, judge and sealing keys, or real
//! ciphertexts.
//!
//! A quarter of the schedules with clear pages draw further events from a second random stream:
//!
//! - The key service loses a dataset's keys and ledger. Other stores can go back with it.
//! - A holder shows a receipt that it invented, to the key service or to the generation service.
//! - A holder's objects make pages that cannot be decrypted. The dataset has one holder or two.
//! - Two programs upload the same part of the dataset at the same time, and are killed in between.
//!
//! What must hold, by the numbers that a violation is reported with:
//!
//! 1. No position of the ladder is decrypted for two releases; no release is sealed to two forms.
//! 2. Whatever is released is what an undisturbed run with the same ladder releases, and so is
//!    every table; or the job is refused with a reason.
//! 3. The crypto service answers no one who knows of an entry that its ledger lacks.
//! 4. Once faults have stopped, every job ends within a bounded number of steps.
//! 5. One call of a client makes one job.
//! 6. No run is given to two jobs.
//! 7. A job is refused for a reason: unless a key service was set back or a page was spoilt,
//!    as many jobs are done as were wanted, or as the dataset has runs.
//! 8. Where there is a second computation service, nothing is decrypted that it did not compute to the
//!    same bytes.
//! 9. Two computation services that follow the protocol never come to different bytes, so that the dataset
//!    is frozen for that only where a page was spoilt; by a service that shares the key, also where the crypto
//!    service was set back and gave a job another run.
//! 10. Where a service shares the key, nothing is released that it has not debited.
//! 11. It debits nothing that the crypto service has not promised.
//! 12. It debits no position of the ladder for two releases, unless it was set back itself: not where the crypto
//!     service was, and no one knows.
//! 13. The crypto service decrypts nothing that it has not debited.
//! 14. Nothing is released under other keys than the upload was encrypted for.
//! 15. A frozen dataset releases nothing, and no one lifts a freeze that is permanent.
//! 16. A completed upload has the objects of one session, and of two uploads at most one is completed.
//!
//! An upload has its own noise, so 1 and 12 hold for each upload. Rule 3 covers keys too: the key
//! service makes none for a caller, or on a voucher of a generation service, that knows of an entry.
//! Rule 7 does not apply where a holder's deviation froze the dataset, or where a computation
//! service lost an upload that a run had begun over. Rule 9 does not apply where the two computation services
//! registered an upload with different keys, as the key service lost the first in between.
//!
//! Where the crypto service was set back, 1 and 6 are excused if nobody who was asked since knows of
//! what it lost; [`Counts`] says how often, and how often someone knew who was not asked.

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

/// A fault that is built into a service, to see that the simulation finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// CE stores windows without comparing, and does not catch up with the crypto service.
    ComputationForgets,
    /// CSE takes positions from the request.
    CryptoTrustsSpans,
    /// CE seals with other randomness each time.
    FreshSealing,
    /// CE makes its sealing key when it is first needed, so that a copy of its store from before
    /// has none.
    LateSealingKey,
    /// CSE does not look at receipts.
    ReceiptsNotChecked,
    /// CE does not show its receipt.
    ComputationShowsNoReceipt,
    /// GE does not show its receipt.
    GenerationShowsNoReceipt,
    /// GE makes a job for every call that arrives.
    EachCallMakesAJob,
    /// CSE answers, and then appends to its chain.
    CryptoAnswersFirst,
    /// CSE decrypts before it debits.
    CryptoDebitsLate,
    /// CSE appends to its chain without comparing.
    CryptoAppendsBlindly,
    /// CE takes a sealed batch that its blob store no longer has for a fault that passes, also
    /// where the batch is opened again.
    LostBlobsAreFaults,
    /// CE, GE and holders keep the highest receipt alone, whether or not the call that it came
    /// with showed the one before.
    HighestReceiptAlone,
    /// CSE decrypts what the second computation service has said nothing of.
    CryptoDoesNotWait,
    /// The second computation service seals with a key of its own.
    WitnessHasItsOwnKey,
    /// GE asks the second computation service for a batch once.
    WitnessIsAskedOnce,
    /// CSE releases what the service that shares the key has not paid for.
    CryptoSharesWithNoOne,
    /// CSE promises a request that it judged before the same one came to its end.
    CryptoPromisesLate,
    /// The service that shares the key forgets its own ledger where the crypto service's contradicts it.
    KeyshareBelievesTheFirst,
    /// GE vouches for other keys although it has a receipt for the dataset.
    GenerationVouchesAgain,
    /// CSE ignores a receipt that the dataset's receipt key did not sign.
    CryptoIgnoresUnknownReceipts,
    /// CSE makes other keys for a caller that shows a receipt.
    CryptoMakesKeysAgain,
    /// CSE releases while the dataset is frozen.
    CryptoReleasesWhileFrozen,
    /// CE completes an upload whose manifest is not the one that the program says.
    ComputationCompletesMixed,
    /// An operator can thaw a dataset of several holders that is frozen over a page.
    ThawIgnoresHolders,
    /// A job that is tried again needs a run that no other job waits for, though it may have one.
    RetryClaimsARun,
}

impl Mutant {
    /// All of them.
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

/// How schedules are played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// With real ciphertexts.
    pub encrypted: bool,
    /// With a second computation service.
    pub witness: bool,
    /// With a service that shares the key with the crypto service; pages are clear then.
    pub keyshare: bool,
    /// Print what happens.
    pub trace: bool,
    /// A fault that is built in.
    pub mutant: Option<Mutant>,
}

/// What came of one schedule.
#[derive(Clone, Debug)]
pub struct Played {
    /// What it did.
    pub counts: Counts,
    /// What must not have happened, and did.
    pub violations: Vec<String>,
}

/// Plays schedules, which share tables, ladders, keys and fits.
#[derive(Default)]
pub struct Simulation {
    settings: HashMap<(MechanismName, u32, bool, bool), Rc<Scenario>>,
}

/// Steps after the last fault within which every job must end.
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

/// One schedule under way.
struct Schedule {
    world: W,
    tasks: Vec<Task>,
    faults: Faults,
    /// The events that are still to come.
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
                let what = format!("4: after {BOUND} steps without a fault a job has not ended");
                return world.ghost.borrow_mut().violation(what);
            }
        }
    }

    /// Whether every wanted job has ended.
    fn is_over(&self) -> bool {
        let world = &self.world;
        !world.faulty.get() && world.holder.get().ended().len() == world.wanted
    }

    /// Goes on with a task or delivers a message, by chance.
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

    /// Lets time pass until something can go on.
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

    /// Checks what is left when all is over.
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
                    ghost.violation("2: a table is not an undisturbed run's".to_owned());
                }
                End::Done(Some(run)) => runs.push(*run),
                End::Refused(reason) => {
                    refused += 1;
                    counts.refuse(reason);
                    if reason.is_empty() {
                        ghost.violation("2: a job is refused without a reason".to_owned());
                    }
                }
            }
        }
        let due = world.wanted.min(world.setting.plan.core.runs as usize);
        // A generation service that was set back may have forgotten a job that has a run, and
        // taken another in its place, whose holder waited longer.
        let excused = ghost.crypto_restored
            || ghost.keyshare_restored
            || ghost.spoilt
            || ghost.deviated
            || ghost.upload_lost
            || ghost.generation_restored && world.wanted > due;
        if runs.len() < due && refused > 0 && !excused {
            let what = format!("7: {} of {due} jobs are done", runs.len());
            ghost.violation(what);
        }
        let done = runs.len();
        runs.sort_unstable();
        runs.dedup();
        if runs.len() < done && !ghost.crypto_restored {
            ghost.violation("6: two tables are of one run".to_owned());
        }
        counts.done += done as u64;
        counts.schedules = 1;
        let seen = counts.events.keys().map(|event| (event.clone(), 1));
        counts.events_in = seen.collect();
        if let Some(kind) = world.roster.kind() {
            let outcome = match (runs.len() >= due, refused > 0) {
                (true, _) => "all jobs that have runs were done",
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
