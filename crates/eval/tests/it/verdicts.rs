//! Tests that the verdict describes deliberate errors in synthetic tables.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{ReadOptions, Schema, Table, TableReading, WriteOptions, read_csv, write_csv};
use fhaim_eval::{Reliance, Report, evaluate, html_page, membership};
use rand::{Rng, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

const SCHEMA: &str = r#"{"name": "people", "columns": [
    {"name": "gain", "kind": "number", "integer": true, "special": [0], "min": 1, "max": 5000,
     "bins": 10, "digits": 20},
    {"name": "hours", "kind": "number", "integer": true, "min": 1, "max": 99, "bins": 9,
     "digits": 11, "nullable": true},
    {"name": "job", "kind": "categorical", "categories": ["none", "some", "much"]},
    {"name": "sick", "kind": "categorical", "categories": ["no", "yes"]}]}"#;

/// Returns records whose columns depend on each other.
fn csv(records: usize, seed: u64) -> Vec<[String; 4]> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let record = |_| {
        let job = rng.random_range(0..3);
        let gain = if rng.random_bool(0.9) {
            0
        } else {
            rng.random_range(1..=5000)
        };
        let hours = match (job, rng.random_range(0..10)) {
            (0, _) => rng.random_range(1..20),
            (_, 0..5) => 40,
            (job, _) => (20 * job + rng.random_range(0..30)).min(99),
        };
        let hours = if rng.random_bool(0.1) {
            String::new()
        } else {
            hours.to_string()
        };
        let sick = if rng.random_bool([0.7, 0.2, 0.1][job]) {
            "yes"
        } else {
            "no"
        };
        [
            gain.to_string(),
            hours,
            ["none", "some", "much"][job].to_owned(),
            sick.to_owned(),
        ]
    };
    (0..records).map(record).collect()
}

fn read(records: &[[String; 4]]) -> TableReading {
    let mut text = "gain,hours,job,sick\n".to_owned();
    records
        .iter()
        .for_each(|record| text.push_str(&(record.join(",") + "\n")));
    let mut options = ReadOptions::new("t.csv");
    options.keep_values = true;
    let schema = Schema::from_json("s.json", SCHEMA.as_bytes()).unwrap();
    read_csv(schema, text.as_bytes(), &options).unwrap()
}

fn report(real: &TableReading, synthetic: &TableReading) -> Report {
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut report = evaluate(&real.table, &synthetic.table, None, &mut rng).unwrap();
    report.add_values(&real.values, &synthetic.values);
    let page = html_page(&report, &[]);
    for sentence in &report.verdict.sentences {
        println!("{sentence}");
        assert!(page.contains("<h2>Verdict</h2>"));
    }
    report
}

fn says(report: &Report, words: &str) -> bool {
    let findings = report.verdict.findings.iter().map(|finding| &finding.text);
    report
        .verdict
        .sentences
        .iter()
        .chain(findings)
        .any(|text| text.contains(words))
}

#[test]
fn fresh_sample_of_the_same_distribution_is_reliable() {
    let report = report(&read(&csv(6_000, 1)), &read(&csv(6_000, 2)));
    assert!(
        says(&report, "Of 4 columns, 4 can be used"),
        "{:?}",
        report.verdict
    );
    assert!(
        says(&report, "Of 6 pairs of columns, 6 can be used"),
        "{:?}",
        report.verdict
    );
    for words in ["dependence", "copies", "Do not rely"] {
        assert!(!says(&report, words), "{:?}", report.verdict);
    }
    assert!(report.verdict.findings.is_empty());
}

#[test]
fn lost_spike_is_reported() {
    let real = csv(6_000, 1);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    // Ten even bins would put 0 into one bin with its neighbours and hide the difference.
    let spread = real.iter().cloned().map(|mut record| {
        if record[0] == "0" {
            record[0] = rng.random_range(1..=500).to_string();
        }
        record
    });
    let report = report(&read(&real), &read(&spread.collect::<Vec<_>>()));
    assert!(
        says(&report, "Do not rely on gain."),
        "{:?}",
        report.verdict
    );
    assert!(
        says(&report, "gain is 0 in 89.7%"),
        "{:?}",
        report.verdict.findings
    );
    let first = &report.verdict.findings[0];
    assert!(first.reliance == Reliance::Bad && first.distance > 0.8);
    // Pairs with this column differ only as much as the column, so they are not reported as well.
    assert!(says(&report, "Of 6 pairs of columns, 3 can be used"));
    assert_eq!(
        report.verdict.findings.len(),
        1,
        "{:?}",
        report.verdict.findings
    );
}

