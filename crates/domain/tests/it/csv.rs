//! Reading and writing of CSV, and its errors.
#![allow(clippy::unwrap_used)]

use std::io::{self, Read};

use fhaim_domain::{
    Adjusted, Clique, Dialect, Domain, OutOfRange, ReadOptions, Schema, Table, TableReading,
    UnlistedColumn, WriteOptions, read_csv, write_csv,
};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::json;

fn schema() -> Schema {
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "kind": "numeric", "min": 0, "max": 100, "bins": 10, "integer": true},
        {"name": "town", "kind": "categorical", "categories": ["A, B", "C \"x\"", "rest"],
         "other": "rest", "nullable": true},
        {"name": "dose", "kind": "numeric", "min": 0, "max": 2.5, "bins": 5, "nullable": true},
    ]});
    Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap()
}

fn single() -> Schema {
    let schema = json!({"name": "t", "columns": [
        {"name": "a", "kind": "categorical", "categories": ["x", "y"], "nullable": true},
    ]});
    Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap()
}

fn read(csv: &str) -> Result<TableReading, String> {
    read_with(csv.as_bytes(), &ReadOptions::new("t.csv"))
}

fn read_with(csv: &[u8], options: &ReadOptions) -> Result<TableReading, String> {
    read_csv(schema(), csv, options).map_err(|error| error.to_string())
}

#[test]
fn fields_are_encoded() {
    let reading = read(concat!(
        "age,town,dose\n",
        "0,\"A, B\",2.5\n",
        " 99 ,\"C \"\"x\"\"\",.5\n",
        "100,,\n",
        "1e1,rest,0.49999\n",
    ))
    .unwrap();
    let table = reading.table;
    assert_eq!(table.records(), 4);
    assert_eq!(table.column(0), [0, 9, 9, 1]);
    assert_eq!(table.column(1), [0, 1, 3, 2]);
    assert_eq!(table.column(2), [4, 1, 5, 0]);
    assert_eq!(
        reading.adjusted[2],
        Adjusted {
            missing: 1,
            fractions: 3,
            ..Adjusted::default()
        }
    );
}

#[test]
fn column_order_line_ends_and_byte_order_mark_do_not_matter() {
    let plain = read("age,town,dose\n5,rest,1\n15,rest,2\n").unwrap().table;
    for csv in [
        "\u{feff}age,town,dose\n5,rest,1\n15,rest,2\n",
        "age,town,dose\r\n5,rest,1\r\n15,rest,2\r\n",
        "age,town,dose\r5,rest,1\r15,rest,2",
        "dose,age,town\n1,5,rest\n2,15,rest",
        "age,town,dose\n\n5,rest,1\n\n\n15,rest,2\n\n",
        "\"age\",\"town\",\"dose\"\n\"5\",\"rest\",\"1\"\n\"15\",\"rest\",\"2\"\n",
    ] {
        assert_eq!(read(csv).unwrap().table, plain, "{csv:?}");
    }
}

