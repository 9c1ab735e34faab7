//! Tests with a hospital's export, from a draft to a report, with the commands that its holder runs.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    path::Path,
    process::Output,
};

use crate::{fhaim, stderr};
use fhaim_kit::hospital::{WARDS, WITHOUT_AGE, export, one_byte_a_letter};
use tempfile::TempDir;

const RECORDS: u32 = 3_000;

/// Returns the values of a column of a table with semicolons as delimiters.
fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let header = csv.lines().next().unwrap();
    let place = header.split(';').position(|field| field == name).unwrap();
    let rows = csv.lines().skip(1);
    rows.map(|line| line.split(';').nth(place).unwrap())
        .collect()
}

/// Converts a time to a text that sorts chronologically.
fn sortable(time: &str) -> String {
    let (day, month, year, clock) = (&time[..2], &time[3..5], &time[6..10], &time[10..]);
    format!("{year}{month}{day}{clock}")
}

fn share<'a>(column: &[&'a str], value: &'a str) -> f64 {
    column.iter().filter(|found| **found == value).count() as f64 / column.len() as f64
}

/// Returns the numbers of a column with decimal commas, in ascending order.
fn numbers(csv: &str, name: &str) -> Vec<f64> {
    let mut numbers: Vec<f64> = column(csv, name)
        .iter()
        .map(|text| text.replace(',', ".").parse().unwrap())
        .collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// Returns the largest relative distance of the three quartiles of two ascending lists.
fn quartile_distance(real: &[f64], synthetic: &[f64]) -> f64 {
    let quartile = |numbers: &[f64], of_four: usize| numbers[numbers.len() * of_four / 4];
    let distance = |of_four| quartile(synthetic, of_four) / quartile(real, of_four) - 1.0;
    (1..4)
        .map(|of_four| distance(of_four).abs())
        .fold(0.0, f64::max)
}

/// Runs a command in the folder, which must succeed.
fn run(folder: &Path, line: &str) -> Output {
    let output = fhaim(folder, &line.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    output
}

/// Returns a folder with the export as `export.csv`, and its draft as `s.json`.
fn drafted() -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("export.csv"), one_byte_a_letter(RECORDS)).unwrap();
    // Too few records share each code and each postcode to list them, and their code books are public.
    let table = export(RECORDS);
    for name in ["icd", "plz"] {
        let codes: BTreeSet<&str> = column(&table, name).into_iter().collect();
        let codes: Vec<&str> = codes.into_iter().collect();
        fs::write(folder.path().join(format!("{name}.txt")), codes.join("\n")).unwrap();
    }
    let draft = run(
        folder.path(),
        "schema infer --data export.csv --code-book icd=icd.txt --code-book plz=plz.txt --out s.json",
    );
    for words in [
        "field delimiter ';'",
        "windows-1252",
        "\"notiz\": left out",
        "\"entlassung\": never before \"aufnahme\"",
        "This is a draft.",
    ] {
        assert!(
            stderr(&draft).contains(words),
            "{words}: {}",
            stderr(&draft)
        );
    }
    folder
}

#[test]
fn synthetic_export_keeps_formats_and_shares() {
    let folder = drafted();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let real = export(RECORDS);
    run(
        folder.path(),
        "run --data export.csv --schema s.json --epsilon 1 --out new.csv --report r.html --yes",
    );
    let new = read("new.csv");
    let header = "fall;aufnahme;entlassung;station;alter;gewicht;crp;plz;icd";
    assert_eq!(new.lines().next(), Some(header));
    let records = new.lines().count() - 1;
    assert!(records.abs_diff(RECORDS as usize) < 500, "{records}");
    every_row_is_in_order(&new);
    identifiers_are_new(&new);
    values_are_written_as_they_were_read(&new, &real);
    shares_are_within_the_noise(&new, &real);
    let said = run(
        folder.path(),
        "evaluate --real export.csv --synthetic new.csv --schema s.json --out e.html",
    );
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(
        said.contains("can be used for shares, means and quantiles"),
        "{said}"
    );
    for page in ["r.html", "e.html"] {
        let page = read(page);
        assert!(page.contains("<h2>Assessment</h2>") && page.contains("<h2>Columns</h2>"));
    }
}

