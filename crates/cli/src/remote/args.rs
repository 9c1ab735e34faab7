//! Flags of the commands that talk to the services.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fhaim_files::{FormatArguments, StrictnessArguments};
use fhaim_synth::MechanismName;
use uuid::Uuid;

use crate::division::HolderUpload;
use crate::flags::{DEFAULT_DELTA, DEFAULT_MODEL_MB, mechanism, with_mechanisms};
use crate::input::Data;
use crate::randomness::{Drawing, Randomness};

const LOGIN_EXAMPLES: &str = "\
Examples:
  fhaim account login --server http://127.0.0.1:8080 --email ana@hospital.example
  fhaim account login --server https://fhaim.example --email ana@hospital.example --sign-up
  fhaim account login --server https://fhaim.example --api-key-file key.txt

The password is asked for, or read from FHAIM_PASSWORD. The login is kept in FHAIM_CONFIG_DIR
(by default ~/.config/fhaim), readable by its owner alone.";

/// Flags of `account login`.
#[derive(Debug, Args)]
pub struct LoginArguments {
    /// Address that the three services are behind
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// Address of the computation service, where it is not SERVER/computation
    #[arg(long, value_name = "URL")]
    pub computation: Option<String>,
    /// Address of the crypto service, where it is not SERVER/crypto
    #[arg(long, value_name = "URL")]
    pub crypto: Option<String>,
    /// Address of the second computation service, where there is one and it is not SERVER/witness
    #[arg(long, value_name = "URL")]
    pub witness: Option<String>,
    /// Address of the generation service, where it is not SERVER/generation
    #[arg(long, value_name = "URL")]
    pub generation: Option<String>,
    /// The account
    #[arg(long, required_unless_present = "api_key_file")]
    pub email: Option<String>,
    /// Make the account first
    #[arg(long, conflicts_with = "api_key_file")]
    pub sign_up: bool,
    /// File with an API key, instead of an account's password
    #[arg(long, value_name = "FILE", conflicts_with = "email")]
    pub api_key_file: Option<PathBuf>,
}

/// What to do with the account.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Sign in to the services
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(LoginArguments),
    /// Sign out, and forget the login
    #[command(after_help = LOGOUT_EXAMPLES)]
    Logout(LogoutArguments),
    /// What the account has at each service, and what it may have
    #[command(after_help = USAGE_EXAMPLES)]
    Usage(ListArguments),
    /// Change the account's password; all other sessions end
    #[command(after_help = PASSWORD_EXAMPLES)]
    Password,
    /// Delete the account with all of its datasets, at all three services
    #[command(after_help = CLOSE_EXAMPLES)]
    Delete(CloseArguments),
}

const PASSWORD_EXAMPLES: &str = "\
Examples:
  fhaim account password
  FHAIM_PASSWORD=old FHAIM_NEW_PASSWORD=new fhaim account password

Both passwords are asked for, or read from FHAIM_PASSWORD and FHAIM_NEW_PASSWORD.";

const CLOSE_EXAMPLES: &str = "\
Examples:
  fhaim account delete
  FHAIM_PASSWORD=secret fhaim account delete --yes

Synthetic tables that were downloaded stay where they are; what was spent of a table's privacy stays
spent.";

/// Flags of `account delete`.
#[derive(Debug, Args)]
pub struct CloseArguments {
    /// Delete it without asking
    #[arg(long)]
    pub yes: bool,
}

const USAGE_EXAMPLES: &str = "\
Examples:
  fhaim account usage
  fhaim account usage --json

Each line names a limit as the service's configuration does: who runs the service can change it.";

