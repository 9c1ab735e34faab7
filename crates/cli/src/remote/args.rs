//! Subcommands and flags of the commands that work with a server.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_synth::MechanismName;
use uuid::Uuid;

use crate::division::HolderUpload;
use crate::flags::{DEFAULT_DELTA_TEXT, DEFAULT_MODEL_MB, mechanism, with_mechanisms};
use crate::input::Data;
use crate::randomness::{Drawing, Randomness};

const LOGIN_EXAMPLES: &str = "\
Examples:
  fhaim account login --server http://127.0.0.1:8080 --email ana@hospital.example
  fhaim account login --server https://fhaim.example --email ana@hospital.example --sign-up
  fhaim account login --server https://fhaim.example --api-key-file key.txt

The command asks for the password, or reads it from FHAIM_PASSWORD. It stores the login in the folder
FHAIM_CONFIG_DIR (default: ~/.config/fhaim), which only its owner can read.";

/// Reads the identifier of a dataset, a job or a link.
pub fn identifier(text: &str) -> Result<Uuid, &'static str> {
    text.parse().map_err(|_| {
        "not an identifier, which has 32 hexadecimal digits in five groups; `fhaim dataset list`, \
         `fhaim job list DATASET` and `fhaim link list JOB` show them"
    })
}

/// Flags of `account login`.
#[derive(Debug, Args)]
pub struct LoginArguments {
    /// Base address of the services
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// Address of the computation service, if it is not SERVER/computation
    #[arg(long, value_name = "URL")]
    pub computation: Option<String>,
    /// Address of the crypto service, if it is not SERVER/crypto
    #[arg(long, value_name = "URL")]
    pub crypto: Option<String>,
    /// Address of the second computation service, if there is one and it is not SERVER/witness
    #[arg(long, value_name = "URL")]
    pub witness: Option<String>,
    /// Address of the generation service, if it is not SERVER/generation
    #[arg(long, value_name = "URL")]
    pub generation: Option<String>,
    /// Email address of the account
    #[arg(long, required_unless_present = "api_key_file")]
    pub email: Option<String>,
    /// Create the account first
    #[arg(long, conflicts_with = "api_key_file")]
    pub sign_up: bool,
    /// File with an API key, to sign in without an email address and password
    #[arg(long, value_name = "FILE", conflicts_with = "email")]
    pub api_key_file: Option<PathBuf>,
}

/// Subcommands of `account`.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Sign in to the services
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(LoginArguments),
    /// Sign out, and delete the stored login
    #[command(after_help = LOGOUT_EXAMPLES)]
    Logout(LogoutArguments),
    /// Show what the account uses at each service, and its limits
    #[command(after_help = USAGE_EXAMPLES)]
    Usage(ListArguments),
    /// Change the account's password, and end all other sessions
    #[command(after_help = PASSWORD_EXAMPLES)]
    Password,
    /// Delete the account with all of its datasets at all services
    #[command(after_help = CLOSE_EXAMPLES)]
    Delete(CloseArguments),
}

const PASSWORD_EXAMPLES: &str = "\
Examples:
  fhaim account password
  FHAIM_PASSWORD=old FHAIM_NEW_PASSWORD=new fhaim account password

The command asks for both passwords, or reads them from FHAIM_PASSWORD and FHAIM_NEW_PASSWORD.";

const CLOSE_EXAMPLES: &str = "\
Examples:
  fhaim account delete
  FHAIM_PASSWORD=secret fhaim account delete --yes

Downloaded synthetic tables are not deleted. Privacy budget that was spent on a table stays spent.";

