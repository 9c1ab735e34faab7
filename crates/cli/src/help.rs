//! Layout of the help: the first page by groups of commands, the flags of each command by purpose, and a short page
//! for `-h`.

use clap::{Arg, ArgAction, Command};
use fhaim_files::print;

use crate::error::Error;

/// Text of `fhaim` without arguments.
const WELCOME: &str = "\
fhaim makes synthetic tables that resemble a real table and may be shared. The services
that make them see the real table only under encryption, and learn only statistics with
noise. The result says next to nothing about a single person (differential privacy).

Start here:
  fhaim demo
      Try it on an included table. It writes a synthetic table and a report.
  fhaim schema infer --data patients.csv --out patients.schema.json
      Describe your own table. Read the description, and correct it.
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
      Make a synthetic table.

`fhaim --help` lists all commands.
";

/// Prints what the program is for, and its first three commands.
///
/// # Errors
/// The reader of standard output has closed it.
pub fn welcome() -> Result<(), Error> {
    Ok(print(WELCOME)?)
}

/// The commands in `fhaim --help`, by group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start here", &["demo", "schema", "run"]),
    ("Make a table", &["local", "sample", "evaluate", "align"]),
    (
        "Work with a server",
        &[
            "account", "dataset", "job", "download", "link", "ledger", "verify",
        ],
    ),
    ("Run a server", &["up", "serve", "admin"]),
    ("Tools", &["bench"]),
];

/// Headings of flags, with the identifiers of their flags. A flag that declares its own heading keeps it.
const HEADINGS: [(&str, &str); 10] = [
    (
        "Input",
        "data schema real synthetic held_out model link_file on name",
    ),
    (
        "Columns",
        "target leave_out kind code_book bins max_categories",
    ),
    (
        "Privacy",
        "epsilon delta runs record_bound shared_by accept_rule yes",
    ),
    (
        "Output",
        "out force rows seed conditions report card model_out share_out json",
    ),
    ("Model", "mechanism target_weight model_mb memory_mb"),
    (
        "Holders",
        "holders by honest contribution holder session messages wait shares",
    ),
    ("Services", "witness keys generation computation crypto"),
    (
        "Server",
        "server data_dir listen web closed log lease_seconds",
    ),
    ("Account", "email sign_up api_key_file"),
    (
        "Reading the table",
        "delimiter missing encoding skip_rows skip_footer comment quote sheet clamp ignore_columns",
    ),
];

/// Heading of flags that many commands have.
const GENERAL: &str = "Options";

/// Number of flags from which a command's flags are grouped.
const GROUPED: usize = 7;

/// Begins the list of examples in the text after the flags.
const EXAMPLES: &str = "Examples:";

/// Arranges the help of a command line and of all its subcommands.
pub fn arrange(command: Command) -> Command {
    let quiet = command
        .get_arguments()
        .find(|arg| arg.get_id() == "quiet")
        .cloned();
    let template = template(&command);
    let command = command.mut_subcommands(|sub| arrange_subcommand(sub, quiet.as_ref()));
    command.help_template(template)
}

/// Returns the layout of the first page, with the groups of [`GROUPS`].
fn template(command: &Command) -> String {
    let mut groups = String::new();
    for (title, names) in GROUPS {
        // A program without the feature `server` lacks some commands.
        let found = names
            .iter()
            .filter_map(|name| command.find_subcommand(name));
        let lines: String = found
            .map(|found| {
                let about = found
                    .get_about()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                format!("  {:<9} {about}\n", found.get_name())
            })
            .collect();
        if !lines.is_empty() {
            groups.push_str(&format!("{title}:\n{lines}\n"));
        }
    }
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    )
}

fn arrange_subcommand(command: Command, quiet: Option<&Arg>) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(|sub| arrange_subcommand(sub, quiet));
    }
    let command = shorten(command);
    let flags = command
        .get_arguments()
        .filter(|arg| !arg.is_positional())
        .count();
    match flags >= GROUPED {
        true => group(command, quiet),
        false => command.mut_args(|arg| arg.help_heading(None::<&'static str>)),
    }
}

/// Leaves everything after the examples out of the page of `-h`, if the page of `--help` has more than examples.
fn shorten(command: Command) -> Command {
    let Some(after) = command
        .get_after_help()
        .map(|after| unwrapped(&after.to_string()))
    else {
        return command;
    };
    let has_long_flags = command
        .get_arguments()
        .any(|arg| arg.get_long_help().is_some());
    let paragraphs = after
        .split("\n\n")
        .filter(|paragraph| paragraph.starts_with(EXAMPLES));
    let examples: String = paragraphs.collect();
    match examples.len() < after.len() || has_long_flags {
        true => command.after_help(examples).after_long_help(after),
        false => command.after_help(after),
    }
}

/// Joins the lines of each paragraph, which the help wraps again. Indented lines and those before them stay separate.
fn unwrapped(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match lines.last_mut() {
            Some(last) if is_prose(last) && is_prose(line) => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// Groups flags under the headings of [`HEADINGS`], with the general flags last.
fn group(command: Command, quiet: Option<&Arg>) -> Command {
    let is_long = command.get_after_long_help().is_some();
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .action(ArgAction::Help)
        .help_heading(GENERAL)
        .display_order(999);
    let help = match is_long {
        true => help.help("Print help ('-h' prints a summary)"),
        false => help.help("Print help"),
    };
    let quiet = quiet.cloned().map(|quiet| quiet.help_heading(GENERAL));
    command
        .disable_help_flag(true)
        .mut_args(|arg| match arg.get_help_heading() {
            None if !arg.is_positional() => {
                let heading = heading(arg.get_id().as_str());
                arg.help_heading(heading)
            }
            _ => arg,
        })
        .args(quiet)
        .arg(help)
}

/// Returns the heading of a flag.
fn heading(flag: &str) -> &'static str {
    let has_flag = |flags: &str| flags.split(' ').any(|known| known == flag);
    let known = HEADINGS.iter().find(|(_, flags)| has_flag(flags));
    known.map_or(GENERAL, |(heading, _)| heading)
}
