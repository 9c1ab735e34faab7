//! The command line: subcommands, and the grouped help page.

use clap::{CommandFactory, Parser, Subcommand};

use crate::align::{ALIGN_EXAMPLES, AlignArguments};
use crate::bench::{BENCH_EXAMPLES, BenchArguments};
use crate::demo::{DEMO_EXAMPLES, DemoArguments};
use crate::evaluate::{EVALUATE_EXAMPLES, EvaluateArguments};
use crate::flags::{VERSION, with_mechanisms};
use crate::generate::args::{GenerateArguments, LOCAL_EXAMPLES, RUN_EXAMPLES};
use crate::randomness::{Drawing, Randomness};
use crate::sample::{SAMPLE_EXAMPLES, SampleArguments};
use crate::schema::SchemaCommand;
#[cfg(feature = "server")]
use crate::server::ServerCommand;
use crate::shell::ShellCommand;

const EXIT_CODES: &str = "Exit codes: 0 success, 2 invalid request (correct the arguments, schema or table), 1 any other failure.";

/// Make differentially private synthetic tables from encrypted data.
#[derive(Debug, Parser)]
#[command(name = "fhaim", version = VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments<R: Randomness> {
    /// Do not show progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command<R>,
}

/// The subcommands. `fhaim --help` lists them in the order of [`GROUPS`].
#[derive(Debug, Subcommand)]
pub enum Command<R: Randomness> {
    /// Try fhaim: encrypt an included table, and make a synthetic table with a report
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(Drawing<DemoArguments, R>),
    /// Draft or check a schema, the public description of your table
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Make a synthetic table under encryption, with all services in this process
    #[command(after_help = with_mechanisms(RUN_EXAMPLES))]
    Run(Drawing<GenerateArguments, R>),
    /// Make a synthetic table without encryption, with the same privacy guarantee as `run`
    #[command(after_help = with_mechanisms(LOCAL_EXAMPLES))]
    Local(Drawing<GenerateArguments, R>),
    /// Draw more synthetic records from the model of a run
    #[command(after_help = SAMPLE_EXAMPLES)]
    Sample(Drawing<SampleArguments, R>),
    /// Compare a synthetic table with the real one
    #[command(after_help = EVALUATE_EXAMPLES)]
    Evaluate(Drawing<EvaluateArguments, R>),
    /// Find the rows that the tables of two or three holders have in common
    #[command(after_help = ALIGN_EXAMPLES)]
    Align(AlignArguments),
    /// Measure the speed of encrypted computation with your table on this machine
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Server(ServerCommand<R>),
    /// Print shell completions, or write manual pages
    #[command(subcommand, hide = true)]
    Shell(ShellCommand),
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

/// Returns the program's command line, whose help page has the groups of [`GROUPS`].
pub fn command<R: Randomness>() -> clap::Command {
    let command = Arguments::<R>::command();
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
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
}
