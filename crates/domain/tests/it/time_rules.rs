//! Constraints between dates, and ages: tables that break them are rejected, and drawn records satisfy them.
#![allow(clippy::unwrap_used)]

use fhaim_domain::{
    BrokenConstraint, OutOfRange, ReadOptions, Schema, Table, WriteOptions, read_csv, write_csv,
};
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

fn parse(columns: &Json, constraints: &Json) -> Result<Schema, String> {
    let schema = json!({"name": "t", "columns": columns, "constraints": constraints});
    Schema::from_json("s.json", schema.to_string().as_bytes()).map_err(|error| error.to_string())
}

/// Returns the number of records that break each constraint.
fn broken(schema: &Schema, csv: &str) -> Vec<u64> {
    let options = ReadOptions {
        broken: BrokenConstraint::Count,
        ..ReadOptions::new("t.csv")
    };
    read_csv(schema.clone(), csv.as_bytes(), &options)
        .unwrap()
        .broken
}

fn write(table: &Table, seed: u64) -> String {
    let mut csv = Vec::new();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    write_csv(table, &mut csv, &mut rng, &WriteOptions::new("o.csv")).unwrap();
    String::from_utf8(csv).unwrap()
}

fn date(name: &str) -> Json {
    json!({"name": name, "kind": "date", "format": "%Y-%m-%d", "min": "1900-01-01", "max": "2029-12-31",
        "bins": 13, "digits": 100, "nullable": true, "special": ["9999-12-31", "unknown"]})
}

fn datetime(name: &str, format: &str) -> Json {
    json!({"name": name, "kind": "datetime", "format": format, "min": "1900-01-01", "max": "2029-12-31",
        "bins": 13, "digits": 100, "nullable": true})
}

fn years(name: &str, min: i64, max: i64) -> Json {
    json!({"name": name, "kind": "number", "integer": true, "min": min, "max": max, "bins": 2, "digits": 10,
        "nullable": true})
}

/// Checks which pairs of texts satisfy `at_most`.
fn check_pairs(low: &Json, high: &Json, pairs: &[(&str, &str, bool)]) {
    let (mut low, mut high) = (low.clone(), high.clone());
    (low["name"], high["name"]) = ("low".into(), "high".into());
    let schema = parse(&json!([low, high]), &json!([{"at_most": ["low", "high"]}])).unwrap();
    for &(one, other, holds) in pairs {
        let count = broken(&schema, &format!("low,high\n{one},{other}\n"));
        assert_eq!(count == [0], holds, "{one} {other}");
    }
}

#[test]
fn dates_beyond_the_calendar_are_not_drawn_if_there_are_rules() {
    let columns = json!([
        {"name": "start", "kind": "date", "format": "%Y-%m-%d", "min": "2022-01-01", "max": "2023-12-31", "bins": 1,
         "special": ["9999-12-31"]},
        {"name": "end", "kind": "date", "format": "%Y-%m-%d", "relative_to": "start", "min": 0, "max": 9, "bins": 10,
         "special": ["9999-12-31"]},
        {"name": "open", "kind": "categorical", "categories": ["no", "yes"]}
    ]);
    let rule = json!([{"implies": {"when": {"end": ["9999-12-31"]}, "then": {"open": ["yes"]}}}]);
    let schema = parse(&columns, &rule).unwrap();
    let allows = |codes: [u32; 3]| schema.allows(&|attribute| codes[attribute]);
    assert!(allows([0, 9, 0]) && allows([0, 0, 0]));
    assert!(allows([1, 10, 1]) && !allows([1, 10, 0]));
    // Both would be written as 9999-12-31.
    for units in [0, 5] {
        assert!(!allows([1, units, 0]), "{units}");
    }
    let free = parse(&columns, &json!([])).unwrap();
    assert!(free.allows(&|attribute| [1, 5, 0][attribute]));
}

