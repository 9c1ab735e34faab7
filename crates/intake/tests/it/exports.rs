//! Drafts of columns as exports of banks, schools and laboratories have them. `research/exports` writes whole tables.
#![allow(clippy::unwrap_used)]

use fhaim_intake::{Draft, InferOptions, infer_schema};
use serde_json::{Value as Json, json};

const RECORDS: usize = 1_200;

/// Drafts a table of one column, next to a column of categories.
fn draft(name: &str, options: InferOptions, cell: impl Fn(usize) -> String) -> Draft {
    let rows = (0..RECORDS).map(|row| format!("{};{}\n", cell(row), ["east", "west"][row % 2]));
    let table = format!("{name};place\n{}", rows.collect::<String>());
    let mut options = options;
    options.dialect.delimiter = b';';
    infer_schema(table.as_bytes(), &options).unwrap()
}

fn options() -> InferOptions {
    InferOptions::new("t.csv", "t")
}

/// Returns the first column of the drafted schema.
fn column(draft: &Draft) -> Json {
    let schema: Json = serde_json::from_str(&draft.schema.to_json()).unwrap();
    schema["columns"][0].clone()
}

fn notes(draft: &Draft) -> String {
    let notes: Vec<String> = draft.notes().iter().map(ToString::to_string).collect();
    notes.join("\n")
}

/// A number of as many digits as `first`, which each of 40 records or more share.
fn shared_number(row: usize, first: usize, last: usize) -> usize {
    first + (row % 30) * 7_919 * 7_919 % (last - first)
}

#[test]
fn repeated_identifiers_of_persons_are_not_listed() {
    for name in ["PatNr", "Kontonummer", "Schülernr", "customerno"] {
        let draft = draft(name, options(), |row| {
            shared_number(row, 1_000_000, 9_999_999).to_string()
        });
        assert_eq!(column(&draft)["kind"], "identifier", "{name}");
        assert!(
            notes(&draft).contains("does it identify a person?"),
            "{name}"
        );
    }
}

#[test]
fn many_long_identifiers_are_not_listed() {
    let cell = |row| format!("DE{:09}", shared_number(row, 10_000_000, 99_999_999));
    let drafted = draft("Gläubiger-ID", options(), cell);
    assert_eq!(column(&drafted)["kind"], "identifier");
    // Few ones are public, as those of banks are, and codes are listed.
    let banks = draft("routing number", options(), |row| cell(row % 4));
    assert_eq!(column(&banks)["kind"], "categorical");
    let concepts = draft("concept_id", options(), |row| {
        shared_number(row, 1_000_000, 9_999_999).to_string()
    });
    assert_eq!(column(&concepts)["kind"], "categorical");
}

#[test]
fn codes_with_a_check_digit_are_no_months() {
    let codes = ["2823-3", "2951-2", "1742-6", "1988-5", "718-7"];
    for name in ["LOINC", "test"] {
        let draft = draft(name, options(), |row| codes[row % 5].to_owned());
        assert_eq!(column(&draft)["kind"], "categorical", "{name}");
    }
    let usual = ["1988-5", "1975-2", "2028-9"];
    let named = draft("loinc", options(), |row| usual[row % 3].to_owned());
    assert_eq!(column(&named)["kind"], "categorical");
    let months = draft("month", options(), |row| {
        format!("{}-{}", 1990 + row % 30, 1 + row % 9)
    });
    assert_eq!(column(&months)["kind"], "date");
}

#[test]
fn grades_with_signs_are_categories() {
    let signs = ["+", "", "-"];
    let german = draft("Note", options(), |row| {
        format!("{}{}", 1 + row % 5, signs[row / 5 % 3])
    });
    assert_eq!(column(&german)["categories"].as_array().unwrap().len(), 15);
    let without_plus = draft("Note", options(), |row| {
        format!("{}{}", 1 + row % 5, ["", "-"][row / 5 % 2])
    });
    assert_eq!(column(&without_plus)["kind"], "categorical");
    // Bookings have many different amounts.
    let bookings = draft("Betrag", options(), |row| {
        format!("{}{}", row * 37 % 900, ["", "-"][row % 2])
    });
    assert_eq!(column(&bookings)["negative"], "trailing");
}

#[test]
fn each_of_few_numbers_has_its_own_bin() {
    let draft = draft("grade level", options(), |row| match row % 13 {
        0 => "K".to_owned(),
        level => level.to_string(),
    });
    assert_eq!(
        column(&draft),
        json!({"name": "grade level", "kind": "number", "integer": true, "special": ["K"],
               "min": 1, "max": 12, "bins": 12})
    );
}

#[test]
fn given_text_for_missing_values_is_in_the_schema() {
    let given = |text: &str| {
        let mut options = options();
        options.missing.push(text.to_owned());
        options
    };
    let languages = ["English", "Spanish", "Unknown"];
    let language = draft("language", given("Unknown"), |row| {
        languages[row % 3].to_owned()
    });
    assert_eq!(
        column(&language),
        json!({"name": "language", "kind": "categorical", "categories": ["English", "Spanish"],
               "nullable": true, "missing": ["Unknown"]})
    );
    // It is not, if the column also has it as a value.
    let temperature = draft("temperature", given("-9"), |row| {
        (row as i64 % 70 - 35).to_string()
    });
    let column = column(&temperature);
    assert_eq!(
        (&column["kind"], &column["missing"]),
        (&json!("number"), &Json::Null)
    );
}

#[test]
fn missing_identifiers_are_named() {
    let draft = draft("account number", options(), |row| match row % 3 {
        0 => String::new(),
        _ => shared_number(row, 1_000_000, 9_999_999).to_string(),
    });
    assert!(
        notes(&draft).contains("400 cells without a value"),
        "{}",
        notes(&draft)
    );
}

#[test]
fn repeated_identifiers_are_no_codes() {
    let orders = draft("Auftragsnr", options(), |row| {
        format!("L{:06}", 240_000 + row / 4 * 3)
    });
    assert_eq!(column(&orders)["kind"], "identifier");
    assert!(!notes(&orders).contains("code book"), "{}", notes(&orders));
}
