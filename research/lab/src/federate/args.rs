//! Flags of `fhaim-lab federate`.

use std::{fmt, num::NonZeroUsize, path::PathBuf, str::FromStr};

use clap::{Args, Subcommand};
use fhaim_federated::{Method, partition::Rule};

use crate::args::{FormatArguments, StrictnessArguments, count};
use crate::randomness::{Drawing, Randomness};

/// What to do with a table in many hands.
#[derive(Debug, Subcommand)]
pub enum FederateCommand<R: Randomness> {
    /// Divide a table among parties, to see what a federation of them would get
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(Drawing<SplitArguments, R>),
    /// Make a synthetic table from the tables of many parties, each with a ledger of its own
    #[command(after_help = RUN_EXAMPLES)]
    Run(Drawing<FederateArguments, R>),
}

const SPLIT_EXAMPLES: &str = "\
Examples:
  fhaim-lab federate split --data a.csv --schema a.json --rule cluster --parties 100 --out parts
  fhaim-lab federate split --data a.csv --schema a.json --rule dli:0.1 --parties 20 --out parts

Rules:
  ns       at random, all parties alike
  cluster  parties are clusters of like records
  dli:A    the records of each class by shares from Dirichlet(A): label skew [default A: 0.5]
  qs:A     the same, all records at once: sizes differ [default A: 0.5]
  qli      each party draws three classes";

const RUN_EXAMPLES: &str = "\
Examples:
  fhaim-lab federate run --parts parts --schema a.json --method aug-private --epsilon 1 --out s.csv
  fhaim-lab federate run --parts parts --schema a.json --method dist-aim --epsilon 1 --delta 1e-5 \\
      --rounds 20 --out s.csv --ledger ledger.json

Methods:
  aug-private  each party chooses what to measure, less what it is unlike the others in
  naive        each party chooses by its own table alone
  random       the server draws what is measured
  naive-bayes  attributes are independent
  dist-aim     AIM over the sums of all parties that were drawn so far, in the clear

All parties are in this process: it is for trying out what a federation would get.";

/// Triples that are drawn one after the other, each held against those before.
const MAX_TRIPLES: i64 = 10_000;

/// Flags of `federate split`.
#[derive(Debug, Args)]
pub struct SplitArguments {
    /// The table
    #[arg(long, value_name = "CSV")]
    pub data: PathBuf,
    /// Its schema
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// How records are dealt
    #[arg(long, value_name = "RULE")]
    pub rule: Rule,
    /// Parties
    #[arg(long, value_name = "K", value_parser = count)]
    pub parties: NonZeroUsize,
    /// Folder for the parties' tables: made here, or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// What a federation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Federation {
    /// FLAIM, in one of its ways.
    Flaim(Method),
    /// AIM over sums.
    DistAim,
}

/// The name of [`Federation::DistAim`].
const DIST_AIM: &str = "dist-aim";

impl FromStr for Federation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            DIST_AIM => Ok(Self::DistAim),
            _ => match name.parse() {
                Ok(Method::AugOracle) => Err(
                    "aug-oracle reads all tables and is not private: `fhaim-lab bench federated` has it"
                        .to_owned(),
                ),
                Ok(method) => Ok(Self::Flaim(method)),
                Err(_) => Err("choose aug-private, naive, random, naive-bayes or dist-aim".to_owned()),
            },
        }
    }
}

impl fmt::Display for Federation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flaim(method) => method.fmt(f),
            Self::DistAim => f.pad(DIST_AIM),
        }
    }
}

/// Flags of `federate run`.
#[derive(Debug, Args)]
pub struct FederateArguments {
    /// Folder of the parties' tables: one CSV file each
    #[arg(long, value_name = "DIR")]
    pub parts: PathBuf,
    /// The schema of all of them
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// How to choose what is measured
    #[arg(long, value_name = "M", default_value = "aug-private")]
    pub method: Federation,
    /// Privacy budget of every record: epsilon of (epsilon, delta)-differential privacy
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
    /// Rounds, or with --anneal the most there may be [default: 10; with --anneal 8 for each column]
    #[arg(long, value_name = "T")]
    pub rounds: Option<u32>,
    /// A party's chance to take part in a round
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.1,
        allow_negative_numbers = true
    )]
    pub participation: f64,
    /// Most rounds that one party takes part in: the fewer, the less noise [default: 3, or as many as so few parties need;
    /// with --anneal all]
    #[arg(long, value_name = "R")]
    pub most_rounds: Option<u32>,
    /// Choices that a party makes in a round [default: 1]
    #[arg(long, value_name = "S")]
    pub local_steps: Option<u32>,
    /// Share of the budget for measurements; the rest is for choices [default: 0.9]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub measure_share: Option<f64>,
    /// Halve the noise where a round taught nothing
    #[arg(long)]
    pub anneal: bool,
    /// Triples of columns that should come out right, drawn at random
    #[arg(
        long,
        value_name = "N",
        default_value_t = 64,
        value_parser = clap::value_parser!(u32).range(1..=MAX_TRIPLES)
    )]
    pub triples: u32,
    /// File for the synthetic table
    #[arg(long, value_name = "CSV")]
    pub out: PathBuf,
    /// File for what each party paid for
    #[arg(long, value_name = "JSON")]
    pub ledger: Option<PathBuf>,
    /// Synthetic records to draw [default: as many as the first parties say they have]
    #[arg(long, value_name = "N", value_parser = count)]
    pub records: Option<NonZeroUsize>,
    /// Most memory the model may take, in MB
    #[arg(long, value_name = "MB", default_value_t = 80)]
    pub model_mb: usize,
    /// Use records again without asking, where they were used before
    #[arg(long)]
    pub yes: bool,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}
