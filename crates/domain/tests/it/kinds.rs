//! Kinds of columns: which are accepted, which are rejected, and with which messages.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{OutOfRange, ReadOptions, Schema, Table, WriteOptions, read_csv, write_csv};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value as Json, json};

fn parse(schema: &Json) -> Result<Schema, String> {
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn with_column(column: &Json) -> Result<Schema, String> {
    parse(&json!({"name": "t", "columns": [column]}))
}

fn read(schema: &Schema, csv: &str) -> Result<Table, String> {
    let reading = read_csv(schema.clone(), csv.as_bytes(), &ReadOptions::new("t.csv"));
    reading
        .map(|reading| reading.table)
        .map_err(|error| error.to_string())
}

fn write(table: &Table) -> Result<String, String> {
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    write_csv(table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).map_err(|e| e.to_string())?;
    Ok(String::from_utf8(csv).unwrap())
}

fn all_kinds() -> Json {
    json!({"name": "t", "target": "gain", "columns": [
        {"name": "gain", "kind": "number", "special": [0, 99999], "min": 1, "max": 40, "bins": 4,
         "digits": 10, "integer": true, "nullable": true},
        {"name": "born", "kind": "date", "format": "%d.%m.%Y", "min": "1990-01-01",
         "max": "1999-12-31", "bins": 10, "digits": 366},
        {"name": "died", "kind": "date", "format": "%Y-%m-%d", "relative_to": "born",
         "edges": [0, 1000, 40000], "nullable": true},
        {"name": "seen", "kind": "datetime", "format": "%Y-%m-%dT%H:%M:%S", "unit": "hour",
         "edges": ["2020-01-01", "2020-07-01", "2020-12-31"]},
        {"name": "icd", "kind": "code", "codes": ["A00", "A01", "B20", "X"], "prefix": 1, "other": "X"},
        {"name": "id", "kind": "identifier", "pattern": "[0-9]{2}"},
        {"name": "note", "kind": "left-out", "reason": "free text"},
        {"name": "old", "kind": "numeric", "min": 0, "max": 10, "bins": 5}
    ]})
}

#[test]
fn fields_become_attributes_and_digits() {
    let schema = parse(&all_kinds()).unwrap();
    let names: Vec<&str> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    assert_eq!(
        names,
        [
            "gain",
            "gain (digit)",
            "born",
            "born (digit)",
            "died",
            "seen",
            "seen (time)",
            "icd",
            "icd (digit)",
            "old"
        ]
    );
    // Two special values, four bins and a missing value; ten digits. Years have 365 or 366 days.
    assert_eq!(schema.domain().sizes(), [7, 10, 10, 366, 3, 2, 24, 3, 2, 5]);
    let digits: Vec<(usize, usize)> = schema
        .domain()
        .digits()
        .iter()
        .map(|d| (d.coarse(), d.fine()))
        .collect();
    assert_eq!(digits, [(0, 1), (2, 3), (7, 8)]);
    assert_eq!(
        schema.domain().digits()[0].parts(),
        [1, 10, 10, 10, 10, 1, 1]
    );
    assert_eq!(schema.domain().wrong_digit(), None);
    assert_eq!(schema.target(), Some(0));
    assert_eq!(schema.columns()[0].label(1), "1 to 10");
    assert_eq!(schema.columns()[0].label(5), "99999");
    assert_eq!(schema.columns()[0].label(6), "(missing)");
    assert_eq!(schema.columns()[6].label(23), "23:00 to 23:59");
    let written: Json = serde_json::from_str(&schema.to_json()).unwrap();
    assert_eq!(written, all_kinds());
    assert_eq!(parse(&written).unwrap(), schema);
}

#[test]
fn values_round_trip_through_codes() {
    let schema = parse(&all_kinds()).unwrap();
    let csv = "note,gain,born,died,seen,icd,old,id\n\
               x,0,31.12.1999,2001-01-01,2020-03-01T07:59:59,A01,3,a\n\
               y,99999,01.01.1990,,2020-12-31T00:00:00,X,3,b\n\
               z,,29.02.1992,1992-02-29,2020-07-01T23:00:00,B20,3,c\n\
               w,17,01.03.1996,2020-01-01,2020-01-01T12:00:00,A00,3,d\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(0), [0, 5, 6, 2]);
    assert_eq!(table.column(1), [0, 0, 0, 6]);
    let written = write(&table).unwrap();
    let again = read(&schema, &written).unwrap();
    assert_eq!(again.columns(), table.columns());
    let lines: Vec<Vec<&str>> = written
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(
        lines[0],
        ["gain", "born", "died", "seen", "icd", "id", "old"]
    );
    assert_eq!(lines[1][0], "0");
    assert_eq!(lines[4][0], "17");
    assert_eq!(lines[3][0], "");
    assert_eq!(lines[3][1], "29.02.1992");
    assert_eq!(lines[2][2], "");
    assert!(lines[1][3].starts_with("2020-0") && lines[1][3].contains("T07:"));
    assert_eq!(
        lines.iter().skip(1).map(|line| line[4]).collect::<Vec<_>>(),
        ["A01", "X", "B20", "A00"]
    );
    assert_eq!(
        lines.iter().skip(1).map(|line| line[5]).collect::<Vec<_>>(),
        ["00", "01", "02", "03"]
    );
}

#[test]
fn unknown_values_are_rejected_or_replaced() {
    let schema = parse(&all_kinds()).unwrap();
    let header = "note,gain,born,died,seen,icd,old,id\n";
    let error = read(
        &schema,
        &format!("{header},41,31.12.1999,,2020-03-01T07:59:59,A01,3,a\n"),
    );
    assert!(error.unwrap_err().contains("range from 1 to 40"));
    let error = read(
        &schema,
        &format!("{header},1.5,31.12.1999,,2020-03-01T07:59:59,A01,3,a\n"),
    );
    assert!(error.unwrap_err().contains("not an integer"));
    let error = read(
        &schema,
        &format!("{header},1,31.12.2000,,2020-03-01T07:59:59,A01,3,a\n"),
    );
    assert!(error.unwrap_err().contains("from 01.01.1990 to 31.12.1999"));
    let csv = format!("{header},41,31.12.2000,1999-01-01,2021-03-01T07:59:59,Q,3,a\n");
    let mut options = ReadOptions::new("t.csv");
    options.out_of_range = OutOfRange::Clamp;
    let reading = read_csv(schema.clone(), csv.as_bytes(), &options).unwrap();
    let changed: u64 = reading
        .adjusted
        .iter()
        .map(|adjusted| adjusted.clamped + adjusted.other)
        .sum();
    assert_eq!(changed, 5);
    // More records than identifiers.
    let line = ",1,31.12.1999,,2020-03-01T07:59:59,A01,3,a\n".repeat(101);
    let table = read(&schema, &format!("{header}{line}")).unwrap();
    let written = write(&table).unwrap();
    let last = written.lines().last().unwrap();
    assert_eq!(last.split(',').nth(5), Some("001"));
}

#[test]
fn invalid_column_kinds_are_rejected_with_the_cause() {
    let number = |more: Json| {
        let mut column = json!({"name": "a", "kind": "number", "integer": true});
        column
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        column
    };
    for (column, words) in [
        (
            number(json!({})),
            "either `edges`, or `min`, `max` and `bins`",
        ),
        (number(json!({"edges": [1, 2], "min": 0})), "either `edges`"),
        (
            number(json!({"edges": [2, 1]})),
            "must be larger than the one before",
        ),
        (
            number(json!({"edges": ["2020-01-01", 1]})),
            "`edges` must be a number",
        ),
        (
            number(json!({"edges": [0.5, 2]})),
            "0.5 is not a value of this column",
        ),
        (
            number(json!({"min": 0, "max": 3, "bins": 5})),
            "from 1 to 4",
        ),
        (
            number(json!({"edges": [0, 9], "digits": 0})),
            "`digits` must be from 1",
        ),
        (
            number(json!({"edges": [0, 9], "decimals": 1})),
            "`decimals` must be at most",
        ),
        (
            number(json!({"edges": [0, 9], "format": "x"})),
            "a number column has no `format`",
        ),
        (
            number(json!({"edges": [0, 9], "special": [1, 1]})),
            "special value appears twice",
        ),
        (
            json!({"name": "a", "kind": "number", "edges": [0, 1]}),
            "needs `decimals`",
        ),
        (
            json!({"name": "a", "kind": "date", "min": 1}),
            "needs `format`",
        ),
        (
            json!({"name": "a", "kind": "date", "format": "%Y", "min": 1}),
            "must have each of",
        ),
        (
            json!({"name": "a", "kind": "date", "format": "%Y-%m-%d", "min": 1, "max": 2, "bins": 1}),
            "`min` must be a date such as",
        ),
        (
            json!({"name": "a", "kind": "date", "format": "%Y-%m-%d", "min": "2023-02-30",
                   "max": "2024-01-01", "bins": 1}),
            "`min` must be a date such as",
        ),
        (
            json!({"name": "a", "kind": "date", "format": "%Y-%m-%d", "edges": [0, 1], "relative_to": "b"}),
            "`relative_to` is \"b\"",
        ),
        (
            json!({"name": "a", "kind": "datetime", "format": "%Y-%m-%d %H", "unit": "minute",
                   "min": "2023-02-01", "max": "2024-01-01", "bins": 1}),
            "`unit` must be no finer",
        ),
        (
            json!({"name": "a", "kind": "code", "codes": ["x"]}),
            "`codes` and `prefix`",
        ),
        (
            json!({"name": "a", "kind": "code", "codes": ["x", "x"], "prefix": 1}),
            "appears twice",
        ),
        (
            json!({"name": "a", "kind": "code", "chapters": []}),
            "from 1 to",
        ),
        (
            json!({"name": "a", "kind": "identifier"}),
            "needs `pattern`",
        ),
        (
            json!({"name": "a", "kind": "identifier", "pattern": "["}),
            "is not valid",
        ),
        (
            json!({"name": "a", "kind": "left-out"}),
            "no column is kept",
        ),
        (
            json!({"name": "a", "kind": "date", "min": true}),
            "a number, or a text such as",
        ),
    ] {
        let error = with_column(&column).unwrap_err();
        assert!(error.contains(words), "{column}: {error}");
    }
}

#[test]
fn only_format_1_is_read() {
    let column = json!({"name": "a", "kind": "date", "format": "%Y-%m-%d", "min": "2000-01-01", "max": "2010-01-01", "bins": 2});
    let with = |key: &str, value: Json| {
        let mut schema = json!({"name": "t", "columns": [column.clone()]});
        schema[key] = value;
        parse(&schema)
    };
    let one = with("format", json!(1)).unwrap();
    let plain = parse(&json!({"name": "t", "columns": [column.clone()]})).unwrap();
    assert_eq!(one, plain);
    for other in [0, 2, 255] {
        let error = with("format", json!(other)).unwrap_err();
        assert!(error.contains(&format!("`format` is {other}")), "{error}");
    }
    for value in [json!(1), json!(2), json!("2")] {
        let error = with("version", value).unwrap_err();
        assert!(error.contains("remove the key `version`"), "{error}");
    }
    assert!(!one.to_json().contains("version"));
}

#[test]
fn claim_is_read_strictly_and_is_not_part_of_the_digest() {
    let column = json!({"name": "a", "kind": "numeric", "min": 0, "max": 1, "bins": 2});
    let with =
        |claim: Json| parse(&json!({"claim": claim, "name": "t", "columns": [column.clone()]}));
    let claim = |epsilon: f64, rho: &str| json!({"epsilon": epsilon, "delta": 1e-9, "rho": rho});
    let schema = with(claim(0.5, "12345")).unwrap();
    assert_eq!(schema.claim().unwrap().rho, 12_345);
    let again = Schema::from_json("again", schema.to_json().as_bytes()).unwrap();
    assert_eq!(again, schema);
    let plain = parse(&json!({"name": "t", "columns": [column.clone()]})).unwrap();
    assert_eq!(schema.digest(), plain.digest());
    for wrong in [with(claim(0.0, "1")), with(claim(-1.0, "1"))] {
        let error = wrong.unwrap_err();
        assert!(error.contains("`claim` needs"), "{error}");
    }
    for rho in ["", "-1", "01", "1.5", "x"] {
        let error = with(claim(0.5, rho)).unwrap_err();
        assert!(error.contains("`rho` must be"), "{rho}: {error}");
    }
}

#[test]
fn digest_covers_every_field_of_a_column() {
    let digest = |schema: &Json| parse(schema).unwrap().digest();
    let whole = digest(&all_kinds());
    for (column, field, value) in [
        (0, "special", json!([0])),
        (0, "digits", json!(9)),
        (0, "max", json!(41)),
        (1, "format", json!("%Y-%m-%d")),
        (2, "edges", json!([0, 1001, 40000])),
        (3, "unit", json!("minute")),
        (4, "prefix", json!(2)),
        (5, "pattern", json!("uuid")),
    ] {
        let mut schema = all_kinds();
        schema["columns"][column][field] = value;
        assert_ne!(digest(&schema), whole, "{field}");
    }
    let mut renamed = all_kinds();
    renamed["name"] = json!("other");
    assert_eq!(digest(&renamed), whole);
}