fn every_row_is_in_order(new: &str) {
    let (admitted, discharged) = (column(new, "aufnahme"), column(new, "entlassung"));
    for (before, after) in admitted.iter().zip(&discharged) {
        assert!(sortable(before) <= sortable(after), "{before} {after}");
    }
}

/// Checks that identifiers have the real format and are different. They are a counter, and do not depend on the table.
fn identifiers_are_new(new: &str) {
    let identifiers = column(new, "fall");
    let different: HashSet<&str> = identifiers.iter().copied().collect();
    assert_eq!(different.len(), identifiers.len());
    for (number, identifier) in identifiers.iter().enumerate() {
        assert_eq!(*identifier, format!("P{number:05}"));
    }
}

fn values_are_written_as_they_were_read(new: &str, real: &str) {
    for name in ["gewicht", "crp"] {
        let one_decimal = |text: &&str| {
            let (whole, decimals) = text.split_once(',').unwrap_or_default();
            decimals.len() == 1 && !whole.is_empty()
        };
        assert!(column(new, name).iter().all(one_decimal), "{name}");
    }
    for name in ["station", "plz", "icd"] {
        let known: HashSet<&str> = column(real, name).into_iter().collect();
        let unknown = |value: &&str| !known.contains(value);
        assert_eq!(column(new, name).into_iter().find(unknown), None, "{name}");
    }
    let ages = column(new, "alter");
    assert!(
        ages.iter()
            .all(|age| age.is_empty() || age.parse::<u32>().is_ok())
    );
}

/// With epsilon 1, a count in a small 1-way table has noise of about forty records, which is 1.5%.
fn shares_are_within_the_noise(new: &str, real: &str) {
    let missing = share(&column(new, "alter"), "");
    assert!(
        (missing - f64::from(WITHOUT_AGE) / 100.0).abs() < 0.05,
        "{missing}"
    );
    for ward in WARDS {
        let [new, real] = [new, real].map(|csv| share(&column(csv, "station"), ward));
        assert!((new - real).abs() < 0.05, "{ward}: {new} of {real}");
    }
    let [new, real] = [new, real].map(|csv| numbers(csv, "crp"));
    let distance = quartile_distance(&real, &new);
    assert!(distance < 0.25, "{distance}");
}

#[test]
fn skewed_laboratory_value_keeps_its_quartiles() {
    let folder = drafted();
    run(
        folder.path(),
        "local --data export.csv --schema s.json --epsilon 10 --out new.csv --yes",
    );
    let new = fs::read_to_string(folder.path().join("new.csv")).unwrap();
    let [new, real] = [new, export(RECORDS)].map(|csv| numbers(&csv, "crp"));
    // Values are from 0.1 to more than 300, and half of them are below 6.
    assert!(real[real.len() / 2] < 0.05 * real[real.len() - 1]);
    let distance = quartile_distance(&real, &new);
    assert!(distance < 0.05, "{distance}");
}

/// Returns records with an acid in hundredths, which is 0 in every twelfth record, and a grade that decreases with it.
fn acids(records: usize) -> String {
    let row = |i: usize| {
        let hundredths = if i.is_multiple_of(12) {
            0
        } else {
            1 + i * 37 % 100
        };
        let acid = f64::from(hundredths as u32) / 100.0;
        format!("{acid},{}\n", 8 - (hundredths + i % 40) / 28)
    };
    let rows: String = (0..records).map(row).collect();
    format!("acid,grade\n{rows}")
}

#[test]
fn spike_of_records_at_zero_is_kept() {
    let folder = TempDir::new().unwrap();
    let real = acids(1_600);
    fs::write(folder.path().join("acids.csv"), &real).unwrap();
    run(
        folder.path(),
        "schema infer --data acids.csv --target grade --out s.json",
    );
    run(
        folder.path(),
        "local --data acids.csv --schema s.json --epsilon 3 --out new.csv --yes",
    );
    let zeros = |csv: &str| share(&column(&csv.replace(',', ";"), "acid"), "0");
    let new = fs::read_to_string(folder.path().join("new.csv")).unwrap();
    let (real, new) = (zeros(&real), zeros(&new));
    assert!((real - 1.0 / 12.0).abs() < 0.001, "{real}");
    assert!((new - real).abs() < 0.02, "{new} of {real}");
}
