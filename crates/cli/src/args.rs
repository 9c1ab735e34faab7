//! Subcommands and their flags.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{
    Args, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use fhaim_release::Holders;
use fhaim_synth::MechanismName;

use crate::align::{ALIGN_EXAMPLES, AlignArguments};
use crate::bench::families::Family;
use crate::bench::federated::{BENCH_FEDERATED_EXAMPLES, FederatedArguments};
use crate::federate::args::FederateCommand;
use crate::holders::HoldersArguments;
use crate::randomness::{Drawing, Randomness};
use crate::remote::args::{
    AccountCommand, DOWNLOAD_EXAMPLES, DatasetCommand, DownloadArguments, JobCommand,
    LEDGER_EXAMPLES, LOGIN_EXAMPLES, LOGOUT_EXAMPLES, LoginArguments, LogoutArguments,
    ShowArguments,
};
use crate::serve::{
    AdminCommand, BACKUP_EXAMPLES, BackupArguments, RESTORE_EXAMPLES, RestoreArguments,
    ServeCommand, UP_EXAMPLES, UpArguments,
};

/// delta unless another is asked for.
pub const DEFAULT_DELTA: f64 = 1e-9;

/// Model cap in MB unless another is asked for.
pub const DEFAULT_MODEL_MB: usize = 64;

/// Synthetic data from tables nobody but their holder reads.
#[derive(Debug, Parser)]
#[command(name = "fhaim", version, max_term_width = 100)]
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
    /// Encrypt a real table, compute on it, and write a synthetic one with a report
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(Drawing<DemoArguments, R>),
    /// Draft or check the public description of a table
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Make a synthetic table under encryption, all four entities in this process
    #[command(after_help = with_mechanisms(RUN_EXAMPLES))]
    Run(Drawing<GenerateArguments, R>),
    /// Make a synthetic table in the clear: the same releases as `run`, without encryption
    #[command(after_help = with_mechanisms(LOCAL_EXAMPLES))]
    Local(Drawing<GenerateArguments, R>),
    /// Compare a synthetic table with the real one
    #[command(after_help = EVALUATE_EXAMPLES)]
    Evaluate(Drawing<EvaluateArguments, R>),
    /// Find the common rows of two or three holders' tables, and one order of them
    #[command(after_help = ALIGN_EXAMPLES)]
    Align(AlignArguments),
    /// One table in many hands: divide one, make a synthetic table from the parts
    #[command(subcommand)]
    Federate(FederateCommand<R>),
    /// Measure speed and accuracy
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Run all three services in this process, with a data folder
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArguments),
    /// Run one service from its own configuration
    #[command(subcommand)]
    Serve(ServeCommand),
    /// What an operator does to a service's own store
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Copy what `fhaim up` keeps, also while it runs
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArguments),
    /// Put a copy of `fhaim backup` where `fhaim up` finds it
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArguments),
    /// Sign in to the services
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(LoginArguments),
    /// End the session and forget the login
    #[command(after_help = LOGOUT_EXAMPLES)]
    Logout(LogoutArguments),
    /// The account that is signed in
    #[command(subcommand)]
    Account(AccountCommand),
    /// Datasets at the services: create, upload, list, show, delete
    #[command(subcommand)]
    Dataset(DatasetCommand<R>),
    /// Jobs at the services: run, watch, list, show, releases, cancel, retry
    #[command(subcommand)]
    Job(JobCommand),
    /// Draw a synthetic table from a finished job
    #[command(after_help = DOWNLOAD_EXAMPLES)]
    Download(DownloadArguments),
    /// A dataset's privacy ledger, itemised
    #[command(after_help = LEDGER_EXAMPLES)]
    Ledger(ShowArguments),
}

/// What to do with a schema.
#[derive(Debug, Subcommand)]
pub enum SchemaCommand {
    /// Draft a schema from a table, for its owner to correct and confirm as public
    #[command(after_help = INFER_EXAMPLES)]
    Infer(InferArguments),
    /// Say what a schema costs and, given a table, whether the table fits it
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArguments),
}

const DEMO_EXAMPLES: &str = "\
Examples:
  fhaim demo
  fhaim demo --out wine --epsilon 10
  fhaim demo --holders 3                # three holders of a part of the wines each
  fhaim demo --holders 3 --by columns   # three holders of a part of what is known of each wine

The table is Wine Quality (red): 1,599 wines, 12 columns. It comes with this program.";

/// Flags of `demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Folder for the tables and the report
    #[arg(long, value_name = "DIR", default_value = "demo")]
    pub out: PathBuf,
    /// Privacy budget: epsilon of (epsilon, delta)-differential privacy
    #[arg(
        long,
        value_name = "E",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    pub epsilon: f64,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub holders: HoldersArguments,
}