#[test]
fn rejected_cell_is_reported_with_row_line_and_column() {
    let cases = [
        ("x,rest,1", "column \"age\": \"x\" is not a number"),
        ("NaN,rest,1", "column \"age\": \"NaN\" is not a number"),
        ("inf,rest,1", "\"inf\" is not a number"),
        ("1e999,rest,1", "\"1e999\" is not a number"),
        ("1.5,rest,1", "\"1.5\" is not an integer"),
        (
            "101,rest,1",
            "column \"age\": \"101\" is outside the schema's range from 0 to 100",
        ),
        ("-1,rest,1", "\"-1\" is outside"),
        (",rest,1", "column \"age\": the value is missing"),
        ("1,rest,1.2.3", "column \"dose\": \"1.2.3\" is not a number"),
        (
            "1,a\u{0}b,1",
            "column \"town\": the field has a NUL character",
        ),
        ("1,rest", "2 fields where the header has 3"),
        ("1,rest,1,", "4 fields where the header has 3"),
    ];
    for (record, words) in cases {
        let error = read(&format!("age,town,dose\n1,rest,1\n{record}\n")).unwrap_err();
        assert!(error.starts_with("t.csv: row 2 (line 3)"), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn line_numbers_count_breaks_blank_lines_and_carriage_returns() {
    let schema = json!({"name": "t", "columns": [
        {"name": "a", "kind": "categorical", "categories": ["x"]},
        {"name": "b", "kind": "categorical", "categories": ["y"]},
    ]})
    .to_string();
    let schema = Schema::from_json("t.json", schema.as_bytes()).unwrap();
    let options = ReadOptions {
        unlisted: UnlistedColumn::LeaveOut,
        ..ReadOptions::new("t.csv")
    };
    let body = "a,b,n\nx,y,1\nx,y,\"1\n2\"\n\nx,z,3\n";
    for csv in [body.to_owned(), body.replace('\n', "\r\n")] {
        let error = read_csv(schema.clone(), csv.as_bytes(), &options)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("t.csv: row 3 (line 6), column \"b\""),
            "{error}"
        );
    }
}

#[test]
fn last_record_without_line_end_has_the_right_line() {
    for (csv, place) in [
        ("age,town,dose\n1,rest,1\nx,rest,1", "row 2 (line 3)"),
        ("age,town,dose\r\n1,rest,1\r\nx,rest,1", "row 2 (line 3)"),
        ("age,town,dose\n\nx,rest,1", "row 1 (line 3)"),
        // A quote left open takes in everything after it.
        ("age,town,dose\n\"1,rest,1\n2,rest,1\n", "row 1 (line 2)"),
    ] {
        let error = read(csv).unwrap_err();
        assert!(error.contains(place), "{csv:?}: {error}");
    }
    for csv in ["a\nx\n\ny", "a\r\nx\r\n\r\ny"] {
        let error = read_csv(single(), csv.as_bytes(), &ReadOptions::new("t.csv")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("blank line before row 2 (line 4)"),
            "{error}"
        );
    }
    assert!(
        read_csv(
            single(),
            "a\r\nx\r\ny".as_bytes(),
            &ReadOptions::new("t.csv")
        )
        .is_ok()
    );
}

#[test]
fn header_must_fit_the_schema() {
    let cases = [
        ("", "t.csv: the file is empty"),
        ("\n\n", "t.csv: the file is empty"),
        ("age,town,dose\n", "t.csv: the table has no records"),
        (
            "age,town\n1,rest\n",
            "the schema's column \"dose\" is missing",
        ),
        ("age,town,dose,dose\n", "column \"dose\" appears twice"),
        (
            "age,town,dose,id\n1,rest,1,1\n",
            "column \"id\" is not in the schema",
        ),
    ];
    for (csv, words) in cases {
        let error = read(csv).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
    let error = read_with(b"age,\xff\n", &ReadOptions::new("t.csv")).unwrap_err();
    assert!(error.contains("column 2 is not UTF-8"), "{error}");
}

#[test]
fn invalid_utf8_is_reported_with_its_place() {
    let csv = b"age,town,dose\n1,\xc3\x28,1\n";
    let error = read_with(csv, &ReadOptions::new("t.csv")).unwrap_err();
    assert_eq!(error, "t.csv: row 1 (line 2), column \"town\": not UTF-8");
}

#[test]
fn requested_adjustments_are_applied_and_counted() {
    let options = ReadOptions {
        missing: vec!["?".to_owned()],
        out_of_range: OutOfRange::Clamp,
        unlisted: UnlistedColumn::LeaveOut,
        dialect: Dialect::of_delimiter(b';'),
        ..ReadOptions::new("t.csv")
    };
    let csv = b"id;age;town;dose\n7;-3;D;?\n8;300;rest;1\n9;5;?;9\n";
    let reading = read_with(csv, &options).unwrap();
    assert_eq!(reading.table.column(0), [0, 9, 0]);
    assert_eq!(reading.table.column(1), [2, 2, 3]);
    assert_eq!(reading.table.column(2), [5, 2, 4]);
    assert_eq!(reading.left_out, ["id"]);
    let counts: Vec<(u64, u64, u64)> = reading
        .adjusted
        .iter()
        .map(|a| (a.clamped, a.other, a.missing))
        .collect();
    assert_eq!(counts, [(2, 0, 0), (0, 1, 1), (1, 0, 1)]);
    let error = read_csv(single(), &b"a\nz\n"[..], &options)
        .unwrap_err()
        .to_string();
    assert!(error.contains("declares no `other`"), "{error}");
}

#[test]
fn category_takes_precedence_over_missing_text() {
    let options = ReadOptions {
        missing: vec!["x".to_owned()],
        ..ReadOptions::new("t.csv")
    };
    let reading = read_csv(single(), &b"a\nx\ny\n"[..], &options).unwrap();
    assert_eq!(reading.table.column(0), [0, 1]);
}

#[test]
fn blank_line_that_may_be_a_record_is_rejected() {
    for csv in ["a\nx\n\ny\n", "a\r\nx\r\n\r\ny\r\n"] {
        let error = read_csv(single(), csv.as_bytes(), &ReadOptions::new("t.csv")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("a blank line before row 2 (line 4)"),
            "{error}"
        );
    }
    let reading = read_csv(
        single(),
        &b"a\nx\n\"\"\ny\n"[..],
        &ReadOptions::new("t.csv"),
    )
    .unwrap();
    assert_eq!(reading.table.column(0), [0, 2, 1]);
}

#[test]
fn record_count_and_length_are_bounded() {
    let options = ReadOptions {
        max_records: 2,
        ..ReadOptions::new("t.csv")
    };
    let error = read_with(b"age,town,dose\n1,rest,1\n1,rest,1\n1,rest,1\n", &options).unwrap_err();
    assert_eq!(error, "t.csv: the table has more than 2 records");

    // An open quote would take in the rest of the file, which has no end here.
    let endless = "age,town,dose\n1,rest,1\n1,\""
        .as_bytes()
        .chain(io::repeat(b'x'));
    let error = read_csv(schema(), endless, &ReadOptions::new("t.csv"))
        .unwrap_err()
        .to_string();
    let words = "t.csv: row 2 (line 3), column \"town\": the quote that opens here is never closed";
    assert_eq!(error, words);
    let commas = "age,town,dose\n".as_bytes().chain(io::repeat(b','));
    assert!(matches!(
        read_csv(schema(), commas, &ReadOptions::new("t.csv")),
        Err(fhaim_domain::Error::Length { .. })
    ));
    assert!(matches!(
        read_csv(schema(), io::repeat(b','), &ReadOptions::new("t.csv")),
        Err(fhaim_domain::Error::Length { .. })
    ));
}

/// A reader that returns some bytes, then fails.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("disk on fire"));
        }
        self.0.read(buffer)
    }
}

