//! Constraints between columns: tables that break them are rejected, and drawn records satisfy them.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    BrokenConstraint, Error, ReadOptions, Schema, Streaming, Table, TableReading, WriteOptions,
    read_csv, stream_csv, write_csv,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const COLUMNS: &str = r#"
    {"name": "low", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10},
    {"name": "high", "kind": "number", "integer": true, "min": 0, "max": 149, "bins": 3, "nullable": true},
    {"name": "top", "kind": "number", "decimals": 0, "special": [0], "min": 1, "max": 200, "bins": 4, "digits": 5},
    {"name": "in", "kind": "number", "decimals": 1, "min": 0, "max": 10, "bins": 4, "digits": 7},
    {"name": "out", "kind": "number", "decimals": 1, "min": 0, "max": 10, "bins": 4},
    {"name": "all", "kind": "number", "decimals": 1, "min": 0, "max": 20, "bins": 5, "digits": 9, "nullable": true},
    {"name": "sex", "kind": "categorical", "categories": ["f", "m"], "nullable": true},
    {"name": "ward", "kind": "categorical", "categories": ["heart", "birth"], "nullable": true}"#;
const CONSTRAINTS: &str = r#"
    {"at_most": ["low", "high"]}, {"at_most": ["high", "top"]},
    {"sum": {"total": "all", "parts": ["in", "out"]}},
    {"missing_together": ["sex", "ward"]}, {"never": {"sex": "m", "ward": "birth"}}"#;

