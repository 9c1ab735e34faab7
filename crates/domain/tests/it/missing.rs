//! Missing and invalid cells: what a column's `missing`, `invalid` and `other` accept.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    Adjusted, OutOfRange, RawValues, ReadOptions, Schema, TableReading, WriteOptions, read_csv,
    write_csv,
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value as Json, json};

fn parse(columns: &Json) -> Result<Schema, String> {
    let schema = json!({"name": "t", "columns": columns});
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn read(schema: &Schema, csv: impl AsRef<[u8]>) -> Result<TableReading, String> {
    let options = ReadOptions {
        keep_values: true,
        ..ReadOptions::new("t.csv")
    };
    read_csv(schema.clone(), csv.as_ref(), &options).map_err(|error| error.to_string())
}

fn write(reading: &TableReading) -> String {
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    write_csv(
        &reading.table,
        &mut csv,
        &mut rng,
        &WriteOptions::new("o.csv"),
    )
    .unwrap();
    String::from_utf8(csv).unwrap()
}

/// A column of each kind that is kept.
fn kinds() -> Json {
    json!([
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
        {"name": "dose", "kind": "numeric", "min": 0, "max": 10, "bins": 5},
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 119, "bins": 12},
        {"name": "came", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01",
         "max": "2024-12-31", "bins": 5},
        {"name": "left", "kind": "date", "format": "%Y-%m-%d", "relative_to": "came",
         "edges": [0, 10, 400]},
        {"name": "seen", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "min": "2020-01-01",
         "max": "2024-12-31", "bins": 5},
        {"name": "icd", "kind": "code", "codes": ["A00", "A01", "B20"], "prefix": 1},
        {"name": "woke", "kind": "time", "format": "%H:%M", "min": "04:00", "max": "11:59",
         "bins": 8},
        {"name": "slept", "kind": "duration", "format": "%H:%M", "min": "00:00", "max": "23:59",
         "bins": 24}
    ])
}

/// The columns of [`kinds`] with more keys.
fn with(keys: &Json) -> Json {
    let mut columns = kinds();
    for column in columns.as_array_mut().unwrap() {
        let column = column.as_object_mut().unwrap();
        column.extend(keys.as_object().unwrap().clone());
    }
    columns
}

const HEADER: &str = "sex,dose,age,came,left,seen,icd,woke,slept";
const GOOD: &str = "f,3,47,2021-02-03,2021-02-08,2021-02-04 10:00,A01,06:30,08:10";

#[test]
fn missing_texts_are_read_and_the_first_is_written() {
    let schema = parse(&with(
        &json!({"nullable": true, "missing": ["k.A.", "", "-9"]}),
    ))
    .unwrap();
    let csv = format!("{HEADER}\n{GOOD}\nk.A.,-9,k.A.,,k.A.,-9,k.A.,,k.A.\n");
    let reading = read(&schema, &csv).unwrap();
    for column in schema.fields() {
        let first = column.attributes().start;
        let null = schema.columns()[first].null_code().unwrap();
        assert_eq!(reading.table.column(first)[1], null, "{}", column.name());
        assert_eq!(reading.adjusted[first].missing, 1);
    }
    let written = write(&reading);
    let missing = written.lines().nth(2).unwrap();
    assert_eq!(missing, ["k.A."; 9].join(","));
    let again = read(&schema, &written).unwrap();
    assert_eq!(again.table, reading.table);
}

#[test]
fn columns_without_missing_texts_are_written_with_the_given_one() {
    let mut columns = with(&json!({"nullable": true}));
    columns[0]["missing"] = json!(["unk"]);
    let schema = parse(&columns).unwrap();
    let reading = read(&schema, format!("{HEADER}\n,,,,,,,,\n")).unwrap();
    assert_eq!(write(&reading).lines().nth(1), Some("unk,,,,,,,,"));
}

#[test]
fn missing_and_invalid_round_trip_through_json() {
    let columns = with(&json!({"nullable": true, "missing": ["NA"], "invalid": "missing"}));
    let schema = parse(&columns).unwrap();
    let written: Json = serde_json::from_str(&schema.to_json()).unwrap();
    assert_eq!(written["columns"], columns);
    let again = Schema::from_json("again", schema.to_json().as_bytes()).unwrap();
    assert_eq!(again, schema);
    assert_ne!(
        schema.digest(),
        parse(&with(&json!({"nullable": true}))).unwrap().digest()
    );
    let part = schema.part(&[0, 1]).unwrap();
    assert_eq!(part.fields()[1].missing_text(), Some("NA"));
}

