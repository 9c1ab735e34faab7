//! Tests alignments of two and three parties. All parties find the common rows in one order, for
//! any order of messages, and messages reveal nothing else.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_protocol::align::{AlignError, Aligned, Message, Outgoing, Party, Stage, normalised};
use fhaim_protocol::request::DatasetId;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeSet;
use std::time::Instant;
use zeroize::Zeroizing;

const DATASET: DatasetId = DatasetId([3; 16]);
const SESSION: [u8; 32] = [4; 32];

fn keys(names: &[u32]) -> Vec<Zeroizing<Vec<u8>>> {
    names
        .iter()
        .map(|n| normalised(&[&format!("Person {n}")]))
        .collect()
}

fn party(parties: usize, me: usize, names: &[u32], seed: u64) -> (Party, Outgoing) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    Party::new(DATASET, SESSION, [parties, me], &keys(names), &mut rng).unwrap()
}

/// A message that was delivered.
struct Delivered {
    to: usize,
    message: Message,
}

/// Delivers everything in an order drawn from a seed, and some messages twice. Returns all sent
/// messages.
fn run(lists: &[Vec<u32>], seed: u64) -> (Vec<Aligned>, Vec<Outgoing>) {
    let (aligned, sent, _) = deliver(lists, seed);
    (aligned, sent)
}

fn deliver(lists: &[Vec<u32>], seed: u64) -> (Vec<Aligned>, Vec<Outgoing>, Vec<Delivered>) {
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let mut parties = Vec::new();
    let mut waiting: Vec<(usize, usize, Vec<u8>)> = Vec::new();
    let (mut sent, mut delivered) = (Vec::new(), Vec::new());
    let mut send = |from, out: Outgoing, waiting: &mut Vec<_>| {
        waiting.extend(out.to.iter().map(|&to| (from, to, out.bytes.clone())));
        sent.push(out);
    };
    for (me, names) in lists.iter().enumerate() {
        let (party, first) = party(lists.len(), me, names, seed + me as u64);
        parties.push(party);
        send(me, first, &mut waiting);
    }
    while !waiting.is_empty() {
        waiting.shuffle(&mut rng);
        let (from, to, bytes) = waiting.pop().unwrap();
        let message = Message::from_bytes(&bytes).unwrap();
        delivered.push(Delivered { to, message });
        let answers = parties[to].receive(from, &bytes).unwrap();
        if rng.random_bool(0.3) {
            assert_eq!(parties[to].receive(from, &bytes).unwrap(), answers);
        }
        for out in answers {
            send(to, out, &mut waiting);
        }
    }
    let aligned = parties.iter().map(|party| party.aligned().unwrap());
    (aligned.collect(), sent, delivered)
}

/// If the order of its rows affected a list, a party could tell which of its rows another party
/// has, since every party sees every list under all exponents.
#[test]
fn messages_do_not_depend_on_the_order_of_rows() {
    let lists = [vec![1, 2, 3, 4], vec![1, 2, 5], vec![1, 3, 6]];
    let turned = lists.clone().map(|list| list.into_iter().rev().collect());
    let bytes = |lists: &[Vec<u32>]| {
        let (_, sent) = run(lists, 7);
        let bytes = sent.into_iter().map(|out| out.bytes);
        bytes.collect::<BTreeSet<Vec<u8>>>()
    };
    assert_eq!(bytes(&lists), bytes(&turned));
}

/// A party recognises a value only under its own exponent. It sees such values only for rows that
/// all parties have.
#[test]
fn party_of_three_recognises_only_rows_that_all_have() {
    let lists = [vec![1, 2, 3, 4], vec![1, 2, 5], vec![1, 3, 6]];
    let (aligned, _, delivered) = deliver(&lists, 11);
    for me in 0..3 {
        let (_, own) = party(3, me, &lists[me], 11 + me as u64);
        let own = Message::from_bytes(&own.bytes).unwrap().values;
        let seen = delivered.iter().filter(|one| one.to == me);
        let seen = seen.flat_map(|one| &one.message.values);
        let known: BTreeSet<_> = seen.filter(|value| own.contains(value)).collect();
        assert_eq!(known.len(), 1, "party {me}");
        let rows: Vec<u32> = aligned[me].rows.iter().map(|&row| lists[me][row]).collect();
        assert_eq!(rows, [1]);
    }
}

