//! Flags of `fhaim admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uuid::Uuid;

use crate::serve::backup::{BACKUP_EXAMPLES, BackupArguments, RESTORE_EXAMPLES, RestoreArguments};

/// Subcommands of `admin`.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Back up the data folder of `fhaim up`, which may be running
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArguments),
    /// Restore a backup to a data folder for `fhaim up`
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArguments),
    /// Resume a dataset that was frozen because the crypto service could not decrypt a page, or because
    /// the computation services disagreed
    #[command(after_help = THAW_EXAMPLES)]
    Thaw(ThawArguments),
    /// Release a job or batch from a worker that is known to be dead
    #[command(after_help = LEASE_EXAMPLES)]
    Release(LeaseArguments),
    /// Queue a rejected batch again, after the cause was fixed
    #[command(after_help = BATCH_EXAMPLES)]
    Reopen(BatchArguments),
    /// List blobs that a service's database does not refer to
    #[command(after_help = ORPHANS_EXAMPLES)]
    Orphans(OrphansArguments),
    /// Compare the stores of the three services: datasets, uploads, keys and receipts
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// List an account's API keys, or revoke them
    #[command(after_help = KEYS_EXAMPLES)]
    Keys(KeysArguments),
    /// Set and print a new password for an account, and end all of its sessions
    #[command(after_help = ACCOUNT_EXAMPLES)]
    Password(AccountArguments),
    /// Disable an account, revoke its API keys, and end all of its sessions
    #[command(after_help = ACCOUNT_EXAMPLES)]
    Disable(AccountArguments),
    /// Enable a disabled account
    #[command(after_help = ACCOUNT_EXAMPLES)]
    Enable(AccountArguments),
}

const THAW_EXAMPLES: &str = "\
A page that cannot be decrypted comes from an uploaded object that fhaim did not make, or from a service that
does not follow the protocol. Find its origin before you resume the dataset. The budget of the page's batch
stays spent. docs/FROZEN.md has the way forward for each reason.

Two kinds of frozen datasets cannot be resumed: a dataset with two or more holders that was frozen because
of a page, and a dataset that was frozen because the ledger was set back to an older copy. Create a new
dataset instead; the budget of the frozen one stays spent.

Examples:
  fhaim admin thaw DATASET --config crypto.toml
  fhaim admin thaw DATASET --data-dir fhaim-data";

const LEASE_EXAMPLES: &str = "\
Examples:
  fhaim admin release generation JOB --config generation.toml
  fhaim admin release computation JOB/FIRST --data-dir fhaim-data

A lease also expires if its worker does not renew it. If the worker is still alive, it finds out at its
next write and stops: nothing is done twice.";

const BATCH_EXAMPLES: &str = "\
Examples:
  fhaim admin reopen DATASET JOB FIRST --config computation.toml

The batch is sealed again to the same bytes, and no budget is spent twice. `fhaim job retry` does the same
for the batch that its job waits for.";

const ORPHANS_EXAMPLES: &str = "\
Examples:
  fhaim admin orphans computation --config computation.toml
  fhaim admin orphans crypto --data-dir fhaim-data --delete

A service deletes such blobs by itself when they are older than its setting orphan_seconds.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  fhaim admin compare --data-dir fhaim-data
  fhaim admin compare --generation generation.toml --computation computation.toml \\
      --crypto crypto.toml

The exit code is 1 if the stores differ. Anyone who can read all three stores can read the tables. If the
services have different operators, compare the services' own reports instead.";

const ACCOUNT_EXAMPLES: &str = "\
Examples:
  fhaim admin password ana@hospital.example --config generation.toml
  fhaim admin disable ana@hospital.example --data-dir fhaim-data
  fhaim admin enable ana@hospital.example --data-dir fhaim-data

The generation service refuses the account's access tokens at once, and the other services within seconds. If
they cannot reach the generation service, they accept tokens for up to 15 minutes. API keys outlive a new
password: see `fhaim admin keys`.";

const KEYS_EXAMPLES: &str = "\
Examples:
  fhaim admin keys ana@hospital.example --config generation.toml
  fhaim admin keys ana@hospital.example --data-dir fhaim-data --revoke KEY
  fhaim admin keys ana@hospital.example --data-dir fhaim-data --revoke-all

A list has a line for each key: identifier, time of creation, time of the last use, and name. Revoking a
key also ends the account's access tokens. Programs and people with a valid session get new ones without
noticing.";

/// Place of a service's store.
#[derive(Debug, Args)]
pub struct Place {
    /// Configuration file of the service
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub config: Option<PathBuf>,
    /// Data folder of `fhaim up`
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
}

/// A service.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Named {
    /// The generation service: accounts, jobs and models
    Generation,
    /// The computation service: ciphertexts and batches
    Computation,
    /// The crypto service: keys and the ledger
    Crypto,
}

/// Flags of `admin thaw`.
#[derive(Debug, Args)]
pub struct ThawArguments {
    /// Identifier of the dataset
    pub dataset: Uuid,
    /// Resume the dataset at the key-share service with this number, instead of at the crypto service
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub keyshare: Option<u8>,
    /// Place of the service's store.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin release`.
#[derive(Debug, Args)]
pub struct LeaseArguments {
    /// Service of the task
    pub service: Named,
    /// Task: the identifier of a job, or JOB/FIRST for a batch
    pub task: String,
    /// Place of the service's store.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin reopen`.
#[derive(Debug, Args)]
pub struct BatchArguments {
    /// Identifier of the dataset
    pub dataset: Uuid,
    /// Identifier of the job
    pub job: Uuid,
    /// Number of the batch's first release
    pub first: u32,
    /// Place of the computation service's store.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin orphans`.
#[derive(Debug, Args)]
pub struct OrphansArguments {
    /// Service of the blobs
    pub service: Named,
    /// Minimum age of the blobs in seconds. The database may soon refer to younger ones, so --delete needs at least
    /// the service's orphan_seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub age: u64,
    /// Delete the blobs
    #[arg(long)]
    pub delete: bool,
    /// Place of the service's store.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Data folder of `fhaim up`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["generation", "computation", "crypto"])]
    pub data_dir: Option<PathBuf>,
    /// Configuration file of the generation service
    #[arg(long, value_name = "FILE", required_unless_present = "data_dir")]
    pub generation: Option<PathBuf>,
    /// Configuration file of the computation service
    #[arg(long, value_name = "FILE", required_unless_present = "data_dir")]
    pub computation: Option<PathBuf>,
    /// Configuration file of the crypto service
    #[arg(long, value_name = "FILE", required_unless_present = "data_dir")]
    pub crypto: Option<PathBuf>,
}

/// Flags of `admin keys`.
#[derive(Debug, Args)]
pub struct KeysArguments {
    /// Revoke the key with this identifier
    #[arg(long, value_name = "KEY")]
    pub revoke: Option<Uuid>,
    /// Revoke all keys
    #[arg(long, conflicts_with = "revoke")]
    pub revoke_all: bool,
    /// Account of the keys.
    #[command(flatten)]
    pub account: AccountArguments,
}

/// Flags of `admin password`, `admin disable` and `admin enable`.
#[derive(Debug, Args)]
pub struct AccountArguments {
    /// Email address of the account
    pub email: String,
    /// Place of the generation service's store.
    #[command(flatten)]
    pub place: Place,
}