#[test]
fn missing_texts_that_are_values_are_rejected() {
    let values = [
        "m",
        "9.5",
        "047",
        "2024-12-31",
        "2025-01-03",
        "2024-12-31 23:59",
        "B20",
        "11:00",
        "23:00",
    ];
    for (column, value) in values.into_iter().enumerate() {
        let mut columns = with(&json!({"nullable": true}));
        columns[column]["missing"] = json!(["NA", value]);
        let error = parse(&columns).unwrap_err();
        let words = format!("`missing` has \"{value}\", which is a value of the column");
        assert!(error.contains(&words), "{error}");
    }
    // A number or date that the column does not allow may stand for a missing value.
    let others = [
        "M",
        "-1",
        "999",
        "1900-01-01",
        "9999-12-31",
        "1900-01-01 00:00",
        "Z99",
        "12:00",
        "36:00",
    ];
    let mut columns = with(&json!({"nullable": true}));
    for (column, other) in others.into_iter().enumerate() {
        columns[column]["missing"] = json!([other]);
    }
    let schema = parse(&columns).unwrap();
    let reading = read(&schema, format!("{HEADER}\n{}\n", others.join(","))).unwrap();
    assert!(
        reading
            .adjusted
            .iter()
            .all(|adjusted| adjusted.clamped == 0)
    );
    assert_eq!(
        write(&reading).lines().nth(1),
        Some(others.join(",").as_str())
    );
}

#[test]
fn special_words_and_dates_are_values() {
    for column in [
        json!({"name": "a", "kind": "number", "decimals": 1, "min": 0, "max": 9, "bins": 3,
               "special": ["<0.5"], "missing": ["<0.5"]}),
        json!({"name": "a", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01",
               "max": "2024-12-31", "bins": 5, "special": ["9999-12-31"], "missing": ["9999-12-31"]}),
    ] {
        let error = parse(&json!([column])).unwrap_err();
        assert!(error.contains("which is a value of the column"), "{error}");
    }
}