#[test]
fn failing_reader_returns_its_error() {
    let input = Broken(b"age,town,dose\n1,rest,1\n");
    let error = read_csv(schema(), input, &ReadOptions::new("t.csv"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("t.csv") && error.contains("disk on fire"),
        "{error}"
    );
}

#[test]
fn written_table_reads_back_equal() {
    let columns = vec![vec![0, 9, 4, 4], vec![0, 1, 2, 3], vec![0, 4, 5, 2]];
    let table = Table::new(schema(), columns).unwrap();
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    let text = String::from_utf8(csv).unwrap();
    assert!(text.starts_with("age,town,dose\n"), "{text}");
    assert!(
        text.contains("\"A, B\"") && text.contains("\"C \"\"x\"\"\""),
        "{text}"
    );
    assert_eq!(read(&text).unwrap().table, table);
    let mut rest = Vec::new();
    let options = WriteOptions {
        header: false,
        ..WriteOptions::new("o.csv")
    };
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    write_csv(&table, &mut rest, &mut rng, &options).unwrap();
    assert_eq!(
        format!("age,town,dose\n{}", String::from_utf8(rest).unwrap()),
        text
    );
}

#[test]
fn missing_text_that_is_a_value_is_rejected() {
    let table = Table::new(single(), vec![vec![0, 2]]).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let options = WriteOptions {
        missing: "x".to_owned(),
        ..WriteOptions::new("o.csv")
    };
    let error = write_csv(&table, Vec::new(), &mut rng, &options)
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "column \"a\": \"x\" cannot stand for missing values: it is a value"
    );
    let mut csv = Vec::new();
    write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    assert_eq!(csv, b"a\nx\n\"\"\n");
}

#[test]
fn codes_must_fit_the_schema() {
    let refused = |columns| Table::new(schema(), columns).unwrap_err().to_string();
    assert!(refused(vec![]).contains("0 columns of codes for a schema of 3"));
    assert!(refused(vec![vec![], vec![], vec![]]).contains("no records"));
    assert!(refused(vec![vec![0], vec![0, 0], vec![0]]).contains("column \"town\" has 2 records"));
    let error = refused(vec![vec![0, 10], vec![0, 0], vec![0, 0]]);
    assert_eq!(
        error,
        "row 2, column \"age\": code 10 is outside the domain of 10 values"
    );
}

#[test]
fn counts_are_row_major() {
    let columns = vec![vec![0, 9, 9], vec![1, 3, 3], vec![0, 0, 5]];
    let table = Table::new(schema(), columns).unwrap();
    let counts = table.counts(&Clique::new([1, 0])).unwrap();
    assert_eq!(counts.len(), 40);
    assert_eq!(
        (counts[1], counts[9 * 4 + 3], counts.iter().sum::<u64>()),
        (1, 2, 3)
    );
    assert_eq!(table.counts(&Clique::new([])).unwrap(), [3]);
    assert!(matches!(
        table.counts(&Clique::new([3])),
        Err(fhaim_domain::CodesProblem::Attribute { .. })
    ));
}

