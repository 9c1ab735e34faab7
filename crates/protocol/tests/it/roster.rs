//! Tests terms with several holders, and the plans that follow from them.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_domain::Schema;
use fhaim_protocol::Error;
use fhaim_protocol::roster::{ContributionKind, HolderSigningKey, Member, Partition, Roster};
use fhaim_protocol::terms::{Plan, Terms};
use fhaim_synth::Mechanisms;
use std::time::{Duration, Instant};

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
        key: HolderSigningKey::from_bytes(&[number; 32]).public(),
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

/// The plan's job, prices and ladder are those of the roster. Columns may cost four times as much,
/// which takes one more level of the ladder. With the noise of two holders, fewer contrasts are
/// worth a release.
#[test]
fn plan_follows_from_the_roster() {
    let one = plan(&terms()).unwrap();
    let records = plan(&of_two(Partition::Records, [&[], &[]])).unwrap();
    let columns = plan(&of_two(Partition::Columns, [&["b"], &["a"]])).unwrap();
    assert!(one.job.holders.is_one() && one.core.members.is_empty());
    assert_eq!(
        (records.job.holders.count(), records.core.members.len()),
        (2, 2)
    );
    assert_eq!(
        records.core.run_ladder.levels(),
        one.core.run_ladder.levels()
    );
    assert_eq!(columns.job.holders.owners(), Some(&[1, 0][..]));
    assert_eq!(
        columns.core.run_ladder.levels(),
        one.core.run_ladder.levels() + 1
    );
    for terms in [of_two(Partition::Records, [&[], &[]]), terms()] {
        let terms = terms.complete(&Mechanisms).unwrap();
        assert_eq!(
            terms.plan_core().unwrap().members,
            terms.plan().unwrap().core.members
        );
    }
}

#[test]
fn counts_by_holders_of_columns_are_rejected() {
    let counts = |terms: Terms| Terms {
        contribution: ContributionKind::Counts,
        ..terms
    };
    let one = counts(terms()).complete(&Mechanisms).unwrap();
    one.plan().unwrap();
    assert!(one.count_tables().unwrap().is_some());
    let columns = counts(of_two(Partition::Columns, [&["b"], &["a"]]));
    let refused = columns.complete(&Mechanisms).unwrap_err().to_string();
    assert!(refused.starts_with("contribution"), "{refused}");
}

/// Every answer of a service needs this check. With many holders of a wide table it must not copy
/// the schema for each.
#[test]
fn roster_check_does_not_copy_the_schema_for_each_holder() {
    let holders = 128;
    let categories: Vec<String> = (0..50).map(|code| format!("\"category {code}\"")).collect();
    let categories = categories.join(",");
    let column = |number: usize| {
        format!(r#"{{"name":"c{number}","kind":"categorical","categories":[{categories}]}}"#)
    };
    let columns: Vec<String> = (0..1000).map(column).collect();
    let json = format!(r#"{{"name":"t","columns":[{}]}}"#, columns.join(","));
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    let roster = |partition| {
        let columns = |holder: usize| match partition {
            Partition::Records => Vec::new(),
            Partition::Columns => (holder..1000)
                .step_by(holders)
                .map(|n| format!("c{n}"))
                .collect(),
        };
        let member = |holder: usize| Member {
            account: format!("holder {holder}"),
            columns: columns(holder),
            record_bound: 10,
            key: HolderSigningKey::from_bytes(&[holder as u8 + 1; 32]).public(),
        };
        Roster {
            partition,
            honest: 1,
            holders: (0..holders).map(member).collect(),
        }
    };
    // The minimum of several measurements, so that a busy machine does not affect the result.
    let least = |partition| {
        let roster = roster(partition);
        let mut least = Duration::MAX;
        for _ in 0..5 {
            let started = Instant::now();
            roster.check(&schema, 10_000).unwrap();
            least = least.min(started.elapsed());
        }
        least
    };
    let (records, columns) = (least(Partition::Records), least(Partition::Columns));
    assert!(
        columns < 10 * records,
        "{columns:?} for columns, {records:?} for records"
    );
}

/// Checking a part gives the same result as making it.
#[test]
fn part_check_agrees_with_making_the_part() {
    let json = r#"{"name":"t","columns":[
        {"name":"n","kind":"identifier","pattern":"[0-9]{6}"},
        {"name":"in","kind":"date","format":"%Y-%m-%d","min":"2020-01-01","max":"2020-12-31","bins":4},
        {"name":"out","kind":"date","format":"%Y-%m-%d","relative_to":"in","min":0,"max":30,"bins":4},
        {"name":"b","kind":"categorical","categories":["x","y"]}]}"#;
    let schema = Schema::from_json("t.json", json.as_bytes()).unwrap();
    for set in 0..16_usize {
        let fields: Vec<usize> = (0..4).filter(|field| set >> field & 1 == 1).collect();
        let made = schema
            .part(&fields)
            .map(drop)
            .map_err(|problem| problem.to_string());
        let checked = schema
            .check_part(&fields)
            .map_err(|problem| problem.to_string());
        assert_eq!(checked, made, "{fields:?}");
    }
}
