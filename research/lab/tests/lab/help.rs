//! Tests of the help texts.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use crate::{lab, stderr};

/// Returns the name of every command, at any depth, with its help text.
fn all_help() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let help = help(&command);
        open.extend(subcommands(&help).map(|name| format!("{command} {name}").trim().to_owned()));
        all.push((command, help));
    }
    all
}

/// Returns the names under "Commands:".
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let list = help.split_once("Commands:\n").map_or("", |(_, list)| list);
    let names = list.lines().take_while(|line| !line.is_empty());
    // A name is indented by two spaces, and the continuation of a description by more.
    let names = names.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|&name| name != "help")
}

fn help(command: &str) -> String {
    let folder = TempDir::new().unwrap();
    let mut arguments: Vec<&str> = command.split_whitespace().collect();
    arguments.push("--help");
    let output = lab(folder.path(), &arguments);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Compares `--help` of every command with its snapshot. FHAIM_UPDATE_HELP=1 updates the snapshots.
#[test]
fn help_texts_match_their_snapshots() {
    let snapshots = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for (command, help) in all_help() {
        let path = snapshots.join(format!("fhaim-lab-{}.txt", command.replace(' ', "-")));
        if std::env::var_os("FHAIM_UPDATE_HELP").is_some() {
            fs::create_dir_all(&snapshots).unwrap();
            fs::write(&path, &help).unwrap();
        }
        let agreed = fs::read_to_string(&path).unwrap_or_default();
        assert!(help == agreed, "help of {command:?} changed:\n{help}");
    }
}

#[test]
fn every_leaf_command_shows_examples() {
    let all = all_help();
    assert!(all.iter().any(|(command, _)| command == "bench compute"));
    for (command, help) in all {
        let has_commands = help.contains("\nCommands:\n");
        let example = format!("fhaim-lab {command} ");
        let shows = help
            .split_once("Examples:\n")
            .is_some_and(|(_, after)| format!("{after} ").replace('\n', " ").contains(&example));
        assert!(has_commands || shows, "{command:?}:\n{help}");
    }
}

/// Only programs that tests build can draw releases from a seed.
#[test]
fn no_command_takes_a_seed() {
    let folder = TempDir::new().unwrap();
    for (command, help) in all_help() {
        assert!(
            !help.split_whitespace().any(|word| word == "--seed"),
            "{help}"
        );
        if help.contains("\nCommands:\n") {
            continue;
        }
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.extend(["--seed", "5"]);
        let output = lab(folder.path(), &arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let unknown = said.contains("unexpected argument '--seed'");
        assert!(unknown, "{command}: {said}");
    }
}
