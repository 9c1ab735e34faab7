//! Subcommands and their flags.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{
    Args, CommandFactory, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use fhaim_files::delimiter;
pub use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_synth::MechanismName;

use crate::align::{ALIGN_EXAMPLES, AlignArguments};
use crate::bench::{BENCH_EXAMPLES, BenchArguments};
use crate::holders::HoldersArguments;
use crate::input::Data;
use crate::randomness::{Drawing, Randomness};
use crate::remote::args::{
    AccountCommand, DatasetCommand, JobCommand, LEDGER_EXAMPLES, ShowArguments,
};
use crate::remote::job::{DOWNLOAD_EXAMPLES, DownloadArguments};
use crate::remote::link::LinkCommand;
use crate::remote::verify::{VERIFY_EXAMPLES, VerifyArguments};
use crate::serve::{AdminCommand, ServeCommand, UP_EXAMPLES, UpArguments};
use crate::shell::ShellCommand;

/// delta unless another is asked for.
pub const DEFAULT_DELTA: f64 = 1e-9;

/// Model cap in MB unless another is asked for.
pub const DEFAULT_MODEL_MB: usize = 64;

/// The release and, where the build knows it, the commit: `0.1.0 (3de8e94c0a1b)`.
pub const VERSION: &str = env!("FHAIM_VERSION");

const EXIT_CODES: &str = "Exit code 0 is success, 2 a request that cannot be carried out as it stands, 1 any other failure.";

/// A number of things, as a flag has it.
///
/// # Errors
/// Which numbers there may be, where it is another.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse()
        .map_err(|_| format!("a whole number from 1 to {}", usize::MAX))
}

/// Make differentially private synthetic tables from encrypted data.
#[derive(Debug, Parser)]
#[command(name = "fhaim", version = VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub struct Arguments<R: Randomness> {
    /// Print no progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command<R>,
}

/// What to do. [`GROUPS`] has the order in which `fhaim --help` lists these.
#[derive(Debug, Subcommand)]
pub enum Command<R: Randomness> {
    /// Try everything: encrypt a table that comes with fhaim, and make a synthetic one with a report
    #[command(after_help = DEMO_EXAMPLES)]
    Demo(Drawing<DemoArguments, R>),
    /// Draft or check the schema of your table: its public description
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Make a synthetic table under encryption, with all four entities in this process
    #[command(after_help = with_mechanisms(RUN_EXAMPLES))]
    Run(Drawing<GenerateArguments, R>),
    /// Make a synthetic table without encryption: the same releases as `run`
    #[command(after_help = with_mechanisms(LOCAL_EXAMPLES))]
    Local(Drawing<GenerateArguments, R>),
    /// Draw records from the model of a run
    #[command(after_help = SAMPLE_EXAMPLES)]
    Sample(Drawing<SampleArguments, R>),
    /// Compare a synthetic table with the real one
    #[command(after_help = EVALUATE_EXAMPLES)]
    Evaluate(Drawing<EvaluateArguments, R>),
    /// Find the common rows of two or three holders' tables
    #[command(after_help = ALIGN_EXAMPLES)]
    Align(AlignArguments),
    /// Measure encrypted computation on your own table and machine
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(BenchArguments),
    /// Run all services in this process, with one data folder
    #[command(after_help = UP_EXAMPLES)]
    Up(UpArguments),
    /// Run one service with its own configuration
    #[command(subcommand)]
    Serve(ServeCommand),
    /// Back up and restore services, and manage accounts, jobs and frozen datasets
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Sign in or out, and manage your account
    #[command(subcommand)]
    Account(AccountCommand),
    /// Create, upload, list, show, sign, rename or delete datasets
    #[command(subcommand)]
    Dataset(DatasetCommand<R>),
    /// Run, watch, list, show, note, cancel or retry jobs
    #[command(subcommand)]
    Job(JobCommand),
    /// Download a synthetic table of a finished job
    #[command(after_help = DOWNLOAD_EXAMPLES)]
    Download(DownloadArguments),
    /// Make, list, show or revoke links to results for other accounts
    #[command(subcommand)]
    Link(LinkCommand),
    /// Print the privacy ledger of a dataset
    #[command(after_help = LEDGER_EXAMPLES)]
    Ledger(ShowArguments),
    /// Compare every released integer with your table and its noise
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Print completions for a shell, or write manual pages
    #[command(subcommand, hide = true)]
    Shell(ShellCommand),
}

/// The commands of `fhaim --help`, by group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Start here", &["demo", "schema", "run"]),
    ("Make a table", &["local", "sample", "evaluate", "align"]),
    (
        "Work with a server",
        &[
            "account", "dataset", "job", "download", "link", "ledger", "verify",
        ],
    ),
    ("Run a server", &["up", "serve", "admin"]),
    ("Tools", &["bench"]),
];

