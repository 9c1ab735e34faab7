//! Flags of `fhaim-lab bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fhaim_release::{Holders, Options};

use super::attack::{BENCH_ATTACK_EXAMPLES, BenchAttackArguments};
use super::endings::{ENDINGS_EXAMPLES, EndingsArguments};
use super::external_baseline::Program;
use super::families::Family;
use super::federated::{BENCH_FEDERATED_EXAMPLES, FederatedArguments};
use super::mixing::{BENCH_MIX_EXAMPLES, BenchMixArguments};
use super::paper::{PAPER_EXAMPLES, PaperArguments};
use super::scale::{SCALE_EXAMPLES, ScaleArguments};
use super::trial::Without;
use crate::args::megabytes;

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Run all mechanisms on the tables in FHAIM_DATA_DIR, or on your own, in the clear
    #[command(after_help = MECHANISMS_EXAMPLES)]
    Mechanisms(MechanismsArguments),
    /// Compute every cell of every pair of tables under encryption
    #[command(after_help = COMPUTE_EXAMPLES)]
    Compute(ComputeArguments),
    /// Fit the reference measurements in FHAIM_REFERENCE_DIR, or those of a run or of a table made up, and time it
    #[command(after_help = PGM_EXAMPLES)]
    Pgm(PgmArguments),
    /// Count how fits end on generated tables that are hard to fit
    #[command(after_help = ENDINGS_EXAMPLES)]
    Endings(EndingsArguments),
    /// Run the federated methods on tables in FHAIM_DATA_DIR, in the clear, beside the printed figures
    #[command(after_help = BENCH_FEDERATED_EXAMPLES)]
    Federated(FederatedArguments),
    /// Train a learner on mixes of the images in FHAIM_DATA_DIR, beside the printed figures
    #[command(after_help = BENCH_MIX_EXAMPLES)]
    Mix(BenchMixArguments),
    /// Attack models of the tables in FHAIM_DATA_DIR, made with and without privacy
    #[command(after_help = BENCH_ATTACK_EXAMPLES)]
    Attack(BenchAttackArguments),
    /// Run the FHAIM paper's experiment on the tables in FHAIM_DATA_DIR, beside the printed figures
    #[command(after_help = PAPER_EXAMPLES)]
    Paper(PaperArguments),
    /// Run made-up tables of growing length and width under encryption, each in a process of its own
    #[command(after_help = SCALE_EXAMPLES)]
    Scale(ScaleArguments),
    /// Start the services, and read and download as many users while jobs run
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadArguments),
    /// Start the services, and measure memory and answers while callers without rights attack them
    #[command(after_help = SIEGE_EXAMPLES)]
    Siege(SiegeArguments),
}

const SIEGE_EXAMPLES: &str = "\
Examples:
  fhaim-lab bench siege
  fhaim-lab bench siege --methods 1000 --sign-ins 50 --bodies 50 --connections 200 --keys 1000";