/// Flags of `account delete`.
#[derive(Debug, Args)]
pub struct CloseArguments {
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

const USAGE_EXAMPLES: &str = "\
Examples:
  fhaim account usage
  fhaim account usage --json

Limits have the same names as in the service's configuration, where its operator can change them.";

/// Subcommands of `dataset`.
#[derive(Debug, Subcommand)]
pub enum DatasetCommand<R: Randomness> {
    /// Create a dataset with a fixed schema and privacy budget
    #[command(after_help = with_mechanisms(CREATE_EXAMPLES))]
    Create(CreateArguments),
    /// Encrypt a table locally and upload it. Run the command again to resume an interrupted upload
    #[command(after_help = UPLOAD_EXAMPLES)]
    Upload(Drawing<UploadArguments, R>),
    /// Print this account's card, for joining a dataset with several holders
    #[command(after_help = JOIN_EXAMPLES)]
    Join(JoinArguments),
    /// Sign the terms, holders and keys of a dataset. Nothing is released before all holders have signed
    #[command(after_help = SIGN_EXAMPLES)]
    Sign(ConsentArguments),
    /// Leave a dataset permanently: no further run of it can start
    #[command(after_help = WITHDRAW_EXAMPLES)]
    Withdraw(ConsentArguments),
    /// List all datasets, newest first
    #[command(after_help = DATASET_LIST_EXAMPLES)]
    List(ListArguments),
    /// Show the terms, upload and budget of a dataset
    #[command(after_help = DATASET_SHOW_EXAMPLES)]
    Show(ShowArguments),
    /// Rename a dataset
    #[command(after_help = RENAME_EXAMPLES)]
    Rename(RenameArguments),
    /// Destroy a dataset's keys, then delete its ciphertexts, jobs and results
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArguments),
}

const JOIN_EXAMPLES: &str = "\
Examples:
  fhaim dataset join --record-bound 5000 > ana.json
  fhaim dataset join --record-bound 5000 --columns age,sex,income > ana.json

The card is public. It contains the account's identifier, its record bound and column names, and the
public half of a signing key. This machine creates the key once and stores it next to the login.

Send the card to the account that creates the dataset, and compare the key's fingerprint by telephone.
Anyone who can change a card on its way could sign in your name.";

const SIGN_EXAMPLES: &str = "\
Examples:
  fhaim dataset sign 0198c0de-0000-7000-8000-000000000000
  fhaim dataset sign 0198c0de-0000-7000-8000-000000000000 --yes

The command shows the terms of the dataset, its holders with their keys, and how many holders' noise the
privacy guarantee relies on. Then it asks for confirmation. The key service stores the signature in the
dataset's ledger. It releases nothing before every holder has signed the same terms and keys.";

const WITHDRAW_EXAMPLES: &str = "\
Examples:
  fhaim dataset withdraw 0198c0de-0000-7000-8000-000000000000

If no run has started yet, the services delete the account's ciphertexts. Earlier releases remain.";

/// Flags of `dataset join`.
#[derive(Debug, Args)]
pub struct JoinArguments {
    /// Public upper bound on this holder's number of records
    #[arg(long, value_name = "N")]
    pub record_bound: u64,
    /// Names of this holder's columns, separated by commas, if each holder has some columns of all records
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
}

/// Flags of `dataset sign` and `dataset withdraw`.
#[derive(Debug, Args)]
pub struct ConsentArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
    /// Print the state of all holders as JSON
    #[arg(long)]
    pub json: bool,
}

/// The holders of a dataset, and the content of their uploads.
#[derive(Debug, Args)]
pub struct RosterArguments {
    /// Card of a holder, printed by `fhaim dataset join`
    ///
    /// Repeat the flag for each holder, with this account's card first.
    #[arg(long = "holder", value_name = "JSON")]
    pub holders: Vec<PathBuf>,
    /// Number of holders whose noise the privacy guarantee relies on
    ///
    /// With 1, no holder needs to trust another. With all holders, the result is more accurate, but the
    /// guarantee holds only against services and readers: other holders can subtract their own noise.
    #[arg(long, value_name = "H", default_value_t = 1)]
    pub honest: u32,
    /// Content of each holder's upload
    ///
    /// `auto` compares the sizes for the largest record bound of a holder.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub contribution: HolderUpload,
}

const DATASET_LIST_EXAMPLES: &str = "\
Examples:
  fhaim dataset list
  fhaim dataset list --json";

const DATASET_SHOW_EXAMPLES: &str = "\
Examples:
  fhaim dataset show 0198c0de-0000-7000-8000-000000000000";

const RENAME_EXAMPLES: &str = "\
Examples:
  fhaim dataset rename 0198c0de-0000-7000-8000-000000000000 \"Admissions 2026\"

Only the display name changes. The dataset's identifier, terms and schema stay the same.";

/// Flags of `dataset rename`.
#[derive(Debug, Args)]
pub struct RenameArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// New name
    pub name: String,
    /// Print the dataset as JSON
    #[arg(long)]
    pub json: bool,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  fhaim dataset delete 0198c0de-0000-7000-8000-000000000000
  fhaim dataset delete 0198c0de-0000-7000-8000-000000000000 --yes

The command also deletes the key of the dataset's noise on this machine. After that, the releases of the
dataset cannot be verified.";

