//! Several holders of one dataset: rosters, signed agreements, their acts in the chain, and the messages that align
//! the holders' rows.

use crate::files::{golden, json, refuses_damage, refuses_unknown_fields};
use crate::terms::terms;
use fhaim_dp::{Debit, Entry, Rho};
use fhaim_protocol::align::{Content, Message, Scalar};
use fhaim_protocol::crypto::chain::Act;
use fhaim_protocol::request::DatasetId;
use fhaim_protocol::roster::{
    Agreement, ContributionKind, HolderSigningKey, Member, Partition, Roster,
};
use fhaim_protocol::terms::Terms;
use fhaim_protocol::upload::Object;
use fhaim_synth::Mechanisms;

fn key(number: u8) -> HolderSigningKey {
    HolderSigningKey::from_bytes(&[number; 32])
}

fn roster(partition: Partition, columns: &[&[&str]]) -> Roster {
    let member = |(number, columns): (u8, &&[&str])| Member {
        account: format!("holder{number}@example.org"),
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        record_bound: 2500,
        key: key(number).public(),
    };
    Roster {
        partition,
        honest: 2,
        holders: (1..).zip(columns).map(member).collect(),
    }
}

fn of(partition: Partition, columns: &[&[&str]], contribution: ContributionKind) -> Terms {
    let terms = Terms {
        roster: Some(roster(partition, columns)),
        contribution,
        ..terms("staged")
    };
    terms.complete(&Mechanisms).unwrap()
}

/// Returns the terms of two holders of counts.
pub fn of_counts() -> Terms {
    of(Partition::Records, &[&[], &[]], ContributionKind::Counts)
}

#[test]
fn terms_of_several_holders_are_unchanged() {
    let whole: &[&[&str]] = &[&[], &[]];
    let parts: &[&[&str]] = &[&["age", "sex"], &["income", "state", "height"]];
    for (name, terms) in [
        (
            "terms.records.json",
            of(Partition::Records, whole, ContributionKind::Records),
        ),
        ("terms.counts.json", of_counts()),
        (
            "terms.columns.json",
            of(Partition::Columns, parts, ContributionKind::Records),
        ),
    ] {
        json(name, &terms);
        refuses_unknown_fields::<Terms>(name);
    }
}

#[test]
fn signed_agreement_is_unchanged() {
    let agreement = Agreement {
        dataset: DatasetId([7; 16]),
        terms: [1; 32],
        public_key: [2; 32],
        evaluation_keys: [3; 32],
    };
    let signature = key(1).sign(&agreement);
    json("signature.json", &signature);
    let members = roster(Partition::Records, &[&[], &[]]).holders;
    agreement.verify(&members[0], &signature).unwrap();
    assert!(matches!(
        agreement.verify(&members[1], &signature),
        Err(fhaim_protocol::Error::Signature(..))
    ));
    let member = 0;
    json("act.signed.json", &Act::Signed { member, signature });
    json("act.withdrawn.json", &Act::Withdrawn { member });
    let fingerprint = || members[0].fingerprint().into_bytes();
    assert_eq!(golden("fingerprint", fingerprint), fingerprint());
}

#[test]
fn debit_with_honest_holders_is_unchanged() {
    let debit = Debit {
        number: 0,
        description: "the total".to_owned(),
        digest: [9; 32],
        delta2_squared: 1,
        variance_units: 77,
        honest: 3,
        cells: 1,
        leak: Rho::ratio_up(1, 1 << 40).unwrap(),
    };
    json("entry.json", &Entry::price(debit).unwrap());
}

#[test]
fn name_of_a_counts_object_is_unchanged() {
    let object = Object::Counts { number: 12 };
    json("object.counts.json", &object);
}

/// The values are the first two multiples of the group's generator.
#[test]
fn alignment_messages_are_unchanged_and_damage_is_rejected() {
    let value = |text: &str| {
        let digits = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16);
        let bytes: Vec<u8> = digits.map(|pair| byte(pair).unwrap()).collect();
        <[u8; 32]>::try_from(bytes).unwrap()
    };
    // RFC 9496, appendix A.1.
    let values = [
        value("6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919"),
        value("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"),
    ];
    let [one, other] = values;
    let answers = Content::Answers {
        rows: 2,
        values: vec![other, one],
        table: vec![Scalar::from(7u8), Scalar::from(8u8)],
    };
    let common = Content::Common {
        sizes: vec![2, 3],
        values: vec![other],
    };
    for (name, sender, content) in [
        ("align.list", 0, Content::List(values.to_vec())),
        ("align.half", 1, Content::Half(one)),
        ("align.answers", 1, answers),
        ("align.common", 0, common),
    ] {
        let message = Message {
            session: [5; 32],
            sender,
            content,
        };
        let bytes = golden(name, || message.to_bytes());
        assert_eq!(Message::from_bytes(&bytes).unwrap(), message);
        assert_eq!(message.to_bytes(), bytes);
        refuses_damage(&bytes, 8, |bytes| {
            assert!(matches!(
                Message::from_bytes(bytes),
                Err(fhaim_protocol::align::AlignError::Message(..))
            ));
        });
    }
}
