//! Command line arguments of `fhaim-lab gan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fhaim_federated::partition::Rule;
use fhaim_files::{FormatArguments, StrictnessArguments, delimiter};
use fhaim_gan::{
    Hidden, MAX_LAYERS, MAX_PAIRS, MAX_WEIGHT, MAX_WIDTH, MIN_PARTICIPATION, Training,
};

use crate::gan::failure::Failure;
use crate::gan::method::{Method, Protected};

/// The largest number of steps or rounds, and of a party's steps in a round.
const MAX_STEPS: usize = 1_000_000;

/// The largest number of records in a step, or to draw. Memory limits it further, depending on the records' width.
const MAX_RECORDS: usize = 100_000_000;

/// Default learning rate, from the paper.
pub const RATE: f32 = 2e-4;

/// The largest number of seeds of a bench.
const MAX_SEEDS: usize = 1000;

const TRAIN_EXAMPLES: &str = "\
Examples:
  fhaim-lab gan train --parts parts/ --schema a.json --method central --out gan.bin
  fhaim-lab gan train --parts parts/ --schema a.json --method dp-fedprox --epsilon 64 --mu 0.5 --out gan.bin
  fhaim-lab gan train --images i.idx3 --labels l.idx1 --rule dli --method dpgan --epsilon 4 --out gan.bin
  fhaim-lab gan train --images i.idx3 --labels l.idx1 --method federated --filters 16,32 --out gan.bin

With a budget, the command adds the used records to the usage history that it shares with `fhaim`
(FHAIM_MEMORY_DIR). Before records are used again, it reports what all uses cost together.";

const SAMPLE_EXAMPLES: &str = "\
Examples:
  fhaim-lab gan sample gan.bin --schema a.json --rows 1000 --out s.csv
  fhaim-lab gan sample images.bin --rows 100 --out drawn.idx3";

const ATTACK_EXAMPLES: &str = "\
Examples:
  fhaim-lab gan attack gan.bin --schema a.json --members m.csv --others o.csv
  fhaim-lab gan attack images.bin --members m.idx3 --others o.idx3 --json";

const BENCH_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab gan bench --method dpgan --rule ns --steps 100
  FHAIM_DATA_DIR=data fhaim-lab gan bench --method federated --mu 0.5 --rule dli:0.1 --local-steps 20 --no-attacks
  FHAIM_DATA_DIR=data fhaim-lab gan bench --table adult --rule cluster --parties 100 --method central";

/// The commands of `gan`.
#[derive(Debug, Subcommand)]
pub enum GanCommand {
    /// Train networks on the records of parties, which all run in this process
    #[command(after_help = TRAIN_EXAMPLES)]
    Train(TrainArguments),
    /// Draw synthetic records from trained networks
    #[command(after_help = SAMPLE_EXAMPLES)]
    Sample(SampleArguments),
    /// Test whether networks reveal the records that they were trained on
    #[command(after_help = ATTACK_EXAMPLES)]
    Attack(AttackArguments),
    /// Measure quality and attacks on images or a table, for every method and partition, next to printed figures
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),
}

/// Architecture and training settings of networks.
#[derive(Clone, Debug, Args)]
pub struct NetworkArguments {
    /// Number of steps; for federated methods, of rounds
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = up_to::<MAX_STEPS>)]
    pub steps: usize,
    /// Number of records per step; for dpgan, on average [default: 256 for privgan, otherwise 64]
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_RECORDS>)]
    pub batch: Option<usize>,
    /// Widths of the hidden layers of the generator; the discriminator has them in reverse order
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_values_t = [128, 256],
        value_parser = up_to::<MAX_WIDTH>
    )]
    pub hidden: Vec<usize>,
    /// Use convolutions: number of filters of each layer of the discriminator, which halves an image; the generator has
    /// them in reverse order
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        conflicts_with = "hidden",
        value_parser = up_to::<MAX_WIDTH>
    )]
    pub filters: Vec<usize>,
    /// Number of noise values that a generator gets
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = up_to::<MAX_WIDTH>)]
    pub noise: usize,
    /// Learning rate. The optimiser depends on the method: Adam for central, local and privgan; plain gradient descent
    /// (SGD) for federated methods; for dpgan, SGD for discriminators and Adam for generators
    #[arg(
        long,
        value_name = "R",
        default_value_t = RATE,
        allow_negative_numbers = true,
        value_parser = positive
    )]
    pub rate: f32,
    /// Learning rate of discriminators [default: that of --rate]
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = positive)]
    pub discriminator_rate: Option<f32>,
    /// For methods with a budget: largest norm of an example's gradient, or of a party's change [default: 0.01]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    pub clip: Option<f64>,
    /// For federated methods: probability that a party takes part in a round [default: 0.1]
    #[arg(long, value_name = "Q", allow_negative_numbers = true, value_parser = chance)]
    pub participation: Option<f64>,
    /// For federated methods: number of steps of a party in a round, and of the generator after it [default: 10]
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_STEPS>)]
    pub local_steps: Option<usize>,
    /// For federated and dp-fedprox: mu, which has no effect with a single local step [default: 0 for federated, 0.5 for
    /// dp-fedprox]
    #[arg(long, value_name = "MU", allow_negative_numbers = true, value_parser = weight)]
    pub mu: Option<f32>,
    /// For privgan: lambda [default: 1]
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = weight)]
    pub lambda: Option<f32>,
}