#[test]
fn special_moment_of_a_special_day_is_refused() {
    let column = |special: &Json| {
        json!([{"name": "end", "kind": "datetime", "format": "%Y-%m-%d %H:%M", "min": "2022-01-01", "max": "2023-12-31",
            "bins": 1, "special": special}])
    };
    let error = parse(
        &column(&json!(["9999-12-31", "9999-12-31 23:59"])),
        &json!([]),
    )
    .unwrap_err();
    assert!(
        error.contains("\"9999-12-31 23:59\" is a moment of a day"),
        "{error}"
    );
    let texts = json!(["9999-12-31 00:00", "9999-12-31 23:59"]);
    assert!(parse(&column(&texts), &json!([])).is_ok());
}

#[test]
fn dates_are_compared_by_day() {
    let seen = datetime("", "%Y-%m-%d %H:%M");
    check_pairs(
        &date(""),
        &date(""),
        &[
            ("2024-01-31", "2024-01-31", true),
            ("2024-02-01", "2024-01-31", false),
            ("2024-02-01", "9999-12-31", true),
            ("9999-12-31", "2024-02-01", false),
            ("unknown", "2024-02-01", true),
            ("", "2024-02-01", true),
        ],
    );
    check_pairs(
        &seen,
        &date(""),
        &[
            ("2024-01-31 23:59", "2024-01-31", true),
            ("2024-02-01 00:00", "2024-01-31", false),
        ],
    );
    check_pairs(
        &date(""),
        &seen,
        &[("2024-01-31", "2024-01-31 00:00", true)],
    );
}

#[test]
fn midnight_belongs_to_the_day_before_it() {
    let mut night = datetime("", "%Y-%m-%d %H:%M");
    night["midnight"] = "24:00".into();
    check_pairs(
        &night,
        &date(""),
        &[
            ("2024-01-31 24:00", "2024-01-31", true),
            ("2024-02-01 00:00", "2024-01-31", true),
            ("2024-02-01 00:01", "2024-01-31", false),
        ],
    );
}

#[test]
fn months_are_compared_if_a_column_has_no_days() {
    let month =
        json!({"kind": "date", "format": "%b %Y", "min": "2000-01", "max": "2029-12", "bins": 30});
    check_pairs(
        &date(""),
        &month,
        &[
            ("2024-01-31", "Jan 2024", true),
            ("2024-02-01", "Jan 2024", false),
        ],
    );
    check_pairs(&month, &date(""), &[("Jan 2024", "2024-01-01", true)]);
}

#[test]
fn datetimes_are_compared_to_the_nanosecond() {
    let seen = datetime("", "%Y-%m-%d %H:%M:%S%.f");
    check_pairs(
        &seen,
        &seen,
        &[
            (
                "2024-01-31 10:00:00.123456789",
                "2024-01-31 10:00:00.123456789",
                true,
            ),
            (
                "2024-01-31 10:00:00.123456789",
                "2024-01-31 10:00:00.123456788",
                false,
            ),
            ("1900-01-31 10:00:00.001", "1900-01-31 10:00:00", false),
        ],
    );
}

#[test]
fn datetimes_with_offsets_are_compared_in_universal_time() {
    let mut seen = datetime("", "%Y-%m-%d %H:%M%:z");
    seen["offsets"] = json!(["+02:00", "+01:00"]);
    check_pairs(
        &seen,
        &seen,
        &[
            ("2024-10-27 02:50+02:00", "2024-10-27 02:10+01:00", true),
            ("2024-10-27 02:10+01:00", "2024-10-27 02:50+02:00", false),
        ],
    );
    check_pairs(
        &seen,
        &datetime("", "%Y-%m-%d %H:%MZ"),
        &[
            ("2024-10-27 02:50+02:00", "2024-10-27 00:50Z", true),
            ("2024-10-27 02:50+02:00", "2024-10-27 00:49Z", false),
        ],
    );
    // A column without offsets has its own clock.
    check_pairs(
        &seen,
        &datetime("", "%Y-%m-%d %H:%M"),
        &[("2024-10-27 02:50+02:00", "2024-10-27 02:49", false)],
    );
}

