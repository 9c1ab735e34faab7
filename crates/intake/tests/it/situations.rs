//! Tables as people have them, and what fhaim must give for them.
//!
//! `tests/tables` has the tables that the project started from, and `tests/situations` those of
//! public reports about comparable programs. Each has an entry in its folder's `expectations.json`.

use std::path::PathBuf;

use crate::{
    adapter::Csv,
    check::{Checked, assert_all, check_folder, summary},
};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn checked(group: &str) -> Vec<Checked> {
    let mut checked = check_folder(&folder("tables"), Some(group), &Csv);
    checked.extend(check_folder(&folder("situations"), Some(group), &Csv));
    checked
}

#[test]
fn numbers_keep_their_value_and_form() {
    assert_all(&checked("numbers"));
}

#[test]
fn dates_keep_their_order_and_form() {
    assert_all(&checked("dates"));
}

#[test]
fn times_and_durations_keep_their_order_and_form() {
    assert_all(&checked("times"));
}

#[test]
fn exceptions_are_named_and_the_majority_decides() {
    assert_all(&checked("exceptions"));
}

#[test]
fn codes_and_identifiers_are_not_published() {
    assert_all(&checked("codes"));
}

#[test]
fn categories_are_listed_as_they_are_written() {
    assert_all(&checked("categories"));
}

#[test]
fn persons_and_texts_are_recognised() {
    assert_all(&checked("persons"));
}

#[test]
fn relations_are_proposed() {
    assert_all(&checked("relations"));
}

#[test]
fn dialects_are_read_or_refused_with_the_way_out() {
    assert_all(&checked("files"));
}

#[test]
fn encodings_are_read_or_refused_with_the_way_out() {
    assert_all(&checked("encodings"));
}

#[test]
#[ignore = "slow"]
fn print_results() {
    for name in ["tables", "situations"] {
        let checked = check_folder(&folder(name), None, &Csv);
        println!("{}\n", summary(name, &checked));
    }
}