/// The command line of the program, with its help by [`GROUPS`].
pub fn command<R: Randomness>() -> clap::Command {
    let command = Arguments::<R>::command();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups.push_str(&format!("{title}:\n"));
        for name in names {
            let about = command
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {name:<9} {about}\n"));
        }
        groups.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
    ))
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
  fhaim demo --out census --epsilon 10
  fhaim demo --holders 3                # three holders, each with some of the people
  fhaim demo --holders 3 --by columns   # three holders, each with some of the columns

The table is Adult: 48,842 people of the US census of 1994, 15 columns. It comes with this program.";

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
    pub data: Data,
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
    /// File for the model, from which `fhaim sample` draws more; as private as the synthetic table
    #[arg(long, value_name = "FILE")]
    pub model_out: Option<PathBuf>,
    /// Synthetic records to draw [default: as many as the model estimates there are]
    #[arg(long, value_name = "N", value_parser = count)]
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

const SAMPLE_EXAMPLES: &str = "\
Examples:
  fhaim sample --model patients.model --schema patients.schema.json --out more.csv
  fhaim sample --model patients.model --schema patients.schema.json --records 1000 \\
      --where 'race=Asian,age=47' --out some.csv";

/// Flags of `sample`.
#[derive(Debug, Args)]
pub struct SampleArguments {
    /// The model, as `--model-out` of a run or `download --model` wrote it
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// The schema of its run
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// File for the synthetic table
    #[arg(long, value_name = "CSV")]
    pub out: PathBuf,
    /// Records to draw [default: as many as the model estimates there were]
    #[arg(long, value_name = "N", value_parser = count)]
    pub records: Option<NonZeroUsize>,
    /// Values that every record has: COLUMN=VALUE, separated by commas
    #[arg(long = "where", value_name = "CONDITIONS")]
    pub conditions: Option<String>,
    /// Character between fields [default: a comma]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub delimiter: Option<u8>,
    /// Most memory the model may take, in MB
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_MODEL_MB)]
    pub model_mb: usize,
}

const EVALUATE_EXAMPLES: &str = "\
Examples:
  fhaim evaluate --real patients.csv --synthetic synthetic.csv --schema patients.schema.json \\
      --out report.html
  fhaim evaluate --real train.csv --held-out test.csv --synthetic synthetic.csv \\
      --schema patients.schema.json --json > report.json
  fhaim evaluate --real train.csv --held-out test.csv --synthetic synthetic.csv \\
      --schema patients.schema.json --model patients.model --ledger ledger.json

With held-out records the report says what membership attacks find: by the synthetic records, and
with --model by the model's likelihood.";

/// Flags of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArguments {
    /// The real table
    #[arg(long, value_name = "CSV")]
    pub real: Data,
    /// The synthetic table
    #[arg(long, value_name = "CSV")]
    pub synthetic: Data,
    /// Real records that the synthetic table was not made from
    #[arg(long, value_name = "CSV")]
    pub held_out: Option<Data>,
    /// The schema of all of them
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// The model that the synthetic table was drawn from, to be attacked with the held-out records
    #[arg(long, value_name = "FILE", requires = "held_out")]
    pub model: Option<PathBuf>,
    /// Most memory that reading the model may take, in MB
    #[arg(long, value_name = "MB", default_value_t = 1000, requires = "model")]
    pub model_mb: usize,
    /// The ledger of its run: what an attack may find at most
    #[arg(long, value_name = "JSON", requires = "held_out")]
    pub ledger: Option<PathBuf>,
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
  fhaim schema infer --data patients.csv --target outcome --leave-out id --out draft.schema.json
  fhaim schema infer --data patients.csv --epsilon 0.1 --out public.schema.json

Without --epsilon a draft is read off the records, and its owner has to confirm every line from
public knowledge. With it the draft is differentially private: it may be published, says what it
cost, and that adds up with what runs over the same records cost.";

const CHECK_EXAMPLES: &str = "\
Examples:
  fhaim schema check patients.schema.json
  fhaim schema check patients.schema.json --data patients.csv --missing '?' --json";

/// Flags of `schema infer`.
#[derive(Debug, Args)]
pub struct InferArguments {
    /// The table
    #[arg(long, value_name = "CSV")]
    pub data: Data,
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
    /// Draft privately, for so much of epsilon
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    /// Delta of a private draft
    #[arg(
        long,
        value_name = "D",
        default_value_t = 1e-10,
        allow_negative_numbers = true,
        requires = "epsilon"
    )]
    pub delta: f64,
    /// Draft privately without asking, where the records were used before
    #[arg(long, requires = "epsilon")]
    pub yes: bool,
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

/// Reads a mechanism by its name.
pub fn mechanism() -> impl TypedValueParser<Value = MechanismName> {
    PossibleValuesParser::new(MechanismName::all().map(MechanismName::as_str))
        .try_map(|name| name.parse())
}
