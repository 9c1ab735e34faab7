//! Columns of dates, datetimes, times of day and durations: their codes, and values drawn from codes.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use fhaim_domain::{
    OutOfRange, RawValues, ReadOptions, Schema, Table, WriteOptions, parse_conditions, read_csv,
    write_csv,
};
use proptest::prelude::*;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde_json::{Value as Json, json};

fn parse(columns: &Json) -> Result<Schema, String> {
    let schema = json!({"name": "t", "columns": columns});
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

fn read(schema: &Schema, csv: &str) -> Result<Table, String> {
    let reading = read_csv(schema.clone(), csv.as_bytes(), &ReadOptions::new("t.csv"));
    reading
        .map(|reading| reading.table)
        .map_err(|error| error.to_string())
}

fn write(table: &Table, seed: u64) -> String {
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    write_csv(table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    String::from_utf8(csv).unwrap()
}

/// Different values that a table has after it is written with several seeds, by column.
fn drawn(table: &Table) -> Vec<BTreeSet<String>> {
    let mut columns = vec![BTreeSet::new(); table.schema().fields().len()];
    for seed in 0..50 {
        for line in write(table, seed).lines().skip(1) {
            for (values, text) in columns.iter_mut().zip(line.split(',')) {
                values.insert(text.to_owned());
            }
        }
    }
    columns
}

fn labels(schema: &Schema, attribute: usize) -> Vec<String> {
    let column = &schema.columns()[attribute];
    (0..column.size() as u32)
        .map(|code| column.label(code))
        .collect()
}

fn names(schema: &Schema) -> Vec<&str> {
    schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect()
}

/// Columns of every kind, in which records may have any combination of codes.
fn columns() -> Json {
    json!([
        {"name": "iso", "kind": "date", "format": "%Y-%m-%d", "min": "0001-01-01", "max": "9999-12-31",
         "bins": 10, "digits": 20},
        {"name": "short", "kind": "date", "format": "%-d.%-m.%y", "first_year": 1930,
         "edges": ["1930-01-01", "1950-06-15", "2029-12-31"], "digits": 7, "nullable": true},
        {"name": "named", "kind": "date", "format": "%a %d-%^b-%Y", "min": "1950-01-01",
         "max": "1999-12-31", "bins": 5, "digits": 10,
         "special": ["*-01-01", "*-02-29", "9999-12-31", "1962-07-07", "unknown", "0000-00-00"]},
        {"name": "month", "kind": "date", "format": "%B %Y", "min": "2020-03", "max": "2024-12-31",
         "bins": 5, "digits": 12, "special": ["*-01", "1900-01", "never"], "nullable": true},
        {"name": "stamp", "kind": "datetime", "format": "%Y-%m-%dT%H:%M:%S%.3f%:z", "unit": "hour",
         "min": "2024-01-01", "max": "2024-12-31", "bins": 12, "digits": 31,
         "offsets": ["Z", "+01:00", "+02:00"], "special": ["9999-12-31", "1900-01-01T00:00:00.000Z", "x"]},
        {"name": "twelve", "kind": "datetime", "format": "%b %e %Y %l:%M%p", "min": "2024-01-01",
         "max": "2024-12-31", "bins": 2, "nullable": true},
        {"name": "night", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "midnight": "24:00",
         "min": "2024-01-01", "max": "2024-12-31", "bins": 12, "digits": 31, "special": ["-"]},
        {"name": "hourly", "kind": "datetime", "format": "%d.%m.%Y %H:00", "midnight": "24:00",
         "unit": "hour", "min": "2024-01-01", "max": "2024-12-31", "bins": 4},
        {"name": "bed", "kind": "time", "format": "%H:%M", "min": "00:00", "max": "23:59", "bins": 24,
         "digits": 60, "special": ["00:00", "shift"], "nullable": true},
        {"name": "noon", "kind": "time", "format": "%-I:%M:%S %p", "edges": ["06:00", "12:00", "18:30"],
         "digits": 100},
        {"name": "close", "kind": "time", "format": "%H:%M:%S%.2f", "midnight": "24:00",
         "min": "20:00", "max": "24:00:00.00", "bins": 4, "digits": 8},
        {"name": "waited", "kind": "duration", "format": "%-H:%M:%S", "min": "0:00", "max": "120:00",
         "bins": 6, "digits": 40, "special": ["0:00:00", "left"], "nullable": true},
        {"name": "lap", "kind": "duration", "format": "%M:%S.%3f", "min": "0:01:10.5", "max": "1:40:00",
         "bins": 9, "digits": 10},
        {"name": "late", "kind": "duration", "format": "%-d d %H:%M", "min": "-50:00", "max": "50:59",
         "bins": 5, "digits": 25},
        {"name": "out", "kind": "date", "format": "%Y-%m-%d", "relative_to": "stamp", "min": -400,
         "max": 400, "bins": 8, "digits": 101, "special": ["9999-12-31", "open"], "nullable": true},
        {"name": "back", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "relative_to": "twelve",
         "unit": "day", "clock": "hour", "min": -20, "max": 20, "bins": 41, "nullable": true},
        {"name": "next", "kind": "datetime", "format": "%Y-%m-%d %H:%M:%S %Z", "relative_to": "back",
         "unit": "minute", "edges": [-60, 0, 1, 600], "digits": 10, "offsets": ["CET", "CEST"],
         "special": ["no"], "nullable": true},
        {"name": "paid", "kind": "date", "format": "%m/%Y", "relative_to": "month", "min": -3, "max": 12,
         "bins": 16, "special": ["1900-01", "later"], "nullable": true}
    ])
}

/// Draws codes of a record that a table may have.
fn draw_codes(schema: &Schema, rng: &mut ChaCha8Rng) -> Vec<u32> {
    use rand::Rng;
    let mut codes: Vec<u32> = Vec::new();
    for field in schema.fields() {
        let (mut missing, mut word) = (false, false);
        for attribute in field.attributes() {
            let column = &schema.columns()[attribute];
            let digits = schema.domain().digits();
            let digit = digits.iter().find(|digit| digit.fine() == attribute);
            if let Some(digit) = digit {
                codes.push(rng.random_range(0..digit.parts()[codes[digit.coarse()] as usize]));
                continue;
            }
            let first = attribute == field.attributes().start;
            let mut code = rng.random_range(0..column.size() as u32);
            if first {
                let is_date = |letter: char| letter.is_ascii_digit() || letter == '-';
                missing = column.null_code() == Some(code);
                word = !column.label(code).starts_with(is_date)
                    || ["0000-00-00", "-"].contains(&column.label(code).as_str());
                word &= !missing && !column.label(code).contains(',');
                // A text of the format that is special.
                word |= column.label(code).contains('T');
            } else {
                let wanted = |code: u32| match column.label(code).as_str() {
                    "(missing)" => missing,
                    "none" => word && !missing,
                    _ => !word && !missing,
                };
                while !wanted(code) {
                    code = (code + 1) % column.size() as u32;
                }
            }
            codes.push(code);
        }
    }
    codes
}

/// Whether the other field of a lapse has a date, so that the lapse has one too.
fn settle(schema: &Schema, codes: &mut [u32]) {
    let place = |name: &str| {
        schema
            .fields()
            .iter()
            .position(|field| field.name() == name)
    };
    for (later, base) in [
        ("out", "stamp"),
        ("back", "twelve"),
        ("next", "back"),
        ("paid", "month"),
    ] {
        let start = |name: &str| schema.fields()[place(name).unwrap()].attributes().start;
        let label = |name: &str, codes: &[u32]| {
            let attribute = start(name);
            schema.columns()[attribute].label(codes[attribute])
        };
        let own = label(later, codes);
        let special = ["9999-12-31", "open", "no", "1900-01", "later"].contains(&own.as_str());
        let lost = [
            "(missing)",
            "x",
            "never",
            "9999-12-31",
            "1900-01",
            "1900-01-01T00:00:00.000Z",
        ];
        if special || !lost.contains(&label(base, codes).as_str()) {
            continue;
        }
        for attribute in schema.fields()[place(later).unwrap()].attributes() {
            codes[attribute] = schema.columns()[attribute].null_code().unwrap_or(0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn codes_round_trip_through_text(seed: u64) {
        let schema = parse(&columns()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut codes = vec![Vec::new(); schema.columns().len()];
        for _ in 0..50 {
            let mut record = draw_codes(&schema, &mut rng);
            settle(&schema, &mut record);
            codes.iter_mut().zip(record).for_each(|(column, code)| column.push(code));
        }
        let table = Table::new(schema.clone(), codes).unwrap();
        let text = write(&table, seed);
        let again = read(&schema, &text).unwrap();
        for (attribute, column) in schema.columns().iter().enumerate() {
            let written = text.lines().skip(1);
            let pairs = table.column(attribute).iter().zip(again.column(attribute)).zip(written);
            for ((one, two), line) in pairs {
                let (one, two) = (column.label(*one), column.label(*two));
                prop_assert_eq!(one, two, "{}: {}", column.name(), line);
            }
        }
    }

    /// A model may draw any codes, also of a lapse from 9999-12-31.
    #[test]
    fn any_codes_are_written_as_values_of_their_column(seed: u64) {
        use rand::Rng;
        let schema = parse(&columns()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let sizes = schema.domain().sizes().to_vec();
        let codes = sizes.iter().map(|&size| (0..50).map(|_| rng.random_range(0..size as u32)).collect());
        let table = Table::new(schema.clone(), codes.collect()).unwrap();
        let text = write(&table, seed);
        let mut options = ReadOptions::new("t.csv");
        options.out_of_range = OutOfRange::Clamp;
        let again = read_csv(schema, text.as_bytes(), &options);
        prop_assert!(again.is_ok(), "{:?}", again.err());
    }
}

#[test]
fn special_days_share_a_group_in_each_bin() {
    let schema = parse(&json!([
        {"name": "born", "kind": "date", "format": "%d/%m/%Y", "digits": 10,
         "edges": ["1940-01-01", "1950-01-01", "1959-12-31"], "special": ["*-01-01", "1900-01-01", "1945-01-01", "unknown"]}
    ]))
    .unwrap();
    assert_eq!(
        labels(&schema, 0),
        [
            "1900-01-01",
            "1 January, 1940 to 1949",
            "1940-01-01 to 1949-12-31",
            "1945-01-01",
            "1 January, 1950 to 1959",
            "1950-01-01 to 1959-12-31",
            "unknown",
        ]
    );
    let csv =
        "born\n01/01/1900\n01/01/1944\n02/01/1944\n01/01/1945\n01/01/1959\n31/12/1959\nunknown\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(0), [0, 1, 2, 3, 4, 5, 6]);
    let first = table.select(&[1]).unwrap();
    let years: BTreeSet<String> = (1940..1950)
        .filter(|&year| year != 1945)
        .map(|year| format!("01/01/{year}"))
        .collect();
    assert_eq!(drawn(&first)[0], years);
    let rest = drawn(&table.select(&[2]).unwrap());
    assert!(
        rest[0].iter().all(|text| !text.starts_with("01/01/")),
        "{rest:?}"
    );
    let error = read(&schema, "born\nUnknown\n").unwrap_err();
    assert!(error.contains("format of \"01/01/1970\""), "{error}");
}

#[test]
fn word_has_neither_time_of_day_nor_offset() {
    let schema = parse(&json!([
        {"name": "at", "kind": "datetime", "format": "%Y-%m-%d %H:%M%z", "unit": "hour",
         "offsets": ["+0100", "+0200"], "min": "2024-01-01", "max": "2024-12-31", "bins": 2,
         "special": ["n/a", "9999-12-31 23:59+0100"]}
    ]))
    .unwrap();
    assert_eq!(names(&schema), ["at", "at (time)", "at (offset)"]);
    assert_eq!(labels(&schema, 2), ["+0100", "+0200", "none"]);
    let csv = "at\n2024-07-02 14:30+0200\nn/a\n9999-12-31 23:59+0100\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(0), [1, 2, 3]);
    assert_eq!(table.column(1), [14, 24, 24]);
    assert_eq!(table.column(2), [1, 2, 2]);
    let values = drawn(&table.select(&[1, 2]).unwrap());
    assert_eq!(values[0].len(), 2, "{values:?}");
    let error = read(&schema, "at\n2024-07-02 14:30+0300\n").unwrap_err();
    assert!(error.contains("the offset \"+0300\""), "{error}");
    let error = read(&schema, "at\n9999-12-31 23:58+0100\n").unwrap_err();
    assert!(error.contains("from 2024-01-01 00:00+0100"), "{error}");
}

#[test]
fn midnight_belongs_to_the_day_before() {
    let schema = parse(&json!([
        {"name": "at", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "midnight": "24:00", "unit": "hour",
         "min": "2022-04-07", "max": "2022-04-08", "bins": 2},
        {"name": "shut", "kind": "time", "format": "%H:%M", "midnight": "24:00", "min": "18:00",
         "max": "24:00", "bins": 1}
    ]))
    .unwrap();
    let csv = "at,shut\n2022-04-08 24:00,24:00\n2022-04-08 00:00,00:00\n2022-04-08 00:01,23:59\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(0), [1, 0, 1]);
    assert_eq!(table.column(1), [23, 23, 0]);
    assert_eq!(labels(&schema, 1)[23], "23:01 to 24:00");
    assert_eq!(labels(&schema, 2), ["18:00 to 24:00"]);
    let values = drawn(&table);
    assert!(
        values[0]
            .iter()
            .chain(&values[1])
            .all(|text| !text.ends_with("00:00")),
        "{values:?}"
    );
    assert!(values[0].contains("2022-04-07 24:00"), "{values:?}");
    let error = read(&schema, "at,shut\n2022-04-07 00:00,20:00\n").unwrap_err();
    assert!(
        error.contains("from 2022-04-07 00:01 to 2022-04-08 00:01"),
        "{error}"
    );
}

#[test]
fn limits_without_seconds_include_the_whole_minute() {
    let schema = parse(&json!([
        {"name": "a", "kind": "time", "format": "%H:%M:%S", "min": "00:00", "max": "23:59", "bins": 24},
        {"name": "b", "kind": "duration", "format": "%M:%S", "edges": ["0:00", "1:00", "2:00:00"]}
    ]))
    .unwrap();
    assert_eq!(labels(&schema, 0)[23], "23:00:00 to 23:59:59");
    assert_eq!(labels(&schema, 1), ["00:00 to 59:59", "60:00 to 120:00"]);
    assert!(read(&schema, "a,b\n23:59:59,119:59\n").is_ok());
    let error = read(&schema, "a,b\n23:59:59,120:01\n").unwrap_err();
    assert!(error.contains("from 00:00 to 120:00"), "{error}");
}

#[test]
fn dates_and_datetimes_may_be_relative_to_each_other() {
    let schema = parse(&json!([
        {"name": "sent", "kind": "datetime", "format": "%Y-%m-%d %H:%M:%S", "min": "2024-01-01",
         "max": "2024-12-31", "bins": 12, "nullable": true},
        {"name": "due", "kind": "date", "format": "%Y-%m-%d", "relative_to": "sent", "min": -5, "max": 30,
         "bins": 36, "nullable": true},
        {"name": "done", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "relative_to": "due",
         "unit": "day", "clock": "hour", "min": -30, "max": 30, "bins": 61, "nullable": true}
    ]))
    .unwrap();
    assert_eq!(
        names(&schema),
        [
            "sent",
            "sent (time)",
            "sent (time) (digit)",
            "due",
            "done",
            "done (time)"
        ]
    );
    let csv = "sent,due,done\n2024-06-17 23:49:00,2024-06-17,2024-06-16 08:00\n\
               2024-06-17 00:00:00,2024-06-16,2024-06-20 23:59\n2024-06-17 00:00:00,,\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(3), [5, 4, 36]);
    assert_eq!(table.column(4), [29, 34, 61]);
    assert_eq!(table.column(5), [8, 23, 24]);
    let error = read(&schema, "sent,due,done\n2024-06-17 23:49:00,2024-06-11,\n").unwrap_err();
    assert!(error.contains("-6 days after"), "{error}");
}

#[test]
fn special_date_of_a_relative_column_does_not_depend_on_the_other() {
    let schema = parse(&json!([
        {"name": "start", "kind": "date", "format": "%Y-%m-%d", "min": "2022-01-01", "max": "2023-12-31",
         "bins": 2, "special": ["1900-01-01", "unknown"], "nullable": true},
        {"name": "end", "kind": "date", "format": "%Y-%m-%d", "relative_to": "start", "min": 0, "max": 99,
         "bins": 10, "special": ["9999-12-31", "unknown"], "nullable": true}
    ]))
    .unwrap();
    let last = labels(&schema, 1);
    assert_eq!(
        last[9..],
        ["90 to 99", "9999-12-31", "unknown", "(missing)"]
    );
    let csv = "start,end\n2022-05-01,9999-12-31\n,9999-12-31\nunknown,unknown\nunknown,2022-05-01\n\
               1900-01-01,1900-01-03\n2022-05-01,2022-05-11\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(1), [10, 10, 11, 12, 0, 1]);
    let written = write(&table, 1);
    let lines: Vec<&str> = written.lines().collect();
    assert!(
        lines[1].ends_with(",9999-12-31") && lines[3] == "unknown,unknown",
        "{written}"
    );
    assert_eq!(lines[4], "unknown,");
    assert!(lines[5].starts_with("1900-01-01,1900-01-0"), "{written}");
    let conditions = |text: &str| parse_conditions(text, &schema).unwrap();
    assert_eq!(conditions("end=9999-12-31"), [(1, 10)]);
    assert_eq!(conditions("end=15,start=unknown"), [(1, 1), (0, 3)]);
}

#[test]
fn datetime_without_clock_counts_from_the_beginning_of_a_date() {
    let schema = parse(&json!([
        {"name": "day", "kind": "date", "format": "%Y-%m-%d", "min": "2024-01-01", "max": "2024-12-31",
         "bins": 1},
        {"name": "at", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "relative_to": "day",
         "unit": "hour", "min": -24, "max": 47, "bins": 72, "special": ["9999-12-31"]}
    ]))
    .unwrap();
    let csv = "day,at\n2024-05-01,2024-05-01 07:30\n2024-05-01,2024-04-30 23:59\n\
               2024-05-01,9999-12-31 12:00\n";
    let table = read(&schema, csv).unwrap();
    assert_eq!(table.column(1), [31, 23, 72]);
    let special = drawn(&table.select(&[2]).unwrap());
    assert_eq!(special[1].iter().collect::<Vec<_>>(), ["9999-12-31 00:00"]);
}

/// The special date is also the last day of the calendar.
#[test]
fn lapse_beyond_the_calendar_is_written_as_its_last_day() {
    let schema = parse(&json!([
        {"name": "start", "kind": "date", "format": "%Y-%m-%d", "min": "2022-01-01", "max": "2023-12-31",
         "bins": 1, "special": ["9999-12-31", "0001-01-01"]},
        {"name": "days", "kind": "date", "format": "%d.%m.%Y", "relative_to": "start",
         "edges": [-1e15, 1, 1e15]},
        {"name": "months", "kind": "date", "format": "%Y-%m", "relative_to": "start",
         "edges": [-1e15, 1, 1e15]},
        {"name": "minutes", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "relative_to": "start",
         "edges": [-1e15, 1, 1e15]},
        {"name": "short", "kind": "date", "format": "%d.%m.%y", "first_year": 1950, "relative_to": "start",
         "min": 0, "max": 40000, "bins": 1}
    ]))
    .unwrap();
    let special = [0, 2].map(|code| {
        let parts = [code, code / 2, code / 2, code / 2, 0];
        let codes = parts.map(|code| vec![code]).to_vec();
        drawn(&Table::new(schema.clone(), codes).unwrap())
    });
    let only = |values: &BTreeSet<String>, text: &str| {
        assert_eq!(values.iter().collect::<Vec<_>>(), [text]);
    };
    only(&special[0][1], "01.01.0001");
    only(&special[1][1], "31.12.9999");
    only(&special[0][2], "0001-01");
    only(&special[1][2], "9999-12");
    only(&special[0][3], "0001-01-01 00:00");
    only(&special[1][3], "9999-12-31 23:59");
    only(&special[1][4], "31.12.49");
}

#[test]
fn kept_values_of_times_are_seconds() {
    let schema = parse(&json!([
        {"name": "a", "kind": "time", "format": "%H:%M", "min": "00:00", "max": "23:59", "bins": 4,
         "special": ["off"]},
        {"name": "b", "kind": "duration", "format": "%M:%S.%1f", "min": "0:00", "max": "1:00", "bins": 4}
    ]))
    .unwrap();
    let mut options = ReadOptions::new("t.csv");
    options.keep_values = true;
    let reading = read_csv(
        schema,
        "a,b\n01:00,00:01.5\noff,02:00.0\n".as_bytes(),
        &options,
    )
    .unwrap();
    let [a, b] = &reading.values[..] else {
        panic!("two columns")
    };
    assert_eq!(a.values, RawValues::Numbers(vec![Some(3_600.0), None]));
    assert_eq!(b.values, RawValues::Numbers(vec![Some(1.5), Some(120.0)]));
}

#[test]
fn word_is_a_value_even_if_it_stands_for_missing_elsewhere() {
    let schema = parse(&json!([
        {"name": "a", "kind": "date", "format": "%Y-%m-%d", "min": "2022-01-01", "max": "2023-12-31",
         "bins": 1, "special": ["NA"], "nullable": true},
        {"name": "b", "kind": "time", "format": "%H:%M", "min": "00:00", "max": "12:00", "bins": 1,
         "special": ["NA"], "nullable": true},
        {"name": "c", "kind": "time", "format": "%H:%M", "min": "00:00", "max": "12:00", "bins": 1,
         "nullable": true}
    ]))
    .unwrap();
    let mut options = ReadOptions::new("t.csv");
    options.missing.push("NA".to_owned());
    let table = read_csv(schema, "a,b,c\nNA,NA,NA\n".as_bytes(), &options)
        .unwrap()
        .table;
    assert_eq!(table.columns(), [[1], [1], [1]]);
    assert_eq!(labels(table.schema(), 2), ["00:00 to 12:00", "(missing)"]);
}

#[test]
fn missing_text_that_is_a_word_is_rejected() {
    let schema = parse(&json!([
        {"name": "a", "kind": "date", "format": "%Y-%m-%d", "min": "2022-01-01", "max": "2023-12-31",
         "bins": 1, "special": ["unknown"], "nullable": true}
    ]))
    .unwrap();
    let table = read(&schema, "a\n2022-01-01\n").unwrap();
    let mut options = WriteOptions::new("o.csv");
    options.missing = "unknown".to_owned();
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let error = write_csv(&table, Vec::new(), &mut rng, &options).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cannot stand for missing values"),
        "{error}"
    );
}

#[test]
fn invalid_columns_are_rejected_with_the_cause() {
    let with = |kind: &str, format: &str, more: Json| {
        let mut column = json!({"name": "a", "kind": kind, "format": format});
        if !more.get("relative_to").is_some_and(|_| true) && more.get("min").is_none() {
            let (min, max) = match kind {
                "date" | "datetime" => ("2020-01-01", "2020-12-31"),
                _ => ("0:00", "12:00"),
            };
            column["min"] = json!(min);
            column["max"] = json!(max);
            column["bins"] = json!(2);
        }
        column
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!([{"name": "base", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01",
                "max": "2020-12-31", "bins": 2, "special": ["never"]}, column])
    };
    let iso = "%Y-%m-%d";
    let relative = |more: Json| {
        let mut all =
            json!({"relative_to": "base", "min": 0, "max": 9, "bins": 2, "nullable": true});
        all.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        all
    };
    let months = words("Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez");
    let weekdays = words("Mo Di Mi Do Fr Sa So");
    for (columns, words) in [
        (
            with("date", "%d.%m.%y", json!({})),
            "needs `first_year` from 1 to 9900",
        ),
        (
            with("date", iso, json!({"first_year": 1950})),
            "`first_year` has no effect",
        ),
        (
            with("date", iso, json!({"midnight": "24:00"})),
            "a date column has no `midnight`",
        ),
        (
            with("date", "%d.%m.%y", json!({"first_year": 1900})),
            "`format` cannot write 2020-01-01",
        ),
        (
            with(
                "date",
                "%d.%m.%y",
                json!({"first_year": 2000, "special": ["9999-12-31"]}),
            ),
            "special value \"9999-12-31\"",
        ),
        (
            with("date", iso, json!({"special": [" x"]})),
            "special value \" x\"",
        ),
        (
            with("date", iso, json!({"special": [""]})),
            "special value \"\"",
        ),
        (
            with("date", iso, json!({"special": [7]})),
            "`special` must be a list of texts",
        ),
        (
            with("date", iso, json!({"special": ["x", "x"]})),
            "a special value appears twice",
        ),
        (
            with("date", iso, json!({"special": ["*-01-01", "*-01-01"]})),
            "a special value appears twice",
        ),
        (
            with("date", iso, json!({"unit": "hour"})),
            "`unit` must be `day`",
        ),
        (
            with(
                "date",
                "%Y-%m",
                json!({"min": 7, "max": "2020-01", "bins": 1}),
            ),
            "a month such as",
        ),
        (
            with("datetime", "%Y-%m-%d %H:%M", json!({"clock": "hour"})),
            "`clock` is for columns",
        ),
        (
            with("datetime", "%Y-%m-%d %H:%M", json!({"midnight": "00:00"})),
            "`midnight` is \"00:00\"",
        ),
        (
            with(
                "datetime",
                "%Y-%m-%d %I:%M %p",
                json!({"midnight": "24:00"}),
            ),
            "`midnight` has no effect",
        ),
        (
            with("datetime", "%Y-%m-%d %H:%M%z", json!({})),
            "`offsets` must list every offset",
        ),
        (
            with(
                "datetime",
                "%Y-%m-%d %H:%M%z",
                json!({"offsets": ["+01:00"]}),
            ),
            "\"+01:00\" is not valid",
        ),
        (
            with(
                "datetime",
                "%Y-%m-%d %H:%M%z",
                json!({"offsets": ["+0100", "+0100"]}),
            ),
            "\"+0100\" is not valid",
        ),
        (
            with("datetime", "%Y-%m-%d %H:%M", json!({"offsets": ["+0100"]})),
            "`offsets` has no effect",
        ),
        (
            with("date", iso, json!({"months": vec!["x"; 12]})),
            "`months` must have 12 names from January on",
        ),
        (
            with("date", iso, json!({"months": months})),
            "`months` has no effect: `format` has no %b or %B",
        ),
        (
            with(
                "date",
                "%d %b %Y",
                json!({"months": months, "weekdays": weekdays}),
            ),
            "`weekdays` has no effect: `format` has no %a or %A",
        ),
        (
            with("date", iso, relative(json!({"relative_to": "a"}))),
            "`relative_to` is \"a\"",
        ),
        (
            with("date", iso, relative(json!({"nullable": false}))),
            "make it `nullable` too",
        ),
        (
            with("date", iso, relative(json!({"special": ["*-01-01"]}))),
            "a day of every year",
        ),
        (
            with("date", iso, relative(json!({"min": 0.5}))),
            "0.5 is not a value",
        ),
        (
            with("date", iso, relative(json!({"min": "2020-01-01"}))),
            "`min` must be a number",
        ),
        (
            with(
                "datetime",
                "%Y-%m-%d %H:%M",
                relative(json!({"clock": "hour"})),
            ),
            "`clock` is for columns",
        ),
        (
            with(
                "datetime",
                "%Y-%m-%d %H",
                relative(json!({"unit": "day", "clock": "minute"})),
            ),
            "`clock` is for columns",
        ),
        (
            with("time", "%H:%M", json!({"min": "07:00:30"})),
            "either `edges`|`min` must be",
        ),
        (
            with(
                "time",
                "%H:%M",
                json!({"min": "07:00:30", "max": "08:00", "bins": 1}),
            ),
            "`min` must be a time such as",
        ),
        (
            with("time", "%H:%M", json!({"min": 7, "max": 8, "bins": 1})),
            "`min` must be a time",
        ),
        (
            with(
                "time",
                "%H:%M",
                json!({"min": "07:00", "max": "24:00", "bins": 1}),
            ),
            "`format` cannot write 24:00:00",
        ),
        (
            with("time", "%H:%M", json!({"midnight": "24:00"})),
            "`format` cannot write 00:00:00",
        ),
        (
            with(
                "duration",
                "%M:%S",
                json!({"min": "0:00", "max": "99999999:00", "bins": 1}),
            ),
            "`format` cannot write 99999999:00:59",
        ),
        (
            with("duration", "%M:%S", json!({"unit": "hour"})),
            "a duration column has no `unit`",
        ),
        (with("duration", "%I:%M", json!({})), "must have each of"),
    ] {
        let error = parse(&columns).unwrap_err();
        let known = words.split('|').any(|words| error.contains(words));
        assert!(known, "{columns}: {error}");
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn months_with_own_names_round_trip() {
    let months = words("janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.");
    let schema = parse(
        &json!([{"name": "seen", "kind": "date", "format": "%-d %b %Y", "months": months,
        "min": "2024-01-01", "max": "2024-12-31", "bins": 12, "digits": 31}]),
    );
    let csv = "seen\n1 févr. 2024\n31 déc. 2024\n15 mars 2024\n";
    let table = read(&schema.unwrap(), csv).unwrap();
    assert_eq!(write(&table, 1), csv);
}
