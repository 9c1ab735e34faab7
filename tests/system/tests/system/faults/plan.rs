//! Which fault comes when: one a second, from a seed alone.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `kill -9` and a new start after a while.
    Killed,
    /// A process stands still for a while.
    Stopped,
    /// A service is away while another is killed and starts.
    PeerAway,
    /// A link loses answers.
    LostAnswers,
    /// A link loses requests.
    LostRequests,
    /// A link holds calls up.
    Delays,
    /// A service has no room on its disk.
    FullDisk,
    /// A service's clock is wrong.
    ClockJump,
    /// A service is set back to a copy of what it kept some seconds before.
    Restored,
}

/// How often each kind comes, of the sum.
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
            Self::Stopped => "service stopped still",
            Self::PeerAway => "started, peer away",
            Self::LostAnswers => "answers lost",
            Self::LostRequests => "requests lost",
            Self::Delays => "calls delayed",
            Self::FullDisk => "disk full",
            Self::ClockJump => "clock jump",
            Self::Restored => "service set back",
        }
    }

    /// Seconds that it lasts: between these.
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

/// A fault to come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    pub kind: Kind,
    /// The service or link that is tried first.
    pub place: usize,
    /// How long it lasts; of a service set back, how old the copy is.
    pub length: Duration,
    /// How long a call is held up.
    pub delay: Duration,
    /// Seconds by which a clock is wrong.
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
fn a_seed_gives_the_same_faults() {
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
