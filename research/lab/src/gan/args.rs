//! Flags of `fhaim-lab gan`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use fhaim_federated::partition::Rule;
use fhaim_files::{FormatArguments, StrictnessArguments, delimiter};
use fhaim_gan::{
    Hidden, MAX_LAYERS, MAX_PAIRS, MAX_WEIGHT, MAX_WIDTH, MIN_PARTICIPATION, Optimiser, Training,
};

use crate::gan::failure::Failure;
use crate::gan::method::{Method, Protected};

/// The most steps, or rounds, and the most steps of a party in a round.
const MAX_STEPS: usize = 1_000_000;

/// The most records of a step, and records that are drawn: what fits into memory is less, and depends on their width.
const MAX_RECORDS: usize = 100_000_000;

/// The most seeds of a bench.
const MAX_SEEDS: usize = 1000;

const TRAIN_EXAMPLES: &str = "\
Examples:
  fhaim-lab gan train --parts parts/ --schema a.json --method central --out gan.bin
  fhaim-lab gan train --parts parts/ --schema a.json --method dp-fedprox --epsilon 64 --mu 0.5 --out gan.bin
  fhaim-lab gan train --images i.idx3 --labels l.idx1 --rule dli --method dpgan --epsilon 4 --out gan.bin
  fhaim-lab gan train --images i.idx3 --labels l.idx1 --method federated --filters 16,32 --out gan.bin

With a budget it is remembered which records were used, where `fhaim` remembers it too (FHAIM_MEMORY_DIR): before they are used
again it is said what all of it costs together.";

const SAMPLE_EXAMPLES: &str = "\
Examples:
  fhaim-lab gan sample gan.bin --schema a.json --records 1000 --out s.csv
  fhaim-lab gan sample images.bin --records 100 --out drawn.idx3";

const ATTACK_EXAMPLES: &str = "\
Examples:
  fhaim-lab gan attack gan.bin --schema a.json --members m.csv --others o.csv
  fhaim-lab gan attack images.bin --members m.idx3 --others o.idx3 --json";

const BENCH_EXAMPLES: &str = "\
Examples:
  FHAIM_DATA_DIR=data fhaim-lab gan bench --method dpgan --rule ns --steps 100
  FHAIM_DATA_DIR=data fhaim-lab gan bench --table adult --rule cluster --parties 100 --method central";

/// What to do with networks.
#[derive(Debug, Subcommand)]
pub enum GanCommand {
    /// Train networks on the records of parties, all of them in this process
    #[command(after_help = TRAIN_EXAMPLES)]
    Train(TrainArguments),
    /// Draw records
    #[command(after_help = SAMPLE_EXAMPLES)]
    Sample(SampleArguments),
    /// Which records were networks trained on?
    #[command(after_help = ATTACK_EXAMPLES)]
    Attack(AttackArguments),
    /// Quality and attacks on MNIST, for every method and partition, printed figures beside
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),
}

/// How networks are made and trained.
#[derive(Clone, Debug, Args)]
pub struct NetworkArguments {
    /// Steps, or rounds of federated methods
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = up_to::<MAX_STEPS>)]
    pub steps: usize,
    /// Records of a step; with privacy, on average
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = up_to::<MAX_RECORDS>)]
    pub batch: usize,
    /// Hidden layers of the generator; the discriminator has them the other way round
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        default_values_t = [128, 256],
        value_parser = up_to::<MAX_WIDTH>
    )]
    pub hidden: Vec<usize>,
    /// Convolutions instead: filters of the discriminator's, each of which halves an image; the generator has them
    /// the other way round
    #[arg(
        long,
        value_name = "N,N",
        value_delimiter = ',',
        conflicts_with = "hidden",
        value_parser = up_to::<MAX_WIDTH>
    )]
    pub filters: Vec<usize>,
    /// Values of a generator's noise
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = up_to::<MAX_WIDTH>)]
    pub noise: usize,
    /// Rate of Adam, for both networks
    #[arg(
        long,
        value_name = "R",
        default_value_t = 2e-4,
        allow_negative_numbers = true,
        value_parser = positive
    )]
    pub rate: f32,
    /// Of methods with a budget: largest norm of an example's gradient, or of a party's change [default: 0.01]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    pub clip: Option<f64>,
    /// Of federated methods: chance that a party takes part in a round [default: 0.1]
    #[arg(long, value_name = "Q", allow_negative_numbers = true, value_parser = chance)]
    pub participation: Option<f64>,
    /// Of federated methods: steps of a party in a round, and of the generator after it [default: 1]
    #[arg(long, value_name = "N", value_parser = up_to::<MAX_STEPS>)]
    pub local_steps: Option<usize>,
    /// mu of dp-fedprox; with one local step there is nothing that it could hold back [default: 0.5]
    #[arg(long, value_name = "MU", allow_negative_numbers = true, value_parser = weight)]
    pub mu: Option<f32>,
    /// lambda of privgan [default: 1]
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = weight)]
    pub lambda: Option<f32>,
}

impl NetworkArguments {
    /// Refuses what none of some methods has a use for, and networks that could not be saved.
    pub fn check(&self, methods: &[Method]) -> Result<(), Failure> {
        // Beside the hidden layers there are the first values and the last.
        if self.hidden.len() + 2 > MAX_LAYERS {
            let most = MAX_LAYERS - 2;
            return Err(Failure::Usage(format!("--hidden: at most {most} layers")));
        }
        let budget = |method: Method| method.protected().is_some();
        let dp_fedprox = |method: Method| method == Method::DpFedprox;
        let privgan = |method: Method| method == Method::Privgan;
        useful("--clip", self.clip.is_some(), methods, budget)?;
        let given = self.participation.is_some();
        useful("--participation", given, methods, Method::is_federated)?;
        let given = self.local_steps.is_some();
        useful("--local-steps", given, methods, Method::is_federated)?;
        useful("--mu", self.mu.is_some(), methods, dp_fedprox)?;
        useful("--lambda", self.lambda.is_some(), methods, privgan)
    }

