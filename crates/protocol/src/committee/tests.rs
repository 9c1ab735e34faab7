//! Tests key generation over a network that repeats and reorders messages, with services that crash
//! or deviate.

use super::keygen::{KeyGeneration, SplitKey, Taken};
use super::message::{Message, Step, write};
use super::*;
use fhaim_he::key_sharing::{CommonRandomness, KeyShare};
use fhaim_he::{RosterShape, STANDARD};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

const DATASET: DatasetId = DatasetId([7; 16]);

fn params(services: usize) -> Parameters {
    let params = Parameters::shared(STANDARD).unwrap();
    params.with_shares(services).unwrap()
}

fn service_key(number: usize) -> ServiceSigningKey {
    ServiceSigningKey::from_bytes(&[number as u8 + 1; 32])
}

fn committee(services: usize) -> KeyCommittee {
    let service = |number| KeyService {
        name: format!("hospital {number}"),
        key: service_key(number).public(),
    };
    let services = (0..services).map(service).collect();
    KeyCommittee::new(DATASET, &[5; 32], &[6; 16], services).unwrap()
}

/// One service: its stored messages, and its state.
struct Node {
    share: Zeroizing<Vec<u8>>,
    number: usize,
    services: usize,
    shape: Option<RosterShape>,
    state: KeyGeneration,
    stored: Vec<Vec<u8>>,
}

impl Node {
    fn new(number: usize, services: usize, seed: u64) -> Self {
        Self::with_roster(number, services, None, seed)
    }