const RUN_EXAMPLES: &str = "\
Examples:
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
  fhaim run --data patients.csv --schema patients.schema.json --epsilon 1 --delta 1e-6 \\
      --out synthetic.csv --report report.html --ledger ledger.json";

const LOCAL_EXAMPLES: &str = "\
Examples:
  fhaim local --data patients.csv --schema patients.schema.json --epsilon 1 --out synthetic.csv
  fhaim local --data patients.csv --schema patients.schema.json --epsilon 10 --delta 1e-6 \\
      --mechanism aim --out synthetic.csv --ledger ledger.json --json";

/// Flags of `local` and `run`.
#[derive(Debug, Args)]
pub struct GenerateArguments {
    /// The table
    #[arg(long, value_name = "CSV")]
    pub data: PathBuf,
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
    /// Synthetic records to draw [default: as many as the model estimates there are]
    #[arg(long, value_name = "N")]
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

const EVALUATE_EXAMPLES: &str = "\
Examples:
  fhaim evaluate --real patients.csv --synthetic synthetic.csv --schema patients.schema.json \\
      --out report.html
  fhaim evaluate --real train.csv --held-out test.csv --synthetic synthetic.csv \\
      --schema patients.schema.json --json > report.json";

/// Flags of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArguments {
    /// The real table
    #[arg(long, value_name = "CSV")]
    pub real: PathBuf,
    /// The synthetic table
    #[arg(long, value_name = "CSV")]
    pub synthetic: PathBuf,
    /// Real records that the synthetic table was not made from
    #[arg(long, value_name = "CSV")]
    pub held_out: Option<PathBuf>,
    /// The schema of all of them
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// File for the report as one page
    #[arg(long, value_name = "HTML")]
    pub out: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

const INFER_EXAMPLES: &str = "\
Examples:
  fhaim schema infer --data patients.csv > draft.schema.json
  fhaim schema infer --data patients.csv --target outcome --leave-out id --out draft.schema.json";

const CHECK_EXAMPLES: &str = "\
Examples:
  fhaim schema check patients.schema.json
  fhaim schema check patients.schema.json --data patients.csv --missing '?' --json";

/// How a table is written.
#[derive(Debug, Default, Args)]
pub struct FormatArguments {
    /// Character between fields [default: that of the first lines]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Field that stands for a missing value, beside the empty one (may be repeated)
    #[arg(long, value_name = "TEXT")]
    pub missing: Vec<String>,
}

impl FormatArguments {
    /// All fields that stand for a missing value.
    pub fn missing(&self) -> Vec<String> {
        let mut texts = vec![String::new()];
        texts.extend(self.missing.iter().cloned());
        texts
    }
}

/// What to do with values that a schema does not have.
#[derive(Debug, Default, Args)]
pub struct StrictnessArguments {
    /// Take categories that the schema lacks for the one it declares as `other`
    #[arg(long)]
    pub use_other: bool,
    /// Take numbers outside the schema's range for the nearest limit
    #[arg(long)]
    pub clamp: bool,
    /// Leave out columns that the schema lacks
    #[arg(long)]
    pub ignore_columns: bool,
}

/// Flags of `schema infer`.
#[derive(Debug, Args)]
pub struct InferArguments {
    /// The table
    #[arg(long, value_name = "CSV")]
    pub data: PathBuf,
    /// Name of the schema [default: the table's file name]
    #[arg(long)]
    pub name: Option<String>,
    /// Column that the table is meant to predict
    #[arg(long, value_name = "COLUMN")]
    pub target: Option<String>,
    /// Column to leave out (may be repeated)
    #[arg(long, value_name = "COLUMN")]
    pub leave_out: Vec<String>,
    /// Bins of a numeric column
    #[arg(long, default_value_t = 10)]
    pub bins: u32,
    /// Most categories of a column of texts
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_categories: usize,
    /// File for the draft [default: standard output]
    #[arg(long, value_name = "JSON")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArguments,
}

/// Flags of `schema check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The schema
    #[arg(value_name = "JSON")]
    pub schema: PathBuf,
    /// A table to hold against it
    #[arg(long, value_name = "CSV")]
    pub data: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Run all mechanisms on the tables in FHAIM_DATA_DIR, or on your own, in the clear
    #[command(after_help = MECHANISMS_EXAMPLES)]
    Mechanisms(MechanismsArguments),
    /// Compute every cell of every pair of the tables in FHAIM_DATA_DIR under encryption
    #[command(after_help = COMPUTE_EXAMPLES)]
    Compute(ComputeArguments),
    /// Fit the reference measurements in FHAIM_REFERENCE_DIR and compare marginals and seconds
    #[command(after_help = PGM_EXAMPLES)]
    Pgm(PgmArguments),
    /// Run the federated methods on tables in FHAIM_DATA_DIR, in the clear, beside the printed figures
    #[command(after_help = BENCH_FEDERATED_EXAMPLES)]
    Federated(FederatedArguments),
    /// Start the services, and read and download as many users while jobs run
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadArguments),
    /// Start the services, and measure memory and answers while callers without rights attack them
    #[command(after_help = SIEGE_EXAMPLES)]
    Siege(SiegeArguments),
}

