//! What the command says about itself.

use tempfile::TempDir;

use crate::fhaim;

const COMMANDS: [&str; 35] = [
    "",
    "demo",
    "schema",
    "schema infer",
    "schema check",
    "run",
    "local",
    "evaluate",
    "bench",
    "bench compute",
    "bench mechanisms",
    "bench pgm",
    "up",
    "serve",
    "serve generation",
    "serve computation",
    "serve crypto",
    "login",
    "logout",
    "dataset",
    "dataset create",
    "dataset upload",
    "dataset list",
    "dataset show",
    "dataset delete",
    "job",
    "job run",
    "job watch",
    "job list",
    "job show",
    "job releases",
    "job cancel",
    "job retry",
    "download",
    "ledger",
];

fn help(command: &str) -> String {
    let folder = TempDir::new().unwrap();
    let mut arguments: Vec<&str> = command.split_whitespace().collect();
    arguments.push("--help");
    let output = fhaim(folder.path(), &arguments);
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// `--help` of every command, as it was last agreed to. FHAIM_UPDATE_HELP=1 writes it anew.
#[test]
#[cfg(not(feature = "insecure-test-seed"))] // its flag is not part of the agreement
fn help_is_as_it_was() {
    use std::{fs, path::PathBuf};

    let snapshots = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    for command in COMMANDS {
        let help = help(command);
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
fn every_command_that_does_something_shows_examples() {
    for command in COMMANDS {
        let help = help(command);
        let has_commands = help.contains("\nCommands:\n");
        let example = format!("fhaim {command} ");
        let shows = help
            .split_once("Examples:\n")
            .is_some_and(|(_, after)| format!("{after} ").replace('\n', " ").contains(&example));
        assert!(has_commands || shows, "{command:?}:\n{help}");
    }
}

#[test]
fn only_builds_for_tests_take_a_seed() {
    let takes_seed = help("run").contains("--seed");
    assert_eq!(takes_seed, cfg!(feature = "insecure-test-seed"));
}
