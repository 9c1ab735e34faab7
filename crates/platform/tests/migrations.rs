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
