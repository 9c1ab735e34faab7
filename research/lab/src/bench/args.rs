//! Command line arguments of `fhaim-lab bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fhaim_release::{Holders, Options};

use super::attack::{BENCH_ATTACK_EXAMPLES, BenchAttackArguments};
use super::encrypted_l1::{ENCRYPTED_L1_EXAMPLES, EncryptedL1Arguments};
use super::endings::{ENDINGS_EXAMPLES, EndingsArguments};
use super::external_baseline::Program;
use super::families::Family;
use super::federated::{BENCH_FEDERATED_EXAMPLES, FederatedArguments};
use super::forecast::{FORECAST_EXAMPLES, ForecastArguments};
use super::mixing::{BENCH_MIX_EXAMPLES, BenchMixArguments};
use super::paper::{PAPER_EXAMPLES, PaperArguments};
use super::scale::{SCALE_EXAMPLES, ScaleArguments};
use super::second_draws::{SECOND_DRAWS_EXAMPLES, SecondDrawsArguments};
use super::trial::Without;
use crate::args::megabytes;

/// The commands of `bench`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Run all mechanisms on the tables in FHAIM_DATA_DIR, or on your own, in the clear
    #[command(after_help = MECHANISMS_EXAMPLES)]
    Mechanisms(MechanismsArguments),
    /// Compute every cell of every pair of columns under encryption
    #[command(after_help = COMPUTE_EXAMPLES)]
    Compute(ComputeArguments),
    /// Time fits: of the reference measurements in FHAIM_REFERENCE_DIR, of a run, or of a generated table
    #[command(after_help = PGM_EXAMPLES)]
    Pgm(PgmArguments),
    /// Count how fits end on generated tables that are hard to fit
    #[command(after_help = ENDINGS_EXAMPLES)]
    Endings(EndingsArguments),
    /// Compare forecasts of what a budget can measure with the outcomes of runs
    #[command(after_help = FORECAST_EXAMPLES)]
    Forecast(ForecastArguments),
    /// Run the federated methods on tables in FHAIM_DATA_DIR, in the clear, next to printed figures
    #[command(after_help = BENCH_FEDERATED_EXAMPLES)]
    Federated(FederatedArguments),
    /// Train classifiers on mixes of the images in FHAIM_DATA_DIR, next to printed figures
    #[command(after_help = BENCH_MIX_EXAMPLES)]
    Mix(BenchMixArguments),
    /// Attack models of the tables in FHAIM_DATA_DIR, made with and without privacy
    #[command(after_help = BENCH_ATTACK_EXAMPLES)]
    Attack(BenchAttackArguments),
    /// Assess second samples of generated tables, which should have no findings
    #[command(after_help = SECOND_DRAWS_EXAMPLES)]
    SecondDraws(SecondDrawsArguments),
    /// Run the FHAIM paper's experiment on the tables in FHAIM_DATA_DIR, next to printed figures
    #[command(after_help = PAPER_EXAMPLES)]
    Paper(PaperArguments),
    /// Compute the FHAIM paper's polynomial for the L1 score on ciphertexts, at rings of 16384 and 32768
    #[command(after_help = ENCRYPTED_L1_EXAMPLES)]
    EncryptedL1(EncryptedL1Arguments),
    /// Run generated tables of growing length and width under encryption, each in its own process
    #[command(after_help = SCALE_EXAMPLES)]
    Scale(ScaleArguments),
    /// Start the services, and simulate users that read and download while jobs run
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadArguments),
    /// Start the services, and measure memory and response times while clients attack them
    #[command(after_help = ABUSE_LOAD_EXAMPLES)]
    AbuseLoad(AbuseLoadArguments),
}

const ABUSE_LOAD_EXAMPLES: &str = "\
Examples:
  fhaim-lab bench abuse-load
  fhaim-lab bench abuse-load --methods 0 --sign-ins 0 --bodies 0 --keys 0

The column `idle s` has the seconds after which a service is as small again as before the first attack.
An attack with the number 0 is left out.";