    /// What the library takes.
    pub fn training(&self) -> Training {
        Training {
            noise: self.noise,
            hidden: match self.filters.as_slice() {
                [] => Hidden::Dense(self.hidden.clone()),
                filters => Hidden::Convolutions(filters.to_vec()),
            },
            // At most a million.
            steps: self.steps as u32,
            batch: self.batch,
            discriminator: Optimiser::adam(self.rate),
            generator: Optimiser::adam(self.rate),
        }
    }
}

/// Refuses a flag that none of some methods would look at.
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
        "{flag} says nothing to {}: leave it out",
        names.join(", ")
    )))
}

/// A number of things.
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

/// A rule that there is, as it was written.
fn rule(text: &str) -> Result<String, String> {
    text.parse::<Rule>().map(|_| text.to_owned())
}

/// How tables are read.
#[derive(Debug, Default, Args)]
pub struct ReadingArguments {
    #[command(flatten)]
    pub format: FormatArguments,
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

impl ReadingArguments {
    /// Refuses what is said of tables where there are images.
    pub fn check_unused(&self, schema: bool) -> Result<(), Failure> {
        let Self { format, strictness } = self;
        let of_format = format.delimiter.is_some() || !format.missing.is_empty();
        let of_values = strictness.use_other || strictness.clamp || strictness.ignore_columns;
        if schema || of_format || of_values {
            return Err(Failure::Usage(
                "images have no schema and are read in one way: leave out what is for tables"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}

/// Flags of `train`.
#[derive(Debug, Args)]
pub struct TrainArguments {
    /// Folder of the parties' tables, from `fhaim-lab federate split`
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "images",
        requires = "schema"
    )]
    pub parts: Option<PathBuf>,
    /// The schema of the tables
    #[arg(long, value_name = "JSON", conflicts_with = "images")]
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
    #[arg(long, value_name = "IDX", conflicts_with = "parts")]
    pub labels: Option<PathBuf>,
    /// Parties that images are dealt among
    #[arg(
        long,
        value_name = "K",
        default_value_t = 10,
        conflicts_with = "parts",
        value_parser = up_to::<MAX_PAIRS>
    )]
    pub parties: usize,
    /// How images are dealt: ns, dli, dli:A, qs, qs:A or qli
    #[arg(
        long,
        value_name = "RULE",
        default_value = "ns",
        conflicts_with = "parts"
    )]
    pub rule: Rule,
    /// How networks are trained
    #[arg(long, value_name = "M", value_enum)]
    pub method: Method,
    /// Budget of dpgan (a record's), dp-fedavg and dp-fedprox (a party's)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// delta of the budget
    #[arg(
        long,
        value_name = "D",
        default_value_t = 1e-5,
        allow_negative_numbers = true,
        requires = "epsilon"
    )]
    pub delta: f64,
    /// File to write the networks to
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Use records again without asking, where they were used before
    #[arg(long)]
    pub yes: bool,
    #[command(flatten)]
    pub network: NetworkArguments,
    #[command(flatten)]
    pub reading: ReadingArguments,
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
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = up_to::<MAX_RECORDS>)]
    pub records: usize,
    /// Character between the fields of a table [default: a comma]
    #[arg(long, value_name = "CHAR", value_parser = delimiter, requires = "schema")]
    pub delimiter: Option<u8>,
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
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = up_to::<MAX_RECORDS>)]
    pub drawn: usize,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadingArguments,
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
    #[arg(
        long,
        value_name = "RULE",
        default_values = ["ns", "qli", "dli", "qs"],
        value_parser = rule
    )]
    pub rule: Vec<String>,
    /// Parties
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = up_to::<MAX_PAIRS>)]
    pub parties: usize,
    /// Budget of dpgan, a record's [default: 4.01]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub record_epsilon: Option<f64>,
    /// Budget of dp-fedavg and dp-fedprox, a party's [default: 64.11]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub party_epsilon: Option<f64>,
    /// Runs of each: seeds 0, 1, ...
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = up_to::<MAX_SEEDS>)]
    pub seeds: usize,
    /// Records to draw for the Monte Carlo attack
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10_000,
        conflicts_with_all = ["table", "no_attacks"],
        value_parser = up_to::<MAX_RECORDS>
    )]
    pub drawn: usize,
    /// Leave the attacks out, whose networks are trained apart
    #[arg(long, conflicts_with = "table")]
    pub no_attacks: bool,
    /// Print rows as JSON, one a line
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub network: NetworkArguments,
}

impl BenchArguments {
    /// The methods that were asked for: all of them where none was.
    pub fn methods(&self) -> &[Method] {
        match self.method.as_slice() {
            [] => Method::value_variants(),
            methods => methods,
        }
    }

    /// Refuses what none of the methods has a use for.
    pub fn check(&self) -> Result<(), Failure> {
        let methods = self.methods();
        let of = |unit| move |method: Method| method.protected() == Some(unit);
        let given = self.record_epsilon.is_some();
        useful("--record-epsilon", given, methods, of(Protected::Record))?;
        let given = self.party_epsilon.is_some();
        useful("--party-epsilon", given, methods, of(Protected::Party))?;
        self.network.check(methods)
    }
}
