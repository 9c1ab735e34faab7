//! Flags of `fhaim run` and `fhaim local`.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::Args;
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_synth::MechanismName;

use crate::{
    division::HoldersArguments,
    flags::{DEFAULT_DELTA_TEXT, DEFAULT_MODEL_MB, count, mechanism},
    input::Data,
};

/// Examples in the command's help.
pub const RUN_EXAMPLES: &str = "\
Examples:
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --delta 1e-6 \\
      --out synthetic.csv --report report.html

Next to synthetic.csv, the run writes synthetic.releases.json (every release and its cost), synthetic.model, and the
data card, synthetic.card.html and synthetic.card.json, which has public facts only. If the table goes to a pipe or to
standard output, their names begin with fhaim. An interrupted run continues if the same command runs again, and no release is paid for twice.";

/// Examples in the command's help.
pub const LOCAL_EXAMPLES: &str = "\
Examples:
  fhaim local --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
  fhaim local --data patients.csv --schema patients.schema.json --epsilon 10 --delta 1e-6 \\
      --mechanism aim --out synthetic.csv --json

Next to synthetic.csv, the run writes synthetic.releases.json (every release and its cost), synthetic.model, and the
data card, synthetic.card.html and synthetic.card.json, which has public facts only. If the table goes to a pipe or to
standard output, their names begin with fhaim. An interrupted run continues if the same command runs again, and no release is paid for twice.";

/// Flags of `local` and `run`.
#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// Input table (CSV, Excel or Parquet)
    #[arg(long, value_name = "TABLE")]
    pub data: Data,
    /// Schema of the table; see `fhaim schema infer`
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Privacy budget: epsilon of (epsilon, delta)-differential privacy; smaller is more private
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: f64,
    /// Privacy budget: delta of (epsilon, delta)-differential privacy
    #[arg(
        long,
        value_name = "D",
        default_value = DEFAULT_DELTA_TEXT,
        allow_negative_numbers = true
    )]
    pub delta: f64,
    /// Output file for the synthetic table: CSV or, with the extension .parquet, Parquet. The other output files have
    /// its name, with other endings
    #[arg(long, value_name = "TABLE")]
    pub out: PathBuf,
    /// Output file for a report on the quality of the synthetic table
    ///
    /// The report is not private: only the holder of the real table may see it.
    #[arg(long, value_name = "HTML")]
    pub report: Option<PathBuf>,
    /// Start a new run at a new privacy cost, and replace the files of an earlier one
    #[arg(long)]
    pub force: bool,
    /// Number of synthetic records [default: the model's estimate of the number of real records]
    #[arg(long, value_name = "N", value_parser = count)]
    pub rows: Option<NonZeroUsize>,
    /// Public upper bound on the number of real records [default: the bound that the size of an upload
    /// reveals]
    #[arg(long, value_name = "N")]
    pub record_bound: Option<u64>,
    /// Mechanism that spends the budget. --help describes each
    #[arg(long, value_name = "M", default_value_t, value_parser = mechanism())]
    pub mechanism: MechanismName,
    /// Maximum memory for the model, in MB
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_MODEL_MB)]
    pub model_mb: usize,
    /// Weight of pairs of columns that include the schema's target column
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub target_weight: u32,
    /// Maximum memory for the command, in MB [default: the memory that is available]
    #[arg(long, value_name = "MB")]
    pub memory_mb: Option<u64>,
    /// Continue without a question, also if the records were used before or only noise is expected
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

#[cfg(test)]
pub mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: GenerateArguments,
    }

    /// Returns the arguments of a run with this output.
    pub fn arguments(out: &str) -> GenerateArguments {
        let flags = [
            "run",
            "--data",
            "t.csv",
            "--schema",
            "t.json",
            "--epsilon",
            "1",
        ];
        Command::parse_from(flags.into_iter().chain(["--out", out])).arguments
    }
}
