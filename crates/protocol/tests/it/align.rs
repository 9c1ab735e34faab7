//! Tests alignments of two and three parties. All parties find the common rows in one order, for
//! any order of messages, and messages reveal nothing else but the numbers of rows.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_protocol::align::{
    AlignError, Aligned, Content, GroupElement, Message, Outgoing, Party, normalised,
};
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

fn party(parties: usize, me: usize, names: &[u32], seed: u64) -> (Party, Option<Outgoing>) {
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
        if let Some(first) = first {
            send(me, first, &mut waiting);
        }
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

/// The common order and the first party's list must not show the order of its rows.
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

fn values_of(content: &Content) -> BTreeSet<GroupElement> {
    match content {
        Content::Half(value) => [*value].into(),
        Content::List(values)
        | Content::Answers { values, .. }
        | Content::Common { values, .. } => values.iter().copied().collect(),
    }
}

/// Returns what anybody can compare in an alignment: the kinds and lengths of all messages, the
/// number of values that each two of them have in common, and the results except the rows.
fn comparable(lists: &[Vec<u32>]) -> Vec<String> {
    let (aligned, _, delivered) = deliver(lists, 5);
    let name = |one: &Delivered| {
        let Message { sender, .. } = one.message;
        let bytes = one.message.to_bytes().len();
        format!(
            "{} from {sender} to {}, {bytes} bytes",
            one.message.kind().name(),
            one.to
        )
    };
    let mut seen: Vec<String> = delivered.iter().map(name).collect();
    for (i, one) in delivered.iter().enumerate() {
        for other in &delivered[..i] {
            let [a, b] = [one, other].map(|one| values_of(&one.message.content));
            let mut names = [name(one), name(other)];
            names.sort();
            seen.push(format!("{names:?}: {} equal values", (&a & &b).len()));
        }
    }
    for Aligned { rows, sizes } in &aligned {
        seen.push(format!("{} common rows of {sizes:?}", rows.len()));
    }
    seen.sort();
    seen
}

/// `shares_of_rows_that_one_other_party_has_are_as_random_as_those_of_no_other` shows the same of the
/// values that only the first party can compute.
#[test]
fn view_of_a_party_depends_on_the_common_rows_and_sizes_only() {
    let with = |own: std::ops::Range<u32>| (0..3).chain(own).collect::<Vec<u32>>();
    let apart = [with(10..17), with(20..27), with(30..37)];
    for in_pairs in [
        [with(10..17), with(10..17), with(30..37)],
        [with(10..17), with(20..27), with(20..27)],
        [with(10..17), with(20..27), with(10..17)],
        [with(10..17), with(14..21), with(17..24)],
    ] {
        assert_eq!(comparable(&apart), comparable(&in_pairs), "{in_pairs:?}");
    }
    let more_common = [with(10..17), with(10..17), with(10..17)];
    assert_ne!(comparable(&apart), comparable(&more_common));
}

/// The parties' own exponents do not help them, either: the first party's list looks the same to a
/// party that has all of its keys and to one that has none.
#[test]
fn list_that_another_party_gets_does_not_depend_on_its_rows() {
    let list = |second: Vec<u32>| {
        let (_, _, delivered) = deliver(&[vec![1, 2, 3], second, vec![1, 8, 9]], 6);
        let to_second = delivered.into_iter().filter(|one| one.to == 1);
        let mut lists = to_second.filter(|one| matches!(one.message.content, Content::List(_)));
        lists.next().unwrap().message
    };
    assert_eq!(list(vec![1, 2, 3]), list(vec![4, 5, 6]));
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

/// The same table gives other values under other exponents, and no message contains a key.
#[test]
fn values_of_the_same_table_differ_between_alignments() {
    let lists = [vec![1, 2, 3], vec![2, 3, 4], vec![3, 4, 5]];
    let values = |seed| {
        let (_, sent) = run(&lists, seed);
        let messages = sent
            .iter()
            .map(|out| Message::from_bytes(&out.bytes).unwrap());
        messages
            .flat_map(|m| values_of(&m.content))
            .collect::<BTreeSet<_>>()
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

/// Returns the messages of an alignment of two parties: the list, the answers and the common rows.
fn of_two() -> (Party, Party, [Vec<u8>; 3]) {
    let (mut one, list) = party(2, 0, &[1, 2], 1);
    let (mut two, none) = party(2, 1, &[2, 3], 2);
    assert!(none.is_none());
    let list = list.unwrap();
    let answers = two.receive(0, &list.bytes).unwrap().remove(0);
    let common = one.receive(1, &answers.bytes).unwrap().remove(0);
    let (new_one, _) = party(2, 0, &[1, 2], 1);
    let (new_two, _) = party(2, 1, &[2, 3], 2);
    (new_one, new_two, [list.bytes, answers.bytes, common.bytes])
}

fn changed(bytes: &[u8], change: impl Fn(&mut Message)) -> Vec<u8> {
    let mut message = Message::from_bytes(bytes).unwrap();
    change(&mut message);
    message.to_bytes()
}

fn is_refused(party: &mut Party, from: usize, bytes: &[u8]) {
    assert!(matches!(
        party.receive(from, bytes),
        Err(AlignError::Message(..))
    ));
    assert!(party.aligned().is_none());
}

#[test]
fn answers_outside_the_protocol_are_rejected_without_effect() {
    let (mut one, _, [list, answers, common]) = of_two();
    is_refused(&mut one, 1, &changed(&answers, |m| m.session[0] ^= 1));
    is_refused(&mut one, 1, &changed(&answers, |m| m.sender = 0));
    is_refused(&mut one, 0, &answers);
    is_refused(&mut one, 2, &answers);
    is_refused(&mut one, 0, &list);
    is_refused(&mut one, 1, &changed(&list, |m| m.sender = 1));
    is_refused(&mut one, 1, &changed(&common, |m| m.sender = 1));
    let values = |change: &dyn Fn(&mut Vec<GroupElement>)| {
        changed(&answers, |message| {
            if let Content::Answers { values, .. } = &mut message.content {
                change(values);
            }
        })
    };
    is_refused(&mut one, 1, &values(&|values| values.truncate(1)));
    is_refused(&mut one, 1, &values(&|values| values[1] = values[0]));
    is_refused(&mut one, 1, &values(&|values| values[0] = [0; 32]));
    is_refused(&mut one, 1, &values(&|values| values[0] = [255; 32]));
    let table = changed(&answers, |message| {
        if let Content::Answers { rows, .. } = &mut message.content {
            *rows += 1;
        }
    });
    is_refused(&mut one, 1, &table);
    for cut in 0..answers.len() {
        is_refused(&mut one, 1, &answers[..cut]);
    }
    is_refused(&mut one, 1, &[&answers[..], &[0]].concat());
    one.receive(1, &answers).unwrap();
    assert_eq!(one.aligned().unwrap().rows, [1]);
    let (mut other, _) = party(2, 1, &[2, 3], 3);
    let different = other.receive(0, &list).unwrap().remove(0);
    assert_eq!(
        one.receive(1, &different.bytes),
        Err(AlignError::Message("differs from an earlier one"))
    );
}

#[test]
fn common_rows_outside_the_protocol_are_rejected_without_effect() {
    let (_, mut two, [list, answers, common]) = of_two();
    is_refused(&mut two, 0, &common); // before the list
    let falling = changed(&list, |message| {
        if let Content::List(values) = &mut message.content {
            values.reverse();
        }
    });
    is_refused(&mut two, 0, &falling);
    let half = changed(&list, |message| {
        if let Content::List(values) = &message.content {
            message.content = Content::Half(values[0]);
        }
    });
    is_refused(&mut two, 0, &half);
    assert_eq!(two.receive(0, &list).unwrap()[0].bytes, answers);
    let with = |change: &dyn Fn(&mut Vec<usize>, &mut Vec<GroupElement>)| {
        changed(&common, |message| {
            if let Content::Common { sizes, values } = &mut message.content {
                change(sizes, values);
            }
        })
    };
    let strange = match Message::from_bytes(&list).unwrap().content {
        Content::List(values) => values[0],
        _ => panic!("a list"),
    };
    is_refused(&mut two, 0, &with(&|sizes, _| sizes.push(1)));
    is_refused(&mut two, 0, &with(&|sizes, _| sizes[0] += 1));
    is_refused(&mut two, 0, &with(&|sizes, _| sizes[1] += 1));
    is_refused(&mut two, 0, &with(&|_, values| values[0] = strange));
    two.receive(0, &common).unwrap();
    assert_eq!(two.aligned().unwrap().rows, [0]);
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
