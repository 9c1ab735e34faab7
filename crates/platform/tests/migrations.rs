//! Migrations are for good: databases out there have run them. A change is a new migration.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use fhaim_api::Digest;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations")
}

/// Every migration below a folder, by its path from there.
fn migrations(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for service in std::fs::read_dir(folder).unwrap() {
        let service = service.unwrap();
        for file in std::fs::read_dir(service.path()).unwrap() {
            let file = file.unwrap();
            let service = service.file_name().into_string().unwrap();
            let name = file.file_name().into_string().unwrap();
            let text = std::fs::read_to_string(file.path()).unwrap();
            found.insert(format!("{service}/{name}"), text);
        }
    }
    found
}

#[test]
fn no_migration_was_edited() {
    let sums = std::fs::read_to_string(root().join("SHA256SUMS")).unwrap();
    let listed: BTreeMap<String, String> = sums
        .lines()
        .map(|line| line.split_once("  ").unwrap())
        .map(|(sum, name)| (name.to_owned(), sum.to_owned()))
        .collect();
    let mut there = BTreeMap::new();
    for database in ["sqlite", "postgres"] {
        for (name, text) in migrations(&root().join(database)) {
            let sum = Digest::of(text.as_bytes()).to_string();
            there.insert(format!("{database}/{name}"), sum);
        }
    }
    assert!(there.len() >= 10);
    assert_eq!(
        there, listed,
        "a new migration goes into migrations/SHA256SUMS (sha256sum); an old one stays as it is"
    );
}

/// After these, programs of the release before fail: they are from when a service was stopped to be
/// upgraded.
const NOT_ROLLING: [&str; 1] = ["generation/11_faults.sql"];

/// A statement's words, without comments.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--"));
    let text = lines.collect::<Vec<_>>().join(" ");
    let words = |one: &str| one.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = text.split(';').map(words);
    all.filter(|one| !one.is_empty()).collect()
}

/// Whether a program that does not know of a statement goes on working after it.
fn goes_on_after(statement: &str) -> bool {
    let adds = |made: &str| statement.starts_with(made);
    if adds("ALTER TABLE ") {
        let column = statement.contains(" ADD COLUMN ");
        return column && (!statement.contains("NOT NULL") || statement.contains(" DEFAULT "));
    }
    // No unique index: what it forbids, an older program may write.
    adds("CREATE TABLE ") || adds("CREATE INDEX ") || adds("UPDATE ") || adds("INSERT INTO ")
}

#[test]
fn replicas_of_the_release_before_go_on_after_a_migration() {
    for database in ["sqlite", "postgres"] {
        for (name, text) in migrations(&root().join(database)) {
            let breaks = |one: &String| !goes_on_after(one);
            let breaking = statements(&text).into_iter().find(breaks);
            let known = NOT_ROLLING.contains(&name.as_str());
            assert_eq!(
                breaking.is_some(),
                known,
                "{database}/{name}: {breaking:?}: while an upgrade rolls, programs of the release \
                 before work on the same tables"
            );
        }
    }
}

#[test]
fn both_databases_have_the_same_tables() {
    // The names of types in which the two differ.
    let plain = |text: String| {
        text.replace("BYTEA", "BLOB")
            .replace("DOUBLE PRECISION", "REAL")
    };
    let [sqlite, postgres] = ["sqlite", "postgres"].map(|database| {
        let migrations = migrations(&root().join(database)).into_iter();
        migrations
            .map(|(name, text)| (name, plain(text)))
            .collect::<BTreeMap<_, _>>()
    });
    assert_eq!(sqlite, postgres);
}
