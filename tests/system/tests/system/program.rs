//! Checks that the tested program is the shipped one: `fhaim` with one additional flag.

use std::{fs, path::Path};

use fhaim_kit::command;
use tempfile::TempDir;

use super::PROGRAM;

/// Commands that draw randomness.
const DRAWING: [&str; 6] = [
    "run",
    "local",
    "sample",
    "demo",
    "evaluate",
    "dataset upload",
];

/// Returns the words of a help text, without the lines about the seed, and with the same program name.
fn words(help: &str) -> Vec<String> {
    // A flag's text is next to it or, in a long help, between it and an empty line.
    let mut of_seed = false;
    let lines = help.lines().filter(|line| {
        let flag = line.contains("--seed <SEED>");
        of_seed = (flag && line.ends_with("<SEED>")) || (of_seed && !line.trim().is_empty());
        !flag && !of_seed
    });
    let words = lines.flat_map(str::split_whitespace);
    words
        .map(|word| word.replace("fhaim_insecure_test_seed", "fhaim"))
        .collect()
}

#[test]
fn tested_program_differs_from_the_command_only_by_the_seed_flag() {
    let snapshots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/cli/tests/help");
    let folder = TempDir::new().unwrap();
    let mut seen = 0;
    for snapshot in fs::read_dir(snapshots).unwrap() {
        let path = snapshot.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let name = name.trim_start_matches("fhaim-").replace('-', " ");
        let mut arguments: Vec<&str> = name.split_whitespace().collect();
        arguments.push("--help");
        let output = command::run(PROGRAM, folder.path(), &arguments);
        let help = String::from_utf8(output.stdout).unwrap();
        let seeded = help.contains("--seed <SEED>") && help.contains("NOT private");
        assert_eq!(seeded, DRAWING.contains(&name.as_str()), "{name}: {help}");
        assert_eq!(words(&help), words(&fs::read_to_string(&path).unwrap()));
        seen += 1;
    }
    assert!(seen > 20, "only {seen} commands have a snapshot");
}
