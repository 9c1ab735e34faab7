//! The command line: flags of the program, and its subcommands.

use clap::{CommandFactory, Parser, Subcommand};

use crate::align::{ALIGN_EXAMPLES, AlignArguments};
use crate::bench::{BENCH_EXAMPLES, BenchArguments};
use crate::demo::{DEMO_EXAMPLES, DemoArguments};
use crate::evaluate::{EVALUATE_EXAMPLES, EvaluateArguments};
use crate::flags::{VERSION, with_mechanisms};
use crate::generate::args::{GenerateArguments, LOCAL_EXAMPLES, RUN_EXAMPLES};
use crate::help;
use crate::randomness::{Drawing, Randomness};
use crate::sample::{SAMPLE_EXAMPLES, SampleArguments};
use crate::schema::SchemaCommand;
#[cfg(feature = "server")]
use crate::server::ServerCommand;
use crate::shell::ShellCommand;

const EXIT_CODES: &str =
    "Exit codes: 0 success, 2 invalid request (arguments, schema or table), 1 any other failure.";

/// Make differentially private synthetic tables from encrypted data.
#[derive(Debug, Parser)]
#[command(name = "fhaim", version = VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments<R: Randomness> {
    /// Do not show progress
    #[arg(long, short, global = true, display_order = 900)]
    pub quiet: bool,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command<R>,
}

/// The subcommands. `fhaim --help` lists them by group.
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

/// Returns the program's command line, with its help arranged by [`help::arrange`].
pub fn command<R: Randomness>() -> clap::Command {
    help::arrange(Arguments::<R>::command())
}
