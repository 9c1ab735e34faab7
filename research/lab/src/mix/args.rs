//! Command line arguments of `fhaim-lab mix`.

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    str::FromStr,
};

use clap::Args;
use fhaim_mix::{CdaNoise, MAX_CLASSES};

use crate::args::{FormatArguments, StrictnessArguments, count};
use crate::input::Data;

/// The end of the text of `--help`.
pub const MIX_EXAMPLES: &str = "\
Examples:
  fhaim-lab mix --data a.csv --schema a.json --mix 32 --epsilon 10 --out s.csv
  fhaim-lab mix --data a.csv --schema a.json --mix 32 --epsilon 10 --encrypted --out s.csv
  fhaim-lab mix --data a.csv --schema a.json --mix 8 --epsilon 10 --delta 1e-5 --method dp-cda \\
      --parties 10 --out s.csv
  fhaim-lab mix --images train.idx3 --labels train.idx1 --mix 32 --epsilon 10 --out s.idx3 \\
      --out-labels s.idx1

Methods:
  groups  each record is in a fixed number of public groups: exact, and possible under encryption
  dp-cda  each mix has randomly drawn records: the number of records per class is public

A table's target column is the class. The cost of DP-CDA is for a record that is replaced by another of
its class, the cost of groups for one that is added or removed. All parties run in this process: the
command shows what they would get.";

/// A method for making mixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Public groups.
    Groups,
    /// DP-CDA.
    Cda,
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "groups" => Ok(Self::Groups),
            "dp-cda" => Ok(Self::Cda),
            _ => Err("choose groups or dp-cda".to_owned()),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Groups => "groups",
            Self::Cda => "dp-cda",
        })
    }
}

fn memberships(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .map_err(|_| format!("a whole number from 1 to {}", u32::MAX))
}

fn noise(name: &str) -> Result<CdaNoise, String> {
    match name {
        "shared" => Ok(CdaNoise::Shared),
        "conventional" => Ok(CdaNoise::Conventional),
        "correlated" => Ok(CdaNoise::Correlated),
        _ => Err("choose shared, conventional or correlated".to_owned()),
    }
}

/// Arguments of `mix`.
#[derive(Debug, Args)]
pub struct MixArguments {
    /// Table with the records
    #[arg(long, value_name = "CSV", requires = "schema")]
    pub data: Option<Data>,
    /// Schema of the table, which must name a target
    #[arg(long, value_name = "JSON", requires = "data")]
    pub schema: Option<PathBuf>,
    /// Images as an IDX file, instead of a table
    #[arg(
        long,
        value_name = "IDX",
        requires = "labels",
        conflicts_with = "data",
        required_unless_present = "data"
    )]
    pub images: Option<Data>,
    /// Classes of the images as an IDX file
    #[arg(long, value_name = "IDX", requires = "images")]
    pub labels: Option<PathBuf>,
    /// Number of classes of images
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        conflicts_with = "data",
        value_parser = clap::value_parser!(u16).range(1..=MAX_CLASSES as i64)
    )]
    pub classes: u16,
    /// Number of records in a mix
    #[arg(long, value_name = "L", value_parser = count)]
    pub mix: NonZeroUsize,
    /// Method for making mixes (see below)
    #[arg(long, value_name = "M", default_value = "groups")]
    pub method: Method,
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
    /// For groups: number of groups that each record is in [default: 1]
    #[arg(long, value_name = "N", value_parser = memberships)]
    pub memberships: Option<NonZeroU32>,
    /// For groups: maximum number of records of a class, which is public [default: the largest class's number, rounded
    /// up to a power of two]
    #[arg(long, value_name = "N", value_parser = count)]
    pub capacity: Option<NonZeroUsize>,
    /// For groups: compute under encryption, with all parties in this process
    #[arg(long)]
    pub encrypted: bool,
    /// For dp-cda: number of parties that the records are split among [default: 1]
    #[arg(long, value_name = "S", value_parser = count)]
    pub parties: Option<NonZeroUsize>,
    /// For dp-cda: whether the parties add noise together under masks (shared), each one enough for itself
    /// (conventional), or noise that mostly cancels in their sum, as in CAPE (correlated) [default: shared]
    #[arg(long, value_name = "N", value_parser = noise)]
    pub noise: Option<CdaNoise>,
    /// For dp-cda: number of mixes [default: the number of records]
    #[arg(long, value_name = "T", value_parser = count)]
    pub samples: Option<NonZeroUsize>,
    /// File for the synthetic table or images
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// File for the classes of synthetic images
    #[arg(long, value_name = "IDX", requires = "images")]
    pub out_labels: Option<PathBuf>,
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