#[test]
fn invalid_keys_for_missing_values_are_rejected_with_the_cause() {
    let number = |more: Json| {
        let mut column = json!({"name": "a", "kind": "numeric", "min": 0, "max": 1, "bins": 1});
        column
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([column])
    };
    let many: Vec<String> = (0..101).map(|i| format!("x{i}")).collect();
    let kept = json!({"name": "k", "kind": "categorical", "categories": ["x"]});
    for (columns, words) in [
        (
            number(json!({"invalid": "missing"})),
            "also needs `\"nullable\": true`",
        ),
        (
            number(json!({"missing": ["NA", "NA"]})),
            "\"NA\" appears twice in `missing`",
        ),
        (
            number(json!({"missing": ["a\nb"]})),
            "no control characters",
        ),
        (
            number(json!({"missing": many})),
            "`missing` may have 100 texts, not 101",
        ),
        (number(json!({"missing": "NA"})), "expected a sequence"),
        (
            number(json!({"invalid": "other", "nullable": true})),
            "unknown variant `other`",
        ),
        (
            json!([kept, {"name": "a", "kind": "identifier", "pattern": "uuid", "missing": ["x"]}]),
            "a identifier column has no `missing`",
        ),
        (
            json!([kept, {"name": "a", "kind": "left-out", "nullable": true, "invalid": "missing"}]),
            "a left-out column has no `invalid`",
        ),
    ] {
        let error = parse(&columns).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn invalid_cells_are_read_as_missing_and_counted() {
    let schema = parse(&with(&json!({"nullable": true, "invalid": "missing"}))).unwrap();
    let invalid = "x,ten,4o,03.02.2021,soon,2021-02-30 10:00,C34,24:30,long";
    let mut csv = format!("{HEADER}\n{GOOD}\n{invalid}\n").into_bytes();
    csv.extend(
        [
            &b"\xff,\xff,\xff,\xff,\xff,\xff,\xff,\xff,\xff\n"[..],
            &b",,,,,,,,\n"[..],
        ]
        .concat(),
    );
    let reading = read(&schema, &csv).unwrap();
    for (field, values) in schema.fields().iter().zip(&reading.values) {
        let first = field.attributes().start;
        let null = schema.columns()[first].null_code().unwrap();
        assert_eq!(
            reading.table.column(first)[1..],
            [null; 3],
            "{}",
            field.name()
        );
        let found = &reading.adjusted[first];
        assert_eq!((found.invalid, found.missing), (2, 1), "{}", field.name());
        match &values.values {
            RawValues::Numbers(values) => assert_eq!(values[1..], [None; 3]),
            RawValues::Texts { values, names } => {
                assert_eq!(values[1..], [None; 3]);
                assert_eq!(names.len(), 1);
            }
        }
    }
}

#[test]
fn numbers_outside_the_limits_are_not_invalid() {
    let schema = parse(&with(&json!({"nullable": true, "invalid": "missing"}))).unwrap();
    for (cell, words) in [
        (
            "f,11,47,2021-02-03,2021-02-08,2021-02-04 10:00,A01,06:30,08:10",
            "range from 0 to 10",
        ),
        (
            "f,3,120,2021-02-03,2021-02-08,2021-02-04 10:00,A01,06:30,08:10",
            "range from 0 to 119",
        ),
        (
            "f,3,4.5,2021-02-03,2021-02-08,2021-02-04 10:00,A01,06:30,08:10",
            "is not an integer",
        ),
        (
            "f,3,47,2019-02-03,2021-02-08,2021-02-04 10:00,A01,06:30,08:10",
            "from 2020-01-01",
        ),
        (
            "f,3,47,2021-02-03,2021-02-01,2021-02-04 10:00,A01,06:30,08:10",
            "-2 days after",
        ),
    ] {
        let error = read(&schema, format!("{HEADER}\n{cell}\n")).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let options = ReadOptions {
        out_of_range: OutOfRange::Clamp,
        ..ReadOptions::new("t.csv")
    };
    let csv = format!("{HEADER}\nf,11,-1,x,2021-02-08,2021-02-04 10:00,A01,06:30,08:10\n");
    let adjusted = read_csv(schema, csv.as_bytes(), &options).unwrap().adjusted;
    let clamped: Vec<u64> = adjusted.iter().map(|adjusted| adjusted.clamped).collect();
    assert_eq!(clamped[..3], [0, 1, 1]);
    assert_eq!(adjusted[3].invalid, 1);
}

#[test]
fn values_outside_the_list_are_read_as_other_if_the_schema_has_it() {
    let schema = parse(&json!([
        {"name": "town", "kind": "categorical", "categories": ["Bonn", "rest"], "other": "rest",
         "nullable": true, "missing": ["?"]},
        {"name": "icd", "kind": "code", "codes": ["A00", "B20", "X"], "prefix": 1, "other": "X"}
    ]))
    .unwrap();
    let reading = read(&schema, "town,icd\nBonn,A00\nrest,X\nUlm,Q\n?,B20\n").unwrap();
    assert_eq!(reading.table.column(0), [0, 1, 1, 2]);
    assert_eq!(reading.table.column(1), [0, 2, 2, 1]);
    let found: Vec<&Adjusted> = reading.adjusted.iter().collect();
    assert_eq!(
        (found[0].other, found[0].missing, found[1].other),
        (1, 1, 1)
    );
    // `other` is for texts; bytes that are not UTF-8 are still refused.
    let error = read(&schema, b"town,icd\n\xff,A00\n").unwrap_err();
    assert!(error.contains("not UTF-8"), "{error}");
}

#[test]
fn values_outside_the_list_are_refused_without_other() {
    let schema = parse(&kinds()).unwrap();
    for (line, column) in [
        (GOOD.replace('f', "F"), "sex"),
        (GOOD.replace('f', " f"), "sex"),
        (GOOD.replace("A01", "A1"), "icd"),
    ] {
        let error = read(&schema, format!("{HEADER}\n{line}\n")).unwrap_err();
        assert!(error.contains(&format!("column \"{column}\"")), "{error}");
        let words =
            "is not one of the schema's categories, and the schema declares no `other` category";
        assert!(error.ends_with(words), "{error}");
    }
}