/// Checks which rows satisfy an age. `at` is the column of the time, or a year; `named` is the key `at` of the rule.
fn check_age(born: &Json, at: &Json, named: &Json, rows: &[(&str, bool)]) {
    let rule = json!([{"age": {"age": "age", "born": "born", "at": named}}]);
    let age = years("age", 0, 119);
    let (columns, header) = match at.is_number() {
        true => (json!([age, born]), "age,born"),
        false => (json!([age, born, at]), "age,born,at"),
    };
    let schema = parse(&columns, &rule).unwrap();
    for &(row, holds) in rows {
        let count = broken(&schema, &format!("{header}\n{row}\n"));
        assert_eq!(count == [0], holds, "{row}");
    }
}

#[test]
fn age_at_the_end_of_a_year_is_the_difference_of_the_years() {
    let check = |born: Json, at: Json, rows: &[(&str, bool)]| {
        let named = at["name"].as_str().map_or(at.clone(), Json::from);
        check_age(&born, &at, &json!({"end_of": named}), rows);
    };
    let year = years("born", 1900, 2024);
    check(
        year.clone(),
        json!(2020),
        &[
            ("40,1980", true),
            ("39,1980", false),
            ("41,1980", false),
            (",1980", true),
        ],
    );
    check(
        date("born"),
        json!(2020),
        &[
            ("40,1980-12-31", true),
            ("40,1980-01-01", true),
            ("39,1980-12-31", false),
            ("40,unknown", true),
        ],
    );
    check(
        year,
        date("at"),
        &[
            ("40,1980,2020-01-01", true),
            ("40,1980,2020-12-31", true),
            ("39,1980,2020-01-01", false),
            ("39,1980,", true),
        ],
    );
    check(
        date("born"),
        datetime("at", "%Y-%m-%d %H:%M"),
        &[
            ("40,1980-06-15,2020-01-01 00:00", true),
            ("39,1980-06-15,2020-01-01 00:00", false),
        ],
    );
}

#[test]
fn age_is_compared_with_dates_and_years() {
    let check = |born: Json, at: Json, rows: &[(&str, bool)]| {
        let named = at["name"].as_str().map_or(at.clone(), Json::from);
        check_age(&born, &at, &named, rows);
    };
    let (at, seen) = (date("at"), datetime("at", "%Y-%m-%d %H:%M"));
    check(
        date("born"),
        at.clone(),
        &[
            ("40,1980-06-15,2020-06-15", true),
            ("40,1980-06-15,2020-06-14", false),
            ("39,1980-06-15,2020-06-14", true),
            ("22,2000-02-29,2023-02-28", true),
            ("23,2000-02-29,2023-03-01", true),
            ("40,,2020-06-14", true),
            ("40,unknown,2020-06-14", true),
            (",1980-06-15,2020-06-14", true),
        ],
    );
    check(
        date("born"),
        seen,
        &[("40,1980-06-15,2020-06-15 00:00", true)],
    );
    check(
        years("born", 1900, 2024),
        at,
        &[
            ("40,1980,2020-01-01", true),
            ("39,1980,2020-12-31", true),
            ("41,1980,2020-12-31", false),
            ("38,1980,2020-12-31", false),
        ],
    );
    check(
        date("born"),
        json!(2020),
        &[("40,1980-06-15", true), ("38,1980-06-15", false)],
    );
    check(
        years("born", 1900, 2024),
        json!(2020),
        &[("39,1980", true), ("41,1980", false)],
    );
}