const SIEGE_EXAMPLES: &str = "\
Examples:
  fhaim bench siege
  fhaim bench siege --methods 1000 --sign-ins 50 --bodies 50 --connections 200 --keys 1000";

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
  fhaim bench load
  fhaim bench load --users 500 --jobs 1 --seconds 60 --json";

/// Flags of `bench load`.
#[derive(Debug, Args)]
pub struct LoadArguments {
    /// Users that read and download, each once a second
    #[arg(long, default_value_t = 200)]
    pub users: usize,
    /// Jobs that run meanwhile
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Records of the jobs' tables, of 12 columns of 8 values
    #[arg(long, default_value_t = 20_000)]
    pub records: usize,
    /// Seconds to go on for at least; else until the jobs are done
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub seconds: u64,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const COMPUTE_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim bench compute
  FHAIM_DATA_DIR=data fhaim bench compute breast-cancer compas --json";

/// Flags of `bench compute`.
#[derive(Debug, Args)]
pub struct ComputeArguments {
    /// Datasets to measure; all of them if none is named
    pub datasets: Vec<String>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const MECHANISMS_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim bench mechanisms --seeds 10
  FHAIM_DATA_DIR=data fhaim bench mechanisms adult-32 --mechanism staged --seeds 3
  FHAIM_DATA_DIR=data fhaim bench mechanisms adult-32 --mechanism staged --holders 10/1 --holders 10/9
  fhaim bench mechanisms --data a.csv --schema a.json --data b.csv --schema b.json --model-mb 8
  fhaim bench mechanisms --family tree --family wide --seeds 3 --model-mb 8";

/// Flags of `bench mechanisms`.
#[derive(Debug, Args)]
pub struct MechanismsArguments {
    /// Datasets to run on; all of them if none is named
    pub datasets: Vec<String>,
    /// Run only mechanisms with this in their names
    #[arg(long, value_name = "TEXT")]
    pub mechanism: Option<String>,
    /// Privacy budget (may be repeated)
    #[arg(long, value_name = "E", default_values_t = [1.0, 10.0], allow_negative_numbers = true)]
    pub epsilon: Vec<f64>,
    /// Runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub seeds: u64,
    /// A table of your own, in CSV (may be repeated); instead of the published ones, or beside those named
    #[arg(long, value_name = "CSV")]
    pub data: Vec<PathBuf>,
    /// Its schema (once for each table, in the same order)
    #[arg(long, value_name = "JSON")]
    pub schema: Vec<PathBuf>,
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
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

const PGM_EXAMPLES: &str = "\
Examples:
  FHAIM_REFERENCE_DIR=reference fhaim bench pgm
  FHAIM_REFERENCE_DIR=reference fhaim bench pgm --json";

/// Flags of `bench pgm`.
#[derive(Debug, Args)]
pub struct PgmArguments {
    /// Most steps of a fit
    #[arg(long, default_value_t = 20_000)]
    pub steps: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
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

pub fn megabytes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(mb) if mb > 0.0 && mb.is_finite() => Ok(mb),
        _ => Err("a positive number".to_owned()),
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Ok(*byte),
        _ => Err("one ASCII character that is no quote or line end (\\t for a tab)".to_owned()),
    }
}

/// What follows the flags of a command that takes a mechanism: examples, and what each of the
/// mechanisms is.
pub fn with_mechanisms(examples: &str) -> String {
    let mut text = format!("{examples}\n\nMechanisms:");
    for mechanism in MechanismName::all() {
        let where_to = if mechanism.clear_only() {
            " (fhaim local only)"
        } else {
            ""
        };
        text.push_str(&format!(
            "\n  {mechanism:9}  {}{where_to}",
            mechanism.about()
        ));
    }
    text
}

pub fn mechanism() -> impl TypedValueParser<Value = MechanismName> {
    PossibleValuesParser::new(MechanismName::all().map(MechanismName::as_str))
        .try_map(|name| name.parse())
}