fn check(lists: &[Vec<u32>], seed: u64) {
    let (aligned, _) = run(lists, seed);
    let sets: Vec<BTreeSet<u32>> = lists.iter().map(|l| l.iter().copied().collect()).collect();
    let common = sets.iter().cloned().reduce(|a, b| &a & &b).unwrap();
    let of = |p: usize| {
        aligned[p]
            .rows
            .iter()
            .map(|&row| lists[p][row])
            .collect::<Vec<u32>>()
    };
    let order = of(0);
    assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), common);
    assert_eq!(order.len(), common.len());
    for (p, aligned) in aligned.iter().enumerate() {
        assert_eq!(of(p), order, "one order for all");
        assert_eq!(
            aligned.sizes,
            lists.iter().map(Vec::len).collect::<Vec<_>>()
        );
        for &([a, b], size) in &aligned.overlaps {
            assert_eq!(size, (&sets[a] & &sets[b]).len());
        }
        assert_eq!(aligned.overlaps.len(), if lists.len() == 2 { 1 } else { 3 });
    }
}

#[test]
fn parties_find_their_common_rows_in_one_order() {
    check(&[vec![5, 1, 9, 2], vec![2, 7, 5]], 1);
    check(&[vec![5, 1, 9, 2], vec![2, 7, 5, 1], vec![1, 2, 8]], 2);
    check(&[vec![1], vec![2]], 3);
    check(
        &[
            (0..60).collect(),
            (30..90).rev().collect(),
            (20..50).collect(),
        ],
        4,
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn random_sets_are_aligned(
        lists in prop::collection::vec(prop::collection::btree_set(0u32..12, 1..9), 2..=3),
        seed: u64,
    ) {
        let lists: Vec<Vec<u32>> = lists.into_iter().map(|l| l.into_iter().collect()).collect();
        check(&lists, seed);
    }

    /// A party does not panic on any bytes, and a decoded message encodes to the same bytes.
    #[test]
    fn random_bytes_are_rejected_or_round_trip(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(message) = Message::from_bytes(&bytes) {
            prop_assert_eq!(message.to_bytes(), bytes);
        }
    }
}

#[test]
fn join_keys_ignore_case_and_space() {
    assert_eq!(
        normalised(&[" Ada  Lovelace "]),
        normalised(&["ada lovelace"])
    );
    assert_ne!(normalised(&["ab", "c"]), normalised(&["a", "bc"]));
    assert!(normalised(&["", "  "]).is_empty());
}

#[test]
fn missing_and_repeated_join_keys_are_reported_by_row() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut new = |of, keys: &[Zeroizing<Vec<u8>>]| {
        Party::new(DATASET, SESSION, of, keys, &mut rng)
            .map(|_| ())
            .unwrap_err()
    };
    let repeated = AlignError::RepeatedKey {
        first: 1,
        second: 2,
    };
    assert_eq!(new([2, 0], &keys(&[4, 7, 7])), repeated);
    assert_eq!(
        new([2, 0], &[normalised(&["x"]), normalised(&[" "])]),
        AlignError::EmptyKey(1)
    );
    assert_eq!(new([2, 0], &[]), AlignError::Rows(0));
    for of in [[1, 0], [4, 0], [2, 2]] {
        assert_eq!(new(of, &keys(&[1])), AlignError::Parties);
    }
}

/// The same table gives another list under another exponent, session or dataset, and no list
/// contains a key's own hash.
#[test]
fn lists_of_the_same_table_differ_between_alignments() {
    let lists = [vec![1, 2, 3], vec![2, 3, 4], vec![3, 4, 5]];
    let values = |seed| {
        let (_, sent) = run(&lists, seed);
        let messages = sent
            .iter()
            .map(|out| Message::from_bytes(&out.bytes).unwrap());
        messages.flat_map(|m| m.values).collect::<BTreeSet<_>>()
    };
    assert!(values(1).is_disjoint(&values(100)));
    let (_, sent) = run(&lists, 1);
    for out in &sent {
        for name in 0..6 {
            let key = normalised(&[&format!("Person {name}")]);
            assert!(
                !out.bytes
                    .windows(key.len())
                    .any(|window| window == &key[..])
            );
        }
    }
}