impl NetworkArguments {
    /// Rejects flags that none of the methods uses, and networks that cannot be saved.
    pub fn check(&self, methods: &[Method]) -> Result<(), Failure> {
        // A network also has an input and an output layer.
        if self.hidden.len() + 2 > MAX_LAYERS {
            let most = MAX_LAYERS - 2;
            return Err(Failure::Usage(format!("--hidden: at most {most} layers")));
        }
        let budget = |method: Method| method.protected().is_some();
        let proximal = |method: Method| matches!(method, Method::Federated | Method::DpFedprox);
        let privgan = |method: Method| method == Method::Privgan;
        useful("--clip", self.clip.is_some(), methods, budget)?;
        let given = self.participation.is_some();
        useful("--participation", given, methods, Method::is_federated)?;
        let given = self.local_steps.is_some();
        useful("--local-steps", given, methods, Method::is_federated)?;
        useful("--mu", self.mu.is_some(), methods, proximal)?;
        useful("--lambda", self.lambda.is_some(), methods, privgan)
    }

    /// Returns the training settings of a method.
    pub fn training(&self, method: Method) -> Training {
        let discriminator_rate = self.discriminator_rate.unwrap_or(self.rate);
        let (discriminator, generator) = method.optimisers(discriminator_rate, self.rate);
        Training {
            noise: self.noise,
            hidden: match self.filters.as_slice() {
                [] => Hidden::Dense(self.hidden.clone()),
                filters => Hidden::Convolutions(filters.to_vec()),
            },
            // `up_to` has checked that there are at most a million steps.
            steps: self.steps as u32,
            batch: self.batch.unwrap_or(method.batch()),
            discriminator,
            generator,
        }
    }
}

/// Rejects a flag that none of the methods uses.
fn useful(
    flag: &str,
    given: bool,
    methods: &[Method],
    takes: impl Fn(Method) -> bool,
) -> Result<(), Failure> {
    if !given || methods.iter().any(|&method| takes(method)) {
        return Ok(());
    }
    let names: Vec<String> = methods.iter().map(|method| method.name()).collect();
    Err(Failure::Usage(format!(
        "{flag} has no effect with {}: leave it out",
        names.join(", ")
    )))
}

/// Parses a whole number from 1 to `MOST`.
fn up_to<const MOST: usize>(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=MOST).contains(&number) => Ok(number),
        _ => Err(format!("a whole number from 1 to {MOST}")),
    }
}

fn positive(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(number) if number > 0.0 && f32::is_finite(number) => Ok(number),
        _ => Err("a positive number".to_owned()),
    }
}

fn chance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (MIN_PARTICIPATION..=1.0).contains(&number) => Ok(number),
        _ => Err("a number from 1e-6 to 1".to_owned()),
    }
}

fn weight(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(number) if (0.0..=MAX_WEIGHT).contains(&number) => Ok(number),
        _ => Err("a number from 0 to 1e9".to_owned()),
    }
}

/// Checks that a rule exists, and returns its name unchanged.
fn rule(text: &str) -> Result<String, String> {
    text.parse::<Rule>().map(|_| text.to_owned())
}

/// Arguments for reading tables.
#[derive(Debug, Default, Args)]
pub struct ReadingArguments {
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

impl ReadingArguments {
    /// Rejects arguments for tables if the records are images.
    pub fn check_unused(&self, schema: bool) -> Result<(), Failure> {
        let Self { format, strictness } = self;
        if schema || format.is_any() || strictness.is_any() {
            return Err(Failure::Usage(
                "the records are images: leave out --schema and all flags for reading tables"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

/// Arguments of `train`.
#[derive(Debug, Args)]
pub struct TrainArguments {
    /// Folder with the parties' tables, from `fhaim-lab federate split`
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "images",
        requires = "schema"
    )]
    pub parts: Option<PathBuf>,
    /// Schema of the tables
    #[arg(long, value_name = "JSON", conflicts_with = "images")]
    pub schema: Option<PathBuf>,
    /// Images as an IDX file, which are split among parties
    #[arg(
        long,
        value_name = "IDX",
        conflicts_with = "parts",
        requires = "labels"
    )]
    pub images: Option<PathBuf>,
    /// Classes of the images as an IDX file
    #[arg(long, value_name = "IDX", conflicts_with = "parts")]
    pub labels: Option<PathBuf>,
    /// Number of parties that images are split among
    #[arg(
        long,
        value_name = "K",
        default_value_t = 10,
        conflicts_with = "parts",
        value_parser = up_to::<MAX_PAIRS>
    )]
    pub parties: usize,
    /// Rule for splitting images: ns, dli, dli:A, qs, qs:A or qli
    #[arg(
        long,
        value_name = "RULE",
        default_value = "ns",
        conflicts_with = "parts"
    )]
    pub rule: Rule,
    /// Training method
    #[arg(long, value_name = "M", value_enum)]
    pub method: Method,
    /// Privacy budget: epsilon, for a record (dpgan) or for a party (dp-fedavg, dp-fedprox)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// Privacy budget: delta
    #[arg(
        long,
        value_name = "D",
        default_value_t = 1e-5,
        allow_negative_numbers = true,
        requires = "epsilon"
    )]
    pub delta: f64,
    /// File for the networks
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Continue without a question if records were used before
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub network: NetworkArguments,
    #[command(flatten)]
    pub reading: ReadingArguments,
}