fn schema(constraints: &str) -> Result<Schema, String> {
    let json =
        format!(r#"{{"name": "t", "columns": [{COLUMNS}], "constraints": [{constraints}]}}"#);
    Schema::from_json("s.json", json.as_bytes()).map_err(|error| error.to_string())
}

fn read(rows: &str, broken: BrokenConstraint) -> Result<TableReading, String> {
    let text = format!("low,high,top,in,out,all,sex,ward\n{rows}");
    let options = ReadOptions {
        broken,
        ..ReadOptions::new("t.csv")
    };
    read_csv(schema(CONSTRAINTS).unwrap(), text.as_bytes(), &options).map_err(|e| e.to_string())
}

/// A map would keep the second value of a column, and the constraint would differ from the written one.
#[test]
fn repeated_column_in_never_is_rejected() {
    for twice in [
        r#"{"never": {"sex": "m", "sex": "f"}}"#,
        r#"{"never": {"sex": "m", "ward": "birth", "sex": "m"}}"#,
    ] {
        let refused = schema(twice).unwrap_err();
        assert!(refused.contains(r#""sex" is named twice"#), "{refused}");
    }
    assert!(schema(r#"{"never": {"sex": "m", "ward": "birth"}}"#).is_ok());
}

#[test]
fn broken_constraint_is_reported_with_its_row() {
    let good = "1,1,1,0.5,0.5,1.0,f,birth\n99,,0,1,2,,,\n5,7,100,9.9,10,19.9,m,heart\n";
    assert_eq!(read(good, BrokenConstraint::Refuse).unwrap().broken, [0; 5]);
    let wrong = [
        ("51,50,60,1,1,2,f,heart", r#""low" is at most "high""#),
        ("1,50,49,1,1,2,f,heart", r#""high" is at most "top""#),
        ("1,5,9,1,1,2.1,f,heart", r#""all" is "in" + "out""#),
        (
            "1,5,9,1,1,2,,heart",
            r#""sex" and "ward" are missing together"#,
        ),
        (
            "1,5,9,1,1,2,m,birth",
            r#"no record has "sex" "m" with "ward" "birth""#,
        ),
    ];
    for (index, (row, said)) in wrong.into_iter().enumerate() {
        let rows = format!("{good}{row}\n");
        let error = read(&rows, BrokenConstraint::Refuse).unwrap_err();
        assert!(
            error.starts_with("t.csv: row 4 (line 5) breaks a constraint"),
            "{error}"
        );
        assert!(error.ends_with(said), "{error}");
        let mut counts = [0; 5];
        counts[index] = 1;
        assert_eq!(read(&rows, BrokenConstraint::Count).unwrap().broken, counts);
    }
}

#[test]
fn streamed_table_is_checked_against_constraints() {
    let text =
        "low,high,top,in,out,all,sex,ward\n1,1,1,0.5,0.5,1.0,f,birth\n51,50,60,1,1,2,f,heart\n";
    let stream = |broken| -> Result<Streaming, Error> {
        let options = ReadOptions {
            broken,
            ..ReadOptions::new("t.csv")
        };
        stream_csv(
            &schema(CONSTRAINTS).unwrap(),
            text.as_bytes(),
            &options,
            |_| Ok(()),
        )
    };
    let error = stream(BrokenConstraint::Refuse).unwrap_err().to_string();
    assert!(
        error.starts_with("t.csv: row 2 (line 3) breaks a constraint"),
        "{error}"
    );
    let counted = stream(BrokenConstraint::Count).unwrap();
    assert_eq!((counted.records, counted.broken), (2, vec![1, 0, 0, 0, 0]));
}

#[test]
fn constraints_round_trip_and_change_the_digest() {
    let with = schema(CONSTRAINTS).unwrap();
    let again = Schema::from_json("s.json", with.to_json().as_bytes()).unwrap();
    assert_eq!(again, with);
    let without = schema("").unwrap();
    assert!(!without.to_json().contains("constraints"));
    assert_ne!(with.digest(), without.digest());
    assert_ne!(
        with.digest(),
        schema(r#"{"at_most": ["low", "high"]}"#).unwrap().digest()
    );
    // A holder of some columns checks only the constraints between those.
    let part = with.part(&[0, 1, 6]).unwrap();
    assert_eq!(part.constraints(), &with.constraints()[..1]);
}

#[test]
fn values_of_never_have_their_own_codes() {
    for own in ["7", "0 to 9"] {
        assert!(
            schema(&format!(
                r#"{{"never": {{"low": "{own}", "ward": "birth"}}}}"#
            ))
            .is_ok()
        );
    }
    let error = schema(r#"{"never": {"out": "2.4", "ward": "birth"}}"#).unwrap_err();
    assert!(error.contains("name the label of its bin"), "{error}");
}

#[test]
fn invalid_constraints_are_rejected_with_the_reason() {
    for (constraint, reason) in [
        (
            r#"{"at_most": ["low", "nobody"]}"#,
            "there is no such column",
        ),
        (r#"{"at_most": ["low", "sex"]}"#, "must be of kind `number`"),
        (
            r#"{"at_most": ["low", "in"]}"#,
            "the same number of `decimals`",
        ),
        (r#"{"at_most": ["low", "low"]}"#, "names a column twice"),
        (
            r#"{"missing_together": ["sex", "sex"]}"#,
            "names a column twice",
        ),
        (r#"{"never": {"sex": "m"}}"#, "two columns or more"),
        (
            r#"{"never": {"sex": "x", "ward": "birth"}}"#,
            "no such value",
        ),
        (
            r#"{"never": {"high": "120", "ward": "birth"}}"#,
            "the same codes as others",
        ),
        (
            r#"{"sum": {"total": "all", "parts": ["in"]}}"#,
            "two parts or more",
        ),
        (
            r#"{"sum": {"total": "all", "parts": ["in", "in"]}}"#,
            "names a column twice",
        ),
        (
            r#"{"sum": {"total": "all", "parts": ["in", "out"]}}, {"at_most": ["in", "out"]}"#,
            "cannot be in another constraint of numbers",
        ),
        (r#"{"larger": ["low", "high"]}"#, "unknown variant"),
    ] {
        let error = schema(constraint).unwrap_err();
        assert!(error.contains(reason), "{constraint}: {error}");
    }
}

/// Returns the means of integer columns over `records` records. Each record has values from 0 to 49 and satisfies the
/// constraints.
fn means(columns: usize, constraints: &[String], records: usize) -> Vec<f64> {
    let column = |n| {
        format!(r#"{{"name":"c{n}","kind":"number","integer":true,"min":0,"max":99,"bins":2}}"#)
    };
    let named: Vec<String> = (0..columns).map(column).collect();
    let json = format!(
        r#"{{"name":"t","columns":[{}],"constraints":[{}]}}"#,
        named.join(","),
        constraints.join(",")
    );
    let schema = Schema::from_json("s.json", json.as_bytes()).unwrap();
    let table = Table::new(schema, vec![vec![0; records]; columns]).unwrap();
    let (mut csv, mut rng) = (Vec::new(), ChaCha8Rng::seed_from_u64(7));
    write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    let text = String::from_utf8(csv).unwrap();
    let mut sums = vec![0.0; columns];
    for line in text.lines().skip(1) {
        for (sum, value) in sums.iter_mut().zip(line.split(',')) {
            *sum += value.parse::<f64>().unwrap();
        }
    }
    sums.iter().map(|sum| sum / records as f64).collect()
}

/// Drawing all numbers again for one broken rule would soon set all of them to their bins' edges.
#[test]
fn independent_rules_do_not_change_each_others_values() {
    let pair = |n: usize| format!(r#"{{"at_most":["c{}","c{}"]}}"#, 2 * n, 2 * n + 1);
    let pairs: Vec<String> = (0..10).map(pair).collect();
    let brute = |of: fn(i32, i32) -> i32| {
        let ordered = (0..50).flat_map(|low| (low..50).map(move |high| of(low, high)));
        let (sum, count) = ordered.fold((0, 0), |(sum, count), x| (sum + x, count + 1));
        f64::from(sum) / f64::from(count)
    };
    let (low, high) = (brute(|low, _| low), brute(|_, high| high));
    for (n, mean) in means(20, &pairs, 2_000).into_iter().enumerate() {
        let wanted = if n % 2 == 0 { low } else { high };
        assert!(
            (mean - wanted).abs() < 1.5,
            "c{n}: {mean}, {wanted} expected"
        );
    }
}

/// One draw in 720 satisfies this chain. Its values stay spread over the bin.
#[test]
fn long_chain_of_rules_is_not_set_to_bin_edges() {
    let link = |n: usize| format!(r#"{{"at_most":["c{n}","c{}"]}}"#, n + 1);
    let chain: Vec<String> = (0..5).map(link).collect();
    let means = means(6, &chain, 2_000);
    assert!(means.is_sorted(), "{means:?}");
    assert!(means[0] > 3.0 && means[5] > 38.0, "{means:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Allowed records are written so that they read back without an error, for any codes that a model draws.
    #[test]
    fn allowed_records_satisfy_all_constraints(seed: u64) {
        let schema = schema(CONSTRAINTS).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let sizes = schema.domain().sizes().to_vec();
        let mut columns = vec![Vec::new(); sizes.len()];
        for _ in 0..200 {
            let mut codes: Vec<u32> = sizes
                .iter()
                .map(|&size| rng.random_range(0..size as u32))
                .collect();
            // A special value has only one part: a digit that it lacks would read back as another one.
            for digit in schema.domain().digits() {
                codes[digit.fine()] %= digit.parts()[codes[digit.coarse()] as usize];
            }
            if schema.allows(&|attribute| codes[attribute]) {
                columns.iter_mut().zip(&codes).for_each(|(column, &code)| column.push(code));
            }
        }
        prop_assume!(!columns[0].is_empty());
        let table = Table::new(schema, columns).unwrap();
        let mut csv = Vec::new();
        write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
        let again = read_csv(table.shared_schema(), &csv[..], &ReadOptions::new("o.csv"));
        let again = again.map_err(|error| TestCaseError::fail(error.to_string()))?;
        // Everything reads back as it was drawn, except the digit of a total, which the sum determines.
        let names = table.schema().columns().iter().map(|column| column.name());
        for (attribute, name) in names.enumerate().filter(|(_, name)| !name.starts_with("all")) {
            prop_assert_eq!(again.table.column(attribute), table.column(attribute), "{}", name);
        }
    }

    /// Codes that are not allowed have no values that satisfy the constraints.
    #[test]
    fn disallowed_codes_have_no_valid_values(seed: u64) {
        let schema = schema(r#"{"at_most": ["low", "high"]}, {"at_most": ["high", "top"]}"#).unwrap();
        let free = self::schema("").unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let codes: Vec<u32> = schema.domain().sizes().iter().map(|&size| rng.random_range(0..size as u32)).collect();
        let code = |attribute: usize| codes[attribute];
        let mut values = Vec::new();
        let mut holds = false;
        for number in 0..200 {
            free.values(&code, number, &mut rng, &mut values);
            let at = |place: usize| values[place].number();
            let [low, high, top] = [at(0), at(1), at(2)];
            let pair = |x: Option<f64>, y: Option<f64>| x.zip(y).is_none_or(|(x, y)| x <= y);
            holds |= pair(low, high) && pair(high, top);
        }
        prop_assert!(schema.allows(&code) || !holds);
    }
}