#[test]
fn invalid_rules_of_dates_are_rejected_with_the_reason() {
    let mut single = years("age", 0, 99);
    single["digits"] = 50.into();
    let mut stepped = years("fives", 0, 95);
    stepped["step"] = 5.into();
    let decimal =
        json!({"name": "decimal", "kind": "number", "decimals": 1, "min": 0, "max": 9, "bins": 1});
    let time = json!({"name": "time", "kind": "time", "format": "%H:%M", "min": "00:00", "max": "23:59", "bins": 1});
    let columns = json!([
        date("born"), date("at"), single, years("other", 0, 99), years("year", 1900, 2024),
        years("sum", 0, 99), years("part", 0, 99), stepped, decimal, time,
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
    ]);
    let age =
        |age: &str, born: &str, at: Json| json!({"age": {"age": age, "born": born, "at": at}});
    let right = age("age", "born", "at".into());
    let sum = json!({"sum": {"total": "sum", "parts": ["part", "age"]}});
    let whole = "`age` must be a column of kind `number` with whole numbers";
    let dates = "`born` must be a column of kind `date` or `datetime`, or one of kind `number`";
    let at = "`at` must be a column of kind `date` or `datetime`, or a year";
    let other = "the column of an age cannot be in another constraint of numbers";
    let kinds = "both may also be of kind `date` or `datetime`";
    for (rules, reason) in [
        (json!([{"at_most": ["born", "age"]}]), kinds),
        (json!([{"at_most": ["born", "sex"]}]), kinds),
        (json!([{"at_most": ["time", "at"]}]), kinds),
        (json!([{"at_most": ["time", "time"]}]), kinds),
        (
            json!([{"at_most": ["born", "born"]}]),
            "names a column twice",
        ),
        (json!([{"at_most": ["born", "nobody"]}]), "no such column"),
        (json!([age("born", "at", 2024.into())]), whole),
        (json!([age("fives", "at", 2024.into())]), whole),
        (json!([age("decimal", "at", 2024.into())]), whole),
        (json!([age("age", "sex", 2024.into())]), dates),
        (json!([age("age", "fives", 2024.into())]), dates),
        (json!([age("age", "born", "year".into())]), at),
        (json!([age("age", "born", "sex".into())]), at),
        (json!([age("age", "born", json!({"end_of": "sex"}))]), at),
        (
            json!([age("age", "born", json!({"end_of": 10_000}))]),
            "from 1 to 9999",
        ),
        (
            json!([age("age", "born", json!({"end_of": "born"}))]),
            "names a column twice",
        ),
        (
            json!([age(
                "age",
                "born",
                json!({"end_of": "at", "start_of": "at"})
            )]),
            "AgeAt",
        ),
        (json!([age("age", "born", 0.into())]), "from 1 to 9999"),
        (json!([age("age", "born", 10_000.into())]), "from 1 to 9999"),
        (
            json!([age("age", "born", "born".into())]),
            "names a column twice",
        ),
        (
            json!([age("age", "age", "at".into())]),
            "names a column twice",
        ),
        (json!([age("age", "nobody", "at".into())]), "no such column"),
        (json!([right, age("age", "at", 2024.into())]), other),
        (json!([right, {"at_most": ["age", "other"]}]), other),
        (json!([{"at_most": ["other", "age"]}, right]), other),
        (json!([right, sum]), other),
        (json!([sum, right]), other),
        (json!([right, age("other", "age", 2024.into())]), other),
        (
            json!([sum, age("other", "part", 2024.into())]),
            "a column of a sum cannot be in another constraint of numbers",
        ),
    ] {
        let error = parse(&columns, &rules).unwrap_err();
        assert!(error.contains(reason), "{rules}: {error}");
    }
    let never = |age: &str| json!([{"never": {"age": age, "sex": "f"}}, right]);
    let error = parse(&columns, &never("17")).unwrap_err();
    assert!(
        error.contains("an age follows from dates: name only labels of its bins"),
        "{error}"
    );
    assert!(parse(&columns, &never("0 to 49")).is_ok());
    let implies = json!([{"implies": {"when": {"age": ["17"]}, "then": {"sex": ["f"]}}}, right]);
    let error = parse(&columns, &implies).unwrap_err();
    assert!(
        error.contains("an age follows from dates: name only labels of its bins"),
        "{error}"
    );
    let shared = [
        age("age", "year", "at".into()),
        age("other", "year", 2024.into()),
        json!({"at_most": ["year", "sum"]}),
    ];
    assert!(parse(&columns, &json!(shared)).is_ok());
}

/// Returns the texts of a column after records with the same codes are written.
fn drawn(schema: &Schema, codes: &[u32], column: usize, records: usize) -> Vec<String> {
    assert!(schema.allows(&|attribute| codes[attribute]));
    let columns = codes.iter().map(|&code| vec![code; records]).collect();
    let text = write(&Table::new(schema.clone(), columns).unwrap(), 1);
    assert!(
        broken(schema, &text).iter().all(|&count| count == 0),
        "{text}"
    );
    let lines = text.lines().skip(1);
    lines
        .map(|line| line.split(',').nth(column).unwrap().to_owned())
        .collect()
}