/// Arguments of `bench abuse-load`.
#[derive(Debug, Args)]
pub struct AbuseLoadArguments {
    /// Number of requests with unknown methods, to each service
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub methods: usize,
    /// Number of sign-ins with a wrong password
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub passwords: usize,
    /// Number of sign-ins with an e-mail address of 4 MB
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub sign_ins: usize,
    /// Number of datasets, and of key sets, of one account with a schema of 154 kB: 2 columns of 10,000 categories
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub schemas: usize,
    /// Number of tables in Parquet that one account draws and does not read
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub tables: usize,
    /// Number of requests that send only a quarter of their body, to each service
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub bodies: usize,
    /// Number of idle connections, to each service
    #[arg(long, value_name = "N", default_value_t = 1_500)]
    pub connections: usize,
    /// Number of requests of one account for keys of datasets that do not exist
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub keys: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const LOAD_EXAMPLES: &str = "\
Examples:
  fhaim-lab bench load
  fhaim-lab bench load --users 500 --jobs 1 --seconds 60 --json
  fhaim-lab bench load --server https://staging.fhaim.example --seconds 3600";

/// Arguments of `bench load`.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// Number of users that read and download, each once a second
    #[arg(long, default_value_t = 200)]
    pub users: usize,
    /// Use running services at this address, which must permit many sign-ups and sign-ins [default: start new services]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Number of concurrent jobs; a finished job is followed by another while there is time
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Number of records in the jobs' tables, which have 12 columns of 8 values
    #[arg(long, default_value_t = 20_000)]
    pub records: usize,
    /// Number of seconds in which jobs are started; the command ends when the last one is done
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub seconds: u64,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const COMPUTE_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab bench compute
  FHAIM_DATA_DIR=data fhaim-lab bench compute breast-cancer compas --json
  fhaim-lab bench compute --data adult.csv --schema adult.schema.json";

/// Arguments for the user's own tables.
#[derive(Debug, Args)]
pub struct OwnTables {
    /// Your own table, in CSV (may be repeated); replaces the published tables, unless these are named too
    #[arg(long, value_name = "CSV")]
    pub data: Vec<PathBuf>,
    /// Schema of your own table (once for each table, in the same order)
    #[arg(long, value_name = "JSON")]
    pub schema: Vec<PathBuf>,
}

/// Arguments of `bench compute`.
#[derive(Debug, Args)]
pub struct ComputeArguments {
    /// Datasets to measure [default: all]
    pub datasets: Vec<String>,
    #[command(flatten)]
    pub own: OwnTables,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const MECHANISMS_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab bench mechanisms --seeds 10
  FHAIM_DATA_DIR=data fhaim-lab bench mechanisms adult-32 --mechanism staged --seeds 3
  FHAIM_DATA_DIR=data fhaim-lab bench mechanisms adult-32 --mechanism staged --holders 10/1 --holders 10/9
  fhaim-lab bench mechanisms --data a.csv --schema a.json --data b.csv --schema b.json --model-mb 8
  fhaim-lab bench mechanisms --family tree --family wide --seeds 3 --model-mb 8
  fhaim-lab bench mechanisms --family tree --mechanism staged --options '{\"probe_share\": 0.15}' --seeds 3
  fhaim-lab bench mechanisms --family tree --mechanism staged --without first-look,penalties --seeds 3
  fhaim-lab bench mechanisms --family tree --mechanism staged --program \"swift=python3 research/bench/anchor.py swift\"";

/// Arguments of `bench mechanisms`.
#[derive(Debug, Args)]
pub struct MechanismsArguments {
    /// Datasets to run on [default: all]
    pub datasets: Vec<String>,
    /// Mechanism to run: its name, or a part of several names (may be repeated)
    #[arg(long, value_name = "TEXT")]
    pub mechanism: Vec<String>,
    /// Mechanism options to use instead of the defaults, as a JSON object (may be repeated): adds a row for every
    /// mechanism that has these options
    #[arg(long, value_name = "JSON", value_parser = options)]
    pub options: Vec<Options>,
    /// Parts to leave out of an additional run of `staged`, separated by commas (may be repeated): mixture-prior,
    /// first-look, coarse-look, clear-probe, penalties or shrinkage
    #[arg(long, value_name = "PARTS")]
    pub without: Vec<Without>,
    /// Program to run on the same rows, in addition to --mechanism or instead of all mechanisms (may be repeated): it
    /// reads the training rows as JSON, and writes records and marginals; see research/bench/anchor.py
    #[arg(long, value_name = "NAME=COMMAND")]
    pub program: Vec<Program>,
    /// Privacy budget (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Number of runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    #[command(flatten)]
    pub own: OwnTables,
    /// Family of generated tables, one table per seed (may be repeated): tree, copula, mixture, independent, functions,
    /// wide or narrow
    #[arg(long, value_name = "FAMILY")]
    pub family: Vec<Family>,
    /// Maximum memory for a model, in MB (may be repeated)
    #[arg(long, value_name = "MB", value_parser = megabytes, default_values_t = [1.0, 8.0, 80.0])]
    pub model_mb: Vec<f64>,
    /// Number K of holders that share the records, and number H of them whose noise counts (may be repeated)
    #[arg(long, value_name = "K/H", value_parser = parties, default_value = "1/1")]
    pub holders: Vec<[u32; 2]>,
    /// Weight of the pairs with the schema's target column, as in `fhaim run`; programs do not get it
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub target_weight: u32,
    /// Also train boosted trees on drawn records and on training records, if the target has two classes
    #[arg(long)]
    pub trees: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const PGM_EXAMPLES: &str = "\
Examples:
  FHAIM_REFERENCE_DIR=reference fhaim-lab bench pgm
  FHAIM_REFERENCE_DIR=reference fhaim-lab bench pgm --json
  FHAIM_DATA_DIR=data fhaim-lab bench pgm adult-32 --epsilon 1 --epsilon 10 --model-mb 80
  fhaim-lab bench pgm --attributes 100 --model-mb 1 --model-mb 80 --steps 300";

/// Arguments of `bench pgm`.
#[derive(Debug, Args)]
pub struct PgmArguments {
    /// Datasets in FHAIM_DATA_DIR: time the last fit of a run on them instead of the reference measurements, and query
    /// its model for records and densities
    pub datasets: Vec<String>,
    #[command(flatten)]
    pub own: OwnTables,
    /// Privacy budget of the run (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Also time fits to a generated table of N dependent attributes (may be repeated)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub attributes: Vec<u16>,
    /// Maximum memory for a model of a run or of a generated table, in MB (may be repeated)
    #[arg(long, value_name = "MB", value_parser = megabytes, default_values_t = [1.0, 8.0, 80.0])]
    pub model_mb: Vec<f64>,
    /// Number of records to draw from each such model
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub records: usize,
    /// Maximum number of steps for a fit of the reference measurements, or of a generated table
    #[arg(long, default_value_t = 20_000)]
    pub steps: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

impl PgmArguments {
    /// Whether tables for runs are named. Unlike for other benches, naming none does not select all.
    pub fn names_runs(&self) -> bool {
        !(self.datasets.is_empty() && self.own.data.is_empty() && self.own.schema.is_empty())
    }

    /// Whether any table is named. If so, the reference measurements are not used.
    pub fn names_tables(&self) -> bool {
        self.names_runs() || !self.attributes.is_empty()
    }
}

fn options(text: &str) -> Result<Options, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("the options must be a JSON object: {error}"))
}

/// Parses the number of holders, and how many of them must be honest.
fn parties(text: &str) -> Result<[u32; 2], String> {
    let numbers = text.split_once('/').and_then(|(count, honest)| {
        let numbers = [count.parse().ok()?, honest.parse().ok()?];
        Holders::of_records(numbers[0], numbers[1])
            .is_ok()
            .then_some(numbers)
    });
    numbers.ok_or_else(|| "K/H, such as 10/9: from 1 to 128 holders, and H is at most K".to_owned())
}
