//! Flags of `fhaim-lab mix`.

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

/// What `--help` ends with.
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
  dp-cda  each mix is of records drawn at random: records of a class are public in number

A table's target column is the class. What DP-CDA costs is for a record that is replaced by another of its class, what
groups cost for one that is added or removed. All parties are in this process: it is for trying out what they would get.";

/// How mixes are made.
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
        _ => Err("choose shared or conventional".to_owned()),
    }
}

/// Flags of `mix`.
#[derive(Debug, Args)]
pub struct MixArguments {
    /// The table
    #[arg(long, value_name = "CSV", requires = "schema")]
    pub data: Option<Data>,
    /// Its schema, which names a target
    #[arg(long, value_name = "JSON", requires = "data")]
    pub schema: Option<PathBuf>,
    /// Images instead of a table
    #[arg(
        long,
        value_name = "IDX",
        requires = "labels",
        conflicts_with = "data",
        required_unless_present = "data"
    )]
    pub images: Option<Data>,
    /// Their classes
    #[arg(long, value_name = "IDX", requires = "images")]
    pub labels: Option<PathBuf>,
    /// Classes that images may be of
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        conflicts_with = "data",
        value_parser = clap::value_parser!(u16).range(1..=MAX_CLASSES as i64)
    )]
    pub classes: u16,
    /// Records in a mix
    #[arg(long, value_name = "L", value_parser = count)]
    pub mix: NonZeroUsize,
    /// How mixes are made
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
    /// Groups that each record is in (groups) [default: 1]
    #[arg(long, value_name = "N", value_parser = memberships)]
    pub memberships: Option<NonZeroU32>,
    /// Most records of a class, public (groups) [default: the largest class's, up to a power of two]
    #[arg(long, value_name = "N", value_parser = count)]
    pub capacity: Option<NonZeroUsize>,
    /// Compute under encryption, all parties in this process (groups)
    #[arg(long)]
    pub encrypted: bool,
    /// Parties that the records are dealt among (dp-cda) [default: 1]
    #[arg(long, value_name = "S", value_parser = count)]
    pub parties: Option<NonZeroUsize>,
    /// Who adds noise (dp-cda): the parties together (shared), or each enough for itself (conventional) [default: shared]
    #[arg(long, value_name = "N", value_parser = noise)]
    pub noise: Option<CdaNoise>,
    /// Mixes (dp-cda) [default: as many as there are records]
    #[arg(long, value_name = "T", value_parser = count)]
    pub samples: Option<NonZeroUsize>,
    /// File for the synthetic table, or images
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// File for the classes of synthetic images
    #[arg(long, value_name = "IDX", requires = "images")]
    pub out_labels: Option<PathBuf>,
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
