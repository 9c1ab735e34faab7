use super::*;
use crate::heterogeneity;
use fhaim_domain::{Clique, Schema};
use rand::{SeedableRng, rngs::StdRng};

/// 2,000 records of four columns: two correlate with the class, which has five values, and one does not.
fn table() -> Table {
    let column = |name: &str, size: u32| {
        let categories: Vec<String> = (0..size).map(|i| format!("\"{i}\"")).collect();
        let categories = categories.join(", ");
        format!(r#"{{"name": "{name}", "kind": "categorical", "categories": [{categories}]}}"#)
    };
    let columns = [
        column("a", 12),
        column("b", 12),
        column("c", 4),
        column("class", 5),
    ];
    let columns = columns.join(", ");
    let json = format!(r#"{{"name": "t", "target": "class", "columns": [{columns}]}}"#);
    let schema = Schema::from_json("t", json.as_bytes()).unwrap();
    let mut rng = StdRng::seed_from_u64(8);
    let mut columns = vec![Vec::new(); 4];
    for _ in 0..2000 {
        let class = rng.random_range(0..5u32);
        let near = |rng: &mut StdRng| class * 2 + rng.random_range(0..4);
        columns[0].push(near(&mut rng));
        columns[1].push(near(&mut rng));
        columns[2].push(rng.random_range(0..4));
        columns[3].push(class);
    }
    Table::new(schema, columns).unwrap()
}

fn rules() -> [Rule; 6] {
    let rules = ["ns", "cluster", "dli:0.1", "dli:0.8", "qs", "qli"];
    rules.map(|rule| rule.parse().unwrap())
}

#[test]
fn every_record_has_one_party_and_no_party_is_empty() {
    let table = table();
    for rule in rules() {
        for parties in [1, 7, 100, 1999] {
            let mut rng = StdRng::seed_from_u64(parties as u64);
            let dealt = partition(&table, parties, &rule, &mut rng).unwrap();
            assert_eq!(dealt.len(), parties);
            assert!(
                dealt
                    .iter()
                    .all(|rows| !rows.is_empty() && rows.is_sorted())
            );
            let mut all: Vec<usize> = dealt.into_iter().flatten().collect();
            all.sort_unstable();
            assert_eq!(all, (0..2000).collect::<Vec<_>>(), "{rule:?} {parties}");
        }
    }
}

#[test]
fn rules_produce_their_kind_of_skew() {
    let table = table();
    let mut rng = StdRng::seed_from_u64(3);
    let cliques: Vec<Clique> = (1..=3).flat_map(|k| table.domain().subsets(k)).collect();
    let mut skew = |rule| {
        let dealt = partition(&table, 20, &rule, &mut rng).unwrap();
        heterogeneity(&table, &dealt, &cliques).unwrap()
    };
    let [ns, cluster, strong, weak, _, classes] = rules().map(&mut skew);
    assert!(ns < weak && weak < strong, "{ns} {weak} {strong}");
    assert!(cluster > ns + 0.1 && classes > ns + 0.1);

    let equal = partition(&table, 20, &Rule::Equal, &mut rng).unwrap();
    assert!(equal.iter().all(|rows| rows.len() == 100));
    let classes_of = |rows: &Vec<usize>| {
        let mut classes: Vec<u32> = rows.iter().map(|&row| table.column(3)[row]).collect();
        classes.sort_unstable();
        classes.dedup();
        classes.len()
    };
    let few = partition(&table, 20, &Rule::Classes, &mut rng).unwrap();
    assert!(few.iter().all(|rows| classes_of(rows) <= 4));
    let sizes = partition(&table, 20, &Rule::Shares(0.5), &mut rng).unwrap();
    let sizes: Vec<usize> = sizes.iter().map(Vec::len).collect();
    assert!(sizes.iter().max() > sizes.iter().min().map(|least| 4 * least).as_ref());
}

#[test]
fn synthfs_parties_are_more_similar_with_larger_skew() {
    let cliques: Vec<Clique> = (0..SYNTHFS_ATTRIBUTES).map(|a| Clique::new([a])).collect();
    let of = |skew| {
        let mut rng = StdRng::seed_from_u64(6);
        let (table, parties) = synthfs(30, 50, skew, &mut rng).unwrap();
        assert_eq!((table.records(), parties[29].len()), (1500, 50));
        heterogeneity(&table, &parties, &cliques).unwrap()
    };
    let [one, two, five] = [1.0, 2.0, 5.0].map(of);
    assert!(one > two && two > five, "{one} {two} {five}");
    assert!(five < 0.2 && one > 0.6);
}

#[test]
fn invalid_partitions_and_rules_are_rejected() {
    let table = table();
    let mut rng = StdRng::seed_from_u64(1);
    for parties in [0, 2001] {
        let refused = partition(&table, parties, &Rule::Equal, &mut rng);
        assert!(matches!(refused, Err(Error::TooFewRecords { .. })));
    }
    let json =
        br#"{"name": "t", "columns": [{"name": "a", "kind": "categorical", "categories": ["x"]}]}"#;
    let plain = Table::new(Schema::from_json("t", json).unwrap(), vec![vec![0; 9]]).unwrap();
    for rule in [Rule::Classes, Rule::ClassShares(0.1)] {
        let refused = partition(&plain, 3, &rule, &mut rng);
        assert!(matches!(refused, Err(Error::NoTarget)));
    }
    assert!(partition(&plain, 3, &Rule::Cluster, &mut rng).is_ok());
    for (text, words) in [
        ("", "unknown rule"),
        ("nn", "unknown rule"),
        ("dli:0", "the parameter must be a positive number"),
        ("dli:x", "the parameter must be a positive number"),
        ("qs:-1", "the parameter must be a positive number"),
        ("ns:1", "ns takes no parameter"),
    ] {
        let refused = text.parse::<Rule>().unwrap_err();
        assert!(refused.contains(words), "{text}: {refused}");
    }
    assert_eq!("dli".parse(), Ok(Rule::ClassShares(0.5)));
}