    fn with_roster(number: usize, services: usize, shape: Option<RosterShape>, seed: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed + number as u64);
        let share = KeyShare::random(&params(services), &mut rng).unwrap();
        Self {
            share: share.to_bytes(),
            number,
            services,
            shape,
            state: KeyGeneration::new(committee(services), shape, share, service_key(number))
                .unwrap(),
            stored: Vec::new(),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Taken, Error> {
        let taken = self.state.take(bytes)?;
        if taken == Taken::New {
            self.stored.push(bytes.to_vec());
        }
        Ok(taken)
    }

    /// Loses everything except the stored messages.
    fn restart(&mut self) {
        let share = KeyShare::from_bytes(&params(self.services), &self.share).unwrap();
        let key = service_key(self.number);
        self.state = KeyGeneration::new(committee(self.services), self.shape, share, key).unwrap();
        for message in &self.stored {
            assert_eq!(self.state.take(message).unwrap(), Taken::New);
        }
    }

    /// Makes its message of the current step. Repeated calls make the same message.
    fn send(&mut self) {
        if let Some(message) = self.state.message().unwrap() {
            self.take(&message).unwrap();
        }
    }

    /// Returns its own messages, as it would send them again.
    fn sent(&self) -> Vec<&Vec<u8>> {
        // The ninth byte is the sender's number.
        let own = |bytes: &&Vec<u8>| usize::from(bytes[8]) == self.number;
        self.stored.iter().filter(own).collect()
    }
}

fn nodes(services: usize, seed: u64) -> Vec<Node> {
    nodes_with_roster(services, None, seed)
}

fn nodes_with_roster(services: usize, shape: Option<RosterShape>, seed: u64) -> Vec<Node> {
    (0..services)
        .map(|number| Node::with_roster(number, services, shape, seed))
        .collect()
}

/// Every service sends its message of the current step, and every service receives all of them.
fn step(nodes: &mut [Node]) {
    nodes.iter_mut().for_each(Node::send);
    let sent: Vec<_> = nodes
        .iter()
        .filter_map(|node| node.sent().pop().cloned())
        .collect();
    for node in nodes {
        for message in &sent {
            node.take(message).unwrap();
        }
    }
}

fn finish(nodes: Vec<Node>) -> Vec<SplitKey> {
    nodes
        .into_iter()
        .map(|node| node.state.finish().unwrap())
        .collect()
}

#[test]
#[ignore = "slow"]
fn key_is_generated_despite_reordering_repetition_and_restarts() {
    for (services, shape) in [(2, None), (3, None), (2, Some(RosterShape::Counts(2)))] {
        let mut straight = nodes_with_roster(services, shape, 10);
        (0..7).for_each(|_| step(&mut straight));
        let straight = finish(straight);
        let public = straight[0].public_key().to_bytes().unwrap();
        let evaluation = straight[0].evaluation_keys().to_bytes();
        let mut rng = ChaCha20Rng::seed_from_u64(0);
        let mut nodes = nodes_with_roster(services, shape, 10);
        let (mut early, mut repeated, mut restarts) = (0, 0, 0);
        while !nodes.iter().all(|node| node.state.is_done()) {
            let (from, to) = (rng.random_range(0..services), rng.random_range(0..services));
            if rng.random_range(0..40) == 0 {
                nodes[to].restart();
                restarts += 1;
            }
            if rng.random_range(0..4) == 0 {
                nodes[from].send();
            }
            let sent = nodes[from].sent();
            // Usually one of the last two messages, and sometimes an old one.
            let behind = if rng.random_range(0..5) == 0 {
                sent.len()
            } else {
                2
            };
            let at = sent
                .len()
                .saturating_sub(rng.random_range(0..behind.max(1)) + 1);
            let Some(message) = sent.get(at).copied().cloned() else {
                continue;
            };
            match nodes[to].take(&message) {
                Ok(Taken::New) => {}
                Ok(Taken::Repeated) => repeated += 1,
                Err(Error::Early) => early += 1,
                Err(error) => panic!("{error}"),
            }
        }
        eprintln!(
            "{services} services, {shape:?}: {early} early, {repeated} repeated, {restarts} restarts"
        );
        assert!(repeated > 0 && restarts > 0);
        for (key, other) in finish(nodes).iter().zip(&straight) {
            assert_eq!(key.member().transcript(), other.member().transcript());
            assert_eq!(key.public_key().to_bytes().unwrap(), public);
            assert_eq!(key.evaluation_keys().to_bytes(), evaluation);
        }
    }
}

/// Services that assume different rosters do not agree on keys.
#[test]
fn key_generation_for_another_roster_is_refused() {
    let shape = |number| Some(RosterShape::Counts(number + 2));
    let mut nodes: Vec<Node> = (0..2)
        .map(|number| Node::with_roster(number, 2, shape(number), 12))
        .collect();
    for _ in [Step::SeedCommitment, Step::Seed, Step::FirstCommitment] {
        step(&mut nodes);
    }
    nodes[1].send();
    let sent = nodes[1].sent().pop().unwrap().clone();
    let refused = deviation(nodes[0].take(&sent));
    assert_eq!(
        refused,
        "hospital 1 sent bytes that are not a message of this step"
    );
}

/// Makes the message that [`Node`] number 2 of three would send in a step if it could choose the
/// body.
fn forged(nodes: &[Node], step: Step, body: &[u8]) -> Vec<u8> {
    let sent = nodes[0].state.message().unwrap().unwrap();
    let seen = Message::read(&committee(3), &sent).unwrap().seen;
    write(&committee(3), &service_key(2), (step, 2), &seen, body)
}

fn deviation(refused: Result<Taken, Error>) -> String {
    match refused {
        Err(Error::Deviation { name, what }) => format!("{name} {what}"),
        other => panic!("{other:?}"),
    }
}

/// The last sender has the others' messages and could choose the sum.
/// `last_sender_without_commitments_takes_the_key` in `fhaim-he` shows that it would then have the
/// key.
#[test]
fn message_without_its_commitment_is_rejected_in_every_round() {
    // With products of an upload key, for which the second round exists.
    let shape = Some(RosterShape::Records(1));
    let mut nodes = nodes_with_roster(3, shape, 20);
    let other = Node::new(2, 3, 30);
    let other = KeyShare::from_bytes(&params(3), &other.share).unwrap();
    let mut contributions = Vec::new();
    for reveal in [Step::Seed, Step::First, Step::Second] {
        step(&mut nodes);
        nodes[0].send();
        nodes[1].send();
        // A valid message of another share, made after the others have revealed theirs.
        let body = match reveal {
            Step::Seed => other.contribution().to_vec(),
            Step::First => {
                let common = CommonRandomness::new(
                    &params(3),
                    committee(3).context(),
                    shape,
                    &contributions,
                );
                let round = other.first_round(&common.unwrap()).unwrap();
                round.to_bytes(&params(3))
            }
            _ => {
                // The service's own body with one residue changed.
                let sent = nodes[2].state.message().unwrap().unwrap();
                let mut body = Message::read(&committee(3), &sent).unwrap().body.to_vec();
                body[1000] ^= 1;
                body
            }
        };
        let rogue = forged(&nodes, reveal, &body);
        let refused = deviation(nodes[0].take(&rogue));
        assert_eq!(
            refused,
            "hospital 2 revealed data that does not match its commitment"
        );
        assert_eq!(nodes[0].state.missing().count(), 2);
        // The right message is still accepted.
        step(&mut nodes);
        if reveal == Step::Seed {
            let share = |node: &Node| KeyShare::from_bytes(&params(3), &node.share).unwrap();
            contributions = nodes
                .iter()
                .map(|node| share(node).contribution())
                .collect();
        }
    }
    step(&mut nodes);
    assert_eq!(finish(nodes).len(), 3);
}

#[test]
fn deviating_services_are_named() {
    // A copy of another service's commitment cannot be revealed.
    let mut copied = nodes(3, 40);
    copied[0].send();
    let sent = copied[0].sent().pop().unwrap().clone();
    let body = Message::read(&committee(3), &sent).unwrap().body.to_vec();
    let rogue = forged(&copied, Step::SeedCommitment, &body);
    copied[1].send();
    let honest = copied[1].sent().pop().unwrap().clone();
    for message in [&honest, &rogue] {
        assert_eq!(copied[0].take(message).unwrap(), Taken::New);
    }
    let share = KeyShare::from_bytes(&params(3), &copied[0].share).unwrap();
    let rogue = forged(&copied, Step::Seed, &share.contribution());
    let refused = deviation(copied[0].take(&rogue));
    assert!(
        refused.contains("does not match its commitment"),
        "{refused}"
    );

    // Two commitments, one for each other service: the next message between those two shows it.
    let mut split = nodes(3, 50);
    let [to_0, to_1] = [1, 2].map(|byte| forged(&split, Step::SeedCommitment, &[byte; 32]));
    split.iter_mut().take(2).for_each(Node::send);
    let sent: Vec<_> = split
        .iter()
        .take(2)
        .map(|node| node.sent().remove(0).clone())
        .collect();
    for (node, rogue) in split.iter_mut().zip([&to_0, &to_1]) {
        for message in &sent {
            node.take(message).unwrap();
        }
        node.take(rogue).unwrap();
        node.send();
    }
    let reveal = split[0].sent().pop().unwrap().clone();
    let refused = deviation(split[1].take(&reveal));
    assert_eq!(
        refused,
        "hospital 0 has other messages of the earlier steps"
    );
    // A service that has both messages has the proof.
    let refused = deviation(split[0].take(&to_1));
    assert_eq!(
        refused,
        "hospital 2 sent two different messages in one step"
    );
}

/// Bytes that are not a message of this committee, attempt and sender are rejected.
#[test]
fn forged_messages_are_rejected() {
    let mut nodes = nodes(2, 60);
    nodes[1].send();
    let sent = nodes[1].sent().pop().unwrap().clone();
    let mut rng = ChaCha20Rng::seed_from_u64(61);
    let refused = |node: &mut Node, bytes: &[u8]| {
        assert!(matches!(node.take(bytes), Err(Error::Committee(_))));
    };
    for length in 0..sent.len() {
        refused(&mut nodes[0], &sent[..length]);
    }
    refused(&mut nodes[0], &[sent.as_slice(), &[0]].concat());
    for bit in 0..8 * sent.len() {
        let mut flipped = sent.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        refused(&mut nodes[0], &flipped);
    }
    for _ in 0..1000 {
        let random: Vec<u8> = (0..rng.random_range(0..300))
            .map(|_| rng.random())
            .collect();
        refused(&mut nodes[0], &random);
    }
    // A message of another attempt, and one with this service as sender that it does not send.
    let services = committee(2).services().to_vec();
    let other = KeyCommittee::new(DATASET, &[5; 32], &[7; 16], services).unwrap();
    let place = (Step::SeedCommitment, 1);
    let message = write(&other, &service_key(1), place, other.context(), &[1; 32]);
    refused(&mut nodes[0], &message);
    let own = (Step::SeedCommitment, 0);
    let message = write(
        &committee(2),
        &service_key(0),
        own,
        committee(2).context(),
        &[1; 32],
    );
    refused(&mut nodes[0], &message);
    // A commitment of the wrong length is a deviation of its sender.
    let message = write(
        &committee(2),
        &service_key(1),
        place,
        committee(2).context(),
        &[1; 31],
    );
    assert!(deviation(nodes[0].take(&message)).contains("not a message of this step"));
    assert_eq!(nodes[0].take(&sent).unwrap(), Taken::New);
}

#[test]
fn invalid_committees_are_rejected() {
    let service = |name: &str, number| KeyService {
        name: name.to_owned(),
        key: service_key(number).public(),
    };
    let refused = |services: &[KeyService]| {
        let committee = KeyCommittee::new(DATASET, &[0; 32], &[0; 16], services.to_vec());
        assert!(
            matches!(committee, Err(Error::Committee(_))),
            "{committee:?}"
        );
    };
    refused(&[service("a", 0)]);
    refused(&[service("a", 0), service("a", 1)]);
    refused(&[service("a", 0), service("b", 0)]);
    refused(&[service("a", 0), service(" b", 1)]);
    refused(&["a", "b", "c", "d"].map(|name| service(name, name.as_bytes()[0].into())));
    let weak = KeyService {
        name: "b".to_owned(),
        key: [0; 32],
    };
    refused(&[service("a", 0), weak]);
    let share = KeyShare::random(&params(3), &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
    assert!(matches!(
        KeyGeneration::new(committee(2), None, share, service_key(0)),
        Err(Error::Committee(..))
    ));
    let share = KeyShare::random(&params(2), &mut ChaCha20Rng::seed_from_u64(1)).unwrap();
    assert!(matches!(
        KeyGeneration::new(committee(2), None, share, service_key(2)),
        Err(Error::Committee(..))
    ));
}
