//! Command line arguments of `fhaim-lab`.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand};
pub use fhaim_cli::shared::{DEFAULT_DELTA, count, mechanism};
use fhaim_cli::{
    Randomness,
    shared::{Drawing, VERSION},
};
pub use fhaim_files::{FormatArguments, StrictnessArguments};

use crate::attack::{ATTACK_EXAMPLES, AttackArguments};
use crate::bench::args::BenchCommand;
use crate::federate::args::FederateCommand;
use crate::gan::args::GanCommand;
use crate::mix::args::{MIX_EXAMPLES, MixArguments};

const EXIT_CODES: &str =
    "Exit codes: 0 success, 2 a request that cannot be carried out as given, 1 any other failure.";

/// Compare fhaim with other systems, and measure it
#[derive(Debug, Parser)]
#[command(name = "fhaim-lab", version = VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments<R: Randomness> {
    /// Do not print progress messages
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// The command to run.
    #[command(subcommand)]
    pub command: Command<R>,
}

/// The commands of `fhaim-lab`.
#[derive(Debug, Subcommand)]
pub enum Command<R: Randomness> {
    /// Split a table among simulated parties, and make a synthetic table from their parts
    #[command(subcommand)]
    Federate(FederateCommand<R>),
    /// Make noisy means of a few records of one class, from a table or from images
    #[command(after_help = MIX_EXAMPLES)]
    Mix(Drawing<MixArguments, R>),
    /// Test whether a model reveals the records that it was made from
    #[command(after_help = ATTACK_EXAMPLES)]
    Attack(AttackArguments),
    /// Train and test generative adversarial networks, private and federated
    #[command(subcommand)]
    Gan(GanCommand),
    /// Measure speed and accuracy
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Run a command of `fhaim` (benches start it as a separate process)
    #[command(hide = true, disable_help_flag = true)]
    Fhaim(ProductArguments),
}

/// A command of `fhaim`.
#[derive(Debug, Args)]
pub struct ProductArguments {
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// Parses the value of a flag as a number of megabytes.
///
/// # Errors
/// A message that says what the value must be.
pub fn megabytes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(mb) if mb > 0.0 && mb.is_finite() => Ok(mb),
        _ => Err("a positive number".to_owned()),
    }
}