/// One draw in 720 satisfies this chain. Its dates stay spread over the year.
#[test]
fn long_chain_of_dates_is_not_set_to_bin_edges() {
    let column = |n: usize| {
        json!({"name": format!("c{n}"), "kind": "date", "format": "%Y-%m-%d", "min": "2023-01-01",
            "max": "2024-12-31", "bins": 2})
    };
    let columns: Vec<Json> = (0..6).map(column).collect();
    let rules: Vec<Json> = (0..5)
        .map(|n| json!({"at_most": [format!("c{n}"), format!("c{}", n + 1)]}))
        .collect();
    let schema = parse(&columns.into(), &rules.into()).unwrap();
    let early = |column: usize| {
        let dates = drawn(&schema, &[0; 6], column, 1_000);
        dates
            .iter()
            .filter(|date| date.as_str() < "2023-07-01")
            .count()
    };
    let early: Vec<usize> = (0..6).map(early).collect();
    assert!(early.is_sorted_by(|one, other| one >= other), "{early:?}");
    assert!(
        early[0] < 999 && early[0] > 900 && early[5] < 150,
        "{early:?}"
    );
}

#[test]
fn age_keeps_its_digit_if_the_dates_allow_it() {
    let columns = json!([
        {"name": "born", "kind": "date", "format": "%Y-%m-%d", "min": "1900-01-01", "max": "1999-12-31", "bins": 10},
        years("age", 0, 119), date("at"),
    ]);
    let rule = json!([{"age": {"age": "age", "born": "born", "at": "at"}}]);
    let schema = parse(&columns, &rule).unwrap();
    let row = "born,age,at\n1961-03-04,57,2018-05-06\n";
    let table = read_csv(schema.clone(), row.as_bytes(), &ReadOptions::new("t.csv"))
        .unwrap()
        .table;
    let codes: Vec<u32> = table.columns().iter().map(|column| column[0]).collect();
    let ages = drawn(&schema, &codes, 1, 200);
    let label = schema.columns()[1].label(codes[1]);
    assert_eq!(label, "0 to 59");
    assert!(
        ages.iter()
            .all(|age| (54..60).contains(&age.parse::<i32>().unwrap())),
        "{ages:?}"
    );
    let born = drawn(&schema, &codes, 0, 200);
    let different: std::collections::BTreeSet<String> = born.into_iter().collect();
    assert!(different.len() > 150, "{different:?}");
}

#[test]
fn date_relative_to_a_missing_one_is_missing() {
    let columns = json!([
        date("base"),
        {"name": "later", "kind": "date", "format": "%Y-%m-%d", "relative_to": "base", "min": 0, "max": 9,
         "bins": 1, "nullable": true},
        years("fee", 0, 99),
    ]);
    let schema = parse(&columns, &json!([{"missing_together": ["later", "fee"]}])).unwrap();
    let null = |attribute: usize| schema.columns()[attribute].null_code().unwrap();
    let word = (0..null(0))
        .find(|&code| schema.columns()[0].label(code) == "unknown")
        .unwrap();
    for base in [word, null(0)] {
        assert!(!schema.allows(&|attribute| [base, 0, 0, 0, 0][attribute]));
        assert!(schema.allows(&|attribute| [base, 0, 0, null(3), 0][attribute]));
    }
    assert!(schema.allows(&|attribute| [0, 0, 0, 0, 0][attribute]));
}

/// A random schema and the words of its columns, which have no time of day.
struct Random {
    rng: ChaCha8Rng,
    columns: Vec<Json>,
}

