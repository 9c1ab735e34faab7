//! Tests of constraints between columns, from the schema to the report.

use std::fs;

use crate::{fhaim, folder, stderr};

const SCHEMA: &str = r#"{"name": "stays", "columns": [
    {"name": "night", "kind": "number", "integer": true, "min": 0, "max": 29, "bins": 6, "digits": 5},
    {"name": "day", "kind": "number", "integer": true, "min": 0, "max": 59, "bins": 6, "digits": 10},
    {"name": "both", "kind": "number", "integer": true, "min": 0, "max": 99, "bins": 5, "digits": 20},
    {"name": "limit", "kind": "number", "integer": true, "min": 0, "max": 199, "bins": 4, "digits": 20},
    {"name": "born", "kind": "number", "integer": true, "min": 0, "max": 199, "bins": 4}],
  "constraints": [{"sum": {"total": "both", "parts": ["night", "day"]}}, {"at_most": ["born", "limit"]}]}"#;

/// Returns records that satisfy both constraints.
fn table() -> String {
    let row = |n: u32| {
        let (night, day, born) = (n * 7 % 30, n * 11 % 60, n * 13 % 150);
        format!(
            "{night},{day},{},{},{born}\n",
            night + day,
            born + n * 5 % 50
        )
    };
    "night,day,both,limit,born\n".to_owned() + &(0..800).map(row).collect::<String>()
}

#[test]
fn drawn_records_satisfy_the_schemas_constraints() {
    let folder = folder(table(), SCHEMA);
    let files = [
        "local",
        "--data",
        "t.csv",
        "--schema",
        "t.schema.json",
        "--out",
        "s.csv",
    ];
    let more = ["--epsilon", "1", "--report", "r.html"];
    let run = fhaim(folder.path(), &[&files[..], &more].concat());
    assert!(run.status.success(), "{}", stderr(&run));
    let sample = [
        "sample",
        "--model",
        "s.model",
        "--schema",
        "t.schema.json",
        "--out",
        "more.csv",
    ];
    let run = fhaim(folder.path(), &[&sample[..], &["--rows", "500"]].concat());
    assert!(run.status.success(), "{}", stderr(&run));
    for name in ["s.csv", "more.csv"] {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        let numbers =
            |line: &str| -> Vec<i64> { line.split(',').map(|n| n.parse().unwrap()).collect() };
        let records: Vec<Vec<i64>> = text.lines().skip(1).map(numbers).collect();
        assert!(records.len() >= 400, "{}", records.len());
        for record in records {
            assert_eq!(record[0] + record[1], record[2], "{record:?}");
            assert!(record[4] <= record[3], "{record:?}");
        }
    }
    let evaluated = |synthetic: &str| {
        let files = [
            "evaluate",
            "--real",
            "t.csv",
            "--schema",
            "t.schema.json",
            "--synthetic",
            synthetic,
        ];
        let run = fhaim(folder.path(), &files);
        assert!(run.status.success(), "{}", stderr(&run));
        String::from_utf8(run.stdout).unwrap()
    };
    let said = evaluated("s.csv");
    assert!(
        said.contains("No synthetic record breaks any of the schema's 2 rules."),
        "{said}"
    );
    // A synthetic table from elsewhere may break constraints; the evaluation reports them.
    let wrong = "night,day,both,limit,born\n1,1,3,5,4\n1,1,2,5,4\n2,2,4,9,9\n0,0,0,1,1\n";
    fs::write(folder.path().join("wrong.csv"), wrong).unwrap();
    let said = evaluated("wrong.csv");
    assert!(
        said.contains("25.0% of the synthetic records break a rule of the schema"),
        "{said}"
    );
    // A real table that breaks constraints is rejected, with the row and a way out.
    let run = fhaim(
        folder.path(),
        &["schema", "check", "t.schema.json", "--data", "wrong.csv"],
    );
    assert_eq!(run.status.code(), Some(2));
    let said = stderr(&run);
    assert!(
        said.contains("row 1 (line 2) breaks a constraint")
            && said.contains("remove the constraint"),
        "{said}"
    );
}