#[test]
fn values_drawn_evenly_within_their_bins_are_reported() {
    let real = read(&csv(6_000, 1));
    // The codes are those of the real table, so every distance between bins is 0.
    let old = SCHEMA
        .replace(r#""digits": 20"#, r#""digits": 1"#)
        .replace(r#""digits": 11,"#, "");
    let schema = Schema::from_json("s.json", old.as_bytes()).unwrap();
    let coarse = real.table.domain().coarse_attributes();
    let codes = coarse
        .iter()
        .map(|&a| real.table.column(a).to_vec())
        .collect();
    let table = Table::new(schema, codes).unwrap();
    let mut text = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    write_csv(&table, &mut text, &mut rng, &WriteOptions::new("s.csv")).unwrap();
    let mut options = ReadOptions::new("s.csv");
    options.keep_values = true;
    let synthetic = read_csv(real.table.shared_schema(), &text[..], &options).unwrap();
    let report = report(&real, &synthetic);
    let hours = report
        .columns
        .iter()
        .find(|column| column.name == "hours")
        .unwrap();
    assert_eq!(hours.total_variation, 0.0);
    assert!(
        says(&report, "Do not rely on hours."),
        "{:?}",
        report.verdict
    );
    assert!(
        says(&report, "hours is 40 in"),
        "{:?}",
        report.verdict.findings
    );
}

#[test]
fn shuffled_columns_are_reported() {
    let real = csv(6_000, 1);
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let mut shuffled = real.clone();
    for column in 0..4 {
        let mut values: Vec<String> = real.iter().map(|record| record[column].clone()).collect();
        values.shuffle(&mut rng);
        shuffled
            .iter_mut()
            .zip(values)
            .for_each(|(record, value)| record[column] = value);
    }
    let report = report(&read(&real), &read(&shuffled));
    assert!(
        says(&report, "Of 4 columns, 4 can be used"),
        "{:?}",
        report.verdict
    );
    assert!(
        says(&report, "Most relationships between columns are lost"),
        "{:?}",
        report.verdict
    );
    assert!(
        says(&report, "the joint distribution of hours and job differs"),
        "{:?}",
        report.verdict
    );
}

#[test]
fn copied_records_are_reported() {
    let real = csv(6_000, 1);
    let unlike = |record: &&[String; 4]| record[0] != "0";
    let copies: Vec<[String; 4]> = real.iter().filter(unlike).cloned().collect();
    let report = report(&read(&copies), &read(&copies));
    assert!(
        says(&report, "are copies of real records"),
        "{:?}",
        report.verdict
    );
    let copies = report.copies.unwrap();
    assert!(copies.synthetic == 1.0 && copies.real < 0.2, "{copies:?}");
}

#[test]
fn attacks_find_copied_records_but_nothing_in_a_fresh_sample() {
    let [members, others, fresh] = [1, 2, 3].map(|seed| read(&csv(600, seed)).table);
    for (synthetic, found) in [(&members, true), (&fresh, false)] {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut report = evaluate(&members, synthetic, Some(&others), &mut rng).unwrap();
        let attacked = membership([&members, &others, synthetic], None, Some((1.0, 1e-9))).unwrap();
        assert_eq!(attacked.found, found, "{attacked:?}");
        report.add_membership(attacked);
        let words = if found {
            "recognise records"
        } else {
            "no better than guessing"
        };
        assert!(says(&report, words), "{:?}", report.verdict.sentences);
        assert!(html_page(&report, &[]).contains("<h2>Membership</h2>"));
    }
    // Every record needs a score.
    let scores = (&[0.0][..], &[0.0][..]);
    assert!(matches!(
        membership([&members, &others, &fresh], Some(scores), None),
        Err(fhaim_eval::Error::Attack(..))
    ));
}

#[test]
fn lost_missing_values_are_reported() {
    let real = csv(6_000, 1);
    let full = real.iter().cloned().map(|mut record| {
        if record[1].is_empty() {
            record[1] = "40".to_owned();
        }
        record
    });
    let report = report(&read(&real), &read(&full.collect::<Vec<_>>()));
    assert!(
        says(&report, "hours is missing in 10"),
        "{:?}",
        report.verdict.findings
    );
}