impl Random {
    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.rng.random_range(0..of.len())]
    }

    fn name(&self) -> String {
        format!("c{}", self.columns.len())
    }

    fn is_dated(column: &Json) -> bool {
        ["date", "datetime"].contains(&column["kind"].as_str().unwrap())
    }

    /// Adds the keys of a datetime to a column.
    fn clock(&mut self, column: &mut Json) {
        let format = self.one(&[
            "%Y-%m-%d %H:%M",
            "%Y-%m-%d %I:%M:%S %p",
            "%Y-%m-%dT%H:%M:%S%.3f",
            "%Y-%m-%d %H:%MZ",
            "%Y-%m-%d %H:%M:%S%:z",
            "%d.%m.%Y %H:00",
        ]);
        column["format"] = format.into();
        if format.ends_with(":z") {
            column["offsets"] = json!(["+01:00", "-03:30", "Z"]);
        }
        if format.contains("%H") && self.rng.random_bool(0.3) {
            column["midnight"] = "24:00".into();
        }
        let units = match format.ends_with("00") {
            true => vec!["hour", "day"],
            false => vec!["minute", "hour", "day"],
        };
        column["unit"] = self.one(&units).into();
    }

    fn special(&mut self, all: &[&str]) -> Vec<String> {
        let mut chosen = Vec::new();
        for value in all {
            if self.rng.random_bool(0.3) {
                chosen.push((*value).to_owned());
            }
        }
        chosen
    }

    fn absolute(&mut self) {
        let mut column = json!({"name": self.name(), "nullable": self.rng.random_bool(0.5)});
        let mut special = vec![
            "9999-12-31",
            "1900-01-01",
            "*-01-01",
            "2019-07-01",
            "unknown",
        ];
        if self.rng.random_bool(0.5) {
            let format = self.one(&["%Y-%m-%d", "%b %Y", "%-d.%-m.%y"]);
            column["kind"] = "date".into();
            column["format"] = format.into();
            if format.ends_with("%y") {
                column["first_year"] = 1950.into();
                special = vec!["2020-02-29", "*-01-01", "unknown"];
            }
            if format == "%b %Y" {
                special = vec!["9999-12", "1900-01", "*-01", "unknown"];
            }
        } else {
            column["kind"] = "datetime".into();
            self.clock(&mut column);
            if column["format"] == "%Y-%m-%d %H:%M" {
                // A day and a moment of it are not special together: the day may be drawn with that time.
                special[0] = self.one(&["9999-12-31", "9999-12-31 23:59"]);
            }
        }
        let first = self.rng.random_range(2015..2020);
        column["min"] = format!("{first}-0{}", self.rng.random_range(1..9)).into();
        let last = self.rng.random_range(first + 1..2022);
        column["max"] = format!("{last}-11").into();
        if column["format"] != "%b %Y" {
            column["min"] = format!("{}-05", column["min"].as_str().unwrap()).into();
            column["max"] = format!("{}-15", column["max"].as_str().unwrap()).into();
        }
        column["bins"] = self.rng.random_range(1..4).into();
        column["digits"] = [1, 6, 40, 400][self.rng.random_range(0..4)].into();
        column["special"] = self.special(&special).into();
        self.columns.push(column);
    }

    fn lapse(&mut self) {
        let dated: Vec<usize> = (0..self.columns.len())
            .filter(|&c| Self::is_dated(&self.columns[c]))
            .collect();
        let base = dated[self.rng.random_range(0..dated.len())];
        let mut column =
            json!({"name": self.name(), "relative_to": format!("c{base}"), "nullable": true});
        let width: i64;
        if self.rng.random_bool(0.5) {
            let format = self.one(&["%d/%m/%Y", "%Y-%m"]);
            column["kind"] = "date".into();
            column["format"] = format.into();
            width = if format == "%Y-%m" { 4 } else { 60 };
        } else {
            column["kind"] = "datetime".into();
            self.clock(&mut column);
            width = match column["unit"].as_str().unwrap() {
                "minute" => 3_000,
                "hour" => 100,
                _ => 40,
            };
            if column["unit"] == "day" && self.rng.random_bool(0.5) {
                let hour_only = column["format"].as_str().unwrap().ends_with("00");
                let clock = if hour_only {
                    "hour"
                } else {
                    self.one(&["hour", "minute"])
                };
                column["clock"] = clock.into();
            }
        }
        let special = match column["format"] == "%Y-%m" {
            true => ["9999-12", "open"],
            false => ["9999-12-31", "open"],
        };
        column["special"] = self.special(&special).into();
        let min = self.rng.random_range(-width..width / 2);
        column["min"] = min.into();
        column["max"] = (min + self.rng.random_range(3..width + 3)).into();
        column["bins"] = self.rng.random_range(1..4).into();
        column["digits"] = [1, 6][self.rng.random_range(0..2)].into();
        self.columns.push(column);
    }

    fn number(&mut self, name: &str, (min, max): (i64, i64)) {
        let mut column = json!({"name": format!("{name}{}", self.columns.len()), "kind": "number", "integer": true,
            "min": min, "max": max, "nullable": self.rng.random_bool(0.5)});
        column["bins"] = self.rng.random_range(1..4).into();
        column["digits"] = [1, 2, 10][self.rng.random_range(0..3)].into();
        column["special"] = self.special(&["unknown"]).into();
        self.columns.push(column);
    }

    /// Returns a random schema with its constraints and without them.
    fn schemas(seed: u64, most_rules: usize) -> (Schema, Schema) {
        let rng = ChaCha8Rng::seed_from_u64(seed);
        let mut random = Self {
            rng,
            columns: Vec::new(),
        };
        for _ in 0..random.rng.random_range(2..4) {
            random.absolute();
        }
        for _ in 0..random.rng.random_range(0..4) {
            random.lapse();
        }
        let dated = random.columns.len();
        random.number("born", (2013, 2019));
        random.number("seen", (2015, 2022));
        random.number("age", (0, 6));
        random.number("age", (-1, 9));
        let mut rules = Vec::new();
        for _ in 0..random.rng.random_range(1..=most_rules) {
            let low = random.rng.random_range(0..dated);
            let high = (low + random.rng.random_range(1..dated)) % dated;
            rules.push(json!({"at_most": [format!("c{low}"), format!("c{high}")]}));
        }
        for age in [dated + 2, dated + 3] {
            if rules.len() >= most_rules || random.rng.random_bool(0.5) {
                continue;
            }
            let one = random.rng.random_range(0..dated);
            let other = (one + random.rng.random_range(1..dated)) % dated;
            let born = match random.rng.random_bool(0.5) {
                true => format!("born{dated}"),
                false => format!("c{one}"),
            };
            let at = match random.rng.random_bool(0.3) {
                true => json!(2020),
                false => json!(format!("c{other}")),
            };
            let at = match random.rng.random_bool(0.5) {
                true => json!({"end_of": at}),
                false => at,
            };
            rules.push(json!({"age": {"age": format!("age{age}"), "born": born, "at": at}}));
        }
        if rules.len() < most_rules && random.rng.random_bool(0.5) {
            let numbers = [format!("born{dated}"), format!("seen{}", dated + 1)];
            rules.push(json!({"at_most": numbers}));
        }
        let columns = Json::from(random.columns);
        let schema =
            |rules: Json| parse(&columns, &rules).unwrap_or_else(|e| panic!("{e}: {columns:#}"));
        (schema(rules.into()), schema(json!([])))
    }
}

