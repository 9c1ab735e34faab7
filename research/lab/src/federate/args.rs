//! Command line arguments of `fhaim-lab federate`.

use std::{fmt, num::NonZeroUsize, path::PathBuf, str::FromStr};

use clap::{Args, Subcommand};
use fhaim_federated::{Method, partition::Rule};

use crate::args::{FormatArguments, StrictnessArguments, count};
use crate::randomness::{Drawing, Randomness};

/// The commands of `federate`.
#[derive(Debug, Subcommand)]
pub enum FederateCommand<R: Randomness> {
    /// Split a table among simulated parties, to test a federation on it
    #[command(after_help = SPLIT_EXAMPLES)]
    Split(Drawing<SplitArguments, R>),
    /// Make the tables of simulated parties with skewed features (SynthFS of the FLAIM paper)
    #[command(after_help = SYNTHFS_EXAMPLES)]
    Synthfs(Drawing<SynthFsArguments, R>),
    /// Make a synthetic table from the tables of many parties, each with its own privacy ledger
    #[command(after_help = RUN_EXAMPLES)]
    Run(Drawing<FederateArguments, R>),
}

const SPLIT_EXAMPLES: &str = "\
Examples:
  fhaim-lab federate split --data a.csv --schema a.json --rule cluster --parties 100 --out parts
  fhaim-lab federate split --data a.csv --schema a.json --rule dli:0.1 --parties 20 --out parts

Rules:
  ns       at random, in equal numbers
  cluster  each party has a cluster of similar records
  dli:A    the records of each class in shares from Dirichlet(A): label skew [default A: 0.5]
  qs:A     all records in shares from Dirichlet(A): different sizes [default A: 0.5]
  qli      each party draws three classes";

const SYNTHFS_EXAMPLES: &str = "\
Examples:
  fhaim-lab federate synthfs --parties 100 --skew 2 --schema synthfs.schema.json --out parts
  fhaim-lab federate run --parts parts --schema synthfs.schema.json --epsilon 1 --out s.csv

A table has 10 features of 41 bins. For each party and feature, a mean from 1 to 40 is drawn with \
probability proportional to mean^-A; values are normal around it with variance 1.";

const RUN_EXAMPLES: &str = "\
Examples:
  fhaim-lab federate run --parts parts --schema a.json --method aug-private --epsilon 1 --out s.csv
  fhaim-lab federate run --parts parts --schema a.json --method dist-aim --epsilon 1 --delta 1e-5 \\
      --rounds 20 --out s.csv --ledger ledger.json

Methods:
  aug-private  each party chooses what to measure, and discounts its difference from the others
  aug-proxy    as aug-private, without new sums of all columns in every round
  naive        each party chooses by its own table only
  random       each party draws what is measured
  naive-bayes  models attributes as independent
  dist-aim     AIM over the sums of all parties drawn so far, in the clear

All parties run in this process: the command shows what a federation would get.";

/// The most triples. Each drawn triple is compared with all earlier ones.
const MAX_TRIPLES: i64 = 10_000;

/// Arguments of `federate split`.
#[derive(Debug, Args)]
pub struct SplitArguments {
    /// Table to split
    #[arg(long, value_name = "CSV")]
    pub data: PathBuf,
    /// Schema of the table
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Rule for splitting the records (see below)
    #[arg(long, value_name = "RULE")]
    pub rule: Rule,
    /// Number of parties
    #[arg(long, value_name = "K", value_parser = count)]
    pub parties: NonZeroUsize,
    /// Folder for the parties' tables: new or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

/// Arguments of `federate synthfs`.
#[derive(Debug, Args)]
pub struct SynthFsArguments {
    /// Number of parties
    #[arg(long, value_name = "K", value_parser = count)]
    pub parties: NonZeroUsize,
    /// Number of records of each party
    #[arg(long, value_name = "N", value_parser = count, default_value = "500")]
    pub records: NonZeroUsize,
    /// Exponent of the distribution of means: parties with a larger one are more alike
    #[arg(long, value_name = "A", allow_negative_numbers = true, value_parser = finite)]
    pub skew: f64,
    /// File for the schema of the tables
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Folder for the parties' tables: new or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("a finite number".to_owned()),
    }
}

/// The method of a federated run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Federation {
    /// FLAIM with one of its methods.
    Flaim(Method),
    /// AIM over the sums of the parties.
    DistAim,
}

/// The name of [`Federation::DistAim`] on the command line.
const DIST_AIM: &str = "dist-aim";

impl FromStr for Federation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            DIST_AIM => Ok(Self::DistAim),
            _ => match name.parse::<Method>() {
                Ok(method) if !method.is_private() => Err(format!(
                    "{method} reads all tables and is not private: only `fhaim-lab bench federated` runs it"
                )),
                Ok(method) => Ok(Self::Flaim(method)),
                Err(_) => Err(
                    "choose aug-private, aug-proxy, naive, random, naive-bayes or dist-aim"
                        .to_owned(),
                ),
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

/// Arguments of `federate run`.
#[derive(Debug, Args)]
pub struct FederateArguments {
    /// Folder with the parties' tables: one CSV file per party
    #[arg(long, value_name = "DIR")]
    pub parts: PathBuf,
    /// Schema of all tables
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Method for choosing measurements (see below)
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
    /// Number of rounds; with --anneal, the maximum [default: 10; with --anneal, 8 per column]
    #[arg(long, value_name = "T")]
    pub rounds: Option<u32>,
    /// Probability that a party takes part in a round
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.1,
        allow_negative_numbers = true
    )]
    pub participation: f64,
    /// Maximum number of rounds per party; fewer rounds need less noise [default: 3, or more if a few parties must fill
    /// all rounds; with --anneal, all]
    #[arg(long, value_name = "R")]
    pub most_rounds: Option<u32>,
    /// Number of choices that a party makes in a round [default: 1]
    #[arg(long, value_name = "S")]
    pub local_steps: Option<u32>,
    /// Share of the budget for measurements; the rest is for choices [default: 0.9]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub measure_share: Option<f64>,
    /// Halve the noise after a round that hardly changed the model
    #[arg(long)]
    pub anneal: bool,
    /// Number of random triples of columns that the model should reproduce
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
    /// File for the payments of each party
    #[arg(long, value_name = "JSON")]
    pub ledger: Option<PathBuf>,
    /// Number of synthetic records [default: the mean of the noisy numbers that parties released, times their number]
    #[arg(long, value_name = "N", value_parser = count)]
    pub rows: Option<NonZeroUsize>,
    /// Maximum memory for the model, in MB
    #[arg(long, value_name = "MB", default_value_t = 80)]
    pub model_mb: usize,
    /// Continue without a question if records were used before
    #[arg(long)]
    pub yes: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}