/// What to do with datasets.
#[derive(Debug, Subcommand)]
pub enum DatasetCommand<R: Randomness> {
    /// Fix a dataset's schema and budget, and have its keys made
    #[command(after_help = with_mechanisms(CREATE_EXAMPLES))]
    Create(CreateArguments),
    /// Encrypt a table here and upload it; the same again goes on with what is missing
    #[command(after_help = UPLOAD_EXAMPLES)]
    Upload(Drawing<UploadArguments, R>),
    /// Write the card by which a dataset of several holders names this account and its part
    #[command(after_help = JOIN_EXAMPLES)]
    Join(JoinArguments),
    /// Agree to a dataset's terms, holders and keys; nothing is released before all have
    #[command(after_help = SIGN_EXAMPLES)]
    Sign(ConsentArguments),
    /// Leave a dataset: no further run of it begins, for good
    #[command(after_help = WITHDRAW_EXAMPLES)]
    Withdraw(ConsentArguments),
    /// All datasets, newest first
    #[command(after_help = DATASET_LIST_EXAMPLES)]
    List(ListArguments),
    /// One dataset: its terms, its upload, its budget
    #[command(after_help = DATASET_SHOW_EXAMPLES)]
    Show(ShowArguments),
    /// Give a dataset another name; nothing else of it changes
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

The card is public: the account's identifier, what it will have of the table, and the public half of a
key that this machine makes once and keeps beside the login. Send it to whoever makes the dataset, and
compare its fingerprint by telephone: whoever can change a card on its way could sign in your name.";

const SIGN_EXAMPLES: &str = "\
Examples:
  fhaim dataset sign 0198c0de-0000-7000-8000-000000000000
  fhaim dataset sign 0198c0de-0000-7000-8000-000000000000 --yes

It shows what the dataset is for, who holds it with which key, and on whose noise its price relies, and
asks. The signature is kept in the dataset's ledger by the key service, which releases nothing before
every holder has signed the same terms and keys.";

const WITHDRAW_EXAMPLES: &str = "\
Examples:
  fhaim dataset withdraw 0198c0de-0000-7000-8000-000000000000

Before the first run the account's ciphertexts are deleted. What was released stays released.";

/// Flags of `dataset join`.
#[derive(Debug, Args)]
pub struct JoinArguments {
    /// Most records that this holder has
    #[arg(long, value_name = "N")]
    pub record_bound: u64,
    /// Names of its columns, separated by commas, where each holder has some columns of all records
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub columns: Vec<String>,
}

/// Flags of `dataset sign` and `dataset withdraw`.
#[derive(Debug, Args)]
pub struct ConsentArguments {
    /// The dataset
    pub dataset: Uuid,
    /// Do it without asking
    #[arg(long)]
    pub yes: bool,
    /// Print where all holders stand as JSON
    #[arg(long)]
    pub json: bool,
}

/// Who holds a dataset together, and what each uploads.
#[derive(Debug, Args)]
pub struct RosterArguments {
    /// Card of a holder, as `fhaim dataset join` writes it: once for each holder, this account's first
    #[arg(long = "holder", value_name = "JSON")]
    pub holders: Vec<PathBuf>,
    /// Holders whose noise everyone relies on: 1 trusts nobody else's; all of them protects against
    /// services and readers, but not against other holders, who can subtract their own noise
    #[arg(long, value_name = "H", default_value_t = 1)]
    pub honest: u32,
    /// What each holder uploads beside its noise: encrypted records, or encrypted counts of all pairs
    /// of columns; auto: whichever is smaller for the most records that a holder may have
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

The name is for people; the dataset's identifier, its terms and its schema stay as they are.";

/// Flags of `dataset rename`.
#[derive(Debug, Args)]
pub struct RenameArguments {
    /// The dataset
    pub dataset: Uuid,
    /// Its new name
    pub name: String,
    /// Print the dataset as JSON
    #[arg(long)]
    pub json: bool,
}

const DELETE_EXAMPLES: &str = "\
Examples:
  fhaim dataset delete 0198c0de-0000-7000-8000-000000000000
  fhaim dataset delete 0198c0de-0000-7000-8000-000000000000 --yes

The key of its noise on this machine is deleted with it: nothing of it can be verified after.";

const CREATE_EXAMPLES: &str = "\
Examples:
  fhaim dataset create --schema compas.schema.json --data compas.csv --epsilon 1
  fhaim dataset create --schema compas.schema.json --record-bound 8192 --epsilon 10 --runs 2
  fhaim dataset create --schema compas.schema.json --epsilon 1 --holder ana.json --holder ben.json

With --holder several accounts hold the dataset: each has written its card with `fhaim dataset join`, has
to `sign` the dataset, and uploads its part. The first card is that of who makes the dataset.

The schema, epsilon, delta, mechanism and record bound are public and cannot be changed after.
--data only serves to choose the record bound: the number of records, rounded up as an upload
shows it. It prints the dataset's identifier.

What a dataset releases adds up with what other datasets over the same records have released. This
machine remembers, by a keyed digest of the file, what it was used for, and says so (--yes: without
a question).";

/// Flags of `dataset create`.
#[derive(Debug, Args)]
pub struct CreateArguments {
    /// Public description of the table
    #[arg(long, value_name = "JSON")]
    pub schema: PathBuf,
    /// Name for people; the schema's unless given
    #[arg(long)]
    pub name: Option<String>,
    /// Privacy budget of all runs together: epsilon of (epsilon, delta)-differential privacy
    #[arg(long, value_name = "E")]
    pub epsilon: f64,
    /// Privacy budget: delta
    #[arg(long, value_name = "D", default_value_t = DEFAULT_DELTA)]
    pub delta: f64,
    /// How synthetic tables are made
    #[arg(long, value_name = "M", default_value_t, value_parser = mechanism())]
    pub mechanism: MechanismName,
    /// Runs that share the budget equally
    #[arg(long, default_value_t = 1)]
    pub runs: u32,
    /// Most records the table has
    #[arg(long, value_name = "N", required_unless_present_any = ["data", "holders"])]
    pub record_bound: Option<u64>,
    /// The table, to choose the record bound from
    #[arg(long, value_name = "CSV")]
    pub data: Option<PathBuf>,
    /// How the table is written.
    #[command(flatten)]
    pub format: FormatArguments,
    /// What to do with values that the schema does not have.
    #[command(flatten)]
    pub strictness: StrictnessArguments,
    /// Who holds it.
    #[command(flatten)]
    pub roster: RosterArguments,
    /// Most memory of the model, in MB
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_MODEL_MB)]
    pub model_mb: usize,
    /// How much more the pairs with the schema's target count
    #[arg(long, value_name = "W", default_value_t = 1)]
    pub target_weight: u32,
    /// Have a second computation service compute everything too, and nothing decrypted that the two do
    /// not agree on
    #[arg(long)]
    pub witness: bool,
    /// Have so many key services share the key: nothing is decrypted that one of them does not pay for
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=3))]
    pub keys: u8,
    /// Use records again without asking, where they were used before
    #[arg(long)]
    pub yes: bool,
    /// Print the dataset as JSON
    #[arg(long)]
    pub json: bool,
}