#[test]
fn one_hot_positions_follow_the_sizes() {
    let domain = Domain::new(vec![2, 3]);
    assert_eq!(domain.one_hot_offsets(), [0, 2, 5]);
    let positions: Vec<_> = (0..6)
        .map(|column| domain.one_hot_position(column))
        .collect();
    assert_eq!(positions[1], Some((0, 1)));
    assert_eq!(positions[2], Some((1, 0)));
    assert_eq!(positions[4], Some((1, 2)));
    assert_eq!(positions[5], None);
}

fn one_hot(table: &Table) -> Vec<Vec<u64>> {
    (0..table.domain().columns())
        .map(|column| {
            let (attribute, category) = table.domain().one_hot_position(column).unwrap();
            table
                .indicator(attribute, category, 0..table.records())
                .unwrap()
                .collect()
        })
        .collect()
}

#[test]
fn damaged_one_hot_columns_are_rejected() {
    let table = Table::new(single(), vec![vec![0, 2, 1]]).unwrap();
    let columns = one_hot(&table);
    assert_eq!(columns, [[1, 0, 0], [0, 0, 1], [0, 1, 0]]);
    for (column, row, value) in [(0, 0, 0), (0, 1, 1), (1, 2, 2)] {
        let mut damaged = columns.clone();
        damaged[column][row] = value;
        let error = Table::from_one_hot(single(), &damaged)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(&format!("row {}, column \"a\"", row + 1)),
            "{error}"
        );
    }
    let mut short = columns.clone();
    short[1].pop();
    assert!(matches!(
        Table::from_one_hot(single(), &short),
        Err(fhaim_domain::CodesProblem::Length { .. })
    ));
    assert!(matches!(
        Table::from_one_hot(single(), &columns[..2]),
        Err(fhaim_domain::CodesProblem::Columns { .. })
    ));
    assert!(matches!(
        table.indicator(1, 0, 0..3),
        Err(fhaim_domain::CodesProblem::Attribute { .. })
    ));
    assert!(matches!(
        table.indicator(0, 3, 0..3),
        Err(fhaim_domain::CodesProblem::Code { .. })
    ));
    assert!(matches!(
        table.indicator(0, 0, 0..4),
        Err(fhaim_domain::CodesProblem::Row { .. })
    ));
}

#[test]
fn split_keeps_every_record_once() {
    let codes: Vec<u32> = (0..50).map(|row| row % 3).collect();
    let table = Table::new(single(), vec![codes]).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let (one, two) = table.split(40, &mut rng).unwrap();
    assert_eq!((one.records(), two.records()), (40, 10));
    let whole = table.counts(&Clique::new([0])).unwrap();
    let parts = [one, two].map(|part| part.counts(&Clique::new([0])).unwrap());
    let sums: Vec<u64> = parts[0].iter().zip(&parts[1]).map(|(a, b)| a + b).collect();
    assert_eq!(sums, whole);
    assert!(matches!(
        table.split(0, &mut rng),
        Err(fhaim_domain::CodesProblem::Empty)
    ));
    assert!(matches!(
        table.split(50, &mut rng),
        Err(fhaim_domain::CodesProblem::Empty)
    ));
    assert!(matches!(
        table.select(&[50]),
        Err(fhaim_domain::CodesProblem::Row { .. })
    ));
}

proptest! {
    #[test]
    fn table_round_trips_through_csv_and_one_hot(
        rows in proptest::collection::vec((0u32..10, 0u32..4, 0u32..6), 1..80), seed: u64,
    ) {
        let mut columns = vec![Vec::new(); 3];
        for (age, town, dose) in rows {
            columns[0].push(age);
            columns[1].push(town);
            columns[2].push(dose);
        }
        let table = Table::new(schema(), columns).unwrap();
        let mut csv = Vec::new();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        write_csv(&table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
        prop_assert_eq!(&read_csv(schema(), &csv[..], &ReadOptions::new("o.csv")).unwrap().table, &table);
        prop_assert_eq!(&Table::from_one_hot(schema(), &one_hot(&table)).unwrap(), &table);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        bytes in proptest::collection::vec(
            prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'\r'), Just(0), any::<u8>()], 0..300),
    ) {
        let mut csv = b"age,town,dose\n".to_vec();
        csv.extend(&bytes);
        for input in [&bytes[..], &csv[..]] {
            let options = ReadOptions { out_of_range: OutOfRange::Clamp, ..ReadOptions::new("t.csv") };
            let _ = read_csv(schema(), input, &options);
        }
    }
}