const CREATE_EXAMPLES: &str = "\
Examples:
  fhaim dataset create --schema compas.schema.json --data compas.csv --epsilon 1
  fhaim dataset create --schema compas.schema.json --record-bound 8192 --epsilon 10 --runs 2
  fhaim dataset create --schema compas.schema.json --epsilon 1 --holder ana.json --holder ben.json

The command prints the dataset's identifier. The schema, epsilon, delta, mechanism and record bound are
public and cannot be changed later. --data is only used to choose the record bound: it is the number of
records, rounded up to the next bound that the size of an upload reveals.

With --holder, several accounts hold the dataset. Each of them prints its card with `fhaim dataset join`,
signs the dataset with `fhaim dataset sign`, and uploads its part of the table. The first card must be
that of the account that creates the dataset.

The privacy costs of datasets over the same records add up. This machine keeps a history of the records
that were used, as keyed hashes, and recognises them in any order and file format. If they were used
before, the command also shows the total cost. It asks for confirmation. Without a terminal it stops if
the records were used before, or if no column is expected to be above its noise. --yes continues in all
cases.";

/// Flags of `dataset create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// Schema, the public description of the table
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Display name [default: the schema's name]
    #[arg(long)]
    pub name: Option<String>,
    /// Privacy budget of all runs together: epsilon of (epsilon, delta)-differential privacy
    #[arg(long, value_name = "E")]
    pub epsilon: f64,
    /// Privacy budget of all runs together: delta of (epsilon, delta)-differential privacy
    #[arg(long, value_name = "D", default_value = DEFAULT_DELTA_TEXT)]
    pub delta: f64,
    /// Mechanism that spends the budget. --help describes each
    #[arg(long, value_name = "M", default_value_t, value_parser = mechanism())]
    pub mechanism: MechanismName,
    /// Number of runs, which share the budget equally
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub runs: u32,
    /// Public upper bound on the number of records in the table
    #[arg(long, value_name = "N", required_unless_present_any = ["data", "holders"])]
    pub record_bound: Option<u64>,
    /// Table to choose the record bound from
    #[arg(long, value_name = "TABLE")]
    pub data: Option<PathBuf>,
    /// The holders of the dataset.
    #[command(flatten)]
    pub roster: RosterArguments,
    /// Maximum memory for the model, in MB
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_MODEL_MB)]
    pub model_mb: usize,
    /// Weight of pairs of columns that include the schema's target column
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub target_weight: u32,
    /// Use a second computation service, and decrypt only results on which both services agree
    #[arg(long)]
    pub witness: bool,
    /// Split the secret key among N key services, which can decrypt only together
    ///
    /// Each of them charges every decryption to its own ledger.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub keys: u8,
    /// Continue without a question, also if the records were used before or only noise is expected
    #[arg(long)]
    pub yes: bool,
    /// Print the dataset as JSON
    #[arg(long)]
    pub json: bool,
    /// Text format of the table.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Handling of values and columns that are not in the schema.
    #[command(flatten)]
    pub strictness: StrictnessArguments,
}

const UPLOAD_EXAMPLES: &str = "\
Examples:
  fhaim dataset upload 0198c0de-0000-7000-8000-000000000000 --data compas.csv

Run the same command again to resume an interrupted upload: a file in the folder of the login records the
objects that the service has confirmed. The same folder contains DATASET.ladder, the key of your noise,
which `fhaim verify` needs. Anyone who has this key can remove your noise from the released numbers.

Run only one upload of a dataset at a time. A second one on this machine is rejected. With a second one
on another machine, both have to send everything again.";

/// Flags of `dataset upload`.
#[derive(Debug, Args)]
pub struct UploadArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// Input table (CSV, Excel or Parquet)
    #[arg(long, value_name = "TABLE")]
    pub data: Data,
    /// Text format of the table.
    #[command(flatten)]
    pub format: FormatArguments,
    /// Handling of values and columns that are not in the schema.
    #[command(flatten)]
    pub strictness: StrictnessArguments,
    /// Continue without a question if the records were used before
    #[arg(long)]
    pub yes: bool,
    /// Print the upload as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `dataset list` and `account usage`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `dataset show`, `job list` and `ledger`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `dataset delete`.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

