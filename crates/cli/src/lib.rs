//! The command `fhaim`: differentially private synthetic tables from encrypted data.
//!
//! [`main`] is the whole program `fhaim`. [`main_drawing_from`] is the same for a program with flags that choose the
//! source of randomness, such as the one in `tests/system`, which compares runs. [`shared`] has the parts that the
//! research program `fhaim-lab` also uses.
//!
//! Commands write results to files and, with `--json`, to standard output. They write progress and remarks to standard
//! error. An error is text or, with `--json`, one line of JSON. The feature `server` adds the services and the commands that work with them; it is on by default.
//!
//! Exit codes are 0 for success, 2 for an invalid request (arguments, schema, table, size), 130 if Ctrl-C ended
//! `job watch`, and 1 for any other failure.
//!
//! # Example
//!
//! ```sh
//! cargo run --release -p fhaim-cli -- run --data patients.csv --schema patients.schema.json --epsilon 1 \
//!     --out synthetic.csv
//! ```
//!
//! # Neighbours
//!
//! `fhaim-files` reads and writes tables, `fhaim-protocol` runs the entities in one process, `fhaim-sdk` talks to the
//! services, and `fhaim-generation`, `fhaim-computation` and `fhaim-crypto` are the services.
// `eprintln!` panics if standard error is closed.
#![deny(clippy::print_stderr)]
// Some functions are called only by commands that work with a server.
#![cfg_attr(not(feature = "server"), allow(dead_code))]

mod adult;
mod align;
mod alone;
mod args;
mod bench;
mod card;
mod counting;
mod demo;
mod division;
mod drawing;
mod encrypted;
mod error;
mod error_report;
mod estimate;
mod evaluate;
mod flags;
mod forecast;
mod generate;
mod held;
mod help;
mod holders;
#[cfg(feature = "server")]
pub mod in_process;
mod input;
mod kept_releases;
mod made_table;
mod output;
mod randomness;
#[cfg(feature = "server")]
mod remote;
mod sample;
mod schema;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod server;
#[cfg(feature = "server")]
pub mod shared;
mod shell;
mod size;
mod spending;
mod spool;
mod summary;

use std::{ffi::OsString, process::ExitCode};

use clap::{
    FromArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use fhaim_files::{progress::Progress, tell};

use crate::{
    args::{Arguments, Command},
    error_report::ErrorReport,
    randomness::OperatingSystem,
};
pub use error::Error;
pub use randomness::{InsecureTestSeed, Randomness};

/// Runs the command with the process's arguments, and with randomness from the operating system.
pub fn main() -> ExitCode {
    main_drawing_from::<OperatingSystem>()
}

/// Runs the command with the process's arguments, and with randomness from the source that the flags of `R` choose.
pub fn main_drawing_from<R: Randomness>() -> ExitCode {
    main_with::<R>(std::env::args_os())
}

/// Like [`main_drawing_from`], with the given arguments. The first argument is the name of the program.
pub fn main_with<R: Randomness>(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.len() < 2 {
        return match help::welcome() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error, None, error.exit_code()),
        };
    }
    let is_json = arguments.iter().any(|argument| argument == "--json");
    let matches = args::command::<R>().try_get_matches_from(arguments);
    let arguments = match matches.and_then(|found| Arguments::<R>::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        Err(error) if is_json && error.use_stderr() => return usage_as_json(&error),
        Err(error) => return usage(&error),
    };
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Not an error: the user asked for it.
        Err(error @ Error::Watching { .. }) if !is_json => {
            tell(&error.to_string());
            ExitCode::from(error.exit_code())
        }
        Err(error) if is_json => {
            fhaim_files::tell_line(format_args!("{}", ErrorReport::from(&error).to_line()));
            ExitCode::from(error.exit_code())
        }
        Err(error) => failed(&error, error.way_out().as_deref(), error.exit_code()),
    }
}

/// Prints an error, and returns its exit code. An error is one line, apart from a list of a table's problems.
pub fn failed(error: &dyn std::error::Error, way_out: Option<&str>, exit_code: u8) -> ExitCode {
    let text = error.to_string();
    match way_out {
        Some(way_out) if text.contains('\n') => tell(&format!("error: {text}\n({way_out})")),
        Some(way_out) => tell(&format!("error: {text} ({way_out})")),
        None => tell(&format!("error: {text}")),
    }
    ExitCode::from(exit_code)
}

/// Prints help or version unchanged, and an error of the arguments in one line like all other errors.
pub fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == MISSING_COMMAND {
        // If standard output is closed, there is nowhere to report that.
        let _ = error.print();
        return ExitCode::from(u8::from(error.use_stderr()) * 2);
    }
    tell(&format!("{} ({})", usage_text(error), usage_way_out(error)));
    ExitCode::from(2)
}

/// Prints an error of the arguments as JSON.
fn usage_as_json(error: &clap::Error) -> ExitCode {
    let message = match error.kind() {
        MISSING_COMMAND => "a subcommand is missing".to_owned(),
        _ => usage_text(error).trim_start_matches("error: ").to_owned(),
    };
    fhaim_files::tell_line(format_args!(
        "{}",
        ErrorReport::of_usage(error, message, &usage_way_out(error)).to_line()
    ));
    ExitCode::from(2)
}

/// Returns the text of an error of the arguments in one line, without usage.
fn usage_text(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty() && !line.starts_with(TIP))
        .collect();
    lines.join(" ")
}

/// Begins the line of an error in which clap proposes a similar flag.
const TIP: &str = "tip: ";

fn usage_way_out(error: &clap::Error) -> String {
    if is_unexpected_file(error) {
        return "give a file with its flag, such as --data; see --help".to_owned();
    }
    let text = error.render().to_string();
    let tip = text.lines().find_map(|line| line.trim().strip_prefix(TIP));
    tip.map_or("see --help".to_owned(), |tip| format!("{tip}; see --help"))
}

/// Whether an argument without a flag is unexpected: usually the name of a table.
fn is_unexpected_file(error: &clap::Error) -> bool {
    let argument = error.get(ContextKind::InvalidArg);
    let is_bare = matches!(argument, Some(ContextValue::String(text)) if !text.starts_with('-'));
    error.kind() == ErrorKind::UnknownArgument && is_bare
}

/// Kind of the error for a command without its subcommand, which prints the help.
const MISSING_COMMAND: ErrorKind = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

fn dispatch<R: Randomness>(arguments: &Arguments<R>) -> Result<(), Error> {
    let progress = Progress::new(arguments.quiet);
    match &arguments.command {
        Command::Schema(schema::SchemaCommand::Infer(arguments)) => schema::infer(arguments),
        Command::Schema(schema::SchemaCommand::Check(arguments)) => schema::check(arguments),
        Command::Demo(drawing) => demo::run(&drawing.arguments, drawing.seed(), &progress),
        Command::Run(drawing) => generate::run(&drawing.arguments, drawing.seed(), &progress),
        Command::Evaluate(drawing) => evaluate::run(&drawing.arguments, drawing.seed(), &progress),
        Command::Sample(drawing) => sample::run(&drawing.arguments, drawing.seed(), &progress),
        Command::Local(drawing) => generate::local(&drawing.arguments, drawing.seed(), &progress),
        Command::Align(arguments) => align::run(arguments, &progress),
        Command::Bench(arguments) => bench::run(arguments, &progress),
        Command::Shell(command) => shell::run(command, args::command::<R>()),
        #[cfg(feature = "server")]
        Command::Server(command) => command.run(&progress),
    }
}
