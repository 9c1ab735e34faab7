//! Subcommands of `fhaim-lab`.

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

const EXIT_CODES: &str = "Exit code 0 is success, 2 a request that cannot be carried out as it stands, 1 any other failure.";

/// Compare fhaim with other systems, and measure it
#[derive(Debug, Parser)]
#[command(name = "fhaim-lab", version = VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments<R: Randomness> {
    /// Say nothing of progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command<R>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command<R: Randomness> {
    /// One table in many hands: divide one, make a synthetic table from the parts
    #[command(subcommand)]
    Federate(FederateCommand<R>),
    /// Means of a few records of one class with noise, of a table or of images
    #[command(after_help = MIX_EXAMPLES)]
    Mix(Drawing<MixArguments, R>),
    /// Try to tell which records a model was made from
    #[command(after_help = ATTACK_EXAMPLES)]
    Attack(AttackArguments),
    /// Generative adversarial networks, private and federated
    #[command(subcommand)]
    Gan(GanCommand),
    /// Measure speed and accuracy
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Run a command of `fhaim`, as benches do with processes of their own
    #[command(hide = true, disable_help_flag = true)]
    Fhaim(ProductArguments),
}

/// A command of the product.
#[derive(Debug, Args)]
pub struct ProductArguments {
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<OsString>,
}

/// A number of megabytes, as a flag has it.
///
/// # Errors
/// What it must be.
pub fn megabytes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(mb) if mb > 0.0 && mb.is_finite() => Ok(mb),
        _ => Err("a positive number".to_owned()),
    }
}
