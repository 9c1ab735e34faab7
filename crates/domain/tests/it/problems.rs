//! Tables with several problems: all of them are reported together, in bounded memory.
#![allow(clippy::unwrap_used)]

use std::{
    cell::Cell,
    io::{self, Read},
};

use fhaim_domain::{
    CellProblem, Error, NearUnique, ReadOptions, Schema, UnlistedColumn, near_unique_lists,
    read_csv, stream_csv,
};
use serde_json::json;

fn schema() -> Schema {
    let schema = json!({"name": "t", "columns": [
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10, "digits": 10},
        {"name": "sex", "kind": "categorical", "categories": ["f", "m"]},
        {"name": "came", "kind": "date", "format": "%Y-%m-%d", "min": "2020-01-01",
         "max": "2024-12-31", "bins": 5},
        {"name": "left", "kind": "date", "format": "%Y-%m-%d", "relative_to": "came",
         "edges": [0, 10, 400]},
    ], "constraints": [{"never": {"sex": "m", "age": "7"}}]});
    Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap()
}

fn refused(csv: &str) -> String {
    let options = ReadOptions::new("t.csv");
    let read = read_csv(schema(), csv.as_bytes(), &options).map(drop);
    let read = read.unwrap_err().to_string();
    let taken = Cell::new(0);
    let streamed = stream_csv::<Error>(&schema(), csv.as_bytes(), &options, |_| {
        taken.set(taken.get() + 1);
        Ok(())
    });
    assert_eq!(streamed.unwrap_err().to_string(), read);
    assert_eq!(taken.get(), 0);
    read
}

const HEADER: &str = "age,sex,came,left";
const GOOD: &str = "47,f,2021-01-01,2021-01-03";

#[test]
fn all_kinds_of_problems_are_reported_together() {
    let lines = [
        HEADER,
        "x,f,2021-01-01,2021-01-03",
        GOOD,
        "100,q,2021-01-01,2021-01-03",
        "y,f,2021-01-01,2020-01-03",
        "7,m,2021-01-01,2021-01-03",
        "47,f",
        "z,f,2021-01-01,2021-01-03",
        "w,f,2021-01-01,2021-01-03",
    ];
    assert_eq!(
        refused(&lines.join("\n")),
        "t.csv: the table has 6 kinds of problems:\n  \
         row 1 (line 2), column \"age\": \"x\" is not a number; again in row 4 (line 5) and row 7 (line 8), 4 times in all\n  \
         row 3 (line 4), column \"age\": \"100\" is outside the schema's range from 0 to 99\n  \
         row 3 (line 4), column \"sex\": \"q\" is not one of the schema's categories, and the schema declares no `other` category\n  \
         row 4 (line 5), column \"left\": \"2020-01-03\" is -364 days after the column that it is relative to, but the schema allows 0 to 400\n  \
         row 5 (line 6) breaks a constraint of the schema: no record has \"age\" \"7\" with \"sex\" \"m\"\n  \
         row 6 (line 7): 2 fields where the header has 4"
    );
}

#[test]
fn total_is_reported_without_the_problems_of_its_cells() {
    let mut options = ReadOptions::new("t.csv");
    options.dialect.refuse_total = true;
    let total = "Total,,,";
    let read = |lines: &[&str]| {
        let read = read_csv(schema(), lines.join("\n").as_bytes(), &options);
        read.map(drop).unwrap_err().to_string()
    };
    assert_eq!(
        read(&[HEADER, GOOD, total]),
        "t.csv: row 2 (line 3), the last one, begins with \"total\": it looks like a total of the rows above, which is not \
         a record"
    );
    let error = read(&[HEADER, "x,f,2021-01-01,2021-01-03", GOOD, total]);
    assert!(error.contains("\"x\" is not a number\n"), "{error}");
    assert!(!error.contains("\"sex\""), "{error}");
}

