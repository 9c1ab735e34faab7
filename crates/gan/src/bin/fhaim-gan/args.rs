//! The program's flags.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use fhaim_federated::partition::Rule;
use fhaim_gan::{Hidden, Optimiser, Training};

use crate::method::Method;

/// GANs, private and federated, to compare fhaim with.
#[derive(Debug, Parser)]
#[command(name = "fhaim-gan", version, after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  fhaim federate split --data a.csv --schema a.json --rule cluster --parties 10 --out parts/
  fhaim-gan train --parts parts/ --schema a.json --method dp-fedprox --epsilon 64 --out gan.bin
  fhaim-gan sample gan.bin --schema a.json --records 1000 --out s.csv
  fhaim-gan attack gan.bin --schema a.json --members m.csv --others o.csv
  fhaim-gan train --images i.idx3 --labels l.idx1 --rule dli --method dpgan --epsilon 4 --out gan.bin
  bench/tables.sh data && FHAIM_DATA_DIR=data fhaim-gan bench";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train networks on the records of parties, all of them in this process
    Train(TrainArguments),
    /// Draw records
    Sample(SampleArguments),
    /// Which records were networks trained on?
    Attack(AttackArguments),
    /// Quality and attacks on MNIST, for every method and partition, printed figures beside
    Bench(BenchArguments),
}

/// How networks are made and trained.
#[derive(Clone, Debug, Args)]
pub struct NetworkArguments {
    /// Steps, or rounds of federated methods
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub steps: u32,
    /// Records of a step; with privacy, on average
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub batch: usize,
    /// Hidden layers of the generator; the discriminator has them the other way round
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [128, 256])]
    pub hidden: Vec<usize>,
    /// Convolutions instead: filters of the discriminator's, each of which halves an image; the generator has them
    /// the other way round
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        conflicts_with = "hidden"
    )]
    pub filters: Vec<usize>,
    /// Values of a generator's noise
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub noise: usize,
    /// Rate of Adam, for both networks
    #[arg(long, value_name = "R", default_value_t = 2e-4)]
    pub rate: f32,
    /// Largest norm of an example's gradient, or of a party's change
    #[arg(long, value_name = "C", default_value_t = 0.01)]
    pub clip: f64,
    /// Chance that a party takes part in a round
    #[arg(long, value_name = "Q", default_value_t = 0.1)]
    pub participation: f64,
    /// Steps of a party in a round, and of the generator after it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub local_steps: usize,
    /// mu of dp-fedprox; with one local step there is nothing that it could hold back
    #[arg(long, value_name = "MU", default_value_t = 0.5)]
    pub mu: f32,
    /// lambda of privgan
    #[arg(long, value_name = "L", default_value_t = 1.0)]
    pub lambda: f32,
}

impl NetworkArguments {
    /// What the library takes.
    pub fn training(&self) -> Training {
        Training {
            noise: self.noise,
            hidden: match self.filters.as_slice() {
                [] => Hidden::Dense(self.hidden.clone()),
                filters => Hidden::Convolutions(filters.to_vec()),
            },
            steps: self.steps,
            batch: self.batch,
            discriminator: Optimiser::adam(self.rate),
            generator: Optimiser::adam(self.rate),
        }
    }
}

/// Flags of `train`.
#[derive(Debug, Args)]
pub struct TrainArguments {
    /// Folder of the parties' tables, from `fhaim federate split`
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "images",
        requires = "schema"
    )]
    pub parts: Option<PathBuf>,
    /// The schema of the tables
    #[arg(long, value_name = "JSON")]
    pub schema: Option<PathBuf>,
    /// Images as an IDX file, dealt among parties
    #[arg(
        long,
        value_name = "IDX",
        conflicts_with = "parts",
        requires = "labels"
    )]
    pub images: Option<PathBuf>,
    /// Their classes as an IDX file
    #[arg(long, value_name = "IDX")]
    pub labels: Option<PathBuf>,
    /// Parties that images are dealt among
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub parties: usize,
    /// How images are dealt: ns, dli, dli:A, qs, qs:A or qli
    #[arg(long, value_name = "RULE", default_value = "ns")]
    pub rule: Rule,
    /// How networks are trained
    #[arg(long, value_name = "M", value_enum)]
    pub method: Method,
    /// Budget of dpgan (a record's), dp-fedavg and dp-fedprox (a party's)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// delta of the budget
    #[arg(long, value_name = "D", default_value_t = 1e-5)]
    pub delta: f64,
    /// File to write the networks to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    #[command(flatten)]
    pub network: NetworkArguments,
}

/// Flags of `sample`.
#[derive(Debug, Args)]
pub struct SampleArguments {
    /// Networks, from `train`
    pub model: PathBuf,
    /// The schema, where records are of a table
    #[arg(long, value_name = "JSON")]
    pub schema: Option<PathBuf>,
    /// Records to draw
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub records: usize,
    /// File to write: CSV, or IDX for images
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Flags of `attack`.
#[derive(Debug, Args)]
pub struct AttackArguments {
    /// Networks, from `train`
    pub model: PathBuf,
    /// The schema, where records are of a table
    #[arg(long, value_name = "JSON")]
    pub schema: Option<PathBuf>,
    /// Records that the networks were trained on: CSV, or IDX for images
    #[arg(long, value_name = "FILE")]
    pub members: PathBuf,
    /// Records of the same population that they were not trained on
    #[arg(long, value_name = "FILE")]
    pub others: PathBuf,
    /// Records to draw for the Monte Carlo attack
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub drawn: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// Methods (may be repeated) [default: all of them]
    #[arg(long, value_name = "M", value_enum)]
    pub method: Vec<Method>,
    /// A table instead of MNIST: NAME.csv with NAME.schema.json in FHAIM_DATA_DIR
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// How records are dealt (may be repeated)
    #[arg(long, value_name = "RULE", default_values = ["ns", "qli", "dli", "qs"])]
    pub rule: Vec<String>,
    /// Parties
    #[arg(long, value_name = "K", default_value_t = 10)]
    pub parties: usize,
    /// Budget of dpgan, a record's
    #[arg(long, value_name = "E", default_value_t = 4.01)]
    pub record_epsilon: f64,
    /// Budget of dp-fedavg and dp-fedprox, a party's
    #[arg(long, value_name = "E", default_value_t = 64.11)]
    pub party_epsilon: f64,
    /// Runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seeds: u64,
    /// Records to draw for the Monte Carlo attack
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub drawn: usize,
    /// Leave the attacks out, whose networks are trained apart
    #[arg(long)]
    pub no_attacks: bool,
    /// Print rows as JSON, one a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub network: NetworkArguments,
}