/// Arguments of `sample`.
#[derive(Debug, Args)]
pub struct SampleArguments {
    /// File with the networks, from `train`
    pub model: PathBuf,
    /// Schema, if the records are of a table
    #[arg(long, value_name = "JSON")]
    pub schema: Option<PathBuf>,
    /// Number of synthetic records
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = up_to::<MAX_RECORDS>)]
    pub rows: usize,
    /// Delimiter of the table's fields [default: a comma]
    #[arg(long, value_name = "CHAR", value_parser = delimiter, requires = "schema")]
    pub delimiter: Option<u8>,
    /// File for the records: CSV, or IDX for images
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// Arguments of `attack`.
#[derive(Debug, Args)]
pub struct AttackArguments {
    /// File with the networks, from `train`
    pub model: PathBuf,
    /// Schema, if the records are of a table
    #[arg(long, value_name = "JSON")]
    pub schema: Option<PathBuf>,
    /// Records that the networks were trained on: CSV, or IDX for images
    #[arg(long, value_name = "FILE")]
    pub members: PathBuf,
    /// Records of the same population that the networks were not trained on
    #[arg(long, value_name = "FILE")]
    pub others: PathBuf,
    /// Number of records to draw for the Monte Carlo attack
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = up_to::<MAX_RECORDS>)]
    pub drawn: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArguments,
}

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub struct BenchArguments {
    /// Method (may be repeated) [default: all]
    #[arg(long, value_name = "M", value_enum)]
    pub method: Vec<Method>,
    /// Images: NAME-images.idx3 with NAME-labels.idx1 in FHAIM_DATA_DIR
    #[arg(
        long,
        value_name = "NAME",
        default_value = "mnist",
        conflicts_with = "table"
    )]
    pub images: String,
    /// Use a table instead of images: NAME.csv with NAME.schema.json in FHAIM_DATA_DIR
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Rule for splitting records (may be repeated)
    #[arg(
        long,
        value_name = "RULE",
        default_values = ["ns", "qli", "dli", "qs"],
        value_parser = rule
    )]
    pub rule: Vec<String>,
    /// Number of parties
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = up_to::<MAX_PAIRS>)]
    pub parties: usize,
    /// Split images among N parties, of which only the first K have networks [default: K]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "table",
        value_parser = up_to::<MAX_PAIRS>
    )]
    pub split_among: Option<usize>,
    /// Budget of dpgan, for a record [default: 4.01]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub record_epsilon: Option<f64>,
    /// Budget of dp-fedavg and dp-fedprox, for a party [default: 64.11]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub party_epsilon: Option<f64>,
    /// Number of runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to::<MAX_SEEDS>)]
    pub seeds: usize,
    /// Number of records to draw for the Monte Carlo attack
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        conflicts_with_all = ["table", "no_attacks"],
        value_parser = up_to::<MAX_RECORDS>
    )]
    pub drawn: usize,
    /// Leave out the attacks, which train their own networks
    #[arg(long, conflicts_with = "table")]
    pub no_attacks: bool,
    /// Print rows as JSON, one per line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub network: NetworkArguments,
}

impl BenchArguments {
    /// Returns the selected methods, or all if none is selected.
    pub fn methods(&self) -> &[Method] {
        match self.method.as_slice() {
            [] => Method::value_variants(),
            methods => methods,
        }
    }

    /// Rejects flags that none of the methods uses.
    pub fn check(&self) -> Result<(), Failure> {
        let methods = self.methods();
        if self.split_among.is_some_and(|split| split < self.parties) {
            let problem = "--split-among must be at least the number of --parties";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let of = |unit| move |method: Method| method.protected() == Some(unit);
        let given = self.record_epsilon.is_some();
        useful("--record-epsilon", given, methods, of(Protected::Record))?;
        let given = self.party_epsilon.is_some();
        useful("--party-epsilon", given, methods, of(Protected::Party))?;
        self.network.check(methods)
    }
}