/// Flags of `bench siege`.
#[derive(Debug, Args)]
pub struct SiegeArguments {
    /// Requests with methods that nobody knows, to each service
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub methods: usize,
    /// Sign-ins with an e-mail address of 4 MB
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub sign_ins: usize,
    /// Bodies of which a quarter is sent, to each service
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub bodies: usize,
    /// Connections that say nothing, to each service
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub connections: usize,
    /// Requests of one account for keys of datasets that do not exist
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

/// Flags of `bench load`.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// Users that read and download, each once a second
    #[arg(long, default_value_t = 200)]
    pub users: usize,
    /// Services that run already, behind one address, and let many sign up and in; else new ones
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// Jobs that run meanwhile, each followed by another while there is time
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Records of the jobs' tables, of 12 columns of 8 values
    #[arg(long, default_value_t = 20_000)]
    pub records: usize,
    /// Seconds to begin jobs for; then until the last is done
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

/// Tables of the user's own, instead of the published ones or beside those named.
#[derive(Debug, Args)]
pub struct OwnTables {
    /// A table of your own, in CSV (may be repeated); instead of the published ones, or beside those named
    #[arg(long, value_name = "CSV")]
    pub data: Vec<PathBuf>,
    /// Its schema (once for each table, in the same order)
    #[arg(long, value_name = "JSON")]
    pub schema: Vec<PathBuf>,
}

/// Flags of `bench compute`.
#[derive(Debug, Args)]
pub struct ComputeArguments {
    /// Datasets to measure; all of them if none is named
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

/// Flags of `bench mechanisms`.
#[derive(Debug, Args)]
pub struct MechanismsArguments {
    /// Datasets to run on; all of them if none is named
    pub datasets: Vec<String>,
    /// Run only the mechanism of this name, or those with this in their names (may be repeated)
    #[arg(long, value_name = "TEXT")]
    pub mechanism: Vec<String>,
    /// Options in place of a mechanism's own, as a JSON object (may be repeated): each makes a row more of
    /// every mechanism that has them
    #[arg(long, value_name = "JSON", value_parser = options)]
    pub options: Vec<Options>,
    /// Also run `staged` without these of its parts, separated by commas (may be repeated): mixture-prior,
    /// first-look, coarse-look, clear-probe, penalties or shrinkage
    #[arg(long, value_name = "PARTS")]
    pub without: Vec<Without>,
    /// A program to run on the same rows, beside --mechanism or instead of all mechanisms (may be
    /// repeated): it reads the rows seen as JSON and writes records and marginals; see research/bench/anchor.py
    #[arg(long, value_name = "NAME=COMMAND")]
    pub program: Vec<Program>,
    /// Privacy budget (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    #[command(flatten)]
    pub own: OwnTables,
    /// A family of tables that are made up, one for each seed (may be repeated): tree, copula,
    /// mixture, independent, functions, wide or narrow
    #[arg(long, value_name = "FAMILY")]
    pub family: Vec<Family>,
    /// Most memory a model may take, in MB (may be repeated)
    #[arg(long, value_name = "MB", value_parser = megabytes, default_values_t = [1.0, 8.0, 80.0])]
    pub model_mb: Vec<f64>,
    /// Holders who have the records together, and on how many of them everyone relies for noise (may be
    /// repeated)
    #[arg(long, value_name = "K/H", value_parser = parties, default_value = "1/1")]
    pub holders: Vec<[u32; 2]>,
    /// Weight of the pairs with the schema's target column, as `fhaim run` has it; programs see none
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub target_weight: u32,
    /// Also train boosted trees on drawn records and on those seen, where the target has two classes
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

/// Flags of `bench pgm`.
#[derive(Debug, Args)]
pub struct PgmArguments {
    /// Datasets in FHAIM_DATA_DIR of which a run's last fit is timed, instead of the reference
    /// measurements, and whose model is asked for records and densities
    pub datasets: Vec<String>,
    #[command(flatten)]
    pub own: OwnTables,
    /// Privacy budget of such a run (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Also measurements of a table made up, of so many attributes that hang on one another (may be
    /// repeated)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub attributes: Vec<u16>,
    /// Most memory a model of a run or of a table made up may take, in MB (may be repeated)
    #[arg(long, value_name = "MB", value_parser = megabytes, default_values_t = [1.0, 8.0, 80.0])]
    pub model_mb: Vec<f64>,
    /// Records to draw from each such model
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub records: usize,
    /// Most steps of a fit of the reference measurements, or of a table made up
    #[arg(long, default_value_t = 20_000)]
    pub steps: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

impl PgmArguments {
    /// Whether there is a table of a run: none named does not mean all of them.
    pub fn names_runs(&self) -> bool {
        !(self.datasets.is_empty() && self.own.data.is_empty() && self.own.schema.is_empty())
    }

    /// Whether there is any table, so that the reference measurements are left alone.
    pub fn names_tables(&self) -> bool {
        self.names_runs() || !self.attributes.is_empty()
    }
}

fn options(text: &str) -> Result<Options, String> {
    serde_json::from_str(text).map_err(|error| format!("options are a JSON object: {error}"))
}

/// Holders, and how many of them are relied upon.
fn parties(text: &str) -> Result<[u32; 2], String> {
    let numbers = text.split_once('/').and_then(|(count, honest)| {
        let numbers = [count.parse().ok()?, honest.parse().ok()?];
        Holders::of_records(numbers[0], numbers[1])
            .is_ok()
            .then_some(numbers)
    });
    numbers.ok_or_else(|| {
        "K/H, such as 10/9: 1 to 128 holders, and at most as many of them".to_owned()
    })
}