/// Draws any codes.
fn draw_any(schema: &Schema, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let sizes = schema.domain().sizes().iter();
    sizes
        .map(|&size| rng.random_range(0..size as u32))
        .collect()
}

/// Draws codes of a record that a table may have.
fn draw_codes(schema: &Schema, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut codes = draw_any(schema, rng);
    let forms: Json = serde_json::from_str(&schema.to_json()).unwrap();
    let label =
        |codes: &[u32], attribute: usize| schema.columns()[attribute].label(codes[attribute]);
    for (field, form) in schema
        .fields()
        .iter()
        .zip(forms["columns"].as_array().unwrap())
    {
        let first = field.attributes().start;
        let own = label(&codes, first);
        let is_special = [
            "unknown",
            "open",
            "9999-12-31",
            "9999-12",
            "9999-12-31 23:59",
        ]
        .contains(&own.as_str());
        let base = schema
            .fields()
            .iter()
            .find(|base| form["relative_to"] == base.name());
        if let Some(base) = base.filter(|_| !is_special) {
            // Nothing is later than the last day.
            let lost = [
                "(missing)",
                "unknown",
                "open",
                "9999-12-31",
                "9999-12",
                "9999-12-31 23:59",
            ];
            if lost.contains(&label(&codes, base.attributes().start).as_str()) {
                codes[first] = schema.columns()[first].null_code().unwrap();
            }
        }
        let missing = schema.columns()[first].null_code() == Some(codes[first]);
        let own = label(&codes, first);
        let word = ["unknown", "open", "9999-12-31 23:59"].contains(&own.as_str());
        for attribute in field.attributes().skip(1) {
            let column = &schema.columns()[attribute];
            let mut digits = schema.domain().digits().iter();
            if let Some(digit) = digits.find(|digit| digit.fine() == attribute) {
                codes[attribute] %= digit.parts()[codes[digit.coarse()] as usize];
                continue;
            }
            let wanted = |code: u32| match column.label(code).as_str() {
                "(missing)" => missing,
                "none" => word && !missing,
                _ => !word && !missing,
            };
            while !wanted(codes[attribute]) {
                codes[attribute] = (codes[attribute] + 1) % column.size() as u32;
            }
        }
    }
    codes
}

