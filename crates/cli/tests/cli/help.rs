//! Tests of help texts, examples, manual pages and the version.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use crate::{fhaim, stderr};

/// Returns every command and subcommand with its help.
fn all_help() -> Vec<(String, String)> {
    let mut all = Vec::new();
    // `shell` is hidden.
    let mut open = vec![String::new(), "shell".to_owned()];
    while let Some(command) = open.pop() {
        let help = help(&command);
        open.extend(subcommands(&help).map(|name| format!("{command} {name}").trim().to_owned()));
        all.push((command, help));
    }
    all
}

/// Returns the names under "Commands:", or under the groups of the first page, which are before its options.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let list = match help.split_once("Commands:\n") {
        Some((_, list)) => list.split_once("\n\n").map_or(list, |(list, _)| list),
        None if help.contains(FIRST_GROUP) => {
            help.split_once("Options:").map_or("", |(list, _)| list)
        }
        None => "",
    };
    // A name is indented by two spaces, and a wrapped description by more.
    let names = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|&name| name != "help")
}

const FIRST_GROUP: &str = "\nStart here:\n";

#[test]
fn help_starts_with_three_commands_and_has_every_command_once() {
    let help = help("");
    let (_, groups) = help.split_once(FIRST_GROUP).unwrap();
    let first = groups.split_once("\n\n").unwrap().0;
    assert_eq!(
        subcommands(&format!("Commands:\n{first}")).collect::<Vec<_>>(),
        ["demo", "schema", "run"]
    );
    let mut names: Vec<&str> = subcommands(&help).collect();
    names.sort_unstable();
    let folder = TempDir::new().unwrap();
    let bash = fhaim(folder.path(), &["shell", "completions", "bash"]);
    let bash = String::from_utf8(bash.stdout).unwrap();
    // The script lists every command of `fhaim`, including the hidden one and `help`.
    let all = bash
        .lines()
        .filter_map(|line| line.trim().strip_prefix("fhaim,")?.strip_suffix(')'));
    let mut all: Vec<&str> = all
        .filter(|&name| !["help", "shell"].contains(&name))
        .collect();
    all.sort_unstable();
    assert_eq!(names, all);
}