#[test]
fn single_kind_of_problem_is_one_line() {
    let bad = "47,x,2021-01-01,2021-01-03";
    let one = refused(&[HEADER, GOOD, bad].join("\n"));
    assert!(one.starts_with("t.csv: row 2 (line 3), column \"sex\": \"x\" is not one of"));
    assert!(one.ends_with("no `other` category"), "{one}");
    let two = refused(&[HEADER, bad, GOOD, bad].join("\n"));
    assert!(
        two.ends_with("`other` category; again in row 3 (line 4)"),
        "{two}"
    );
    let three = refused(&[HEADER, bad, bad, bad].join("\n"));
    assert!(
        three.ends_with("; again in row 2 (line 3) and row 3 (line 4)"),
        "{three}"
    );
}

#[test]
fn refused_date_is_not_reported_again_in_columns_relative_to_it() {
    let bad = "47,f,01.01.2021,2021-01-03";
    let error = refused(&[HEADER, bad].join("\n"));
    assert!(
        error.starts_with("t.csv: row 1 (line 2), column \"came\""),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn missing_and_unlisted_columns_are_reported_with_the_cells_of_the_others() {
    let error = refused("id,age,weight,sex\n1,x,2,f\n");
    assert_eq!(
        error,
        "t.csv: the table has 5 kinds of problems:\n  \
         the schema's column \"came\" is missing from the header\n  \
         the schema's column \"left\" is missing from the header\n  \
         column \"id\" is not in the schema\n  \
         column \"weight\" is not in the schema\n  \
         row 1 (line 2), column \"age\": \"x\" is not a number"
    );
    // Constraints are not checked without all columns.
    let error = refused("sex,came,left\nm,2021-01-01,2021-01-03\n");
    assert_eq!(
        error,
        "t.csv: the schema's column \"age\" is missing from the header"
    );
}

#[test]
fn failed_read_is_reported_after_the_problems_before_it() {
    struct Broken<'a>(&'a [u8]);
    impl Read for Broken<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::Error::other("disk on fire"));
            }
            self.0.read(buffer)
        }
    }
    let text = format!("{HEADER}\nx,f,2021-01-01,2021-01-03\n");
    let read = read_csv(
        schema(),
        Broken(text.as_bytes()),
        &ReadOptions::new("t.csv"),
    );
    let error = read.unwrap_err().to_string();
    assert!(
        error.contains("\"x\" is not a number\n  disk on fire"),
        "{error}"
    );
    let options = ReadOptions {
        max_records: 2,
        ..ReadOptions::new("t.csv")
    };
    let text = format!("{text}{GOOD}\n{GOOD}\n{GOOD}\n");
    let error = read_csv(schema(), text.as_bytes(), &options).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("the table has more than 2 records"),
        "{error}"
    );
}

#[test]
fn displayed_problems_are_bounded() {
    let columns: Vec<_> = (0..100)
        .map(|number| json!({"name": format!("c{number}"), "kind": "categorical", "categories": ["a"]}))
        .collect();
    let schema = json!({"name": "t", "columns": columns}).to_string();
    let schema = Schema::from_json("t.json", schema.as_bytes()).unwrap();
    let header: Vec<String> = (0..100).map(|number| format!("c{number}")).collect();
    let row = vec!["y".repeat(1000); 100].join(",");
    let csv = format!("{}\n{}", header.join(","), format!("{row}\n").repeat(50));
    let error = read_csv(schema, csv.as_bytes(), &ReadOptions::new("t.csv")).unwrap_err();
    let Error::Problems(problems) = &error else {
        panic!("{error}")
    };
    assert_eq!(problems.errors().count(), 100);
    let text = error.to_string();
    assert_eq!(text.lines().count(), 22);
    assert!(text.ends_with("  and 80 more kinds of problems"), "{text}");
    assert!(text.lines().all(|line| line.len() < 300), "{text}");
    let is_unknown = |error: &Error| {
        matches!(
            error,
            Error::Cell {
                problem: CellProblem::UnknownCategory(_),
                ..
            }
        )
    };
    assert!(problems.errors().all(is_unknown));
}

