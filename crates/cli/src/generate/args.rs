//! Flags of `fhaim run` and `fhaim local`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_synth::MechanismName;

use crate::{
    division::HoldersArguments,
    flags::{DEFAULT_MODEL_MB, count, mechanism},
    input::Data,
};

/// Examples in the help.
pub const RUN_EXAMPLES: &str = "\
Examples:
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --delta 1e-6 \\
      --out synthetic.csv --report report.html --ledger ledger.json";

/// Examples in the help.
pub const LOCAL_EXAMPLES: &str = "\
Examples:
  fhaim local --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
  fhaim local --data patients.csv --schema patients.schema.json --epsilon 10 --delta 1e-6 \\
      --mechanism aim --out synthetic.csv --ledger ledger.json --json";

/// Flags of `local` and `run`.
#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// The table
    #[arg(long, value_name = "CSV")]
    pub data: Data,
    /// Its schema
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Privacy budget: epsilon of (epsilon, delta)-differential privacy
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: f64,
    /// Privacy budget: delta
    #[arg(
        long,
        value_name = "D",
        default_value_t = 1e-9,
        allow_negative_numbers = true
    )]
    pub delta: f64,
    /// How to spend it
    #[arg(long, value_name = "M", default_value_t, value_parser = mechanism())]
    pub mechanism: MechanismName,
    /// File for the synthetic table
    #[arg(long, value_name = "CSV")]
    pub out: PathBuf,
    /// File for the itemised releases and what each cost
    #[arg(long, value_name = "JSON")]
    pub ledger: Option<PathBuf>,
    /// File for a page on how close the synthetic table is (not private: for its holder alone)
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,
    /// File for the model, from which `fhaim sample` draws more; as private as the synthetic table
    #[arg(long, value_name = "FILE")]
    pub model_out: Option<PathBuf>,
    /// Synthetic records to draw [default: as many as the model estimates there are]
    #[arg(long, value_name = "N", value_parser = count)]
    pub records: Option<NonZeroUsize>,
    /// Public bound on the number of records [default: what the size of the upload shows]
    #[arg(long, value_name = "N")]
    pub record_bound: Option<u64>,
    /// Most memory the model may take, in MB
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_MODEL_MB)]
    pub model_mb: usize,
    /// Weight of the pairs with the schema's target column
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub target_weight: u32,
    /// Most memory the command may take, in MB [default: what the system has free]
    #[arg(long, value_name = "MB")]
    pub memory_mb: Option<u64>,
    /// Use records again without asking, where they were used before
    #[arg(long)]
    pub yes: bool,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub holders: HoldersArguments,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}