fn help(command: &str) -> String {
    let folder = TempDir::new().unwrap();
    let mut arguments: Vec<&str> = command.split_whitespace().collect();
    arguments.push("--help");
    let output = fhaim(folder.path(), &arguments);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Run with FHAIM_UPDATE_HELP=1 to write the snapshots.
#[test]
fn help_of_every_command_equals_its_snapshot() {
    let snapshots = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for (command, help) in all_help() {
        let path = snapshots.join(format!("fhaim-{}.txt", command.replace(' ', "-")));
        if std::env::var_os("FHAIM_UPDATE_HELP").is_some() {
            fs::create_dir_all(&snapshots).unwrap();
            fs::write(&path, &help).unwrap();
        }
        let agreed = fs::read_to_string(&path).unwrap_or_default();
        assert!(help == agreed, "help of {command:?} changed:\n{help}");
    }
}

#[test]
fn help_of_every_leaf_command_shows_examples() {
    let all = all_help();
    assert!(all.iter().any(|(command, _)| command == "bench"));
    for (command, help) in all {
        let has_commands = help.contains("\nCommands:\n") || help.contains(FIRST_GROUP);
        let example = format!("fhaim {command} ");
        let shows = help
            .split_once("Examples:\n")
            .is_some_and(|(_, after)| format!("{after} ").replace('\n', " ").contains(&example));
        assert!(has_commands || shows, "{command:?}:\n{help}");
    }
}

/// Every command and subcommand has a manual page with its examples.
#[test]
fn every_command_has_a_manual_page() {
    let folder = TempDir::new().unwrap();
    let output = fhaim(folder.path(), &["shell", "man", "share/man1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let pages = folder.path().join("share/man1");
    for (command, help) in all_help() {
        let name = format!("fhaim {command}").trim().replace(' ', "-");
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).unwrap();
        assert!(
            page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"),
            "{page}"
        );
        // The page escapes hyphens.
        let page = page.replace("\\-", "-");
        assert_eq!(
            help.contains("Examples:"),
            page.contains("Examples:"),
            "{name}"
        );
    }
    let output = fhaim(folder.path(), &["shell", "man", "share/man1/fhaim.1"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

/// The version is the release, followed by the commit if the build knows it.
#[test]
fn version_is_the_release_with_an_optional_commit() {
    let folder = TempDir::new().unwrap();
    let output = fhaim(folder.path(), &["--version"]);
    let said = String::from_utf8(output.stdout).unwrap();
    let rest = said
        .trim()
        .strip_prefix(concat!("fhaim ", env!("CARGO_PKG_VERSION")));
    let commit = rest
        .unwrap()
        .strip_prefix(" (")
        .and_then(|rest| rest.strip_suffix(')'));
    let is_commit = |text: &str| text.len() >= 7 && text.chars().all(|c| c.is_ascii_hexdigit());
    assert!(rest == Some("") || commit.is_some_and(is_commit), "{said}");
}

/// Only programs that are built for tests can draw noise from a seed. `download` draws records from a model.
#[test]
fn only_download_takes_a_seed() {
    let folder = TempDir::new().unwrap();
    let others = all_help().into_iter();
    for (command, help) in others.filter(|(command, _)| command != "download") {
        assert!(
            !help.split_whitespace().any(|word| word == "--seed"),
            "{help}"
        );
        if help.contains("\nCommands:\n") {
            continue;
        }
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        arguments.extend(["--seed", "5"]);
        let output = fhaim(folder.path(), &arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        let unknown = said.contains("unexpected argument '--seed'");
        assert!(unknown, "{command}: {said}");
    }
}

#[test]
fn unexpected_file_is_reported_with_the_flag_for_tables() {
    let folder = TempDir::new().unwrap();
    let output = fhaim(folder.path(), &["schema", "infer", "table.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("'table.csv'") && said.contains("such as --data"),
        "{said}"
    );
}

#[test]
fn program_without_arguments_shows_its_purpose_and_three_commands() {
    let folder = TempDir::new().unwrap();
    let output = fhaim(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let commands: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("  fhaim "))
        .collect();
    let begin = ["  fhaim demo", "  fhaim schema infer ", "  fhaim run "];
    assert_eq!(commands.len(), begin.len(), "{text}");
    assert!(
        commands
            .iter()
            .zip(begin)
            .all(|(line, begin)| line.starts_with(begin)),
        "{text}"
    );
    assert!(
        text.lines().count() < 20 && text.lines().all(|line| line.len() <= 100),
        "{text}"
    );
}

/// A command with many flags has each of them under the heading of its purpose, and the general ones last.
#[test]
fn flags_of_long_commands_are_grouped_by_purpose() {
    let general = ["-q", "-h"];
    for (command, help) in all_help() {
        let Some((_, last)) = help.split_once("\nOptions:\n") else {
            continue;
        };
        if help.contains("\nOutput:\n") || help.contains("\nServer:\n") {
            let (last, _) = last.split_once("\nExamples:").unwrap();
            let flags = last
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with('-'));
            let flags: Vec<&str> = flags.filter_map(|line| line.split(',').next()).collect();
            assert_eq!(flags, general, "{command}: {help}");
        }
    }
}

#[test]
fn help_fits_a_terminal_of_100_columns() {
    for (command, help) in all_help() {
        let mut lines = help.lines().filter(|line| !line.starts_with("Usage:"));
        let wide = lines.find(|line| line.chars().count() > 100);
        assert_eq!(wide, None, "{command}");
    }
}

#[test]
fn short_help_is_shorter_than_long_help() {
    let folder = TempDir::new().unwrap();
    let lines = |flag: &str| {
        let output = fhaim(folder.path(), &["run", flag]);
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    let (short, long) = (lines("-h"), lines("--help"));
    assert!(short < 80 && short < long, "{short} {long}");
}
