//! Compares docs/reference/schema.md with the keys that schemas have.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::{
    Constraint, Schema,
    form::{ColumnForm, KindForm},
    schema_form::SchemaForm,
};

const REFERENCE: &str = include_str!("../../../docs/reference/schema.md");

/// Text between a heading and the next heading.
fn section(heading: &str) -> &'static str {
    let (_, rest) = REFERENCE.split_once(&format!("\n{heading}\n")).unwrap();
    rest.split("\n#").next().unwrap()
}

/// Keys in the first column of a section's table.
fn documented(heading: &str) -> BTreeSet<&'static str> {
    let rows = section(heading)
        .lines()
        .filter(|line| line.starts_with("| `"));
    let first = |row: &'static str| row.split('|').nth(1).unwrap();
    rows.flat_map(|row| first(row).split('`').skip(1).step_by(2))
        .collect()
}

/// Keys that a type accepts, which serde lists when it refuses an unknown one.
fn accepted<T: DeserializeOwned>() -> BTreeSet<String> {
    let error = serde_json::from_str::<T>(r#"{"unknown": 0}"#)
        .err()
        .unwrap();
    let text = error.to_string();
    let (_, list) = text.split_once("expected one of ").unwrap();
    let names = list.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

fn strs(names: &BTreeSet<String>) -> BTreeSet<&str> {
    names.iter().map(String::as_str).collect()
}

/// The JSON examples of a section.
fn examples(heading: &str) -> Vec<&'static str> {
    let blocks = section(heading).split("```json\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

#[test]
fn schema_keys_are_documented() {
    let mut keys = accepted::<SchemaForm>();
    assert!(keys.remove("version"), "refused with advice");
    assert_eq!(documented("## The schema"), strs(&keys));
}

#[test]
fn column_keys_are_documented() {
    let common = documented("## Columns");
    let keys = ["invalid", "kind", "missing", "name", "nullable"];
    assert_eq!(common, BTreeSet::from(keys));
    let mut all = common;
    for kind in KindForm::ALL {
        let keys = documented(&format!("### `{}`", kind.word()));
        let fields = kind.fields().iter().copied().collect();
        assert_eq!(keys, fields, "{}", kind.word());
        all.extend(keys);
    }
    assert_eq!(all, strs(&accepted::<ColumnForm>()));
}

#[test]
fn constraints_are_documented() {
    assert_eq!(
        documented("## Constraints"),
        strs(&accepted::<Constraint>())
    );
}

#[test]
fn examples_of_columns_are_valid() {
    for kind in KindForm::ALL {
        let heading = format!("### `{}`", kind.word());
        let examples = examples(&heading);
        assert_eq!(examples.len(), 1, "{heading}");
        let schema = format!(
            r#"{{"name": "t", "columns": [{}, {{"name": "c", "kind": "categorical", "categories": ["a"]}}]}}"#,
            examples[0]
        );
        Schema::from_json("reference", schema.as_bytes()).unwrap();
    }
}

#[test]
fn examples_of_schemas_and_constraints_are_valid() {
    let (first, _) = REFERENCE.split_once("\n## ").unwrap();
    let schema = first.split("```").nth(1).unwrap();
    let schema = schema.strip_prefix("json\n").unwrap();
    Schema::from_json("reference", schema.as_bytes()).unwrap();
    let [constraints] = examples("## Constraints")[..] else {
        panic!("one block of constraints")
    };
    for line in constraints.lines() {
        serde_json::from_str::<Constraint>(line).unwrap();
    }
}