/// Draws records that the schema allows. Returns them with the number of draws.
fn allowed(
    schema: &Schema,
    rng: &mut ChaCha8Rng,
    draw: impl Fn(&Schema, &mut ChaCha8Rng) -> Vec<u32>,
) -> Option<Table> {
    let mut columns = vec![Vec::new(); schema.columns().len()];
    for _ in 0..100 {
        let codes = draw(schema, rng);
        if schema.allows(&|attribute| codes[attribute]) {
            columns
                .iter_mut()
                .zip(codes)
                .for_each(|(column, code)| column.push(code));
        }
    }
    (!columns[0].is_empty()).then(|| Table::new(schema.clone(), columns).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Allowed records are written so that they satisfy all rules and are read as the same codes.
    #[test]
    fn allowed_records_of_random_schemas_satisfy_their_rules(seed: u64) {
        let (schema, _) = Random::schemas(seed, 5);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let Some(table) = allowed(&schema, &mut rng, draw_codes) else {
            return Ok(());
        };
        let text = write(&table, seed);
        let again = read_csv(schema.clone(), text.as_bytes(), &ReadOptions::new("o.csv"));
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{}", schema.to_json())))?.table;
        for (attribute, column) in schema.columns().iter().enumerate() {
            // The dates determine the digit of an age.
            if column.name().starts_with("age") && column.name().ends_with("(digit)") {
                continue;
            }
            let pairs = table.column(attribute).iter().zip(again.column(attribute));
            for ((one, two), line) in pairs.zip(text.lines().skip(1)) {
                let (one, two) = (column.label(*one), column.label(*two));
                prop_assert_eq!(one, two, "{}: {}\n{}", column.name(), line, schema.to_json());
            }
        }
    }

    /// A model may draw any codes.
    #[test]
    fn any_allowed_codes_are_written_as_records_that_satisfy_the_rules(seed: u64) {
        let (schema, _) = Random::schemas(seed, 5);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let Some(table) = allowed(&schema, &mut rng, draw_any) else {
            return Ok(());
        };
        let text = write(&table, seed);
        let options = ReadOptions {
            broken: BrokenConstraint::Count,
            out_of_range: OutOfRange::Clamp,
            ..ReadOptions::new("o.csv")
        };
        let again = read_csv(schema.clone(), text.as_bytes(), &options).unwrap();
        prop_assert_eq!(again.broken.iter().sum::<u64>(), 0, "{}\n{}", text, schema.to_json());
    }

    /// Codes that are not allowed have no values that satisfy the rules.
    #[test]
    fn disallowed_codes_of_random_schemas_have_no_valid_values(seed: u64) {
        let (schema, free) = Random::schemas(seed, 2);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        for _ in 0..20 {
            let codes = draw_codes(&schema, &mut rng);
            if schema.allows(&|attribute| codes[attribute]) {
                continue;
            }
            let columns = codes.iter().map(|&code| vec![code; 200]).collect();
            let text = write(&Table::new(free.clone(), columns).unwrap(), seed);
            let count = broken(&schema, &text).iter().sum::<u64>();
            prop_assert!(count >= 200, "{}\n{}", text, schema.to_json());
        }
    }
}
