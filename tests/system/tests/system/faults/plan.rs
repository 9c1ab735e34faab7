//! The sequence of faults, one per second. It depends only on a seed.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A service is killed, and starts again after a pause.
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
    /// A service is rolled back to a copy of its data that is some seconds old.
    Restored,
}

/// Relative frequency of each kind.
const SHARES: [(Kind, u32); 9] = [
    (Kind::Killed, 14),
    (Kind::Stopped, 9),
    (Kind::PeerAway, 6),
    (Kind::LostAnswers, 20),
    (Kind::LostRequests, 14),
    (Kind::Delays, 10),
    (Kind::FullDisk, 10),
    (Kind::ClockJump, 10),
    (Kind::Restored, 7),
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Killed => "service killed",
            Self::Stopped => "service stopped",
            Self::PeerAway => "start while peer down",
            Self::LostAnswers => "answers lost",
            Self::LostRequests => "requests lost",
            Self::Delays => "calls delayed",
            Self::FullDisk => "disk full",
            Self::ClockJump => "clock jump",
            Self::Restored => "service rolled back",
        }
    }

    /// Returns the shortest and the longest duration in seconds.
    fn seconds(self) -> (f64, f64) {
        match self {
            Self::Killed => (0.0, 2.0),
            Self::Stopped => (1.0, 4.0),
            Self::PeerAway => (2.0, 5.0),
            Self::LostAnswers | Self::LostRequests => (0.3, 1.5),
            Self::Delays => (1.0, 3.0),
            Self::FullDisk => (1.0, 4.0),
            Self::ClockJump => (2.0, 6.0),
            Self::Restored => (1.0, 5.0),
        }
    }
}

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    pub kind: Kind,
    /// Number of the preferred service or link.
    pub place: usize,
    /// Duration of the fault, or age of the copy for a rollback.
    pub length: Duration,
    /// Delay of a call.
    pub delay: Duration,
    /// Offset of a clock in seconds.
    pub jump: i64,
}

/// All faults of a seed, in order.
pub struct Plan(StdRng);

impl Plan {
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }
}

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
            length: Duration::from_secs_f64(rng.random_range(least..most)),
            delay: Duration::from_secs_f64(rng.random_range(0.1..1.5)),
            jump: if rng.random() { jump } else { -jump },
        })
    }
}

#[test]
fn equal_seeds_give_equal_faults() {
    let faults = |seed| Plan::new(seed).take(500).collect::<Vec<_>>();
    assert_eq!(faults(3), faults(3));
    assert_ne!(faults(3), faults(4));
    let all = faults(3);
    assert!(
        SHARES
            .iter()
            .all(|(kind, _)| all.iter().any(|fault| fault.kind == *kind))
    );
}