fn surnames(other: bool) -> Schema {
    let names: Vec<String> = (0..60).map(|number| format!("name {number}")).collect();
    let mut surname = json!({"name": "surname", "kind": "categorical", "categories": names});
    if other {
        surname["other"] = json!("name 0");
    }
    let schema = json!({"name": "t", "columns": [
        surname,
        {"name": "icd", "kind": "code", "prefix": 1,
         "codes": (0..30).map(|number| format!("{}{number}", ["A", "B"][number % 2])).collect::<Vec<_>>()},
        {"name": "ward", "kind": "categorical", "categories": ["a", "b", "c", "d", "e"]},
        {"name": "age", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 10}
    ]});
    Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap()
}

fn people(codes: usize) -> String {
    let row = |number: usize| {
        let ward = ["a", "b", "c", "d", "e"][number % 5];
        let code = number % codes;
        format!(
            "name {},{}{code},{ward},{number}\n",
            number % 60,
            ["A", "B"][code % 2]
        )
    };
    let rows: String = (0..95).map(row).collect();
    format!("surname,icd,ward,age\n{rows}")
}

#[test]
fn near_unique_lists_are_reported_or_refused() {
    let read = |csv: &str, near_unique| {
        let options = ReadOptions {
            near_unique,
            ..ReadOptions::new("t.csv")
        };
        read_csv(surnames(false), csv.as_bytes(), &options)
    };
    let reading = read(&people(30), NearUnique::Report).unwrap();
    let found: Vec<(&str, usize)> = reading
        .near_unique
        .iter()
        .map(|list| (list.column.as_str(), list.values))
        .collect();
    assert_eq!(found, [("surname", 60), ("icd", 30)]);
    assert_eq!(near_unique_lists(&reading.table), reading.near_unique);
    let streamed = stream_csv::<Error>(
        &surnames(false),
        people(30).as_bytes(),
        &ReadOptions::new("t.csv"),
        |_| Ok(()),
    );
    assert_eq!(streamed.unwrap().near_unique, reading.near_unique);
    // A code book with codes that do not occur.
    let error = read(&people(20), NearUnique::Refuse).unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.csv: column \"surname\": the schema lists 60 values that occur in the table, and most of them occur \
         in fewer than 5 records each. A schema is public: make the column an `identifier`, leave it out with \
         `left-out`, or list a complete public code book"
    );
    let with_bad_cell = format!("{}name 1,A0,a,x\n", people(30));
    let error = read(&with_bad_cell, NearUnique::Refuse)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("t.csv: the table has 3 kinds of problems"),
        "{error}"
    );
}

#[test]
fn value_for_all_others_is_not_a_listed_value() {
    let csv = people(30).replace("name 1,", "nobody,");
    let reading = read_csv(surnames(true), csv.as_bytes(), &ReadOptions::new("t.csv")).unwrap();
    assert_eq!(reading.near_unique[0].values, 58);
}

#[test]
fn memory_of_refused_table_is_bounded() {
    let schema = json!({"name": "t", "columns": [{"name": "n", "kind": "numeric", "min": 0, "max": 1, "bins": 2}]});
    let schema = Schema::from_json("t.json", schema.to_string().as_bytes()).unwrap();
    let text = "n\n".to_owned() + &"x\n".repeat(100_000);
    let options = ReadOptions {
        unlisted: UnlistedColumn::LeaveOut,
        ..ReadOptions::new("t.csv")
    };
    let mut most = 0;
    let streamed = stream_csv::<Error>(&schema, text.as_bytes(), &options, |columns| {
        most = most.max(columns[0].len());
        Ok(())
    });
    let error = streamed.unwrap_err().to_string();
    assert!(error.ends_with("100000 times in all"), "{error}");
    assert_eq!(most, 0);
}
