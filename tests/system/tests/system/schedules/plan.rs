//! A schedule: its services, its users and its faults, one per second. It depends only on a seed.

use std::time::Duration;

use fhaim_kit::{KEYSHARE, NAMES, WITNESS};

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Some services are killed, and start again after a pause.
    Killed,
    /// A process is stopped for a while.
    Stopped,
    /// A service is down while another is killed and starts.
    PeerAway,
    /// A link loses answers.
    LostAnswers,
    /// A link loses requests.
    LostRequests,
    /// A link delays calls.
    Delays,
    /// A service's disk is full.
    FullDisk,
    /// A service's clock is wrong.
    ClockJump,
    /// Some services are set back to copies of their data that are some seconds old.
    Restored,
}

/// Relative frequency of each kind.
const SHARES: [(Kind, u32); 9] = [
    (Kind::Killed, 20),
    (Kind::Stopped, 6),
    (Kind::PeerAway, 6),
    (Kind::LostAnswers, 12),
    (Kind::LostRequests, 8),
    (Kind::Delays, 6),
    (Kind::FullDisk, 14),
    (Kind::ClockJump, 10),
    (Kind::Restored, 18),
];

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 9] = {
        let mut all = [Self::Killed; 9];
        let mut number = 0;
        while number < all.len() {
            all[number] = SHARES[number].0;
            number += 1;
        }
        all
    };

    pub fn name(self) -> &'static str {
        match self {
            Self::Killed => "services killed",
            Self::Stopped => "service stopped",
            Self::PeerAway => "start while peer down",
            Self::LostAnswers => "answers lost",
            Self::LostRequests => "requests lost",
            Self::Delays => "calls delayed",
            Self::FullDisk => "disk full",
            Self::ClockJump => "clock jump",
            Self::Restored => "services set back",
        }
    }

    /// Returns the shortest and the longest duration in seconds.
    fn seconds(self) -> (f64, f64) {
        match self {
            Self::Killed => (0.0, 2.0),
            Self::Stopped => (1.0, 3.0),
            Self::PeerAway => (1.0, 3.0),
            Self::LostAnswers | Self::LostRequests => (0.3, 1.5),
            Self::Delays => (1.0, 3.0),
            Self::FullDisk => (1.0, 3.0),
            Self::ClockJump => (1.0, 3.0),
            Self::Restored => (0.5, 6.0),
        }
    }
}

/// Services and users of a schedule, and whether services are set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Seed of the schedule.
    pub seed: u64,
    /// Number of users. The first two are the holders of one dataset if `is_joint`.
    pub users: usize,
    /// Whether there is a second computation service.
    pub witness: bool,
    /// Number of key services.
    pub keys: usize,
    /// Whether the first two users share a dataset.
    pub is_joint: bool,
    /// Whether services are set back. Otherwise nothing may be lost.
    pub sets_back: bool,
    /// Whether the faults begin when each user has uploaded a dataset, so that jobs run from the first fault on.
    pub begins_with_jobs: bool,
}

impl Setup {
    /// Returns the setup of a seed. Five of eight seeds have the three basic services only.
    pub fn of(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(!seed);
        let more = rng.random_range(0..8);
        Self {
            seed,
            users: rng.random_range(2..=3),
            witness: more < 2,
            keys: if (1..3).contains(&more) { 2 } else { 1 },
            is_joint: rng.random_range(0..4) == 0,
            sets_back: rng.random_range(0..4) > 0,
            begins_with_jobs: rng.random_range(0..3) > 0,
        }
    }

    /// Returns the numbers of the services.
    pub fn services(&self) -> impl Iterator<Item = usize> {
        let witness = Some(WITNESS).filter(|_| self.witness);
        let keyshares = KEYSHARE..KEYSHARE + self.keys - 1;
        (0..NAMES.len()).chain(witness).chain(keyshares)
    }

    /// Returns the faults of the schedule.
    pub fn faults(self) -> impl Iterator<Item = Fault> {
        Plan(StdRng::seed_from_u64(self.seed))
            .filter(move |fault| self.sets_back || fault.kind != Kind::Restored)
    }
}

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    pub kind: Kind,
    /// Number of the preferred service or link.
    pub place: usize,
    /// The services of a fault that affects several, as bits.
    pub subset: u8,
    /// Duration of the fault, or age of the copies for services that are set back.
    pub length: Duration,
    /// Delay of a call.
    pub delay: Duration,
    /// Offset of a clock in seconds.
    pub jump: i64,
}

/// All faults of a seed, in order.
struct Plan(StdRng);

impl Iterator for Plan {
    type Item = Fault;

    fn next(&mut self) -> Option<Fault> {
        let rng = &mut self.0;
        let drawn = SHARES.choose_weighted(rng, |(_, share)| *share);
        let (kind, _) = *drawn.unwrap();
        let (least, most) = kind.seconds();
        let jump: i64 = rng.random_range(60..=3600);
        Some(Fault {
            kind,
            place: rng.random_range(0..60),
            subset: rng.random_range(1..=u8::MAX),
            length: Duration::from_secs_f64(rng.random_range(least..most)),
            delay: Duration::from_secs_f64(rng.random_range(0.1..1.5)),
            jump: if rng.random() { jump } else { -jump },
        })
    }
}

#[test]
fn equal_seeds_give_equal_schedules() {
    let faults = |seed| Setup::of(seed).faults().take(500).collect::<Vec<_>>();
    assert_eq!(faults(3), faults(3));
    assert_ne!(faults(3), faults(4));
    let setups: Vec<Setup> = (0..100).map(Setup::of).collect();
    let all = || setups.iter().flat_map(|setup| setup.faults().take(20));
    let is_planned = |(kind, _): &(Kind, u32)| all().any(|fault| fault.kind == *kind);
    assert!(SHARES.iter().all(is_planned));
    let number = |is: fn(&Setup) -> bool| setups.iter().filter(|setup| is(setup)).count();
    let numbers = [
        number(|setup| setup.witness),
        number(|setup| setup.keys > 1),
        number(|setup| setup.is_joint),
        number(|setup| !setup.sets_back),
        number(|setup| !setup.begins_with_jobs),
    ];
    assert!(numbers.iter().all(|number| *number > 10), "{numbers:?}");
}