#[test]
fn messages_outside_the_protocol_are_rejected_without_effect() {
    let (mut one, first) = party(2, 0, &[1, 2], 1);
    let (mut two, second) = party(2, 1, &[2, 3], 2);
    let message = Message::from_bytes(&second.bytes).unwrap();
    let mut refused = |from, change: &dyn Fn(&mut Message)| {
        let mut changed = message.clone();
        change(&mut changed);
        assert!(matches!(
            one.receive(from, &changed.to_bytes()),
            Err(AlignError::Message(..))
        ));
        assert!(one.aligned().is_none());
    };
    refused(1, &|m| m.session[0] ^= 1);
    refused(1, &|m| m.owner = 0);
    refused(1, &|m| m.stage = Stage::Whole);
    refused(1, &|m| m.stage = Stage::Round(2));
    refused(0, &|_| ());
    refused(2, &|_| ());
    refused(1, &|m| m.values[1] = m.values[0]);
    refused(1, &|m| m.values[0] = [0; 32]);
    refused(1, &|m| m.values[0] = [255; 32]);
    for cut in 0..second.bytes.len() {
        assert!(matches!(
            one.receive(1, &second.bytes[..cut]),
            Err(AlignError::Message(..))
        ));
    }
    assert!(matches!(
        one.receive(1, &[&second.bytes[..], &[0]].concat()),
        Err(AlignError::Message(..))
    ));
    // A different second list, and the party's own list coming back shorter.
    one.receive(1, &second.bytes).unwrap();
    let (_, other) = party(2, 1, &[2, 3], 3);
    assert_eq!(
        one.receive(1, &other.bytes),
        Err(AlignError::Message("differs from an earlier one"))
    );
    let back = two.receive(0, &first.bytes).unwrap().remove(0);
    let mut short = Message::from_bytes(&back.bytes).unwrap();
    short.values.pop();
    assert!(matches!(
        one.receive(1, &short.to_bytes()),
        Err(AlignError::Message(..))
    ));
    one.receive(1, &back.bytes).unwrap();
    assert!(one.aligned().is_none());
    // Common rows that this party does not have, and a wrong number of them.
    let whole = one.receive(1, &second.bytes).unwrap();
    two.receive(0, &whole[0].bytes).unwrap();
    let common = two.receive(0, &first.bytes).unwrap().remove(1);
    let right = Message::from_bytes(&common.bytes).unwrap();
    let mut wrong = right.clone();
    wrong.values = message.values.clone();
    assert!(matches!(
        one.receive(1, &wrong.to_bytes()),
        Err(AlignError::Message(..))
    ));
    wrong.values.truncate(1);
    assert!(matches!(
        one.receive(1, &wrong.to_bytes()),
        Err(AlignError::Message(..))
    ));
    wrong.values.clear();
    assert!(matches!(
        one.receive(1, &wrong.to_bytes()),
        Err(AlignError::Message(..))
    ));
    one.receive(1, &common.bytes).unwrap();
    assert_eq!(one.aligned().unwrap().rows, [1]);
}

/// Measures the time for large lists. `FHAIM_ALIGN_KEYS` is the number of keys of each party.
#[test]
fn large_lists_are_aligned() {
    let keys = std::env::var("FHAIM_ALIGN_KEYS")
        .ok()
        .and_then(|n| n.parse().ok());
    let n: u32 = keys.unwrap_or(300);
    let started = Instant::now();
    let (aligned, sent) = run(&[(0..n).collect(), (n / 2..n + n / 2).collect()], 9);
    let bytes: usize = sent.iter().map(|out| out.bytes.len()).sum();
    let seconds = started.elapsed().as_secs_f64();
    println!("{n} keys against {n}: {seconds:.1} s for both parties, {bytes} bytes");
    assert_eq!(aligned[0].rows.len() as u32, n - n / 2);
}