/// Subcommands of `job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Start a run over a dataset
    #[command(after_help = JOB_RUN_EXAMPLES)]
    Run(JobRunArguments),
    /// Show the progress of a job until it ends
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(JobArguments),
    /// List all jobs of a dataset, newest first
    #[command(after_help = JOB_LIST_EXAMPLES)]
    List(ShowArguments),
    /// Show a job
    #[command(after_help = JOB_SHOW_EXAMPLES)]
    Show(JobArguments),
    /// List everything that a job released: integers, noise and cost
    #[command(after_help = RELEASES_EXAMPLES)]
    Releases(JobArguments),
    /// Attach a note to a job
    #[command(after_help = NOTE_EXAMPLES)]
    Note(NoteArguments),
    /// Stop a job. Its spent budget stays spent
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(JobArguments),
    /// Resume a job that failed or was cancelled
    #[command(after_help = RETRY_EXAMPLES)]
    Retry(JobArguments),
}

const JOB_RUN_EXAMPLES: &str = "\
Examples:
  fhaim job run 0198c0de-0000-7000-8000-000000000000 --watch
  fhaim job run 0198c0de-0000-7000-8000-000000000000 --json
  fhaim job run 0198c0de-0000-7000-8000-000000000000 --job 0198c0de-0000-7000-8000-000000000001

On a terminal, the command shows the cost of the run and the remaining budget, and asks for confirmation.

It prints the job's identifier before it sends the request (with --json, to standard error). If the
answer is lost, repeat the command with --job IDENTIFIER: the same run is not started again, and no
budget is spent twice.";

const WATCH_EXAMPLES: &str = "\
Examples:
  fhaim job watch 0198c0de-0000-7000-8000-000000000001";

const JOB_LIST_EXAMPLES: &str = "\
Examples:
  fhaim job list 0198c0de-0000-7000-8000-000000000000";

const JOB_SHOW_EXAMPLES: &str = "\
Examples:
  fhaim job show 0198c0de-0000-7000-8000-000000000001 --json";

const RELEASES_EXAMPLES: &str = "\
Examples:
  fhaim job releases 0198c0de-0000-7000-8000-000000000001 --json > releases.json";

const NOTE_EXAMPLES: &str = "\
Examples:
  fhaim job note 0198c0de-0000-7000-8000-000000000001 \"with the new schema\"
  fhaim job note 0198c0de-0000-7000-8000-000000000001 \"\"

An empty note removes the old note. Only the dataset's holders can see the note.";

/// Flags of `job note`.
#[derive(Debug, Args)]
pub struct NoteArguments {
    /// Identifier of the job
    #[arg(value_parser = identifier)]
    pub job: Uuid,
    /// Text of the note
    pub note: String,
    /// Print the job as JSON
    #[arg(long)]
    pub json: bool,
}

const CANCEL_EXAMPLES: &str = "\
Examples:
  fhaim job cancel 0198c0de-0000-7000-8000-000000000001";

const RETRY_EXAMPLES: &str = "\
Examples:
  fhaim job retry 0198c0de-0000-7000-8000-000000000001";

/// Flags of `job run`.
#[derive(Debug, Args)]
pub struct JobRunArguments {
    /// Identifier of the dataset
    #[arg(value_parser = identifier)]
    pub dataset: Uuid,
    /// Identifier for the job. If a job with this identifier exists, no new job is started [default: a
    /// new identifier]
    #[arg(value_parser = identifier, long, value_name = "ID")]
    pub job: Option<Uuid>,
    /// Start the run without a question, also if the dataset had a run before or only noise is expected. Without a
    /// terminal, this is needed from the second run on
    #[arg(long)]
    pub yes: bool,
    /// Show the job's progress until it ends
    #[arg(long)]
    pub watch: bool,
    /// Print the job as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of commands about one job.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// Identifier of the job
    #[arg(value_parser = identifier)]
    pub job: Uuid,
    /// Print JSON (`job watch`: one event per line)
    #[arg(long)]
    pub json: bool,
}

const LOGOUT_EXAMPLES: &str = "\
Examples:
  fhaim account logout
  fhaim account logout --everywhere

API keys stay valid. With --everywhere, access tokens end at all services within seconds.";

/// Flags of `account logout`.
#[derive(Debug, Args)]
pub struct LogoutArguments {
    /// End all sessions of the account on all machines
    #[arg(long)]
    pub everywhere: bool,
}

pub const LEDGER_EXAMPLES: &str = "\
Examples:
  fhaim ledger 0198c0de-0000-7000-8000-000000000000
  fhaim ledger 0198c0de-0000-7000-8000-000000000000 --json > ledger.json";
