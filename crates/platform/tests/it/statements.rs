//! Checks of the services' source files: SQL statements are only in `store`, refusals only in `problem`.

#![allow(clippy::unwrap_used)] // helpers outside #[test] functions

use std::path::{Path, PathBuf};

/// Returns the source files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Returns the files of all services that contain one of these words, and the number of all files.
fn with_words(words: &[&str]) -> (Vec<String>, usize) {
    let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../services");
    let mut found = Vec::new();
    let mut files = 0;
    for service in ["computation", "crypto", "generation"] {
        let folder = services.join(service).join("src");
        for path in sources(&folder) {
            files += 1;
            let text = std::fs::read_to_string(&path).unwrap();
            if words.iter().any(|word| text.contains(word)) {
                let name = path.strip_prefix(&folder).unwrap().display().to_string();
                found.push(format!("{service}/{name}"));
            }
        }
    }
    (found, files)
}

#[test]
fn statements_are_only_in_the_stores() {
    let (found, files) =
        with_words(&["sqlx", "SELECT ", "UPDATE ", "INSERT INTO ", "DELETE FROM "]);
    assert!(files > 30 && found.len() > 10, "{files} files, {found:?}");
    let elsewhere = found.iter().filter(|file| !file.contains("/store/"));
    assert_eq!(elsewhere.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn refusals_are_only_in_the_lists_of_problems() {
    let (mut found, _) = with_words(&["Failure::new(", "Failure::bare(", "Self::new(refusal"]);
    found.sort();
    let lists =
        ["computation", "crypto", "generation"].map(|service| format!("{service}/problem.rs"));
    assert_eq!(found, lists);
}