const UPLOAD_EXAMPLES: &str = "\
Examples:
  fhaim dataset upload 0198c0de-0000-7000-8000-000000000000 --data compas.csv

Run the same command again to resume an interrupted upload. A file in the folder of the login records
the objects that the service has confirmed. The same folder has DATASET.ladder, the key of your noise,
for `fhaim verify`: anyone who has it can remove your noise from the released numbers.

One upload of a dataset runs at a time. A second one on this machine is refused. One on another machine
makes both send everything again.";

/// Flags of `dataset upload`.
#[derive(Debug, Args)]
pub struct UploadArguments {
    /// The dataset
    pub dataset: Uuid,
    /// The table
    #[arg(long, value_name = "CSV")]
    pub data: Data,
    /// How the table is written.
    #[command(flatten)]
    pub format: FormatArguments,
    /// What to do with values that the schema does not have.
    #[command(flatten)]
    pub strictness: StrictnessArguments,
    /// Use records again without asking, where they were used before
    #[arg(long)]
    pub yes: bool,
    /// Print the upload as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `dataset list`.
#[derive(Debug, Args)]
pub struct ListArguments {
    /// Print them as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `dataset show`, `job list` and `ledger`.
#[derive(Debug, Args)]
pub struct ShowArguments {
    /// The dataset
    pub dataset: Uuid,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `dataset delete`.
#[derive(Debug, Args)]
pub struct DeleteArguments {
    /// The dataset
    pub dataset: Uuid,
    /// Delete it without asking
    #[arg(long)]
    pub yes: bool,
}

/// What to do with jobs.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Start a run over a dataset
    #[command(after_help = JOB_RUN_EXAMPLES)]
    Run(JobRunArguments),
    /// Follow a job to its end
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(JobArguments),
    /// All jobs of a dataset, newest first
    #[command(after_help = JOB_LIST_EXAMPLES)]
    List(ShowArguments),
    /// One job
    #[command(after_help = JOB_SHOW_EXAMPLES)]
    Show(JobArguments),
    /// Everything a job released: integers, noise, cost
    #[command(after_help = RELEASES_EXAMPLES)]
    Releases(JobArguments),
    /// Note something on a job, by which to tell it from others
    #[command(after_help = NOTE_EXAMPLES)]
    Note(NoteArguments),
    /// Stop a job; what it spent stays spent
    #[command(after_help = CANCEL_EXAMPLES)]
    Cancel(JobArguments),
    /// Let a job that failed or was cancelled go on where it was
    #[command(after_help = RETRY_EXAMPLES)]
    Retry(JobArguments),
}

const JOB_RUN_EXAMPLES: &str = "\
Examples:
  fhaim job run 0198c0de-0000-7000-8000-000000000000 --watch
  fhaim job run 0198c0de-0000-7000-8000-000000000000 --json
  fhaim job run 0198c0de-0000-7000-8000-000000000000 --job 0198c0de-0000-7000-8000-000000000001

On a terminal it says what the run spends and what is left, and asks first. The job's identifier is
printed before the call (with --json on standard error): where the answer is lost, the same run is
asked for again with --job, and nothing is spent twice.";

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

An empty note takes the old one away. The dataset's holders see it, and nobody else.";

/// Flags of `job note`.
#[derive(Debug, Args)]
pub struct NoteArguments {
    /// The job
    pub job: Uuid,
    /// What to note
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
    /// The dataset
    pub dataset: Uuid,
    /// Identifier of the job; where there is one of it already, no other is started [default: a
    /// new one]
    #[arg(long, value_name = "ID")]
    pub job: Option<Uuid>,
    /// Start it without asking
    #[arg(long)]
    pub yes: bool,
    /// Follow the job to its end
    #[arg(long)]
    pub watch: bool,
    /// Print the job as JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of commands about one job.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// The job
    pub job: Uuid,
    /// Print it as JSON (following a job: one event a line)
    #[arg(long)]
    pub json: bool,
}

const LOGOUT_EXAMPLES: &str = "\
Examples:
  fhaim account logout
  fhaim account logout --everywhere

API keys stay, and a token that is out is good for a quarter of an hour at most.";

/// Flags of `account logout`.
#[derive(Debug, Args)]
pub struct LogoutArguments {
    /// End all sessions of the account, on whatever machine
    #[arg(long)]
    pub everywhere: bool,
}

pub const LEDGER_EXAMPLES: &str = "\
Examples:
  fhaim ledger 0198c0de-0000-7000-8000-000000000000
  fhaim ledger 0198c0de-0000-7000-8000-000000000000 --json > ledger.json";
