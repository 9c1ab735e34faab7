//! Tests of the usage history that `fhaim` and `fhaim-lab` share.

use crate::{SCHEMA, fhaim, folder, lab, stderr, table};

const LOCAL: &str =
    "local --data t.csv --schema t.schema.json --epsilon 1 --out s.csv --quiet --yes --force";

/// For a table of 200 records, half of each class.
const MIX: &str =
    "mix --data t.csv --schema t.schema.json --mix 4 --epsilon 20 --out m.csv --quiet --yes";

fn said(output: &std::process::Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    stderr(output)
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[test]
fn fhaim_lab_reports_spending_by_fhaim() {
    let folder = folder(table(200), SCHEMA);
    assert_eq!(said(&fhaim(folder.path(), &words(LOCAL))), "");
    let told = said(&lab(folder.path(), &words(MIX)));
    assert!(told.contains("a run of fhaim, into s.csv: rho "), "{told}");
    assert!(
        told.contains("\nfor a record added or removed: epsilon "),
        "{told}"
    );
}

/// The cost of groups is a rho, which adds up with that of a run. The cost of DP-CDA is for a replaced record, for
/// which a run counts twice.
#[test]
fn fhaim_reports_spending_by_fhaim_lab() {
    let folder = folder(table(200), SCHEMA);
    assert_eq!(said(&lab(folder.path(), &words(MIX))), "");
    let told = said(&fhaim(folder.path(), &words(LOCAL)));
    assert!(
        told.contains("a run of fhaim-lab mix, into m.csv: rho "),
        "{told}"
    );
    assert!(
        told.contains("\nfor a record added or removed: epsilon "),
        "{told}"
    );
    assert!(!told.contains("replaced"), "{told}");

    let cda = format!("{MIX} --method dp-cda --delta 1e-5");
    said(&lab(folder.path(), &words(&cda)));
    let told = said(&fhaim(folder.path(), &words(LOCAL)));
    let lines: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with("for "))
        .collect();
    let [added, replaced] = lines.as_slice() else {
        panic!("{told}");
    };
    assert!(
        added.starts_with("for a record added or removed: epsilon "),
        "{told}"
    );
    assert!(
        added.ends_with("; not including 1 use with another privacy unit"),
        "{told}"
    );
    assert!(
        replaced.starts_with("for a record replaced: epsilon "),
        "{told}"
    );
    assert!(replaced.ends_with(" with this use"), "{told}");
}
