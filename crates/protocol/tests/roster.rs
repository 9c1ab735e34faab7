//! Terms of several holders, and the plan that follows from them.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::Schema;
use fhaim_protocol::Error;
use fhaim_protocol::roster::{Contribution, HolderKey, Member, Partition, Roster};
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_synth::Mechanisms;

fn terms() -> Terms {
    let json = r#"{"name":"t","columns":[
        {"name":"a","kind":"categorical","categories":["x","y"]},
        {"name":"b","kind":"numeric","min":0,"max":10,"bins":5}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    Terms::new(schema, 1.0, 1e-9, 512)
}

fn plan(terms: &Terms) -> Result<Plan, Error> {
    terms.clone().complete(&Mechanisms)?.plan()
}

fn of_two(partition: Partition, columns: [&[&str]; 2]) -> Terms {
    let member = |(number, columns): (u8, &[&str])| Member {
        account: format!("holder {number}"),
        columns: columns.iter().map(|&name| name.to_owned()).collect(),
        record_bound: 200,
        key: HolderKey::from_bytes(&[number; 32]).public(),
    };
    let roster = Roster {
        partition,
        honest: 1,
        holders: (1..).zip(columns).map(member).collect(),
    };
    Terms {
        roster: Some(roster),
        ..terms()
    }
}

/// The plan's job, its prices and its ladder are those of the roster; columns may cost four times
/// as much, which takes a level more of the ladder.
#[test]
fn a_roster_is_part_of_the_plan() {
    let one = plan(&terms()).unwrap();
    let records = plan(&of_two(Partition::Records, [&[], &[]])).unwrap();
    let columns = plan(&of_two(Partition::Columns, [&["b"], &["a"]])).unwrap();
    assert!(one.job.holders.is_one() && one.members.is_empty());
    assert_eq!((records.job.holders.count(), records.members.len()), (2, 2));
    assert_eq!(records.run_ladder, one.run_ladder);
    assert_eq!(columns.job.holders.owners(), Some(&[1, 0][..]));
    assert_eq!(columns.run_ladder.levels(), one.run_ladder.levels() + 1);
    for terms in [of_two(Partition::Records, [&[], &[]]), terms()] {
        let terms = terms.complete(&Mechanisms).unwrap();
        assert_eq!(
            terms.outline().unwrap().members,
            terms.plan().unwrap().members
        );
    }
}

#[test]
fn counts_are_for_holders_of_whole_records() {
    let counts = |terms: Terms| Terms {
        contribution: Contribution::Counts,
        ..terms
    };
    let one = counts(terms()).complete(&Mechanisms).unwrap();
    assert_eq!((one.version, one.plan().is_ok()), (4, true));
    assert!(one.count_tables().unwrap().is_some());
    let columns = counts(of_two(Partition::Columns, [&["b"], &["a"]]));
    let refused = columns.complete(&Mechanisms).unwrap_err().to_string();
    assert!(refused.starts_with("contribution"), "{refused}");
}
