//! Checks of the files below `migrations/`: both databases have the same tables.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use std::collections::BTreeMap;
use std::path::Path;

/// Reads all migrations for a database, by file name.
fn migrations(database: &str) -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let files = std::fs::read_dir(root.join(database)).unwrap();
    let file = |file: std::io::Result<std::fs::DirEntry>| {
        let file = file.unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        (file.file_name().into_string().unwrap(), text)
    };
    files.map(file).collect()
}

#[test]
fn both_databases_have_the_same_tables() {
    let sqlite = migrations("sqlite");
    let names: Vec<&str> = sqlite.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "computation.sql",
            "crypto.sql",
            "generation.sql",
            "platform.sql"
        ]
    );
    // Only this type has different names in the two databases.
    let of_postgres = |(name, text): (String, String)| (name, text.replace("BYTEA", "BLOB"));
    let postgres: BTreeMap<_, _> = migrations("postgres")
        .into_iter()
        .map(of_postgres)
        .collect();
    assert_eq!(sqlite, postgres);
}
