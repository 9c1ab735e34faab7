//! Flags of `fhaim admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use uuid::Uuid;

use crate::serve::backup::{BACKUP_EXAMPLES, BackupArguments, RESTORE_EXAMPLES, RestoreArguments};

/// What to do.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Copy the data of `fhaim up`, also while it runs
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArguments),
    /// Put a backup where `fhaim up` finds it
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArguments),
    /// Let a dataset go on that the crypto service froze: over a page it could not decrypt, or computation services
    /// that do not agree
    #[command(after_help = THAW_EXAMPLES)]
    Thaw(ThawArguments),
    /// Take a job or a batch from a worker that is known to be gone
    #[command(after_help = LEASE_EXAMPLES)]
    Release(LeaseArguments),
    /// Queue a refused batch again, after what it was refused for was mended
    #[command(after_help = BATCH_EXAMPLES)]
    Reopen(BatchArguments),
    /// List blobs that nothing in a service's database names
    #[command(after_help = ORPHANS_EXAMPLES)]
    Orphans(OrphansArguments),
    /// Hold what the three services keep against each other: datasets, uploads, keys, receipts
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Give an account a new password, which is printed; all of its sessions end
    #[command(after_help = ACCOUNT_EXAMPLES)]
    Password(AccountArguments),
    /// Let nobody sign in to an account, nor use its API keys; all of its sessions end
    #[command(after_help = ACCOUNT_EXAMPLES)]
    Disable(AccountArguments),
    /// Open a disabled account again
    #[command(after_help = ACCOUNT_EXAMPLES)]
    Enable(AccountArguments),
}

const THAW_EXAMPLES: &str = "\
A service that follows the protocol never sends such a page: find out where it came from before you
let the dataset go on. The batch that had the page stays paid for. A dataset of two or more holders that
is frozen over a page cannot be thawed: its holders make a new dataset, and what was spent stays counted.
Nor can one that was frozen because the ledger was set back.

Examples:
  fhaim admin thaw DATASET --config crypto.toml
  fhaim admin thaw DATASET --data fhaim-data";

const LEASE_EXAMPLES: &str = "\
Examples:
  fhaim admin release generation JOB --config generation.toml
  fhaim admin release computation JOB/FIRST --data fhaim-data

A lease ends by itself when its worker does not renew it. A worker that is there after all finds out
at its next write, and stops: nothing is done twice.";

const BATCH_EXAMPLES: &str = "\
Examples:
  fhaim admin reopen DATASET JOB FIRST --config computation.toml

The batch is sealed again, to the same bytes, and nothing is paid for twice. `fhaim job retry` does
the same for the batch that its job waits for.";

const ORPHANS_EXAMPLES: &str = "\
Examples:
  fhaim admin orphans computation --config computation.toml
  fhaim admin orphans crypto --data fhaim-data --delete

A service deletes them by itself when they are as old as its orphan_seconds.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  fhaim admin compare --data fhaim-data
  fhaim admin compare --generation generation.toml --computation computation.toml \\
      --crypto crypto.toml

Ends with 1 where they differ. Whoever can read all three stores can read the tables: in different
hands, compare what each says of itself instead.";

const ACCOUNT_EXAMPLES: &str = "\
Examples:
  fhaim admin password ana@hospital.example --config generation.toml
  fhaim admin disable ana@hospital.example --data fhaim-data
  fhaim admin enable ana@hospital.example --data fhaim-data

A token that is out is good for a quarter of an hour at most.";

/// Where a service's store is.
#[derive(Debug, Args)]
pub struct Place {
    /// Configuration of the service
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    pub config: Option<PathBuf>,
    /// Folder of `fhaim up`
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
}

/// A service.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Named {
    /// Accounts, jobs, models
    Generation,
    /// Ciphertexts, batches
    Computation,
    /// Keys, the ledger
    Crypto,
}

/// Flags of `admin thaw`.
#[derive(Debug, Args)]
pub struct ThawArguments {
    /// Identifier of the dataset
    pub dataset: Uuid,
    /// At the key-share service of this number, which froze it too, and not at the crypto service
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    pub keyshare: Option<u8>,
    /// Where the service's store is.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin release`.
#[derive(Debug, Args)]
pub struct LeaseArguments {
    /// Whose task it is
    pub service: Named,
    /// The task: a job, or a batch as JOB/FIRST
    pub task: String,
    /// Where the service's store is.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin reopen`.
#[derive(Debug, Args)]
pub struct BatchArguments {
    /// The dataset
    pub dataset: Uuid,
    /// The job
    pub job: Uuid,
    /// Number of the batch's first release
    pub first: u32,
    /// Where the computation service's store is.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin orphans`.
#[derive(Debug, Args)]
pub struct OrphansArguments {
    /// Whose blobs they are
    pub service: Named,
    /// Seconds that they are old at least; younger ones may be named soon
    #[arg(long, value_name = "S", default_value_t = 3600)]
    pub age: u64,
    /// Delete them
    #[arg(long)]
    pub delete: bool,
    /// Where the service's store is.
    #[command(flatten)]
    pub place: Place,
}

/// Flags of `admin compare`.
#[derive(Debug, Args)]
pub struct CompareArguments {
    /// Folder of `fhaim up`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["generation", "computation", "crypto"])]
    pub data: Option<PathBuf>,
    /// Configuration of the generation service
    #[arg(long, value_name = "FILE", required_unless_present = "data")]
    pub generation: Option<PathBuf>,
    /// Configuration of the computation service
    #[arg(long, value_name = "FILE", required_unless_present = "data")]
    pub computation: Option<PathBuf>,
    /// Configuration of the crypto service
    #[arg(long, value_name = "FILE", required_unless_present = "data")]
    pub crypto: Option<PathBuf>,
}

/// Flags of `admin password`, `admin disable` and `admin enable`.
#[derive(Debug, Args)]
pub struct AccountArguments {
    /// The account's address
    pub email: String,
    /// Where the generation service's store is.
    #[command(flatten)]
    pub place: Place,
}
